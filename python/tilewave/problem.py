"""From a nest and what it is given to the core's problem: arrays, loops, accesses."""
import dataclasses

import numpy as np

from tilewave import _core
from tilewave.bounds import loop_bounds, loop_directions
from tilewave.errors import ConfigError
from tilewave.field import DTYPES, Field

#: The most loop indices of a nest that is run, time among them.
MOST_LOOPS = 4


@dataclasses.dataclass
class Problem:
    """A nest with the shapes and loops of one run.

    Attributes
    ----------
    nest : Nest
    arrays : tuple of str
        Those that are no tables, as the core counts them.
    in_time : frozenset of str
        Arrays whose first subscript is time, which they have no dimension for.
    bounds : Bounds
    downwards : tuple of bool
        For each loop index.
    sequential : str
        Why the points can only be computed in loop order; empty if they need not be.
    core : _core.SweepProblem
    """

    nest: object
    arrays: tuple
    in_time: frozenset
    bounds: object
    downwards: tuple
    sequential: str
    core: object


def make_problem(nest, arrays, over, reverse, steps):
    """Read the loops and accesses of a run; pure.

    Raises
    ------
    ConfigError
        For what the nest cannot be run with.
    """
    if len(nest.indices) > MOST_LOOPS:
        raise ConfigError(f"nest {nest.name!r} has {len(nest.indices)} loop indices; allowed: up to {MOST_LOOPS}")
    names = tuple(name for name in nest.arrays if name not in nest.tables)
    in_time = _in_time(nest, names, arrays, steps)
    shapes = {name: arrays[name].shape for name in names}
    if in_time:
        full = {name: (steps + 1, *shape) if name in in_time else shape for name, shape in shapes.items()}
        box = ((0, steps), *nest.iteration_box(full)[1:])
        _check_room(nest, shapes, in_time, steps)
    else:
        box = nest.iteration_box(shapes)
    bounds = loop_bounds(nest.indices, box, over)
    downwards = tuple(d < 0 for d in loop_directions(nest.indices, reverse))
    if in_time and (downwards[0] or bounds.ranges[0] != loop_bounds(nest.indices, box).ranges[0]):
        raise ConfigError(f"nest {nest.name!r}: time, index {nest.time!r}, runs from 0 to steps; "
                          "it cannot be narrowed by over= or reversed")
    sequential = _why_sequential(nest, in_time)
    core = _core_problem(nest, names, arrays, shapes, in_time, bounds, downwards, bool(sequential))
    return Problem(nest, names, in_time, bounds, downwards, sequential, core)


def _in_time(nest, names, arrays, steps):
    """The arrays for which the first loop index is time."""
    lacking = [name for name in names
               if nest.axes[name][0] == nest.time and arrays[name].ndim == len(nest.axes[name]) - 1]
    if steps is None:
        if lacking and all(name in lacking for name in nest.written):
            raise ConfigError(f"nest {nest.name!r}: array {lacking[0]!r} has no dimension for index {nest.time!r}, "
                              "which is time then; give steps=, the number of time steps")
        return frozenset()
    if nest.time is None:
        raise ConfigError(f"steps={steps!r}: nest {nest.name!r} has no time; its first index must be the first subscript "
                          "of what it writes, at +1, and at +0 or +1 in what it reads")
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        raise ConfigError(f"steps: given {steps!r}; allowed: an integer >= 0")
    for name in nest.written:
        if name not in lacking:
            raise ConfigError(f"steps={steps}: array {name!r} of shape {arrays[name].shape} has as many dimensions as "
                              f"subscripts; allowed: {len(nest.axes[name]) - 1}, without one for time index {nest.time!r}")
    return frozenset(lacking)


def _check_room(nest, shapes, in_time, steps):
    """Arrays that have time as a dimension must have all of it."""
    for place in nest.places:
        axes = nest.axes[place.array]
        if place.array in in_time or nest.time not in axes:
            continue
        at = axes.index(nest.time)
        if steps and place.offsets[at] + steps > shapes[place.array][at]:
            raise ConfigError(f"steps={steps}: {nest.text_of(place)} leaves array {place.array!r} of shape {shapes[place.array]}; "
                              f"allowed: up to {max(0, shapes[place.array][at] - place.offsets[at])}")


def _why_sequential(nest, in_time):
    """The dependence that is no vector: then only the order of the loops is certain to be right."""
    for dependence in nest.dependences:
        if None in dependence.vector and dependence.array not in in_time:
            return str(dependence)
    return ""


