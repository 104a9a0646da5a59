"""Memory of fields as NumPy arrays view it."""

import weakref

import numpy as np


class Memory:
    """A field's elements on this rank, for NumPy to view."""

    def __init__(self, field, address, shape, strides, owner, what):
        self.__array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "strides": strides,
            "typestr": field.dtype.str,
            "version": 3,
        }
        storage = field._storage
        self.version, self.range = storage.version, (storage.address, storage.address + storage.bytes)
        self.what = what  # (time steps back, whether with the halo)
        self._field, self._owner = weakref.ref(field), owner

    def left(self):
        """Return whether the field's values have moved elsewhere."""
        field = self._field()
        return field is not None and not field.closed and field._storage.version != self.version


def is_stale_view(array):
    """Return whether a NumPy array is a view of what a field was, before a run moved its values."""
    base = array.base
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, Memory) and base.left()
