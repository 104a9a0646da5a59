"""Several nests, one after another in each time step."""

from __future__ import annotations

import math
import time
import types

from tilewave import _core
from tilewave.context import collective
from tilewave.errors import ConfigError, shown
from tilewave.nests.bind import Bound
from tilewave.nests.cached_steps import TimeStep, call_key, find, store
from tilewave.nests.chain_body import ChainMaker, Ran, check_shared, why_no_schedule
from tilewave.nests.chain_report import ChainReport, NestRun
from tilewave.nests.execute import run_bound
from tilewave.nests.parts_of_step import histories_of, parts_of
from tilewave.nests.points import Points
from tilewave.plan.fixed import USUAL, fixed_by

#: Bytes of arrays that time steps might move from layout to layout, from which on nests are planned for one layout in
#: common, or made one schedule: 8 MB move in 3 ms, and planning three nests once more takes as long.
LEAST_MOVED_BYTES = 1 << 23
#: A move between ranks takes as long as a move of so many bytes more on one rank, 40 us.
BYTES_OF_RANKS = 1 << 17


def run_several(nests, context, loops, planned, fastmath, arguments, reduce, points):
    """Run nests one after another in each time step; part of a collective call: ``yield from`` it.

    Parameters
    ----------
    nests : tuple of Nest
    loops : Loops
        For the nests that have the indices; `over` or `reverse` may be a list of them, one a nest.
    planned : (plan, planning)
        As in `run`.
    points : (dict or None, dict or None)
        As `inject` and `record` of `run`.

    Returns
    -------
    ChainReport
    """
    begun = time.perf_counter()
    error = cached = ready = given = None
    description, steps = "", loops.steps
    try:
        whole, choices = fixed_by(*planned)
        for name, value in (("plan", whole), ("reduce", reduce)):
            if value is not None:
                raise ConfigError(f"{name}={shown(value)} was given for several nests; allowed: for one nest")
        points = Points(*points, nests, arguments, steps)
        scalars = {name: arguments[name] for nest in nests for name in nest.scalars if name in arguments}
        given = nests, context, loops, choices, fastmath, arguments, bool(points)
        cached = find(context, call_key(*given), arguments, int(steps))
        ready = cached and cached.with_arguments(arguments, int(steps))
        description = f"nests {', '.join(nest.name for nest in nests)}, {steps} steps, scalars {scalars}, {points}"
    except BaseException as problem:
        error = problem
    if not (yield error or (description, cached.number if cached else 0)):
        ready = yield from _prepared(*given)
        store(context, call_key(*given), ready)  # fields may keep a longer history by now
    runs = [
        NestRun(nest.name, each.plan, each.plan.predicted.time_s * steps)
        for nest, each in zip(nests, ready.bounds, strict=True)
    ]
    ran = _run_as_one(ready, runs) if ready.chain else (yield from _run_one_by_one(ready, runs, points, context))
    points.finish(context)
    names, call_s = tuple(nest.name for nest in nests), time.perf_counter() - begun
    why = "" if ready.chain else "each time step is a run of each nest"
    return ChainReport(names, why, ran, int(steps), [], False, call_s, runs, points.recorded)


def _run_as_one(ready, runs):
    """All time steps as repetitions of one schedule, on which the ranks have agreed; collective."""
    if ready.bounds[0].context._dry_run is not None:
        ran = ready.chain.planned(ready.steps, ready.bounds)
    else:
        environments = [bound.environment[1] for bound in ready.bounds]
        ran = ready.chain.repeat(ready.steps, types.SimpleNamespace(agreed=None, environments=lambda: environments))
    predicted_s = sum(run.predicted_s for run in runs)
    for bound, run in zip(ready.bounds, runs, strict=True):
        run.time_s, run.points = ran.time_s * run.predicted_s / predicted_s, ready.steps * bound.sweep.points
    return ran


def _run_one_by_one(ready, runs, points, context):
    """Each nest in each time step; part of a collective call."""
    moving_s = 0.0
    recording, context._core.record = context._core.record, False
    try:
        for step in range(ready.steps):
            for bound, joined, run in zip(ready.bounds, ready.joined, runs, strict=True):
                bound.first_step = step
                if bound.copies_arrays:
                    bound.copy_again()  # another nest may have changed them
                core, after_s = yield from run_bound(bound.problem.nest, bound, time.perf_counter())
                moving_s += core.moving_s + after_s
                run.time_s, run.points = run.time_s + core.time_s, run.points + core.points
                for name in joined if not bound.on_one_rank else ():  # which has joined them
                    bound.arrays[name]._storage.join_steps()
            points.visit(step, context.rank)
    finally:
        context._core.record = recording
    return Ran(list, sum(run.time_s for run in runs), moving_s, sum(run.points for run in runs))


def _prepared(nests, context, loops, choices, fastmath, arguments, visits):
    """The `TimeStep` of a call; part of a collective call."""
    error, parts, histories = None, [], {}
    try:
        parts = parts_of(nests, loops, arguments)
        histories = histories_of(parts)
    except BaseException as problem:
        error = problem
    yield error or f"histories {sorted(histories)}"
    for name, count in sorted(histories.items()):
        context._moves(arguments[name]._storage.keep_history, count)
    steps, number, bounds = int(loops.steps), context._core.started, []
    for part in parts:
        fixed = {name: value for name, value in choices.items() if name != "planning"}
        planning, fixed = choices.get("planning", USUAL), fixed or part.simplest(context._off)
        bounds.append(Bound(part.nest, context, part.loops, fixed, fastmath, None, part.arguments, planning))
        yield from bounds[-1]._prepare_first()
    readies, chain = _in_one_layout(context, parts, bounds, steps, visits)
    for bound in bounds:  # it refers to itself, and its arrays would live until the next garbage collection
        bound._variants.clear()
        bound._first = None
    yield from collective.ready("one schedule", lambda: chain and chain.prepare(steps))
    return TimeStep(number, steps, readies, [part.joined for part in parts], chain)


def _in_one_layout(context, parts, bounds, steps, visits):
    """A `BoundNest` for each nest, with one layout of the fields that they share, and the chain that they are, or None;
    collective.
    """
    readies = [bound._first.ready for bound in bounds]
    arrays = [part.arguments[name] for part in parts for name in part.nest.arrays]
    moved_bytes = steps * sum(array.dtype.itemsize * math.prod(array.shape) for array in arrays)
    moved_bytes += steps * BYTES_OF_RANKS * (context.size > 1) * len(parts)
    if steps == 0 or moved_bytes < LEAST_MOVED_BYTES or why_no_schedule(bounds, readies):
        return readies, None
    maker = _StepsMaker(context, bounds, [{} for _ in bounds], readies)
    joins = not visits and all(part.same_steps for part in parts) and not _share_memory(bounds)
    (maker.joins,) = context._core.allreduce_min([int(joins)])
    _core.choose_chain_layout(maker.members(), context.size, context._off, maker)
    return maker.readies or readies, maker.made


def _share_memory(bounds):
    """Whether nests have arrays that share memory and are not the same."""
    try:
        check_shared(bounds)
    except ConfigError:
        return True
    return False


class _StepsMaker(ChainMaker):
    """Gives nests one layout, and where all time steps are the same one schedule."""

    readies, joins = None, False

    def join(self, readies):
        self.readies, self.made = readies, None
        if self.joins and all(max(ready.sweep.problem.time_buffers) <= 2 for ready in readies):
            super().join(readies)
        return ""
