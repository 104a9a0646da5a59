"""Factors on every grid of 4, 6, 8 and 12 ranks against LAPACK; grids that cannot be."""

import numpy as np
import pytest
import scipy.linalg
import tilewave as tw
from factors import MOST, grids, least_squares_ratio, norm, qr_ratios, ratio
from local_ranks import refused_on_all, results_of
from matrices import values

from tilewave import _core

ALL = [grid for ranks in (4, 6, 8, 12) for grid in grids(ranks)]
SEED = {grid: 1000 + number for number, grid in enumerate(ALL)}


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("grid", ALL)
def test_every_grid(grid, dtype):
    """Sizes that are no multiples of blocks; pivots as LAPACK's; wide and tall matrices for QR."""
    seed = SEED[grid]
    rng = np.random.default_rng(seed)
    n, block = int(rng.integers(30, 90)), int(rng.integers(2, 9))
    whole = values(rng, (n, n), dtype)
    definite = (whole @ whole.conj().T / n + np.eye(n)).astype(dtype)
    of_qr = values(rng, (n, int(rng.integers(1, 2 * n))), dtype)

    def body(context):
        a, s, x = (tw.linalg.matrix(v, context=context) for v in (whole, definite, of_qr))
        lu, lower, qr = (
            call(m, grid=grid, block=block, context=context)
            for call, m in ((tw.linalg.lu, a), (tw.linalg.cholesky, s), (tw.linalg.qr, x))
        )
        assert all(f.layout.grid == f.report.plan.grid == grid for f in (lu, lower, qr)), (lu.layout, grid)
        q, r = qr
        return lu.gather(), lu.pivots, lower.gather(), q.gather(), r.gather()

    results = results_of(grid[0] * grid[1], 1, body)
    found, pivots, lower, q, r = results[0]
    assert all(np.array_equal(pivots, other[1]) for other in results), seed
    wanted, order = scipy.linalg.lu_factor(whole)
    assert np.array_equal(pivots, order), (seed, grid, n, block)
    assert ratio(found - wanted, n * norm(whole) * norm(wanted), dtype) < MOST, (seed, grid, n, block)
    assert ratio(lower @ lower.conj().T - definite, n * norm(definite), dtype) < MOST, (seed, grid, n, block)
    assert np.all(lower[np.triu_indices(n, 1)] == 0) and np.all(r[np.tril_indices(*r.shape[:1], -1, r.shape[1])] == 0)
    assert max(qr_ratios(of_qr, q, r)) < MOST, (seed, grid, n, block, of_qr.shape)


@pytest.mark.parametrize("grid", [(3, 1), (2, 2), (2, 3), (3, 2)])
def test_least_squares_and_dependent_columns(grid):
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(50, 20)), rng.normal(size=(50, 3))
    dependent = a.copy()
    dependent[:, 13] = a[:, :5] @ rng.normal(size=5)

    def body(context):
        with pytest.raises(tw.linalg.RankDeficient, match="column 13 of a") as refused:
            tw.linalg.qr(dependent, grid=grid, block=3, context=context).solve(b)
        least, _, rank, _ = tw.linalg.lstsq(dependent, b, grid=grid, block=3, context=context)
        assert rank == 19 and np.allclose(least, np.linalg.lstsq(dependent, b)[0])
        wide = tw.linalg.lstsq(a.T.copy(), b[:20], grid=grid, block=3, context=context)[0]
        return tw.linalg.lstsq(a, b, grid=grid, block=3, context=context)[0], wide, refused.value.info

    for x, wide, info in results_of(grid[0] * grid[1], 1, body):
        assert least_squares_ratio(a, x, b) < MOST and info == 14
        assert np.allclose(wide, np.linalg.lstsq(a.T, b[:20])[0])


@pytest.mark.parametrize("given", [(3, 2), (0, 4), (4,), (2, 2, 1), "2x2", 4, (2, 1.5), (2**40, 1)])
def test_grids_that_cannot_be(given):
    def body(context):
        tw.linalg.lu(np.eye(6), grid=given, context=context)

    refused_on_all(4, body, "lu: grid: given ")


def test_a_wavefront_has_one_row_of_ranks():
    def body(context):
        tw.linalg.qr(np.eye(6), grid=(2, 2), algorithm="wavefront", context=context)

    refused_on_all(4, body, "qr: grid: given (2, 2) with algorithm 'wavefront'; allowed: one row of ranks, or")


@pytest.mark.parametrize("kind", ["cholesky", "lu"])
def test_bytes_that_a_rank_sends_fall_on_grids_and_stay_above_the_bound(kind):
    linalg, n, sent = _core.linalg, 6400, {}
    for ranks in (16, 64, 256):
        side = int(ranks**0.5)
        layout = linalg.BlockCyclic(linalg.Axis(n, side, 0), linalg.Axis(n, side, 0), False)
        for grid in ((1, ranks), (side, side)):
            given = linalg.FactorOptions()
            given.grid, given.block, given.lookahead, given.algorithm, given.tree = grid, 64, 1, "broadcast", "ring"
            (plan,) = linalg.PanelProblem(kind, layout, 8, ranks, 1).plans("test", given)
            assert plan.sent_bytes > plan.least_sent_bytes > 0, (ranks, grid)
            sent[ranks, grid[0]] = plan.sent_bytes
    assert sent[256, 1] > 0.8 * sent[16, 1] and sent[256, 16] < 0.6 * sent[16, 4]


def test_explanations_have_the_bytes_beside_the_bound():
    def body(context):
        a = tw.linalg.matrix((120, 120), init=lambda i, j: np.cos(i * j) + 9.0 * (i == j), context=context)
        return tw.linalg.lu(a, grid=(2, 2), context=context).report.plan.explain()

    text = results_of(4, 1, body)[0]
    assert "rank 0 sends" in text and "kwasniewski2021" in text
