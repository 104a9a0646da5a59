"""Runs of bound nests: by all ranks, or by one for all."""

from __future__ import annotations

import functools
import json
import math
import time
import types

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError, KernelError
from tilewave.field.create import field
from tilewave.nests.call.operands import memory_in_c_order, operands_of
from tilewave.nests.call.problem import history_of
from tilewave.nests.rewrites.as_given import place_as_given
from tilewave.nests.run.memory_bound import moved_by


def report_arguments(ready, core, after_s):
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
        "after_s": after_s,
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
    ranks = 1 if ready.on_one_rank else ready.context.size
    return report_of(time_s, ready.sweep.points, plan=plan, ranks=ranks, threads=plan.lanes, call_s=time_s), 0.0


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
    """Run a bound nest, and what follows its run; part of a collective call.

    Returns
    -------
    (the core's report, seconds of giving fields back after the run)
    """
    run = functools.partial(ready.parts.run if ready.parts else _run_alone, ready, begun)
    plan = functools.partial(planned, ready)
    core, after_s = yield from ready.context._ranks.run(run, plan)
    for step in ready.after:
        step(ready)
    if ready.visited:
        ready.visited[0].finish(ready.context)
    return core, after_s


def _run_alone(ready, begun):
    nest, context, after_s = ready.problem.nest, ready.context, 0.0
    if ready.on_one_rank:
        core, after_s = yield from run_on_one_rank(nest, ready, begun)
    else:
        moving_s = 0.0
        if ready.replicated or ready.stored:
            moving_s = -time.perf_counter()
            yield from _whole_operands(nest, ready)
            moving_s += time.perf_counter()
        try:
            core = execute(nest, context, ready, ready.operands, begun, moving_s)
        except (ConfigError, KernelError, MemoryError) as error:  # others may have happened on this rank only
            raise context._shared(error) from None
        finally:
            for whole, part in ready.copies:
                whole[...] = part
    context._finished(core)
    return core, after_s


def execute(nest, context, ready, operands, begun, moving_s):
    """The run itself, in `context`, of a call that began at `begun` and has moved fields for `moving_s` seconds;
    collective over it.
    """
    context._heart.progress.of = nest.name
    try:
        return ready.sweep.run(
            operands,
            ready.core_kernel(),
            lambda site, point: explain(
                nest, context, ready.kernel, site, place_as_given(ready.loops, ready.tables, nest, point)
            ),
            steps=ready.steps,
            moving_s=moving_s,
            call_s=time.perf_counter() - begun,
            first_step=ready.first_step,
            points=list(ready.points),
        )
    finally:
        context._heart.done()


def run_on_one_rank(nest, ready, begun):
    """Run a nest that cannot be shared: rank 0 gathers the fields, computes, gives them back; part of a collective
    call.

    Returns the core's report, and the seconds of giving back.
    """
    context, error, core, wholes = ready.context, None, None, {}
    spread = [name for name, value in ready.arrays.items() if not isinstance(value, np.ndarray) and value.keep == "all"]
    try:
        wholes = {
            name: np.empty(value.shape, value.dtype) if name in spread and context.rank == 0 else value
            for name, value in ready.arrays.items()
        }
    except BaseException as problem:
        error = problem
    yield error
    moving_s = -time.perf_counter()
    history = {
        name: history_of(nest, ready.arrays, name, ready.loops.again)
        for name in nest.written
        if ready.loops.steps is not None
    }
    before = {name: _buffers_before(ready.arrays[name], count) for name, count in history.items() if count}
    for name in spread:
        context._moves(ready.arrays[name]._storage.gather, wholes[name].ctypes.data if context.rank == 0 else 0)
    moving_s += time.perf_counter()
    if context.rank == 0:
        try:
            solo = context.solo()
            fields = {name: wholes[name] for name in spread if name in nest.tables and name not in nest.updates}
            ready.tables = {**ready.tables, **fields}
            if ready.kernel.copies_tables:
                ready.pack()
            without_window = {name: stored(wholes[name], solo) for name in ready.stored}
            with_history = {
                name: field(whole.shape, whole.dtype, whole, history=before[name], context=solo)
                for name, whole in wholes.items()
                if name in before and name not in without_window
            }
            given = {**wholes, **without_window, **with_history}
            operands, copies = operands_of(nest, given, ready.initial)
            core = execute(nest, solo, ready, operands, begun, moving_s)
            for whole, part in copies:
                whole[...] = part
            for name, part in with_history.items():
                if name in ready.loops.again:
                    part._storage.join_steps()
                wholes[name], before[name] = (
                    part.gather(),
                    [part.buffer(-1 - number).gather() for number in range(history[name])],
                )
        except BaseException as problem:
            error = problem
    interrupted = isinstance(error, KeyboardInterrupt)
    yield None if interrupted else error
    after_s = -time.perf_counter()
    for name in nest.written:
        if ready.arrays[name].keep == "all":
            for number, whole in enumerate([wholes[name], *before.get(name, [])]):
                data = whole.ctypes.data if context.rank == 0 else 0
                context._moves(ready.arrays[name]._storage.scatter, data, number)
    numbers = {
        "interrupted": interrupted or core is not None and core.interrupted,
        "after_s": after_s + time.perf_counter(),
    }
    if core is not None:
        numbers["reduced"] = as_text(core.reduced)
        numbers.update(
            (name, getattr(core, name))
            for name in ("time_s", "moving_s", "call_s", "points", "points_per_s", "waves", "buffer_bytes")
        )
    numbers = json.loads(context._core.broadcast(json.dumps(numbers).encode()))
    after_s = numbers.pop("after_s")
    if context.rank == 0 and core is not None:
        return core, after_s
    numbers["reduced"] = from_text(numbers.get("reduced", ()))
    return types.SimpleNamespace(
        plan=ready.sweep.plan,
        ranks=1,
        threads=ready.sweep.plan.lanes,
        timeline=_core.Timeline(),
        parts=_core.parts(_core.Timeline()),
        lanes=[],
        overlap_ratio=math.nan,
        **numbers,
    ), after_s


def as_text(reduced):
    """What the core has reduced, to be sent."""
    return [(r.any, r.at, r.bytes.hex()) for r in reduced]


def from_text(sent):
    """The same again, to be looked at."""
    return [types.SimpleNamespace(any=has, at=at, bytes=bytes.fromhex(data)) for has, at, data in sent]


def _buffers_before(value, count):
    """So many time steps of a field before the current one, the latest first, on rank 0; collective."""
    if value.keep == "window":
        return []
    value.context._moves(value._storage.keep_history, count)
    return [value.buffer(-1 - number).gather() for number in range(count)]


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


def explain(nest, context, kernel, site, place):
    name, message, line = kernel.sites[site - 1]
    where = ", ".join(f"{i}={p}" for i, p in place.items())
    return f"nest {nest.name!r} raised {name}({message!r}) at {where} on rank {context.rank}, line {line}"
