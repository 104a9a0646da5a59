"""Every factor: in the memory of its matrix; panels in narrow tiles, by columns, and in wide ones, by rows."""

import itertools

import numpy as np
import pytest
from factors import MOST, least_squares_ratio, qr_ratios, ratio, solve_ratio, triangle
from local_ranks import results_of
from matrices import DTYPES, values

import tilewave as tw


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("block", "n"), [(63, 150), (64, 150), (70, 140)])
def test_factors(block, n, dtype):
    seed = block * n
    rng = np.random.default_rng(seed)
    square, tall = values(rng, (n, n), dtype), values(rng, (n + 37, n), dtype)
    sides, more = values(rng, (n, 5), dtype), values(rng, (n + 37, 5), dtype)
    definite = (square @ square.conj().T + n * np.eye(n)).astype(dtype)

    def body(context):
        def on(whole):
            return tw.linalg.matrix(whole, context=context)

        cholesky = tw.linalg.cholesky(on(definite), block=block)
        lu, qr = tw.linalg.lu(on(square), block=block), tw.linalg.qr(on(tall), block=block)
        solved = cholesky.solve(on(sides)).gather(), lu.solve(on(sides)).gather()
        found = tw.linalg.lstsq(on(tall), on(more), block=block)
        return cholesky.gather(), *solved, qr.q().gather(), qr.r().gather(), found.gather()

    results = results_of(2, 1, body)
    lower, x, y, q, r, z = results[0]
    assert ratio(lower @ lower.conj().T - definite, n * np.linalg.norm(definite, 1), dtype) < MOST, seed
    assert solve_ratio(definite, x, sides) < MOST and solve_ratio(square, y, sides) < MOST, seed
    assert max(qr_ratios(tall, q, r)) < MOST and least_squares_ratio(tall, z, more) < MOST, seed


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [63, 64])
def test_triangles(block, dtype):
    rng, n = np.random.default_rng(block), 150
    sides = values(rng, (n, 40), dtype)
    ways = list(itertools.product([False, True], "NTC", [False, True]))
    triangles = {lower: triangle(rng, n, dtype, lower) for lower in (False, True)}

    def body(context):
        b = tw.linalg.matrix(sides, context=context)
        a = {lower: tw.linalg.matrix(whole, context=context) for lower, whole in triangles.items()}
        return [
            tw.linalg.solve_triangular(a[lower], b, lower=lower, trans=op, unit_diagonal=unit, block=block).gather()
            for lower, op, unit in ways
        ]

    results = results_of(2, 1, body)
    for (lower, op, unit), x in zip(ways, results[0], strict=True):
        whole = np.tril(triangles[lower]) if lower else np.triu(triangles[lower])
        if unit:
            np.fill_diagonal(whole, 1)
        meant = {"N": whole, "T": whole.T, "C": whole.conj().T}[op]
        assert solve_ratio(meant, x, sides) < MOST, (lower, op, unit)


KINDS = [tw.linalg.cholesky, tw.linalg.lu, tw.linalg.qr]


@pytest.mark.parametrize("factor", KINDS)
@pytest.mark.parametrize(("ranks", "dtype"), list(zip([1, 2, 3, 4], DTYPES, strict=True)))
def test_in_place(factor, ranks, dtype):
    """The elements of a copy's factor, without a second matrix."""
    n, block = 23, 4
    rng = np.random.default_rng(ranks)
    whole = values(rng, (n, n), dtype)
    whole = (whole @ whole.conj().T + n * np.eye(n)).astype(dtype)

    def body(context):
        def on(**layout):
            return tw.linalg.matrix(whole, context=context, **layout)

        fitting, other = on(layout="columns", block=block), on(layout="rows")
        copied = factor(fitting, block=block)
        kept = fitting.gather(), factor(other, block=block, overwrite_a=True).gather(), other.gather()
        made = factor(fitting, block=block, overwrite_a=True)
        array = whole.copy()
        factor(array, block=block, overwrite_a=True, context=context)
        b = tw.linalg.matrix(whole[:, :2].copy(), context=context)
        return made.local is fitting.local, copied.gather(), made.gather(), *kept, array, made.solve(b).gather()

    results = results_of(ranks, 1, body)
    assert all(result[0] for result in results)
    _, copied, made, fitting, moved, other, array, x = results[0]
    assert np.array_equal(made, copied) and np.array_equal(moved, copied)
    assert np.array_equal(fitting, whole) and np.array_equal(array, whole)
    assert ranks == 1 or np.array_equal(other, whole)  # on one rank all layouts are one
    assert np.allclose(x, np.eye(n)[:, :2], atol=1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-10)


@pytest.mark.parametrize("factor", KINDS)
def test_ranks_that_differ(factor):
    """Refused on both; the matrix stays as it is."""
    whole = np.eye(6) + 1

    def body(context):
        a = tw.linalg.matrix(whole, layout="columns", block=2, context=context)
        with pytest.raises(tw.ConfigError, match="overwrite_a"):
            factor(a, overwrite_a=context.rank == 1)
        with pytest.raises(tw.ConfigError, match="overwrite_a: given 'yes'; allowed: True, False"):
            factor(a, overwrite_a="yes")
        return a.gather()

    results = results_of(2, 1, body)
    assert np.array_equal(results[0], whole)
