"""`bench nests`: a linear body over four arrays, in place and as fields, and what bounds it; bodies over fewer."""

import functools

import numpy as np
import tilewave as tw

from bench.costs_bodies import compiled
from bench.nests_race import lanes, must_equal, race
from bench.results import ratio, row

NUMBA = "plain loops, Numba"


@tw.nest
def one(A, i, j, k):
    A[i, j, k] = 0.3 * A[i - 1, j, k] + 0.3 * A[i, j - 1, k] + 0.3 * A[i, j, k - 1]


@tw.nest
def two(A, B, i, j, k):
    A[i, j, k] = 0.3 * A[i - 1, j, k] + 0.3 * A[i, j - 1, k] + 0.3 * A[i, j, k - 1] + B[i, j, k]


@tw.nest
def four(A, B, C, D, i, j, k):
    A[i, j, k] = (
        0.3 * A[i - 1, j, k] + 0.3 * A[i, j - 1, k] + 0.3 * A[i, j, k - 1] + B[i, j, k] + C[i, j, k] + D[i, j, k]
    )


def loops_of_four(c, A, B, C, D):
    for i in range(1, A.shape[0]):
        for j in range(1, A.shape[1]):
            for k in range(1, A.shape[2]):
                A[i, j, k] = (
                    c * A[i - 1, j, k] + c * A[i, j - 1, k] + c * A[i, j, k - 1] + B[i, j, k] + C[i, j, k] + D[i, j, k]
                )


def arrays(quick):
    """Four arrays, one lane: Numba's loops; in place, timed from outside with all that a call takes; as fields."""
    return [one for dtype in ("f4", "f8") for one in _raced((64, 64, 1024 if quick else 4096), dtype, quick)]


def _raced(shape, dtype, quick):
    case, context = f"4 arrays {'x'.join(map(str, shape))} {dtype}", lanes(1)
    start = {name: np.full(shape, 1 if name == "A" else 0.01, dtype) for name in four.arrays}
    fields = {name: tw.field(shape, dtype, init=array, context=context) for name, array in start.items()}
    given = {"tilewave, in place": {**start, "A": start["A"].copy()}, "tilewave, fields": fields}
    results, reports, rows = {}, {}, []

    def run(name):
        reports[name] = tw.run(four, **given[name], context=context)
        return reports[name].measured.time_s if given[name] is fields else None

    runs = {name: functools.partial(run, name) for name in given}
    if loops := compiled(loops_of_four):
        results[NUMBA] = start["A"].copy()
        arguments = (np.dtype(dtype).type(0.3), *{**start, "A": results[NUMBA]}.values())
        runs[NUMBA] = lambda: (loops(*arguments), None)[1]
    for once in runs.values():
        once()
    results |= {"tilewave, in place": given["tilewave, in place"]["A"], "tilewave, fields": fields["A"].gather()}
    must_equal(case, results)
    times, points = race(runs, 2 if quick else 5, each=3), reports["tilewave, fields"].points
    plain = times.get(NUMBA)
    for name, seconds in times.items():
        ratios, bound = {}, name in given and reports[name].bound
        if plain and name in given:
            ratios["ratio_to_contender"] = ratio(plain, seconds)
        if bound:
            ratios["fraction_of_limit"] = ratio([bound.time_s] * len(seconds), seconds)
        rows.append(row(case, name, [s / points * 1e9 for s in seconds], "ns/point", **ratios))
    return rows
