"""Runs of bound nests."""

from __future__ import annotations

import functools
import math
import time
import types

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError, KernelError
from tilewave.field.create import field
from tilewave.nests.call.operands import memory_in_c_order, operands_of
from tilewave.nests.rewrites.as_given import place_as_given
from tilewave.nests.run.memory_bound import moved_by


def report_arguments(ready, core):
    """The arguments of the `Report` of a run, by name."""
    loops = ready.ranges()
    return {
        "core": core,
        "plan": ready.plan,
        "sequential": ready.sequential,
        "on_one_rank": ready.on_one_rank,
        "stored": tuple(ready.stored),
        "recorded": ready.visited[0].recorded if ready.visited else None,
        "results": ready.context._ranks.run(
            lambda: results_of(ready.reductions, core), functools.partial(unknown_results, ready)
        ),
        "loops": loops,
        "steps": None if ready.loops.steps is None else len(range(*loops[ready.problem.nest.time])),
        "inner_points": ready.loops.inner_points,
        "cut": ready.problem.cut,
        "moved": functools.partial(
            moved_by, ready.problem, ready.plan, ready.dtypes, (*ready.initial,), loops, core.points
        ),
        "context": ready.context,
    }


def results_of(reductions, core):
    """Return what the core has reduced in a run, by name."""
    return reductions.results([(r.any, r.at, r.bytes) for r in core.reduced])


def unknown_results(ready, calls):
    """What a run that is only planned has reduced, by name."""
    return {
        name: calls.place(len(ready.ranges()), f"reduction {name!r}")
        if r.is_place
        else calls.unknown(f"reduction {name!r}")
        for name, (r, _, _) in ready.reductions.asked.items()
    }


def planned(ready, calls):
    """What a run would give, of which only the plan is wanted: it takes what is predicted."""
    yield from ()
    time_s, plan = ready.plan.predicted.time_s, ready.sweep.plan
    calls.add(f"nest {ready.problem.nest.name}", time_s, ready.plan, ready.arrays.values())
    return report_of(time_s, ready.sweep.points, plan=plan, ranks=plan.ranks, threads=plan.lanes, call_s=time_s)


def report_of(time_s, points, **others):
    """A report as the core's of a run, which has nothing that is not given."""
    nothing = {
        "timeline": _core.Timeline(),
        "parts": _core.parts(_core.Timeline()),
        "lanes": [],
        "overlap_ratio": math.nan,
        "interrupted": False,
        "moving_s": 0.0,
        "waves": 0,
        "buffer_bytes": 0,
        "reduced": (),
    }
    rate = points / time_s if time_s > 0 else 0.0
    return types.SimpleNamespace(**{**nothing, **others}, time_s=time_s, points=points, points_per_s=rate)


def run_bound(ready, begun):
    """Run a bound nest, and what follows its run; part of a collective call. Returns the core's report."""
    run = functools.partial(ready.parts.run if ready.parts else _run_alone, ready, begun)
    plan = functools.partial(planned, ready)
    core = yield from ready.context._ranks.run(run, plan)
    for step in ready.after:
        step(ready)
    if ready.visited:
        ready.visited[0].finish(ready.context)
    return core


def _run_alone(ready, begun):
    context, moving_s = ready.context, 0.0
    if ready.replicated or ready.stored:
        moving_s = -time.perf_counter()
        yield from _whole_operands(ready.problem.nest, ready)
        moving_s += time.perf_counter()
    try:
        core = _execute(ready.problem.nest, context, ready, begun, moving_s)
    except (ConfigError, KernelError, MemoryError) as error:  # others may have happened on this rank only
        raise context._shared(error) from None
    finally:
        for whole, part in ready.copies:
            whole[...] = part
    context._finished(core)
    return core


def _execute(nest, context, ready, begun, moving_s):
    """The run itself, of a call that began at `begun` and has moved fields for `moving_s` seconds; collective."""
    context._heart.progress.of = nest.name
    try:
        return ready.sweep.run(
            ready.operands,
            ready.core_kernel(),
            lambda site, point: explain(
                nest, context.rank, ready.kernel, site, place_as_given(ready.loops, ready.tables, nest, point)
            ),
            steps=ready.steps,
            moving_s=moving_s,
            call_s=time.perf_counter() - begun,
            first_step=ready.first_step,
            points=list(ready.points),
        )
    finally:
        context._heart.done()


def _whole_operands(nest, ready):
    """What every rank needs whole, and what a run stores though it could keep less; part of a collective call."""
    context, error, whole, copied = ready.context, None, {}, []
    for name in ready.stored:  # each is a collective call
        whole[name] = stored(ready.arrays[name], context)
    try:
        for name in ready.replicated:
            value = ready.arrays[name]
            whole[name] = memory_in_c_order(value)
            if whole[name] is None:
                whole[name] = np.empty(value.shape, value.dtype)
                copied.append(name)
        ready.operands, ready.copies = operands_of(nest, {**ready.arrays, **whole}, ready.initial)
        ready.tables = {name: whole.get(name, table) for name, table in ready.tables.items()}
    except BaseException as problem:
        error = problem
    yield error
    for name in copied:
        address = whole[name].ctypes.data
        context._moves(ready.arrays[name]._storage.gather, address if context.rank == 0 else 0)
        if not ready.on_one_rank:
            context._core.broadcast_into(address, whole[name].nbytes)
    if ready.kernel.copies_tables:
        ready.pack()


def stored(window, context):
    """A field that keeps a rolling window only, as one that keeps all; collective over `context`."""
    init = window._init
    if init is not None and not callable(init):
        whole = init
        init = whole.flat[0] if not any(whole.strides) and whole.size else whole
    return field(window.shape, window.dtype, init, context=context)


def explain(nest, rank, kernel, site, place):
    name, message, line = kernel.sites[site - 1]
    where = ", ".join(f"{i}={p}" for i, p in place.items())
    return f"nest {nest.name!r} raised {name}({message!r}) at {where} on rank {rank}, line {line}"