def _core_problem(nest, names, arrays, shapes, in_time, bounds, downwards, in_order):
    loops = nest.indices
    position = {name: k for k, name in enumerate(loops)}
    signs = [-1 if down else 1 for down in downwards]
    accesses = []
    levels = 1
    for place in nest.places:
        offset = [0] * len(loops)
        for name, o in zip(nest.axes[place.array], place.offsets, strict=True):
            offset[position[name]] = o
        if place.array in in_time and place.array not in nest.written:
            offset[0] = 0
        elif place.array in in_time:
            offset, needs = _offset_in_time(nest, place, offset, signs)
            levels = max(levels, needs)
        keeps = place.written and (place.read or (place.array in in_time and any(c[0] for c, _ in bounds.constraints)))
        accesses.append((names.index(place.array), tuple(offset), place.written, keeps))
    described, shape = [], [high for _, high in bounds.box]
    for name in reversed(nest.written):
        axes = [position[a] for a in nest.axes[name]][name in in_time:]
        for k, extent in zip(axes, shapes[name], strict=True):
            shape[k] = extent
    for name in names:
        axes = tuple(position[a] for a in nest.axes[name])[name in in_time:]
        replicated = name not in nest.written and isinstance(arrays[name], np.ndarray)
        described.append((arrays[name].dtype.itemsize, replicated, shapes[name], axes,
                          levels if name in in_time and name in nest.written else 0,
                          isinstance(arrays[name], Field) and arrays[name].keep == "frontier"))
    box = tuple(low for low, _ in bounds.box), tuple(high for _, high in bounds.box)
    return _core.SweepProblem(tuple(shape), box, described, accesses, list(bounds.constraints), list(downwards), in_order)


def _offset_in_time(nest, place, offset, signs):
    """The offset of a place of an array in time, and how many levels its reading asks for.

    A level begins as a copy of the one before: what a point reads of its own level ahead in the
    loops is still that.
    """
    ahead = _positive([s * o for s, o in zip(signs[1:], offset[1:])])
    if place.written and any(offset[1:]):
        raise ConfigError(f"{nest.where(place)}: `{nest.text_of(place)}`: an array with time steps is written beside the point; "
                          f"allowed: offsets 0 but for time")
    if not place.written and offset[0] == 1 and ahead:
        offset = [0, *offset[1:]]
    if place.written or offset[0] == 1:
        return offset, 1
    return offset, 1 if ahead or not any(offset[1:]) else 2


def _positive(vector):
    """Lexicographically."""
    return next((x for x in vector if x), 0) > 0


def check_arrays(nest, arrays, context):
    """Check what is given for the nest's arrays, one by one and against each other.

    Raises
    ------
    ConfigError
    """
    for name, value in arrays.items():
        if not isinstance(value, (Field, np.ndarray)) or isinstance(value, np.ma.MaskedArray):
            raise ConfigError(f"array {name!r}: given {type(value).__name__}; allowed: a field or a NumPy array")
        if value.dtype not in DTYPES:
            raise ConfigError(f"array {name!r} has dtype {value.dtype}; allowed: "
                              f"{', '.join(d.name for d in DTYPES)}, in native byte order")
        if isinstance(value, Field) and value.context is not context:
            raise ConfigError(f"array {name!r} is a field of another context")
        if isinstance(value, Field) and value.keep == "frontier" and name not in nest.written:
            raise ConfigError(f"array {name!r} is a field that keeps its frontier only, and nest {nest.name!r} only reads it; "
                              "allowed: a field with keep='all'")
    for name in nest.tables:
        if not isinstance(arrays[name], np.ndarray):
            raise ConfigError(f"table {name!r}: given a field; allowed: a NumPy array, the same on every rank")
        if arrays[name].ndim != nest.table_rank(name):
            raise ConfigError(f"table {name!r} has shape {arrays[name].shape}, the nest gives it "
                              f"{nest.table_rank(name)} subscript(s)")
    _check_fields_once(arrays)
    for name in nest.written:
        written = arrays[name]
        if isinstance(written, np.ndarray):
            if context.size > 1:
                raise ConfigError(f"array {name!r} is written and a NumPy array, on {context.size} "
                                  "ranks; allowed: a field, or a NumPy array on one rank")
            if not written.flags.writeable:
                raise ConfigError(f"array {name!r} is written, but its memory is read-only")
        for other, value in arrays.items():
            if other != name and _share(value, written):
                raise ConfigError(f"arrays {other!r} and {name!r} share memory; an array that is "
                                  "written must be given once")


def _check_fields_once(arrays):
    """A field has one place in memory, with the ghosts of the one array that it is."""
    names = {}
    for name, value in arrays.items():
        if isinstance(value, Field) and (other := names.setdefault(id(value), name)) != name:
            raise ConfigError(f"arrays {other!r} and {name!r} share memory: they are one field; "
                              "allowed: a field for one array of the nest, under one name in its body")


def _share(a, b):
    if any(isinstance(x, Field) and x.keep == "frontier" for x in (a, b)):
        return a is b
    if isinstance(a, Field) or isinstance(b, Field):
        return a is b or (isinstance(a, np.ndarray) and isinstance(b, Field) and np.may_share_memory(a, b.local)) or (
            isinstance(b, np.ndarray) and isinstance(a, Field) and np.may_share_memory(a.local, b))
    return np.shares_memory(a, b) if a.size and b.size else False
