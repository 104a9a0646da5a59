"""Parameters that several functions share are declared once, as the keys of a class."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    F = TypeVar("F", bound=Callable[..., Any])

#: Defaults of keys; others are None.
DEFAULTS = {"algorithm": "auto", "trans_a": "N", "trans_b": "N"}


def takes(choices: type) -> Callable[[F], F]:
    """Decorate a function that has ``**choices``: it is given all keys of a `TypedDict`, and its signature shows them.

    Other names are refused, as Python refuses them.
    """

    def decorate(function):
        signature, kind = inspect.signature(function), inspect.Parameter.KEYWORD_ONLY
        own = list(signature.parameters.values())[:-1]
        defaults = {name: DEFAULTS.get(name) for name in choices.__annotations__}
        types = {name: getattr(each, "__forward_arg__", each) for name, each in choices.__annotations__.items()}
        more = [inspect.Parameter(name, kind, default=defaults[name], annotation=types[name]) for name in defaults]
        at = len(own) - (own[-1].name == "context")
        signature = signature.replace(parameters=[*own[:at], *more, *own[at:]])

        @functools.wraps(function)
        def call(*arguments, **keywords):
            if unknown := keywords.keys() - signature.parameters.keys():
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {min(unknown)!r}")
            return function(*arguments, **{**defaults, **keywords})

        call.__signature__ = signature
        return call

    return decorate
