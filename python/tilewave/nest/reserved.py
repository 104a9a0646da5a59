"""Names that a nest's arrays and scalars cannot have, as `run` and `plan` take keywords of these names."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

#: Keywords that coming versions of `run` take.
LATER = ("times", "until")
_taken = {}


def reserve(names, meaning):
    """Reserve names for a meaning; what is reserved already keeps its own."""
    for name in names:
        _taken.setdefault(name, meaning)


def takes_nests(function: F) -> F:
    """Decorator of a function whose keywords are a nest's arrays and scalars: its own parameters' names are
    reserved.
    """
    parameters = inspect.signature(function).parameters.values()
    reserve((p.name for p in parameters if p.kind is not p.VAR_KEYWORD), "an argument of tilewave.run")
    return function


def reserved_names() -> dict[str, str]:
    """From each such name to what it means.

    Returns
    -------
    dict
    """
    return _taken | dict.fromkeys(LATER, "kept for a coming argument of tilewave.run")
