"""Cholesky factors and solves against SciPy; matrices that have none."""

import numpy as np
import pytest
import scipy.linalg
import tilewave as tw
from local_ranks import on_ranks, results_of
from matrices import DTYPES, layout, values
from tilewave import _core

linalg = _core.linalg


def definite(rng, n, dtype):
    """A positive definite matrix of a moderate condition; its upper triangle holds NaN, which nobody may read."""
    x = values(rng, (n, n), dtype)
    whole = (x @ x.conj().T / max(n, 1) + np.eye(n)).astype(dtype)
    return np.where(np.arange(n)[:, None] < np.arange(n)[None, :], np.nan, whole).astype(dtype), whole


def random_factor(seed, n=None, largest=30):
    rng = np.random.default_rng(seed)
    ranks, threads = int(rng.choice([1, 2, 3, 4, 6])), int(rng.choice([1, 1, 2]))
    n = int(rng.integers(0, largest + 1)) if n is None else n
    dtype, sides = str(rng.choice(DTYPES)), int(rng.integers(0, 6))
    lower, whole = definite(rng, n, dtype)
    b = values(rng, (n, sides), dtype)
    layouts = [layout(rng, ranks, max(5, largest // 4)) for _ in range(2)]
    keys = {} if rng.random() < 0.3 else {"block": int(rng.integers(1, max(2, largest // 4)))}
    if rng.random() < 0.5:
        ways = [{"tree": "ring"}, {"tree": "least_rounds"}, {"algorithm": "wavefront"}, {"algorithm": "wavefront"}]
        keys |= {"lookahead": int(rng.integers(0, 4)), **ways[rng.integers(4)]}

    def body(context):
        a = tw.linalg.matrix(lower, context=context, **layouts[0])
        factor = tw.linalg.cholesky(a, **keys)
        x = factor.solve(tw.linalg.matrix(b, context=context, **layouts[1]))
        return factor.gather(), x.gather(), factor.info, a.gather()

    results = results_of(ranks, threads, body)
    found, x, info, kept = results[0]
    # LAPACK's test ratios (LAWN 41): below 30.
    eps = np.finfo(dtype).eps
    assert info == 0 and np.array_equal(kept, lower, equal_nan=True) and found.dtype == dtype
    if n == 0:
        return
    assert np.all(found[np.triu_indices(n, 1)] == 0)
    residual = np.linalg.norm(found @ found.conj().T - whole, 1) / (n * np.linalg.norm(whole, 1) * eps)
    assert residual < 30, (seed, ranks, n, dtype, residual)
    if sides:
        norms = np.linalg.norm(whole, 1) * np.linalg.norm(x, 1)
        ratio = np.linalg.norm(whole @ x - b, 1) / (norms * eps * n)
        assert ratio < 30, (seed, ranks, n, dtype, ratio)


@pytest.mark.parametrize("n", range(13))
def test_sizes(n):
    random_factor(500 + n, n)


@pytest.mark.parametrize("seed", range(8))
def test_random(seed):
    random_factor(seed)


def test_larger():
    random_factor(77, 260, 260)


@pytest.mark.long
@pytest.mark.parametrize("n", range(41))
def test_every_size(n):
    for seed in range(10):
        random_factor(seed, n, 40)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_large(seed):
    random_factor(300 + seed, None, 700)


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


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("pivot", [1, 8, 20])
def test_not_positive_definite(ranks, pivot):
    """LAPACK's info, the same on all ranks; nobody hangs, and the context goes on."""
    whole = np.eye(20) * 2.0
    whole[pivot - 1, pivot - 1] = -1.0
    wanted = scipy.linalg.lapack.dpotrf(whole, lower=1)[1]

    def body(context):
        a = tw.linalg.matrix(whole, context=context)
        with pytest.raises(np.linalg.LinAlgError, match=f"minor of order {pivot} of a") as refused:
            tw.linalg.cholesky(a, block=3)
        factor = tw.linalg.cholesky(a, block=3, check=False)
        with pytest.raises(tw.ConfigError, match="there is no factor"):
            factor.solve(a)
        return refused.value.info, factor.info, isinstance(refused.value, tw.ConfigError)

    results = results_of(ranks, 1, body)
    assert results == [(wanted, wanted, True)] * ranks and wanted == pivot


@pytest.mark.parametrize(
    "keywords, text",
    [
        ({"a": None}, "a: given NoneType; allowed: a tilewave.linalg.Matrix, or a NumPy array that"),
        ({"a": (3, 4)}, "a of shape (3, 4) was given; allowed: square matrices"),
        ({"block": 0}, "block: given 0; allowed: an integer >= 1"),
        ({"lookahead": -1}, "lookahead: given -1; allowed: an integer >= 0"),
        ({"tree": "star"}, "tree: given 'star'; allowed: ring, least_rounds"),
        ({"check": 3}, "check: given 3; allowed: True, False"),
    ],
)
def test_bad_arguments_on_one_rank_are_errors_on_all(keywords, text):
    def body(context):
        make = lambda shape: tw.linalg.matrix(shape, init=lambda i, j: 1.0 * (i == j), context=context)
        given = {"a": make((4, 4))}
        for name, what in keywords.items():
            wrong = make(what) if isinstance(what, tuple) else what
            if context.rank == 1:
                given[name] = wrong
        tw.linalg.cholesky(context=context, **given)

    _, errors = on_ranks(2, 1, body)
    assert all(isinstance(error, tw.ConfigError) and text in str(error) for error in errors), errors
    assert str(errors[0]) == str(errors[1])
