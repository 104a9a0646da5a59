"""The largest and smallest values of points, some of which do not count, against NumPy and plain loops."""

import numpy as np
import pytest

import tilewave as tw
from local_ranks import results_of
from random_paths import random_paths

SHAPE = (37, 150)


@tw.nest
def differences(v, u, m, i, j):
    if m[i, j] != 0:
        d = u[i-1, j] - u[i, j+1]
        v[i, j] = d
    e = u[i, j+1] + u[i, j]  # noqa: F841


@tw.nest
def in_order(u, m, i, j):
    if m[i, j] != 0:
        d = u[i-1, j] - u[i, j-1]
        u[i, j] = d


@tw.nest
def only(u, m, i, j):
    if m[i, j] != 0:
        d = u[i-1, j] - u[i, j+1]  # noqa: F841


@tw.nest
def copied(A, i):
    d = A[i] * 1.0  # noqa: F841


REDUCE = {
    "most": tw.max("d"),
    "least": tw.min("d"),
    "size": tw.norm("d", np.inf),
    "where": tw.argmax("d"),
    "total": tw.sum("d"),
    "sum of size": tw.norm("d", 1),
}
ALSO = {
    "all": tw.max("e"),
    "low": tw.min("e"),
    "written": tw.max("v"),
    "at": tw.argmin("v"),
    "largest": tw.max("v * 1"),
}


def drawn(seed, dtype):
    """u, and which points count."""
    draw = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        u = draw.standard_normal(SHAPE).astype(dtype)
        for value in (np.nan, np.inf, -np.inf):
            if draw.random() < 0.2:
                u[tuple(draw.integers(1, n) for n in SHAPE)] = value
    else:
        u = draw.integers(0, 50, SHAPE).astype(dtype)
    kind = draw.integers(4)
    m = (np.zeros, np.ones, *[lambda shape: draw.random(shape) < draw.choice([0.01, 0.5])] * 2)[kind](SHAPE)
    return u, m.astype("i1")


def of_counted(d, counts):
    """The reductions of REDUCE by NumPy."""
    points = np.argwhere(counts)
    if not len(points):
        return {"most": None, "least": None, "size": 0.0, "where": None}
    values = d[counts]
    with np.errstate(invalid="ignore"):
        most = values.max()
    is_most = np.isnan(values) if most != most else values == most
    return {
        "most": most,
        "least": values.min(),
        "size": float(np.abs(values.astype("f8")).max()),
        "where": tuple(int(x) for x in points[np.argmax(is_most)] + (1, 0)),
    }


def same(a, b):
    return a is b or a == b or (a is not None and b is not None and a != a and b != b)


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
@pytest.mark.parametrize("ranks, threads", [(1, 1), (1, 2), (2, 1), (3, 2), (4, 1)])
def test_extremes_of_points_that_count(ranks, threads, dtype, seed):
    def body(context):
        for k in range(6):
            number = 100 * seed + 10 * ranks + k
            print(f"extremes, seed {number}")
            first, counts = drawn(number, dtype)
            u = tw.field(SHAPE, dtype, init=first, context=context)
            m = tw.field(SHAPE, "i1", init=counts, context=context)
            v = tw.field(SHAPE, dtype, init=0, context=context)
            with np.errstate(all="ignore"):
                d, e = first[:-1, :-1] - first[1:, 1:], first[1:, 1:] + first[1:, :-1]
            found = tw.run(differences, v=v, u=u, m=m, reduce={**REDUCE, **ALSO}).results
            wanted = of_counted(d, counts[1:, :-1] != 0)
            assert all(same(found[name], value) for name, value in wanted.items()), (number, found, wanted)
            assert same(found["all"], e.max()) and same(found["low"], e.min()), number
            alone = tw.run(only, u=u, m=m, reduce=REDUCE).results
            assert all(same(alone[name], found[name]) for name in REDUCE), number
        return True

    assert all(results_of(ranks, threads, body, without=random_paths(f"extremes {ranks} {threads} {dtype} {seed}")))


@pytest.mark.parametrize("plan", [{}, {"storage": "plain"}, {"storage": "skewed"}])
@pytest.mark.parametrize("without", ["", "bests"])
def test_extremes_of_dependent_rows(plan, without):
    shape = (17, 30)

    def body(context):
        for seed in range(4):
            draw = np.random.default_rng(seed)
            first, counts = draw.standard_normal(shape), draw.integers(0, 2, shape).astype("i1")
            u = tw.field(shape, "f8", init=first, context=context)
            m = tw.field(shape, "i1", init=counts, context=context)
            found = tw.run(in_order, u=u, m=m, reduce=REDUCE, plan=plan).results
            plain, values = first.copy(), {}
            for i in range(1, shape[0]):
                for j in range(1, shape[1]):
                    if counts[i, j]:
                        values[i, j] = plain[i, j] = plain[i - 1, j] - plain[i, j - 1]
            most = max(values.values())
            assert found["most"] == most and found["least"] == min(values.values()), seed
            assert found["size"] == max(abs(value) for value in values.values()), seed
            assert found["where"] == min(point for point, value in values.items() if value == most), seed

    results_of(1, 2, body, without=without)


def test_a_zero_has_no_sign():
    A = tw.field((40,), "f8", init=lambda i: -0.0)
    report = tw.run(copied, A=A, reduce={"most": tw.max("d"), "least": tw.min("d")})
    assert not np.signbit(report.results["most"]) and not np.signbit(report.results["least"])
