"""This file has what a new matrix is given: its shape, dtype and elements."""

import itertools
import math

import numpy as np

from tilewave.context.checksum import checksum
from tilewave.errors import ConfigError, shown
from tilewave.field.field import Field
from tilewave.field.values import array_for_shape, named, require_no_mask, whole_numbers

#: Those that BLAS knows.
DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))
NOTHING, NUMBER, FUNCTION, ARRAY, FIELD = range(5)  # kinds of init


def read_given(shape, dtype, init):
    """Shape, dtype, init and its kind, as they are to be taken; raises ConfigError."""
    shape = array_for_shape(shape) if init is None else shape
    if isinstance(shape, np.ndarray | Field) and init is None:
        shape, init = shape.shape, shape
    require_no_mask("matrix: init", init)
    kind = NOTHING if init is None else FUNCTION if callable(init) else FIELD if isinstance(init, Field) else ARRAY
    extents = whole_numbers(shape)
    if extents is None or len(extents) != 2 or min(extents) < 0:
        raise ConfigError(f"matrix: shape: given {shown(shape)}; allowed: two integers >= 0, or an array")
    shape = extents
    if dtype is None:
        given = init.dtype if isinstance(init, np.ndarray | Field) else np.dtype("f8")
        dtype = np.dtype("f8") if given.kind in "biu" else given.newbyteorder("=")
    dtype = dtype_of("matrix", dtype)
    if kind == FIELD and init.shape != shape:
        raise ConfigError(f"matrix: init: given a field of shape {init.shape}; allowed: {shape}")
    if kind == FIELD:
        require_real(init.dtype, dtype)
    if kind == ARRAY:
        try:
            init = np.asarray(init)
            require_real(init.dtype, dtype)
            init = np.asarray(init, dtype=dtype)
        except ConfigError:
            raise
        except (TypeError, ValueError, OverflowError) as problem:
            raise named("matrix: init:", problem) from problem
        if init.ndim == 0:
            return shape, dtype, init[()], NUMBER
        if init.shape != shape:
            raise ConfigError(f"matrix: init: given an array of shape {init.shape}; allowed: {shape}")
        if any(stride < 0 for stride in init.strides) or not (init.flags.c_contiguous or init.flags.f_contiguous):
            init = np.ascontiguousarray(init)
    if math.prod(max(n, 1) for n in shape) * dtype.itemsize > 2**60:
        raise ConfigError(f"matrix: shape: given {shape}; allowed: at most 2**60 bytes")
    return shape, dtype, init, kind


def dtype_of(call, given):
    try:
        dtype = np.dtype(given)
    except TypeError:
        dtype = np.dtype(object)
    if dtype not in DTYPES:
        raise ConfigError(f"{call}: dtype: given {dtype}; allowed: {', '.join(map(str, DTYPES))}")
    return dtype


def require_real(given, dtype):
    """NumPy would leave out imaginary parts."""
    if given.kind == "c" and dtype.kind != "c":
        raise ConfigError(f"matrix: init: given {given} for {dtype}; allowed: real numbers, or a complex dtype")


def fill(made, init):
    rows, columns = made.rows, made.columns
    if made.local.size == 0:
        return
    try:
        values = np.asarray(init(rows[:, None], columns[None, :]))
        if values.dtype == object:
            raise TypeError("init made objects of index arrays")
        require_real(values.dtype, made.dtype)
        made.local[...] = values
    except ConfigError:
        raise
    except Exception:
        # Not a function of arrays: element by element. What still raises comes from init.
        for (i, row), (j, column) in itertools.product(enumerate(rows.tolist()), enumerate(columns.tolist())):
            try:
                value = init(row, column)
                if value is None:  # NumPy would store NaN
                    raise TypeError(f"it returned None at {(row, column)}; allowed: a number")
                made.local[i, j] = value
            except Exception as problem:
                raise named("matrix: init raised", problem) from problem


def agree_on_init(made, init, kind):
    """Refuse on every rank what ranks have given differently; whether rank 0 alone has given an array."""
    core, on_zero = made.context._core, made.context.rank == 0
    number = int(checksum(init), 16) >> 2 if kind == ARRAY and made.context.size > 1 else 0
    low, high, others, less, more = core.allreduce_min([kind, -kind, -(NOTHING if on_zero else kind), number, -number])
    if not (low == -high and less == -more or -others == NOTHING and -high == ARRAY):
        made.context.agree(
            ConfigError(
                "matrix: init has other values or kinds on some rank; allowed: the same on every rank, or an array on "
                "rank 0 and None on the others"
            )
        )
    return -high == ARRAY != low
