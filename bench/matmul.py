"""Products of distributed matrices: every algorithm, against other libraries and against what the machine allows.

``tilewave bench matmul [--where NAME,...] [--size N] [--json FILE] [--quick]``; NAME: 2x1 (ranks x threads here), or
HOSTS@RATE as in 2@1gbit (hosts in a box; needs root). Sizes lie around the balance n* = 4 F / R, at which two ranks of
F flops a second compute as long as they receive R bytes a second. A and C lie by block rows and B by block columns;
"grid": all three in blocks on a grid. The limit is max(compute, wire): 2 n^3 flops over all ranks' rate, or the bytes
that each rank must receive for its grid. Overlap is what is hidden of the shorter of the two. Contenders, where they
are installed: pdgemm of MKL and of Debian's ScaLAPACK with OpenBLAS, the best of three block sizes and of the grids.
"""

import functools
import statistics
import sys

import numpy as np
import tilewave as tw

from bench import dense, scalapack
from bench.cluster import places
from bench.results import parser_of, publish, row
from bench.scalapack import DEBIAN, MKL

#: `auto` is as good as the fastest where it takes at most so many times as long.
CLOSE = 1.05

#: Name: what `matmul` is asked for.
ALGORITHMS = {
    "broadcast": {"algorithm": "broadcast"},
    "wavefront": {"algorithm": "wavefront", "pending": False},
    "pending": {"algorithm": "wavefront", "pending": True},
    "summa": {"algorithm": "summa"},
    "auto": {},
}
#: Elements of C that each rank computes again.
LOOKS = 5


def worker(algorithms, sizes, factors, least, most, repeats, rate, others, quick=False):
    """Limits and, by size, times of each contender; on rank 0.

    Parameters
    ----------
    sizes : list of int
        Where empty: around the balance, `factors` times it, or as `dense.sizes_around` where there are no factors.
    others : bool
        Race other libraries, too.
    """
    context = dense.measured_context()
    limits = dense.Limits(context, rate, quick)
    balance = context._core.allreduce_min([int(limits.balance)])[0]
    if not sizes:
        sizes = [int(f * balance) for f in factors] if factors else dense.sizes_around(balance, least, most)
    libraries = scalapack.load(say(context)) if others else {}
    found = []
    for n in sizes:
        turns = _ours(context, n, algorithms)
        for name, library in libraries.items():
            turns += _theirs(context, n, name, library)
        contenders = [one.record() for one in dense.race(context, turns, repeats)]
        found.append({"n": n, "contenders": contenders})
        if context.rank == 0:
            print(f" {n}", end="", flush=True, file=sys.stderr)
    return {"limits": limits.shown(), "ranks": context.size, "sizes": found} if context.rank == 0 else None


def say(context):
    """Prints on rank 0."""
    return (lambda text: print(text, file=sys.stderr)) if context.rank == 0 else (lambda text: None)


def _ours(context, n, algorithms):
    """Each algorithm by block rows and columns, as wolfmann2010; SUMMA and auto on a grid of blocks as well."""
    rows = [
        tw.linalg.matrix((n, n), init=f, layout=layout, context=context)
        for f, layout in ((dense.uniform, "rows"), (dense.other, "columns"), (None, "rows"))
    ]
    square = [dense.cyclic(context, n, None, None, f) for f in (dense.uniform, dense.other, None)]
    turns = [_product(context, name, rows, ALGORITHMS[name]) for name in algorithms]
    on_grid = [name for name in ("summa", "auto") if name in algorithms]
    return turns + [_product(context, f"{name}, grid", square, ALGORITHMS[name]) for name in on_grid]


def _product(context, name, matrices, choices):
    a, b, c = matrices

    def run():
        tw.linalg.matmul(a, b, c, context=context, **choices)

    return dense.Turn(
        f"tilewave, {name}",
        run,
        c.layout.grid,
        ready=lambda: c.local.fill(0),
        check=lambda: _check(context, name, c),
        plan=lambda: dense.planned(c.report.plan),
    )


def _check(context, name, c):
    """Some elements of C, computed again from the functions that A and B were made of."""
    n, right = c.shape[0], True
    if c.local.size:
        random = np.random.default_rng(context.rank)
        for _ in range(LOOKS):
            at = random.integers(c.local.shape[0]), random.integers(c.local.shape[1])
            i, j, k = c.rows[at[0]], c.columns[at[1]], np.arange(n)
            right = right and abs(float(dense.uniform(i, k) @ dense.other(k, j)) - c.local[at]) < 1e-10 * n
    dense.refuse(context, f"bench matmul: {name}, n = {n}", right)


def _theirs(context, n, name, library):
    """pdgemm on every grid and block size."""
    turns = []
    for grid in dense.grids(context.size):
        for block in dense.BLOCKS:
            handle = library.grid(*grid)
            matrices = [dense.cyclic(context, n, block, grid, f) for f in (dense.uniform, dense.other, None)]
            operands = [m.to_scalapack(handle) for m in matrices]
            label = f"{name}, block {block}, grid {grid[0]}x{grid[1]}"
            turns.append(
                dense.Turn(
                    label,
                    lambda operands=operands: library.pdgemm(n, *operands),
                    grid,
                    ready=lambda c=matrices[2]: c.local.fill(0),
                    check=lambda label=label, c=matrices[2]: _check(context, label, c),
                    family=name,
                )
            )
    return turns


def matmul(json_path=None, quick=False, args=()):
    """Products around the balance of computing and network: five algorithms against ScaLAPACK."""
    parser = parser_of("matmul", __doc__)
    dense.options_of(parser)
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
    for where in places(options.where, dense.PLACES, "matmul"):
        found = dense.run_at(where, __name__, arguments, "matmul")
        for size in found["sizes"]:
            n, flops = size["n"], 2.0 * size["n"] ** 3
            limit = functools.partial(dense.limit_s, found, n, flops=flops)
            rows += dense.size_rows(dense.case_of(where, found, n), size, flops, limit, (MKL, DEBIAN), "tilewave, auto")
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
        dense.error_percent(w["predicted_s"], w["seconds"])
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
