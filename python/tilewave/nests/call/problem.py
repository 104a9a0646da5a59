"""From a nest and what it is given to the core's problem: arrays, loops, accesses."""

import contextlib
import dataclasses
import re

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError, shown
from tilewave.field.field import Field
from tilewave.nest.bounds import loop_bounds, loop_directions
from tilewave.nest.box import cut_short, shapes_of, short_arrays
from tilewave.nest.dependences import MOST_HISTORY
from tilewave.nest.periodic import periodic_ranges, read_periodic
from tilewave.nest.timeless import has_one_value
from tilewave.nests.call.pivot import check_shapes, reads_of
from tilewave.nests.call.strided_fields import why_in_loop_order

#: The most loop indices of a nest that is run, time among them.
MOST_LOOPS = _core.limits["dims"]

#: The most time steps of a run: far more than any run takes, and their products with extents and skews stay within 64
#: bits.
MOST_TIME_STEPS = 2**40


@dataclasses.dataclass
class Problem:
    """A nest with the shapes and loops of one run.

    Attributes
    ----------
    nest : Nest
    spread : tuple of View
        Those of ``nest.views`` that the core has distributed over ranks, not whole on each.
    in_time : frozenset of str
        Arrays whose first subscript is time, which they have no dimension for.
    bounds : Bounds
    downwards : tuple of bool
        For each loop index.
    sequential : str
        Why the points can only be computed in loop order; empty if they need not be.
    core : _core.SweepProblem
    cut : tuple of str
        Loops that an array which is only read makes shorter than the written ones allow.
    short : tuple of str
        Arrays that do so since they have fewer elements, of which a call warns.
    """

    nest: object
    spread: tuple
    in_time: frozenset
    bounds: object
    downwards: tuple
    sequential: str
    core: object
    cut: tuple = ()
    short: tuple = ()


def make_problem(nest, arrays, loops, *, halos=None, reduced=None, off=0):
    """Read the `loops` and accesses of a run; pure.

    `halos`: by name of an array, (points before, points after) along its dimensions that ranks store beyond their
    blocks at least. A NumPy array that is named there is like one that is written. `reduced`: the nest with the values
    of points that are reduced. `off`: the fast paths that are switched off.

    Raises
    ------
    ConfigError
        For what the nest cannot be run with.
    """
    if len(nest.indices) > MOST_LOOPS:
        raise ConfigError(f"nest {nest.name!r} has {len(nest.indices)} loop indices; allowed: up to {MOST_LOOPS}")
    over, steps = loops.over, loops.steps
    in_time, shapes = _times_and_shapes(nest, arrays, steps)
    periodic = read_periodic(nest, loops.periodic, steps is not None)
    box = box_of_loops(nest, arrays, steps, periodic)
    bounds = loop_bounds(nest.indices, box, over)
    # Beside a periodic loop the points of a time step are independent, or refused: their order means nothing.
    downwards = tuple(d < 0 and not periodic for d in loop_directions(nest.indices, loops.reverse))
    if in_time and bounds.ranges[0] != loop_bounds(nest.indices, box).ranges[0]:
        raise ConfigError(
            f"nest {nest.name!r}: time, index {nest.time!r}, runs over all steps; it cannot be narrowed by over=; "
            f"allowed: over= of {', '.join(nest.indices[1:]) or 'no index'}, and fewer steps="
        )
    if nest.pivot:
        check_shapes(nest, shapes, bounds)
    sequential = "" if nest.pivot else _why_sequential(nest, in_time)
    spread = tuple(
        view
        for view in nest.views
        if view.array in nest.written or view.array in (halos or {}) or not isinstance(arrays[view.array], np.ndarray)
    )
    states = _core.LoopNest(
        box=tuple(zip(*bounds.box, strict=True)),
        bounds=list(bounds.constraints),
        downwards=list(downwards),
        periodic=tuple(int(name in periodic) for name in nest.indices) if periodic else (),
        pivots=reads_of(nest),
        may_gather=all(name in nest.axes for name in nest.written),
        paths_off=off,
    )
    _add_arrays(states, nest, spread, arrays, shapes, in_time, loops)
    _add_places(states, nest, in_time, (reduced or nest)._unwritten)
    core = states.problem(bool(sequential))
    if not sequential and (sequential := why_in_loop_order(spread, arrays, core)):
        core = states.problem(True)
    if periodic and (why := sequential or _core.why_no_stencil(core)):
        with with_names(nest):
            raise ConfigError(
                f"periodic={periodic!r}: nest {nest.name!r}: {why}; allowed: nests whose points of one time step are "
                "independent of each other, and another nest for an array that keeps all time steps"
            )
    for number, view in enumerate(nest.views):
        if halos and view.array in halos and view in spread:
            core.widen(number, *halos[view.array])
    free = free_loops(nest, loops, bounds)
    full = {name: (0, *shape) if name in in_time else shape for name, shape in shapes.items()}
    cut, short = (tuple(found(nest, full, free)) for found in (cut_short, short_arrays))
    return Problem(nest, spread, in_time, bounds, downwards, sequential, core, cut, short)


