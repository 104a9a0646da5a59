"""What the executor costs a step, with nothing to compute; a bound nest beyond its work; the predictor; and one rank's
schedule among many."""

import math
import statistics
import threading
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
    problem = _core.SweepProblem(shape, ((1, 1), shape), [(8, False)], list(enumerate_reads()))
    plan = _core.Plan()
    plan.grid, plan.factors, plan.tile, plan.mapping_dim = (context.size, 1), (1, 1), (1, 1), 1
    return _core.PreparedSweep(context, problem, plan), _core.FieldStorage(context, shape, 8)


def enumerate_reads():
    """The reads of `keep` as the core counts them."""
    return [(0, place.offsets) for place in keep.places if not place.written]


def _time(context, steps, kernel, repeats, seconds_inside=lambda: 0.0):
    """Microseconds a step of each run: (all, without the transport)."""
    sweep, storage = _prepared(context, steps)
    operands = [_core.RunArray(storage)]
    count = sweep.schedule.steps
    both = []
    for turn in range(repeats + 1):
        inside = seconds_inside()
        report = sweep.run(operands, _core.Kernel(kernel.address))
        inside = seconds_inside() - inside
        if turn:
            both.append((report.time_s / count * 1e6, (report.time_s - inside) / count * 1e6))
    return both


def _kernel():
    return compile_kernel(keep, {"A": np.dtype("f8")}, {})


def worker(repeats, steps=0, bound=False, runs=0):
    """MPI on two ranks; rank 0's figures, which sends and never waits for data. Or, `bound`, those of bound nests."""
    if bound:
        return bound_worker(runs, repeats)
    load_mpi()
    core, seconds = _core.Context.timed_mpi(1)
    both = _time(core, steps, _kernel(), repeats, seconds)
    return both if core.rank == 0 else None


@tw.nest
def add_ahead(A, i, j):
    A[i, j] = A[i - 1, j] + A[i, j - 1] - A[i + 1, j]


def _bound(context, runs, repeats):
    """Microseconds that a run of a bound nest takes beyond its lanes' work, and a call of tw.run: of small grids."""
    found = {}
    for extent in (8, 64):
        A = tw.field((extent, extent), "f8", init=1e-3, context=context)
        grid = (context.size, 1)  # every rank computes
        bound = tw.bind(add_ahead, A=A, plan={"grid": grid})
        for name, call in (
            ("bound", bound.run),
            ("run", lambda A=A, grid=grid: tw.run(add_ahead, A=A, plan={"grid": grid})),
        ):
            found[f"{name} {extent}"] = [_beyond_work(call, runs) for _ in range(repeats + 1)][1:]
    return found


def _beyond_work(call, runs):
    """The median of so many calls."""
    beyond = []
    for _ in range(runs):
        begin = time.perf_counter()
        report = call()
        passed = time.perf_counter() - begin  # what the report says is made later
        beyond.append((passed - report.measured.time_s) * 1e6)
    return statistics.median(beyond)


def bound_worker(runs, repeats):
    """MPI on any number of ranks; rank 0's figures."""
    context = tw.Context(threads=1)
    found = _bound(context, runs, repeats)
    return found if context.rank == 0 else None


def _bound_rows(quick):
    """Bound nests on one rank and on two, and tw.run."""
    rows = []
    for ranks, limit in ((1, 10), (2, 15)):
        found = on_ranks(
            "bench.executor", ranks, {"bound": True, "runs": 100 if quick else 1000, "repeats": 3 if quick else 9}
        )
        for extent in (8, 64):
            case = f"bound run beyond its work, {extent}x{extent}, {ranks} rank{'s' * (ranks > 1)}"
            rows.append(row(case, f"target {limit}", found[f"bound {extent}"], "us/run"))
            rows[-1].ratio_to_contender = limit / rows[-1].value
            rows.append(row(case, "tw.run", found[f"run {extent}"], "us/run"))
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
    rows = []
    for name, record in (("", False), (", with the timeline", True)):
        steps, seconds = _core.predict_times(problem, plan, machine, record, repeats + 1)
        rows.append(row(f"predict, 64 ranks{name}", "target 0.5", [s / steps * 1e6 for s in seconds[1:]], "us/step"))
        rows[-1].ratio_to_contender = 0.5 / rows[-1].value
    return rows


