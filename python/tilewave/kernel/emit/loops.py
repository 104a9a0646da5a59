"""Addresses of NumPy's inner loops and of the C library's functions.

NumPy's exponentials, logarithms and sines differ in the last bit from the C library's, and from
one processor to the next. A kernel calls the very loop that NumPy would call for one element, so
that its results are NumPy's by construction.
"""

import ctypes
import functools

import llvmlite.binding as llvm
import numpy as np

from tilewave.kernel.emit.instructions import features
from tilewave.nest.types import Unsupported

#: How the linker symbols of NumPy's loops, of C functions and of those of whole vectors begin.
NUMPY, LIBM, VECTORS = "tilewave_np_", "tilewave_libm_", "tilewave_vectors_"

#: Functions of which NumPy may return either operand where they are zeros.
TIES = ("minimum", "maximum", "fmin", "fmax")


#: Numbers with which a loop is tried.
_TRIED = 33


class _Ufunc(ctypes.Structure):
    """Head of PyUFuncObject; part of NumPy's binary interface (ufuncobject.h)."""

    _fields_ = [
        ("head", ctypes.c_byte * object.__basicsize__),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_char)),
    ]


@functools.cache
def numpy_loop(name, dtype):
    """Names of the linker symbols of a ufunc's inner loop and of its data (None if it has none).

    The loop is the one for which all operands have ``dtype``; with ``.real`` behind the name the one whose result is
    of the dtype of a part. With ``.each`` no operand is said to be equal for all elements.
    """
    function, _, kind = name.partition(".")
    ufunc, part = getattr(np, function), np.dtype(f"f{dtype.itemsize // 2}") if kind == "real" else dtype
    wanted = [dtype.num] * ufunc.nin + [part.num] * ufunc.nout
    head = _Ufunc.from_address(id(ufunc))
    if (head.nin, head.nout, head.ntypes) != (ufunc.nin, ufunc.nout, ufunc.ntypes):
        raise Unsupported(f"np.{name} of NumPy {np.__version__} (unknown layout of ufuncs)")
    for k in range(head.ntypes):
        if [head.types[k * head.nargs + j][0] for j in range(head.nargs)] == wanted:
            symbol = f"{NUMPY}{name}_{dtype.name}"
            llvm.add_symbol(symbol, head.functions[k])
            if not head.data[k]:
                return symbol, None
            llvm.add_symbol(f"{symbol}_data", head.data[k])
            return symbol, f"{symbol}_data"
    raise Unsupported(f"np.{name} of {dtype.name} (NumPy {np.__version__} has no such loop)")


@functools.cache
def c_function(name):
    """Name of the linker symbol of a function of the C mathematics library.

    The symbol is another name than the function's: LLVM knows those and rewrites calls of them,
    ``pow(x, 2)`` into ``x * x``, which can differ in the last bit.
    """
    try:
        function = getattr(ctypes.CDLL(None), name)
    except AttributeError:  # an interpreter that is not linked with it
        function = getattr(ctypes.CDLL("libm.so.6"), name)
    symbol = f"{LIBM}{name}"
    llvm.add_symbol(symbol, ctypes.cast(function, ctypes.c_void_p).value)
    return symbol


def vector_function(name, operands, bits):
    """(lanes, linker symbol) of the C library's function of whole vectors, None where there is none.

    ``name`` is that of a C function, ``bits`` those of its numbers.
    """
    letter, size = ("e", 512) if features().get("avx512f") else ("d", 256) if features().get("avx2") else ("b", 128)
    lanes = size // bits
    symbol = f"{VECTORS}_ZGV{letter}N{lanes}{'v' * operands}_{name}"
    return (lanes, symbol) if _is_there(symbol) else None


@functools.cache
def _is_there(symbol):
    """Return whether a function of whole vectors exists; then LLVM knows it."""
    try:
        function = getattr(ctypes.CDLL("libmvec.so.1"), symbol.removeprefix(VECTORS))
    except (OSError, AttributeError):  # another C library, or one without the function
        return False
    llvm.add_symbol(symbol, ctypes.cast(function, ctypes.c_void_p).value)
    return True


@functools.cache
def is_uniform(name, dtype):
    """Return whether a ufunc gives a number the same bits wherever it is in a strip of any length, and alone; tried.

    NumPy says so of no loop, and means it of all: they use their own functions for what is left over after whole
    vectors.
    """
    name, _, each = name.partition(".")
    ufunc = getattr(np, name)
    numbers = np.random.default_rng(1).normal(0, 1, (ufunc.nin, _TRIED + 8)) * [[3.0], [1.1]][: ufunc.nin]
    operands = [each.astype(dtype) for each in numbers]
    with np.errstate(all="ignore"):
        twice = [np.repeat(given, 2) for given in operands] if each else operands
        alone = (
            np.array([ufunc(*(given[k : k + 2] for given in twice))[0] for k in range(0, len(twice[0]), 2)], dtype)
            if each
            else np.array([ufunc(*numbers) for numbers in zip(*operands, strict=True)], dtype)
        )
        for length in (_TRIED + 8, _TRIED, 7):
            for first in (0, 1, 3):
                part = slice(first, first + length)
                strip = ufunc(*(each[part] for each in operands))
                if not np.array_equal(strip, alone[part], equal_nan=True):
                    return False
    return True


@functools.cache
def zero_tie(name, dtype):
    """Which operand np.minimum and its kin return for +0.0 and -0.0: 0, 1, or None if neither."""
    ufunc, kind = getattr(np, name), np.dtype(dtype).type
    positive_first = bool(np.signbit(ufunc(kind(0.0), kind(-0.0))))
    negative_first = bool(np.signbit(ufunc(kind(-0.0), kind(0.0))))
    return {(False, True): 0, (True, False): 1}.get((positive_first, negative_first))


def is_outside(symbol):
    """Return whether a name of a module is that of a function, or its data, outside of it."""
    return symbol.startswith((NUMPY, LIBM, VECTORS))


def register(symbols, uniform):
    """Make the functions that compiled code calls known to LLVM, where the code was made by another process.

    Returns
    -------
    bool
        Whether all symbols are known, and the loops of ``uniform`` (name and dtype) are; not where NumPy has others
        than when the code was made.
    """
    known = {c_function(symbol.removeprefix(LIBM)) for symbol in symbols if symbol.startswith(LIBM)}
    known |= {symbol for symbol in symbols if symbol.startswith(VECTORS) and _is_there(symbol)}
    for symbol in symbols:
        if symbol.startswith(NUMPY) and not symbol.endswith("_data"):
            name, _, dtype = symbol.removeprefix(NUMPY).rpartition("_")
            known.update(filter(None, numpy_loop(name, np.dtype(dtype))))
    return known == {*symbols} and all(is_uniform(name, np.dtype(dtype)) for name, dtype in uniform)
