"""The loops' bounds: all points for which every access is inside its array."""

import ast

from tilewave import units
from tilewave.errors import ConfigError
from tilewave.nest.subscript import linear_form, subscripts_of
from tilewave.nest.walks import names_in


def iteration_box(nest, shapes):
    """See `Nest.iteration_box`."""
    bounds = dict.fromkeys(nest.indices, (None, None))
    for place in nest.places:
        own = 1 if place.array in nest.rows else 0  # its rows are no time steps
        used = [*zip(place.axes, place.offsets, _extents(nest, shapes, place), strict=True)]
        for name, offset, extent in used[own:]:
            low, high = bounds[name]
            bounds[name] = (
                -offset if low is None else max(low, -offset),
                extent - offset if high is None else min(high, extent - offset),
            )
    for array, axis, name, scale, constant in nest.bounding:
        check_table(nest, array, shapes[array])
        low, high = bounds[name]
        first, end = -(constant // scale), (int(shapes[array][axis]) - 1 - constant) // scale + 1
        bounds[name] = (first if low is None else max(low, first), end if high is None else min(high, end))
    for name, (low, _) in bounds.items():
        if low is None:
            raise ConfigError(
                f"nest {nest.name!r}: no array bounds loop index {name!r} (a table does not); "
                f"allowed: every loop index in the subscripts of some array"
            )
    return tuple((low, max(low, high)) for low, high in bounds.values())


def shapes_of(nest, arrays):
    """Return the shapes of the arrays that bound the loops, by name."""
    names = (*(view.array for view in nest.views), *(array for array, *_ in nest.bounding))
    return {name: arrays[name].shape for name in names}


def with_time(place, shape):
    """Return the shape of an array with a dimension for time, of no extent where it has none."""
    return (0,) * (len(place.axes) - len(shape)) + tuple(shape)


def check_table(nest, table, shape):
    """Raise where a table has another number of dimensions than the nest gives it subscripts."""
    if len(shape) != nest.table_rank(table):
        raise ConfigError(
            f"table {table!r} has shape {tuple(shape)}, the nest gives it "
            f"{units.count(nest.table_rank(table), 'subscript')}; allowed: shapes of rank {nest.table_rank(table)}"
        )


def bounding_lookups(source, parameters):
    """(array, dimension, loop index, factor, constant) of the subscripts, of one loop index, of arrays that are read
    along loops inside the body: these are kept within the array, as subscripts of other arrays are.
    """
    found = []
    lookups = [
        node
        for node in source.nodes
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in parameters.tables
    ]
    along = {node.value.id for node in lookups if names_in(node.slice) & source.inner_names}
    for node in lookups:
        if node.value.id not in along:
            continue
        for axis, part in enumerate(subscripts_of(node)):
            form = linear_form(part)
            names = [name for name, factor in form[0].items() if factor] if form else []
            if len(names) == 1 and names[0] in parameters.indices and form[0][names[0]] > 0:
                found.append((node.value.id, axis, names[0], form[0][names[0]], form[1]))
    return tuple(dict.fromkeys(found))


def cut_short(nest, shapes, ranges):
    """Return what arrays that are only read leave out of what the written ones allow, as texts: a shape that is too
    small is easily missed.

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


def short_arrays(nest, shapes, ranges):
    """Texts about arrays that end a loop by their extent: an array that is only read, at the same subscripts as what is
    written, and has fewer elements there.

    Parameters
    ----------
    nest : Nest
    shapes : dict
        Of each array; without time where it has no dimension for it.
    ranges : dict
        Of the loop indices to look at, as they run.
    """
    ends = {}  # by index: (array, offset, extent) of each access
    for place in nest.places:
        extents = place.extents(with_time(place, shapes[place.array]))
        for d, (index, offset, extent) in enumerate(zip(place.axes, place.offsets, extents, strict=True)):
            if index in ranges and not (place.phases and place.phases[d][0] > 1):
                ends.setdefault(index, []).append((place.array, offset, extent))
    for index, accesses in ends.items():
        high = ranges[index][1]
        last = {each for each in accesses if each[2] - each[1] == high}
        longer = {offset: (name, extent) for name, offset, extent in accesses if name in nest.written}
        # Arrays of other grids are read at several offsets, or at others than what is written.
        several = {name for name, *_ in last if len({offset for other, offset, _ in accesses if other == name}) > 1}
        if several or any(name in nest.written or longer.get(offset, (0, 0))[1] <= end for name, offset, end in last):
            continue
        for name, offset, extent in sorted(last):
            other, more = longer[offset]
            yield (
                f"array {name!r} has {extent} elements along index {index!r} of nest {nest.name!r}, and {other!r}, "
                f"which is written, has {more}: the loop runs over {ranges[index]} and leaves the others as they are. "
                f'If this is meant, over={{"{index}": {ranges[index]}}} says so; else {name!r} needs {more} elements'
            )


def _extents(nest, shapes, place):
    array = place.array
    if array not in shapes:
        raise ConfigError(f"nest {nest.name!r} needs the shape of its array {array!r}")
    shape = tuple(int(extent) for extent in shapes[array])
    if len(shape) != len(place.axes):
        raise wrong_rank(nest, array, place.axes, shape)
    return place.extents(shape)


def wrong_rank(nest, array, axes, shape):
    """Return the error of an array with another number of dimensions than the nest gives it subscripts."""
    return ConfigError(
        f"array {array!r} of nest {nest.name!r} has the subscripts ({', '.join(axes)}), given shape {tuple(shape)}; "
        f"allowed: shapes of rank {len(axes)}"
    )
