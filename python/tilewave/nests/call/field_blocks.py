"""Fields with given blocks: loops are cut as these fields are, not into even blocks."""

from tilewave.field.field import Field


def has_cuts(value):
    """Whether an array is a field with given blocks."""
    return isinstance(value, Field) and value._cuts is not None


def set_cuts(nest, spread, arrays, accesses, core):
    """Tell the core how fields are cut, and cut the loops as the finest one of them is: what is computed of it lies
    with those who own it, and a coarser grid is less to move. Of equals the first one that is accessed, writes first.

    Parameters
    ----------
    nest : Nest
    spread : tuple of View
    arrays : dict
    accesses : list
        Of the core's problem: (number of the view, offset, whether it writes, ...).
    core : _core.SweepProblem
    """
    leader = None
    for number, view in enumerate(nest.views):
        if view not in spread:
            continue
        core.align(number)
        value = arrays[view.array]
        if not has_cuts(value) or len(view.axes) != value.ndim or len(view.indices) != value.ndim:
            continue
        core.cut_as(number, value._cuts)
        scale = 1
        for phase, _ in view.all_phases():
            scale *= phase
        place = next((at for at, access in enumerate(accesses) if access[0] == number), len(accesses))
        if leader is None or (-scale, place) < leader[:2]:
            leader = -scale, place, number
    if leader is not None:
        core.follow(leader[2], _offset(leader[2], accesses))


def _offset(number, accesses):
    """The element of an array that belongs to a point: what is written, or else what is read nearest to it."""
    offsets = [access[1] for access in accesses if access[0] == number and access[2]]
    offsets = offsets or [access[1] for access in accesses if access[0] == number]
    return tuple(min(along, key=abs) for along in zip(*offsets, strict=True))
