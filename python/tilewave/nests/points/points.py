"""Sources that are added at points after each time step, and receivers that are recorded there."""

import dataclasses

import numpy as np

from tilewave import _core
from tilewave.dtypes import ALL
from tilewave.errors import ConfigError, shown
from tilewave.field.field import Field
from tilewave.field.values import digest, require_no_mask
from tilewave.nest.bounds import loop_bounds, read_strides, without_strides
from tilewave.nest.nest import Nest
from tilewave.nests.call.arguments import as_numbers
from tilewave.nests.call.problem import box_of_loops
from tilewave.nests.points.off_grid import OffGrid, OffGridRun, local_part
from tilewave.nests.rewrites.step_rows import with_rows_of_steps
from tilewave.patterns.allreduces import allreduce


class Points:
    """What a run of one nest, or of several in each time step, adds and records at points.

    Parameters
    ----------
    inject : dict or None
        From names of written arrays to (points, values).
    record : dict or None
        From names of arrays to points.
    nests : tuple of Nest
    arguments : dict
        Arrays by name, among others.
    steps : int

    Raises
    ------
    ConfigError
        For names, points or values that are none.
    """

    def __init__(self, inject, record, nests, arguments, steps):
        if not nests:
            raise ConfigError("run: an empty tuple of nests was given; allowed: one nest or more")
        for nest in nests:
            if not isinstance(nest, Nest):
                raise ConfigError(f"run: given {type(nest).__name__}; allowed: functions under @tilewave.nest")
        if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
            raise ConfigError(
                f"steps: given {shown(steps)}; allowed for several nests, and with inject= or record=: an integer >= 0"
            )
        self._steps = steps
        self._visited, self._constant = [], []  # points of written arrays, of others
        self._recording = []
        written = {name for nest in nests for name in nest.written}
        for name, given in _checked_dict("inject", inject, "(points, values)").items():
            array = _array_of("inject", name, arguments, nests)
            if name not in written:
                raise ConfigError(f"inject: array {name!r} is not written by the nest; allowed: one that is")
            if not isinstance(given, tuple | list) or len(given) != 2:
                raise ConfigError(f"inject: {name!r} was given {type(given).__name__}; allowed: (points, values)")
            places = _places("inject", name, array, given[0], steps)
            places.begin(_checked_values(name, array, given[1], places.shape))
            for what, part in zip(("points", "values"), given, strict=True):
                _require_apart(what, name, part, {other: arguments.get(other) for other in written})
            self._visited.append(places)
        for name, points in _checked_dict("record", record, "points").items():
            array = _array_of("record", name, arguments, nests)
            places = _places("record", name, array, points, steps)
            places.dtype = array.dtype
            self._recording.append(places)
            (self._visited if name in written else self._constant).append(places)
        self.begin_again()

    def __str__(self):
        """What must be equal on all ranks."""
        return f"points {[str(places) for places in self._visited + self._constant]}"

    def __bool__(self):
        """Whether anything is to be done between time steps."""
        return bool(self._visited)

    def may_be_noted(self):
        """Whether lanes may note what is recorded."""
        return all(places.adds or places.may_be_noted() for places in self._visited)

    def adds(self):
        """Whether anything is added."""
        return any(places.adds for places in self._visited)

    def names(self):
        """Return the arrays that have points."""
        return {places.name for places in self._visited + self._constant}

    def of(self, nest, by_lanes):
        """The core's points, which a run of the nest in single time steps visits after each, or its lanes record."""
        views = [view.array for view in nest.views]
        return [places.of(views.index(places.name), by_lanes) for places in self._visited]

    def written_by(self, nest):
        """Return the core's points of arrays that the nest writes, which its lanes visit."""
        views = [view.array for view in nest.views]
        return [places.of(views.index(places.name), True) for places in self._visited if places.name in nest.written]

    def is_last_of_one(self, each, arguments):
        """Whether each element is written by one of the nests in `each`, (nest, loops), and added to behind the last
        that reads its array."""
        for places in self._visited:
            writers = [k for k, (nest, _) in enumerate(each) if places.name in nest.written]
            later = [nest for nest, _ in each[writers[0] + 1 :]]
            if len(writers) > 1 or (places.adds and any(places.name in nest.arrays for nest in later)):
                return False
            nest, loops = each[writers[0]]
            if not places.is_inside(self._box(nest, loops, arguments, places.name)):
                return False
        return all(self.is_added_behind(nest, loops, arguments) for nest, loops in each)

    def _box(self, nest, loops, arguments, name):
        """The range of each subscript but time of the elements of an array that a nest writes."""
        numbers = as_numbers(nest, arguments)
        arrays = {array: numbers[array] for array in nest.arrays}
        ranges = box_of_loops(nest, arrays, int(self._steps), loops.periodic)
        over = loops.over and without_strides(loops.over, read_strides(nest.indices, loops.over))
        box = dict(zip(nest.indices, loop_bounds(nest.indices, ranges, over).box, strict=True))
        return [box[index] for index in nest.axes[name][1:]]

    def is_added_behind(self, nest, loops, arguments):
        """Whether each element that is added to may be changed as soon as its point is computed."""
        adding = [places for places in self._visited if places.adds and places.name in nest.written]
        names = {places.name for places in adding}
        read = [p for p in nest.places if p.array in names and not p.written and p.offsets[0] == 1]
        if any(p.whole or any(p.offsets[1:]) or p.axes != nest.axes[p.array] for p in read):
            return False
        if not adding or self._steps < 1:
            return not adding
        return all(places.is_inside(self._box(nest, loops, arguments, places.name)) for places in adding)

    def visit(self, step, rank):
        """Add and record after a time step, while nothing runs; local."""
        for places in self._visited:
            places.visit(step, rank)

    def begin_again(self):
        """Record into new arrays; local."""
        self.recorded = {}
        for places in self._recording:
            self.recorded[places.name] = np.zeros(places.shape, places.dtype)
            places.begin(self.recorded[places.name])

    def finish(self, context, steps=None):
        """Give every rank what all have recorded, in so many of the steps; collective."""
        for places in self._constant:
            for step in range(places.shape[0]):
                places.visit(step, context.rank)
        if steps is not None:
            self.recorded = {name: rows[:steps] for name, rows in self.recorded.items()}
        for places in self._recording:
            if context.size > 1 and places.rows.size:
                bits = places.rows.view(f"i{min(places.rows.itemsize, 8)}")  # of one rank, 0 elsewhere: sums are exact
                allreduce(bits, out=bits, context=context)
            places.finish(context)


