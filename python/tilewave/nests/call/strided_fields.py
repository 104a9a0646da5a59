"""Arrays with subscripts c*i + d: ranks own points of one grid, and the elements of finer ones that lie with these."""

import numpy as np

from tilewave.field.field import Field


def why_in_loop_order(spread, arrays, core):
    """Why a nest with parts of fields runs in loop order; empty where it need not."""
    if not core.skews_parts_of_fields():
        return ""
    scaled = sorted((isinstance(arrays[view.array], np.ndarray), view.array) for view in spread if view.scaled)
    return f"dependences that skew the loops, and array {scaled[0][1]!r} with subscripts that multiply loop indices"


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