def free_loops(nest, loops, bounds):
    """Return the ranges of the loops that arrays alone bound."""
    others = {*(loops.over or {}), *loops.periodic} | ({nest.time} if loops.steps is not None else set())
    return {index: ends for index, ends in zip(nest.indices, bounds.box, strict=True) if index not in others}


def box_of_loops(nest, arrays, steps, periodic=()):
    """A half-open range for each loop index, of a nest with or without time steps: where every access is inside its
    array, and of a periodic index all of it.

    Raises
    ------
    ConfigError
        For steps, arrays or periodic indices that the nest cannot be run with.
    """
    in_time, shapes = _times_and_shapes(nest, arrays, steps)
    box = check_steps(nest, arrays, steps) if in_time else nest.iteration_box(shapes)
    if not periodic:
        return box
    full = {name: (0, *shape) if name in in_time else shape for name, shape in shapes.items()}
    whole = periodic_ranges(nest, full, read_periodic(nest, periodic, steps is not None))
    return tuple(whole.get(name, range_) for name, range_ in zip(nest.indices, box, strict=True))


@contextlib.contextmanager
def with_names(nest):
    """The core numbers the arrays: its errors show their names instead."""
    try:
        yield
    except ConfigError as error:
        views = nest.views
        text = re.sub(
            r"\barray (\d+)\b",
            lambda m: f"array {views[int(m[1])].array!r}" if int(m[1]) < len(views) else m[0],
            str(error),
        )
        if text == str(error):
            raise
        raise ConfigError(text) from None


def _times_and_shapes(nest, arrays, steps):
    """The arrays for which the first loop index is time, and the shapes of all that are no tables."""
    return arrays_in_time(nest, arrays, steps), shapes_of(nest, arrays)


def check_steps(nest, arrays, steps):
    """The box of the loops of a nest with time steps, time first.

    Raises
    ------
    ConfigError
        For steps or arrays that the nest cannot be run with.
    """
    in_time, shapes = _times_and_shapes(nest, arrays, steps)
    full = {name: (steps + 1, *shape) if name in in_time else shape for name, shape in shapes.items()}
    box = ((0, steps), *nest.iteration_box(full)[1:])
    _check_room(nest, shapes, in_time, steps)
    return box


def lacking_time(nest, arrays):
    """The names of arrays that are subscripted first with time and have one dimension fewer than subscripts."""
    dims = {view.array: getattr(arrays[view.array], "ndim", 0) for view in nest.views}
    return list(
        dict.fromkeys(
            view.array for view in nest.views if view.axes[0] == nest.time and dims[view.array] == len(view.axes) - 1
        )
    )


def arrays_in_time(nest, arrays, steps):
    """The names of the arrays for which the first loop index is time."""
    lacking = lacking_time(nest, arrays)
    if steps is None:
        if any(name in lacking for name in nest.written):
            raise ConfigError(
                f"nest {nest.name!r}: array {lacking[0]!r} has no dimension for index {nest.time!r}, "
                "which is time then; allowed: steps=, the number of time steps, or an array with this dimension"
            )
        return frozenset()
    if not nest.written:
        raise ConfigError(
            f"steps={steps!r}: nest {nest.name!r} writes no array, so that all time steps are one; allowed: a nest "
            "that writes at the time index + 1"
        )
    if nest.time is None:
        raise ConfigError(
            f"steps={steps!r}: nest {nest.name!r} has no time; allowed: nests whose first index is the first "
            f"subscript of what they write, at +1, and at -{MOST_HISTORY} to +1 in what they read; for time that runs "
            "backwards, with reverse=, the other way round"
        )
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or not 0 <= steps <= MOST_TIME_STEPS:
        raise ConfigError(f"steps: given {shown(steps)}; allowed: an integer >= 0, up to 2**40")
    if not any(name in lacking for name in nest.written):
        name = nest.written[0]
        raise ConfigError(
            f"steps={steps}: array {name!r} of shape {arrays[name].shape} has as many dimensions as "
            f"subscripts; allowed: {len(nest.axes[name]) - 1}, without one for time index {nest.time!r}, for it or "
            "another "
            "array that is written"
        )
    for place in nest.places:
        if place.array in lacking and (place.axes[0] != nest.time or nest.time in place.axes[1:]):
            raise ConfigError(
                f"{nest.where(place)}: `{nest.text_of(place)}`: array {place.array!r} has no dimension "
                f"for time index {nest.time!r}, with which it is subscripted first elsewhere; allowed: "
                f"{nest.time!r} as the first subscript, and there only, in all accesses, or an array of "
                f"{len(place.axes)} dimensions"
            )
    for name in nest.written:
        if name in lacking and depth_of(nest, name) and isinstance(arrays[name], np.ndarray):
            raise ConfigError(
                f"array {name!r} is a NumPy array, and nest {nest.name!r} reads of it the time before the current "
                "one, which "
                f"the array has no place for; allowed: {name} = tilewave.field(array.shape, array.dtype, array), whose "
                "history a run keeps for the next"
            )
    return frozenset(lacking)


