"""The ranks of a context that are here: what they call runs. `PlannedCalls` stands for ranks that are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tilewave.context.collective import call_here
from tilewave.notices import warn

if TYPE_CHECKING:
    from collections.abc import Callable

    R = TypeVar("R")


class RanksHere:
    """What a context does with calls, arrays and values: they are real.

    Attributes
    ----------
    number : int
        Ranks that are here.
    lanes : int or None
        Lanes that measure rates for those that are planned. None: the lanes themselves.
    quick : bool
        Whether a call that was prepared may go to the core at once.
    """

    lanes: int | None = None

    def __init__(self, core: Any, quick: bool) -> None:
        self.number, self.quick, self._rank = core.size, quick, core.rank

    def run(self, work: Callable[[], R], planned: Callable[[Any], R]) -> R:
        """Return what the work gives; of ranks that are not here, what `planned` gives for their `PlannedCalls`."""
        return work()

    call = staticmethod(call_here)

    def exchanges(self, fields: Any, axes: int) -> None:
        """Halos of fields are about to be updated, along so many axes at once."""

    def holds(self, array: Any) -> None:
        """A field or a matrix that has been made."""

    def fills(self, array: Any) -> bool:
        """Return whether a field that has been made is given its values."""
        return True

    def warn(self, text: str) -> None:
        """Warn on rank 0 of how a run goes."""
        if self._rank == 0:
            warn(text)
