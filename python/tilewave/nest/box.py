"""The loops' bounds: all points for which every access is inside its array."""

from tilewave.errors import ConfigError


def iteration_box(nest, shapes):
    """See `Nest.iteration_box`."""
    bounds = dict.fromkeys(nest.indices, (None, None))
    for place in nest.places:
        for name, offset, extent in zip(place.axes, place.offsets, _extents(nest, shapes, place), strict=True):
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
    return tuple((low, max(low, high)) for low, high in bounds.values())


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
            here = allowed([name], index)
            if here and (low == here[0] > written[0] or high == here[1] < written[1]):
                narrowed = f"the written arrays allow range({written[0]}, {written[1]})"
                yield f"{index} by {name} of shape {tuple(shapes[name])}: {narrowed}"


def _extents(nest, shapes, place):
    array = place.array
    if array not in shapes:
        raise ConfigError(f"nest {nest.name!r} needs the shape of its array {array!r}")
    shape = tuple(int(extent) for extent in shapes[array])
    if len(shape) != len(place.axes):
        raise ConfigError(
            f"array {array!r} of nest {nest.name!r} has the subscripts ({', '.join(place.axes)}), given shape {shape}; "
            f"allowed: shapes of rank {len(place.axes)}"
        )
    return place.extents(shape)
