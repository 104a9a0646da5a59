"""How the contenders of `bench nests` are raced, and the rows of a race."""

import statistics
import sys
import time

import numpy as np
import tilewave as tw
from tilewave import _core

from bench.nests_plain import GENOME
from bench.results import ratio, row

ONE, TWO = "tilewave, 1 lane", "tilewave, 2 lanes"


def race(runs, repeats, each=1):
    """Seconds of each run, in turn A B C A B C; the first turn warms up.

    A run returns its seconds, or None to be timed from outside. Short ones run ``each`` times a turn, so that
    all but the first find their array in the cache as they left it; the turn's mean counts.
    """
    times = {name: [] for name in runs}
    for turn in range(repeats + 1):
        for name, start in runs.items():
            time.sleep(0.002)  # the last one's threads stop spinning
            total = 0.0
            for _ in range(each):
                begin = time.perf_counter()
                seconds = start()
                total += time.perf_counter() - begin if seconds is None else seconds
            if turn:
                times[name].append(total / each)
    return times


def lanes(count):
    """A context of this process alone."""
    return tw.Context._of(_core.Context.local(_core.LocalFabric(1), 0, count))


def on_lanes(make):
    """What is made for a context of one lane and of two, by the names of contenders."""
    return {name: make(lanes(count)) for count, name in ((1, ONE), (2, TWO))}


def must_equal(case, results):
    """All arrays must be equal bit for bit."""
    (first, expected), *others = results.items()
    for name, found in others:
        if not np.array_equal(np.asarray(expected).view("u1"), np.asarray(found).view("u1")):
            raise SystemExit(f"{case}: the results of {first!r} and {name!r} differ")


def skipped(case):
    """No rows, and the reason on stderr."""
    print(f"bench nests: {case}: skipped: {GENOME} is not there: run it in a checkout", file=sys.stderr)
    return []


def compare(case, times, points, limits=None, cells=False):
    """Rows of a race.

    A contender's ratio is to ours on as many threads, over a field; ours is to the best contender.

    Parameters
    ----------
    times : dict
        Seconds; ours have names that begin with "tilewave", "memory" ones are limits and no contenders.
    limits : dict, optional
        From a name of ours to the name of the race that bounds it.
    cells : bool
        Show 10**9 cells a second in place of ns a point.
    """

    def shown(name, seconds, **ratios):
        values = [points / t * 1e-9 if cells else t / points * 1e9 for t in seconds]
        return row(case, name, values, "Gcells/s" if cells else "ns/point", **ratios)

    theirs = {name: t for name, t in times.items() if not name.startswith(("tilewave", "memory"))}
    best = min(theirs.values(), key=statistics.median, default=None)
    rows = [shown(name, t) for name, t in times.items() if name.startswith("memory")]
    rows += [
        shown(name, t, ratio_to_contender=ratio(t, times[TWO if name.startswith("OpenMP 2") else ONE]))
        for name, t in theirs.items()
    ]
    for name, seconds in times.items():
        if name.startswith("tilewave"):
            limit = times[limits[name]] if limits and name in limits else None
            rows.append(
                shown(
                    name,
                    seconds,
                    ratio_to_contender=best and ratio(best, seconds),
                    fraction_of_limit=limit and ratio(limit, seconds),
                )
            )
    return rows
