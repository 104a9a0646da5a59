"""What the ranks of `bench lu`, `cholesky` and `qr` do: factors in turn with those of other libraries."""

import sys

import numpy as np
import tilewave as tw

from bench import scalapack
from bench.dense import Limits, Turn, measured_context, race, refuse, timed
from bench.matmul_ranks import NUMPY, say
from bench.trials_ranks import routine_of, values_of


def worker(kind, sizes, best, repeats, rate, quick=False):
    """Limits and, by size, times of each way; on rank 0. `best`: by size and library, the block size and the grid."""
    context = measured_context()
    limits = Limits(context, rate, quick)
    libraries, found = scalapack.load(say(context)), []
    for n in sizes:
        values = values_of(kind, n)
        logs = []  # of |det A| or its root, by each way: all must agree
        turns = _ours(context, kind, n, values, logs)
        turns += [
            _theirs(context, kind, n, name, libraries[name], *way, logs) for name, way in best.get(str(n), {}).items()
        ]
        ways = [one.record() for one in race(context, turns, repeats)]
        refuse(context, f"bench {kind}: n = {n}", np.allclose(logs, logs[0], rtol=1e-8))
        seconds = _numpy(context, kind, n, min(repeats, 3))
        ways.append({"name": NUMPY, "family": NUMPY, "grid": (1, 1), "seconds": seconds, "plan": ""})
        found.append({"n": n, "ways": ways})
        if context.rank == 0:
            print(f" {n}", end="", flush=True, file=sys.stderr)
    return {"limits": limits.shown(), "ranks": context.size, "sizes": found} if context.rank == 0 else None


def _log_of_diagonal(context, rows, columns, local):
    """Sum of the logarithms of a distributed matrix's diagonal, the same on every rank."""
    _, i, j = np.intersect1d(rows, columns, assume_unique=True, return_indices=True)
    mine = float(np.log(np.abs(local[i, j])).sum())
    return sum(np.frombuffer(part, "f8")[0] for part in _everybody(context, np.array([mine])))


def _everybody(context, array):
    """Everyone's array, as bytes, on every rank."""
    from mpi4py import MPI

    return MPI.COMM_WORLD.allgather(array.tobytes())


def _ours(context, kind, n, values, logs):
    """By block columns, as many as a first call takes that is free to choose: the user's matrix lies so, too."""
    call, made = getattr(tw.linalg, kind), []
    free = tw.linalg.matrix((n, n), init=values, layout="columns", context=context)
    block = call(free, context=context).report.block
    a = tw.linalg.matrix((n, n), init=values, layout="columns", block=block, context=context)
    kept = a.local.copy()

    def ready():
        a.local[...] = kept

    def run():
        made[:] = [call(a, overwrite_a=True, context=context)]

    def check():
        logs.append(_log_of_diagonal(context, made[0].rows, made[0].columns, made[0].local))

    return [Turn("tilewave", run, (1, context.size), ready=ready, check=check, plan=lambda: made[0].report)]


def _theirs(context, kind, n, name, library, block, grid, logs):
    """ScaLAPACK's routine on the grid and with the block size that a trial found best."""
    run, ready, a = routine_of(library, context, kind, n, block, tuple(grid))

    def check():
        logs.append(_log_of_diagonal(context, a.rows, a.columns, a.local))

    label = f"{name}, block {block}, grid {grid[0]}x{grid[1]}"
    return Turn(label, run, tuple(grid), ready=ready, check=check, family=name)


def _numpy(context, kind, n, repeats):
    """Seconds of one factorization of rank 0 alone: the floor."""
    n = n if context.rank == 0 else 1
    at = np.arange(n)
    a = values_of(kind, n)(at[:, None], at[None, :])
    call = {"lu": np.linalg.slogdet, "cholesky": np.linalg.cholesky, "qr": lambda a: np.linalg.qr(a, mode="raw")}[kind]
    return [timed(context, lambda: call(a)) for _ in range(repeats + 1)][1:]
