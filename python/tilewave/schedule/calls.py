"""The plan's schedule of a nest; schedules proved and predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewave import _core
from tilewave.context.collective import collective
from tilewave.errors import ConfigError, is_integer, shown
from tilewave.machine.machine import Machine
from tilewave.nest.bounds import Loops
from tilewave.nest.nest import Nest
from tilewave.nest.reserved import takes_nests
from tilewave.nests.call.arguments import as_numbers
from tilewave.nests.call.run_call import RunCall
from tilewave.nests.chain.body import several_schedules
from tilewave.nests.chain.several import time_step_of
from tilewave.nests.plan.prepare import prepare
from tilewave.schedule.running import repetitions
from tilewave.schedule.schedule import Schedule
from tilewave.timeline.parts import Parts, Predicted, Simulated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tilewave.annotations import Choices, Collective, Over
    from tilewave.context.context import Context
    from tilewave.nests.call.reduce_functions import Reduction
    from tilewave.nests.doors.chain import Chain
    from tilewave.plan.plan import Plan

#: By generator: what the tasks of its schedules are called, and what their additional arrays have.
FUNCTIONS = {"pivot": (("panel", "update"), "kept rows of"), "gather": (("load", "step"), "planes of")}


@takes_nests
@collective("tw.schedule")
def schedule(
    nest: Nest | Sequence[Nest] | Chain,
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
) -> Collective[Schedule]:
    """The schedule that `tilewave.run` would execute: what every rank does, step by step; nothing runs.

    Parameters
    ----------
    nest : Nest, tuple of Nest, Bound or Chain
        What `tilewave.bind` and `tilewave.chain` made gives the schedule of its bound arguments, and takes no others;
        that of a chain has all of it in a block, and that of several nests a time step
        (``tilewave.predict(s, times=10)``).
    context, over, reverse, steps, periodic, plan, planning, reduce, **arguments
        As in `tilewave.run`.

    Returns
    -------
    Schedule
        Of all ranks, on every rank. Of a run in blocks of time steps it is one
        block's, which is repeated where there are several (``tilewave.predict(s, times=10)``); of a nest that writes a
        row for several time steps, the longest row's. Its arrays are in the
        coordinates of the plan: of skewed loops, where the plan skews them.

    Raises
    ------
    ConfigError
        On every rank: as `tilewave.run`; for nests that are no single schedule.

    Notes
    -----
    Collective, as `tilewave.plan`: the machine and the rate of the body are measured at first use. Every rank makes the
    schedules of all ranks, so time and memory grow with their number.
    """
    if hasattr(type(nest), "_schedules"):
        if arguments or any(value is not None for value in (over, steps, plan, reduce)) or reverse or periodic:
            raise ConfigError("schedule: what is ready to run was given arguments; it has them; allowed: context")
        ready = yield from nest._schedules(context)
        if isinstance(ready, Schedule):
            return ready
        if hasattr(ready, "memories"):
            return schedule_of_chain(ready, context.size)
    else:
        loops = Loops(over, reverse, steps, periodic=periodic)
        call = RunCall(nest, context, loops, arguments, plan, planning, reduce=reduce)
        if isinstance(nest, tuple | list):
            _, step = yield from time_step_of(call, together=True)
            if not step.body.quick:
                raise ConfigError(
                    f"schedule: nests {', '.join(each.name for each in nest)} are no single schedule: {step.body.why}; "
                    "allowed: the schedule of each"
                )
            if not step.body.is_one:
                raise ConfigError(f"schedule: {several_schedules([each.name for each in nest])}")
            return schedule_of_chain(step.body, context.size)
        ready = yield from prepare(call, loops, as_numbers(nest, arguments, copies=True))
    return schedule_of(ready, context.size)


def schedule_of(ready, ranks):
    """The schedule of a run that is ready, of all ranks; local."""
    ready = ready.longest or ready
    problem, plan = ready.sweep.problem, ready.sweep.plan
    cores = {rank: _core.nest_schedule(problem, plan, rank, ranks) for rank in range(ranks)}
    arrays = [(view.array, None, ready.dtypes[view.array]) for view in ready.problem.nest.views]
    note = ""
    if ready.steps is not None:
        block = problem.space[1][0] - problem.space[0][0]
        note = f"a block of {block} of {ready.steps} time steps"
        if block > 1 and ready.steps >= 2 * block:
            cores = {rank: _core.repeated_block(problem, core) for rank, core in cores.items()}
    rate = ready.rate.rate if ready.rate else _core.KernelRate()
    functions, kept = FUNCTIONS.get(plan.generator, ((), ""))
    if functions:
        names = [arrays[number][0] for number in _core.arrays_kept(problem, plan)]
        arrays += [(f"{kept} {name}", None, ready.dtypes[name]) for name in names]
    rates = [rate], _core.task_rates(problem, plan, rate)
    return Schedule(cores, arrays, functions, rates=rates, note=note)


def schedule_of_chain(chain, ranks):
    """The schedule of nests that run as one, of all ranks, as a block that is repeated; local. The block is that of a
    run of many repetitions.
    """
    problems, plans = zip(*((ready.sweep.problem, ready.sweep.plan) for ready in chain.readies), strict=True)
    count = chain.in_block
    cores = {
        rank: _core.repeatable(_core.fused_chain(problems, plans, chain.memories, rank, ranks, repetitions=count))
        for rank in range(ranks)
    }
    arrays, parts = [], len(chain.readies)
    for part, array, buffers in _core.chain_arrays(problems, plans, chain.memories, count):
        ready = chain.readies[part % parts]
        name = ready.problem.nest.views[array].array
        place = f"{name} of nest {part % parts + 1}" + (f" in repetition {part // parts + 1}" if count > 1 else "")
        arrays.append((f"all buffers of {place}" if buffers else place, None, ready.dtypes[name]))
    most = max(buffers for problem in problems for buffers in problem.time_buffers)
    functions = (
        ["carry elements to the next step", *(f"turn buffers by {k}" for k in range(1, most))] if most > 1 else []
    )
    rates = [ready.rate.rate if ready.rate else _core.KernelRate() for ready in chain.readies]
    note = f"{parts} nests, one after another in each lane"
    if count > 1:
        note = f"{parts} nests in {count} repetitions" + (", slices of which take turns" if chain.in_turn else "")
    return Schedule(cores, arrays, functions, rates=(rates, []), note=note)


def check(schedule: Schedule) -> str | None:
    """Prove a schedule, for every timing: each value is there before it is read and read before it is overwritten, all
    messages meet, no lane waits without end, and the arrays end with what the works in the order of their numbers give.
    A block that is repeated is proved for any number of repetitions.

    Parameters
    ----------
    schedule : Schedule
        Of all ranks.

    Returns
    -------
    str or None
        The first violation in a sentence, with its rank, lane and step; None where all holds.

    Raises
    ------
    ConfigError
        For the part of one rank.

    Notes
    -----
    Not collective: it needs no MPI. The answer is stored in the schedule.
    """
    of_all("check", schedule)
    return schedule._found_by_check()


def predict(
    schedule: Schedule,
    machine: Machine | None = None,
    rates: Mapping[Any, float | tuple[float, float]] | None = None,
    threads: int | None = None,
    times: int = 1,
) -> Predicted:
    """Simulate a schedule on a machine's numbers: what its run would take.

    Parameters
    ----------
    schedule : Schedule
        Of all ranks.
    machine : Machine, optional
        From `tilewave.measure` or a file. Default: a typical host.
    rates : dict, optional
        Seconds that tasks take, by function or its name: of a call, or ``(of a call, of a unit of its amount)``.
        Default: 1 µs a call and 1 ns a unit. Of a nest of `ScheduleBuilder.nest`, by the nest: seconds of a point. The
        kernels of `tilewave.schedule` have the rates that it has measured.
    threads : int, optional
        Of each rank at most so many; more lanes run alternately, as in `tilewave.Schedule.run`. Default: a lane a
        thread.

    times : int
        Runs of a schedule's block. Repetitions are simulated until each takes as long as the one before; the timeline
        has these.

    Returns
    -------
    Predicted
        With ``time_s``, ``parts``, and the ``timeline`` of all ranks.

    Raises
    ------
    ConfigError
        For the part of one rank, a schedule that never ends, rates that make no sense.

    Notes
    -----
    Not collective: it needs no MPI.
    """
    of_all("predict", schedule)
    if machine is not None and not isinstance(machine, Machine):
        raise ConfigError(f"predict: machine: given {type(machine).__name__}; allowed: a tilewave.Machine, None")
    if threads is not None and not is_integer(threads, 1):
        raise ConfigError(f"predict: threads: given {threads!r}; allowed: an integer >= 1, None")
    core = _core.predict_works(
        list(schedule._cores.values()),
        _core.Machine() if machine is None else machine._to_core(),
        _kernel_rates(schedule, rates),
        _task_rates(schedule, rates),
        0 if threads is None else min(int(threads), _core.limits["lanes"]),
        repetitions("predict", schedule, times),
    )
    return Predicted(core.time_s, Parts.of(core.parts), Simulated(core.timeline))


def of_all(name, schedule):
    """Refuse what is no schedule of all ranks."""
    if not isinstance(schedule, Schedule):
        raise ConfigError(f"{name}: given {type(schedule).__name__}; allowed: a tilewave.Schedule")
    if schedule.rank is not None:
        raise ConfigError(f"{name}: the part of rank {schedule.rank} was given; allowed: a schedule of all ranks")


def _kernel_rates(schedule, given):
    """Return the core's rate of each kernel: as measured, or seconds a point from `rates`."""
    rates = [*schedule._rates[0]] or [_core.KernelRate() for _ in schedule._kernels] or [_core.KernelRate()]
    for position, kernel in enumerate(schedule._kernels):
        if isinstance(given, dict) and kernel.nest in given:
            try:
                rates[position] = _core.KernelRate(point_s=float(given[kernel.nest]))
            except (TypeError, ValueError):
                raise ConfigError(
                    f"predict: rates: given {shown(given[kernel.nest])} for nest {kernel.nest.name!r}; allowed: "
                    "seconds of a point"
                ) from None
    return rates


def _task_rates(schedule, given):
    """Return the core's rate of each function."""
    if given is not None and not isinstance(given, dict):
        raise ConfigError(f"predict: rates: given {type(given).__name__}; allowed: a dict by function or name")
    found = [*schedule._rates[1]] or [_core.OperationRate() for _ in schedule.functions]
    for key, value in (given or {}).items():
        if any(kernel.nest is key for kernel in schedule._kernels):
            continue
        calls = schedule._calls or ()
        numbers = [n for n, name in enumerate(schedule.functions) if name == key or n < len(calls) and calls[n] is key]
        if not numbers:
            allowed = ", ".join(schedule.functions) or "none, as it has no tasks"
            raise ConfigError(f"predict: rates: given one of {key!r}; allowed: functions of the schedule: {allowed}")
        seconds = value if isinstance(value, tuple) else (value, _core.OperationRate().amount_s)
        try:
            call_s, amount_s = map(float, seconds)
        except (TypeError, ValueError):
            raise ConfigError(
                f"predict: rates: given {shown(value)} for {key!r}; "
                "allowed: seconds of a call, or (of a call, of a unit)"
            ) from None
        found[numbers[0]] = _core.OperationRate(call_s, amount_s)
    return found
