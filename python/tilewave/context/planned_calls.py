"""This file has what the calls of a script would take, line by line, while it is only planned."""

from __future__ import annotations

import dataclasses
import time
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tilewave import _core
from tilewave.context import interrupts
from tilewave.context.collective import call_here, where
from tilewave.context.unknown_values import Decisions, Unknown, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    R = TypeVar("R")

#: Collective calls that a dry run leaves out, as they write files or measure; None is returned.
LEFT_OUT = ("tw.Field.save", "tw.linalg.Matrix.save", "tw.measure", "tw.checkpoint", "tw.resume")
#: Those whose values are not known: an array of zeros in one element's memory is returned, as large as the real one.
ARRAYS = ("tw.Field.gather", "tw.TimeBuffer.gather", "tw.linalg.Matrix.gather")
#: Ranks of which all messages of one pattern or exchange are simulated.
MOST_RANKS = 256
#: Of a field that a dry run fills with its values, as tables are looked up while rates are measured.
MOST_FILLED_BYTES = 64 << 20
#: Those that prepare others and agree: no line of the table, unless something within them is predicted.
PREPARE = (
    *("tw.barrier", "tw.bind", "tw.chain", "tw.field", "tw.schedule", "tw.Schedule.load", "tw.linalg.matrix"),
    *("tw.linalg.plan_matmul", "tw.multigrid.Poisson", "tw.multigrid.Poisson.plan"),
)


@dataclasses.dataclass
class PlannedCall:
    """The calls that one line of a script makes.

    Attributes
    ----------
    where, name : str
        "sor.py:21", "tw.run".
    what : list of str
        Nests and operations in it, each once.
    count : int
        How often it was called.
    time_s : float
        Predicted, of all of them.
    plan : Plan, MatmulPlan, FactorPlan or None
        Of the part that takes most of those with a plan.
    known : bool
        Whether the time is predicted.
    """

    where: str
    name: str
    what: list[str] = dataclasses.field(default_factory=list)
    count: int = 0
    time_s: float = 0.0
    plan: Any = None
    known: bool = False
    most_s: float = -1.0


