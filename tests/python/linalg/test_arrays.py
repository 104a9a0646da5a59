"""NumPy arrays that every rank has, in place of matrices: results are arrays on every rank, as SciPy's."""

import numpy as np
import pytest
import scipy.linalg
from local_ranks import on_ranks, results_of
from matrices import DTYPES, values

import tilewave as tw


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


def matrices(context, count, n=8):
    values = [np.eye(n) * (k + 2) + 0.1 for k in range(count)]
    return [tw.linalg.matrix((n, n), init=each, context=context) for each in values]


@pytest.mark.parametrize("ranks", [2, 3])
def test_every_call_compares_its_matrices_over_the_ranks(ranks):
    def body(context):
        a, b, c = matrices(context, 3)
        mine = a if context.rank % 2 else b
        lu, ch, qr = ([f(each) for each in (a, b)] for f in (tw.linalg.lu, tw.linalg.cholesky, tw.linalg.qr))
        k = context.rank % 2
        calls = {
            "gather": mine.gather,
            "redistribute": lambda: mine.redistribute("cyclic", 2),
            "left": lambda: tw.linalg.matmul(mine, c),
            "right": lambda: tw.linalg.matmul(c, mine),
            "c": lambda: tw.linalg.matmul(a, b, c=results[k]),
            "lu": lambda: tw.linalg.lu(mine),
            "cholesky": lambda: tw.linalg.cholesky(mine),
            "qr": lambda: tw.linalg.qr(mine),
            "lstsq": lambda: tw.linalg.lstsq(mine, c),
            "sides": lambda: lu[0].solve(mine),
            "factor": lambda: lu[k].solve(c),
            "det": lambda: lu[k].det(),
            "cholesky factor": lambda: ch[k].solve(c),
            "qr factor": lambda: qr[k].solve(c),
            "triangular": lambda: tw.linalg.solve_triangular(mine, c),
        }
        results = matrices(context, 2)
        outcomes = {}
        for name, call in calls.items():
            try:
                call()
                outcomes[name] = "nothing was raised"
            except tw.ConfigError as error:
                assert error.agreed
                outcomes[name] = "different arguments" if "different arguments" in str(error) else str(error)
        product = tw.linalg.matmul(a, b).gather()  # the ranks are where they were
        assert product is None or np.allclose(product, (np.eye(8) * 2 + 0.1) @ (np.eye(8) * 3 + 0.1))
        return outcomes

    results = results_of(ranks, 1, body)
    for outcomes in results:
        assert set(outcomes.values()) == {"different arguments"}, outcomes


def test_ranks_number_alike_after_one_could_not_make_its_matrix():
    def body(context):
        a, b = matrices(context, 2)
        with pytest.raises(tw.ConfigError):
            tw.linalg.matmul(a, b, panel=0 if context.rank else 4)
        made = tw.linalg.matmul(a, b)
        return made._number, made.gather() is None or True

    results = results_of(3, 1, body)
    assert len(set(results)) == 1
