"""Panels in narrow tiles, by columns, and in wide ones, by rows (64 and more): every factor and every triangle."""

import itertools

import numpy as np
import pytest
import tilewave as tw
from factors import MOST, least_squares_ratio, qr_ratios, ratio, solve_ratio, triangle
from local_ranks import results_of
from matrices import DTYPES, values


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