class PlannedCalls:
    """All calls of a dry run, in the order of their first ones: what its contexts have in place of `RanksHere`.

    Attributes
    ----------
    number, lanes, quick
        As of `RanksHere`: rank 0 is here, with the lanes that this process may have.
    all_ranks : bool
        Whether plans that are chosen are simulated with all ranks, which meet on the links of a network.
    decisions : Decisions
        What the script has decided by values that are not known.
    held_bytes, peak_bytes : int
        Of rank 0, whose blocks are as large as any: fields and matrices now, and the most with the staging of a call.
    threads : int
        Lanes of a rank.
    samples : dict
        By nest or operation: what of it was simulated, "all ranks", "256 of 65536 ranks, ...".
    inside_s : float
        Seconds that calls of Tilewave have taken here: planning them.
    """

    number, quick = 1, False

    def __init__(self, rounds: int | None = None, all_ranks: bool = False) -> None:
        self.lanes, self.all_ranks, self.decisions = len(_core.allowed_cpus()), all_ranks, Decisions(rounds)
        self.threads, self.inside_s = 1, 0.0
        self._calls: dict[tuple[str, str], PlannedCall] = {}
        self._now: PlannedCall | None = None
        self.held_bytes = self.peak_bytes = 0
        self.samples: dict[str, str] = {}

    def __iter__(self) -> Iterator[PlannedCall]:
        return iter(self._calls.values())

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def predicted(self) -> list[PlannedCall]:
        """Those whose time is predicted."""
        return [call for call in self if call.known]

    @property
    def time_s(self) -> float:
        """Predicted seconds of all calls."""
        return sum(call.time_s for call in self)

    def run(self, work: Any, planned: Callable[[PlannedCalls], R]) -> R:
        """Return what is planned in place of the work."""
        return planned(self)

    @interrupts.keeps
    def call(
        self, name: str, context: Any, error: Any, function: Any, whole: bool, arguments: Any, keywords: Any
    ) -> Any:
        """Make a collective call from a line of the script; what writes files or wants values is left out."""

        def made():
            if name in LEFT_OUT:
                return None
            if name in ARRAYS:
                return self.array(arguments[0].shape, arguments[0].dtype, name.removeprefix("tw."))
            given = [*map(plain, arguments)], plain(keywords)
            return call_here(name, context, error, function, whole, *given)

        return self.noted(name, made)

    @interrupts.keeps
    def noted(self, name: str, make: Callable[[], Any] = lambda: None) -> Any:
        """Return what `make` gives for a call from a line of the script; what it calls itself belongs to it."""
        if self._now is not None:
            return make()
        begun, place = time.perf_counter(), where()
        file, _, line = place.rpartition(":")
        self.decisions.lines.add((file, int(line) if line.isdigit() else 0))
        known = self._calls.get((place, name))
        self._now = known or PlannedCall(place, name)
        try:
            made = make()
            if known is not None or self._now.known or name not in PREPARE:
                self._calls[place, name] = self._now
                self._now.count += 1
            return made
        finally:
            self._now = None
            self.inside_s += time.perf_counter() - begun

    def add(self, what: str, time_s: float, plan: Any, arrays: Iterable[Any] = (), sample: str = "") -> None:
        """A part of the present call: its predicted seconds; `arrays`: those that the plan's memory has; `sample`: what
        of it was simulated.
        """
        if sample := sample or getattr(plan, "notes", {}).get("sample", ""):
            self.samples[what] = sample
        call = self._now or PlannedCall("", "")
        call.known = True
        call.time_s += time_s
        if what not in call.what:
            call.what.append(what)
        if plan is None:
            return
        if time_s > call.most_s:
            call.most_s, call.plan = time_s, plan
        beyond = (plan.memory_bytes or 0) - sum(bytes_of(array) for array in {id(a): a for a in arrays}.values())
        self.peak_bytes = max(self.peak_bytes, self.held_bytes + max(beyond, 0))

    def exchanges(self, fields: Sequence[Any], axes: int) -> None:
        """Note an update of halos: it takes what its messages do, of all ranks where these are few."""
        context, halos = fields[0].context, [(each._storage.layout, each.dtype.itemsize) for each in fields]
        ranks = context.size

        def add():
            if ranks <= MOST_RANKS:
                schedules = [_core.halo_update(halos, rank, ranks, axes) for rank in range(ranks)]
                machine = context._core.machine()
                self.add("exchange", _core.predict(schedules, machine, _core.KernelRate(), record=False).time_s, None)

        self.noted("tw.exchange", add)

    def holds(self, array: Any) -> None:
        """A field or a matrix that has been made: its memory counts until it is gone."""
        size = bytes_of(array)
        self.held_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)
        weakref.finalize(array, self._gone, size).atexit = False

    def fills(self, array: Any) -> bool:
        """Return whether a field is filled: no run reads it, and the memory of a large one is then never taken."""
        return bytes_of(array) <= MOST_FILLED_BYTES

    def warn(self, text: str) -> None:
        """Nothing runs that is to be warned of."""

    def _gone(self, size: int) -> None:
        self.held_bytes -= size

    def unknown(self, what: str) -> Unknown:
        """A number that is not known before the program runs."""
        self.decisions.unknown.setdefault(f"{where()}: {what}")
        return Unknown(self.decisions)

    def array(self, shape: Iterable[int], dtype: Any, what: str) -> np.ndarray:
        """An array whose values are not known, in one element's memory."""
        self.decisions.unknown.setdefault(f"{where()}: {what}")
        return np.broadcast_to(np.zeros((), dtype), tuple(shape))

    def place(self, dims: int, what: str) -> tuple[int, ...]:
        """A place that is not known: the first, as values of arrays are 0."""
        self.decisions.unknown.setdefault(f"{where()}: {what}")
        return (0,) * dims


def bytes_of(array: Any) -> int:
    """Return the bytes of this rank's part of a field or a matrix; NumPy arrays are the script's."""
    storage = getattr(array, "_storage", None)
    if storage is None:
        return 0
    return int(storage.bytes) if hasattr(storage, "bytes") else int(array.local.nbytes)