def visited_by_lanes(nest, loops, points, arguments):
    """Whether lanes can add and record values while they compute, in blocks of time steps: receivers do not move, no
    bound depends on time, each point writes one element of a whole array without time, and what is added is for
    elements that points write, that no other point reads in the same time step, and beside no periodic loop.
    """
    if not points.may_be_noted():
        return False
    if nest.time is None or any(p.phases for p in nest.places):
        return False
    over = loops.over
    bounds = over if isinstance(over, dict) else {None: None} if over else {}
    numbers = all(
        isinstance(pair, tuple) and all(isinstance(end, int | np.integer) for end in pair) for pair in bounds.values()
    )
    return (
        numbers
        and not nest.parameters.wholes
        and not (loops.periodic and points.adds())  # what lies beyond an end is another element's copy
        and nest.time not in bounds
        and all(np.ndim(arguments.get(n)) + 1 == len(nest.axes[n]) == len(nest.indices) for n in nest.written)
        and not any(isinstance(array, Field) and array.keep == "window" for array in arguments.values())
        and points.is_added_behind(nest, loops, arguments)
    )


def visited_in_schedule(each, points, arguments):
    """Whether lanes can add and record values in the one schedule of the nests of a time step, (nest, loops)."""
    if any(nest.time in loops.reverse for nest, loops in each):
        return False
    if not all(visited_by_lanes(nest, loops, points, arguments) for nest, loops in each):
        return False
    strides = any(len(pair) > 2 for _, loops in each for pair in (loops.over or {}).values())
    return not strides and points.is_last_of_one(each, arguments)


def in_time_steps(call):
    """A call of one nest as one of a tuple, whose time steps run one by one: where points are visited between them, and
    the nest writes an array that keeps all steps, which has such points, or is read at other steps; local.

    Raises
    ------
    ConfigError
        Where values of all time steps are to be reduced: those of several nests are of the last one.
    """
    nest, loops, given = call.nests, call.loops, (call.inject, call.record)
    if given == (None, None) or not isinstance(nest, Nest):
        return call
    visited = {name for each in given if isinstance(each, dict) for name in each}
    dims = {name: getattr(call.arguments.get(name), "ndim", 0) for name in nest.written}
    time, whole = nest.indices[0], {*nest.indices}  # of others lanes may update elements in any order
    kept = [name for name, axes in nest.axes.items() if name in dims and axes[0] == time and dims[name] == len(axes)]
    kept = [name for name in kept if name in visited or {*nest.axes[name]} == whole]
    rows = kept and with_rows_of_steps(nest, dataclasses.replace(loops, stepwise=True), call.arguments).rows
    if all(name in rows and name not in visited for name in kept):
        return call
    if call.reduce:
        raise ConfigError(
            f"reduce= was given, and inject= or record=, where nest {nest.name!r} writes array {kept[0]!r}, which has "
            f"time as a dimension; allowed: the same call with ({nest.name},), a tuple of one nest, whose reductions "
            "are of the last time step"
        )
    return dataclasses.replace(call, nests=(nest,))


def visited_points(call, arguments):
    """The loops of a call of one nest, and its `Points` with whether lanes record them, if any; part of the call."""
    nest, inject, record, loops = call.nests, call.inject, call.record, call.loops
    if inject is None and record is None:
        return loops, ()
    error = points = by_lanes = None
    try:
        points = Points(inject, record, (nest,), arguments, loops.steps)
        by_lanes = visited_by_lanes(nest, loops, points, arguments)
        visited = frozenset({**(inject or {}), **(record or {})})
        loops = dataclasses.replace(loops, stepwise=not by_lanes, visited=visited)
    except BaseException as problem:
        error = problem
    yield error or str(points)
    return loops, (points, by_lanes)


