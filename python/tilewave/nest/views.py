"""Views: an array under one order of its subscripts. An array that is only read may have several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def elements_of(extent, scale, residue):
    """How many elements every scale-th of an array's dimension is, from `residue` on."""
    return max(0, -((residue - extent) // scale))


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

    phases : tuple of (int, int)
        Of ``A[2*i+1]`` ((2, 1),): the view has every second element, from element 1 on. Empty: all elements.
    """

    array: str
    axes: tuple[str, ...]
    lags: tuple[int, ...]
    phases: tuple[tuple[int, int], ...] = ()

    @property
    def indices(self) -> tuple[str, ...]:
        """The loop indices, each once."""
        return tuple(dict.fromkeys(self.axes))

    def last(self, count: int) -> View:
        """Only the last subscripts: those of an array that has no dimension for time, the first one."""
        first = len(self.axes) - count
        if first == 0:
            return self
        return View(self.array, self.axes[first:], self.lags[first:], self.phases[first:])

    @property
    def scaled(self) -> bool:
        """Return whether it leaves elements out."""
        return any(scale > 1 for scale, _ in self.phases)

    def all_phases(self) -> tuple[tuple[int, int], ...]:
        """(scale, residue) of each subscript."""
        return self.phases or ((1, 0),) * len(self.axes)

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Extents along `indices` for an array of a shape; subscripts with one index leave the shortest one's."""
        extents = {}
        for index, lag, phase, extent in zip(self.axes, self.lags, self.all_phases(), shape, strict=True):
            extent = elements_of(extent, *phase)
            extents[index] = max(0, min(extent - lag, extents.get(index, extent)))
        return tuple(extents.values())

    def memory(self, array: Any) -> tuple[int, tuple[int, ...]]:
        """(address of element 0, byte strides along `indices`) in a NumPy array.

        The address may be before the array's memory, where the view has no element 0 (``A[i, i-1]``).
        """
        strides, ahead = {}, 0
        subscripts = zip(self.axes, self.lags, self.all_phases(), array.strides, strict=True)
        for index, lag, (scale, residue), stride in subscripts:
            strides[index] = strides.get(index, 0) + scale * stride
            ahead += (scale * lag + residue) * stride
        return array.ctypes.data + ahead, tuple(strides.values())
