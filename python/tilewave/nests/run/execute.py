"""Runs of bound nests."""

from __future__ import annotations

import functools
import math
import time
import types

from tilewave import _core
from tilewave.errors import ConfigError, KernelError
from tilewave.field.create import field
from tilewave.nests.rewrites.as_given import place_as_given


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
    context, error = ready.context, None
    if ready.stored:
        whole = {name: stored(ready.arrays[name], context) for name in ready.stored}  # each is a collective call
        try:
            ready.store_windows(whole)
        except BaseException as problem:
            error = problem
        yield error
    try:
        core = _execute(ready.problem.nest, context, ready, begun)
    except (ConfigError, KernelError, MemoryError) as error:  # others may have happened on this rank only
        raise context._shared(error) from None
    finally:
        for whole, part in ready.copies:
            whole[...] = part
    context._finished(core)
    return core


def _execute(nest, context, ready, begun):
    """The run itself, of a call that began at `begun`; collective."""
    context._heart.progress.of = nest.name
    try:
        return ready.sweep.run(
            ready.operands,
            ready.core_kernel(),
            lambda site, point: explain(
                nest, context.rank, ready.kernel, site, place_as_given(ready.loops, ready.tables, nest, point)
            ),
            steps=ready.steps,
            call_s=time.perf_counter() - begun,
            first_step=ready.first_step,
            points=list(ready.points),
            whole=ready.whole_fields,
        )
    finally:
        context._heart.done()


def stored(window, context):
    """A field that keeps a rolling window only, as one that keeps all; collective over `context`."""
    init = window._init
    if init is not None and not callable(init):
        whole = init
        init = whole.flat[0] if not any(whole.strides) and whole.size else whole
    return field(window.shape, window.dtype, init, context=context)


def explain(nest, rank, kernel, site, place):
    name, message, line = kernel.sites[site - 1]
    # Without loops of one turn, which whole functions add.
    where = ", ".join(f"{i}={p}" for i, p in place.items() if not i.startswith("tw_"))
    return f"nest {nest.name!r} raised {name}({message!r}) at {where} on rank {rank}, line {line}"
