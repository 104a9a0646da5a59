"""Views: an array under one order of its subscripts. An array that is only read may have several."""

from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """An array as the loops see it under one order of its subscripts.

    Attributes
    ----------
    array : str
    axes : tuple of str
        The loop index in each subscript; one may be in several, as in ``A[i, i]``.
    lags : tuple of int
        By how much each subscript is ahead of the first one with the same loop index: (0, 1) for ``A[i-1, i]``.
    """

    array: str
    axes: tuple
    lags: tuple

    @property
    def indices(self):
        """The loop indices, each once."""
        return tuple(dict.fromkeys(self.axes))

    def last(self, count):
        """Only the last subscripts: those of an array that has no dimension for time, the first one."""
        first = len(self.axes) - count
        return self if first == 0 else View(self.array, self.axes[first:], self.lags[first:])

    def shape(self, shape):
        """Extents along `indices` for an array of a shape; subscripts with one index leave the shortest one's."""
        extents = {}
        for index, lag, extent in zip(self.axes, self.lags, shape, strict=True):
            extents[index] = max(0, min(extent - lag, extents.get(index, extent)))
        return tuple(extents.values())

    def memory(self, array):
        """(address of element 0, byte strides along `indices`) in a NumPy array.

        The address may be before the array's memory, where the view has no element 0 (``A[i, i-1]``).
        """
        strides = {}
        for index, stride in zip(self.axes, array.strides, strict=True):
            strides[index] = strides.get(index, 0) + stride
        ahead = sum(lag * stride for lag, stride in zip(self.lags, array.strides, strict=True))
        return array.ctypes.data + ahead, tuple(strides.values())
