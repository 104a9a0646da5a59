"""Factors in the memory of a matrix that lies as they do; others, and arrays, stay as they are."""

import numpy as np
import pytest
import tilewave as tw
from local_ranks import results_of
from matrices import DTYPES, values

KINDS = [tw.linalg.cholesky, tw.linalg.lu, tw.linalg.qr]


@pytest.mark.parametrize("factor", KINDS)
@pytest.mark.parametrize(("ranks", "dtype"), zip([1, 2, 3, 4], DTYPES, strict=True))
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
