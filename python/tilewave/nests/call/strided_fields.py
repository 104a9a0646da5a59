"""Arrays with subscripts c*i + d: ranks own points of one grid, and the elements of finer ones that lie with these."""

from tilewave.errors import ConfigError
from tilewave.field.field import Field


def refuse_scaled_in_time(nest, in_time):
    """Refuse time buffers of which a time step would write some elements only; what is only read has none.

    Raises
    ------
    ConfigError
    """
    for place in nest.places:
        if place.array in in_time and place.array in nest.written and place.view.scaled:
            raise ConfigError(
                f"{nest.where(place)}: `{nest.text_of(place)}`: array {place.array!r} has no dimension for time index "
                f"{nest.time!r}, and its subscripts multiply loop indices; allowed: index + integer constant, or a "
                "nest of its own, without steps="
            )


def extents_of_points(nest, spread, shapes, box, accesses, otherwise):
    """The extents of the grid whose points ranks share: the least of arrays without a factor whose blocks have all
    points, so that only the others move. Nests that write one array or the other share points equally.

    Parameters
    ----------
    nest : Nest
    spread : tuple of View
    shapes : dict
    box : sequence of (int, int)
        Of the loops.
    accesses : list
        Of the core's problem: the offsets of the first one say which point's block an element is in.
    otherwise : list of int
        For loop indices that the first access has not.
    """
    number, origin = accesses[0][:2]
    views = [view.last(len(shapes[view.array])) for view in (nest.views[number], *spread)]  # without time buffers
    along = dict(zip(views[0].indices, views[0].shape(shapes[views[0].array]), strict=True))
    extents = list(otherwise)
    for k, index in enumerate(nest.indices):
        if index not in along:
            continue
        low, high = box[k][0] + origin[k], box[k][1] + origin[k]
        candidates = [
            shapes[view.array][view.axes.index(index)] for view in views[1:] if not view.scaled and index in view.axes
        ]
        extents[k] = min((n for n in candidates if low >= 0 and high <= n), default=along[index])
    return extents


def differ(spread, shapes):
    """Whether arrays that are spread over the ranks have different extents along a loop, as on staggered grids."""
    found = {}
    for view in spread:
        here = view.last(len(shapes[view.array]))
        for index, extent in zip(here.indices, here.shape(shapes[view.array]), strict=True):
            if found.setdefault(index, extent) != extent:
                return True
    return False


def tell_scaled(nest, spread, arrays, core):
    """Let the blocks of all arrays be those of the loops, and tell the core which arrays are parts of which field."""
    first = {}
    for number, view in enumerate(nest.views):
        if view not in spread:
            continue
        core.align(number)
        value = arrays[view.array]
        if isinstance(value, Field) and view.scaled:
            scales, residues = zip(*view.last(value.ndim).phases, strict=True)
            core.part_of_field(number, scales, residues, value.shape, first.setdefault(view.array, number))


def why_in_loop_order(spread, arrays, core):
    """Why a nest with parts of fields runs in loop order; empty where it need not: elements of a field that are some
    apart are no box of skewed loops.
    """
    parts = [view.array for view in spread if view.scaled and isinstance(arrays[view.array], Field)]
    n = len(core.loops)
    if not parts or not any(core.loops[k][m] for k in range(n) for m in range(n) if k != m):
        return ""
    return f"dependences that skew the loops, and field {parts[0]!r} with subscripts that multiply loop indices"


def present_halos(nest, arguments):
    """By name, the halos of the fields of a nest that has parts of some, where other nests have given them any: they
    stay, and the fields need not move.
    """
    found, views = {}, getattr(nest, "views", ())
    for view in views if any(view.scaled for view in views) else ():
        value = arguments.get(view.array)
        if isinstance(value, Field) and value.keep == "all" and not value.closed and value.ndim == len(view.indices):
            layout = value._storage.layout
            if any(layout.halo_lo) or any(layout.halo_hi):
                found[view.array] = tuple(layout.halo_lo), tuple(layout.halo_hi)
    return found
