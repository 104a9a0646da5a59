"""The value `Schedule`: what every rank does in a distributed computation, step by step."""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING

from tilewave import files
from tilewave.errors import ConfigError, shown
from tilewave.schedule import data, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, ClassVar

    from tilewave.annotations import FilePath

#: Of files: another number is another format.
VERSION = 4


class Schedule:
    """What each rank does, as lanes of plain steps; made by `tilewave.schedule`, `tilewave.build_schedule` or `load`.

    A schedule is a value: it can be printed, compared, saved, proved (`tilewave.check`), predicted (`tilewave.predict`)
    and, where it was built step by step, run (`tilewave.run_schedule`). ``print(s)`` shows the first steps of each
    lane, ``s.text(rank=0)`` all steps of a rank.

    Attributes
    ----------
    ranks : int
        That it is for.
    rank : int or None
        The rank whose part this is; None: it has the parts of all ranks.
    arrays : tuple of str
        Names.
    functions : tuple of str
        Names of the functions that its tasks call.
    note : str
        What else is to be known of it.
    """

    ranks: int
    rank: int | None
    functions: tuple[str, ...]
    note: str

    def __init__(
        self,
        cores: Mapping[int, Any],
        arrays: Iterable[Any],
        functions: Iterable[str] = (),
        calls: Any = None,
        rates: Any = None,
        note: str = "",
        combine: Mapping[str, str] | None = None,
        kernels: Iterable[Any] = (),
    ) -> None:
        """Of the core's schedules by rank, arrays as (name, shape or None, dtype or None), names of functions, and what
        they are; rates of kernels; by array what combine steps do; what nests call.
        """
        self._cores, self._arrays, self.functions = dict(cores), tuple(arrays), tuple(functions)
        self._calls, self._rates, self.note = calls, rates, note
        self._combine, self._kernels = dict(combine or {}), tuple(kernels)
        first = next(iter(self._cores.values()))
        self.ranks = first.ranks
        self.rank = first.rank if len(self._cores) < self.ranks else None
        self._violation = self._digest = self._names = None  # not looked for yet

    @property
    def arrays(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self._arrays)

    def name_of(self, number: int) -> str:
        """The name of an array by its number in messages and tasks."""
        return self._arrays[number][0] if 0 <= number < len(self._arrays) else str(number)

    def _functions(self):
        """What its tasks call; those of a file have only names."""
        if self.functions and not self._calls:
            raise ConfigError("append: a schedule from a file was given; allowed: one of tilewave.build_schedule")
        return self._calls or ()

    def _by_rank(self, of):
        return {rank: of(core) for rank, core in self._cores.items()}

    @property
    def steps(self) -> dict[int, int]:
        """dict: steps of all lanes, by rank."""
        return self._by_rank(lambda core: core.steps)

    @property
    def messages(self) -> dict[int, int]:
        """dict: messages that each rank sends."""
        return self._by_rank(lambda core: len(_sent(core)))

    @property
    def message_bytes(self) -> dict[int, int]:
        """dict: bytes that each rank sends."""
        return self._by_rank(lambda core: sum(message.bytes for message in _sent(core)))

    @property
    def memory_bytes(self) -> dict[int, int]:
        """dict: bytes of each rank's arrays, of what it stores of them, and of its staging buffers."""
        return self._by_rank(_memory_bytes)

    def text(self, rank: int | None = None) -> str:
        """All steps of a rank, or of all of them, a line each.

        Parameters
        ----------
        rank : int, optional

        Returns
        -------
        str

        Raises
        ------
        ConfigError
            For a rank whose part this is not.
        """
        if rank is not None and rank not in self._cores:
            allowed = ", ".join(map(str, self._cores))
            raise ConfigError(f"text: rank: given {shown(rank)}; allowed: {allowed}")
        return "\n".join(self._lines(self._cores if rank is None else [rank], None))

    def __str__(self) -> str:
        return "\n".join(self._lines(self._cores, text.MOST_STEPS))

    def _lines(self, ranks, most):
        what = f"schedule of {self.ranks} rank{'s' * (self.ranks != 1)}"
        yield what + (f", the part of rank {self.rank}" if self.rank is not None else "")
        if self.note:
            yield self.note
        for rank in ranks:
            yield from text.of_rank(self, rank, most)

    def __repr__(self) -> str:
        part = "" if self.rank is None else f", the part of rank {self.rank}"
        return f"<tilewave.Schedule of {self.ranks} ranks{part}: {sum(self.steps.values())} steps>"

    def __eq__(self, other: object) -> bool:
        return self._data() == other._data() if isinstance(other, Schedule) else NotImplemented

    __hash__: ClassVar[None] = None  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]

    def _data(self):
        return {
            "tilewave_schedule": VERSION,
            "note": self.note,
            "rank": self.rank,
            "arrays": [
                [name, None if shape is None else list(shape), None if dtype is None else dtype.str]
                for name, shape, dtype in self._arrays
            ],
            "functions": list(self.functions),
            "combine": self._combine,
            "schedules": [data.of_schedule(core) for core in self._cores.values()],
        }

    def save(self, path: FilePath) -> None:
        """Write the schedule as JSON. Functions are not in it, only their names, nor are the rates of kernels.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        ConfigError
            Where that fails; an old file is then as it was.
        """
        files.save("Schedule.save", path, json.dumps(self._data()) + "\n")

    @classmethod
    def load(cls, path: FilePath) -> Schedule:
        """Read a schedule that `save` wrote.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Schedule
            Equal to the one that was saved; `tilewave.run_schedule` has to be given its functions.

        Raises
        ------
        ConfigError
            When there is no such file, it is no saved schedule or one of another version; when an entry is damaged,
            with its place, what is there and what is allowed. What is read is whole: it can be printed, checked and
            predicted. `tilewave.check` may still find mistakes in it.
        """
        if not isinstance(path, str | os.PathLike):
            raise ConfigError(f"Schedule.load: path: given {shown(path)}; allowed: the path of a saved schedule")
        try:
            found = json.loads(files.read(path))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path} is no saved schedule: {error}") from None
        version = found.pop("tilewave_schedule", None) if isinstance(found, dict) else None
        if version is None:
            raise ConfigError(f"{path} is no saved schedule: it has no entry 'tilewave_schedule'")
        if version != VERSION:
            raise ConfigError(
                f"{path} is a schedule of version {shown(version)}; allowed: version {VERSION}; make it anew"
            )
        try:
            found = data.of_file(found)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path} is a damaged schedule: {error}") from None
        cores = {core.rank: core for core in found["schedules"]}
        return cls(cores, map(tuple, found["arrays"]), found["functions"], note=found["note"], combine=found["combine"])


def _sent(core):
    """Messages that travel: an aggregate, not its pieces."""
    messages = core.messages
    posted = {step.item for lane in core.lanes for step in lane if step.op == "post_send"}
    return [messages[number] for number in sorted(posted) if 0 <= number < len(messages)]


def _memory_bytes(core):
    """Arrays that share memory count once."""
    across = next((work.nest.window[1] for work in core.works if work.nest is not None), -1)
    separate, shared = core.buffer_bytes, {}
    for array in core.arrays:
        extents = [max(0, hi - lo) for lo, hi in zip(*array.storage, strict=True)]
        if array.time_buffers:
            extents[0] = min(extents[0], array.time_buffers)
        elif array.planes and 0 <= across < len(extents):
            extents[across] = min(extents[across], array.planes)
        count = array.item_bytes * math.prod(extents) if extents else 0
        if array.view.memory < 0:
            separate += count
        else:
            shared[array.view.memory] = max(count, shared.get(array.view.memory, 0))
    return separate + sum(shared.values())
