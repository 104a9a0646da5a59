"""Running nests, and planning without running."""

from __future__ import annotations

import json
import math
import time
import types
from typing import TYPE_CHECKING, overload

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError, KernelError
from tilewave.field.create import field
from tilewave.nest.bounds import Loops
from tilewave.nest.nest import Nest
from tilewave.nest.reserved import takes_nests
from tilewave.nests.in_turn import run_in_turn
from tilewave.nests.memory_bound import moved_by
from tilewave.nests.operands import operands_of
from tilewave.nests.prepare import prepare
from tilewave.nests.problem import history_of
from tilewave.nests.replicated import memory_in_c_order
from tilewave.nests.report import Report
from tilewave.plan.fixed import fixed_by
from tilewave.runtime.collective import collective

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import numpy.typing as npt

    from tilewave.annotations import Choices, Collective, Over
    from tilewave.nests.in_turn import StepsReport
    from tilewave.nests.reduction import Reduction
    from tilewave.plan.plan import Plan
    from tilewave.runtime.context import Context


@overload
def run(
    nest: Nest,
    *,
    context: Context | None = None,
    over: Over | None = None,
    reverse: Sequence[str] = (),
    steps: int | None = None,
    periodic: Sequence[str] = (),
    plan: Plan | Choices | None = None,
    fastmath: bool = False,
    reduce: Mapping[str, Reduction] | None = None,
    inject: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
    record: Mapping[str, npt.ArrayLike] | None = None,
    **arguments: Any,
) -> Report: ...
@overload
def run(
    nest: Sequence[Nest],
    *,
    context: Context | None = None,
    over: Over | Sequence[Over | None] | None = None,
    reverse: Sequence[Any] = (),
    steps: int | None = None,
    periodic: Sequence[str] = (),
    plan: Choices | None = None,
    fastmath: bool = False,
    inject: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
    record: Mapping[str, npt.ArrayLike] | None = None,
    **arguments: Any,
) -> StepsReport: ...
@takes_nests
@collective("tw.run")
def run(
    nest: Nest | Sequence[Nest],
    *,
    context: Context | None = None,
    over: Over | Sequence[Over | None] | None = None,
    reverse: Sequence[Any] = (),
    steps: int | None = None,
    periodic: Sequence[str] = (),
    plan: Plan | Choices | None = None,
    fastmath: bool = False,
    reduce: Mapping[str, Reduction] | None = None,
    inject: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
    record: Mapping[str, npt.ArrayLike] | None = None,
    **arguments: Any,
) -> Collective[Report | StepsReport]:
    """Run a nest: what its plain loops would compute, over ranks and threads; collective.

    Parameters
    ----------
    nest : Nest, or tuple of Nest
        Made with ``@tilewave.nest``. Several are run one after another in each of `steps` time steps: what one has
        written for time step t+1 is there for the next. Arrays and scalars are shared by name; `over` may be a list
        with one for each nest.
    context : Context, optional
        Default: the one of the fields; without any, all ranks of the launch.
    over : dict, optional
        Half-open bounds by index name, ``{"i": (1, n)}``, that narrow the loops. A bound may be an
        affine expression of outer indices, ``{"j": ("i", "2*i+3")}`` or ``lambda i: i``, or a list of
        bounds, which all hold.
    reverse : tuple of str
        Loop indices that run downwards; the loops stay nested in the order of the indices.
    steps : int, optional
        Time steps, for a nest whose arrays are subscripted first with time, from -6 to +1, and have no
        such dimension: time step t+1 begins as a copy of time step t; the arrays end as the last time step.
    periodic : tuple of str
        Loop indices along which subscripts wrap: the loop runs over all elements of the arrays, which have equal
        extents n along it, and a subscript ``i+c`` means ``(i+c) % n``. `over` narrows the points that are computed,
        not what they read. For nests whose points of one time step are independent of each other.
    plan : Plan or dict, optional
        From `tilewave.plan`, perhaps edited; or the choices that are fixed, by the names that `Plan` lists them with,
        and ``threads``, the most lanes of a rank: ``{"tile": (1, 8, 254), "threads": 1}``. Default: all are picked. Of
        several nests, and with `inject` or `record`, a dict.
    fastmath : bool
        Allow results that differ from the plain loops in rounding.
    reduce : dict, optional
        From names to what is wanted of a value of each point, ``{"best": tilewave.max("H"), "where":
        tilewave.argmax("H"), "residual": tilewave.norm("d")}``: of arrays, of locals of the body, and of expressions
        of these; found while they are computed, in the report's ``results``. A nest with it need not write any array.
    inject : dict, optional
        With `steps`, from names of written arrays to ``(points, values)``: after each time step t ``values[t, k]`` is
        added to the element ``points[k]``, point after point. Points have a row of subscripts each; values have shape
        ``(steps, len(points))``.
    record : dict, optional
        With `steps`, from names of arrays to points whose values are kept after each time step, behind what `inject`
        adds: the report's ``recorded``, of shape ``(steps, len(points))``, on every rank.
    **arguments
        The nest's arrays (fields; NumPy arrays where only read, the same on each rank, or on one
        rank, then written in place; `scratch` for what the nest needs for itself), and its scalars.

    Returns
    -------
    Report
        A `StepsReport` for a tuple of nests. For several nests, and with `inject` or `record`, time steps are run one
        by one: the times of the report are those of all steps, its timeline is that of the last one.

    Raises
    ------
    ConfigError
        On every rank, before anything runs: for what cannot be run, on any rank, or when ranks
        were given different arguments.
    KernelError
        On every rank, after the run: when the body raised on any. The written array is then
        unspecified.
    KeyboardInterrupt
        On every rank, when one was interrupted.

    Notes
    -----
    Collective. A repeated run of equal nest, shapes and choices reuses kernel and schedule. On several ranks NumPy
    arrays are
    compared by a checksum, which reads each array object once (0.1 s a GB); values changed in place later are not
    looked at.
    """
    begun = time.perf_counter()
    if isinstance(nest, tuple | list) or inject is not None or record is not None:
        nests = tuple(nest) if isinstance(nest, tuple | list) else (nest,)
        whole, choices = fixed_by(plan)
        refused = {name: value for name, value in (("plan", whole), ("reduce", reduce)) if value is not None}
        return (
            yield from run_in_turn(
                nests,
                context,
                over=over,
                reverse=reverse,
                steps=steps,
                periodic=periodic,
                choices=choices,
                fastmath=fastmath,
                arguments=arguments,
                refused=refused,
                begun=begun,
                points=(inject, record),
                run_ready=run_ready,
                report_of=report_arguments,
            )
        )
    loops = Loops(over, reverse, steps, periodic=_plain(periodic))
    ready = yield from prepare(nest, context, loops, plan, fastmath, arguments, reduce)
    core, after_s = yield from run_ready(nest, ready, begun)
    return Report(**report_arguments(ready, core, after_s))


