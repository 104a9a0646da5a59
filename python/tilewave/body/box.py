"""The loops' bounds: all points for which every access is inside its array."""

import numpy as np

from ..errors import ConfigError


def iteration_box(nest, shapes, over, time, steps):
    """See `Nest.iteration_box`."""
    bounds = {name: (None, None) for name in nest.indices if name != time}
    reach = _reach(nest)
    for array, axes in nest.axes.items():
        axes_here = axes[1:] if time is not None and axes[0] == time else axes
        shape = _shape(nest, shapes, array, axes_here, time)
        for name, extent in zip(axes_here, shape, strict=True):
            first, ahead = reach[array, name]
            low, high = bounds[name]
            bounds[name] = (first if low is None else max(low, first),
                            extent - ahead if high is None else min(high, extent - ahead))
    for name, (low, _) in bounds.items():
        if low is None:
            raise ConfigError(
                f"nest {nest.name!r}: no array bounds loop index {name!r} (a table does not); "
                f"allowed: every loop index in the subscripts of some array")
    box = {name: (low, max(low, high)) for name, (low, high) in bounds.items()}
    if time is not None:
        box = {time: (0, _checked_steps(nest, steps)), **box}
    return tuple(_narrow(nest, box, over, time).values())


def _reach(nest):
    """How far each array is read back and ahead along each of its indices.

    An array that is subscripted at ``i-1`` only lets the loop begin at 1 and end one later.
    """
    offsets = {}
    for place in nest.places:
        for name, offset in zip(nest.axes[place.array], place.offsets, strict=True):
            offsets.setdefault((place.array, name), []).append(offset)
    return {key: (-min(found), max(found)) for key, found in offsets.items()}


def _shape(nest, shapes, array, axes, time):
    if array not in shapes:
        raise ConfigError(f"nest {nest.name!r} needs the shape of its array {array!r}")
    shape = tuple(int(extent) for extent in shapes[array])
    if len(shape) != len(axes):
        lacks = f" (its shape lacks the time index {time!r})" if axes != nest.axes[array] else ""
        raise ConfigError(
            f"array {array!r} of nest {nest.name!r} has the subscripts "
            f"({', '.join(nest.axes[array])}), given shape {shape}; "
            f"allowed: shapes of rank {len(axes)}{lacks}")
    return shape


def _checked_steps(nest, steps):
    whole = isinstance(steps, int | np.integer) and not isinstance(steps, bool) and steps >= 0
    if not whole:
        raise ConfigError(f"steps of nest {nest.name!r}: given {steps!r}; allowed: an int >= 0")
    return int(steps)


def _narrow(nest, box, over, time):
    if over is not None and not isinstance(over, dict):
        raise ConfigError(f"over: given {type(over).__name__}; allowed: a dict from index names "
                          "to pairs of ints, {\"i\": (1, n)}")
    allowed = [name for name in box if name != time]
    for name, bounds in (over or {}).items():
        if name not in allowed:
            what = f"{name!r} is the time index, bounded by steps=" if name == time and time else \
                f"nest {nest.name!r} has no index {name!r}"
            raise ConfigError(f"over: {what}; allowed: {', '.join(allowed)}")
        box[name] = _narrowed(name, box[name], bounds)
    return box


def _narrowed(name, allowed, bounds):
    low, high = allowed
    whole = isinstance(bounds, tuple | list) and len(bounds) == 2 and \
        all(isinstance(bound, int | np.integer) for bound in bounds)
    if not whole:
        raise ConfigError(
            f"over: bounds {bounds!r} of index {name!r} are not supported; "
            "allowed: a pair of ints (first, end), half-open"
        )
    first, end = (int(bound) for bound in bounds)
    if not low <= first <= end <= high:
        raise ConfigError(
            f"over: bounds ({first}, {end}) of index {name!r} reach outside the points where "
            f"every access is inside its array; allowed: within ({low}, {high})"
        )
    return first, end
