"""Parameters that several functions share are declared once, as the keys of a class."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    F = TypeVar("F", bound=Callable[..., Any])

#: Defaults of keys; others are None.
DEFAULTS = {"algorithm": "auto", "trans_a": "N", "trans_b": "N", "wait": True, "start": True, "explain": False}


def signature_with(function: Callable[..., Any], choices: type) -> inspect.Signature:
    """Return the signature of a function that has ``**choices``, with all keys of a `TypedDict` in their place."""
    signature, kind = inspect.signature(function), inspect.Parameter.KEYWORD_ONLY
    own, more = list(signature.parameters.values())[:-1], []
    for name, type_of in choices.__annotations__.items():
        type_of = getattr(type_of, "__forward_arg__", type_of)
        more.append(inspect.Parameter(name, kind, default=DEFAULTS.get(name), annotation=type_of))
    at = len(own) - (own[-1].name == "context")
    return signature.replace(parameters=[*own[:at], *more, *own[at:]])


def refuse_unknown(function: Callable[..., Any], names: Iterable[str], allowed: Container[str]) -> None:
    """Raise what Python raises for a name that a function does not have; the error has it as `unknown`."""
    if unknown := sorted(name for name in names if name not in allowed):
        error: Any = TypeError(f"{function.__name__}() got an unexpected keyword argument {unknown[0]!r}")
        error.unknown = unknown[0]
        raise error


def takes(choices: type) -> Callable[[F], F]:
    """Decorate a function that has ``**choices``: it is given all keys of a `TypedDict`, and its signature shows them.

    Other names are refused.
    """
    defaults = {name: DEFAULTS.get(name) for name in choices.__annotations__}

    def decorate(function):
        signature = signature_with(function, choices)

        @functools.wraps(function)
        def call(*arguments, **keywords):
            refuse_unknown(function, keywords, signature.parameters)
            return function(*arguments, **{**defaults, **keywords})

        call.__signature__ = signature
        return call

    return decorate
