"""The matrices of a product as they enter it: transposed, and where their elements lie."""

import dataclasses

import numpy as np

from tilewave import _core


def place_of(array):
    """Address, and items from row to row and from column to column."""
    steps = [stride // array.itemsize for stride in array.strides]
    # Along a dimension of one element NumPy may say anything.
    if array.flags.f_contiguous:
        steps = [1, max(1, array.shape[0])]
    elif array.flags.c_contiguous:
        steps = [max(1, array.shape[1]), 1]
    return array.__array_interface__["data"][0], *steps


@dataclasses.dataclass(frozen=True)
class Operand:
    """op(A) of a product.

    Attributes
    ----------
    blocks : BlockCyclic
        Of op(A).
    turned : bool
        Whether op(A) is the transposed of what is stored.
    conjugate : bool
    """

    blocks: object
    turned: bool
    conjugate: bool

    @classmethod
    def of(cls, matrix, transpose):
        turned = transpose != "N"
        conjugate = transpose == "C" and matrix.dtype.kind == "c"
        return cls(matrix._blocks.transposed() if turned else matrix._blocks, turned, conjugate)

    def transposed(self):
        return Operand(self.blocks.transposed(), not self.turned, self.conjugate)

    def in_blocks(self, blocks):
        """The same, moved to other blocks."""
        return self if blocks.same(self.blocks) else dataclasses.replace(self, blocks=blocks)

    @property
    def stored(self):
        """Blocks of the matrix as it is stored."""
        return self.blocks.transposed() if self.turned else self.blocks

    def place(self, array):
        """Address and steps of op(A) of this rank's part of the stored matrix."""
        address, row, column = place_of(array)
        return (address, column, row) if self.turned else (address, row, column)


def wanted_blocks(c, depth, ranks_form):
    """The blocks that op(A) and op(B) need beside those of C.

    Parameters
    ----------
    c : BlockCyclic
        By rows or on a grid of two dimensions.
    depth : Operand blocks
        The common dimension as op(A) and op(B) have it: axes, kept where they fit.
    ranks_form : bool
        B by columns on the ranks of C's rows, as wolfmann2010.
    """
    a_depth, b_depth, b_columns = depth
    block_cyclic, axis = _core.linalg.BlockCyclic, _core.linalg.Axis
    by_column = c.ranks_by_column
    if ranks_form:
        parts = c.rows.parts
        # Two blocks a rank: the smallest number with which a rank computes one while another travels.
        block = max(1, -(-b_columns.extent // (2 * parts)))
        kept = b_columns if b_columns.parts == parts else axis(b_columns.extent, parts, block)
        return (
            block_cyclic(c.rows, axis(a_depth.extent, 1, 0), False),
            block_cyclic(axis(b_depth.extent, 1, 0), kept, False),
        )

    def spread(given, parts, other):
        if given.parts == parts:
            return given
        block = other.block if parts > 1 and other.block else max(1, -(-given.extent // max(1, 2 * parts)))
        return axis(given.extent, parts, block)

    return (
        block_cyclic(c.rows, spread(a_depth, c.columns.parts, c.columns), by_column),
        block_cyclic(spread(b_depth, c.rows.parts, c.rows), c.columns, by_column),
    )


def local_of(blocks, rank, dtype):
    """Memory for this rank's part of a matrix."""
    low, high = blocks.owned(rank)
    return np.empty(tuple(h - l for l, h in zip(low, high, strict=True)), dtype, order="F")
