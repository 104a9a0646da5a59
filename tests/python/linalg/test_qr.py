"""QR factors of any shape by LAPACK's test ratios; Q applied, formed and least squares; matrices without full rank."""

import pickle

import numpy as np
import pytest
import scipy.linalg
import tilewave as tw
from factors import (
    KINDS, MOST, choices, drawn, least_squares_ratio, made, norm, of_many_sizes, qr_ratios, solve_ratio,
)
from local_ranks import on_ranks, results_of
from matrices import values


def random_shape(rng, n, largest):
    other = int(rng.integers(0, largest + 1))
    shape = n, int(rng.choice([n, other, max(0, n - 1), n + 3]))
    return shape if rng.random() < 0.5 else shape[::-1]


def random_factor(seed, n=None, largest=30):
    rng = np.random.default_rng(seed)
    ranks, threads, n, dtype, layouts = drawn(rng, n, largest)
    kind, shape = str(rng.choice(KINDS)), random_shape(rng, n, largest)
    whole, b = made(rng, kind, shape, dtype), values(rng, (shape[0], int(rng.integers(0, 6))), dtype)
    keys, mode = choices(rng, largest, ranks), str(rng.choice(["economic", "full"]))

    def body(context):
        a = tw.linalg.matrix(whole, context=context, **layouts[0])
        factor = tw.linalg.qr(a, mode, **keys)
        q, r = factor
        sides = tw.linalg.matrix(b, context=context, **layouts[1])
        turned = factor.apply(sides, trans="C")
        back = factor.apply(turned)
        return [x.gather() for x in (q, r, turned, back, a)]

    results, errors = on_ranks(ranks, threads, body)
    what = (seed, ranks, shape, dtype, kind, keys, mode)
    assert not any(errors), (what, errors)
    q, r, turned, back, kept = results[0]
    least = min(shape)
    assert np.array_equal(kept, whole) and q.dtype == r.dtype == dtype, what
    assert q.shape == (shape[0], shape[0] if mode == "full" else least) and r.shape == (q.shape[1], shape[1]), what
    assert not np.tril(r, -1).any(), what
    assert max(qr_ratios(whole, q, r)) < MOST, (what, qr_ratios(whole, q, r))
    eps = np.finfo(dtype).eps
    assert norm(back - b) <= MOST * eps * max(1, shape[0]) * norm(b), what
    assert norm(turned[: q.shape[1]] - q.conj().T @ b) <= MOST * eps * max(1, shape[0]) * norm(b), what
    if kind == "random" and least:
        # LAPACK's signs: R is that of geqrf.
        wanted = scipy.linalg.qr(whole, mode="economic")[1]
        assert norm(r[:least] - wanted) <= 1e3 * eps * max(shape) * norm(whole) * np.linalg.cond(whole), what


test_sizes, test_random, test_larger, test_every_size, test_large = of_many_sizes(random_factor, 900, (190, 300), 500)


def random_least_squares(seed, n=None, largest=30):
    rng = np.random.default_rng(seed)
    ranks, threads, n, dtype, layouts = drawn(rng, n, largest, least=1)
    shape = random_shape(rng, n, largest)
    kind = str(rng.choice(["random", "graded columns"] if shape[0] >= shape[1] else ["random", "graded rows"]))
    whole, b = made(rng, kind, shape, dtype), values(rng, (shape[0], int(rng.integers(0, 6))), dtype)
    keys = choices(rng, largest, ranks)

    def body(context):
        a = tw.linalg.matrix(whole, context=context, **layouts[0])
        sides = tw.linalg.matrix(b, context=context, **layouts[1])
        # By the default, graded rows of single precision may lack some of their rank.
        x = tw.linalg.lstsq(a, sides, cond=np.finfo(dtype).eps / 100, **keys)
        again = tw.linalg.qr(a, **keys).solve(sides).gather() if shape[0] >= shape[1] else None
        return x.gather(), x.residues, x.rank, x.layout.name, again, a.gather()

    results, errors = on_ranks(ranks, threads, body)
    what = (seed, ranks, shape, dtype, kind, keys)
    assert not any(errors), (what, errors)
    x, residues, rank, name, again, kept = results[0]
    assert np.array_equal(kept, whole) and x.dtype == dtype and x.shape == (shape[1], b.shape[1]), what
    assert rank == min(shape) and name == layouts[1]["layout"], what
    assert all(np.array_equal(other[1], residues) for other in results), what
    if x.size == 0:
        return
    if shape[0] >= shape[1]:
        assert least_squares_ratio(whole, x, b) < MOST, (what, least_squares_ratio(whole, x, b))
        assert np.allclose(again, x, rtol=1e-3 if x.real.dtype == "f4" else 1e-9, atol=1e-3 * np.abs(x).max())
    else:
        assert solve_ratio(whole, x, b) < MOST, what
        assert norm(x) <= (1 + 1e-3) * norm(scipy.linalg.lstsq(whole.astype("c16"), b)[0]) * shape[1], what
    if shape[0] > shape[1]:
        wanted = (np.abs(b.astype("c16") - whole.astype("c16") @ x) ** 2).sum(axis=0)
        assert np.allclose(residues, wanted, rtol=1e-2 if x.real.dtype == "f4" else 1e-8), what
    else:
        assert len(residues) == 0


