"""What the executor costs a step, with nothing to compute; a bound nest beyond its work; the predictor."""

import statistics
import time

import numpy as np
import tilewave as tw
from tilewave import _core
from tilewave.context.mpi_library import load_mpi
from tilewave.kernel.compile import compile_kernel

from bench.results import on_ranks, publish, row


@tw.nest
def keep(A, i, j):
    A[i, j] = A[i - 1, j] + A[i, j - 1]


def _prepared(context, steps):
    """A sweep of one-point tiles: about six steps a tile, messages of 8 bytes."""
    shape = (1 + context.size, 1 + steps)
    reads = [(0, place.offsets) for place in keep.places if not place.written]
    problem = _core.SweepProblem(shape, ((1, 1), shape), [(8, False)], reads)
    plan = _core.Plan()
    plan.grid, plan.factors, plan.tile, plan.mapping_dim = (context.size, 1), (1, 1), (1, 1), 1
    return _core.PreparedSweep(context, problem, plan), _core.FieldStorage(context, shape, 8)


def _time(context, steps, repeats, seconds_inside):
    """Microseconds a step of each run, without the transport."""
    sweep, storage = _prepared(context, steps)
    kernel = compile_kernel(keep, {"A": np.dtype("f8")}, {})
    operands, times = [_core.RunArray(storage)], []
    for turn in range(repeats + 1):
        inside = seconds_inside()
        report = sweep.run(operands, _core.Kernel(kernel.address))
        inside = seconds_inside() - inside
        if turn:
            times.append((report.time_s - inside) / sweep.schedule.steps * 1e6)
    return times


def worker(repeats, steps=0, bound=False, runs=0):
    """MPI on two ranks; rank 0's figures, which sends and never waits for data. Or, `bound`, those of bound nests."""
    if bound:
        return bound_worker(runs, repeats)
    load_mpi()
    core, seconds = _core.Context.timed_mpi(1)
    times = _time(core, steps, repeats, seconds)
    return times if core.rank == 0 else None


@tw.nest
def add_ahead(A, i, j):
    A[i, j] = A[i - 1, j] + A[i, j - 1] - A[i + 1, j]


def bound_worker(runs, repeats):
    """Microseconds that a run of a bound nest takes beyond its lanes' work, and a call of tw.run; rank 0's."""
    context = tw.Context(threads=1)
    A = tw.field((8, 8), "f8", init=1e-3, context=context)
    plan = {"grid": (context.size, 1)}  # every rank computes
    calls = {"bound": tw.bind(add_ahead, A=A, plan=plan).run, "run": lambda: tw.run(add_ahead, A=A, plan=plan)}
    found = {name: [_beyond_work(call, runs) for _ in range(repeats + 1)][1:] for name, call in calls.items()}
    return found if context.rank == 0 else None


def _beyond_work(call, runs):
    """The median of so many calls."""
    beyond = []
    for _ in range(runs):
        begin = time.perf_counter()
        report = call()
        passed = time.perf_counter() - begin  # what the report says is made later
        beyond.append((passed - report.measured.time_s) * 1e6)
    return statistics.median(beyond)


def _bound_rows(quick):
    """Bound nests on one rank and on two, and tw.run."""
    rows = []
    for ranks, limit in ((1, 10), (2, 15)):
        found = on_ranks(
            "bench.executor", ranks, {"bound": True, "runs": 100 if quick else 1000, "repeats": 3 if quick else 9}
        )
        case = f"bound run beyond its work, 8x8, {ranks} rank{'s' * (ranks > 1)}"
        rows.append(row(case, f"target {limit}", found["bound"], "us/run"))
        rows[-1].ratio_to_contender = limit / rows[-1].value
        rows.append(row(case, "tw.run", found["run"], "us/run"))
    return rows


def _predictions(repeats):
    """predict() on 64 ranks of 4 a host: a sweep of 8 by 8 columns of tiles, overlapping."""
    shape = (512, 512, 4097)
    unit = [(0, (-1, 0, 0)), (0, (0, -1, 0)), (0, (0, 0, -1))]
    problem = _core.SweepProblem(shape, ((1, 1, 1), shape), [(4, False)], unit)
    plan = _core.Plan()
    plan.grid, plan.factors, plan.tile, plan.mapping_dim, plan.lookahead = (8, 8, 1), (1, 1, 1), (64, 64, 16), 2, 2
    machine = _core.Machine()
    machine.host_of = [r // 4 for r in range(64)]
    steps, seconds = _core.predict_times(problem, plan, machine, False, repeats + 1)
    rows = [row("predict, 64 ranks", "target 0.5", [s / steps * 1e6 for s in seconds[1:]], "us/step")]
    rows[0].ratio_to_contender = 0.5 / rows[0].value
    return rows


def executor(json_path=None, quick=False, args=()):
    """Microseconds a step on MPI beyond its calls; of bound nests; of predict()."""
    steps, repeats = (2000, 3) if quick else (20000, 9)
    mpi = on_ranks("bench.executor", 2, {"steps": steps, "repeats": repeats})
    rows = [row("one-point tiles, 2 MPI ranks, beyond MPI's calls", "target 2", mpi, "us/step")]
    rows[0].ratio_to_contender = 2 / rows[0].value
    publish("executor", [*rows, *_bound_rows(quick), *_predictions(repeats)], json_path)
