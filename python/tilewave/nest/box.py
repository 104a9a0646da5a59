"""The loops' bounds: all points for which every access is inside its array."""

import numpy as np

from tilewave.errors import ConfigError, shown


def iteration_box(nest, shapes, over, time, steps):
    """See `Nest.iteration_box`."""
    bounds = {name: (None, None) for name in nest.indices if name != time}
    for place in nest.places:
        first = 1 if time is not None and place.axes[0] == time else 0
        shape = _shape(nest, shapes, place, place.axes[first:], time)
        if place.phases:
            shape = place.extents((0,) * first + shape)[first:]
        for name, offset, extent in zip(place.axes[first:], place.offsets[first:], shape, strict=True):
            low, high = bounds[name]
            bounds[name] = (
                -offset if low is None else max(low, -offset),
                extent - offset if high is None else min(high, extent - offset),
            )
    for name, (low, _) in bounds.items():
        if low is None:
            raise ConfigError(
                f"nest {nest.name!r}: no array bounds loop index {name!r} (a table does not); "
                f"allowed: every loop index in the subscripts of some array"
            )
    box = {name: (low, max(low, high)) for name, (low, high) in bounds.items()}
    if time is not None:
        box = {time: (0, _checked_steps(nest, steps)), **box}
    return tuple(_narrow(nest, box, over, time).values())


def cut_short(nest, shapes, ranges):
    """What arrays that are only read leave out of what the written ones allow, as texts: a shape that is too small is
    easily missed.

    Parameters
    ----------
    nest : Nest
    shapes : dict
        Of each array, time included.
    ranges : dict
        Of the loop indices to look at, as they run.
    """

    def allowed(names, index):
        found = [
            (-offset, extent - offset)
            for place in nest.places
            if place.array in names
            for name, offset, extent in zip(place.axes, place.offsets, place.extents(shapes[place.array]), strict=True)
            if name == index
        ]
        return (max(first for first, _ in found), min(end for _, end in found)) if found else None

    read = [name for name in nest.arrays if name not in nest.tables and name not in nest.written]
    for index, (low, high) in ranges.items():
        if (written := allowed(nest.written, index)) is None:
            continue
        for name in read:
            own = allowed([name], index)
            if own and (low == own[0] > written[0] or high == own[1] < written[1]):
                narrowed = f"the written arrays allow range({written[0]}, {written[1]})"
                yield f"{index} by {name} of shape {tuple(shapes[name])}: {narrowed}"


def _shape(nest, shapes, place, axes, time):
    array = place.array
    if array not in shapes:
        raise ConfigError(f"nest {nest.name!r} needs the shape of its array {array!r}")
    shape = tuple(int(extent) for extent in shapes[array])
    if len(shape) != len(axes):
        lacks = f" (its shape lacks the time index {time!r})" if axes != place.axes else ""
        raise ConfigError(
            f"array {array!r} of nest {nest.name!r} has the subscripts "
            f"({', '.join(place.axes)}), given shape {shape}; "
            f"allowed: shapes of rank {len(axes)}{lacks}"
        )
    return shape


def _checked_steps(nest, steps):
    whole = isinstance(steps, int | np.integer) and not isinstance(steps, bool) and steps >= 0
    if not whole:
        raise ConfigError(f"steps of nest {nest.name!r}: given {shown(steps)}; allowed: an int >= 0")
    return int(steps)


def _narrow(nest, box, over, time):
    if over is not None and not isinstance(over, dict):
        raise ConfigError(
            f'over: given {type(over).__name__}; allowed: a dict from index names to pairs of ints, {{"i": (1, n)}}'
        )
    allowed = [name for name in box if name != time]
    for name, bounds in (over or {}).items():
        if name not in allowed:
            what = (
                f"{name!r} is the time index, bounded by steps="
                if name == time and time
                else f"nest {nest.name!r} has no index {name!r}"
            )
            raise ConfigError(f"over: {what}; allowed: {', '.join(allowed)}")
        box[name] = _narrowed(name, box[name], bounds)
    return box


def _narrowed(name, allowed, bounds):
    low, high = allowed
    whole = (
        isinstance(bounds, tuple | list)
        and len(bounds) == 2
        and all(isinstance(bound, int | np.integer) for bound in bounds)
    )
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
