"""Time steps that are run one by one: of several nests, or with sources and receivers between them."""

from __future__ import annotations

import dataclasses
import math
import time
import types
from typing import TYPE_CHECKING

import numpy as np

from tilewave import _core, units
from tilewave.errors import ConfigError, shown
from tilewave.field.create import Scratch
from tilewave.field.field import Field
from tilewave.nest.bounds import Loops, loop_directions
from tilewave.nest.nest import Nest
from tilewave.nests.chain_report import ChainTimes
from tilewave.nests.memory_bound import moved_by
from tilewave.nests.operands import copied, operands_of
from tilewave.nests.points import Points
from tilewave.nests.prepare import prepare
from tilewave.nests.problem import check_steps, depth_of, lacking_time
from tilewave.nests.report import Report, row_of_times
from tilewave.plan.fixed import refuse_choices
from tilewave.timeline.parts import Parts, Predicted

if TYPE_CHECKING:
    from tilewave.annotations import Array
    from tilewave.plan.plan import Plan


@dataclasses.dataclass
class Turn:
    """One of the nests: what it did in all steps together.

    Attributes
    ----------
    nest : str
    plan : Plan
    predicted_s, time_s : float
        Seconds of all its steps.
    points : int
    """

    nest: str
    plan: Plan
    predicted_s: float
    time_s: float
    points: int


class StepsReport:
    """The result of `run` with several nests; prints as a short table.

    Attributes
    ----------
    turns : list of Turn
        By nest.
    steps : int
        Time steps.
    predicted_s, time_s : float
        Sums over nests.
    measured : ChainTimes
        ``measured.time_s``, and what the call took besides.
    points : int
    points_per_s : float
    recorded : dict
        Of ``record=``: from the names of arrays to (steps, points) values.
    """

    turns: list[Turn]
    steps: int
    predicted_s: float
    time_s: float
    measured: ChainTimes
    points: int
    points_per_s: float
    recorded: dict[str, Array]

    def __init__(self, turns: list[Turn], steps: int, recorded: dict[str, Array], measured: ChainTimes) -> None:
        self.turns, self.steps, self.recorded, self.measured = turns, steps, recorded, measured
        self.predicted_s, self.time_s = sum(turn.predicted_s for turn in turns), sum(turn.time_s for turn in turns)
        self.points = sum(turn.points for turn in turns)
        self.points_per_s = self.points / self.time_s if self.time_s > 0 else 0.0

    def __str__(self) -> str:
        times = [(turn.predicted_s, turn.time_s) for turn in self.turns] + [(self.predicted_s, self.time_s)]
        unit, cells = units.column((time_s for pair in times for time_s in pair), units.TIMES)
        names = [turn.nest for turn in self.turns] + ["all"]
        points = [str(turn.points) for turn in self.turns] + [str(self.points)]
        width, digits = max(16, *map(len, names)), len(points[-1])
        rows = [
            f"{self.steps} time steps, in each {len(self.turns)} nests one after another",
            f"{'nest':{width}} predicted | measured, {unit} | points",
        ]
        for k, name in enumerate(names):
            rows.append(f"{name:{width}} {cells[2 * k]} | {cells[2 * k + 1]} | {points[k]:>{digits}}")
        rows.append(f"{'whole call':{width}} {row_of_times(self.measured)}")
        rows.append(f"{'points':{width}} {self.points} ({units.text(self.points_per_s, units.POINTS)})")
        return "\n".join(rows)

    def __repr__(self) -> str:
        names = ", ".join(turn.nest for turn in self.turns)
        return f"StepsReport({names}: {self.steps} steps, {units.seconds(self.time_s)})"


