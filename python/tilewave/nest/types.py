"""Types of the values in a body, by NumPy's promotion rules.

A value is a Python number ("weak": it does not widen a NumPy operand), a NumPy scalar, or a
zero-dimensional array (what ``np.where`` returns). The type of a result is found by asking NumPy
for the result of the same operation on sample values, so the rules are NumPy's by construction.
"""

import functools
import operator
from dataclasses import dataclass

import numpy as np

from tilewave.dtypes import ALL

PYTHON, SCALAR, ARRAY0 = "Python", "NumPy", "0-d array"

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}


class Unsupported(Exception):
    """An operation that has no exact translation; becomes a ConfigError with its place."""


@dataclass(frozen=True)
class Type:
    """Type of one value: where it comes from, and its dtype."""

    kind: str
    dtype: np.dtype

    @property
    def is_python(self):
        return self.kind == PYTHON

    @property
    def is_float(self):
        return self.dtype.kind == "f"

    @property
    def is_complex(self):
        return self.dtype.kind == "c"

    @property
    def is_bool(self):
        return self.dtype.kind == "b"

    @property
    def is_int(self):
        return self.dtype.kind in "iu"

    @property
    def bits(self):
        return 1 if self.is_bool else 8 * self.dtype.itemsize

    def __str__(self):
        if self.is_python:
            return f"Python {({'b': 'bool', 'i': 'int', 'f': 'float', 'c': 'complex'})[self.dtype.kind]}"
        return f"{self.kind} {self.dtype.name}"

    def sample(self):
        """A value of this type: one."""
        if self.is_python:
            return self.dtype.type(1).item()
        if self.kind == ARRAY0:
            return np.array(1, self.dtype)
        return self.dtype.type(1)


INT = Type(PYTHON, np.dtype("int64"))
FLOAT = Type(PYTHON, np.dtype("float64"))
BOOL = Type(PYTHON, np.dtype("bool"))
COMPLEX = Type(PYTHON, np.dtype("complex128"))

_PYTHON = {bool: BOOL, int: INT, float: FLOAT, complex: COMPLEX}


def int_range(dtype):
    """The least and the greatest number of an integer dtype."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def scalar(dtype):
    """The type of an element of an array."""
    return Type(SCALAR, np.dtype(dtype))


def type_of(value):
    """Type of a Python number, NumPy scalar or zero-dimensional array."""
    if type(value) in _PYTHON:
        return _PYTHON[type(value)]
    if isinstance(value, np.generic | np.ndarray):
        if value.dtype not in ALL:
            raise Unsupported(f"a result of dtype {value.dtype.name}")
        return Type(ARRAY0 if isinstance(value, np.ndarray) else SCALAR, value.dtype)
    raise Unsupported(f"a {type(value).__name__} result")


@functools.cache
def infer(function, *types):
    """Type of ``function`` applied to values of these types, as NumPy has it."""
    shown = " and ".join(map(str, types))
    try:
        with np.errstate(all="ignore"):
            return type_of(function(*(each.sample() for each in types)))
    except TypeError:
        taken = "numbers that it takes, as by int(x), float(x), abs(z) or z.real"
        raise Unsupported(f"NumPy and Python do not define it for {shown} (allowed: {taken})") from None
    except Unsupported as reason:
        raise Unsupported(f"{reason}, which NumPy gives for {shown}") from None
