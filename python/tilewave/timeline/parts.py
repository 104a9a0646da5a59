"""Where the time of a run went, as it was predicted or measured."""

from __future__ import annotations

import dataclasses
import operator
from typing import TYPE_CHECKING, Any

from tilewave.errors import ConfigError
from tilewave.timeline.timeline import PART_NAMES, Timeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewave.annotations import FilePath

#: The parts that make up the total, and what they are called in tables.
PARTS = {name: label for name, label in PART_NAMES.items() if name != "total_s"}


@dataclasses.dataclass(frozen=True)
class Parts:
    """Seconds, averages over all lanes; the parts add up to ``total_s``.

    Attributes
    ----------
    total_s : float
        From the first lane's start to the last one's end.
    fill_s : float
        Before a lane's first tile.
    compute_s, pack_s, post_s : float
        Tiles; copies between arrays and messages; posting, and between steps.
    wait_s, hand_over_s : float
        For messages, and for other lanes of the rank, after the first tile.
    drain_s : float
        After a lane's end until the last one's.
    """

    total_s: float
    fill_s: float
    compute_s: float
    pack_s: float
    post_s: float
    wait_s: float
    hand_over_s: float
    drain_s: float

    @classmethod
    def of(cls, core: Any) -> Parts:
        """From the core's."""
        return cls(*_ALL(core))


_ALL = operator.attrgetter(*(field.name for field in dataclasses.fields(Parts)))


@dataclasses.dataclass(frozen=True)
class Simulated:
    """A prediction's timeline that is there."""

    core: Any

    def __call__(self) -> Any:
        return self.core


@dataclasses.dataclass(frozen=True)
class Face:
    """Hold what goes from one rank to the next in one direction of the process grid, over a whole run.

    Attributes
    ----------
    direction : tuple of int
        Steps in the process grid from the sender to the receiver.
    messages : int
    bytes : int
        Of all messages.
    run_bytes : int
        Bytes that are contiguous in the array.
    packed : bool
        Goes through a buffer; else straight from the array.
    copy_s : float
        Seconds to pack and to unpack all, by the measured cost of such runs.
    transfer_s : float
        Seconds of all messages one after the other, posting included.
    """

    direction: tuple[int, ...]
    messages: int
    bytes: int
    run_bytes: int
    packed: bool
    copy_s: float
    transfer_s: float

    @classmethod
    def of(cls, core: Any) -> Face:
        return cls(tuple(core.direction), *(getattr(core, f.name) for f in dataclasses.fields(cls)[1:]))


class Predicted:
    """Hold what a plan is predicted to take; it cannot be changed.

    Attributes
    ----------
    time_s : float
    parts : Parts
    """

    def __init__(
        self, time_s: float, parts: Parts, simulate: Callable[[], Any] | None = None, faces: Any = None
    ) -> None:
        self._time_s, self._parts, self._simulate, self._faces = time_s, parts, simulate, faces

    @property
    def time_s(self) -> float:
        """Seconds."""
        return self._time_s

    @property
    def parts(self) -> Parts:
        """Where they go."""
        return self._parts

    @property
    def timeline(self) -> Timeline:
        """Return what every lane does when, of all ranks; simulated anew each time.

        Raises
        ------
        ConfigError
            For a plan from a file or a pickle: it does not say of what.
        """
        if self._simulate is None:
            raise ConfigError("this prediction was read from a file, which has no timeline; plan again for one")
        return Timeline(self._simulate(), "predicted")

    @property
    def faces(self) -> list[Face]:
        """Return what a rank in the middle of the process grid sends in a run, a `Face` for each direction.

        Empty for one rank. Costs as much as making one rank's schedule.
        """
        if callable(self._faces):
            self._faces = [Face.of(core) for core in self._faces()]
        return list(self._faces or ())

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle cannot keep what simulates a prediction; a timeline that is there stays.
        simulated = self._simulate if isinstance(self._simulate, Simulated) else None
        return Predicted, (self.time_s, self.parts, simulated, self.faces)

    def __copy__(self) -> Predicted:
        return self

    def __deepcopy__(self, memo: Any) -> Predicted:
        return self

    def __repr__(self) -> str:
        return f"Predicted(time_s={self.time_s:.6g}, parts={self.parts})"


class WithComparison:
    """A report that has a `timeline`, and in `_expected` what was predicted, or None."""

    timeline: Timeline
    _expected: Predicted | None

    def save_timeline(self, path: FilePath) -> None:
        """Write what was predicted above what was measured, lane by lane; nothing on ranks other than 0.

        Parameters
        ----------
        path : str or path
            ``.png``; ``.html``: the picture with the parts of both.

        Raises
        ------
        ConfigError
            For another ending, or where nothing was predicted or recorded.
        """
        if len(self.timeline.events) == 0:
            return
        if self._expected is None:
            raise ConfigError(
                "timeline: this report has no prediction; allowed: timeline.save, which shows what was measured"
            )
        self.timeline.save_comparison(path, self._expected.timeline)
