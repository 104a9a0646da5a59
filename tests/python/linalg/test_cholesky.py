"""Cholesky factors and solves against SciPy; matrices that have none."""

import numpy as np
import pytest
import scipy.linalg
import tilewave as tw
from factors import MOST, choices, drawn, norm, of_many_sizes, ratio
from local_ranks import results_of
from matrices import values
from tilewave import _core

linalg = _core.linalg


def definite(rng, n, dtype):
    """A positive definite matrix of a moderate condition; its upper triangle holds NaN, which nobody may read."""
    x = values(rng, (n, n), dtype)
    whole = (x @ x.conj().T / max(n, 1) + np.eye(n)).astype(dtype)
    return np.where(np.arange(n)[:, None] < np.arange(n)[None, :], np.nan, whole).astype(dtype), whole


def random_factor(seed, n=None, largest=30):
    rng = np.random.default_rng(seed)
    ranks, threads, n, dtype, layouts = drawn(rng, n, largest)
    lower, whole = definite(rng, n, dtype)
    b, keys = values(rng, (n, int(rng.integers(0, 6))), dtype), choices(rng, largest, ranks)

    def body(context):
        a = tw.linalg.matrix(lower, context=context, **layouts[0])
        factor = tw.linalg.cholesky(a, **keys)
        x = factor.solve(tw.linalg.matrix(b, context=context, **layouts[1]))
        return factor.gather(), x.gather(), factor.info, a.gather()

    results = results_of(ranks, threads, body)
    found, x, info, kept = results[0]
    assert info == 0 and np.array_equal(kept, lower, equal_nan=True) and found.dtype == dtype
    if n == 0:
        return
    assert np.all(found[np.triu_indices(n, 1)] == 0)
    residual = ratio(found @ found.conj().T - whole, n * norm(whole), dtype)
    assert residual < MOST, (seed, ranks, n, dtype, residual)
    assert ratio(whole @ x - b, n * norm(whole) * norm(x), dtype) < MOST, (seed, ranks, n, dtype)


test_sizes, test_random, test_larger, test_every_size, test_large = of_many_sizes(random_factor, 500, (260, 260), 700)


def test_the_next_panel_leaves_before_the_rest_is_updated():
    """Look-ahead: on its owner, factor k + 1 comes before the updates of later block columns by panel k."""
    layout = linalg.BlockCyclic(linalg.Axis(12, 1, 0), linalg.Axis(12, 2, 1))
    parts = [linalg.cholesky(layout, 8, linalg.FactorChoices(), rank, 2) for rank in range(2)]
    for part in parts:
        seen = [part.tiles[step.item] for step in part.lanes[0] if step.op == "compute"]
        factored = [tile.coord[0] for tile in seen if len(tile.coord) == 2]
        for k in factored[1:]:
            at = next(i for i, tile in enumerate(seen) if len(tile.coord) == 2 and tile.coord[0] == k)
            later = [i for i, tile in enumerate(seen) if len(tile.coord) == 3 and tile.coord[0] == k - 1]
            assert all(i > at for i in later if seen[i].coord[1] > k)


@pytest.mark.parametrize("grid", [(1, 1), (1, 3), (3, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("pivot", [1, 8, 20])
def test_not_positive_definite(grid, pivot):
    """LAPACK's info, the same on all ranks; nobody hangs, and the context goes on."""
    whole, ranks = np.eye(20) * 2.0, grid[0] * grid[1]
    whole[pivot - 1, pivot - 1] = -1.0
    wanted = scipy.linalg.lapack.dpotrf(whole, lower=1)[1]

    def body(context):
        a = tw.linalg.matrix(whole, context=context)
        with pytest.raises(np.linalg.LinAlgError, match=f"minor of order {pivot} of a") as refused:
            tw.linalg.cholesky(a, block=3, grid=grid)
        factor = tw.linalg.cholesky(a, block=3, grid=grid, check=False)
        with pytest.raises(tw.ConfigError, match="there is no factor"):
            factor.solve(a)
        return refused.value.info, factor.info, isinstance(refused.value, tw.ConfigError)

    results = results_of(ranks, 1, body)
    assert results == [(wanted, wanted, True)] * ranks and wanted == pivot
