"""What a run was and how it went."""
import dataclasses
import functools
import math

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.parts import PARTS, Parts
from tilewave.timeline import Timeline


class Measured:
    """What the run took, itself alone.

    Attributes
    ----------
    time_s : float
        Seconds of the slowest rank, from the begin of its first lane to the end of its last.
    parts : Parts
        On rank 0, where the timeline was recorded: where the lanes' time went, on average; None elsewhere.
    """

    def __init__(self, core):
        self.time_s = core.time_s
        self.parts = Parts.of(core.parts) if core.parts.total_s > 0 else None

    def __repr__(self):
        return f"Measured(time_s={self.time_s:.6g})"


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
        Hidden communication time over hideable communication time, 0 to 1; NaN without messages.
    steps : int
        Time steps of the linear schedule (athanasaki2002).
    ranks, threads : int
    buffer_bytes : int
        Staging memory of this rank.
    lanes : list of LaneTimes
        On rank 0: the time split of every lane of every rank.
    timeline : Timeline
        On rank 0: all ranks' events; empty elsewhere. Made when it is first asked for: as long as making the ranks' schedules takes.
    sequential : str
        The dependence that kept the points in the order of the loops, on one lane; empty if none did.
    results : dict
        Of ``reduce=``: a NumPy scalar, or the subscripts of an element, by name; None where no point was computed.
    stored : tuple of str
        Fields that keep their frontier only, which this run nevertheless had to store whole.
    alone : bool
        Whether rank 0 computed for all: no loop index of the nest can be cut over ranks, or only one that is much longer than
        a loop skewed by it, so that ranks would wait for each other.
    """

    def __init__(self, core, plan, sequential="", alone=False, stored=(), results=None):
        self.sequential, self.alone, self.stored = sequential, alone, stored
        self.results = results or {}
        self.plan, self.predicted = plan, plan.predicted
        self.measured = Measured(core)
        self.points = core.points
        self.points_per_s = core.points_per_s
        self.overlap_ratio = core.overlap_ratio
        self.steps = core.steps
        self.ranks, self.threads = core.ranks, core.threads
        self.buffer_bytes = core.buffer_bytes
        self._core = core

    @functools.cached_property
    def timeline(self):  # made when it is asked for, of what lanes noted
        return Timeline(self._core.timeline)

    def save_timeline(self, path):
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
            raise ConfigError("timeline: this run was not predicted; allowed: timeline.save, of what was measured alone")
        self.timeline.save_comparison(path, self.predicted.timeline)

    @property
    def lanes(self):
        """Time split of each lane (rank 0)."""
        fields = [f.name for f in dataclasses.fields(LaneTimes)]
        return [LaneTimes(*(getattr(s, name) for name in fields)) for s in self.timeline.split()]

    def _rows(self):
        p = self.plan
        yield "plan", (f"grid {p.grid}, tile {p.tile}, mapping dimension {p.mapping_dim}, "
                       f"{p.grouping}, {p.schedule}, look-ahead {p.lookahead}, slices {p.slices}")
        if p.row or p.storage != "plain":
            yield "rows", f"along {p.row or 'the last dimension'}, {p.storage} storage"
        if self.sequential:
            yield "in loop order", f"on one lane, because of {self.sequential}"
        if self.alone:
            yield "on one rank", "no loop index can be cut over ranks so that they work at the same time"
        if self.stored:
            yield "stored whole", f"{', '.join(self.stored)}: their frontier would not do for this nest, plan and arrays"
        idle = self.plan.notes.get("ranks", self.ranks) - self.ranks
        yield "ranks x threads", f"{self.ranks} x {self.threads}" + (f", {idle} more had nothing to do" if idle > 0 else "")
        if self.predicted:
            yield "predicted time", f"{self.predicted.time_s:.6g} s"
        yield "measured time", f"{self.measured.time_s:.6g} s in {self.steps} steps"
        yield from self._parts()
        yield "points", f"{self.points} ({self.points_per_s:.4g} /s)"
        for name, value in self.results.items():
            yield name, str(value)
        yield "overlap ratio", ("no messages" if math.isnan(self.overlap_ratio)
                                else f"{self.overlap_ratio:.3f}")
        for lane in self.lanes:
            total = max(lane.total_s, 1e-12)
            parts = ", ".join(f"{name} {100 * getattr(lane, name + '_s') / total:.1f} %"
                              for name in ("compute", "pack", "wait", "post"))
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

    def __str__(self):
        return "\n".join(f"{name:16} {text}" for name, text in self._rows())

    def _repr_html_(self):
        rows = "".join(f"<tr><th style='text-align:left'>{name}</th><td>{text}</td></tr>"
                       for name, text in self._rows())
        return f"<table>{rows}</table>"
