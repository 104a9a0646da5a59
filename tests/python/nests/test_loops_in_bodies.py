"""Loops inside bodies: what a body reads of what it has just written, every length of rows, all subscripts."""

import itertools

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw

LENGTHS = (*range(1, 18), 31, 63, 64, 65, 71, 72, 127, 128, 129)  # a row takes up to 64 points of 4 bytes at once


def plainly(nest, ranges, *arguments, **scalars):
    """Run the body of a nest in plain loops; indices are the last parameters."""
    for point in itertools.product(*ranges):
        nest.function(*arguments, *point, **scalars)


@tw.nest
def driven(V, E, t, s, *, n):
    V[t+1, s] = V[t, s] + sum(E[q] for q in range(n))


@tw.nest
def blended(V, E, t, s, *, n):
    if s % 3 > 0:
        V[t+1, s] = 0.5 * V[t, s] + max(E[q] * V[t, s] for q in range(n)) + E[s % 2]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_points_of_every_row_are_computed_once(dtype):
    for n in LENGTHS:
        V, W = (tw.field(np.arange(n, dtype=dtype)) for _ in range(2))
        expected = np.arange(n, dtype=dtype)
        tw.run(driven, V=V, E=np.ones(2, dtype), steps=2, n=2)
        assert np.array_equal(V.gather(), expected + 4), n
        tw.run(blended, V=W, E=np.array([0.25, 3], dtype), steps=1, n=2)
        for s in filter(lambda s: s % 3 > 0, range(n)):
            expected[s] = 0.5 * expected[s] + 3 * expected[s] + (0.25, 3)[s % 2]
        assert np.array_equal(W.gather(), expected), n


@pytest.mark.parametrize("n", [1, 4, 9, 70])
def test_rows_along_time(n):
    V = tw.field(np.zeros(n))
    tw.run(driven, V=V, E=np.ones(2), steps=6, n=2, plan={"row": (1, 0)})
    assert np.array_equal(V.gather(), np.full(n, 12.0))


@tw.nest
def own(x, y, i, *, n):
    x[i] = x[i] * 2
    y[i] = sum(x[q] for q in range(n))


@tw.nest
def so_far(S, A, t, s):
    S[t, s] = S[t-1, s] + s
    A[t, s] = max(S[t, q] for q in range(s + 1))


@tw.nest
def on_some_paths(x, y, i, *, n):
    if x[i] > 2:
        x[i] = -1.0
        y[i] = y[i] + sum(x[q] * max(x[p] for p in range(n)) for q in range(n))
        x[i] = -2.0
    y[i] = y[i] + (min(x[q] for q in range(i, n)) if i % 2 == 0 else x[i])


def test_what_the_point_has_just_written():
    for n in (1, 3, 8, 65):
        numbers = np.random.default_rng(n).integers(0, 5, n).astype(float)
        for nest in (own, on_some_paths):
            x, y, a, b = (array.copy() for array in (numbers, numbers, numbers, numbers))
            tw.run(nest, x=x, y=y, n=n)
            plainly(nest, [range(n)], a, b, n=n)
            assert np.array_equal(x, a) and np.array_equal(y, b), (nest.name, n)
        S, A, a, b = (np.zeros((3, n)) for _ in range(4))
        tw.run(so_far, S=S, A=A)
        plainly(so_far, [range(1, 3), range(n)], a, b)
        assert np.array_equal(S, a) and np.array_equal(A, b), n


@tw.nest
def both_steps(V, W, t, s, *, n):
    V[t+1, s] = V[t, s] + 1
    if s % 2 == 0:
        W[t+1, s] = sum(W[t+1, q] for q in range(n)) - sum(W[t, q] * V[t+1, s] for q in range(n))


def test_a_step_that_reads_itself_and_the_one_before(n=9, steps=3):
    numbers = np.arange(float(n))
    V, W = tw.field(numbers), tw.field(numbers)
    tw.run(both_steps, V=V, W=W, n=n, steps=steps, over={"s": (1, n)})
    v, w = ([numbers.copy()] for _ in range(2))
    for t in range(steps):
        v.append(v[t].copy())
        w.append(w[t].copy())
        for s in range(1, n):
            v[t + 1][s] = v[t][s] + 1
            if s % 2 == 0:
                w[t + 1][s] = sum(w[t + 1]) - sum(w[t] * v[t + 1][s])
    assert np.array_equal(V.gather(), v[-1]) and np.array_equal(W.gather(), w[-1])


