"""Halos beyond the ends of an array: reflected, the outermost element, or one value, as numpy.pad has them."""

import numbers

import numpy as np

from tilewave.errors import ConfigError, shown
from tilewave.field.values import as_elements

MODES = ("reflect", "edge")


def checked(call, boundary, field):
    """A boundary for a field: a mode, or an element of its dtype; raises ConfigError."""
    good = isinstance(boundary, str) and boundary in MODES
    if not good and (not isinstance(boundary, numbers.Number | np.generic) or isinstance(boundary, bool)):
        raise ConfigError(f"{call}: boundary: given {shown(boundary)}; allowed: 'reflect', 'edge', a number")
    if boundary == "reflect" and any(low != high for axis, (low, high) in enumerate(field.halo) if axis in field._ends):
        raise ConfigError(
            f"{call}: boundary='reflect' was given with halo={field.halo}; allowed: one width on both sides"
        )
    return boundary if good else as_elements(boundary, field.dtype)[()]


def fill_ends(field, boundary):
    """Set what of this rank's halo lies beyond the ends of the array, one axis after another, as numpy.pad does. Local,
    after an exchange.
    """
    local, first = field._view(0, halo=True), field._storage.storage[0]
    for axis in field._ends if local.size else ():
        extent, at = field.shape[axis], first[axis] + np.arange(local.shape[axis])
        beyond = np.flatnonzero((at < 0) | (at >= extent))
        if not len(beyond):
            continue
        here = (slice(None),) * axis
        if boundary not in MODES:
            local[(*here, beyond)] = boundary
            continue
        inside = np.clip(at[beyond], 0, extent - 1)
        if boundary == "reflect" and extent > 1:
            inside = extent - 1 - np.abs(extent - 1 - at[beyond] % (2 * extent - 2))
        local[(*here, beyond)] = local[(*here, inside - first[axis])]
