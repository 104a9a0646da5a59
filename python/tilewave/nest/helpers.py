"""Functions that a body calls, whose statements are computed in its place."""

from __future__ import annotations

import ast
import types
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from tilewave import units
from tilewave.errors import of_program
from tilewave.nest.names import Scope, is_constant
from tilewave.nest.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    F = TypeVar("F", bound=Callable[..., Any])

#: Calls that are put in place of a body, those of functions that call others counted each time.
MOST_CALLS = 1000

_known = weakref.WeakKeyDictionary()
_marked = weakref.WeakSet()


def inline(function: F) -> F:
    """Let bodies of nests call a function: its statements are computed in the place of the call.

    A body may call plain functions of its module as they are; this decorator is for those of other modules. The
    function stays one that Python can call. It takes numbers and returns one number or several (``return x, y``,
    which the body unpacks); it may have local names, ``if``, ``assert``, ``raise``, several ``return``, defaults that
    are numbers, numbers from outside, calls of others. It has no arrays, no loops, and does not call itself.

    Parameters
    ----------
    function : function
        Written with ``def``.

    Returns
    -------
    function
        The same.

    Raises
    ------
    ConfigError
        Naming file, line and column of what is not supported.

    Examples
    --------
    >>> @inline
    ... def limited(x, most=1.0):
    ...     return most if x > most else x
    """
    with of_program():
        Helper.of(function)
    _marked.add(function)
    return function


def helper_of(found, scope):
    """The `Helper` of an object that a name of a body stands for; None where the body may not call it."""
    if isinstance(found, types.FunctionType) and (found in _marked or scope.is_of_module(found)):
        return Helper.of(found)
    return None


class Helper:
    """A function that may be called from bodies.

    Attributes
    ----------
    name : str
    source : Source
    scope : Scope
    parameters : tuple of str
        In order; those from number ``positional`` on are given by name only, those before number ``unnamed`` never by
        name.
    defaults : dict
        From parameters to numbers.
    count : int
        How many numbers it returns together; 0: one that is no tuple.
    """

    @classmethod
    def of(cls, function):
        """The helper of a function, read when it is first asked for."""
        if not isinstance(function, types.FunctionType):
            return cls(function)  # which says what is wrong
        if function not in _known:
            _known[function] = cls(function)
        return _known[function]

    def __init__(self, function):
        self.source = Source(function, "@inline")
        self.name = function.__name__
        self.scope = Scope(function)
        given = self.source.tree.args
        for unsupported in (given.vararg, given.kwarg):
            if unsupported is not None:
                raise self.source.error(
                    unsupported,
                    "*arguments and **keywords of a function that a body calls are not supported",
                    "plain parameters",
                )
        positional = [argument.arg for argument in (*given.posonlyargs, *given.args)]
        self.unnamed, self.positional = len(given.posonlyargs), len(positional)
        self.parameters = (*positional, *(argument.arg for argument in given.kwonlyargs))
        values = function.__defaults__ or ()
        self.defaults = {
            **dict(zip(positional[self.positional - len(values) :], values, strict=True)),
            **(function.__kwdefaults__ or {}),
        }
        for name, value in self.defaults.items():
            if not is_constant(value):
                raise self.source.error(
                    self.source.tree,
                    f"default of {name!r}, {type(value).__name__}, is not supported",
                    "numbers: int, float, bool and NumPy scalars",
                )
        self.count = self._returned()

    def _returned(self):
        returns = sorted(
            (node for node in ast.walk(self.source.tree) if isinstance(node, ast.Return)), key=lambda node: node.lineno
        )
        if not returns:
            raise self.source.error(
                self.source.tree, "a function that a body calls has to return a number", "return x, or return x, y"
            )
        counts = [len(node.value.elts) if isinstance(node.value, ast.Tuple) else 0 for node in returns]
        for node, count in zip(returns, counts, strict=True):
            if count != counts[0]:
                raise self.source.error(
                    node,
                    f"returns {count or 'no'} values together here and {counts[0] or 'none'} before",
                    "as many in every return",
                )
        return counts[0]

    @property
    def body(self):
        """The statements, without the text that describes them."""
        return without_docstring(self.source.tree.body)

    def bind(self, source, call):
        """(parameter, syntax node or default) of each parameter, in the order in which Python computes them.

        Raises
        ------
        ConfigError
            Naming the place of the call in `source`.
        """
        allowed = f"{self.name}({', '.join(self.parameters)})"
        if len(call.args) > self.positional or any(isinstance(each, ast.Starred) for each in call.args):
            raise source.error(call, f"{self.name} given {units.count(len(call.args), 'positional argument')}", allowed)
        bound = list(zip(self.parameters, call.args, strict=False))
        for keyword in call.keywords:
            if keyword.arg not in self.parameters[self.unnamed :] or keyword.arg in dict(bound):
                raise source.error(
                    call,
                    f"{self.name} given {keyword.arg}=" if keyword.arg else f"{self.name} given **keywords",
                    allowed,
                )
            bound.append((keyword.arg, keyword.value))
        given = dict(bound)
        for name in self.parameters:
            if name not in given:
                if name not in self.defaults:
                    raise source.error(call, f"{self.name} needs a value for {name!r}", allowed)
                bound.append((name, self.defaults[name]))
        return bound


def without_docstring(statements):
    """The statements of a function that do something."""
    first = statements[0]
    describes = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return list(statements[1:] if describes else statements)
