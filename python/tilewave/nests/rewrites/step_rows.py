"""Runs of nests that write a row for several time steps, ``w[t // 5, i]``: so many steps at a time as have one row."""

import copy
import dataclasses
import itertools
import time
import types

import numpy as np

from tilewave.errors import ConfigError
from tilewave.field.create import field
from tilewave.field.field import Field
from tilewave.field.values import digest
from tilewave.nest.bounds import changed_over
from tilewave.nest.changed import ChangedNest, forwards, remembered, strided
from tilewave.nest.step_rows import values_of
from tilewave.nests.call.arguments import check_arrays, fields_for_scratch, split_arguments
from tilewave.nests.call.problem import check_steps
from tilewave.nests.call.step_blocks import for_steps
from tilewave.nests.plan.prepare import prepare
from tilewave.nests.run.execute import report_arguments, report_of, run_bound
from tilewave.nests.run.report import LaneTimes, Report
from tilewave.plan.plan import Plan
from tilewave.timeline.parts import Parts

#: What is added up of a lane.
LANE_TIMES = [each.name for each in dataclasses.fields(LaneTimes) if each.name not in ("rank", "lane", "idle_s")]


class StepRows:
    """A call of such a nest, checked: the nest whose time steps write the rows as arrays without time, `given`, and the
    `parts` of the run, (first step, steps, row by name).

    Raises
    ------
    ConfigError
    """

    def __init__(self, nest, context, loops, arguments, reduce, points=None):
        wrong = reduce is not None and "reduce= was given" or loops.steps is None and "steps= was not given"
        wrong = wrong or next((f"points of {name!r} were given" for name in points or () if name in nest.rows), "")
        if wrong:
            raise ConfigError(
                f"{wrong}, and nest {nest.name!r} writes a row of {', '.join(nest.rows)} for several time steps; "
                "allowed: steps=, inject= and record= at other arrays"
            )
        self.context, steps = context, loops.steps
        arrays, scalars = split_arguments(nest, arguments)
        arrays = fields_for_scratch(nest, arrays, context, steps)
        check_arrays(nest, arrays, context)
        # It runs part after part, and a window would begin anew in each.
        if windows := [name for name, value in arrays.items() if getattr(value, "keep", "all") != "all"]:
            raise ConfigError(
                f"array {windows[0]!r} keeps a rolling window only, and nest {nest.name!r} writes a row of "
                f"{', '.join(nest.rows)} for several time steps; allowed: fields with keep='all'"
            )
        steps_of = remembered(nest, "step rows", lambda: ChangedNest(nest, copy.deepcopy(nest.source.tree)))
        # Strides first: their condition is part of the body, whose time steps are counted from the first of all.
        self.nest, self.loops = strided(*forwards(steps_of, loops), arrays, reduce)
        self.whole = {name: arrays[name] for name in nest.rows}
        for name, whole in self.whole.items():
            if whole.ndim != nest.parameters.ranks[name]:
                raise ConfigError(
                    f"array {name!r} has shape {whole.shape}, the nest gives it {nest.parameters.ranks[name]} "
                    "subscripts, of which the first is its row; allowed: as many dimensions"
                )
        self.given = {**arguments, **{name: np.empty(w.shape[1:], w.dtype) for name, w in self.whole.items()}}
        check_steps(self.nest, {name: self.given[name] for name in nest.arrays}, steps)
        times = np.arange(steps) if self.loops.backwards is None else np.arange(steps, 0, -1)
        rows = {name: self._rows(nest, name, times, nest.bind_scalars(scalars)) for name in nest.rows}
        new = np.any([np.diff(each, prepend=-1) != 0 for each in rows.values()], axis=0)
        begins = [*np.flatnonzero(new).tolist(), int(steps)]
        self.parts = [
            (begin, end - begin, {name: int(each[begin]) for name, each in rows.items()})
            for begin, end in itertools.pairwise(begins)
        ] or [(0, 0, {})]
        self.longest = max(self.parts, key=lambda part: part[1])
        kinds = [getattr(whole, "_number", whole.shape) for whole in self.whole.values()]
        self.description = f"rows {kinds} {[digest(each) for each in rows.values()]} of {nest.signature()}"

    def _rows(self, nest, name, times, scalars):
        """The row of each time step, counted from the first."""
        rows, extent = values_of(nest, name, times, scalars), self.whole[name].shape[0]
        outside = (rows < -extent) | (rows >= extent)
        if outside.any():
            at = int(times[outside][0])
            raise ConfigError(
                f"steps={self.loops.steps}: `{nest.source.text_of(nest.rows[name])}` is {rows[outside][0]} at "
                f"{nest.indices[0]}={at}, which array {name!r} of shape {self.whole[name].shape} has no row for; "
                f"allowed: {-extent} to {extent - 1}"
            )
        return np.where(rows < 0, rows + extent, rows)

    def make_rows(self):
        """Those of fields, for the time steps to write; collective."""
        for name, whole in self.whole.items():
            if isinstance(whole, Field):
                self.given[name] = field(whole.shape[1:], whole.dtype, context=self.context)

    def loops_of(self, part):
        """The loops of some of the steps, counted from their first."""
        over = changed_over(self.nest.indices, self.loops.over, self.nest.time, 1, part[0])
        return dataclasses.replace(self.loops, over=over, steps=part[1])

    def prepared(self, part, plan, fastmath, planning):
        """What some steps run with; part of a collective call."""
        loops = self.loops_of(part)
        if self.nest.parameters.wholes and not isinstance(plan, Plan):  # tasks count time from the first of their run
            plan = {**(plan or {}), "generator": "sweep"}
        return prepare(self.nest, self.context, loops, plan, fastmath, self.given, None, planning=planning)

    def planned(self, ready):
        """The plan of the longest part, with what it is predicted to take for all steps."""
        together, steps = self.longest[1], int(self.loops.steps)
        return for_steps(ready.plan, together, together, 0.0, steps) if together else ready.plan

    def move(self, rows, back):
        """Copy rows to where the time steps find them, or `back`; collective. A rank has the same part of both."""
        self.context._ranks.run(lambda: self._move(rows, back), lambda calls: None)

    def _move(self, rows, back):
        for name, row in rows.items():
            whole, part = self.whole[name], self.given[name]
            if isinstance(whole, Field):
                self.context._moves(whole._storage.relayout_rows, part._storage)
                whole, part = whole._view(0), part._view(0)
            if part.size:
                one, other = (whole[row], part) if back else (part, whole[row])
                one[...] = other


