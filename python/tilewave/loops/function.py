"""``@loops``: a whole function with its loops as they stand."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from tilewave.errors import ConfigError, of_program, shown
from tilewave.loops.optional import OptionalArguments
from tilewave.loops.region_run import RegionRun
from tilewave.loops.rewrite import Finder, rewritten_function
from tilewave.loops.swaps import SwappedRun
from tilewave.nest.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


@overload
def loops(function: Callable[P, R], *, order: str = "exact") -> Loops[P, R]: ...


@overload
def loops(*, order: str = "exact") -> Callable[[Callable[P, R]], Loops[P, R]]: ...


def loops(function: Any = None, *, order: str = "exact") -> Any:
    """Compile the loops of a function over the elements of its arrays; all else stays Python.

    The function is the meaning: the result is that of the undecorated function, bit for bit, arrays are changed in
    place. Sums of floats that all points of a nest join are exact, however, in place of rounded at each step.

    Parameters
    ----------
    function : function
        Written with ``def``.
    order : str
        ``"loops"`` keeps the order of the loops for sums of floats, whose points then run one by one.

    Returns
    -------
    Loops
        Call it as the function.

    Raises
    ------
    ConfigError
        Naming file, line and column of a loop over elements that cannot be compiled: here, or at the first call where
        types decide.

    Examples
    --------
    >>> @loops
    ... def total(A, n):
    ...     s = 0.0
    ...     for i in range(n):
    ...         s += A[i]
    ...     return s
    """
    with of_program():
        if order not in ("exact", "loops"):
            raise ConfigError(f"order: given {shown(order)}; allowed: 'exact', 'loops'")
        return Loops(function, order) if function is not None else lambda function: loops(function, order=order)


class Loops(Generic[P, R]):
    """A function whose loops are compiled.

    Attributes
    ----------
    function : function
        As it was written: slow, and the definition.
    """

    function: Callable[P, R]

    def __init__(self, function: Callable[P, R], order: str = "exact") -> None:
        functools.update_wrapper(self, function)
        self.function, self._exact, self._source = function, order == "exact", Source(function, "@tw.loops")
        self._optional = OptionalArguments(function, self._source)
        self._last = _Reading(function, self._optional.source(self._source, frozenset()), self._exact)
        self._readings = {frozenset(): self._last}

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        with of_program():
            none = self._optional.none(arguments, keywords)
            if none not in self._readings:
                source = self._optional.source(self._source, none)
                self._readings[none] = _Reading(self.function, source, self._exact)
            self._last = self._readings[none]
            return self._last.call(arguments, keywords)

    def explain(self) -> str:
        """Return a text that lists the loops by lines, as the last call had them: as nests, or in order and why, or in
        Python and why.
        """
        name, file = self.function.__qualname__, self.function.__code__.co_filename
        return "\n".join([f"{name}, {file}:", *self._last.lines()])

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<loops {self.function.__qualname__}>"


class _Reading:
    """A function whose loops are found, and run where they are compiled.

    Parameters
    ----------
    function : function
    source : Source
    exact : bool
        Sums of floats are exact, in any order.
    """

    def __init__(self, function, source, exact):
        finder = Finder(source, function)
        statements = finder.rewritten(finder.body)
        self._runs = []
        for each in finder.found:  # inner ones first
            kind = SwappedRun if each.swap else RegionRun
            self._runs.append(kind(each, self._runs, exact))
        self._rewritten = rewritten_function(source, function, statements, self._runs)
        compiled = {id(node) for each in finder.found for node in ast.walk(each.node)}
        self._python = [(node.lineno, why) for node, why in finder.python if id(node) not in compiled]

    def call(self, arguments, keywords):
        """Call the function."""
        for each in self._runs:
            each.last = None
        try:
            return self._rewritten(*arguments, **keywords)
        finally:
            for each in self._runs:
                each.release()

    def lines(self):
        """Return lines about the loops in the last call."""
        runs = sorted(self._runs, key=lambda each: (each.found.node.lineno, -each.found.node.end_lineno))
        found = [(each.found.node.lineno, line) for each in runs for line in each.explain()]
        found = found or [(0, "no loops over arrays have run")]
        found += [(line, f"line {line}: Python: {why}") for line, why in self._python]
        return [line for _, line in sorted(found, key=lambda each: each[0])]
