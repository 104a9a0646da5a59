"""The value `Schedule`: what every rank does in a distributed computation, step by step."""

from __future__ import annotations

import json
import math
import os
import re
from typing import TYPE_CHECKING, Any, ClassVar

from tilewave import _core, files, units
from tilewave.context.collective import collective
from tilewave.errors import ConfigError, shown
from tilewave.schedule import data, text
from tilewave.schedule.build import built
from tilewave.schedule.running import ScheduleRun, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tilewave.annotations import Array, Collective, FilePath
    from tilewave.context.context import Context

#: Of files: another number is another format.
VERSION = 4


class Schedule:
    """Hold what each rank does, as lanes of plain steps; made by `tilewave.schedule`, `tilewave.Schedule.build` or
    `load`.

    A schedule is a value: it can be printed, compared, saved, proved (`tilewave.check`), predicted (`tilewave.predict`)
    and, where it was built step by step, run (`tilewave.Schedule.run`). ``print(s)`` shows the first steps of each
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
        rates: Any = ((), ()),
        note: str = "",
        combine: Mapping[str, str] | None = None,
        kernels: Iterable[Any] = (),
    ) -> None:
        """Take the core's schedules by rank, arrays as (name, shape or None, dtype or None), names of functions, and
        what they are; rates of kernels and of tasks; by array what combine steps do; what nests call.
        """
        self._cores, self._arrays, self.functions = dict(cores), tuple(arrays), tuple(functions)
        self._calls, self._rates, self.note = calls, rates, note
        self._combine, self._kernels = dict(combine or {}), tuple(kernels)
        first = next(iter(self._cores.values()))
        self.ranks = first.ranks
        self.rank = first.rank if len(self._cores) < self.ranks else None
        self._violation = self._digest = self._names = None  # not looked for yet

    @classmethod
    def build(cls, generator: Callable[..., object], ranks: int, *arguments: Any, rank: int | None = None) -> Schedule:
        """Make a schedule by a function that writes the steps of one rank.

        Parameters
        ----------
        generator : function
            Called as ``generator(b, *arguments)`` with a `ScheduleBuilder` for each rank. It communicates nothing, and
            what it writes follows from its arguments, ``b.rank`` and ``b.ranks``.
        ranks : int
        *arguments
            Handed to the generator.
        rank : int, optional
            Only the part of this rank: for many ranks, where no process should make the parts of all. Such a part can
            be run, but neither proved nor predicted.

        Returns
        -------
        Schedule

        Raises
        ------
        ConfigError
            For regions outside their arrays, messages to ranks that there are none of, numbers that are given twice.
        """
        return cls(**built(generator, ranks, arguments, rank))

    @collective("tw.Schedule.run")
    def run(
        self,
        *,
        context: Context | None = None,
        check: bool = True,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        times: int = 1,
        **arrays: Array,
    ) -> Collective[ScheduleRun]:
        """Run a schedule that `tilewave.Schedule.build` made; collective.

        Parameters
        ----------
        context : Context, optional
            Default: all ranks of the launch.
        check : bool
            Prove a schedule of all ranks before its first run. Without, or of parts, the ranks compare what they send
            and receive, and no more.
        functions : dict, optional
            By name: the functions of a schedule from a file.
        times : int
            So often the schedule's block runs (`ScheduleBuilder.repeat`), the same on every rank.
        **arrays
            By name NumPy arrays, changed in place: of the shape that this rank stores, or of the whole array's, of
            which only what this rank stores is used.

        Returns
        -------
        ScheduleRun

        Raises
        ------
        ConfigError
            On every rank, before anything runs: for a schedule with a mistake or of another number of ranks, schedules
            that differ between ranks, arrays of other shapes or dtypes.
        KernelError
            On every rank, after the run: when a task raised on any. What it writes then holds anything.
        KeyboardInterrupt
            On every rank, when one was interrupted.

        Notes
        -----
        A rank may have more lanes than its context has threads: a thread then takes its lanes in turn, one task a turn,
        and waits only while none of them can continue. Tasks are Python: lanes of one rank compute at the same time
        only as far as the functions release the GIL, as NumPy does for large arrays. A message costs no Python.
        """
        return (yield from run(self, context, check, functions, times, arrays))

    def _found_by_check(self):
        """Return what `tilewave.check` finds, looked for once."""
        if self._violation is None:
            found = _core.check(list(self._cores.values()))
            text = "" if found is None else str(found)
            self._violation = (re.sub(r"\barray (\d+)", lambda m: f"array {self.name_of(int(m[1]))!r}", text),)
        return self._violation[0] or None

    @property
    def arrays(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self._arrays)

    def name_of(self, number: int) -> str:
        """The name of an array by its number in messages and tasks."""
        return self._arrays[number][0] if 0 <= number < len(self._arrays) else str(number)

    def _functions(self):
        """Return what its tasks call; those of a file have only names."""
        if self.functions and not self._calls:
            raise ConfigError("append: a schedule from a file was given; allowed: one of tilewave.Schedule.build")
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
        what = f"schedule of {units.count(self.ranks, 'rank')}"
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
    def load(cls, path: FilePath, *, context: Context | None = None) -> Schedule:
        """Read a schedule that `save` wrote.

        Parameters
        ----------
        path : str or path
        context : Context, optional
            With one the call is collective: what is wrong with the file of any rank is an error of all.

        Returns
        -------
        Schedule
            Equal to the one that was saved; `tilewave.Schedule.run` has to be given its functions.

        Raises
        ------
        ConfigError
            When there is no such file, it is no saved schedule or one of another version; when an entry is damaged,
            with its place, what is there and what is allowed. What is read is whole: it can be printed, checked and
            predicted. `tilewave.check` may still find mistakes in it.
        """
        return cls._read(path) if context is None else _read_together(path, context=context)

    @classmethod
    def _read(cls, path):
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


@collective("tw.Schedule.load")
def _read_together(path, *, context):
    schedule = Schedule._read(path)
    yield "a saved schedule"
    return schedule


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
