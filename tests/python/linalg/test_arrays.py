"""NumPy arrays that every rank has, in place of matrices: results are arrays on every rank, as SciPy's."""

import numpy as np
import pytest
import scipy.linalg
import tilewave as tw
from local_ranks import on_ranks, results_of
from matrices import DTYPES, values


def same_on_all(results, errors):
    assert not any(errors), errors
    for other in results[1:]:
        for x, y in zip(results[0], other, strict=True):
            assert np.array_equal(x, y)
    return results[0]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("dtype", [*DTYPES, "i4"])
def test_results_are_scipys(ranks, dtype):
    rng = np.random.default_rng(5)
    n, real = 11, np.dtype("f8" if dtype == "i4" else dtype)
    x = values(rng, (n, n), real) + 3 * np.eye(n)
    a = np.round(5 * x).astype(dtype) if dtype == "i4" else x.astype(dtype)
    tall = a[:, :4].copy()
    for b in (values(rng, (n, 3), real), values(rng, (n, 1), real)[:, 0], np.arange(n)):
        definite = (a @ a.conj().T + n * np.eye(n)).astype(a.dtype)

        def body(context, b=b, definite=definite):
            tall_x, residues, rank, singular = tw.linalg.lstsq(tall, b, context=context)
            assert rank == 4 and singular is None
            factor = tw.linalg.qr(tall, context=context)
            return (
                tw.linalg.lu(a, context=context).solve(b),
                tw.linalg.cholesky(definite, context=context).solve(b),
                tw.linalg.solve_triangular(a, b, lower=True, context=context),
                tall_x,
                residues,
                factor.solve(b),
                factor.apply(factor.apply(b, "C")),
                tw.linalg.inv(a, context=context),
            )

        found = same_on_all(*on_ranks(ranks, 1, body))
        best = scipy.linalg.lstsq(tall, b)
        wanted = (
            scipy.linalg.solve(a, b),
            scipy.linalg.solve(definite, b),
            scipy.linalg.solve_triangular(a, b, lower=True),
            best[0],
            best[1],
            best[0],
            b,
            scipy.linalg.inv(a),
        )
        for mine, theirs in zip(found, wanted, strict=True):
            assert isinstance(mine, np.ndarray | np.generic) and np.shape(mine) == np.shape(theirs)
            assert np.allclose(mine, theirs, rtol=1e5 * np.finfo(real).eps, atol=1e4 * np.finfo(real).eps)


def test_a_matrix_takes_an_array_beside_it():
    a = np.random.default_rng(1).normal(size=(9, 9))

    def body(context):
        of_array, given = tw.linalg.lu(a, context=context), tw.linalg.matrix(a, context=context)
        x = of_array.solve(given).gather()
        return x if context.rank == 0 else np.eye(9), tw.linalg.lstsq(given, np.eye(9))[0] @ a

    results = results_of(2, 1, body)
    assert all(np.allclose(one, np.eye(9)) for result in results for one in result)
