"""Factors of distributed matrices against other libraries and against what the machine allows.

``tilewave bench lu | cholesky | qr [--where NAME,...] [--size N] [--json FILE] [--quick]``; places and sizes as in
`bench matmul`. Our matrix lies by block columns, as many as are predicted best. The limit is max(compute, wire): the
flops over all ranks' rate of products, or the bytes of the panels that each rank must receive: half the matrix, but for
the part that it has. Contenders, where they are installed: MKL's and Debian's pdgetrf, pdpotrf or pdgeqrf, the best of
three block sizes and of the grids in trials beforehand (what takes more than --limit seconds there is left out, with a
row that says so); of LU also HPL, the best of twelve settings, after the turns of the others (it is a program, and its
time has the solution of one system in it).

``--predict RANKS,...`` runs nothing: it predicts factors of --size (default 20,000) rows on so many ranks of the
fat-tree machine, on the best grid beside one row of ranks.
"""

import functools
import itertools
import statistics
import sys
import time

import numpy as np
import tilewave as tw
from tilewave.allgather import allgather

from bench import dense, hpl, scalapack
from bench.cluster import places
from bench.matmul import say
from bench.results import missing, on_ranks, parser_of, publish, row
from bench.scalapack import DEBIAN, MKL
from bench.trials import NAME as TRIALS
from bench.trials import ROUTINES, best_of_trials, routine_of, values_of

#: Flops over n^3.
FLOPS = {"lu": 2 / 3, "cholesky": 1 / 3, "qr": 4 / 3}


def worker(kind, sizes, best, repeats, rate, quick=False):
    """Limits and, by size, times of each contender; on rank 0. `best`: by size and library, block size and grid."""
    context = dense.measured_context()
    limits = dense.Limits(context, rate, quick)
    libraries, found = scalapack.load(say(context)), []
    for n in sizes:
        values = values_of(kind, n)
        logs = []  # of |det A| or its root, by each contender: all must agree
        turns = _ours(context, kind, n, values, logs)
        turns += [
            _theirs(context, kind, n, name, libraries[name], *found_best, logs)
            for name, found_best in best.get(str(n), {}).items()
        ]
        contenders = [one.record() for one in dense.race(context, turns, repeats)]
        dense.refuse(context, f"bench {kind}: n = {n}", np.allclose(logs, logs[0], rtol=1e-8))
        found.append({"n": n, "contenders": contenders})
        if context.rank == 0:
            print(f" {n}", end="", flush=True, file=sys.stderr)
    return {"limits": limits.shown(), "ranks": context.size, "sizes": found} if context.rank == 0 else None


def _log_of_diagonal(context, rows, columns, local):
    """Sum of the logarithms of a distributed matrix's diagonal, the same on every rank."""
    _, i, j = np.intersect1d(rows, columns, assume_unique=True, return_indices=True)
    return sum(allgather(context, float(np.log(np.abs(local[i, j])).sum())))


def _ours(context, kind, n, values, logs):
    """On the grid and in the blocks that a first call takes, free to choose: the user's matrix lies so, too."""
    call, made = getattr(tw.linalg, kind), []
    free = tw.linalg.matrix((n, n), init=values, layout="columns", context=context)
    first = call(free, context=context)
    grid, a = first.report.plan.grid, tw.linalg.matrix((n, n), init=values, layout=first.layout, context=context)
    values = a.local.copy()

    def ready():
        a.local[...] = values

    def run():
        made[:] = [call(a, grid=grid, overwrite_a=True, context=context)]

    def check():
        logs.append(_log_of_diagonal(context, made[0].rows, made[0].columns, made[0].local))

    return [
        dense.Turn("tilewave", run, grid, ready=ready, check=check, plan=lambda: dense.planned(made[0].report.plan))
    ]


def _theirs(context, kind, n, name, library, block, grid, logs):
    """ScaLAPACK's routine on the grid and with the block size that a trial found best."""
    run, ready, a = routine_of(library, context, kind, n, block, tuple(grid))

    def check():
        logs.append(_log_of_diagonal(context, a.rows, a.columns, a.local))

    label = f"{name}, block {block}, grid {grid[0]}x{grid[1]}"
    return dense.Turn(label, run, tuple(grid), ready=ready, check=check, family=name)


