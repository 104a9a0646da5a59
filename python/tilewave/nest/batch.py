"""Batches: nests whose outer loops carry no dependence, so that each of their points is a problem of its own."""

import copy
import dataclasses

from tilewave.nest.box import iteration_box
from tilewave.nest.dependences import Place
from tilewave.nest.derived import DerivedNest

#: The table with the ranges of the inner loops, and what an array with a rolling window is before the run.
BOUNDS = "inner bounds"

#: The table for the inner loop indices of a point that raised.
WHERE = "inner place"

#: A loop of one round around a batch of one loop.
ONCE = "whole batch"


def before(name):
    """The table with what a rolling-window array is before the run; no name of Python's."""
    return f"before {name}"


@dataclasses.dataclass(frozen=True)
class Buffer:
    """Elements of an array in the order of the kernel: for each the values of all lanes.

    Attributes
    ----------
    array : str
    places : tuple of Place
        Those of the nest that are in it.
    kind : str
        "ring": the last planes of a table, which goes along the first inner loop. "packed": all elements that have no
        plane. "outer": one element for each point of the batch. "direct": none, elements are read where they are.
    written : bool
    stored : bool
        Whether it is written back to the array.
    """

    array: str
    places: tuple[Place, ...]
    kind: str
    written: bool
    stored: bool


def outer_loops(nest):
    """How many of the first loops are a batch: all that is written has them, and no dependence goes along them."""
    count = 0
    for index in nest.indices[:-1]:
        if any(index not in nest.axes[name] for name in nest.written):
            break
        if any(dependence.vector[count] != 0 for dependence in nest.dependences):
            break
        count += 1
    return count


def buffers_of(nest, count, windows, downwards):
    """Return what becomes of each array of a nest, of which `count` loops are a batch; None where some array has no
    place.

    `windows`: the arrays that nobody reads after the run. `downwards`: by loop index.
    """
    outer, inner = nest.indices[:count], nest.indices[count:]
    groups = {}
    for place in nest.places:
        if place.phases or len({*place.axes}) < len(place.axes):
            return None
        ahead = tuple(offset for axis, offset in zip(place.axes, place.offsets, strict=True) if axis in outer)
        key = (place.array,) if place.array in nest.written else (place.array, place.axes, ahead)
        groups.setdefault(key, []).append(place)
    found = []
    for (array, *_), places in groups.items():
        axes = places[0].axes
        along, written = [axis for axis in inner if axis in axes], array in nest.written
        if not along:
            kind = "outer"
        elif len(along) == len(inner):
            kind = "ring" if written else "direct"
        elif not written and (len(along) > 1 or not {*axes} & {*outer}):
            kind = "direct"
        else:
            kind = "packed"
        if kind == "ring" and not _is_computed_before(places, nest.indices, downwards):
            return None
        if array in windows and kind != "ring":
            return None
        if kind == "outer" and not {*axes} <= {*outer}:
            return None
        found.append(Buffer(array, tuple(places), kind, written, written and array not in windows))
    return found


def _is_computed_before(places, indices, downwards):
    """Return whether points read of an array only elements that are computed before them, or never."""
    writers = [place for place in places if place.written]
    if len(writers) != 1 or not writers[0].always or writers[0].read:
        return False
    first = writers[0].along
    for place in places:
        steps = [(place.along[index] - first[index]) * (-1 if index in downwards else 1) for index in indices]
        if not place.written and next((step for step in steps if step), 0) >= 0:
            return False
    return True


class BatchNest(DerivedNest):
    """A nest of the outer loops of another one: its kernel has the inner loops.

    What has only outer indices is an array to the nest, everything else a table to its kernel.

    Parameters
    ----------
    nest : Nest
    count : int
        Outer loops.
    buffers : list of Buffer
    ranges : tuple
        For each inner loop its lower and upper bounds, each as coefficients of the inner indices and a divisor.
    downwards : tuple of bool
        For each inner loop.
    lanes : int
        Points of the batch that are computed at once.
    """

    def __init__(self, nest, count, buffers, ranges, downwards, lanes):
        super().__init__(nest)
        self.whole = nest
        self.outer, self.inner = nest.indices[:count], nest.indices[count:]
        # Lanes share all loops but one: that along which a lane's tiles follow each other.
        self.indices = self.outer if count > 1 else (ONCE, *self.outer)
        self.buffers, self.ranges, self.downwards, self.lanes = buffers, ranges, downwards, lanes
        outer = {buffer.array for buffer in buffers if buffer.kind == "outer"}
        windows = [buffer.array for buffer in buffers if buffer.written and not buffer.stored]
        self.places = tuple(place for place in nest.places if place.array in outer)
        self.views = tuple(view for view in nest.views if view.array in outer)
        self.written = tuple(name for name in nest.written if name in outer)
        self.axes = {name: axes for name, axes in nest.axes.items() if name in outer}
        self.dependences = ()
        inside = dict.fromkeys(buffer.array for buffer in buffers if buffer.kind != "outer")
        self.tables = (
            *nest.tables,
            *(name for name in inside if name not in windows),
            *map(before, windows),
            BOUNDS,
            WHERE,
        )
        self.arrays = (*(name for name in nest.arrays if name in outer), *self.tables)
        #: Tables that the kernel writes.
        stored = dict.fromkeys(buffer.array for buffer in buffers if buffer.stored and buffer.kind != "outer")
        self.written_tables = (*stored, WHERE)
        self.numbers = {*self.outer}
        self._unwritten_keys = frozenset()

    def table_rank(self, table):
        """Number of dimensions."""
        if table in (BOUNDS, WHERE):
            return 1
        if table.startswith("before "):
            return len(self.inner)
        return self.whole.parameters.ranks[table]

    def iteration_box(self, shapes):
        """Return the box of the whole nest."""
        loops = copy.copy(self)
        loops.indices = self.outer
        return ((0, 1),) * (len(self.indices) - len(self.outer)) + iteration_box(loops, shapes)

    def _difference(self):
        how = len(self.outer), self.tables, self.ranges, self.downwards, self.lanes, self.written_tables
        return f"batch {how}"
