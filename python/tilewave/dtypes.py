"""The dtypes of arrays, as include/tilewave/dtype.hpp declares them; arrays that hide elements."""

import sys

import numpy as np

from tilewave import _core

#: Those that patterns move, with their names: `numpy.dtype.name` takes microseconds.
NAMES = {np.dtype(name): name for name, _ in _core.dtypes}
ALL = tuple(NAMES)
#: Those of fields and of a nest's arrays.
IN_NESTS = tuple(np.dtype(name) for name, in_nests in _core.dtypes if in_nests)


def is_masked(value):
    """Whether something is an array of `numpy.ma`, which takes 15 ms to load and makes all of them."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(value, masked.MaskedArray)
