"""NumPy arrays that every rank has, in place of matrices: entering as a `Matrix`, and results as arrays again."""

import numpy as np

from tilewave.context.checksum import checksum
from tilewave.context.collective import ready
from tilewave.errors import ConfigError
from tilewave.field.values import require_no_mask
from tilewave.foreign import array_of
from tilewave.linalg.initial import DTYPES
from tilewave.linalg.layout import layout_of
from tilewave.linalg.matrix import Matrix
from tilewave.linalg.moves import Move, on_rank_0

_ALLOWED = "a tilewave.linalg.Matrix, or a NumPy array that is the same on every rank"


def dtype_for(call, name, given):
    """The dtype of a matrix for an array's values: integers become float64, as in SciPy."""
    require_no_mask(f"{call}: {name}", given)
    if given.dtype in DTYPES:
        return given.dtype.newbyteorder("=")
    if given.dtype.kind in "biu":
        return np.dtype("f8")
    allowed = ", ".join(map(str, DTYPES))
    raise ConfigError(f"{call}: {name}: given an array of {given.dtype}; allowed: {allowed}, integers")


def entered(call, name, given, context, dtype=None):
    """A matrix of what is given, itself where it is one. Local: its text shows whether all ranks have the same.

    Parameters
    ----------
    dtype : dtype, optional
        What values are to become; ConfigError where that loses more than digits.
    """
    given = array_of(f"{call}: {name}", given, False)
    if not isinstance(given, np.ndarray):
        if not isinstance(given, Matrix):
            raise ConfigError(f"{call}: {name}: given {type(given).__name__}; allowed: {_ALLOWED}")
        return given
    natural = dtype_for(call, name, given)
    dtype = natural if dtype is None else dtype
    if not np.can_cast(natural, dtype, "same_kind"):
        raise ConfigError(f"{call}: {name}: given an array of {given.dtype}; allowed: what {dtype} can hold")
    if given.ndim != 2:
        raise ConfigError(f"{call}: {name}: given an array of shape {given.shape}; allowed: two dimensions")
    made = Matrix(context, given.shape, dtype, layout_of(call, given.shape, context.size, "columns", None, None))
    made.local[...] = given[np.ix_(made.rows, made.columns)]
    made._source = f", of an array {checksum(given) if context.size > 1 else ''}"
    return made


def entered_sides(call, given, matrix):
    """Right-hand sides for a matrix, and the shape of the array that they were given as, None of a matrix. Local."""
    if not isinstance(given, np.ndarray):
        return entered(call, "b", given, matrix.context), None
    if given.ndim not in (1, 2):
        raise ConfigError(f"{call}: b: given an array of shape {given.shape}; allowed: one or two dimensions")
    sides = given if given.ndim == 2 else given[:, None]
    made = entered(call, "b", sides, matrix.context, matrix.dtype)
    made._source += f" of {given.ndim} dimensions"
    return made, given.shape


def left(made, shape):
    """A result as its caller wants it: where `shape` is that of an array, an array of as many dimensions on every rank.
    A part of a collective call, its last.
    """
    if shape is None:
        return made
    context = made.context

    def make():
        move = Move(context, made._blocks, on_rank_0(made.shape), made.dtype)
        return np.empty(made.shape, made.dtype), move

    whole, move = yield from ready("the result as an array", make)
    move(made.local, whole if context.rank == 0 else whole[:0, :0])
    context._core.broadcast_into(whole.ctypes.data, whole.nbytes)
    return whole if len(shape) == 2 else whole[:, 0]