def read_earlier(nest, arrays):
    """The names of arrays without time that the nest does not write, and reads at an earlier time step: all their time
    steps are the current one.
    """
    return [name for name in lacking_time(nest, arrays) if name not in nest.written and depth_of(nest, name)]


def check_one_valued(nest, arrays):
    """Refuse such an array with a history."""
    for name in read_earlier(nest, arrays):
        if getattr(arrays[name], "history", 0):
            raise ConfigError(has_one_value(nest, name))


def _check_room(nest, shapes, in_time, steps):
    """Arrays that have time as a dimension must have all of it."""
    for place in nest.places:
        if place.array in in_time or not steps:
            continue
        for axis, offset, extent in zip(place.axes, place.offsets, shapes[place.array], strict=True):
            if axis == nest.time and offset < 0:
                raise ConfigError(
                    f"steps={steps}: {nest.text_of(place)} leaves array {place.array!r}, which has time "
                    f"as a dimension: steps begin with {nest.time} = 0; allowed: offsets 0 and +1"
                )
            if axis == nest.time and offset + steps > extent:
                raise ConfigError(
                    f"steps={steps}: {nest.text_of(place)} leaves array {place.array!r} of shape "
                    f"{shapes[place.array]}; allowed: up to {max(0, extent - offset)}"
                )


def _why_sequential(nest, in_time):
    """The dependence that is no vector: then only the order of the loops is certain to be right."""
    for dependence in nest.dependences:
        if None in dependence.vector and dependence.array not in in_time:
            return str(dependence)
    for place in nest.places:
        if place.whole:
            return f"{nest.text_of(place)} along a loop inside the body"
    return ""


def _add_arrays(states, nest, spread, arrays, shapes, in_time, loops):
    """Tell the core's nest `states` of the arrays, one for each view."""
    position = {name: k for k, name in enumerate(nest.indices)}
    parts = {}
    for number, view in enumerate(nest.views):
        value = arrays[view.array]
        here = view.last(len(shapes[view.array]))
        is_field = isinstance(value, Field)
        states.add_array(
            item_bytes=value.dtype.itemsize,
            shape=here.shape(shapes[view.array]),
            axes=tuple(position[name] for name in here.indices),
            whole=view not in spread,
            in_time=view.array in in_time,
            joined=view.array in loops.again,
            history=value.history if is_field and view.array not in loops.within else 0,
            window=is_field and value.keep == "window",
            cuts=value._cuts or [] if is_field else [],
        )
        if view.scaled and view in spread:
            scale, residue = zip(*here.phases, strict=True)
            # The memory of a NumPy array with time steps of its own is one, too.
            is_one = is_field or view.array in in_time and view.array in nest.written
            shape, first = value.shape if is_one else (), parts.setdefault(view.array, number)
            states.part(scale=scale, residue=residue, field_shape=shape, field=first)


def _add_places(loops, nest, in_time, never_written):
    """Tell the core's nest `loops` what points access."""
    position = {name: k for k, name in enumerate(nest.indices)}
    for place in nest.places:
        offset = [0] * len(position)
        for name, o in place.along.items():
            offset[position[name]] = o
        if place.written and place.array in in_time and any(offset[1:]):
            raise ConfigError(
                f"{nest.where(place)}: `{nest.text_of(place)}`: an array with time steps is written at a non-zero "
                "offset in space; allowed: offsets 0 but for time"
            )
        view = place.view if place.view in nest.views else next(v for v in nest.views if v.array == place.array)
        loops.add_place(
            nest.views.index(view),
            tuple(offset),
            written=place.written,
            read=place.read,
            along=bool(place.whole),
            never_written=place.key in never_written,
        )


def depth_of(nest, name, again=frozenset()):
    """How many earlier time steps the nest reads of an array: 1 for u[t-1], and for u[t] where the current
    one is time step t+1.
    """
    first = min(place.offsets[0] for place in nest.places if place.array == name)
    return max(0, (1 if name in again and first < 1 else 0) - first)


def history_of(nest, arrays, name, again=frozenset()):
    """How many earlier time steps a run leaves of an array with time steps: those that the field keeps, or
    the nest reads.
    """
    value = arrays[name]
    return max(value.history if isinstance(value, Field) else 0, depth_of(nest, name, again))


def read_beside_in_history(nest, in_time):
    """A place that reads an earlier time step at another point, or what no point writes; None where there is none.

    What no point writes has the current time step's value from then on, but may have had another one before.
    """
    targets = {(place.array, place.phases) for place in nest.places if place.written}
    return next(
        (
            place
            for place in nest.places
            if place.array in in_time
            and place.array in nest.written
            and place.offsets[0] < 0
            and (place.whole or any(place.offsets[1:]) or (place.array, place.phases) not in targets)
        ),
        None,
    )
