"""Numbers that are known only when a program runs, and what a script decides by them while it is planned."""

from __future__ import annotations

import ast
import functools
import linecache
import math
import os
import sys
from typing import Any

import numpy as np

from tilewave import notices, units

#: Decisions at one line, at most: a loop that does not end by them is ended.
MOST_ROUNDS = 10_000


class Endless(BaseException):
    """Ends a script whose loop goes on by values that are not known. No Exception, so that handlers let it pass."""


class Decisions:
    """Hold what a script decides by unknown numbers: so that each such loop makes a number of rounds.

    A loop ``while norm > eps`` goes on for `rounds` rounds, as does ``while True`` with ``if norm < eps: break``. A
    loop over a range ends by itself, and is left before only where `rounds` is given. Whatever else is asked is false,
    so often, and then true; an assertion holds.

    Attributes
    ----------
    rounds : int or None
        As the user has given it. None: 1, and loops over ranges are not left.
    made : dict
        From line to what was assumed there.
    unknown : dict
        Names of what was not known, as keys.
    lines : set of (str, int)
        Those that have made calls: whether a loop has made its first round by values that are known.
    """

    def __init__(self, rounds: int | None = None) -> None:
        self.rounds = rounds
        self.made: dict[str, str] = {}
        self.unknown: dict[str, None] = {}
        self.lines: set[tuple[str, int]] = set()
        self._counts: dict[tuple[str, int], int] = {}
        self._entered: dict[tuple[str, int], bool] = {}

    def decide(self) -> bool:
        """The answer to a comparison in the line that runs."""
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename.startswith(notices.HERE):
            frame = frame.f_back
        if frame is None:
            return False
        file, line = frame.f_code.co_filename, frame.f_lineno
        kind, inverted, text, body = _kind(file, line, len(linecache.getlines(file)))
        count = self._counts[file, line] = self._counts.get((file, line), 0) + 1
        if count > MOST_ROUNDS:
            raise Endless(f"{os.path.basename(file)}:{line}")
        rounds = 1 if self.rounds is None else self.rounds
        counted = f"{units.count(rounds, 'round')} {'are' if rounds != 1 else 'is'} counted"
        if kind == "while":
            begun = any(at in self.lines for at in ((os.path.basename(file), k) for k in body))
            if count == 1:
                self._entered[file, line] = begun
            answer, said = count <= rounds - self._entered[file, line], counted
        elif kind == "assert":
            answer, said = True, "taken to hold"
        elif kind == "break in for" and self.rounds is None:
            answer, said = False, "taken to be false: all rounds of the loop are counted, the most there can be"
        elif kind.startswith("break"):
            answer, said = count >= rounds, counted
        else:
            answer, said = (
                count > rounds,
                f"taken to be false {'once' if rounds == 1 else f'{rounds} times'}, then true",
            )
        self.made[f"{os.path.basename(file)}:{line}"] = f"`{text}`: {said}"
        return answer != inverted


@functools.lru_cache(1024)
def _kind(file, line, _lines):
    """(what is decided in a line, whether by a `not`, its text, the lines of its loop)."""
    text = linecache.getline(file, line).strip()
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return "other", False, text, ()
    inner, loops = None, []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno:
            if isinstance(node, ast.While | ast.For):
                loops.append(node)
            if inner is None or node.lineno >= inner.lineno:
                inner = node
    test = getattr(inner, "test", None)
    if test is None or not test.lineno <= line <= test.end_lineno:
        return "other", False, text, ()
    negations = sum(isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not) for n in ast.walk(test))
    inverted = bool(negations % 2)
    if isinstance(inner, ast.While):
        return "while", inverted, text, range(inner.lineno, inner.end_lineno + 1)
    if isinstance(inner, ast.Assert):
        return "assert", inverted, text, ()
    leaves = any(isinstance(node, ast.Break | ast.Return) for each in inner.body for node in ast.walk(each))
    if isinstance(inner, ast.If) and leaves and loops:
        last = max(loops, key=lambda node: node.lineno)
        return ("break in for" if isinstance(last, ast.For) else "break in while"), inverted, text, ()
    return "other", inverted, text, ()


#: What an unknown number may be combined with: the result is not known, either.
NUMBERS = (int, float, complex, np.generic)


def plain(value: Any) -> Any:
    """Return NaN in place of an unknown number, also in a dict by name: for what takes numbers of given types."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return math.nan if isinstance(value, Unknown) else value


class Unknown(float):
    """A number that is not known: NaN for whoever looks, and what is computed of it is not known, either."""

    __slots__ = ("_decisions",)

    def __new__(cls, decisions: Decisions) -> Unknown:
        self = super().__new__(cls, "nan")
        self._decisions = decisions
        return self

    def _same(self, *others: Any) -> Unknown:
        """Itself, with other numbers; arrays, fields and matrices know what they are with a number."""
        return self if all(isinstance(each, NUMBERS) for each in others) else NotImplemented

    def _decided(self, *_: Any) -> bool:
        return self._decisions.decide()

    def __int__(self) -> int:
        return 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """NumPy's functions of unknown numbers and others."""
        if any(np.ndim(each) for each in inputs):
            return getattr(ufunc, method)(*map(plain, inputs), **keywords)
        if ufunc in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal):
            return self._decided()
        return self

    def item(self) -> Unknown:
        """Itself, as NumPy's scalars are asked for Python's numbers."""
        return self

    def __repr__(self) -> str:
        return "unknown"

    def __divmod__(self, _: Any) -> tuple[Unknown, Unknown]:
        return self, self

    __index__ = __floor__ = __ceil__ = __trunc__ = __int__
    __rdivmod__ = __divmod__
    __str__ = __repr__
    __hash__ = float.__hash__
    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _decided
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _same
    __pow__ = __rpow__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __neg__ = __pos__ = __abs__ = __round__ = (
        conjugate
    ) = _same
