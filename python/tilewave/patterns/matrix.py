"""NumPy matrices as the core sees them: what is allowed, and which may overlap."""

import math

import numpy as np

from tilewave import _core
from tilewave.dtypes import ALL, NAMES, is_masked
from tilewave.errors import ConfigError

NUMBERS = bool, int, float, complex, np.generic


def rows_and_columns(name, M):
    """An array of any number of dimensions as a matrix: the same memory.

    Of one dimension it is one row; of none, one element; of three and more it is a row for each place in all
    dimensions but the last, where these lie one after another.

    Raises
    ------
    ConfigError
        Naming ``name``: for one that does not lie so.
    """
    if M.ndim == 2:
        return M
    if M.ndim == 1:
        if M.size > 1 and M.strides[0] != M.itemsize:
            raise ConfigError(
                f"{name} of one dimension has a stride of {M.strides[0]} bytes; allowed: {M.itemsize}, items side by "
                "side, "
                "or the same items as a matrix of one column, x[:, None]"
            )
        return M[None, :]
    if M.size and not M.flags.c_contiguous:
        raise ConfigError(
            f"{name} of {M.ndim} dimensions is not contiguous; allowed: contiguous, or a matrix with any row stride"
        )
    rows = math.prod(M.shape[:-1])
    return M.reshape(rows, M.shape[-1] if M.ndim else 1)


def outer_text(M):
    """Return what must be equal on all ranks of a shape beyond rows and columns; empty for up to two dimensions."""
    return f"{M.shape[:-1]}" if isinstance(M, np.ndarray) and M.ndim > 2 else ""


def number_of(M):
    """A scalar as an array of one element; None for what is none.

    Raises
    ------
    ConfigError
        For an int beyond 64 bits.
    """
    if not isinstance(M, NUMBERS):
        return None
    array = np.array(M)
    if array.dtype == object:
        raise ConfigError(f"a number of {M.bit_length()} bits was given; allowed: 64 bits")
    return array


def view(name, M, written=False):
    """The core's view of a matrix.

    Raises
    ------
    ConfigError
        Naming ``name``: what is wrong with it.
    """
    if type(M) is np.ndarray:
        plain = _core.plain_view(M, written)
        if plain is not None:
            return plain
    if not isinstance(M, np.ndarray) or is_masked(M):
        raise ConfigError(
            f"{name} is {type(M).__name__}; allowed: a NumPy array (a field's .local is one), or a number where it is "
            "combined or "
            "broadcast"
        )
    M = rows_and_columns(name, M)
    dtype = NAMES.get(M.dtype)
    if dtype is None:
        raise ConfigError(
            f"{name} has dtype {M.dtype}; allowed: {', '.join(d.name for d in ALL)}, in native byte order"
        )
    rows, cols = M.shape
    if M.size and cols > 1 and M.strides[1] != M.itemsize:
        raise ConfigError(
            f"{name} has a column stride of {M.strides[1]} bytes; allowed: {M.itemsize}, items side by side in a row"
        )
    if M.size and rows > 1 and (M.strides[0] < cols * M.itemsize or M.strides[0] % M.itemsize):
        raise ConfigError(
            f"{name} has a row stride of {M.strides[0]} bytes; allowed: a multiple of {M.itemsize} that is at least "
            f"the row's {cols * M.itemsize}"
        )
    if not M.flags.aligned:
        raise ConfigError(f"{name} is not aligned to its items of {M.itemsize} bytes")
    if written and not M.flags.writeable:
        raise ConfigError(f"{name} is written, but its memory is read-only")
    row = M.strides[0] if M.size and rows > 1 else cols * M.itemsize
    return _core.MatrixView(address(M), rows, cols, row, dtype)


def address(M):
    return M.__array_interface__["data"][0]


def same_rows(M, out):
    """Arrays of more than two dimensions have equal extents but for the last one."""
    if max(M.ndim, out.ndim) > 2 and M.shape[:-1] != out.shape[:-1]:
        raise ConfigError(f"M has shape {M.shape}, out {out.shape}; they must be equal but for the last extent")


def overlap(a, b):
    return a.size > 0 and b.size > 0 and np.may_share_memory(a, b) and np.shares_memory(a, b)


def same_or_apart(M, out):
    M, out = rows_and_columns("M", M), rows_and_columns("out", out)
    if overlap(M, out) and not (
        address(M) == address(out) and M.shape == out.shape and (M.shape[0] == 1 or M.strides == out.strides)
    ):
        raise ConfigError("M and out overlap; allowed: the same matrix, or separate memory")


def inside(part, whole):
    """The column of `whole` at which `part` lies; -1 where they do not overlap."""
    if not overlap(part, whole):
        return -1
    part, whole = rows_and_columns("M", part), rows_and_columns("out", whole)
    column, odd = divmod(address(part) - address(whole), whole.itemsize)
    if (
        odd
        or column < 0
        or column + part.shape[1] > whole.shape[1]
        or part.shape[0] != whole.shape[0]
        or (part.shape[0] > 1 and part.strides[0] != whole.strides[0])
    ):
        raise ConfigError("M and out overlap; allowed: separate memory, or the part in its place in the whole matrix")
    return column
