"""The memory of matrices as the core takes it."""

import numpy as np


def place_of(array, turned=False):
    """Address, and items from row to row and from column to column; `turned`: of the transposed."""
    steps = [stride // array.itemsize for stride in array.strides]
    # Along a dimension of one element NumPy may say anything.
    if array.flags.f_contiguous:
        steps = [1, max(1, array.shape[0])]
    elif array.flags.c_contiguous:
        steps = [max(1, array.shape[1]), 1]
    return array.__array_interface__["data"][0], *(steps[::-1] if turned else steps)


def local_of(blocks, rank, dtype):
    """Memory for this rank's part of a matrix."""
    low, high = blocks.owned(rank)
    return np.empty(tuple(h - l for l, h in zip(low, high, strict=True)), dtype, order="F")
