"""What a run of a chain was and how it went."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tilewave import units
from tilewave.nests.run.report import row_of_times

if TYPE_CHECKING:
    from tilewave.annotations import Array
    from tilewave.plan.plan import Plan


#: Nests whose names a sentence lists.
MOST_NAMED = 6


@dataclasses.dataclass
class NestRun:
    """What one nest did in all repetitions together.

    Attributes
    ----------
    nest : str
    plan : Plan
    predicted_s, time_s : float
        Seconds of all repetitions. Where the nests are one schedule, only the time of all is measured: `time_s` is the
        part of it that is predicted for the nest.
    points : int
    """

    nest: str
    plan: Plan
    predicted_s: float
    time_s: float = 0.0
    points: int = 0


@dataclasses.dataclass(frozen=True)
class ChainTimes:
    """Seconds of all repetitions together, of the slowest rank.

    Attributes
    ----------
    time_s : float
        Computing, from the begin of the first lane to the end of the last one. Where nests run one after another: the
        sum over their runs.
    moving_s : float
        Bringing fields into the layout that the nests want.
    call_s : float
        The whole call on this rank.
    """

    time_s: float
    moving_s: float
    call_s: float


class ChainReport:
    """The result of `Chain.run`, and of `run` with several nests; prints as a short table.

    Attributes
    ----------
    nests : tuple of str
        Names, in their order.
    repetitions : int
        How often the nests ran: the time steps of `run`.
    reached : bool
        Whether `until` ended the run.
    measured : ChainTimes
    points : int
        Points computed over all ranks, nests and repetitions.
    points_per_s : float
    separate : str
        Why the nests ran one after another; empty where they were one schedule.
    buffer_bytes : int
        Staging memory of this rank, where they were one schedule.
    by_nest : list of NestRun
    recorded : dict
        Of ``record=``: from the names of arrays to (repetitions, points) values. Of a nest that was bound with it:
        those of its last run, (time steps, points).
    """

    nests: tuple[str, ...]
    separate: str
    repetitions: int
    reached: bool
    measured: ChainTimes
    points: int
    buffer_bytes: int
    recorded: dict[str, Array]

    def __init__(
        self, request: Any, body: Any, ran: Any, repetitions: int, history: list[dict[str, Any]], call_s: float
    ) -> None:
        self.nests, self._unit, self.separate = request.names, request.unit, body.why
        self.repetitions, self._history = repetitions, history
        self.reached = request.until is not None and request.until.ended
        self.measured = ChainTimes(ran.time_s, ran.moving_s, call_s)
        self.points, self.buffer_bytes, self._ran, self._plans = sum(ran.points), ran.buffer_bytes, ran, body.plans
        self._plan_steps = body.plan_steps
        self.recorded = body.recorded if request.points is None else {**body.recorded, **request.points.recorded}

    @property
    def by_nest(self) -> list[NestRun]:
        """What each nest did in all repetitions together."""
        predicted = [self.repetitions * plan.predicted.time_s / self._plan_steps for plan in self._plans]
        share = self.measured.time_s / sum(predicted) if sum(predicted) > 0 else 0.0
        times = self._ran.nests_s or [share * time_s for time_s in predicted]
        return [*map(NestRun, self.nests, self._plans, predicted, times, self._ran.points)]

    @property
    def points_per_s(self) -> float:
        """Points over the computing time."""
        return self.points / self.measured.time_s if self.measured.time_s > 0 else 0.0

    @property
    def reduced(self) -> list[dict[str, Any]]:
        """The reductions of the last repetition: a dict by name for each nest."""
        return [dict(results) for results in self._ran.results()]

    @property
    def results(self) -> dict[str, Any]:
        """The same in one dict; of nests that use one name the last counts."""
        return joined(self._ran.results())

    @property
    def history(self) -> list[dict[str, Any]]:
        """What `until` looked at, as `results`: one dict for each time. Empty without `until`."""
        return list(self._history)

    def __getstate__(self) -> dict[str, Any]:
        results = [dict(each) for each in self._ran.results()]
        return {**vars(self), "_ran": self._ran._replace(results=results)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        results = state["_ran"].results
        vars(self).update(state, _ran=state["_ran"]._replace(results=lambda: results))

    def _rows(self):
        yield "", self._sentence()
        yield "repetitions", f"{self.repetitions} {self._unit}".rstrip()
        yield from self._rows_by_nest()
        yield "measured time", units.seconds(self.measured.time_s)
        yield "whole call", row_of_times(self.measured)
        yield "points", f"{self.points} ({units.text(self.points_per_s, units.POINTS)})"
        for name, value in self.results.items():
            yield name, str(value)

    def _sentence(self):
        """What ran, and how: "smooth, residual ran 134 times as one schedule ..."."""
        times = units.count(self.repetitions, "time")
        how = f"one after another, because {self.separate}" if self.separate else "as one schedule"
        return f"{listed(self.nests)} ran {times} {how}{', until the condition held' * self.reached}."

    def _rows_by_nest(self):
        times = [time_s for run in self.by_nest for time_s in (run.predicted_s, run.time_s)]
        unit, cells = units.column(times, units.TIMES)
        yield "nest", f"predicted | measured, {unit} | points"
        for k, run in enumerate(self.by_nest):
            yield f"  {run.nest}", f"{cells[2 * k]} | {cells[2 * k + 1]} | {run.points}"

    def __str__(self) -> str:
        return "\n".join(f"{name:16} {text}" if name else text for name, text in self._rows())

    def __repr__(self) -> str:
        return (
            f"<tilewave.ChainReport of {', '.join(self.nests)}: {units.count(self.repetitions, 'repetition')}, "
            f"{self.points} points in {units.seconds(self.measured.time_s)} "
            f"({units.text(self.points_per_s, units.POINTS)})>"
        )


def listed(names):
    """The names of nests in a sentence, or how many they are."""
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} nests"


def joined(results):
    """The dicts of all nests as one: of equal names the last nest counts."""
    return {name: value for each in results for name, value in each.items()}
