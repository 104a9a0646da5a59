"""This file has what steps of a schedule are of: regions of arrays, messages, signals."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tilewave import _core
from tilewave.errors import ConfigError, shown

if TYPE_CHECKING:
    import numpy as np


@dataclasses.dataclass(frozen=True)
class Region:
    """A box of an array: ``A[0:4, 2]``; an integer stands for a slice of one."""

    array: ArrayOfSchedule
    lo: tuple[int, ...]
    hi: tuple[int, ...]

    def _core(self):
        return _core.Region(self.array.number, (self.lo, self.hi))

    def __repr__(self) -> str:
        return f"{self.array.name}[{', '.join(f'{l}:{h}' for l, h in zip(self.lo, self.hi, strict=True))}]"


class ArrayOfSchedule:
    """An array that a builder has declared; subscripts give regions of it, in global indices.

    Attributes
    ----------
    name : str
    shape : tuple of int
    dtype : numpy.dtype
    storage, owned : Region
        What this rank stores of it, and what it owns.
    combine : str or None
        What combine steps do with two values of it.
    separate : bool
    """

    storage: Any
    owned: Any
    combine: str | None

    number: int
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, number: int, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.number, self.name, self.shape, self.dtype = number, name, shape, dtype
        self.storage = self.owned = self.combine = None
        self.separate = False

    def __getitem__(self, subscripts: Any) -> Region:
        given = subscripts if isinstance(subscripts, tuple) else (subscripts,)
        if len(given) > len(self.shape):
            raise ConfigError(f"array {self.name!r}: {len(given)} subscripts were given; it has {len(self.shape)}")
        pairs = [self._range(s, extent) for s, extent in zip(given, self.shape, strict=False)]
        pairs += [(0, extent) for extent in self.shape[len(given) :]]
        return Region(self, tuple(lo for lo, _ in pairs), tuple(hi for _, hi in pairs))

    def _range(self, subscript, extent):
        try:
            if isinstance(subscript, slice):
                if subscript.step not in (None, 1):
                    raise TypeError
                lo = 0 if subscript.start is None else int(subscript.start.__index__())
                hi = extent if subscript.stop is None else int(subscript.stop.__index__())
            else:
                lo = int(subscript.__index__())
                hi = lo + 1
        except (TypeError, AttributeError):
            raise ConfigError(
                f"array {self.name!r}: subscript {shown(subscript)} was given; "
                "allowed: integers, and slices without a step"
            ) from None
        if not 0 <= lo <= hi <= extent:
            raise ConfigError(
                f"array {self.name!r}: region [{lo}:{hi}] was given; allowed: within [0:{extent}], from low to high"
            )
        return lo, hi


@dataclasses.dataclass(frozen=True)
class MessageOfSchedule:
    """One message as its rank sees it; a builder's `send` and `receive` make it."""

    builder: Any
    number: int
    send: bool
    packed: bool


@dataclasses.dataclass(frozen=True)
class Signal:
    """A lane's counter has this value; another lane can wait for it."""

    lane: Any
    count: int


def integer(what, value):
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise ConfigError(f"{what}: given {shown(value)}; allowed: an integer") from None


def one_run(region):
    """Return whether the region is one run of memory in what the rank stores, row by row."""
    partial = False  # a dimension further in is not whole
    storage = region.array.storage
    for lo, hi, first, end in reversed(list(zip(region.lo, region.hi, storage.lo, storage.hi, strict=True))):
        if partial and hi - lo > 1:
            return False
        partial = partial or (lo, hi) != (first, end)
    return True
