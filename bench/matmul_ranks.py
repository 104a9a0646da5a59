"""What the ranks of `bench matmul` and `bench papers` do: products in turn with those of other libraries."""

import sys

import numpy as np
import tilewave as tw

from bench import scalapack
from bench.dense import (
    BLOCKS,
    Limits,
    Turn,
    cyclic,
    grids,
    measured_context,
    other,
    planned,
    race,
    refuse,
    sizes_around,
    uniform,
)

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
    context = measured_context()
    limits = Limits(context, rate, quick)
    balance = context._core.allreduce_min([int(limits.balance)])[0]
    if not sizes:
        sizes = [int(f * balance) for f in factors] if factors else sizes_around(balance, least, most)
    libraries = scalapack.load(say(context)) if others else {}
    found = []
    for n in sizes:
        turns = _ours(context, n, algorithms)
        for name, library in libraries.items():
            turns += _theirs(context, n, name, library)
        contenders = [one.record() for one in race(context, turns, repeats)]
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
        for f, layout in ((uniform, "rows"), (other, "columns"), (None, "rows"))
    ]
    square = [cyclic(context, n, None, None, f) for f in (uniform, other, None)]
    turns = [_product(context, name, rows, ALGORITHMS[name]) for name in algorithms]
    on_grid = [name for name in ("summa", "auto") if name in algorithms]
    return turns + [_product(context, f"{name}, grid", square, ALGORITHMS[name]) for name in on_grid]


def _product(context, name, matrices, choices):
    a, b, c = matrices

    def run():
        tw.linalg.matmul(a, b, c, context=context, **choices)

    return Turn(
        f"tilewave, {name}",
        run,
        c.layout.grid,
        ready=lambda: c.local.fill(0),
        check=lambda: _check(context, name, c),
        plan=lambda: planned(c.report.plan),
    )


def _check(context, name, c):
    """Some elements of C, computed again from the functions that A and B were made of."""
    n, right = c.shape[0], True
    if c.local.size:
        random = np.random.default_rng(context.rank)
        for _ in range(LOOKS):
            at = random.integers(c.local.shape[0]), random.integers(c.local.shape[1])
            i, j, k = c.rows[at[0]], c.columns[at[1]], np.arange(n)
            right = right and abs(float(uniform(i, k) @ other(k, j)) - c.local[at]) < 1e-10 * n
    refuse(context, f"bench matmul: {name}, n = {n}", right)


def _theirs(context, n, name, library):
    """pdgemm on every grid and block size."""
    turns = []
    for grid in grids(context.size):
        for block in BLOCKS:
            handle = library.grid(*grid)
            matrices = [cyclic(context, n, block, grid, f) for f in (uniform, other, None)]
            operands = [m.to_scalapack(handle) for m in matrices]
            label = f"{name}, block {block}, grid {grid[0]}x{grid[1]}"
            turns.append(
                Turn(
                    label,
                    lambda operands=operands: library.pdgemm(n, *operands),
                    grid,
                    ready=lambda c=matrices[2]: c.local.fill(0),
                    check=lambda label=label, c=matrices[2]: _check(context, label, c),
                    family=name,
                )
            )
    return turns
