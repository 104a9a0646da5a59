"""`bench nests`: a linear body over one to four arrays, in place and as fields, and what bounds it."""

import numpy as np
import tilewave as tw

from bench.dense import ratio
from bench.nests_plain import numba_arrays
from bench.nests_race import lanes, must_equal, race
from bench.results import row


@tw.nest
def one(A, i, j, k):
    A[i, j, k] = 0.3 * A[i - 1, j, k] + 0.3 * A[i, j - 1, k] + 0.3 * A[i, j, k - 1]


@tw.nest
def two(A, B, i, j, k):
    A[i, j, k] = 0.3 * A[i - 1, j, k] + 0.3 * A[i, j - 1, k] + 0.3 * A[i, j, k - 1] + B[i, j, k]


@tw.nest
def three(A, B, C, i, j, k):
    A[i, j, k] = 0.3 * A[i - 1, j, k] + 0.3 * A[i, j - 1, k] + 0.3 * A[i, j, k - 1] + B[i, j, k] + C[i, j, k]


@tw.nest
def four(A, B, C, D, i, j, k):
    A[i, j, k] = (
        0.3 * A[i - 1, j, k] + 0.3 * A[i, j - 1, k] + 0.3 * A[i, j, k - 1] + B[i, j, k] + C[i, j, k] + D[i, j, k]
    )


NESTS = (one, two, three, four)


def arrays(quick):
    """One lane; a shape within the caches of most processors, and one beyond."""
    rows = []
    for shape in ((64, 64, 256), (64, 64, 1024 if quick else 4096)):
        for dtype in ("f4", "f8"):
            for nest in NESTS:
                rows += _raced(nest, shape, dtype, quick)
    return rows


def _raced(nest, shape, dtype, quick):
    """Numba's loops; arrays in place, timed from outside with all that a call takes; fields by their report."""
    case, context = f"{len(nest.arrays)} array{'s' * (nest is not one)} {'x'.join(map(str, shape))} {dtype}", lanes(1)
    start = {name: np.full(shape, 1 if name == "A" else 0.01, dtype) for name in nest.arrays}
    fields = {name: tw.field(shape, dtype, init=array, context=context) for name, array in start.items()}
    others = {name: array for name, array in start.items() if name != "A"}
    given = {"tilewave, in place": {"A": start["A"].copy(), **others}, "tilewave, fields": fields}
    reports = {}

    def run(name):
        reports[name] = tw.run(nest, **given[name], context=context)
        return reports[name].measured.time_s if given[name] is fields else None

    runs = {name: lambda name=name: run(name) for name in given}
    results = {}
    if loops := numba_arrays():
        results["plain loops, Numba"] = start["A"].copy()
        arguments = [results["plain loops, Numba"], *others.values()]
        runs["plain loops, Numba"] = lambda: (loops[nest.name](np.dtype(dtype).type(0.3), *arguments), None)[1]
    for once in runs.values():
        once()
    for name, each in given.items():
        results[name] = each["A"].gather() if each is fields else each["A"]
    must_equal(case, results)
    large = shape[-1] > 256
    times = race(runs, 2 if quick else 5, each=3 if large else 10)
    points = reports["tilewave, fields"].points
    shown = {name: [t / points * 1e9 for t in seconds] for name, seconds in times.items()}
    found, plain = [], times.get("plain loops, Numba")
    for name, values in shown.items():
        bound = reports[name].bound if name in given else None
        found.append(
            row(
                case,
                name,
                values,
                "ns/point",
                ratio_to_contender=ratio(plain, times[name]) if plain and name in given else None,
                fraction_of_limit=ratio([bound.time_s] * len(times[name]), times[name]) if bound else None,
            )
        )
        if bound and given[name] is fields:
            name = f"memory's bound, {bound.bytes_per_point:.3g} bytes a point"
            found.append(row(case, name, [bound.time_s / points * 1e9], "ns/point"))
    return found