TERMS = {
    "a scalar": "sum(A[i, k] * A[q, i] for q in range(n))",
    "a scalar that is added": "max(A[q, i] - x[q + k] for q in range(n - k))",
    "a quotient of the loop": "sum(A[i, q] * x[q // 2] for q in range(n))",
    "a quotient of the point": "sum(A[i // 2, q] for q in range(n))",
    "a remainder": "tw.argmax(A[i, (q + i) % 3] for q in range(n))",
    "a look-up": "min(A[i, c[q]] for q in range(n))",
    "extents": "sum(A[i, q] for q in range(len(c))) if i % 2 == 0 else A.shape[1] + x[k]",
    "any": "any(A[i, q] > 2 and x[q] > 3 for q in range(n)) + any(x[q] > 99 for q in range(n))",
    "all": "all(A[i, q] > 0 or x[q] > 0 for q in range(n)) - all(A[p, q] < 4 for q in range(n) for p in range(q))",
    "any that ends early": "any(x[q] > 0 for q in range(99))",
    "no terms": "any(x[q] for q in range(0)) + all(x[q] for q in range(0))",
    "truths": "max(x[q] > 3 and not A[i, q] for q in range(n)) + 0",
    "several types": "max(x[q] if x[q] > i else q for q in range(n))",
}


@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
def test_terms(term):
    nest = tw.nest_from(
        f"def body(y, A, x, c, i, *, n, k):\n    y[i] = {term} + 0 * sum(A[i, q] * x[q] * c[q] for q in range(n))",
        {"tw": tw},
    )
    for n in (3, 5, 8, 40):
        rng = np.random.default_rng(n)
        A, x, c = rng.integers(0, 5, (n, n)) * 1.0, rng.integers(0, 5, n) * 1.0, rng.permutation(n)
        x[0] = 1
        y, expected = np.zeros(n), np.zeros(n)
        tw.run(nest, y=y, A=A, x=x, c=c, n=n, k=1)
        plainly(nest, [range(n)], expected, A, x, c, n=n, k=1)
        assert np.array_equal(y, expected), n


@tw.nest
def backward(B, E, t, s, *, n):
    B[t-1, s] = sum(E[t-1, q] * B[t, q] for q in range(n))


@tw.nest
def apart(V, t, s, *, n):
    V[t+1, s] = max(V[t, q - s] + V[t, q] for q in range(20, n))


def test_time_and_points_in_subscripts(n=40):
    E, B = np.arange(3.0 * n).reshape(3, n), tw.field(np.ones(n))
    tw.run(backward, B=B, E=E, steps=3, reverse=("t",), n=n)
    expected = 1.0
    for t in (2, 1, 0):
        expected = sum(E[t]) * expected
    assert np.array_equal(B.gather(), np.full(n, expected))
    V = np.random.default_rng(1).random((4, n))
    W = V.copy()
    tw.run(apart, V=V, n=n, over={"s": (0, 20)})
    plainly(apart, [range(3), range(20)], W, n=n)
    assert np.array_equal(V, W)


@pytest.mark.parametrize("dtype", ["?", "u1", "i2"])
def test_products_of_truths(dtype):
    product = tw.nest_from("def product(o, R, S, i, j): o[i, j] = max(R[i, q] and S[q, j] for q in range(5))")
    R, S = (np.random.default_rng(k).random((5, 5)) < 0.3 for k in range(2))
    o = np.zeros((5, 5), dtype)
    tw.run(product, o=o, R=R, S=S)
    assert np.array_equal(o, (R @ S).astype(dtype))


def test_strides():
    best = tw.nest_from("def best(V, T, t, s): V[t+1, s] = max(V[t, q] + T[q, s] for q in range(3))")
    V = tw.field(np.arange(3.0))
    tw.run(best, V=V, T=np.eye(3), steps=2, over={"s": (0, 3, 2)})
    assert np.array_equal(V.gather(), [3, 1, 4])


@tw.nest
def halved(x, t, i, *, n):
    x[t, i] = x[t, i] * 0.5 + sum(x[t-1, q] for q in range(n)) + max(x[t-1, q] for q in range(i + 1))


def test_strides_of_what_is_read_along_a_loop(n=20):
    x = np.random.default_rng(1).random((6, n))
    y = x.copy()
    tw.run(halved, x=x, n=n, over={"i": (1, n, 3), "t": (1, 6, 2)})
    plainly(halved, [range(1, 6, 2), range(1, n, 3)], y, n=n)
    assert np.array_equal(x, y)
    with pytest.raises(tw.ConfigError, match="multiples of i, and read along a loop"):
        tw.nest_from("def body(A, i): A[2*i] = sum(A[q] for q in range(9))")


