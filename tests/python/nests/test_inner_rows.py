"""Rows of points that take the terms of their loops together: what point by point gives, for every length of rows."""

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw

KINDS = ("max", "min", "sum", "tw.argmax", "tw.argmin")
LENGTHS = (3, 8, 31, 33, 64, 150)


def body(kind):
    return tw.nest_from(
        f"def body(V, T, x, t, s, *, n): V[t, s] = {kind}(V[t-1, q] + T[q, s] * x[q] for q in range(2, n)) + T[s, s]",
        {"tw": tw},
    )


def values(rng, shape, dtype):
    found = rng.integers(-2, 3, shape).astype(dtype)  # many equals
    if dtype.startswith("f"):
        found[rng.random(shape) < 0.1] = rng.choice([np.nan, -0.0, np.inf])
    return found


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_length(kind, dtype, seed):
    rng, nest, cases = np.random.default_rng(seed), body(kind), []
    for k, n in enumerate(LENGTHS):
        T, x, V = (values(rng, shape, dtype) for shape in ((n, n), (n,), (4, n)))
        plain = V.copy()
        nest.reference(((1, 4), (0, n)), {"V": plain, "T": T, "x": x}, {"n": n})
        cases.append((V, np.asarray(T, order="CF"[k % 2]), x, plain, ("s",) * (k % 3 == 0)))

    def run_all(context):
        for V, T, x, plain, reverse in cases:
            found = V.copy()
            tw.run(nest, V=found, T=T, x=x, n=len(x), reverse=reverse, context=context)
            numbers = found == found
            assert np.array_equal(numbers, plain == plain), len(x)
            assert np.array_equal(found[numbers], plain[numbers]), len(x)
            assert np.array_equal(np.signbit(found[numbers]), np.signbit(plain[numbers])), len(x)

    for without in (None, "wide_rows"):
        results_of(1, 1, run_all, without=without)


def test_time_backwards():
    rng = np.random.default_rng(4)
    T, first = rng.random((40, 40)), rng.random(40)
    back = tw.nest_from("def back(V, T, t, s): V[t-1, s] = max(V[t, q] + T[q, s] for q in range(len(T)))")
    V, W, expected = tw.field((40,), "f8", init=first), np.tile(first, (6, 1)), first
    for _ in range(5):
        expected = (expected[:, None] + T).max(axis=0)
    tw.run(back, V=V, T=T, steps=5, reverse=("t",))
    tw.run(back, V=W, T=T, reverse=("t",))
    assert np.array_equal(V.gather(), expected)
    assert np.array_equal(W[0], expected)


@tw.nest
def paths(D, x, y, i, j, *, n):
    D[i, j] = sum((x[i-1, q] - y[j-1, q]) * x[i-1, q] for q in range(n)) + min(D[i-1, j], D[i, j-1], D[i-1, j-1])


@pytest.mark.parametrize("keep", ["all", "window"])
@pytest.mark.parametrize("row", [(1, -1), (-1, 1), (0, 1)])
def test_rows_across_two_loops(row, keep, seed):
    """Their points differ in both indices, and each has its own terms."""
    rng = np.random.default_rng(seed)
    for rows, columns, n in zip(rng.integers(5, 40, 4), rng.integers(5, 40, 4), rng.integers(1, 12, 4), strict=True):
        x, y = rng.random((rows, n)), rng.random((columns, n))
        start = rng.random((rows + 1, columns + 1))
        expected = start.copy()
        for i in range(1, rows + 1):
            for j in range(1, columns + 1):
                terms = sum((x[i - 1, q] - y[j - 1, q]) * x[i - 1, q] for q in range(n))
                expected[i, j] = terms + min(expected[i - 1, j], expected[i, j - 1], expected[i - 1, j - 1])
        D = tw.field(start.shape, "f8", init=lambda i, j, start=start: start[i, j], keep=keep)
        plan = {"row": row} if keep == "all" and row != (0, 1) else {}
        reduce = {"sum": tw.sum("D"), "most": tw.max("D")}
        found = tw.run(paths, D=D, x=x, y=y, n=int(n), reduce=reduce, plan=plan).results
        inside = expected[1:, 1:]
        assert found["most"] == inside.max() and np.isclose(found["sum"], inside.sum()), f"seed {seed}"
        if keep == "all":
            tw.run(paths, D=(whole := tw.field(start)), x=x, y=y, n=int(n), plan=plan)
            assert np.array_equal(whole.gather(), expected), f"seed {seed}"


@tw.nest
def left_over(A, B, i, j, *, n):
    A[i, j] = B[i, j] % (j - 3) + tw.min(A[i-1, q] for q in range(n))


def test_llvm_prints_nothing_of_loops_that_call_functions(capfd, seed):
    """There is no fmod of vectors."""
    rng = np.random.default_rng(seed)
    A, B = rng.random((3, 40)), rng.random((3, 40))
    plain = A.copy()
    left_over.reference(((1, 3), (4, 40)), {"A": plain, "B": B}, {"n": 5})
    tw.run(left_over, A=A, B=B, n=5, over={"i": (1, 3), "j": (4, 40)}, plan={"generator": "gather"})
    assert np.array_equal(A, plain)
    assert capfd.readouterr().err == ""
