"""Matrices in proportion to ranks' weights, given or of their speeds: the same results as with equal blocks."""


import numpy as np
import pytest
import scipy.linalg
import tilewave as tw
from factors import MOST, grids, norm, qr_ratios, ratio, solve_ratio
from local_ranks import refused_on_all, results_of, with_speeds
from matrices import DTYPES, close, values, weights

RANKS = [1, 2, 3, 4, 6]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("seed", range(6))
def test_factors(ranks, seed):
    """LU, Cholesky and QR of every grid by weights of the call, solved with, against LAPACK."""
    rng = np.random.default_rng([seed, ranks])
    n, block, dtype = int(rng.integers(1, 80)), int(rng.integers(1, 9)), str(rng.choice(DTYPES))
    given, grid = weights(rng, ranks), grids(ranks)[rng.integers(len(grids(ranks)))]
    whole, b = values(rng, (n, n), dtype), values(rng, (n, int(rng.integers(1, 9))), dtype)
    of_qr = values(rng, (n, int(rng.integers(1, 2 * n + 1))), dtype)
    definite = (whole @ whole.conj().T / n + np.eye(n)).astype(dtype)
    keys = {"grid": grid, "block": block, "weights": given}
    what = seed, ranks, n, keys, dtype

    def body(context):
        a, s, q = (tw.linalg.matrix(each, context=context) for each in (whole, definite, of_qr))
        lu, lower, qr = tw.linalg.lu(a, **keys), tw.linalg.cholesky(s, **keys), tw.linalg.qr(q, **keys)
        assert all(f.report.plan.weights == f.layout.weights == given for f in (lu, lower, qr)), what
        rows, columns = (sum(given[r] for r in range(ranks) if place(r) == place(context.rank)) / sum(given)
                         for place in (lambda r: r // grid[1], lambda r: r % grid[1]))
        for found, part in zip(lu.local.shape, (rows, columns), strict=True):
            assert abs(found - n * part) <= 2 * block, (what, found)
        assert "ranks have blocks in proportion to" in lu.report.plan.explain(), what
        pair = qr.q().gather(), qr.r().gather()
        sides = tw.linalg.matrix(b, context=context)
        return lu.gather(), lu.pivots, lower.gather(), pair, lu.solve(sides).gather(), lower.solve(sides).gather()

    found, pivots, lower, (q, r), x, y = results_of(ranks, 1, body)[0]
    wanted, order = scipy.linalg.lu_factor(whole)
    assert np.array_equal(pivots, order), what
    assert ratio(found - wanted, n * norm(whole) * norm(wanted), dtype) < MOST, what
    assert ratio(lower @ lower.conj().T - definite, n * norm(definite), dtype) < MOST, what
    assert max(qr_ratios(of_qr, q, r)) < MOST, what
    assert max(solve_ratio(whole, x, b), solve_ratio(definite, y, b)) < MOST, what


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("seed", range(6))
def test_products(ranks, seed):
    """By weights of the call: C is moved there and back, by each algorithm, with alpha and beta."""
    rng = np.random.default_rng([seed, ranks])
    m, k, n = (int(rng.integers(1, 60)) for _ in range(3))
    given, dtype = weights(rng, ranks), str(rng.choice(DTYPES))
    layout = str(rng.choice(["rows", "columns", "cyclic"]))
    algorithm = str(rng.choice(["auto", "broadcast", "wavefront", "summa"]))
    a, b, c = values(rng, (m, k), dtype), values(rng, (k, n), dtype), values(rng, (m, n), dtype)
    what = seed, ranks, (m, k, n), given, layout, algorithm

    def body(context):
        left, right, into = (
            tw.linalg.matrix(each, layout=of, context=context) for each, of in ((a, "rows"), (b, "rows"), (c, layout))
        )
        keys = {"algorithm": algorithm, "weights": given}
        plan = tw.linalg.plan_matmul(left, right, into, beta=1.0, **keys)
        tw.linalg.matmul(left, right, into, alpha=2.0, beta=1.0, plan=plan)
        assert into.report.plan.weights == plan.weights == given, what
        assert not into.layout.weights and ("C" in plan.moved or ranks == 1 or len(set(given)) == 1), what
        new = tw.linalg.matmul(left, right, weights=())
        assert new.report.plan.weights == ()
        return into.gather(), new.gather()

    found, new = results_of(ranks, 1, body)[0]
    assert close(found, 2 * a @ b + c, dtype) and close(new, a @ b, dtype), what


@pytest.mark.parametrize("ranks", RANKS)
def test_what_is_made_of_matrices_in_proportion(ranks, tmp_path):
    """Results lie as what they are made of: inverses, least squares, parts, checkpoints, rank-0 arrays, fields."""
    rng = np.random.default_rng(ranks)
    given = tuple(range(1, ranks + 1))
    a, tall, b = (rng.normal(size=shape) for shape in ((41, 41), (63, 20), (63, 7)))

    def body(context):
        made = [tw.linalg.matrix(x, layout=name, weights=given, context=context) for x, name in
                ((a, "columns"), (tall, "rows"), (b, "cyclic"))]
        assert ranks == 1 or all(x.layout.weights == given for x in made)
        A, T, B = made
        inverse, C, part = tw.linalg.inv(A), A @ A.T, A[3:40:2, ::-1]
        assert all(x.layout.weights == A.layout.weights for x in (inverse, C, part, 2 * A, A.T.redistribute()))
        lu = tw.linalg.lu(A)
        assert lu.layout.weights == A.layout.weights and lu.det().shape == ()
        x = tw.linalg.lstsq(T, B)
        assert x.layout.weights == B.layout.weights
        tw.checkpoint(tmp_path, 1, A=A, context=context)
        again = tw.resume(tmp_path, context=context)["A"]
        assert again.layout == A.layout and np.array_equal(again.local, A.local)
        field = tw.field((41, 41), init=a, context=context)
        of_field = tw.linalg.matrix((41, 41), init=field, weights=given, context=context)
        solved = tw.linalg.solve_triangular(A, tw.linalg.matrix(a[:, :9].copy(), context=context))
        found = inverse, C, part, x, of_field, solved, A.T.redistribute()
        return [each.gather() for each in found], x.residues, A.diagonal(), A[5], A @ b[:41], tw.linalg.norm(A, 1)

    wholes, residues, diagonal, row, y, size = results_of(ranks, 1, body)[0]
    least = np.linalg.lstsq(tall, b)
    upper = scipy.linalg.solve_triangular(a, a[:, :9])
    wanted = np.linalg.inv(a), a @ a.T, a[3:40:2, ::-1], least[0], a, upper, a.T
    for found, one in zip(wholes, wanted, strict=True):
        assert np.allclose(found, one, rtol=1e-6, atol=1e-9 * np.abs(one).max())
    assert np.allclose(residues, least[1]) and np.array_equal(diagonal, a.diagonal()) and np.array_equal(row, a[5])
    assert np.allclose(y, a @ b[:41]) and np.isclose(size, np.linalg.norm(a, 1))


@pytest.mark.parametrize("slow, unequal", [(0.5, True), (1.0, False)])
def test_blocks_are_in_proportion_where_ranks_are_not_equally_fast(slow, unequal):
    """Where nobody gives weights, plans with those of the speeds are compared with even blocks."""

    def body(context):
        with_speeds(context, [1.0, slow])
        a = tw.linalg.matrix((1500, 1500), "f4", init=lambda i, j: 1.0 * (i == j), context=context)
        factor = tw.linalg.cholesky(a, block=32)
        even = tw.linalg.cholesky(a, block=32, weights=())
        product = tw.linalg.plan_matmul(a, a, context=context)
        names = [text for _, _, text in product.compared]
        assert any("in proportion" in text for text in names) == unequal
        return factor.report.plan, even.report.plan, factor.local.shape[1]

    (plan, even, columns), (other, _, _) = results_of(2, 1, body)
    assert plan.weights == other.weights == ((100, 50) if unequal else ()) and even.weights == ()
    assert abs(columns - (1000 if unequal else 750)) <= 32
    assert plan.predicted_s < even.predicted_s if unequal else plan.predicted_s == even.predicted_s


@pytest.mark.parametrize("given", [(1, 0), (1,), (1, 2, 3), (-1, 1), (1, 1.5), "12", 3, (1, 10**6 + 1), (True, 1)])
def test_weights_that_cannot_be(given):
    def made(context):
        tw.linalg.matrix((5, 5), weights=given, context=context)

    refused_on_all(2, made, "matrix: weights: given")

    def product(a, weights):
        tw.linalg.matmul(a, a, weights=weights)

    for call in (tw.linalg.lu, tw.linalg.cholesky, tw.linalg.qr, product):

        def called(context, call=call):
            call(tw.linalg.matrix((5, 5), context=context), weights=given)

        refused_on_all(2, called, "weights")
