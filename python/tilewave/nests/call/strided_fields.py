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


def why_in_loop_order(spread, arrays, core):
    """Why a nest with parts of fields runs in loop order; empty where it need not."""
    if not core.skews_parts_of_fields():
        return ""
    name = next(view.array for view in spread if view.scaled and isinstance(arrays[view.array], Field))
    return f"dependences that skew the loops, and field {name!r} with subscripts that multiply loop indices"


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
