"""Periodic loops: indices along which subscripts wrap."""

import ast

from tilewave.errors import ConfigError
from tilewave.nest.subscript import linear_form, subscripts_of


def read_periodic(nest, periodic, timed):
    """The periodic loop indices of a nest, in the order of its loops.

    Parameters
    ----------
    nest : Nest
    periodic : tuple or list of str
    timed : bool
        Whether the first loop index runs as time.

    Raises
    ------
    ConfigError
        For what is no tuple of loop indices, for time, and where a subscript of a table would wrap.
    """
    if not isinstance(periodic, tuple | list) or not all(isinstance(name, str) for name in periodic):
        raise ConfigError(f'periodic: given {periodic!r}; allowed: a tuple of index names, periodic=("i", "j")')
    allowed = nest.indices[1:] if timed else nest.indices
    for name in periodic:
        if name not in allowed:
            what = "is the time of nest" if timed and name == nest.indices[0] else "is no index of the nest"
            raise ConfigError(f"periodic: {name!r} {what} {nest.name!r}; allowed: {', '.join(allowed) or 'none'}")
    whole = {*nest.tables, *(node.value.id for node in nest.parameters.wholes)} if periodic else set()
    for node in nest.source.nodes if whole else ():
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name) or node.value.id not in whole:
            continue
        for terms, distance in filter(None, map(linear_form, subscripts_of(node))):
            if distance and {*terms} & {*periodic}:
                raise nest.source.error(
                    node,
                    f"periodic={tuple(periodic)!r}: a subscript of {node.value.id!r}, a table or read along a loop "
                    "inside the body, does not wrap",
                    "periodic indices at distance 0 in such arrays; the same array under another name for this",
                )
    return tuple(name for name in nest.indices if name in periodic)


def periodic_ranges(nest, shapes, periodic):
    """From each periodic index to (0, extent of the arrays along it).

    Parameters
    ----------
    nest : Nest
    shapes : dict
        By name, of all arrays that are no tables, time included.
    periodic : tuple of str

    Raises
    ------
    ConfigError
        Where arrays have different extents along a periodic index, one is written next to the point along it, or it is
        in two subscripts of one access: wrapping would not be the same for all. An array whose subscript multiplies the
        index has as many times the others' extent.
    """
    ranges = {}
    for place in nest.places:
        where = f"{nest.where(place)}: `{nest.text_of(place)}`"
        phases = place.phases or ((1, 0),) * len(place.axes)
        for name, offset, (scale, _), whole in zip(place.axes, place.offsets, phases, shapes[place.array], strict=True):
            if name not in periodic:
                continue
            extent = whole // scale
            if whole % scale:
                raise ConfigError(
                    f"{where}: the periodic index {name!r} is multiplied by {scale}, and {whole} elements are no "
                    f"multiple of it: where the loop goes around, {scale}*{name} would be another element; allowed: "
                    f"a multiple of {scale}"
                )
            if place.axes.count(name) > 1:
                raise ConfigError(
                    f"{where}: the periodic index {name!r} is in two subscripts; allowed: in one of each access"
                )
            if place.written and offset:
                raise ConfigError(
                    f"{where} is written at offset {offset} along the periodic index {name!r}; allowed: 0"
                )
            first = ranges.setdefault(name, (place.array, extent))
            if extent != first[1]:
                raise ConfigError(
                    f"periodic: along {name!r} array {first[0]!r} has {first[1]} elements and {place.array!r} has "
                    f"{extent}, so that a subscript that wraps in one leaves the other; allowed: equal extents; of n "
                    "cells and their faces, n faces: face n is face 0"
                )
    return {name: (0, extent) for name, (_, extent) in ranges.items()}
