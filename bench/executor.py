"""What the executor costs a step on MPI, with nothing to compute; a bound nest; the predictor."""

import statistics
import time

import numpy as np
import tilewave as tw
from tilewave import _core, units
from tilewave.kernel.compile import compile_kernel

from bench.runner import benchmark, here, row


@tw.nest
def keep(A, i, j):
    A[i, j] = A[i - 1, j] + A[i, j - 1]


@tw.nest
def add_ahead(A, i, j):
    A[i, j] = A[i - 1, j] + A[i, j - 1] - A[i + 1, j]


def worker(steps, runs, repeats):
    """Figures of steps on rank 0, which sends and never waits for data; those of bound nests."""
    return _steps(steps, repeats) if steps else _bound(runs, repeats)


def _problem(shape, reads, item, plan):
    problem = _core.SweepProblem(shape, ((1,) * len(shape), shape), [(item, False)], [(0, read) for read in reads])
    made = _core.Plan()
    for name, value in plan.items():
        setattr(made, name, value)
    return problem, made


def _steps(steps, repeats):
    """Microseconds a step of each run: a sweep of one-point tiles, messages of 8 bytes."""
    context = tw.Context(threads=1)._core
    shape = (1 + context.size, 1 + steps)
    plan = {"grid": (context.size, 1), "factors": (1, 1), "tile": (1, 1), "mapping_dim": 1}
    sweep = _core.PreparedSweep(context, *_problem(shape, ((-1, 0), (0, -1)), 8, plan))
    kernel = compile_kernel(keep, {"A": np.dtype("f8")}, {})
    operands, times = [_core.RunArray(_core.FieldStorage(context, shape, 8))], []
    for _ in range(repeats + 1):
        report = sweep.run(operands, _core.Kernel(kernel.address))
        times.append(report.time_s / sweep.schedule.steps * 1e6)
    return times[1:] if context.rank == 0 else None


def _bound(runs, repeats):
    """Microseconds that a run of a bound nest takes beyond its lanes' work, and a call of tw.run; rank 0's."""
    context = tw.Context(threads=1)
    A = tw.field((8, 8), "f8", init=1e-3, context=context)
    plan = {"grid": (context.size, 1)}  # every rank computes
    calls = {"bound": tw.bind(add_ahead, A=A, plan=plan).run, "run": lambda: tw.run(add_ahead, A=A, plan=plan)}

    def beyond_work(call):
        begin = time.perf_counter()
        report = call()
        passed = time.perf_counter() - begin  # what the report says is made later
        return (passed - report.measured.time_s) * 1e6

    found = {
        name: [statistics.median(beyond_work(call) for _ in range(runs)) for _ in range(repeats + 1)][1:]
        for name, call in calls.items()
    }
    return found if context.rank == 0 else None


def _target(case, target, values, unit):
    return row(case, f"target {target}", values, unit, ratio_to_contender=target / statistics.median(values))


@benchmark("executor", __doc__, repeats=9)
def executor(options):
    steps, runs = (2000, 100) if options.quick else (20000, 1000)
    mpi = here(2).call(__name__, steps=steps, runs=0, repeats=options.repeats)
    yield _target("one-point tiles, 2 MPI ranks, all", 2, mpi, "us/step")
    for ranks, limit in ((1, 10), (2, 15)):
        found = here(ranks).call(__name__, steps=0, runs=runs, repeats=options.repeats)
        case = f"bound run beyond its work, 8x8, {units.count(ranks, 'rank')}"
        yield _target(case, limit, found["bound"], "us/run")
        yield row(case, "tw.run", found["run"], "us/run")
    # On 64 ranks of 4 a host: a sweep of 8 by 8 columns of tiles, overlapping.
    plan = {"grid": (8, 8, 1), "factors": (1, 1, 1), "tile": (64, 64, 16), "mapping_dim": 2, "lookahead": 2}
    problem = _problem((512, 512, 4097), ((-1, 0, 0), (0, -1, 0), (0, 0, -1)), 4, plan)
    machine = _core.Machine()
    machine.host_of = [r // 4 for r in range(64)]
    schedules = [_core.sweep(*problem, rank) for rank in range(64)]
    steps, seconds = sum(s.steps for s in schedules), []
    for _ in range(options.repeats + 1):
        begin = time.perf_counter()
        _core.predict(schedules, machine, _core.KernelRate(), record=False)
        seconds.append(time.perf_counter() - begin)
    yield _target("predict, 64 ranks", 0.5, [s / steps * 1e6 for s in seconds[1:]], "us/step")
