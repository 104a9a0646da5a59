"""Products of distributed matrices: every algorithm, against other libraries and against what the machine allows.

``tilewave bench matmul [--where NAME,...] [--size N] [--json FILE] [--quick]``; NAME: 2x1 (ranks x threads here), or
HOSTS@RATE as in 2@1gbit (hosts in a box; needs root). Sizes lie around the balance n* = 4 F / R, at which two ranks of
F flops a second compute as long as they receive R bytes a second. A and C lie by block rows and B by block columns;
"grid": all three in blocks on a grid. The limit is max(compute, wire): 2 n^3 flops over all ranks' rate, or the bytes
that each rank must receive for its grid. Overlap is what is hidden of the shorter of the two. Contenders, where they
are installed: pdgemm of MKL and of Debian's ScaLAPACK with OpenBLAS, the best of three block sizes and of the grids.
"""

import statistics

import numpy as np
import tilewave as tw

from bench import dense, scalapack
from bench.runner import Turn, benchmark, places, race, row

#: Name: what `matmul` is asked for.
ALGORITHMS = {
    "broadcast": {"algorithm": "broadcast"},
    "wavefront": {"algorithm": "wavefront", "pending": False},
    "pending": {"algorithm": "wavefront", "pending": True},
    "summa": {"algorithm": "summa"},
    "auto": {},
}


def worker(algorithms, sizes, repeats, rate, around=(), factors=(), others=True, quick=False):
    """Limits and, by size, times of each contender; on rank 0.

    Parameters
    ----------
    sizes : list of int
        Where empty: `factors` times the balance, or as `Setting.sizes` where there are no factors.
    others : bool
        Race other libraries, too.
    """
    setting = dense.Setting(rate, quick)
    balance = setting.context._core.allreduce_min([int(setting.limits["balance"])])[0]
    found = {}
    for n in sizes or [int(f * balance) for f in factors] or setting.sizes(around):
        turns = _ours(setting.context, n, algorithms)
        for name, library in setting.libraries.items() if others else ():
            turns += _theirs(setting.context, n, name, library)
        found[n] = [one.record() for one in race(setting.context, turns, repeats)]
    return setting.found(found)


def _ours(context, n, algorithms):
    """Each algorithm by block rows and columns, as wolfmann2010; SUMMA and auto on a grid of blocks as well."""
    values = dense.uniform, dense.other, None
    rows = [
        tw.linalg.matrix((n, n), init=f, layout=layout, context=context)
        for f, layout in zip(values, ("rows", "columns", "rows"), strict=True)
    ]
    square = [dense.cyclic(context, n, None, None, f) for f in values]
    turns = [_product(context, name, rows, ALGORITHMS[name]) for name in algorithms]
    on_grid = [name for name in ("summa", "auto") if name in algorithms]
    return turns + [_product(context, f"{name}, grid", square, ALGORITHMS[name]) for name in on_grid]


def _product(context, name, matrices, choices):
    a, b, c = matrices
    run = lambda: tw.linalg.matmul(a, b, c, context=context, **choices)
    turn = _turn(context, f"tilewave, {name}", run, c, c.layout.grid)
    turn.plan = lambda: dense.planned(c.report.plan)
    return turn


def _turn(context, name, run, c, grid, family=""):
    check = lambda: _check(context, name, c)
    return Turn(name, run, ready=lambda: c.local.fill(0), check=check, grid=grid, family=family)


def _check(context, name, c):
    """Five elements of C on each rank, computed again from the functions that A and B were made of."""
    n, right, random = c.shape[0], True, np.random.default_rng(context.rank)
    for _ in range(5 if c.local.size else 0):
        at = random.integers(c.local.shape[0]), random.integers(c.local.shape[1])
        i, j, k = c.rows[at[0]], c.columns[at[1]], np.arange(n)
        right = right and abs(float(dense.uniform(i, k) @ dense.other(k, j)) - c.local[at]) < 1e-10 * n
    dense.refuse(context, f"bench matmul: {name}, n = {n}", right)


def _theirs(context, n, name, library):
    """pdgemm on every grid and block size."""
    for grid in dense.grids(context.size):
        for block in dense.BLOCKS:
            matrices = [dense.cyclic(context, n, block, grid, f) for f in (dense.uniform, dense.other, None)]
            operands = [m.to_scalapack(library.grid(*grid)) for m in matrices]
            label = f"{name}, block {block}, grid {grid[0]}x{grid[1]}"
            run = lambda operands=operands: library.pdgemm(n, *operands)
            yield _turn(context, label, run, matrices[2], grid, family=name)


@benchmark(
    "matmul",
    __doc__,
    places=dense.PLACES,
    options={**dense.OPTIONS, "--algorithm": {"action": "append", "choices": list(ALGORITHMS), "help": "default: all"}},
)
def matmul(options):
    sizes = []
    for place in places(options):
        with scalapack.environment():
            given = dense.arguments(options, place)
            found = place.call(__name__, algorithms=options.algorithm or list(ALGORITHMS), **given)
        for size in found["sizes"]:
            case, flops = dense.case_of(place, found, size["n"]), 2.0 * size["n"] ** 3
            yield from dense.rows_of(case, found, size, flops, "tilewave, auto")
            sizes.append(size)
    losses = [loss for size in sizes for of in ("", ", grid") if (loss := loss_of_auto(size["contenders"], of))]
    if losses:
        near = 100 * sum(loss <= 1.05 for loss in losses) / len(losses)
        yield row(f"{len(losses)} cells", "auto is the fastest or within 5 % (target 90)", [near], "%")
        yield row(f"{len(losses)} cells", "auto against the fastest, worst", [max(losses)], "x")
    yield from dense.summary(sizes)


def loss_of_auto(contenders, of=""):
    """By how many times auto takes longer than the fastest algorithm on the same layouts; None without both."""
    medians = {w["name"]: statistics.median(w["seconds"]) for w in contenders if w["name"].startswith("tilewave")}
    auto = medians.pop(f"tilewave, auto{of}", None)
    same = [s for name, s in medians.items() if name.endswith(", grid") == bool(of)]
    return auto / min(auto, *same) if auto and same else None
