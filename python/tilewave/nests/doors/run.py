"""Running nests, and planning without running."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, overload

from tilewave.context.collective import behind, collective
from tilewave.nest.bounds import Loops
from tilewave.nest.nest import Nest
from tilewave.nest.reserved import takes_nests
from tilewave.nests.call import known_calls
from tilewave.nests.call.arguments import as_numbers
from tilewave.nests.call.run_call import RunCall
from tilewave.nests.chain.report import ChainReport
from tilewave.nests.chain.several import run_several, time_step_of
from tilewave.nests.chain.time_step import exact_key
from tilewave.nests.plan.prepare import key_of, prepare
from tilewave.nests.points.points import in_time_steps, visited_points
from tilewave.nests.run.execute import run_bound
from tilewave.nests.run.known_run import known_run
from tilewave.nests.run.report import Report
from tilewave.nests.verify.check import copied
from tilewave.nests.verify.plain_call import PlainCall
from tilewave.plan.fixed import fixed_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from tilewave.annotations import Choices, Collective, Over
    from tilewave.context.context import Context
    from tilewave.nests.call.reduce_functions import Reduction
    from tilewave.nests.points.off_grid import OffGrid
    from tilewave.plan.plan import Plan


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
    planning: str = "auto",
    fastmath: bool = False,
    reduce: Mapping[str, Reduction] | None = None,
    inject: Mapping[str, tuple[npt.ArrayLike | OffGrid, npt.ArrayLike]] | None = None,
    record: Mapping[str, npt.ArrayLike | OffGrid] | None = None,
    until: None = None,
    every: int = 1,
    **arguments: Any,
) -> Report: ...


@overload
def run(nest: Nest, *, until: Callable[[dict[str, Any]], bool] | Mapping[str, float], **given: Any) -> ChainReport: ...


@overload
def run(nest: Sequence[Nest], **given: Any) -> ChainReport: ...


@takes_nests
@collective("tw.run")
def run(
    nest: Nest | Sequence[Nest],
    *,
    context: Context | None = None,
    over: Over | Sequence[Over | None] | None = None,
    reverse: Sequence[Any] = (),
    steps: int | None = None,
    periodic: Sequence[Any] = (),
    plan: Plan | Choices | Sequence[Plan | Choices | None] | None = None,
    planning: str = "auto",
    fastmath: bool = False,
    reduce: Mapping[str, Reduction] | Sequence[Mapping[str, Reduction] | None] | None = None,
    inject: Mapping[str, tuple[npt.ArrayLike | OffGrid, npt.ArrayLike]] | None = None,
    record: Mapping[str, npt.ArrayLike | OffGrid] | None = None,
    until: Callable[[dict[str, Any]], bool] | Mapping[str, float] | None = None,
    every: int = 1,
    **arguments: Any,
) -> Collective[Report | ChainReport]:
    """Run a nest: what its plain loops would compute, over ranks and threads; collective.

    Parameters
    ----------
    nest : Nest, or tuple of Nest
        Made with ``@tilewave.nest``. Several are run one after another in each of `steps` time steps: what one has
        written for time step t+1 is there for the next. Arrays and scalars are shared by name; `over`, `reverse`,
        `periodic` and `reduce` may be lists with one for each nest.
    context : Context, optional
        Default: the one of the fields; without any, all ranks of the launch.
    over : dict, optional
        Half-open bounds by index name, ``{"i": (1, n)}``, that narrow the loops. A bound may be an
        affine expression of outer indices, ``{"j": ("i", "2*i+3")}`` or ``lambda i: i``, or a list of
        bounds, which all hold. ``{"i": (1, n, 2)}``, with a stride, is ``range(1, n, 2)``.
    reverse : tuple of str
        Loop indices that run downwards; the loops stay nested in the order of the indices. Time runs from `steps` down
        to 1: the nest writes at t-1, and arrays with time as a dimension have steps + 1 elements there.
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
        several nests a dict for all of them, or a list with one of these for each, as `tilewave.plan` gives it.
    planning : str
        What planning may spend beyond compiling: ``"quick"``: 0.01 s, and nothing where some rate of the body is
        known. ``"auto"``: the longest of 0.05 s, one predicted run, and a tenth of all runs so far. ``"thorough"``:
        until nothing better is hoped for.
    fastmath : bool
        Allow results that differ from the plain loops in rounding.
    reduce : dict, optional
        From names to what is wanted of a value of each point, ``{"best": tilewave.max("H"), "where":
        tilewave.argmax("H"), "residual": tilewave.norm("d")}``: of arrays, of locals of the body, and of expressions
        of these; found while they are computed, in the report's ``results``. A nest with it need not write any array.
        Of several nests each is of the last one that has all of it, and of the last time step.
    inject : dict, optional
        With `steps`, from names of written arrays to ``(points, values)``: after time step number t ``values[t, k]`` is
        added to the element ``points[k]``, point after point, as NumPy's ``u[point] += value``. Points have a row of
        subscripts each; values have shape ``(steps, len(points))``. Points may be an `OffGrid`.
    record : dict, optional
        With `steps`, from names of arrays to points whose values are recorded after each time step and what `inject`
        adds: the report's ``recorded``, of shape ``(steps, len(points))``, on every rank. Points may be an `OffGrid`.
    until : dict or function, optional
        With `steps`, when to end before: ``{"residual": 1e-8}``: when that reduction of a time step is at most 1e-8; of
        several, all. A function is given a dict of all reductions' values, on every rank, and ends the run when it
        returns true. The time steps between two looks run in blocks.
    every : int
        `until` is looked at after every so many time steps.
    **arguments
        The nest's arrays (fields; NumPy arrays where only read, the same on each rank, or on one
        rank, then written in place; `scratch` for what the nest needs for itself), and its scalars.

    Returns
    -------
    Report
        A `ChainReport` for a tuple of nests, with `until`, and with `inject` or `record` of a nest that writes an array
        with time as a dimension, which is visited itself or read at other steps.

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
    loops = Loops(over, reverse, steps, periodic=periodic)
    call = RunCall(nest, context, loops, arguments, plan, planning, fastmath, reduce, inject, record, until, every)
    return (yield from run_compared(in_time_steps(call), begun))