@pytest.mark.parametrize("seed", range(25))
def test_least_squares(seed):
    random_least_squares(seed)


@pytest.mark.parametrize("shape", [(120, 90), (90, 120)])
def test_larger_least_squares(shape):
    random_least_squares(sum(shape), shape[0], 200)


def test_the_least_solution_of_a_wide_system():
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((20, 50)), rng.standard_normal((20, 3))
    wanted = scipy.linalg.lstsq(a, b)[0]

    def body(context):
        make = lambda x: tw.linalg.matrix(x, context=context)
        return tw.linalg.lstsq(make(a), make(b)).gather()

    results = results_of(3, 1, body)
    assert np.allclose(results[0], wanted, atol=1e-12)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_a_dependent_column_is_named(ranks, dtype):
    """On every rank alike, with LAPACK's info; the context goes on, and graded columns are no reason."""
    rng = np.random.default_rng(7)
    whole = made(rng, "graded columns", (30, 20), dtype)
    good = whole.copy()
    whole[:, 13] = whole[:, :13] @ values(rng, (13, 1), dtype)[:, 0]
    exact = whole.copy()
    exact[:, 5] = 0

    def body(context):
        factor = lambda x: tw.linalg.qr(tw.linalg.matrix(x, context=context, layout="cyclic", block=4), block=3)
        b = np.ones((30, 2), dtype)
        with pytest.raises(np.linalg.LinAlgError, match="column 13 of a, counted from 0, depends") as refused:
            factor(whole).solve(b)
        with pytest.raises(tw.linalg.RankDeficient, match="column 5 of a") as zero:
            factor(exact).solve(b, cond=0)
        return refused.value.info, zero.value.info, factor(good).solve(b).shape

    assert results_of(ranks, 1, body) == [(14, 6, (20, 2))] * ranks


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_spreads_and_leaves_earlier_columns_alone(bad):
    whole = np.random.default_rng(5).standard_normal((24, 18))
    wanted = scipy.linalg.qr(whole, mode="economic")[1]
    whole[20, 11] = bad

    def body(context):
        q, r = tw.linalg.qr(tw.linalg.matrix(whole, context=context), block=4)
        return q.gather(), r.gather()

    results = results_of(3, 1, body)
    q, r = results[0]
    # The panel of the bad column is the first that it changes.
    assert np.allclose(r[:, :8], wanted[:, :8]) and np.isfinite(q[:, :0]).all()
    assert np.isnan(np.diag(r)[11:]).all() and np.isnan(q).any()


def test_modes_and_reports():
    whole = np.random.default_rng(6).standard_normal((40, 12))

    def body(context):
        a = tw.linalg.matrix(whole, context=context)
        factor = tw.linalg.qr(a, mode="r", block=3)
        (r,) = factor
        full = factor.q("full")
        report = factor.report
        kept = pickle.loads(pickle.dumps(report))
        assert kept.time_s == report.time_s and kept.prediction is None
        foretold = report.prediction
        assert (foretold is None) == (context.rank > 0) and report.moved == ("a",)
        lanes = (foretold.timeline._lanes(), report.timeline._lanes()) if foretold else ((), ())
        assert lanes[0] == lanes[1]
        applied = factor.apply(tw.linalg.matrix(whole, context=context), "T").gather()
        return r.gather(), full.gather(), applied, factor.report.memory_bytes

    results = results_of(2, 1, body)
    r, q, applied, memory = results[0]
    assert r.shape == (12, 12) and q.shape == (40, 40) and np.allclose(q[:, :12] @ r, whole)
    assert np.allclose(applied[:12], r) and np.allclose(applied[12:], 0)
    # Two buffers of all tiles of a panel: 14 of 3 x 3 from the matrix, and T; three with a deeper look-ahead.
    assert memory in (8 * 9 * 15 * buffers for buffers in (2, 3, 4))


def test_transposed_complex_q_is_refused():
    def body(context):
        factor = tw.linalg.qr(tw.linalg.matrix((3, 3), "c16", 1.0, context=context))
        with pytest.raises(tw.ConfigError, match="trans: given 'T'; allowed: 'N', 'C', 0, 2"):
            factor.apply(tw.linalg.matrix((3, 1), "c16", 1.0, context=context), "T")
        with pytest.raises(tw.ConfigError, match="at least as many rows as columns"):
            tw.linalg.qr(tw.linalg.matrix((2, 3), init=1.0, context=context)).solve(
                tw.linalg.matrix((2, 1), init=1.0, context=context)
            )

    results_of(2, 1, body)


def test_ranks_that_disagree():
    def body(context):
        tw.linalg.qr(tw.linalg.matrix((6, 6), init=1.0, context=context), mode=["economic", "full"][context.rank])

    _, errors = on_ranks(2, 1, body)
    assert all(isinstance(error, tw.ConfigError) for error in errors) and str(errors[0]) == str(errors[1]), errors
