"""Products of distributed matrices: every algorithm, against other libraries and against what the machine allows.

``tilewave bench matmul [--where NAME,...] [--size N] [--json FILE] [--quick]``; NAME: 2x1 (ranks x threads here), or
HOSTS@RATE as in 2@1gbit (hosts in a box; needs root). Sizes lie around the balance n* = 4 F / R, at which two ranks of
F flops a second compute as long as they receive R bytes a second. A and C lie by block rows and B by block columns;
"grid": all three in blocks on a grid. The limit is max(compute, wire): 2 n^3 flops over all ranks' rate, or the bytes
that each rank must receive for its grid. Overlap is what is hidden of the shorter of the two. Contenders, where they
are installed: pdgemm of MKL and of Debian's ScaLAPACK with OpenBLAS, the best of three block sizes and of the grids.
"""

import argparse
import functools
import statistics

from bench.cluster import places
from bench.dense import PLACES, case_of, error_percent, limit_s, options_of, run_at, size_rows
from bench.matmul_ranks import ALGORITHMS
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
        "others": True,
        "quick": quick,
    }
    rows, cells = [], []
    for where in places(options.where, PLACES, "matmul"):
        found = run_at(where, WORKER, arguments, "matmul")
        for size in found["sizes"]:
            n, flops = size["n"], 2.0 * size["n"] ** 3
            limit = functools.partial(limit_s, found, n, flops=flops)
            rows += size_rows(case_of(where, found, n), size, flops, limit, (MKL, DEBIAN), "tilewave, auto")
            cells.append(size["contenders"])
    publish("matmul", rows + _summary(cells), json_path)


def loss_of_auto(contenders, of=""):
    """By how many times auto takes longer than the fastest algorithm on the same layouts; None without both."""
    medians = {w["name"]: statistics.median(w["seconds"]) for w in contenders if w["name"].startswith("tilewave")}
    auto = medians.pop(f"tilewave, auto{of}", None)
    same = [s for name, s in medians.items() if name.endswith(", grid") == bool(of)]
    return auto / min(auto, *same) if auto and same else None


def _summary(cells):
    losses = [loss for contenders in cells for of in ("", ", grid") if (loss := loss_of_auto(contenders, of))]
    errors = [
        error_percent(w["predicted_s"], w["seconds"])
        for contenders in cells
        for w in contenders
        if w.get("predicted_s")
    ]
    rows = []
    if losses:
        near = 100 * sum(loss <= CLOSE for loss in losses) / len(losses)
        rows.append(row(f"{len(losses)} cells", "auto is the fastest or within 5 % (target 90)", [near], "%"))
        rows.append(row(f"{len(losses)} cells", "auto against the fastest, worst", [max(losses)], "x"))
    if errors:
        rows.append(row(f"{len(errors)} runs", "prediction error, median (target 8)", [statistics.median(errors)], "%"))
    return rows
