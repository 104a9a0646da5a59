"""What a run was and how it went."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

from tilewave import units
from tilewave.machine.stale import looks_stale
from tilewave.nests.run.execute import results_of, unknown_results
from tilewave.nests.run.memory_bound import bound_of, moved_by
from tilewave.plan.explain import of_cpus
from tilewave.plan.sentence import sentence
from tilewave.timeline.parts import PARTS, Parts, Predicted, Simulated, WithComparison
from tilewave.timeline.timeline import Timeline, html_table

if TYPE_CHECKING:
    from tilewave.annotations import Array
    from tilewave.nests.run.memory_bound import MemoryBound
    from tilewave.plan.plan import Plan


class Measured:
    """Measured times of the run itself.

    Attributes
    ----------
    time_s : float
        Seconds of the slowest rank, from the begin of its first lane to the end of its last.
    moving_s : float
        Of the slowest rank: bringing fields from the layout in which they were into the plan's, and NumPy arrays there
        and back.
        0 where nothing had to move.
    call_s : float
        Of the slowest rank: the whole call to the end of its part of the run. It is what `time_s`, `moving_s` and
        `rest_s` add up to.
    rest_s : float
        What else the call took: checks, planning and compiling where it was the first such call, agreement of ranks.
    parts : Parts
        On rank 0, where the timeline was recorded: where the lanes' time went, on average; None elsewhere.
    """

    time_s: float
    moving_s: float
    call_s: float

    def __init__(self, core: Any) -> None:
        self.time_s, self.moving_s = core.time_s, core.moving_s
        # The slowest rank of a part may not be that of the whole.
        self.call_s = max(core.call_s, self.time_s + self.moving_s)
        self._core = core

    @property
    def rest_s(self) -> float:
        return self.call_s - self.time_s - self.moving_s

    @functools.cached_property
    def parts(self) -> Parts | None:  # made when they are asked for, as most runs of small nests are not
        parts = self._core.parts
        return Parts.of(parts) if parts.total_s > 0 else None

    def __getstate__(self) -> dict[str, Any]:
        return {"time_s": self.time_s, "moving_s": self.moving_s, "call_s": self.call_s, "parts": self.parts}

    def __repr__(self) -> str:
        return f"Measured(time_s={self.time_s:.6g}, moving_s={self.moving_s:.6g}, call_s={self.call_s:.6g})"


def row_of_times(measured: Any) -> str:
    """Run + moving + what else = call, in one unit; of what has `time_s`, `moving_s` and `call_s`."""
    parts = {"run": measured.time_s, "moving": measured.moving_s}
    parts["planning, checks"] = max(measured.call_s - sum(parts.values()), 0.0)
    unit, shown, whole = units.total(parts.values(), units.TIMES)
    listed = [
        f"{name} {text}" for (name, value), text in zip(parts.items(), shown, strict=True) if value or name == "run"
    ]
    return f"{' + '.join(listed)} = {whole} {unit}"


@dataclasses.dataclass(frozen=True)
class LaneTimes:
    """Seconds of one lane by kind of step; `idle_s` is what is left of the run, before, between and after them."""

    rank: int
    lane: int
    compute_s: float
    pack_s: float
    wait_s: float
    post_s: float
    total_s: float
    idle_s: float = 0.0


class Report(WithComparison):
    """The result of `run`; prints as a short table.

    Attributes
    ----------
    plan : Plan
    predicted : Predicted
        ``predicted.time_s``, ``predicted.parts``: what the plan was expected to take, before it ran.
    measured : Measured
        ``measured.time_s``: seconds, slowest rank; ``measured.parts`` on rank 0.
    points : int
        Points computed over all ranks.
    points_per_s : float
    overlap_ratio : float
        Hidden communication time over hideable communication time, 0 to 1; NaN without messages. Waits for messages
        that both sides have posted are not hidden, however long. The formula is in docs/guide/plans.md.
    steps : int or None
        Time steps of the problem: of ``steps=``; None without.
    waves : int
        Of tiles that may run at the same time: steps of the linear schedule (athanasaki2002), not time steps of a
        problem.
    ranks, threads : int
    buffer_bytes : int
        Staging memory of this rank.
    lanes : list of LaneTimes
        On rank 0: the time split of every lane of every rank.
    timeline : Timeline
        On rank 0: all ranks' events; empty elsewhere. Made when it is first asked for: as long as making the ranks'
        schedules takes.
    sequential : str
        The dependence for which the points ran in the order of the loops, on one lane; empty without one.
    results : dict
        Of ``reduce=``: a NumPy scalar, or the subscripts of an element, by name; None where no point counts.
    recorded : dict
        Of ``record=``: from the names of arrays to (time steps, points) values, on every rank.
    loops : dict
        From each loop index to its range, half-open; with a stride, where it has one.
    cut : tuple of str
        Loops that are shorter than the written arrays allow because of the shape of one that is only read.
    stored : tuple of str
        Fields that keep a rolling window only, which this run nevertheless had to store whole.
    bound : MemoryBound
        The least time that the memory allows: ``bytes_per_point``, ``working_set_bytes``, ``lanes``, ``byte_s``,
        ``time_s``, and ``fraction``, the part of it in the run's time. None where nothing is moved, or where the
        machine's memory was not measured.
    stale : str
        On rank 0, where the run took far longer or shorter than predicted: the number of the machine that looks stale,
        and what to do. Empty otherwise.
    replicated : dict
        From the fields that were copied whole to each rank to the bytes of a copy: those that are only read, and lack
        a loop index that ranks may cut, or are read in several orders.
    on_one_rank : bool
        Whether rank 0 had all arrays and computed: no loop index of the nest can be cut over ranks, or only one that is
        much longer than a loop skewed by it, so that ranks would wait for each other.
    """

    predicted: Predicted
    measured: Measured
    points: int
    points_per_s: float
    overlap_ratio: float
    steps: int | None
    waves: int
    ranks: int
    threads: int
    buffer_bytes: int
    sequential: str
    results: dict[str, Any]
    recorded: dict[str, Array]
    loops: dict[str, tuple[int, ...]]
    cut: tuple[str, ...]
    stored: tuple[str, ...]
    replicated: dict[str, int]
    on_one_rank: bool

    def __init__(self, ready: Any, core: Any, recorded: dict[str, Array] | None = None) -> None:
        plan, nest = ready.plan, ready.problem.nest
        self.loops, self.cut = ready.ranges(), ready.problem.cut
        self.sequential, self.on_one_rank, self.stored = ready.sequential, ready.on_one_rank, tuple(ready.stored)
        self.replicated = plan.notes.get("replicated", {})
        self.results = ready.context._ranks.run(
            lambda: results_of(ready.reductions, core), functools.partial(unknown_results, ready)
        )
        self.recorded = recorded or {}
        self._planned, self.predicted = plan, plan.predicted
        self.measured = Measured(core)
        self.points = core.points * ready.loops.inner_points
        self.points_per_s = core.points_per_s * ready.loops.inner_points
        self.overlap_ratio = core.overlap_ratio
        self.steps = None if ready.loops.steps is None else len(range(*self.loops[nest.time]))
        self.waves, self.ranks, self.threads = core.waves, core.ranks, core.threads
        self.buffer_bytes = core.buffer_bytes
        moves = ready.problem, plan, ready.dtypes, (*ready.initial,), self.loops, core.points
        self._core, self._context, self._moved = core, ready.context, functools.partial(moved_by, *moves)

    @functools.cached_property
    def plan(self) -> Plan:
        """The plan that ran, to be edited: made when it is asked for."""
        return self._planned._copy()

    @functools.cached_property
    def bound(self) -> MemoryBound | None:
        """What moving the arrays takes at least: made when it is asked for."""
        if self._context is None:
            return None
        run_s, machine = self.measured.time_s + self.measured.moving_s, self._context._core.machine()
        return bound_of(self._moved(), self.points, self.ranks, self._planned._to_core().lanes, machine, run_s)

    @functools.cached_property
    def timeline(self) -> Timeline:  # made when it is asked for, of what lanes noted
        return Timeline(self._core.timeline, self._planned.notes.get("nest", ""))

    @functools.cached_property
    def stale(self) -> str:
        """Which number of the machine looks stale, where this run missed its prediction."""
        return looks_stale(self._context, self._planned, self.measured, self._messages) if self._context else ""

    def _messages(self):
        """(rank, rank, bytes) of each send that was recorded."""
        requests = self.timeline.requests
        sends = requests[requests["send"] == 1]
        return list(zip(sends["rank"].tolist(), sends["peer"].tolist(), sends["bytes"].tolist(), strict=True))

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: with the timelines, where this rank has them."""
        state = {name: value for name, value in vars(self).items() if name not in ("_core", "_context", "_moved")}
        state.update(bound=self.bound, stale=self.stale, timeline=self.timeline, lanes=self.lanes)
        if self.predicted and self.predicted._simulate and len(self.timeline.events):
            state["predicted"] = Predicted(
                self.predicted.time_s, self.predicted.parts, Simulated(self.predicted.timeline._core)
            )
        return state

    @property
    def _expected(self):
        return self.predicted

    @functools.cached_property
    def lanes(self) -> list[LaneTimes]:
        """Time split of each lane (rank 0)."""
        run_s = self.measured.parts.total_s if self.measured.parts else 0.0
        fields = [f.name for f in dataclasses.fields(LaneTimes) if f.name != "idle_s"]
        return [
            LaneTimes(*(getattr(s, name) for name in fields), idle_s=max(run_s - s.total_s, 0.0))
            for s in self._core.lanes
        ]

    def _rows(self):
        p = self._planned
        yield "", sentence(p, "ran")
        yield "choices", p._short()
        if self.loops:
            yield "loops", ", ".join(f"{index} in {range(*bounds)}" for index, bounds in self.loops.items())
        if self.cut:
            yield "cut short", "; ".join(self.cut)
        if self.sequential:
            yield "in loop order", f"on one lane, because of {self.sequential}"
        if self.on_one_rank:
            yield "on one rank", "no loop index can be cut over ranks so that they work at the same time"
        if self.stored:
            yield (
                "stored whole",
                f"{', '.join(self.stored)}: a rolling window is not enough for this nest, plan and arrays",
            )
        if self.replicated:
            copies = ", ".join(f"{name} ({units.size(count)})" for name, count in self.replicated.items())
            yield "copied whole", f"{copies}: every rank reads all of it"
        idle = self._planned.notes.get("ranks", self.ranks) - self.ranks
        yield (
            "ranks x threads",
            f"{self.ranks} x {self.threads}" + (f", {idle} more had nothing to do" if idle > 0 else ""),
        )
        if cpus := of_cpus(p):
            yield "lanes", cpus
        if block := self.plan.notes.get("block"):
            yield "time steps", f"{self.plan.notes['extents'][0]}, prepared {block} at a time"
        yield from self._times()
        yield from self._parts()
        if self.stale:
            yield "looks stale", self.stale
        yield "whole call", row_of_times(self.measured)
        yield "points", f"{self.points} ({units.text(self.points_per_s, units.POINTS)})"
        for name, value in self.results.items():
            yield name, str(value)
        if not math.isnan(self.overlap_ratio):
            yield "overlap ratio", f"{self.overlap_ratio:.3f} of the communication that can be hidden"
        yield from self._lane_shares()

    def _times(self):
        """The run as it was predicted, as it was, and what the memory allows."""
        bound, found = (
            self.bound,
            {"measured time": (self.measured.time_s, f" in {units.count(self.waves, 'wave')} of tiles")},
        )
        if self.predicted:
            found = {"predicted time": (self.predicted.time_s, ""), **found}
        if bound:
            lanes = f"{units.count(bound.lanes, 'lane')} a host, {units.size(bound.working_set_bytes)}"
            found["memory's bound"] = (
                bound.time_s,
                f", {units.number(bound.bytes_per_point)} bytes a point at {units.rate(bound.byte_s)} ({lanes}): "
                f"{100 * bound.fraction:.0f} % of run and moving",
            )
        unit, cells = units.column((time_s for time_s, _ in found.values()), units.TIMES)
        for (name, (_, more)), cell in zip(found.items(), cells, strict=True):
            yield name, f"{cell} {unit}{more}"

    def _parts(self):
        """Where the lanes' time went, as it was predicted and as it was."""
        if not self.predicted or not self.measured.parts:
            return
        both = [[getattr(parts, name) for name in PARTS] for parts in (self.predicted.parts, self.measured.parts)]
        unit, cells = units.column([*both[0], *both[1]], units.TIMES)
        yield "part of the time", f"predicted | measured, {unit}, average of the lanes"
        for k, label in enumerate(PARTS.values()):
            if max(both[0][k], both[1][k]) > 0:
                yield f"  {label}", f"{cells[k]} | {cells[len(PARTS) + k]}"

    def _lane_shares(self):
        """Where the run's time went in each lane."""
        if self.lanes:
            kinds = ("compute", "pack", "wait", "post")
            yield "% of the run", " | ".join(f"{kind:>7}" for kind in (*kinds, "idle"))
        for lane in self.lanes:
            found = units.shares((getattr(lane, f"{kind}_s") for kind in kinds), self.measured.parts.total_s)
            yield f"  rank {lane.rank} lane {lane.lane}", " | ".join(f"{share:>7}" for share in found)

    def __str__(self) -> str:
        return "\n".join(f"{name:16} {text}".rstrip() if name else text for name, text in self._rows())

    def __repr__(self) -> str:
        name = self._planned.notes.get("nest")
        took, rate = units.seconds(self.measured.time_s), units.text(self.points_per_s, units.POINTS)
        return (
            f"<tilewave.Report{f' of {name}' if name else ''}: {self.points} points in {took} ({rate}), "
            f"{units.count(self.ranks, 'rank')} x {units.count(self.threads, 'thread')}>"
        )

    def _repr_html_(self):
        return html_table(self._rows())