def _weak(block, grid):
    """A sweep with the same block for every rank, and its plan."""
    dims = len(block)
    grid += (1,) * (dims - len(grid))
    shape = tuple(1 + b * n for b, n in zip(block, grid))
    unit = [(0, tuple(-int(k == along) for k in range(dims))) for along in range(dims)]
    problem = _core.SweepProblem(shape, ((1,) * dims, shape), [(8, False)], unit)
    plan = _core.Plan()
    plan.grid, plan.factors, plan.mapping_dim, plan.lookahead = grid, (1,) * dims, dims - 1, 2
    plan.tile = (*block[:-1], 16)
    return problem, plan


def _generations(repeats):
    """One rank's schedule among 64, 4096 and 65536 ranks, in turn: a rank in the middle, with all its neighbours."""
    rows = []
    cases = (
        ("2-D, 64 x 1024 points a rank", (64, 1024), [(64,), (4096,), (65536,)]),
        ("3-D, 32 x 32 x 1024 points a rank", (32, 32, 1024), [(8, 8), (64, 64), (256, 256)]),
    )
    for name, block, grids in cases:
        weak = [_weak(block, grid) for grid in grids]
        times = [[] for _ in grids]
        for turn in range(20 * repeats + 1):
            for (problem, plan), seconds in zip(weak, times):
                ranks = math.prod(plan.grid)
                middle = sum(n // 2 * math.prod(plan.grid[k + 1 :]) for k, n in enumerate(plan.grid))
                begin = time.perf_counter()
                _core.sweep(problem, plan, middle, ranks)
                if turn:
                    seconds.append((time.perf_counter() - begin) * 1e6)
        for (_, plan), seconds in zip(weak, times):
            contender = "" if plan is weak[0][1] else "64 ranks"
            rows.append(row(f"one rank's schedule, {name}, {math.prod(plan.grid)} ranks", contender, seconds, "us"))
        for later in rows[-2:]:
            later.ratio_to_contender = rows[-3].value / later.value
    return rows


def executor(json_path=None, quick=False, args=()):
    """Microseconds a step on the dry and local transports, and on MPI beyond its calls; of bound nests; of predict().

    Microseconds that one rank's schedule takes among 64, 4096 and 65536 ranks, each rank with the same block.
    """
    steps, repeats = (2000, 3) if quick else (20000, 9)
    kernel = _kernel()
    dry = _time(_core.Context.dry(0, 2, 1), steps, kernel, repeats)
    fabric, local = _core.LocalFabric(2), [None, None]

    def rank(r):
        local[r] = _time(_core.Context.local(fabric, r, 1), steps, kernel, repeats)

    threads = [threading.Thread(target=rank, args=(r,)) for r in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    mpi = on_ranks("bench.executor", 2, {"steps": steps, "repeats": repeats})
    rows = [
        row("one-point tiles, dry transport", "target 1", [a for a, _ in dry], "us/step"),
        row("one-point tiles, 2 local ranks", "target 1", [a for a, _ in local[0]], "us/step"),
        row("one-point tiles, 2 MPI ranks, beyond MPI's calls", "target 2", [b for _, b in mpi], "us/step"),
        row("one-point tiles, 2 MPI ranks, all", "", [a for a, _ in mpi], "us/step"),
    ]
    for r, limit in zip(rows, (1, 1, 2), strict=False):
        r.ratio_to_contender = limit / r.value
    rows += _bound_rows(quick) + _predictions(repeats) + _generations(repeats)
    publish("executor", rows, json_path)