def agreed_rows(nest, context, loops, arguments, reduce, points=None):
    """Return the `StepRows` of a call, on which the ranks have agreed; part of the call."""
    error = call = None
    try:
        call = StepRows(nest, context, loops, arguments, reduce, points)
    except BaseException as problem:
        error = problem
    yield error or call.description
    return call


def prepared_rows(nest, context, loops, arguments, reduce, plan, planning):
    """Return what the longest part of a run is prepared with, and the plan of all parts; part of a collective call."""
    call = yield from agreed_rows(nest, context, loops, arguments, reduce)
    call.make_rows()
    ready = yield from call.prepared(call.longest, plan, False, planning)
    return dataclasses.replace(ready, plan=call.planned(ready))


def run_rows(call, plan, fastmath, planning, points, begun):
    """Run a `StepRows`; part of a collective call."""
    call.make_rows()
    readies, keys, cores, moving_s = {}, [call.loops_of(part).key(call.nest) for part in call.parts], [], 0.0
    for part, key in zip(call.parts, keys, strict=True):  # all of them before anything runs: a plan may not fit one
        if key not in readies:
            readies[key] = yield from call.prepared(part, plan, fastmath, planning)
            if points is not None:
                readies[key].points = points.of(readies[key].problem.nest, False)
    for part, key in zip(call.parts, keys, strict=True):
        ready, rows = readies[key], part[2]
        ready.first_step = part[0]
        if ready.copies_arrays:
            ready.copy_again()
        before = time.perf_counter()
        call.move(rows, back=False)
        moving_s += time.perf_counter() - before
        core, after_s = yield from run_bound(ready, time.perf_counter())
        before = time.perf_counter()
        call.move(rows, back=True)
        moving_s += time.perf_counter() - before + after_s
        cores.append(core)
    if points is not None:
        points.finish(call.context)
    longest = readies[call.loops_of(call.longest).key(call.nest)]
    whole = dataclasses.replace(longest, steps=int(call.loops.steps), plan=call.planned(longest))
    recorded = {} if points is None else {"recorded": points.recorded}
    return Report(**report_arguments(whole, _all_of(cores, begun), moving_s) | recorded)


def _all_of(cores, begun):
    """The core's report of all: times, parts and lanes of all runs, the timeline of the last."""
    last = cores[-1]
    parts = [Parts.of(core.parts) for core in cores]
    lanes = {}
    for lane in (lane for core in cores for lane in core.lanes):
        place = lane.rank, lane.lane
        so_far = lanes.get(place)
        lanes[place] = types.SimpleNamespace(
            rank=lane.rank,
            lane=lane.lane,
            **{name: getattr(lane, name) + getattr(so_far, name, 0.0) for name in LANE_TIMES},
        )
    return report_of(
        sum(core.time_s for core in cores),
        sum(core.points for core in cores),
        plan=last.plan,
        ranks=last.ranks,
        threads=last.threads,
        timeline=last.timeline,
        lanes=[*lanes.values()],
        overlap_ratio=last.overlap_ratio,
        interrupted=last.interrupted,
        parts=Parts(*(sum(each) for each in zip(*map(dataclasses.astuple, parts), strict=True))),
        moving_s=sum(core.moving_s for core in cores),
        call_s=time.perf_counter() - begun,
        waves=sum(core.waves for core in cores),
        buffer_bytes=max(core.buffer_bytes for core in cores),
    )
