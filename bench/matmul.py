"""Products of distributed matrices: every algorithm, against other libraries and against what the machine allows.

``tilewave bench matmul [--where NAME,...] [--size N] [--json FILE] [--quick]``; NAME: 2x1 (ranks x threads here), or
HOSTS@RATE as in 2@1gbit (hosts in a box; needs root). Sizes lie around the balance n* = 4 F / R, at which two ranks of
F flops a second compute as long as they receive R bytes a second. A and C lie by block rows and B by block columns;
"grid": all three in blocks on a grid. The limit is max(compute, wire): 2 n^3 flops over all ranks' rate, or the bytes
that each rank must receive for its grid. Overlap is what is hidden of the shorter of the two. Contenders, where they
are installed: pdgemm of MKL and of Debian's ScaLAPACK with OpenBLAS, the best of three block sizes and of the grids;
heat, behind the turns of the others, as it lives in an environment of its own; NumPy on one core.
"""

import argparse
import functools
import statistics

from bench import heat_contender as heat
from bench.cluster import places
from bench.dense import PLACES, error_percent, options_of, overlap, ratio, run_at
from bench.matmul_ranks import ALGORITHMS, NUMPY
from bench.results import publish, row
from bench.scalapack import DEBIAN, MKL

WORKER = "bench.matmul_ranks"
#: `auto` is as good as the fastest where it takes at most so many times as long.
CLOSE = 1.05


def matmul(json_path=None, quick=False, args=()):
    """Products around the balance of computing and network: five algorithms against ScaLAPACK."""
    parser = argparse.ArgumentParser(prog="tilewave bench matmul", description=__doc__.splitlines()[0])
    options_of(parser)
    parser.add_argument("--algorithm", action="append", choices=list(ALGORITHMS), help="default: all")
    options = parser.parse_args(list(args))
    arguments = {
        "algorithms": options.algorithm or list(ALGORITHMS),
        "sizes": options.size or ([96] if quick else []),
        "factors": [],
        "least": options.least,
        "most": options.most,
        "repeats": 1 if quick else options.repeats,
        "contenders": True,
        "quick": quick,
    }
    rows, cells = [], []
    for where in places(options.where, PLACES, "matmul"):
        found = run_at(where, WORKER, arguments, "matmul", functools.partial(_heat, arguments["repeats"]))
        for size in found["sizes"]:
            rows += size_rows(where, found, size)
            cells.append(size["ways"])
    publish("matmul", rows + _summary(cells), json_path)


def _heat(repeats, start, found):
    """Adds heat's times, where it is installed."""
    sizes = [size["n"] for size in found["sizes"]]
    for n, way in heat.ways(start, found["ranks"], sizes, repeats).items():
        next(size for size in found["sizes"] if size["n"] == n)["ways"].append(way)


def limit_s(found, n, grid):
    """Seconds that computing takes at least, and receiving."""
    limits, (rows, columns) = found["limits"], grid
    compute = 2.0 * n**3 / found["ranks"] / limits["flops_s"]
    # Of A what the other columns of the grid have of a rank's rows, of B what the other rows have of its columns.
    received = 8.0 * n**2 * (columns - 1 + rows - 1) / (rows * columns)
    return compute, received / limits["bytes_s"]


def case_of(where, found, n):
    return f"{where}, n = {n}, {n / found['limits']['balance']:.2g} n*"


def size_rows(where, found, size):
    """Rows of all ways at one size."""
    n, case = size["n"], case_of(where, found, size["n"])
    theirs = {w["family"]: w["seconds"] for w in size["ways"] if w["family"] in (MKL, DEBIAN, heat.NAME)}
    best = min(theirs.values(), key=statistics.median, default=None)
    rows = []
    for way in size["ways"]:
        name, seconds = way["name"], way["seconds"]
        rates = [2e-9 * n**3 / s for s in seconds]
        if name == NUMPY:
            rows.append(row(case, name, rates, "GFlop/s"))
            continue
        limits = limit_s(found, n, way["grid"])
        fraction = max(limits) / statistics.median(seconds)
        ours = name.startswith("tilewave")
        against = ratio(best, seconds) if ours and best else None
        rows.append(row(case, name, rates, "GFlop/s", ratio_to_contender=against, fraction_of_limit=fraction))
        if hidden := overlap(seconds, *limits):
            rows.append(row(case, f"{name}: overlap", hidden, "of hideable"))
        if way.get("predicted_s"):
            error = error_percent(way["predicted_s"], seconds)
            rows.append(row(case, f"{name}: prediction error", [error], "%"))
        if name == "tilewave, auto":
            rows += [
                row(case, f"{name}, against {family}", rates, "GFlop/s", ratio_to_contender=ratio(other, seconds))
                for family, other in theirs.items()
            ]
    return rows


def loss_of_auto(ways, of=""):
    """By how many times auto takes longer than the fastest algorithm on the same layouts; None without both."""
    medians = {w["name"]: statistics.median(w["seconds"]) for w in ways if w["name"].startswith("tilewave")}
    auto = medians.pop(f"tilewave, auto{of}", None)
    same = [s for name, s in medians.items() if name.endswith(", grid") == bool(of)]
    return auto / min(auto, *same) if auto and same else None


def _summary(cells):
    losses = [loss for ways in cells for of in ("", ", grid") if (loss := loss_of_auto(ways, of))]
    errors = [error_percent(w["predicted_s"], w["seconds"]) for ways in cells for w in ways if w.get("predicted_s")]
    rows = []
    if losses:
        near = 100 * sum(loss <= CLOSE for loss in losses) / len(losses)
        rows.append(row(f"{len(losses)} cells", "auto is the fastest or within 5 % (target 90)", [near], "%"))
        rows.append(row(f"{len(losses)} cells", "auto against the fastest, worst", [max(losses)], "x"))
    if errors:
        rows.append(row(f"{len(errors)} runs", "prediction error, median (target 8)", [statistics.median(errors)], "%"))
    return rows
