"""This file has what the names in a body stand for: functions, constants, exceptions."""

from __future__ import annotations

import ast
import builtins
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewave.dtypes import ALL

#: NumPy functions of one argument that a body may call.
NUMPY_UNARY = (
    "sqrt exp exp2 expm1 log log2 log10 log1p cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh "
    "arctanh absolute fabs floor ceil trunc rint sign square reciprocal isnan isinf isfinite conjugate"
).split()

#: NumPy functions of two arguments.
NUMPY_BINARY = ("arctan2 hypot minimum maximum fmin fmax copysign power remainder fmod").split()

#: Type constructors.
NUMPY_TYPES = [dtype.name for dtype in ALL]

#: Functions of the math module with one argument.
MATH_UNARY = (
    "sqrt exp expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh "
    "fabs floor ceil trunc isnan isinf isfinite"
).split()

#: Functions of the math module with two arguments.
MATH_BINARY = "atan2 copysign fmod pow".split()

PYTHON = {
    "abs": (1, 1),
    "int": (1, 1),
    "float": (1, 1),
    "complex": (1, 2),
    "min": (2, None),
    "max": (2, None),
    "round": (1, 2),
    "pow": (2, 3),
}


def array_power(base: Any, exponent: Any) -> Any:
    """Return ``np.power(base, exponent)`` as an array has it that has an exponent for each element: squares, roots and
    reciprocals are powers like others. Bodies of users do not call it.
    """
    return np.power(np.stack([base, base]), np.stack([exponent, exponent]))[0]


def _table():
    """Map from a function's identity to its key and the number of arguments it takes."""
    table = {}
    for name in NUMPY_UNARY:
        table[getattr(np, name)] = (f"np.{name}", 1, 1)
    for name in NUMPY_BINARY:
        table[getattr(np, name)] = (f"np.{name}", 2, 2)
    for name in NUMPY_TYPES:
        table[getattr(np, name)] = (f"np.{name}", 1, 1)
    for name in ("real", "imag"):
        table[getattr(np, name)] = (f"np.{name}", 1, 1)
    table[array_power] = ("np.array_power", 2, 2)
    table[np.where] = ("np.where", 3, 3)
    table[np.clip] = ("np.clip", 3, 3)
    table[np.round] = table[np.around] = ("np.round", 1, 2)
    for name in MATH_UNARY:
        table[getattr(math, name)] = (f"math.{name}", 1, 1)
    for name in MATH_BINARY:
        table[getattr(math, name)] = (f"math.{name}", 2, 2)
    for name, (least, most) in PYTHON.items():
        table[getattr(builtins, name)] = (name, least, most)
    return table


FUNCTIONS = _table()

#: What stands in bodies and loops for functions of arrays.
OVER_ELEMENTS = {
    **dict.fromkeys(("sum", "dot", "vdot", "inner", "matmul"), "sum(A[i, k] * x[k] for k in range(n))"),
    **dict.fromkeys(("max", "amax", "nanmax"), "max(A[i, k] for k in range(n))"),
    **dict.fromkeys(("min", "amin", "nanmin"), "min(A[i, k] for k in range(n))"),
    **dict.fromkeys(("any", "all", "mean", "argmax", "argmin", "multiply", "add", "subtract", "divide"), "a for loop"),
    **dict.fromkeys(("zeros", "ones", "empty", "full", "array", "zeros_like"), "an array made before the loops"),
}

ALLOWED_FUNCTIONS = [
    *PYTHON,
    *(
        f"np.{name}"
        for name in sorted(
            [*NUMPY_UNARY, *NUMPY_BINARY, *NUMPY_TYPES, "where", "abs", "mod", "clip", "round", "conj", "real", "imag"]
        )
    ),
    *(f"math.{name}" for name in sorted(MATH_UNARY + MATH_BINARY)),
]


def allowed_functions(text):
    """The functions that a body may call, as text: first those whose names are nearest to one that it may not."""
    import difflib  # for errors alone

    name = text.rpartition(".")[2].lower()
    names = [each.rpartition(".")[2] for each in ALLOWED_FUNCTIONS]
    order = {found: k for k, found in enumerate(difflib.get_close_matches(name, dict.fromkeys(names), 3, 0.6))}
    # Of one name in two modules, the one of the module that was meant.
    nearest = sorted(
        (order[short], each.rpartition(".")[0] != text.rpartition(".")[0], each)
        for each, short in zip(ALLOWED_FUNCTIONS, names, strict=True)
        if short in order
    )
    nearest = [each for *_, each in nearest]
    over = OVER_ELEMENTS.get(name)
    hint = f"in place of a function of arrays {over}; " if over else ""
    if "random" in text.split("."):
        hint = "numbers that are drawn before, r = rng.random(n) with r[i] here; "
    return (
        f"{hint}{', '.join(dict.fromkeys([*nearest, *PYTHON]))}, functions of numbers of NumPy and math (listed in the "
        "guide's page on bodies); plain functions of the same module, and those under @tilewave.inline"
    )


def number_in_text(node: ast.Call, function: Any) -> float | None:
    """Return the value of ``float("inf")`` and its like, `function` being what is called; None for another call."""
    given = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if function is not float or not isinstance(given, ast.Constant) or not isinstance(given.value, str):
        return None
    try:
        return float(given.value)
    except ValueError:
        return None


#: Result of a look-up of a name that does not exist (yet).
MISSING = object()


def is_constant(value):
    """Return whether a body may use this object as a constant number."""
    if isinstance(value, np.generic):
        return value.dtype in ALL
    return type(value) in (bool, int, float, complex)


class Scope:
    """The names that a function sees outside itself, as they are now."""

    def __init__(self, function: Callable[..., Any]) -> None:
        free = function.__code__.co_freevars
        self._cells = dict(zip(free, function.__closure__ or (), strict=True))
        self._globals = function.__globals__

    def is_of_module(self, function: Callable[..., Any]) -> bool:
        """Return whether a function was defined in the same module."""
        return function.__globals__ is self._globals

    def lookup(self, name: str) -> Any:
        """The object a name stands for: closure, then globals, then builtins."""
        if name in self._cells:
            try:
                return self._cells[name].cell_contents
            except ValueError:
                return MISSING
        found = self._globals.get(name, MISSING)
        return getattr(builtins, name, MISSING) if found is MISSING else found

    def resolve(self, node: ast.AST) -> Any:
        """The object that a name or a dotted name stands for, or MISSING."""
        if isinstance(node, ast.Name):
            return self.lookup(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            if isinstance(owner, types.ModuleType):
                return getattr(owner, node.attr, MISSING)
        return MISSING

    def function(self, node: ast.AST) -> tuple[str, int, int | None] | None:
        """(key, least, most number of arguments) of a supported function, else None."""
        found = self.resolve(node)
        try:
            return FUNCTIONS.get(found)
        except TypeError:  # not hashable, so no function
            return None

    def exception(self, node: ast.AST) -> str | None:
        """Name of the exception class that a node names, else None."""
        found = self.resolve(node)
        if isinstance(found, type) and issubclass(found, Exception):
            return found.__name__
        return None
