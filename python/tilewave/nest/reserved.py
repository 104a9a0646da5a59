"""Names that a nest's arrays and scalars cannot have: `run` and the like have parameters of these names."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    F = TypeVar("F", bound=Callable[..., Any])

#: The names, in order; the values say nothing.
RESERVED: dict[str, None] = {}


def takes_nests(function: F) -> F:
    """Decorator of a function whose keywords are a nest's arrays and scalars: the names of its parameters are
    reserved.
    """
    parameters = inspect.signature(function).parameters.values()
    RESERVED.update((p.name, None) for p in parameters if p.kind is not p.VAR_KEYWORD)
    return function
