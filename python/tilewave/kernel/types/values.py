"""Values of a body while it is translated.

Python's types are dynamic: ``max(A[i, j], 0)`` is a float32 or a Python int, and the arithmetic
that follows differs. A ``Value`` therefore has one ``Typed`` option for each type it may have and
a tag that says which one it is in a given point; most have one option and no tag.
"""

import numpy as np
from llvmlite import ir

from tilewave.nest.types import Unsupported

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()

_INTEGERS, _FLOATS = {1: I8, 2: I16, 4: I32, 8: I64}, {4: F32, 8: F64}


def ir_type(dtype):
    """LLVM type of a value of a dtype in a register."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return ir.LiteralStructType([_FLOATS[dtype.itemsize // 2]] * 2)
    return I1 if dtype.kind == "b" else (_FLOATS if dtype.kind == "f" else _INTEGERS)[dtype.itemsize]


def in_memory(dtypes):
    """The dtypes of elements as kernels load and store them: those of bool arrays are bytes."""
    return {name: np.dtype("u1") if np.dtype(each).kind == "b" else each for name, each in dtypes.items()}


def bools_of(dtypes):
    """The arrays whose elements are bools."""
    return frozenset(name for name, each in dtypes.items() if np.dtype(each).kind == "b")


def worst(dtype, op):
    """Return what no value is worse than, of "max" and "min"; else 0."""
    if not op:
        return 0
    low, high = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return low if op == "max" else high


def constant(dtype, value):
    """LLVM constant of a dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return ir.Constant(ir_type(dtype), float(dtype.type(value)))
    if dtype.kind == "c":
        number, kind = dtype.type(value), ir_type(dtype)
        parts = zip(kind.elements, (number.real, number.imag), strict=True)
        return ir.Constant(kind, [ir.Constant(each, float(part)) for each, part in parts])
    bits = int(value)
    if dtype.kind == "u" and bits > np.iinfo(dtype).max // 2:
        bits -= 2 ** (8 * dtype.itemsize)  # LLVM's integers have no sign; literals are two's complement
    return ir.Constant(ir_type(dtype), bits)


class Typed:
    """A value of one known type.

    Attributes
    ----------
    type : Type
    const : int, float, bool or None
        The value, for a Python number known at compile time.
    low, high : int
        Bounds that hold in every point, for a Python int.
    """

    __slots__ = ("_ir", "const", "high", "low", "type")

    def __init__(self, kind, value=None, const=None, low=INT64_MIN, high=INT64_MAX):
        self.type = kind
        self.const = const
        self._ir = value
        whole = const is not None and not kind.is_float and not kind.is_complex
        self.low, self.high = (const, const) if whole else (low, high)

    @property
    def ir(self):
        """The LLVM value."""
        if self._ir is None:
            if self.type.is_int and not INT64_MIN <= self.const <= INT64_MAX:
                raise Unsupported(f"integer {self.const} is beyond 64 bits and")
            self._ir = constant(self.type.dtype, self.const)
        return self._ir

    @property
    def magnitude(self):
        """Bound of the absolute value of a Python int."""
        return max(abs(self.low), abs(self.high))


class Value:
    """A value of one or several possible types.

    Attributes
    ----------
    options : tuple of Typed
        One for each type.
    tag : LLVM i8 or None
        Position of the option that holds; None for one option.
    """

    __slots__ = ("options", "tag")

    def __init__(self, options, tag=None):
        self.options = tuple(options)
        self.tag = tag

    @property
    def single(self):
        return len(self.options) == 1

    @property
    def only(self):
        assert self.single
        return self.options[0]