def _places(what, name, array, points, steps):
    return (OffGridRun if isinstance(points, OffGrid) else _Places)(what, name, array, points, steps)


class _Places:
    """Points of an array in a run: (steps, points) values that are added, or recorded in `rows`."""

    def __init__(self, what, name, array, points, steps):
        self.name, self._array, self.adds, self._ranges = name, array, what == "inject", None
        require_no_mask(f"{what}: the points of {name!r}", points)
        try:
            found = np.asarray(points)
            if found.size == 0:
                found = np.zeros((0, array.ndim), np.int64)
            if found.ndim == 1 and array.ndim == 1:
                found = found[:, None]
            right = found.dtype.kind in "iu" and found.ndim == 2 and found.shape[1] == array.ndim
        except (TypeError, ValueError):
            right = False
        if not right:
            raise ConfigError(
                f"{what}: the points of {name!r} are no integers of shape (points, {array.ndim}); allowed: the "
                "subscripts of elements, one row a point, or tilewave.OffGrid"
            )
        outside = ((found < 0) | (found >= np.array(array.shape))).any(axis=1)
        if outside.any():
            raise ConfigError(
                f"{what}: point {tuple(found[outside][0].tolist())} is outside array {name!r} of shape "
                f"{tuple(array.shape)}"
            )
        self.points = np.require(found, np.int64, ["C", "A"])
        self.shape = steps, len(self.points)

    def __str__(self):
        values = digest(self.rows) if self.adds else "recorded"
        return f"{self.name} {self.points.shape} {digest(self.points)} {values}"

    def begin(self, rows):
        """Rows of the dtype that is recorded, or of the sums with what is added."""
        self.rows = rows

    def may_be_noted(self):
        """Return True: lanes note what they compute."""
        return True

    def is_inside(self, box):
        """Whether all elements are in a box, a list of half-open ranges."""
        low, high = np.array(box, np.int64).reshape(-1, 2).T
        return bool(((self.points >= low) & (self.points < high)).all())

    def of(self, array, by_lanes):
        """The core's points of a nest's array."""
        at, add = self.points, (self._array.dtype.name, self.rows.dtype.name) if self.adds else None
        return _core.StepPoints(
            array, at.ctypes.data, at.size, self.rows.ctypes.data, self.rows.itemsize, add, by_lanes
        )

    def visit(self, step, rank):
        """Add or record after a time step, while nothing runs; local."""
        local, ranges = local_part(self._array, rank)
        if ranges != self._ranges:  # else the field has not moved since
            low, high = (np.array([getattr(s, end) for s in ranges], np.int64) for end in ("start", "stop"))
            self._here = np.flatnonzero(((self.points >= low) & (self.points < high)).all(axis=1))
            self._at, self._ranges = tuple((self.points[self._here] - low).T), ranges
        if self.adds:
            np.add.at(local, self._at, self.rows[step, self._here])
        else:
            self.rows[step, self._here] = local[self._at]

    def finish(self, context):
        """Nothing: each value is of one rank."""


def _require_apart(what, name, given, changed):
    """Refuse what lies in memory that the run changes."""
    for other, array in changed.items() if isinstance(given, np.ndarray) else ():
        shared = isinstance(array, np.ndarray) and np.may_share_memory(given, array)
        if shared or isinstance(array, Field) and array._holds(given):
            raise ConfigError(
                f"inject: the {what} of {name!r} share memory with array {other!r}, which the run changes; allowed: a "
                f"copy, {what}.copy()"
            )


def _checked_dict(what, given, value):
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise ConfigError(f"{what}: given {type(given).__name__}; allowed: a dict from names of arrays to {value}")
    return given


def _array_of(what, name, arguments, nests):
    if not any(name in nest.arrays for nest in nests):
        raise ConfigError(f"{what}: {name!r} is no array of the nest; allowed: {', '.join(nests[0].arrays)}")
    array = arguments.get(name)
    if not isinstance(array, Field | np.ndarray) or isinstance(array, Field) and array.keep == "window":
        raise ConfigError(
            f"{what}: array {name!r}: given {type(array).__name__}; allowed: a NumPy array, or a field with keep='all'"
        )
    return array


def _checked_values(name, array, values, shape):
    """The values as the dtype in which NumPy adds them to an element."""
    require_no_mask(f"inject: {name!r}", values)
    values = np.asarray(values)
    if values.shape != shape or not np.can_cast(values.dtype, array.dtype, "same_kind") or values.dtype.kind == "O":
        raise ConfigError(
            f"inject: the values of {name!r} have shape {values.shape} and dtype {values.dtype}; allowed: {shape}, a "
            f"row a time step and a column a point, of numbers for {array.dtype}"
        )
    total = np.result_type(array.dtype, values.dtype) if array.dtype.kind in "fc" else array.dtype
    if total not in ALL:
        raise ConfigError(f"inject: the values of {name!r} have dtype {values.dtype}; allowed: at most 64 bits a part")
    return np.require(values, total, ["C", "A"])
