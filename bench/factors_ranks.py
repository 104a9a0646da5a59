"""What the ranks of `bench lu`, `cholesky` and `qr` do: factors in turn with those of other libraries."""

import sys

import numpy as np
import tilewave as tw
from tilewave.allgather import allgather

from bench import scalapack
from bench.dense import Limits, Turn, measured_context, planned, race, refuse
from bench.matmul_ranks import say
from bench.trials_ranks import routine_of, values_of


def worker(kind, sizes, best, repeats, rate, quick=False):
    """Limits and, by size, times of each contender; on rank 0. `best`: by size and library, block size and grid."""
    context = measured_context()
    limits = Limits(context, rate, quick)
    libraries, found = scalapack.load(say(context)), []
    for n in sizes:
        values = values_of(kind, n)
        logs = []  # of |det A| or its root, by each contender: all must agree
        turns = _ours(context, kind, n, values, logs)
        turns += [
            _theirs(context, kind, n, name, libraries[name], *found_best, logs)
            for name, found_best in best.get(str(n), {}).items()
        ]
        contenders = [one.record() for one in race(context, turns, repeats)]
        refuse(context, f"bench {kind}: n = {n}", np.allclose(logs, logs[0], rtol=1e-8))
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

    return [Turn("tilewave", run, grid, ready=ready, check=check, plan=lambda: planned(made[0].report.plan))]


def _theirs(context, kind, n, name, library, block, grid, logs):
    """ScaLAPACK's routine on the grid and with the block size that a trial found best."""
    run, ready, a = routine_of(library, context, kind, n, block, tuple(grid))

    def check():
        logs.append(_log_of_diagonal(context, a.rows, a.columns, a.local))

    label = f"{name}, block {block}, grid {grid[0]}x{grid[1]}"
    return Turn(label, run, tuple(grid), ready=ready, check=check, family=name)
