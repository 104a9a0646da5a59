"""NumPy matrices as the core sees them: what is allowed, and which may overlap."""
import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError

DTYPES = tuple(np.dtype(name) for name in ("f4", "f8", "c8", "c16", "i4", "i8", "u1"))
NAMES = {dtype: dtype.name for dtype in DTYPES}


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
    if not isinstance(M, np.ndarray) or isinstance(M, np.ma.MaskedArray):
        raise ConfigError(f"{name} is {type(M).__name__}; allowed: a NumPy array (a field's .local is one)")
    if M.ndim != 2:
        raise ConfigError(f"{name} has {M.ndim} dimensions; allowed: 2")
    dtype = NAMES.get(M.dtype)
    if dtype is None:
        raise ConfigError(f"{name} has dtype {M.dtype}; allowed: {', '.join(d.name for d in DTYPES)}, in native byte order")
    rows, cols = M.shape
    if M.size and cols > 1 and M.strides[1] != M.itemsize:
        raise ConfigError(f"{name} has a column stride of {M.strides[1]} bytes; allowed: {M.itemsize}, items side by side in a row")
    if M.size and rows > 1 and (M.strides[0] < cols * M.itemsize or M.strides[0] % M.itemsize):
        raise ConfigError(f"{name} has a row stride of {M.strides[0]} bytes; allowed: a multiple of {M.itemsize} that is at least "
                          f"the row's {cols * M.itemsize}")
    if not M.flags.aligned:
        raise ConfigError(f"{name} is not aligned to its items of {M.itemsize} bytes")
    if written and not M.flags.writeable:
        raise ConfigError(f"{name} is written, but its memory is read-only")
    row = M.strides[0] if M.size and rows > 1 else cols * M.itemsize
    return _core.MatrixView(address(M), rows, cols, row, dtype)


def address(M):
    return M.__array_interface__["data"][0]


def overlap(a, b):
    return a.size > 0 and b.size > 0 and np.may_share_memory(a, b) and np.shares_memory(a, b)


def same_or_apart(M, out):
    if overlap(M, out) and not (address(M) == address(out) and M.shape == out.shape and (M.shape[0] == 1 or M.strides == out.strides)):
        raise ConfigError("M and out overlap; allowed: the same matrix, or memory apart")


def inside(part, whole):
    """The column of `whole` at which `part` lies; -1 where they are apart."""
    if not overlap(part, whole):
        return -1
    column, odd = divmod(address(part) - address(whole), whole.itemsize)
    if odd or column < 0 or column + part.shape[1] > whole.shape[1] or part.shape[0] != whole.shape[0] or (
            part.shape[0] > 1 and part.strides[0] != whole.strides[0]):
        raise ConfigError("M and out overlap; allowed: memory apart, or the part in its own place in the whole matrix")
    return column
