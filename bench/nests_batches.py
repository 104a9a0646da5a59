"""`bench nests`: distances of many pairs of series by dynamic time warping, and scores of many alignments.

No table is stored: ours are rolling windows, Numba's loops keep two rows. And dtaidistance, the best of parasail.
"""

import sys

import numpy as np
import tilewave as tw

from bench import nests_parasail
from bench.nests_bodies import SCORES, smith_waterman_scores, warping
from bench.nests_plain import numba, plain_loops, sequences
from bench.nests_race import compare, must_equal, on_lanes, race, skipped
from bench.scalapack import VARIABLE, folders


def batches(quick):
    """Batches of distances and of alignments, cells a second."""
    return [*_warping(quick), *_alignments(quick)]


def _race(case, runs, cells, repeats):
    """Rows of functions that return their results; these must be equal."""
    must_equal(case, {name: np.asarray(run()) for name, run in runs.items()})
    return compare(case, race({name: _untimed(run) for name, run in runs.items()}, repeats), cells, cells=True)


def _untimed(run):
    return lambda: (run(), None)[1]


def _numba(name, *arguments):
    """One of Numba's functions on one core and on two, by name; empty where it is not installed."""
    if numba() is None:
        return {}
    from bench import nests_batches_numba as loops

    return {
        f"{'OpenMP 2, ' * (threads == 2)}Numba, two rows": lambda threads=threads: loops.run(name, threads, *arguments)
        for threads in (1, 2)
    }


# --- distances by dynamic time warping ------------------------------------------------------------


def _warping(quick):
    """All pairs of two sets of series: dtaidistance has no other batches."""
    first, second, n = (4, 5, 40) if quick else (40, 50, 256)
    series = np.random.default_rng(1).standard_normal((first + second, n))
    x = np.repeat(series[:first], second, axis=0)
    y = np.tile(series[first:], (first, 1))
    runs = _numba("warping", x, y) | _dtaidistance(series, first)
    runs |= on_lanes(lambda context: _warping_by_nest(x, y, context))
    return _race(f"{len(x)} distances of {n} f8", runs, len(x) * n * n, 2 if quick else 7)


def _warping_by_nest(x, y, context):
    pairs, n = x.shape
    D = tw.field((pairs, n + 1, n + 1), init=_border, keep="window", context=context)
    found = np.zeros(pairs)

    def run():
        tw.run(warping, D=D, S=found, X=x, Y=y, context=context)
        return found.copy()

    return run


def _border(p, i, j):
    return np.where((i == 0) & (j == 0), 0.0, np.inf)


def _dtaidistance(series, first):
    """Its function for pairs of a block, on one thread and on two; empty where no folder of contenders has it."""
    sys.path += [str(path) for folder in folders() for path in folder.glob("lib/python3*/site-packages")]
    try:
        from dtaidistance import dtw
    except ImportError:
        print(f"bench nests: dtaidistance is skipped: pip install it, and {VARIABLE}=FOLDER", file=sys.stderr)
        return {}
    block = ((0, first), (first, len(series)))

    def run(parallel):
        return np.array(
            dtw.distance_matrix_fast(series, block=block, compact=True, parallel=parallel, inner_dist="euclidean")
        )

    return {"dtaidistance": lambda: run(False), "OpenMP 2, dtaidistance": lambda: run(True)}


# --- scores of alignments -------------------------------------------------------------------------


def _alignments(quick):
    pairs, n = (20, 40) if quick else (10000, 128)
    a, b = sequences()
    if a is None:
        return skipped("scores")
    random = np.random.default_rng(1)
    a, b = (s[random.integers(0, s.size - n, pairs)[:, None] + np.arange(n)] for s in (a, b))
    runs = _numba("scores", a, b, *SCORES.values())
    if plain_loops():
        name, function = nests_parasail.best(a, b)
        if name:
            runs[name] = function
            runs[f"OpenMP 2, {name}"] = lambda: function(threads=2)
    runs |= on_lanes(lambda context: _scores_by_nest(a, b, context))
    return _race(f"{pairs} scores of {n} i2", runs, pairs * n * n, 2 if quick else 7)


def _scores_by_nest(a, b, context):
    pairs, n = a.shape
    fields = {name: tw.field((pairs, n + 1, n + 1), "i2", keep="window", context=context) for name in "HEF"}
    found = np.zeros(pairs, "i2")

    def run():
        found[:] = 0
        tw.run(smith_waterman_scores, **fields, S=found, a=a, b=b, **SCORES, context=context)
        return found.astype("i4")

    return run
