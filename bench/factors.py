"""Factors of distributed matrices against other libraries and against what the machine allows.

``tilewave bench lu | cholesky | qr [--where NAME,...] [--size N] [--json FILE] [--quick]``; places and sizes as in
`bench matmul`. Our matrix lies by block columns, as many as are predicted best. The limit is max(compute, wire): the
flops over all ranks' rate of products, or the bytes of the panels that each rank must receive: half the matrix, but for
its own part. Contenders, where they are installed: MKL's and Debian's pdgetrf, pdpotrf or pdgeqrf, the best of three
block sizes and of the grids in trials beforehand (what takes more than --limit seconds there is left out, with a row
that says so); of LU also HPL, the best of twelve settings, behind the turns of the others (it is a
program, and its time has the solution of one system in it); NumPy on one core.
"""

import argparse
import functools
import statistics

from bench import hpl
from bench.cluster import places
from bench.dense import PLACES, error_percent, options_of, overlap, ratio, run_at
from bench.matmul import case_of
from bench.matmul_ranks import NUMPY
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
    options = parser.parse_args(list(args))
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
        beside = functools.partial(_hpl, arguments["repeats"]) if kind == "lu" else None
        over = []
        before = functools.partial(_trials, options, over)
        found = run_at(where, WORKER, arguments, kind, beside, before)
        for size in found["sizes"]:
            rows += size_rows(kind, where, found, size)
            case = case_of(where, found, size["n"])
            rows += [
                missing(case, f"{name}, grid {grid[0]}x{grid[1]}: did not finish in {options.limit:g} s")
                for n, name, grid in over
                if n == size["n"]
            ]
    errors = [r.value for r in rows if r.contender.endswith("prediction error")]
    if errors:
        rows.append(row(f"{len(errors)} runs", "prediction error, median (target 8)", [statistics.median(errors)], "%"))
    publish(kind, rows, json_path)


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


def _hpl(repeats, start, found):
    """Adds HPL's times, where it is installed."""
    sizes = [size["n"] for size in found["sizes"]]
    for n, way in hpl.ways(start, found["ranks"], sizes, repeats).items():
        next(size for size in found["sizes"] if size["n"] == n)["ways"].append(way)


def limit_s(kind, found, n, grid):
    """Seconds that computing takes at least, and receiving panels: the part of them that other ranks own."""
    limits, (rows, columns) = found["limits"], grid
    compute = FLOPS[kind] * n**3 / found["ranks"] / limits["flops_s"]
    # Panels of L go along the rows of the grid, those of U (or of the mirrored triangle) along its columns.
    received = 8.0 * n**2 / 2 * (columns - 1 + rows - 1) / (rows * columns)
    return compute, received / limits["bytes_s"]


def size_rows(kind, where, found, size):
    """Rows of all ways at one size."""
    n, case = size["n"], case_of(where, found, size["n"])
    theirs = {w["family"]: w["seconds"] for w in size["ways"] if w["family"] in (MKL, DEBIAN, hpl.NAME)}
    best = min(theirs.values(), key=statistics.median, default=None)
    rows = []
    for way in size["ways"]:
        name, seconds = way["name"], way["seconds"]
        rates = [1e-9 * FLOPS[kind] * n**3 / s for s in seconds]
        if name == NUMPY:
            rows.append(row(case, name, rates, "GFlop/s"))
            continue
        limits = limit_s(kind, found, n, way["grid"])
        fraction = max(limits) / statistics.median(seconds)
        ours = name.startswith("tilewave")
        against = ratio(best, seconds) if ours and best else None
        rows.append(row(case, name, rates, "GFlop/s", ratio_to_contender=against, fraction_of_limit=fraction))
        if hidden := overlap(seconds, *limits):
            rows.append(row(case, f"{name}: overlap", hidden, "of hideable"))
        if way.get("predicted_s"):
            rows.append(row(case, f"{name}: prediction error", [error_percent(way["predicted_s"], seconds)], "%"))
        if ours:
            rows += [
                row(case, f"{name}, against {family}", rates, "GFlop/s", ratio_to_contender=ratio(other, seconds))
                for family, other in theirs.items()
            ]
    return rows
