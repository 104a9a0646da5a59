"""LU factors with partial pivoting, solves and determinants against SciPy; singular matrices."""

import numpy as np
import pytest
import scipy.linalg
import tilewave as tw
from factors import MOST, choices, drawn, norm, of_many_sizes, ratio, solve_ratio
from local_ranks import results_of
from matrices import values


def random_factor(seed, n=None, largest=30):
    rng = np.random.default_rng(seed)
    ranks, threads, n, dtype, layouts = drawn(rng, n, largest)
    whole, b = values(rng, (n, n), dtype), values(rng, (n, int(rng.integers(0, 6))), dtype)
    keys = choices(rng, largest, ranks)

    def body(context):
        a = tw.linalg.matrix(whole, context=context, **layouts[0])
        factor = tw.linalg.lu(a, **keys)
        x = factor.solve(tw.linalg.matrix(b, context=context, **layouts[1]))
        return factor.gather(), x.gather(), factor.pivots, factor.permutation, factor.det(), a.gather()

    results = results_of(ranks, threads, body)
    found, x, pivots, permutation, det, kept = results[0]
    assert np.array_equal(kept, whole) and found.dtype == dtype and all(np.array_equal(r[2], pivots) for r in results)
    if n == 0:
        return
    eps = np.finfo(dtype).eps
    lower, upper = np.tril(found, -1) + np.eye(n, dtype=dtype), np.triu(found)
    assert np.abs(np.tril(found, -1)).max() <= (1 + 8 * eps) * (2**0.5 if np.dtype(dtype).kind == "c" else 1)
    residual = ratio(lower @ upper - whole[permutation], n * norm(whole), dtype)
    assert residual < MOST, (seed, ranks, n, dtype, residual)
    assert np.array_equal(pivots, scipy.linalg.lu_factor(whole)[1]), (seed, ranks, n, dtype)
    with np.errstate(over="ignore"):
        wanted = np.linalg.det(whole)
    assert np.isclose(det, wanted, rtol=1e3 * n * eps * np.linalg.cond(whole)), (seed, det, wanted)
    assert solve_ratio(whole, x, b) < MOST, (seed, ranks, n, dtype)


test_sizes, test_random, test_larger, test_every_size, test_large = of_many_sizes(random_factor, 700, (230, 230), 500)


@pytest.mark.parametrize("grid", [(1, 1), (1, 3), (3, 1), (2, 2), (2, 3)])
def test_singular(grid):
    """LAPACK's factors and info, the same on all ranks; solving is refused on all; the determinant is 0."""
    whole = np.random.default_rng(3).integers(-2, 3, (20, 20)).astype("f8")
    whole[:, 7] = 0.0
    ranks = grid[0] * grid[1]

    def body(context):
        factor = tw.linalg.lu(tw.linalg.matrix(whole, context=context), block=3, grid=grid)
        with pytest.raises(np.linalg.LinAlgError, match="pivot 8 is 0") as refused:
            factor.solve(tw.linalg.matrix((20, 1), init=1.0, context=context))
        return factor.info, refused.value.info, float(factor.det())

    results = results_of(ranks, 1, body)
    assert results == [(8, 8, 0.0)] * ranks and scipy.linalg.lapack.dgetrf(whole)[2] == 8


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_a_determinant_overflows_only_itself(dtype):
    """Partial products of the diagonal may leave the range; the determinant is infinite where it does."""
    large = 1e30 if dtype in ("f4", "c8") else 1e300
    factor = -1j if np.dtype(dtype).kind == "c" else -1.0
    for diagonal, wanted in (
        ([large, large, 1 / large, 1 / large * factor], factor),
        ([1 / large, 1 / large, 1 / large, large, large, large], 1.0),
        ([1 / large] * 3, 0.0),
        ([large] * 3, np.inf),
        ([large, large, 0.0], 0.0),
    ):
        def body(context, diagonal=diagonal):
            a = tw.linalg.matrix(np.diag(np.array(diagonal, dtype)), context=context)
            return tw.linalg.lu(a, block=2, context=context).det()

        results = results_of(2, 1, body)
        assert all(np.isclose(abs(det) if wanted == np.inf else det, wanted, rtol=1e-5) for det in results), results