def report_arguments(ready, core, after_s):
    """The arguments of the `Report` of a run, by name."""
    found = [(r.any, r.at, r.bytes) for r in core.reduced]
    return {
        "core": core,
        "plan": ready.plan,
        "sequential": ready.sequential,
        "on_one_rank": ready.on_one_rank,
        "stored": tuple(ready.stored),
        "results": ready.reductions.results(found),
        "loops": ready.ranges(),
        "steps": _time_steps(ready),
        "cut": ready.problem.cut,
        "after_s": after_s,
        "moved": moved_by(ready, core.points),
        "context": ready.context,
    }


def _time_steps(ready):
    """How many time steps `steps=` asked for; None where the nest has none."""
    if ready.loops.steps is None:
        return None
    low, high = ready.ranges()[ready.problem.nest.time]
    return high - low


def run_ready(nest, ready, begun):
    """The run of what was prepared: the core's report, and seconds of giving fields back after it; part of a collective
    call.
    """
    context = ready.context
    after_s = 0.0
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
            lambda site, point: explain(nest, context, ready.kernel, site, point),
            steps=ready.steps,
            moving_s=moving_s,
            call_s=time.perf_counter() - begun,
            first_step=ready.first_step,
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
            stored = {name: _stored(wholes[name], solo) for name in ready.stored}
            kept = {
                name: field(whole.shape, whole.dtype, whole, history=before[name], context=solo)
                for name, whole in wholes.items()
                if name in before and name not in stored
            }
            stored.update(kept)
            operands, copies = operands_of(nest, {**wholes, **stored}, ready.initial)
            core = execute(nest, solo, ready, operands, begun, moving_s)
            for whole, part in copies:
                whole[...] = part
            for name, part in kept.items():
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
        numbers["reduced"] = [(r.any, r.at, r.bytes.hex()) for r in core.reduced]
        numbers.update(
            (name, getattr(core, name))
            for name in ("time_s", "moving_s", "call_s", "points", "points_per_s", "waves", "buffer_bytes")
        )
    numbers = json.loads(context._core.broadcast(json.dumps(numbers).encode()))
    after_s = numbers.pop("after_s")
    if context.rank == 0 and core is not None:
        return core, after_s
    numbers["reduced"] = [
        types.SimpleNamespace(any=has, at=at, bytes=bytes.fromhex(data)) for has, at, data in numbers.get("reduced", ())
    ]
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