class _Sum:
    """What the runs of one nest in all time steps come to, as the core reports of one run."""

    def __init__(self, ready):
        self.time_s = self.moving_s = self.call_s = self.after_s = 0.0
        self.points = self.waves = self.buffer_bytes = 0
        self.ranks, self.threads = ready.sweep.plan.ranks, ready.sweep.plan.lanes
        self.parts, self._lanes, self.reduced = dict.fromkeys(_PARTS, 0.0), {}, ()
        self._overlap, self.timeline = [], _core.Timeline()

    def add(self, core, after_s):
        """One more time step."""
        self.after_s += after_s
        for name in ("time_s", "moving_s", "call_s", "points", "waves"):
            setattr(self, name, getattr(self, name) + getattr(core, name))
        self.buffer_bytes, self.ranks, self.threads = core.buffer_bytes, core.ranks, core.threads
        for name in _PARTS:
            self.parts[name] += getattr(core.parts, name)
        for lane in core.lanes:
            times = self._lanes.setdefault((lane.rank, lane.lane), dict.fromkeys(_LANE_TIMES, 0.0))
            for name in _LANE_TIMES:
                times[name] += getattr(lane, name)
        if not math.isnan(core.overlap_ratio):
            self._overlap.append(core.overlap_ratio)
        self._last = core

    def report(self, ready, steps, recorded, report_of):
        """The `Report` of all steps; its timeline is that of the last one."""
        if steps:
            self.timeline = self._last.timeline
        self.points_per_s = self.points / self.time_s if self.time_s > 0 else 0.0
        self.overlap_ratio = sum(self._overlap) / len(self._overlap) if self._overlap else math.nan
        self.parts = types.SimpleNamespace(**self.parts)
        self.lanes = [types.SimpleNamespace(rank=r, lane=l, **times) for (r, l), times in self._lanes.items()]
        given = report_of(ready, self, self.after_s)
        moved, elements = moved_by(ready, self.points // max(steps, 1))
        given.update(moved=(moved * steps, elements), recorded=recorded, steps=steps)
        given["loops"][ready.problem.nest.time] = (0, steps)
        one = given["plan"].predicted
        parts = Parts(**{name: steps * getattr(one.parts, name) for name in _PARTS})
        given["predicted"] = Predicted(steps * one.time_s, parts, lambda: one.timeline._core, lambda: one.faces)
        return Report(**given)


_PARTS = tuple(field.name for field in dataclasses.fields(Parts))
_LANE_TIMES = ("compute_s", "pack_s", "wait_s", "post_s", "total_s")


def run_in_turn(
    nests,
    context,
    *,
    over,
    reverse,
    steps,
    periodic,
    choices,
    fastmath,
    arguments,
    refused,
    begun,
    points,
    run_bound,
    report_of,
):
    """Run nests one after another in each time step; part of a collective call: ``yield from`` it.

    Parameters
    ----------
    nests : tuple of Nest
    over, reverse
        As in `run`, for the nests that have the indices; or a list of them, one a nest.
    periodic : tuple of str
        As in `run`, for the nests that have the indices.
    choices : dict
        That are fixed, of the plan of each nest.
    refused : dict
        What was given and is not supported here, by name.
    begun : float
        When the call began, by time.perf_counter().
    points : (dict or None, dict or None)
        What is added after each step, and what is recorded.
    run_bound : function
        Runs what `prepare` has made, as part of a collective call, and returns the core's report and seconds.
    report_of : function
        The arguments of the `Report` of such a run, by name.

    Returns
    -------
    Report or StepsReport
        Of one nest, of several.
    """
    error, parts, histories, description, at_points = None, [], {}, "", None
    try:
        parts = _parts(nests, over, reverse, steps, periodic, arguments, refused)
        histories = _histories(parts)
        at_points = Points(*points, nests, arguments, int(steps))
        names = ", ".join(nest.name for nest in nests)
        description = f"nests {names} in turn, {steps} steps, histories {sorted(histories.items())}, {at_points}"
    except BaseException as problem:
        error = problem
    yield error or description
    for name, count in sorted(histories.items()):
        context._moves(arguments[name]._storage.keep_history, count)
    ready = []
    for part in parts:
        one = yield from prepare(part.nest, context, part.loops, choices, fastmath, part.arguments, None)
        ready.append(one)
    turns = [
        Turn(part.nest.name, one.plan, one.plan.predicted.time_s * steps, 0.0, 0)
        for part, one in zip(parts, ready, strict=True)
    ]
    alone = _Sum(ready[0]) if len(ready) == 1 else None
    moving_s = call_s = 0.0
    changing = {name for part in parts for name in part.nest.written}
    recording = context._core.record
    context._core.record = recording and alone is not None
    try:
        for step in range(steps):
            for part, one, turn in zip(parts, ready, turns, strict=True):
                one.first_step = step
                if any(isinstance(value, np.ndarray) and copied(value) for value in one.arrays.values()):
                    # Another nest may have changed them since.
                    one.operands, one.copies = operands_of(part.nest, one.arrays, one.initial)
                    one.take_current_values()
                elif changing & {*part.nest.tables}:
                    one.take_current_values()
                core, after_s = yield from run_bound(part.nest, one, begun)
                begun = time.perf_counter()
                if alone:
                    alone.add(core, after_s)
                moving_s, call_s = moving_s + core.moving_s + after_s, call_s + core.call_s + after_s
                for name in part.loops.again:
                    if part.arguments[name].__class__ is Field and part.arguments[name].history:
                        part.arguments[name]._storage.join_steps()
                turn.time_s += core.time_s
                turn.points += core.points
            at_points.after(step)
    finally:
        context._core.record = recording
    at_points.finish(context)
    if alone:
        return alone.report(ready[0], int(steps), at_points.recorded, report_of)
    time_s = sum(turn.time_s for turn in turns)
    return StepsReport(turns, int(steps), at_points.recorded, ChainTimes(time_s, moving_s, call_s))


@dataclasses.dataclass
class _Part:
    nest: Nest
    loops: Loops
    arguments: dict


def _parts(nests, over, reverse, steps, periodic, arguments, refused):
    """What each nest is given; checked."""
    if not nests:
        raise ConfigError("run: an empty tuple of nests was given; allowed: one nest or more")
    for nest in nests:
        if not isinstance(nest, Nest):
            raise ConfigError(
                f"run: given {type(nest).__name__} among several nests; allowed: functions under @tilewave.nest"
            )
        if nest.time is None:
            raise ConfigError(
                f"run: nest {nest.name!r} has no time; allowed in a time step with others: nests whose first index is "
                "time, "
                "which write their arrays at +1"
            )
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        raise ConfigError(
            f"steps: given {shown(steps)}; allowed for several nests, and with inject= or record=: an integer >= 0"
        )
    for name, value in refused.items():
        raise ConfigError(
            f"{name}={shown(value)} was given for time steps that are run one by one, as of several nests or with "
            "inject= or record=; allowed: for one nest without these"
        )
    for name, value in arguments.items():
        if not any(name in nest.arrays or name in nest.scalars for nest in nests):
            refuse_choices({name: value})
            raise ConfigError(
                f"run: none of the nests {', '.join(nest.name for nest in nests)} has an argument {name!r}"
            )
        if isinstance(value, Scratch) or isinstance(value, Field) and value.keep == "window":
            raise ConfigError(
                f"array {name!r} keeps a rolling window only; allowed for several nests: fields with keep='all'"
            )
    names = {name for nest in nests for name in nest.indices}
    if not isinstance(periodic, tuple | list) or not all(isinstance(name, str) and name in names for name in periodic):
        raise ConfigError(f"periodic: given {periodic!r}; allowed: a tuple of indices of the nests")
    overs = over if isinstance(over, list | tuple) else [over] * len(nests)
    reverses = reverse if isinstance(reverse, list) else [reverse] * len(nests)
    if len(overs) != len(nests) or len(reverses) != len(nests):
        raise ConfigError(
            f"over= or reverse= is a list of another length than there are nests, {len(nests)}; allowed: one for all, "
            "or one a nest"
        )
    written, parts = set(), []
    everywhere = {name for nest in nests for name in nest.written}
    for k, nest in enumerate(nests):
        mine = {name: value for name, value in arguments.items() if name in nest.arrays or name in nest.scalars}
        if missing := [name for name in nest.arrays if name not in mine]:
            raise ConfigError(f"run: nest {nest.name!r} needs its array {missing[0]!r}")
        own_over, own_reverse = overs[k], reverses[k]
        loop_directions([index for each in nests for index in each.indices], own_reverse)
        if overs is not over and isinstance(over, dict):
            own_over = {index: bounds for index, bounds in over.items() if index in nest.indices}
        if reverses is not reverse and isinstance(reverse, tuple):
            own_reverse = tuple(index for index in reverse if index in nest.indices)
        own_periodic = tuple(name for name in periodic if name in nest.indices)
        for name in nest.arrays:
            if not isinstance(mine[name], Field | np.ndarray | Scratch):
                raise ConfigError(
                    f"array {name!r}: given {type(mine[name]).__name__}; allowed: a field or a NumPy array"
                )
        in_time = set(lacking_time(nest, mine))
        check_steps(nest, {name: mine[name] for name in nest.arrays}, int(steps))
        _check_reads(nest, in_time & everywhere, written)
        again = frozenset(name for name in nest.written if name in written and name in in_time)
        parts.append(_Part(nest, Loops(own_over, own_reverse, 1, again, own_periodic), mine))
        written |= set(nest.written)
    return parts


def _check_reads(nest, changing, written):
    """What a nest only reads and another of the step writes must be there at that time step."""
    for place in nest.places:
        if place.array not in changing or place.array in nest.written:
            continue
        if place.offsets[0] == 1 and place.array not in written:
            raise ConfigError(
                f"{nest.where(place)}: `{nest.text_of(place)}` is read before a nest of the time step has written it; "
                "allowed: "
                f"the nest that writes {place.array!r} first, or the time step {nest.time}"
            )
        if place.offsets[0] < 1 and (place.array in written or place.offsets[0] < 0):
            raise ConfigError(
                f"{nest.where(place)}: `{nest.text_of(place)}` is a time step that {place.array!r} no longer has when "
                f"nest {nest.name!r} "
                f"runs, which does not write it; allowed: {nest.time}+1 after the nest that writes it, {nest.time} "
                "before it"
            )


def _histories(parts):
    """By field: how many earlier time steps the nests read, where that is more than it keeps."""
    found = {}
    for part in parts:
        for name in part.nest.written:
            value = part.arguments[name]
            if value.ndim == len(part.nest.axes[name]):
                continue
            depth = depth_of(part.nest, name, part.loops.again)
            if depth and not isinstance(value, Field):
                raise ConfigError(
                    f"array {name!r} is a NumPy array, and nest {part.nest.name!r} reads of it a time step that has "
                    f"been replaced by then; allowed: {name} = tilewave.field(array.shape, array.dtype, array)"
                )
            if depth > (value.history if isinstance(value, Field) else 0):
                found[name] = max(found.get(name, 0), depth)
    return found
