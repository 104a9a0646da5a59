"""The places that a body touches in a point, and the dependences between points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewave import _core
from tilewave.nest.views import View, elements_of

#: So many time steps before the current one a nest may read: u[t-6].
MOST_HISTORY = _core.limits["history"]


@dataclass(frozen=True)
class Place:
    """One element of an array in each point.

    Attributes
    ----------
    array : str
    offsets : tuple of int
        One a subscript, in the order of the array's subscripts.
    axes : tuple of str
        The loop index of each subscript. All places of an array that is written have the same.
    written : bool
    read : bool
        Whether its value from before the point may be needed: it is read before it is assigned, or
        some path does not assign it.
    always : bool
        Whether every path through the body that does not raise assigns it.
    phases : tuple of (int, int)
        Of A[2*i+1] ((2, 1),): the place is of every second element, from element 1 on, and its offsets count these.
        One a subscript; empty where no subscript multiplies its index.
    whole : frozenset of str
        The loop indices in place of which loops inside the body go: all elements along them are read.
    """

    array: str
    offsets: tuple[int, ...]
    axes: tuple[str, ...]
    written: bool
    read: bool
    always: bool
    phases: tuple[tuple[int, int], ...] = ()
    whole: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[Any, ...]:
        """``(array, offsets, axes, phases)``."""
        return self.array, self.offsets, self.axes, self.phases

    @property
    def along(self) -> dict[str, int]:
        """The offset along each loop index that it has; of several subscripts with one index the first counts."""
        return dict(zip(reversed(self.axes), reversed(self.offsets), strict=True))

    @property
    def view(self) -> View:
        """The array under the order of these subscripts."""
        first = self.along
        lags = tuple(offset - first[index] for index, offset in zip(self.axes, self.offsets, strict=True))
        return View(self.array, self.axes, lags, self.phases)

    def extents(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the extents of the elements that the offsets count, for an array of a shape."""
        if not self.phases:
            return tuple(shape)
        return tuple(elements_of(extent, *phase) for extent, phase in zip(shape, self.phases, strict=True))


@dataclass(frozen=True)
class Dependence:
    """Two accesses of one array that may touch one element in different points.

    Attributes
    ----------
    vector : tuple of int or None
        From the point that comes first to the one that comes later, one entry a loop index,
        lexicographically positive; None stands for every integer that leaves it so.
    kind : str
        ``"flow"`` (a value is used), ``"anti"`` (a value is used, then replaced) or ``"output"`` (a value is replaced).
    array : str
    line : int
        Of the sink, in its file.
    source, sink : str
        The texts of the two accesses.

    Notes
    -----
    An assignment that some path skips keeps the value from before: it counts as reading it too.
    """

    vector: tuple[int | None, ...]
    kind: str
    array: str
    line: int
    source: str
    sink: str

    def __str__(self) -> str:
        entries = ", ".join("*" if entry is None else str(entry) for entry in self.vector)
        comma = "," if len(self.vector) == 1 else ""
        return f"({entries}{comma}) {self.kind}: {self.source} -> {self.sink}, line {self.line}"


def places_of(body):
    """The places of a checked body: written ones first, each group in source order."""

    def in_order(nodes):
        return sorted(nodes, key=lambda place: (nodes[place].lineno, nodes[place].col_offset))

    read = {place: node for place, node in body.reads.items() if place not in body.stores}
    return tuple(
        Place(
            *place[:3],
            place in body.stores,
            place in body.needed or place not in body.stores or place not in body.always,
            place in body.always,
            place[3],
            frozenset(body.wholes.get(place, ())),
        )
        for place in (*in_order(body.stores), *in_order(read))
    )


def views_of(places, arrays):
    """The views of arrays, those of one behind each other; the core has an array for each."""
    found = dict.fromkeys(place.view for place in places)
    return tuple(sorted(found, key=lambda view: arrays.index(view.array)))


def dependences_of(source, body, places, parameters):
    """All dependences between points, in the order of the places."""
    written = [place for place in places if place.written]
    read = [place for place in places if place.read]
    found = []
    for kind, sources, sinks in (("flow", written, read), ("anti", read, written), ("output", written, written)):
        for first in sources:
            for later in sinks:
                if first.array != later.array or first.phases != later.phases:
                    continue
                vector = _vector(first, later, parameters.indices)
                if vector is None:
                    continue
                nodes = (_node(body, first, kind != "anti"), _node(body, later, kind != "flow"))
                found.append(Dependence(vector, kind, first.array, source.line(nodes[1]), *map(source.text_of, nodes)))
    return tuple(found)


def _node(body, place, stores):
    """The syntax node of a place as an assignment or as a read of the value from before."""
    if stores:
        return body.stores[place.key]
    return body.needed.get(place.key) or body.stores[place.key]


def _vector(first, later, indices):
    """From a point to the later ones whose second access touches what its first one does.

    None where there are none.
    """
    if first.axes != later.axes:  # row k and column k of a pivot: any later point
        return (None,) * len(indices)
    known = {name: one - two for name, one, two in zip(first.axes, first.offsets, later.offsets, strict=True)}
    known |= dict.fromkeys(first.whole | later.whole)
    vector = [known.get(name) for name in indices]
    leading = next((entry for entry in vector if entry != 0), 0)
    if leading == 0 or leading is not None and leading < 0:
        return None
    missing = [k for k, entry in enumerate(vector) if entry is None]
    if len(missing) == 1 and not any(known.values()) and not first.whole | later.whole:
        vector[missing[0]] = 1
    return tuple(vector)


def row_is_apart(places, last, buffers):
    """Return whether no point of a row along loop `last` touches memory that another point of the row writes.

    `buffers` has for each array how many time steps lie in memory, 0 where time is one of its dimensions.
    """

    def line(place, many):
        here = [offset for axis, offset in zip(place.axes, place.offsets, strict=True) if axis != last]
        return [here[0] % many, *here[1:]] if many and here else here

    for writer in (place for place in places if place.written):
        for place in (each for each in places if each.array == writer.array and each.phases == writer.phases):
            many = buffers[place.array]
            if place.axes == writer.axes and line(place, many) != line(writer, many):
                continue
            elsewhere = place.axes != writer.axes or place.along.get(last) != writer.along.get(last)
            if elsewhere or last in place.whole or last not in place.axes:
                return False
    return True


def time_index(places, indices, back=False):
    """The first loop index, if the body uses it as time steps are used, else None.

    Every array that is written, or that has this index at all, must have it as its first subscript,
    at offsets from -MOST_HISTORY to 1, and be written at 1 only. With `back`, for time that runs backwards, offsets
    count the other way.
    """
    time = indices[0]
    for place in places:
        if not place.written and time not in place.axes:
            continue
        if place.phases and place.phases[0] != (1, 0):
            return None
        offset = -place.offsets[0] if back else place.offsets[0]
        if place.axes[0] != time or not (1 if place.written else -MOST_HISTORY) <= offset <= 1:
            return None
    return time
