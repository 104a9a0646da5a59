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

import argparse
import functools
import itertools
import statistics
import time

from bench import hpl
from bench.cluster import places
from bench.dense import PLACES, case_of, limit_s, options_of, run_at, size_rows
from bench.results import missing, on_ranks, publish, row
from bench.scalapack import DEBIAN, MKL
from bench.trials import RANKS, best_of_trials
from bench.trials_ranks import ROUTINES

WORKER = "bench.factors_ranks"
#: Flops over n^3.
FLOPS = {"lu": 2 / 3, "cholesky": 1 / 3, "qr": 4 / 3}


def factors(kind, json_path=None, quick=False, args=()):
    """Factors around the balance of computing and network, against ScaLAPACK."""
    import tilewave as tw

    parser = argparse.ArgumentParser(prog=f"tilewave bench {kind}", description=__doc__.splitlines()[0])
    options_of(parser)
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
    for where in places(options.where, PLACES, kind):
        after = functools.partial(_add_hpl, arguments["repeats"]) if kind == "lu" else None
        over = []
        before = functools.partial(_trials, options, over)
        found = run_at(where, WORKER, arguments, kind, after, before)
        for size in found["sizes"]:
            case, flops = case_of(where, found, size["n"]), FLOPS[kind] * size["n"] ** 3
            # Panels of L go along the rows of the grid, those of U (or of the mirrored triangle) along its columns.
            limit = functools.partial(limit_s, found, size["n"], flops=flops, part=0.5)
            rows += size_rows(case, size, flops, limit, (MKL, DEBIAN, hpl.NAME), "tilewave")
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
        sizes = on_ranks(RANKS, ranks, {"around": around}, runner=start)
    best, slow = best_of_trials(start, kind, ranks, sizes, options.limit)
    over += slow
    return {**arguments, "sizes": sizes, "best": best}
