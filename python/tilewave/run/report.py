"""What a run was and how it went."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING

from tilewave.errors import ConfigError
from tilewave.notices import warn
from tilewave.plan.explain import of_cpus
from tilewave.run.memory_bound import bound_of
from tilewave.timeline.parts import PARTS, Parts, Played, Predicted
from tilewave.timeline.timeline import Timeline, html_table

if TYPE_CHECKING:
    from typing import Any

    from tilewave.annotations import FilePath
    from tilewave.plan.plan import Plan
    from tilewave.run.memory_bound import Bound


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
        Of the slowest rank: the whole call to the end of its part of the run: checks, planning where it was the first
        such call, moving, computing.
    parts : Parts
        On rank 0, where the timeline was recorded: where the lanes' time went, on average; None elsewhere.
    """

    time_s: float
    moving_s: float
    call_s: float

    def __init__(self, core: Any, after_s: float = 0.0) -> None:
        self.time_s, self.moving_s, self.call_s = core.time_s, core.moving_s + after_s, core.call_s + after_s
        self._core = core

    @functools.cached_property
    def parts(self) -> Parts | None:  # made when they are asked for, as most runs of small nests are not
        parts = self._core.parts
        return Parts.of(parts) if parts.total_s > 0 else None

    def __getstate__(self) -> dict[str, Any]:
        return {"time_s": self.time_s, "moving_s": self.moving_s, "call_s": self.call_s, "parts": self.parts}

    def __repr__(self) -> str:
        return f"Measured(time_s={self.time_s:.6g}, moving_s={self.moving_s:.6g}, call_s={self.call_s:.6g})"


@dataclasses.dataclass(frozen=True)
class LaneTimes:
    """Seconds of one lane by kind of step."""

    rank: int
    lane: int
    compute_s: float
    pack_s: float
    wait_s: float
    post_s: float
    total_s: float