def run_compared(call, begun):
    """The run of a call that began at `begun`, compared with plain loops where that is asked for; part of it."""
    check = yield from copied(call.context, lambda: [PlainCall(call)])
    steps = _run(call, begun)
    report = yield from behind(steps) if call.context._verify else steps
    if check is not None:
        several = isinstance(report, ChainReport)
        yield from check.compare(report, None, *(report.repetitions, call.every, report.history) if several else ())
    return report


def _run(call, begun):
    """The run of a call that began at `begun`; part of it."""
    nest = call.nests
    if (known := known_at_once(call)) is not None:
        return known.run(begun)
    if isinstance(nest, tuple | list) or call.until is not None:
        return (yield from run_several(call, begun))
    loops, visited = yield from visited_points(call, call.arguments)
    ready = yield from prepare(call, loops, as_numbers(nest, call.arguments, copies=True))
    if visited:
        ready.visits(*visited)
    core = yield from run_bound(ready, begun)
    if ready.runs is not None:
        ready.runs.ran_s += core.time_s
    if ready.known and not ready.known.at_once:
        ready.known.at_once = known_run(ready)
    return Report(ready, core, ready.visited[0].recorded if ready.visited else None)


def known_at_once(call):
    """The `KnownRun` of a call, or the `KnownSteps` of several nests, where an equal one has left it; local."""
    others = call.inject is not None or call.record is not None or call.until is not None
    if call.context.size > 1 or not call.context._ranks.quick or others:
        return None
    try:
        if isinstance(call.nests, tuple | list):
            return known_calls.find(call.context, exact_key(call))
        key = key_of(call, call.loops, call.arguments, fixed_by(call.plan, call.planning))
        known = known_calls.find(call.context, key)
    except Exception:  # of what was given: it is looked at one by one
        return None
    run = known and known.at_once
    return run if run and run.is_current else None


@overload
def plan(
    nest: Nest,
    *,
    context: Context | None = None,
    over: Over | None = None,
    reverse: Sequence[str] = (),
    steps: int | None = None,
    periodic: Sequence[str] = (),
    plan: Plan | Choices | None = None,
    planning: str = "auto",
    reduce: Mapping[str, Reduction] | None = None,
    **arguments: Any,
) -> Plan: ...


@overload
def plan(nest: Sequence[Nest], **given: Any) -> tuple[Plan, ...]: ...


@takes_nests
@collective("tw.plan")
def plan(
    nest: Nest | Sequence[Nest],
    *,
    context: Context | None = None,
    over: Over | Sequence[Over | None] | None = None,
    reverse: Sequence[Any] = (),
    steps: int | None = None,
    periodic: Sequence[Any] = (),
    plan: Plan | Choices | Sequence[Plan | Choices | None] | None = None,
    planning: str = "auto",
    reduce: Mapping[str, Reduction] | Sequence[Mapping[str, Reduction] | None] | None = None,
    **arguments: Any,
) -> Collective[Plan | tuple[Plan, ...]]:
    """The plan that `run` would use, without running.

    Parameters
    ----------
    nest : Nest, or tuple of Nest
    over, reverse, steps, periodic, plan, planning, reduce, **arguments
        As in `run`. Of a `Plan` all is fixed: it is given back with what it is predicted to take.

    Returns
    -------
    Plan
        With what it is predicted to take, and the others that were tried: ``plan.explain()``. Of several nests a tuple:
        the plan of each, for one time step.

    Raises
    ------
    ConfigError
        On every rank: as `run`.

    Notes
    -----
    Collective; the first call for a nest measures the rate of its body, within the budget of `planning`. A run of the
    same nest with the same arrays then takes this plan.
    """
    loops = Loops(over, reverse, steps, periodic=periodic)
    call = RunCall(nest, context, loops, arguments, plan, planning, reduce=reduce)
    if isinstance(nest, tuple | list):
        _, step = yield from time_step_of(call)
        return tuple(each._copy() for each in step.body.plans)
    ready = yield from prepare(call, loops, as_numbers(nest, arguments, copies=True))
    arrays = ready.arrays.values()
    context._ranks.run(lambda: None, lambda calls: calls.add(f"nest {nest.name}, not run", 0.0, ready.plan, arrays))
    return ready.plan._copy()