def factors(kind, json_path=None, quick=False, args=()):
    """Factors around the balance of computing and network, against ScaLAPACK."""
    import tilewave as tw

    parser = parser_of(kind, __doc__)
    dense.options_of(parser)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds that a contender may take (default 10)")
    parser.add_argument("--predict", metavar="RANKS,...", help="predict for so many ranks of the fat tree, run nothing")
    options = parser.parse_args(list(args))
    if options.predict:
        cases = itertools.product(options.size or [20000], map(int, options.predict.split(",")))
        publish(kind, [line for n, ranks in cases for line in predictions(kind, n, ranks)], json_path)
        return
    if not hasattr(tw.linalg, kind):
        raise SystemExit(f"bench {kind}: this version has no tilewave.linalg.{kind}")
    arguments = {
        "kind": kind,
        "sizes": options.size or ([96] if quick else []),
        "repeats": 1 if quick else options.repeats,
        "quick": quick,
    }
    rows = []
    for where in places(options.where, dense.PLACES, kind):
        after = functools.partial(_add_hpl, arguments["repeats"]) if kind == "lu" else None
        over = []
        before = functools.partial(_trials, options, over)
        found = dense.run_at(where, __name__, arguments, kind, after, before)
        for size in found["sizes"]:
            case, flops = dense.case_of(where, found, size["n"]), FLOPS[kind] * size["n"] ** 3
            # Panels of L go along the rows of the grid, those of U (or of the mirrored triangle) along its columns.
            limit = functools.partial(dense.limit_s, found, size["n"], flops=flops, part=0.5)
            rows += dense.size_rows(case, size, flops, limit, (MKL, DEBIAN, hpl.NAME), "tilewave")
            rows += [
                missing(case, f"{name}, grid {grid[0]}x{grid[1]}: did not finish in {options.limit:g} s")
                for n, name, grid in over
                if n == size["n"]
            ]
    errors = [r.value for r in rows if r.contender.endswith("prediction error")]
    if errors:
        rows.append(row(f"{len(errors)} runs", "prediction error, median (target 8)", [statistics.median(errors)], "%"))
    publish(kind, rows, json_path)


def _add_hpl(repeats, start, found):
    """Add the times of HPL, where it is installed."""
    sizes = {size["n"]: size for size in found["sizes"]}
    for n, contender in hpl.contenders(start, found["ranks"], list(sizes), repeats).items():
        sizes[n]["contenders"].append(contender)


def predictions(kind, n, ranks):
    """Rows of the best grid by prediction and of one row of ranks, on the fat tree."""
    import tilewave as tw
    from tilewave import _core
    from tilewave.linalg.blas import blas

    matrix = _core.linalg.BlockCyclic(_core.linalg.Axis(n, ranks, -(-n // ranks)), _core.linalg.Axis(n, 1, n))
    problem = _core.linalg.PanelProblem(kind, matrix, 8, ranks, 1)
    machine = tw.Machine.load("fat-tree")._to_core()
    machine.host_of = list(range(ranks))
    best_s, rows = {}, []
    for grid in (None, (1, ranks)):
        options = _core.linalg.FactorOptions()
        options.grid = grid
        begin = time.perf_counter()
        plan = problem.played(blas(), "float64", problem.plans(kind, options), machine)[0]
        planned_s, best_s[grid] = time.perf_counter() - begin, plan.predicted_s
        name = f"grid {'x'.join(map(str, plan.grid))}, block {plan.block}, planned in {planned_s:.1f} s"
        rows.append((f"predicted, n = {n}, {ranks} ranks", name, [plan.predicted_s], "s"))
    return [row(*rows[0], ratio_to_contender=best_s[1, ranks] / best_s[None]), row(*rows[1])]


lu, cholesky, qr = (functools.partial(factors, kind) for kind in ROUTINES)


def _trials(options, over, start, ranks, arguments):
    """The arguments with sizes and the contenders' best blocks and grids; appends to `over` what took too long."""
    kind, sizes = arguments["kind"], arguments["sizes"]
    if not sizes:
        around = {"least": options.least, "most": options.most} | {k: arguments[k] for k in ("rate", "quick")}
        sizes = on_ranks(TRIALS, ranks, {"around": around}, runner=start)
    best, slow = best_of_trials(start, kind, ranks, sizes, options.limit)
    over += slow
    return {**arguments, "sizes": sizes, "best": best}
