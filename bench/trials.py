"""Trials of ScaLAPACK's routines, each block size and grid by itself: which is the best, and which takes too long.

A routine cannot be stopped, so trials run on other ranks, which end themselves when one has had its time; the
trials that are left run on new ranks. A grid whose trial was ended is tried at no other block or larger size.
"""

import itertools
import json
import os
import sys
import tempfile
from pathlib import Path

from bench import scalapack
from bench.dense import BLOCKS, grids

RANKS = "bench.trials_ranks"


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
        code = start([sys.executable, str(Path(__file__).with_name("worker.py")), RANKS, given, os.devnull], ranks)
        lines = [json.loads(line) for line in out.read_text().splitlines()]
    ended = [seconds for word, seconds in lines if word == "end"]
    begun = sum(word == "begin" for word, _ in lines)
    trials = [(n, name, tuple(grid), block) for n, name, grid, block in trials]
    return begun, list(zip(trials, ended, strict=False)), code
