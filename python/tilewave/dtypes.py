"""The dtypes of arrays, as include/tilewave/dtype.hpp declares them; arrays that hide elements."""

import sys

import numpy as np

from tilewave import _core

#: Those of fields, nests and patterns, with their names: `numpy.dtype.name` takes microseconds.
NAMES = {np.dtype(name): name for name in _core.dtypes}
ALL = tuple(NAMES)


def is_masked(value):
    """Return whether something is an array of `numpy.ma`, which takes 15 ms to load and makes all of them."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(value, masked.MaskedArray)
