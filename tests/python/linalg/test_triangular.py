"""Triangular systems and inverses against SciPy; singular ones."""

import numpy as np
import pytest
import tilewave as tw
from factors import MOST, drawn, norm, of_many_sizes, ratio, solution, triangle
from local_ranks import on_ranks, results_of
from matrices import DTYPES, layout, values


def random_system(seed, n=None, largest=30):
    rng = np.random.default_rng(seed)
    ranks, threads, n, dtype, layouts = drawn(rng, n, largest)
    sides = int(rng.choice([0, 1, 2, 7, largest]))
    lower, unit = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    trans = [0, 1, 2, "N", "T", "C"][rng.integers(6)]
    a, b = triangle(rng, n, dtype, lower), values(rng, (n, sides), dtype)
    if unit:
        a[np.arange(n), np.arange(n)] = rng.choice([0, np.nan])  # nobody may read it
    keys = {} if rng.random() < 0.3 else {"block": int(rng.integers(1, max(2, 2 * largest)))}
    if rng.random() < 0.5:
        keys |= {"lookahead": int(rng.integers(0, 4)), "tree": str(rng.choice(["ring", "least_rounds"]))}

    def body(context):
        matrix, right = (tw.linalg.matrix(x, context=context, **how) for x, how in zip((a, b), layouts, strict=True))
        x = tw.linalg.solve_triangular(matrix, right, trans, lower, unit, **keys)
        return x.gather(), x.layout == right.layout, right.gather(), matrix.gather(), x.report.moved

    results, errors = on_ranks(ranks, threads, body)
    what = (seed, ranks, n, dtype, lower, unit, trans, keys)
    assert not any(errors), (what, errors)
    x, same, right, kept, _ = results[0]
    assert x.dtype == dtype and same and np.array_equal(right, b) and np.array_equal(kept, a, equal_nan=True), what
    full = np.nan_to_num(a)
    if unit:
        full[np.arange(n), np.arange(n)] = 1
    op = {"N": full, "T": full.T, "C": full.conj().T}["NTC"[trans] if isinstance(trans, int) else trans]
    scale = max(n, 1) * norm(op) * norm(x)
    assert ratio(op @ x - b, scale, dtype) < MOST, (what, ratio(op @ x - b, scale, dtype))
    wanted = solution(a, b, trans, lower, unit)
    assert np.allclose(x, wanted, rtol=1e-3 if x.real.dtype == "f4" else 1e-9, atol=1e-4 * max(1, norm(wanted))), what


test_sizes, test_random, test_larger, test_every_size, test_large = of_many_sizes(random_system, 1200, (250, 250), 500)


def test_matrices_by_block_columns_stay_where_they_are():
    def body(context):
        make = lambda **how: tw.linalg.matrix((20, 20), init=lambda i, j: 1.0 * (i >= j), context=context, **how)
        b = tw.linalg.matrix((20, 4), init=1.0, layout="columns", context=context)
        stays = tw.linalg.solve_triangular(make(layout="columns", block=3), b, lower=True).report
        moves = tw.linalg.solve_triangular(make(), b, lower=True).report
        return stays.moved, stays.plan.block, moves.moved

    results = results_of(2, 1, body)
    assert results == [((), 3, ("a",))] * 2


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_zero_on_the_diagonal(ranks):
    def body(context):
        a = tw.linalg.matrix((12, 12), init=lambda i, j: 1.0 * (i <= j) * ((i != 8) | (j != 8)), context=context)
        b = tw.linalg.matrix((12, 2), init=1.0, context=context)
        with pytest.raises(np.linalg.LinAlgError, match="element 8 of a's diagonal, counted from 0, is 0") as refused:
            tw.linalg.solve_triangular(a, b)
        return refused.value.info, tw.linalg.solve_triangular(a, b, unit_diagonal=True).shape

    results = results_of(ranks, 1, body)
    assert results == [(9, (12, 2))] * ranks


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_spreads(bad):
    rng = np.random.default_rng(3)
    a, b = np.nan_to_num(triangle(rng, 20, "float64", True)), rng.standard_normal((20, 4))
    b[7, 2] = bad
    wanted = solution(a, np.where(np.isfinite(b), b, 0), 0, True, False)

    def body(context):
        return tw.linalg.solve_triangular(
            tw.linalg.matrix(a, context=context), tw.linalg.matrix(b, context=context), lower=True, block=4
        ).gather()

    results = results_of(3, 1, body)
    x = results[0]
    assert np.allclose(np.delete(x, 2, axis=1), np.delete(wanted, 2, axis=1)) and np.allclose(x[:4, 2], wanted[:4, 2])
    assert not np.isfinite(x[8:, 2]).any()


def test_other_dtypes_are_refused():
    def body(context):
        a = tw.linalg.matrix((4, 4), init=1.0, context=context)
        tw.linalg.solve_triangular(a, tw.linalg.matrix((4, 1), "f4", 1.0, context=context))

    _, errors = on_ranks(2, 1, body)
    assert all("allowed: 4 rows, the same dtype" in str(error) for error in errors), errors


@pytest.mark.parametrize("seed", range(10))
def test_inverse(seed):
    rng = np.random.default_rng(seed)
    ranks, n, dtype = int(rng.choice([1, 2, 3, 4, 6])), int(rng.integers(0, 40)), str(rng.choice(DTYPES))
    a = (values(rng, (n, n), dtype) + 3 * np.eye(n)).astype(dtype)
    how, keys = layout(rng, ranks, 8), {} if rng.random() < 0.5 else {"block": int(rng.integers(1, 50))}

    def body(context):
        made = tw.linalg.inv(tw.linalg.matrix(a, context=context, **how), **keys)
        return made.gather(), made.layout.name, len(made.report)

    results = results_of(ranks, 1, body)
    x, name, reports = results[0]
    assert x.dtype == dtype and name == how["layout"] and reports == 3
    # LAPACK's test of getri: the error relative to both norms.
    assert ratio(a @ x - np.eye(n), max(n, 1) * norm(a) * norm(x), dtype) < MOST, (seed, ranks, n, dtype)


@pytest.mark.parametrize("ranks", [1, 3])
def test_inverse_of_a_singular_matrix(ranks):
    def body(context):
        a = tw.linalg.matrix((10, 10), init=lambda i, j: (i == j) * 1.0 * (i != 6), context=context)
        with pytest.raises(tw.linalg.SingularMatrix, match="inv: pivot 7 is 0") as refused:
            tw.linalg.inv(a)
        with pytest.raises(tw.ConfigError, match="inv: a of shape"):
            tw.linalg.inv(tw.linalg.matrix((3, 4), context=context))
        return refused.value.info

    results = results_of(ranks, 1, body)
    assert results == [7] * ranks
