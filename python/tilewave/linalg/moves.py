"""Moves of matrices between layouts."""

import numpy as np

from tilewave import _core
from tilewave.field.field import Field


def on_rank_0(shape):
    """The blocks of a matrix that lies on rank 0 alone."""
    rows, columns = (_core.linalg.Axis(n, 1, 0) for n in shape)
    return _core.linalg.BlockCyclic(rows, columns, False)


class InEvenBlocks:
    """A field's elements as a matrix can be moved from: in even blocks, without halos, of a dtype.

    Attributes
    ----------
    blocks : BlockCyclic
    """

    def __init__(self, field, dtype):
        storage = field._whole("matrix: init")
        self.field, layout = field, storage.layout
        even = _core.Layout(layout.shape, layout.grid)
        rows, columns = (_core.linalg.Axis(n, parts, 0) for n, parts in zip(layout.shape, layout.grid, strict=True))
        self.blocks = _core.linalg.BlockCyclic(rows, columns, False)
        self._to = None  # where they are moved to first
        if not layout.same_blocks(even):
            self._to = even
            self.field = Field(field.context, field.shape, field.dtype, storage=storage.copy())
        low, high = even.owned(field.context.rank) if field.context.rank < even.ranks else ((0, 0), (0, 0))
        extents = tuple(max(h - l, 0) for l, h in zip(low, high, strict=True))
        self._cast = np.empty(extents, dtype) if dtype != field.dtype else None

    def elements(self):
        """This rank's; collective, after an agreement."""
        if self._to is not None:
            self.field.context._moves(self.field._storage.relayout, self._to)
        found = self.field._view(0)
        if self._cast is None:
            return found
        self._cast[...] = found
        return self._cast


def _place(array):
    """Address, and items from row to row and from column to column, of an array."""
    steps = [stride // array.itemsize for stride in array.strides]
    # Along a dimension of one element NumPy may say anything.
    if array.flags.f_contiguous:
        steps = [1, max(1, array.shape[0])]
    elif array.flags.c_contiguous:
        steps = [max(1, array.shape[1]), 1]
    return array.__array_interface__["data"][0], *steps


class Move:
    """A move of a matrix from one layout to another, with all memory that it takes; making it is local."""

    def __init__(self, context, before, after, dtype):
        self._context, self._item = context, dtype.itemsize
        self._core = _core.linalg.ReadyMove(context._core, before, after, dtype.itemsize)

    def __call__(self, source, target):
        """Move the elements; collective, after an agreement."""
        self._context._moves(self._core.run, _place(source), _place(target), self._item)