@tw.nest
def aside(A, X, i, j, *, n):
    A[i-1, j+1] = sum((X[q] if A[i-1, q] < 3 else A[i, q] - A[i-1, j+1]) for q in range(n))


def test_what_is_written_beside_the_point(n=5):
    A = np.arange(3.0 * n).reshape(3, n)
    B, X = A.copy(), np.arange(1.0 * n)
    tw.run(aside, A=A, X=X, n=n)
    plainly(aside, [range(1, 3), range(-1, n - 1)], B, X, n=n)
    assert np.array_equal(A, B)


@tw.nest
def pivots(D, T, k, i, j):
    D[i, j] = D[i, j] + D[i, k] * D[k, j] + sum(T[k, q] for q in range(2))


@tw.nest
def sums(A, Y, i, *, n):
    A[i] = sum(Y[i, q] for q in range(n))


def test_loops_that_given_arrays_bound():
    D, E, T = np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2))
    tw.run(pivots, D=D, T=T)
    plainly(pivots, [range(2)] * 3, E, T)
    assert np.array_equal(D, E)
    A = np.zeros(5)
    tw.run(sums, A=A, Y=np.ones((5, 4)), n=2, over={"i": (1, 5, 3)})
    assert np.array_equal(A, [0, 2, 0, 0, 2])


def test_numbers_from_outside_in_ranges():
    for c in (-1, -2, 0):
        nest = tw.nest_from("def ends(y, A, i): y[i] = sum(A[i, q] for q in range(c + A.shape[1]))", {"c": c})
        y = np.zeros(9)
        tw.run(nest, y=y, A=np.ones((9, 9)))
        assert np.array_equal(y, np.full(9, 9.0 + c))


@tw.nest
def row_norm(A, i, *, n):
    r = sum(abs(A[i, q]) for q in range(n))  # noqa: F841


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 3), (2, 2), (3, 1)])
def test_numbers_of_rows_alone(ranks, threads):
    """The only array is whole on each rank."""
    A = np.arange(-60.0, 60.0).reshape(10, 12)
    sums = np.abs(A).sum(axis=1)

    def body(context):
        given = {"A": A, "n": 12, "reduce": {"norm": tw.max("r"), "at": tw.argmax("r")}, "context": context}
        bound = tw.bind(row_norm, **given)
        assert tw.check(tw.schedule(row_norm, **given)) is None
        assert tw.plan(row_norm, **given) == bound.plan
        chain = tw.chain([bound, tw.bind(row_norm, **given, over={"i": (3, 7)})])
        return [tw.run(row_norm, **given).results, bound.run().results, chain.run().results]

    for one, two, both in results_of(ranks, threads, body):
        assert one == two == {"norm": sums.max(), "at": (int(sums.argmax()),)}
        assert both["norm"] == sums[3:7].max() and both["at"] == (3 + int(sums[3:7].argmax()),)


@tw.nest
def shifted(A, B, i):
    A[i] = B[i-2] + B[i+1]


@tw.nest
def summed(C, A, i, *, n):
    C[i] = sum(A[q] for q in range(n // 2, n)) - A[0]


@tw.nest
def shifted_rows(A, B, i, j):
    A[i, j] = B[i-2, j] + B[i+1, j]


@tw.nest
def summed_rows(C, A, i, j, *, n):
    C[i, j] = sum(A[q, j] for q in range(n // 2, n)) - A[0, j]


@pytest.mark.parametrize("nests", [(shifted, summed), (shifted_rows, summed_rows)])
@pytest.mark.parametrize("ranks", [1, 2])
def test_fields_with_halos_are_read_whole(nests, ranks, n=9):
    first, second = nests
    B = np.random.default_rng(n).random((n, 5)[: len(first.indices)])
    A = np.roll(B, 2, axis=0) + np.roll(B, -1, axis=0)
    C = np.broadcast_to(sum(A[q] for q in range(n // 2, n)) - A[0], A.shape)

    def body(context):
        fields = {name: tw.field(B.shape, "f8", B if name == "B" else 0.0, context=context) for name in "ABC"}
        wrap, of_second = {"periodic": ("i",)}, {"C": fields["C"], "A": fields["A"], "n": n}
        tw.run(first, A=fields["A"], B=fields["B"], **wrap)
        tw.run(second, **of_second)
        found = [fields["C"].gather()]
        chain = tw.chain([tw.bind(first, A=fields["A"], B=fields["B"], **wrap), tw.bind(second, **of_second)])
        fields["C"][...] = 0
        for times in (1, 2):
            chain.run(times=times)
            found.append(fields["C"].gather())
        return found

    for array in results_of(ranks, 2, body)[0]:
        assert np.array_equal(array, C)
