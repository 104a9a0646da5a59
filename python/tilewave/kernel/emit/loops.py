"""Addresses of NumPy's inner loops and of the C library's functions.

NumPy's exponentials, logarithms and sines differ in the last bit from the C library's, and from
one processor to the next. A kernel calls the very loop that NumPy would call for one element, so
that its results are NumPy's by construction.
"""

import ctypes
import functools

import llvmlite.binding as llvm
import numpy as np

from tilewave.nest.types import Unsupported

#: How the linker symbols of NumPy's loops and of C functions begin.
NUMPY, LIBM = "tilewave_np_", "tilewave_libm_"

#: Functions of which NumPy may return either operand where they are zeros.
TIES = ("minimum", "maximum", "fmin", "fmax")


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
    of the dtype of a part.
    """
    function, _, real = name.partition(".")
    ufunc = getattr(np, function)
    wanted = [dtype.num] * ufunc.nin + [np.dtype(f"f{dtype.itemsize // 2}").num if real else dtype.num] * ufunc.nout
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


@functools.cache
def zero_tie(name, dtype):
    """Which operand np.minimum and its kin return for +0.0 and -0.0: 0, 1, or None if neither."""
    ufunc, kind = getattr(np, name), np.dtype(dtype).type
    positive_first = bool(np.signbit(ufunc(kind(0.0), kind(-0.0))))
    negative_first = bool(np.signbit(ufunc(kind(-0.0), kind(0.0))))
    return {(False, True): 0, (True, False): 1}.get((positive_first, negative_first))


def is_outside(symbol):
    """Whether a name of a module is that of a function, or its data, outside of it."""
    return symbol.startswith((NUMPY, LIBM))


def register(symbols):
    """Make the functions that compiled code calls known to LLVM, where the code was made by another process.

    Returns
    -------
    bool
        Whether all symbols are known; not where NumPy's loops have other data than when the code was made.
    """
    known = {c_function(symbol.removeprefix(LIBM)) for symbol in symbols if symbol.startswith(LIBM)}
    for symbol in symbols:
        if symbol.startswith(NUMPY) and not symbol.endswith("_data"):
            name, _, dtype = symbol.removeprefix(NUMPY).rpartition("_")
            known.update(filter(None, numpy_loop(name, np.dtype(dtype))))
    return known == {*symbols}
