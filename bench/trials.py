"""Trials of ScaLAPACK's routines, each block size and grid by itself: which is the best, and which takes too long.

A routine cannot be stopped, so trials run on other ranks, which end themselves when one has had its time; the
trials that are left run on new ranks. A grid whose trial was ended is tried at no other block or larger size.
"""

import functools
import itertools
import json
import os
import sys
import tempfile
import threading
from pathlib import Path

import tilewave as tw

from bench import scalapack
from bench.dense import BLOCKS, Limits, cyclic, grids, positive_definite, sizes_around, timed, uniform

#: ScaLAPACK's name of each factorization.
ROUTINES = {"lu": "pdgetrf", "cholesky": "pdpotrf", "qr": "pdgeqrf"}
#: Runs of a trial: the first one sets the library up.
RUNS = 2
NAME = __name__


def worker(kind="", trials=(), limit_s=0.0, path="", around=None):
    """Notes in `path` when a trial begins and ends; rank 0 returns sizes `around` the balance if it is asked for them.

    A rank ends itself, as if all were well, when a run has taken longer than `limit_s`.
    """
    context = tw.Context(threads=1)
    if around:
        balance = context._core.allreduce_min([int(Limits(context, around["rate"], around["quick"]).balance)])[0]
        return sizes_around(balance, around["least"], around["most"]) if context.rank == 0 else None
    libraries = scalapack.load(lambda text: None)
    with open(path, "a") as out:

        def note(word, seconds=None):
            if context.rank == 0:
                out.write(json.dumps([word, seconds]) + "\n")
                out.flush()

        for n, name, grid, block in trials:
            note("begin")
            seconds = None
            if name in libraries:
                run, ready, _ = routine_of(libraries[name], context, kind, n, block, tuple(grid))
                for _ in range(RUNS):
                    ready()
                    # The routine holds no lock of the interpreter, so that a timer ends the rank in its midst.
                    timer = threading.Timer(limit_s, os._exit, (0,))
                    timer.daemon = True
                    timer.start()
                    seconds = timed(context, run)
                    timer.cancel()
            note("end", seconds)
    return None


def values_of(kind, n):
    """The elements of the matrix that is factored, by their indices."""
    return positive_definite(n) if kind == "cholesky" else uniform


def routine_of(library, context, kind, n, block, grid):
    """What is called, what renews its matrix, and that matrix."""
    a = cyclic(context, n, block, grid, values_of(kind, n))
    before, (descriptor, local) = a.local.copy(order="F"), a.to_scalapack(library.grid(*grid))

    def ready():
        local[...] = before

    return functools.partial(getattr(library, ROUTINES[kind]), n, (descriptor, local)), ready, a


def best_of_trials(start, kind, ranks, sizes, limit_s):
    """{n: {library: (block, grid)}} of the fastest, and [(n, library, grid)] of trials that took longer than `limit_s`.

    Parameters
    ----------
    start : function
        Of a command and a number of ranks: runs it, and returns its exit code.
    """
    best, over = {n: {} for n in sizes}, []
    left = [
        [n, name, grid, block]
        for n, name, grid, block in itertools.product(
            sorted(sizes), (scalapack.DEBIAN, scalapack.MKL), grids(ranks), BLOCKS
        )
    ]
    while left:
        begun, done, code = _launch(start, ranks, kind, left, limit_s)
        for (n, name, grid, block), seconds in done:
            if seconds is not None:  # the library is there
                best[n][name] = min(best[n].get(name, (seconds, block, grid)), (seconds, block, grid))
        left = left[len(done) :]
        if not left:
            break
        if begun != len(done) + 1 or code not in (0, None):
            raise SystemExit(f"bench {kind}: the ranks of trials ended with exit code {code}")
        n, name, grid, _ = left[0]
        over += [(size, name, grid) for size in sizes if size >= n]
        left = [one for one in left if tuple(one[:3]) not in over]
    return {n: {name: found[1:] for name, found in some.items()} for n, some in best.items()}, over


def _launch(start, ranks, kind, trials, limit_s):
    """How many trials began, [(trial, seconds)] of those that ended, the exit code."""
    with tempfile.TemporaryDirectory(prefix="tilewave-trials.") as folder:
        out = Path(folder) / "trials"
        out.touch()
        given = json.dumps({"kind": kind, "trials": trials, "limit_s": limit_s, "path": str(out)})
        code = start([sys.executable, str(Path(__file__).with_name("worker.py")), __name__, given, os.devnull], ranks)
        lines = [json.loads(line) for line in out.read_text().splitlines()]
    ended = [seconds for word, seconds in lines if word == "end"]
    begun = sum(word == "begin" for word, _ in lines)
    trials = [(n, name, tuple(grid), block) for n, name, grid, block in trials]
    return begun, list(zip(trials, ended, strict=False)), code