class Report:
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
    steps : int
        Time steps of the linear schedule (athanasaki2002).
    ranks, threads : int
    buffer_bytes : int
        Staging memory of this rank.
    lanes : list of LaneTimes
        On rank 0: the time split of every lane of every rank.
    timeline : Timeline
        On rank 0: all ranks' events; empty elsewhere. Made when it is first asked for: as long as making the ranks'
        schedules takes.
    sequential : str
        The dependence that kept the points in the order of the loops, on one lane; empty if none did.
    results : dict
        Of ``reduce=``: a NumPy scalar, or the subscripts of an element, by name; None where no point counts.
    loops : dict
        From each loop index to its range, half-open.
    cut : tuple of str
        Loops that are shorter than the written arrays allow because of the shape of one that is only read.
    stored : tuple of str
        Fields that keep a rolling window only, which this run nevertheless had to store whole.
    bound : Bound
        The least time that the memory allows: ``bytes_per_point``, ``working_set_bytes``, ``lanes``, ``byte_s``,
        ``time_s``, and ``fraction``, the part of it in the run's time. None where nothing is moved, or where the
        machine's memory was not measured.
    replicated : dict
        From the fields that were copied whole to each rank to the bytes of a copy: those that are only read, and lack
        a loop index that ranks may cut, or are read in several orders.
    on_one_rank : bool
        Whether rank 0 computed for all: no loop index of the nest can be cut over ranks, or only one that is much
        longer than a loop skewed by it, so that ranks would wait for each other.
    """

    predicted: Predicted
    measured: Measured
    points: int
    points_per_s: float
    overlap_ratio: float
    steps: int
    ranks: int
    threads: int
    buffer_bytes: int
    sequential: str
    results: dict[str, Any]
    loops: dict[str, tuple[int, int]]
    cut: tuple[str, ...]
    stored: tuple[str, ...]
    replicated: dict[str, int]
    on_one_rank: bool

    def __init__(
        self,
        core: Any,
        plan: Plan,
        *,
        sequential: str = "",
        on_one_rank: bool = False,
        stored: tuple[str, ...] = (),
        results: dict[str, Any] | None = None,
        loops: dict[str, tuple[int, int]] | None = None,
        cut: tuple[str, ...] = (),
        after_s: float = 0.0,
        moved: tuple[int, int] = (0, 0),
        machine: Any = None,
    ) -> None:
        self.loops, self.cut = loops or {}, cut
        self.sequential, self.on_one_rank, self.stored = sequential, on_one_rank, stored
        self.replicated = plan.notes.get("replicated", {})
        self.results = results or {}
        self._planned, self.predicted = plan, plan.predicted
        self.measured = Measured(core, after_s)
        self.points = core.points
        self.points_per_s = core.points_per_s
        self.overlap_ratio = core.overlap_ratio
        self.steps = core.steps
        self.ranks, self.threads = core.ranks, core.threads
        self.buffer_bytes = core.buffer_bytes
        self._core, self._moved, self._machine = core, moved, machine

    @property
    def alone(self) -> bool:
        """The former name of `on_one_rank`."""
        warn("report.alone is called report.on_one_rank now; the next release has no report.alone")
        return self.on_one_rank

    @functools.cached_property
    def plan(self) -> Plan:
        """The plan that ran, to be edited: made when it is asked for."""
        return self._planned._copy()

    @functools.cached_property
    def bound(self) -> Bound | None:
        """What moving the arrays takes at least: made when it is asked for."""
        if self._machine is None:
            return None
        run_s = self.measured.time_s + self.measured.moving_s
        return bound_of(self._moved, self.points, self.ranks, self._planned._to_core().lanes, self._machine(), run_s)

    @functools.cached_property
    def timeline(self) -> Timeline:  # made when it is asked for, of what lanes noted
        return Timeline(self._core.timeline)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: with the timelines, where this rank has them."""
        state = {name: value for name, value in vars(self).items() if name not in ("_core", "_machine")}
        state.update(bound=self.bound, timeline=self.timeline, lanes=self.lanes)
        if self.predicted and self.predicted._play and len(self.timeline.events):
            state["predicted"] = Predicted(
                self.predicted.time_s, self.predicted.parts, Played(self.predicted.timeline._core)
            )
        return state

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
        if self.predicted is None:
            raise ConfigError(
                "timeline: this run was not predicted; allowed: timeline.save, which shows what was measured"
            )
        self.timeline.save_comparison(path, self.predicted.timeline)

    @functools.cached_property
    def lanes(self) -> list[LaneTimes]:
        """Time split of each lane (rank 0)."""
        fields = [f.name for f in dataclasses.fields(LaneTimes)]
        return [LaneTimes(*(getattr(s, name) for name in fields)) for s in self._core.lanes]

    def _rows(self):
        p = self._planned
        yield (
            "plan",
            (
                f"grid {p.grid}, tile {p.tile}, mapping dimension {p.mapping_dim}, "
                f"{p.grouping}, {p.schedule}, look-ahead {p.lookahead}, slices {p.slices}"
            ),
        )
        if self.loops:
            yield "loops", ", ".join(f"{index} in range({low}, {high})" for index, (low, high) in self.loops.items())
        if self.cut:
            yield "cut short", "; ".join(self.cut)
        if p.row or p.storage != "plain":
            yield "rows", f"along {p.row or 'the last dimension'}, {p.storage} storage"
        if turns := self.plan.notes.get("turns"):
            yield "layout of fields", f"one for nests that take turns: {', '.join(turns['nests'])}"
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
            copies = ", ".join(f"{name} ({count / 1e6:.3g} MB)" for name, count in self.replicated.items())
            yield "copied whole", f"{copies}: every rank reads all of it"
        idle = self._planned.notes.get("ranks", self.ranks) - self.ranks
        yield (
            "ranks x threads",
            f"{self.ranks} x {self.threads}" + (f", {idle} more had nothing to do" if idle > 0 else ""),
        )
        if told := of_cpus(p):
            yield "lanes", told
        if block := self.plan.notes.get("block"):
            yield "time steps", f"{self.plan.notes['extents'][0]}, prepared {block} at a time"
        if self.predicted:
            yield "predicted time", f"{self.predicted.time_s:.6g} s"
        yield "measured time", f"{self.measured.time_s:.6g} s in {self.steps} steps"
        if self.measured.moving_s > 0:
            yield (
                "moving fields",
                f"{self.measured.moving_s * 1e3:.3g} ms before and after it, whole call "
                f"{self.measured.call_s * 1e3:.3g} ms",
            )
        if bound := self.bound:
            lanes = f"{bound.lanes} lane{'s' * (bound.lanes > 1)} a host, {bound.working_set_bytes / 2**20:.3g} MB"
            yield (
                "memory's bound",
                (
                    f"{bound.time_s:.6g} s, {bound.bytes_per_point:.3g} bytes a point at "
                    f"{1e-9 / bound.byte_s:.3g} GB/s ({lanes}): "
                    f"{100 * bound.fraction:.0f} % of the run"
                ),
            )
        yield from self._parts()
        yield "points", f"{self.points} ({self.points_per_s:.4g} /s)"
        for name, value in self.results.items():
            yield name, str(value)
        yield "overlap ratio", ("no messages" if math.isnan(self.overlap_ratio) else f"{self.overlap_ratio:.3f}")
        for lane in self.lanes:
            total = max(lane.total_s, 1e-12)
            parts = ", ".join(
                f"{name} {100 * getattr(lane, name + '_s') / total:.1f} %"
                for name in ("compute", "pack", "wait", "post")
            )
            yield f"rank {lane.rank} lane {lane.lane}", parts

    def _parts(self):
        """Where the lanes' time went, as it was predicted and as it was."""
        if not self.predicted or not self.measured.parts:
            return
        yield "part of the time", "predicted | measured, ms, average of the lanes"
        for name, label in PARTS.items():
            ours, theirs = (1e3 * getattr(parts, name) for parts in (self.predicted.parts, self.measured.parts))
            if max(ours, theirs) > 0:
                yield f"  {label}", f"{ours:9.3f} | {theirs:9.3f}"

    def __str__(self) -> str:
        return "\n".join(f"{name:16} {text}" for name, text in self._rows())

    def __repr__(self) -> str:
        name = self._planned.notes.get("nest")
        return (
            f"<tilewave.Report{f' of {name}' if name else ''}: {self.points} points in {self.measured.time_s:.6g} s "
            f"({self.points_per_s:.4g} /s), {self.ranks} rank(s) x {self.threads} thread(s)>"
        )

    def _repr_html_(self):
        return html_table(self._rows())