def _buffers_before(value, count):
    """So many time steps of a field before the current one, the latest first, on rank 0; collective."""
    if value.keep == "window":
        return []
    value.context._moves(value._storage.keep_history, count)
    return [value.buffer(-1 - number).gather() for number in range(count)]


@takes_nests
@collective("tw.plan")
def plan(
    nest: Nest,
    *,
    context: Context | None = None,
    over: Over | None = None,
    reverse: Sequence[str] = (),
    steps: int | None = None,
    periodic: Sequence[str] = (),
    plan: Plan | Choices | None = None,
    reduce: Mapping[str, Reduction] | None = None,
    **arguments: Any,
) -> Collective[Plan]:
    """The plan that `run` would use, without running.

    Parameters
    ----------
    nest : Nest
    over, reverse, steps, periodic, plan, reduce, **arguments
        As in `run`. Of a `Plan` all is fixed: it is given back with what it is predicted to take.

    Returns
    -------
    Plan
        With what it is predicted to take, and the others that were tried: ``plan.explain()``.

    Raises
    ------
    ConfigError
        On every rank: as `run`.

    Notes
    -----
    Collective; the first call measures the machine, and the first for a nest the rate of its body (0.1 s). A run of the
    same
    nest with the same arrays then takes this plan.
    """
    loops = Loops(over, reverse, steps, periodic=_plain(periodic))
    return (yield from prepare(nest, context, loops, plan, False, arguments, reduce)).plan._copy()


def _plain(periodic):
    """Hashable, where it is what it should be."""
    return tuple(periodic) if isinstance(periodic, list) else periodic


def _whole_operands(nest, ready):
    """What every rank needs whole, and what a run stores though it could keep less; part of a collective call."""
    context, error, whole, copied = ready.context, None, {}, []
    for name in ready.stored:  # each is a call of its own
        whole[name] = _stored(ready.arrays[name], context)
    try:
        for name in ready.replicated:
            value = ready.arrays[name]
            whole[name] = memory_in_c_order(value)
            if whole[name] is None:
                whole[name] = np.empty(value.shape, value.dtype)
                copied.append(name)
        ready.operands, ready.copies = operands_of(nest, {**ready.arrays, **whole}, ready.initial)
    except BaseException as problem:
        error = problem
    yield error
    for name in copied:
        address = whole[name].ctypes.data
        context._moves(ready.arrays[name]._storage.gather, address if context.rank == 0 else 0)
        context._core.broadcast_into(address, whole[name].nbytes)


def _stored(window, context):
    """A field that keeps a rolling window only, as one that keeps all; collective over `context`."""
    init = window._init
    if init is not None and not callable(init):
        whole = init
        init = whole.flat[0] if not any(whole.strides) and whole.size else whole
    return field(window.shape, window.dtype, init, context=context)


def explain(nest, context, kernel, site, point):
    name, message, line = kernel.sites[site - 1]
    where = ", ".join(f"{i}={p}" for i, p in zip(nest.indices, point, strict=True))
    return f"nest {nest.name!r} raised {name}({message!r}) at {where} on rank {context.rank}, line {line}"
