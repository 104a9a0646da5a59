"""Values that users edit: an attribute that there is none of is an error, not a new attribute."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import TYPE_CHECKING, Any

from tilewave.errors import ConfigError


class NoSuchAttribute(ConfigError, AttributeError):
    """An attribute was set that a value has not."""


class Value:
    """Base of dataclasses: only what they declare can be set.

    Raises
    ------
    NoSuchAttribute
        A ConfigError and an AttributeError, with the nearest name first.
    """

    if TYPE_CHECKING:  # attributes that class decorators add: choices of plans, numbers of machines

        def __getattr__(self, name: str) -> Any: ...

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dataclass_fields__:
            allowed = allowed_names(name, self.__dataclass_fields__)
            raise NoSuchAttribute(f"{type(self).__name__} has no attribute {name!r}; allowed: {allowed}")
        object.__setattr__(self, name, value)


def allowed_names(name, names):
    """Names as the text of an error about another name lists them: the nearest first, if one is near."""
    import difflib  # for errors alone

    near = difflib.get_close_matches(name, names, 1, 0.5)
    meant = f". Was {near[0]!r} meant?" if near else ""
    return ", ".join(near + [other for other in names if other not in near]) + meant


def plain_copy(data):
    """A deep copy of dicts and lists of plain data."""
    if isinstance(data, dict):
        return {key: plain_copy(value) for key, value in data.items()}
    return [plain_copy(value) for value in data] if isinstance(data, list) else data


def with_declared(word, declared, needed=()):
    """Class decorator, below `dataclasses.dataclass`: an attribute for each value that the core declares.

    Parameters
    ----------
    word : str
        A line of the class's docstring, in place of which the attributes are listed.
    declared : sequence
        As the core has them: name, default, what is allowed or the kind of range, documentation.
    needed : sequence of str
        Those that have no default.
    """

    def decorate(cls):
        kinds = {name: type(default) for name, default, *_ in declared}
        others = dict(cls.__annotations__)
        first = {name: kind for name, kind in others.items() if name not in vars(cls)}
        cls.__annotations__ = first | kinds | others
        lines = []
        for name, default, allowed, doc in declared:
            if name not in needed:
                setattr(cls, name, default if kinds[name] is not list else dataclasses.field(default_factory=list))
            kind = "tuple of int" if kinds[name] is tuple else kinds[name].__name__
            lines.append(f"{name} : {kind}\n    {doc}" + (f" Allowed: {allowed}." if word == "CHOICES" else ""))
        cls.__doc__ = cls.__doc__.replace(f"{word}\n", textwrap.indent("\n".join(lines), "    ").lstrip() + "\n")
        return cls

    return decorate
