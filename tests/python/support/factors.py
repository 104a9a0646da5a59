"""Random matrices of many kinds, and LAPACK's test ratios (LAWN 41), which are to be below 30."""

import numpy as np
import pytest
import scipy.linalg
from matrices import DTYPES, layout, values

KINDS = ("random", "graded rows", "graded columns", "near-singular", "Hilbert", "rank one and a bit")
MOST = 30


def made(rng, kind, shape, dtype):
    """A matrix of a kind; of no element where the shape has none."""
    m, n = shape
    x = values(rng, shape, dtype)
    if min(shape) == 0 or kind == "random":
        return x
    if kind == "graded rows":
        return (x * 10.0 ** -np.linspace(0, 6, m)[:, None]).astype(dtype)
    if kind == "graded columns":
        return (x * 10.0 ** -np.linspace(0, 6, n)[None, :]).astype(dtype)
    if kind == "near-singular":
        x[:, -1] = x[:, 0] * (1 + 4 * np.finfo(dtype).eps)
        return x
    if kind == "Hilbert":
        return (1.0 / (1 + np.arange(m)[:, None] + np.arange(n)[None, :])).astype(dtype)
    return (np.outer(x[:, 0], x[0]) + 1e-3 * x).astype(dtype)


def drawn(rng, n, largest, least=0):
    """Numbers of ranks and of threads, a size where none is given, a dtype, and keywords of two layouts."""
    ranks, threads = int(rng.choice([1, 2, 3, 4, 6, 8, 12])), int(rng.choice([1, 1, 2]))
    n = int(rng.integers(least, largest + 1)) if n is None else n
    return ranks, threads, n, str(rng.choice(DTYPES)), [layout(rng, ranks, max(5, largest // 4)) for _ in range(2)]


def grids(ranks):
    """All grids of so many ranks."""
    return [(rows, ranks // rows) for rows in range(1, ranks + 1) if ranks % rows == 0]


def choices(rng, largest, ranks):
    """Keywords of a factorization."""
    keys = {} if rng.random() < 0.3 else {"block": int(rng.integers(1, max(2, largest // 3)))}
    if rng.random() < 0.5:
        ways = [{"tree": "ring"}, {"tree": "least_rounds"}, {"algorithm": "wavefront"}]
        keys |= {"lookahead": int(rng.integers(0, 4)), **ways[rng.integers(3)]}
    if "algorithm" not in keys and rng.random() < 0.7:
        keys["grid"] = grids(ranks)[rng.integers(len(grids(ranks)))]
    return keys


def of_many_sizes(one, first, larger, large):
    """Tests of `one(seed, n=None, largest=30)`: of each small size, of random ones, of two larger ones with the
    arguments `larger`; in long runs more of each, and up to `large`.
    """

    @pytest.mark.parametrize("n", range(41))
    def test_sizes(n):
        one(first + n, n, 40)

    @pytest.mark.parametrize("seed", range(12))
    def test_random(seed):
        one(seed)

    @pytest.mark.parametrize("seed", [31, 32])
    def test_larger(seed):
        one(seed, *larger)

    @pytest.mark.long
    @pytest.mark.parametrize("n", range(41))
    def test_every_size(n):
        for seed in range(10):
            one(seed, n, 40)

    @pytest.mark.long
    @pytest.mark.parametrize("seed", range(20))
    def test_large(seed):
        one(300 + seed, None, large)

    return test_sizes, test_random, test_larger, test_every_size, test_large


def norm(x):
    return float(np.linalg.norm(x, 1)) if x.size else 0.0


def ratio(error, scale, dtype):
    """An error in units of what rounding may do; 0 of nothing."""
    bound = scale * float(np.finfo(dtype).eps)
    return norm(error) / bound if bound else norm(error)


def qr_ratios(a, q, r):
    """Of the residual, and of orthogonality."""
    m, n = a.shape
    identity = np.eye(q.shape[1], dtype=q.dtype)
    return (ratio(a - q @ r, max(m, n, 1) * norm(a), a.dtype), ratio(identity - q.conj().T @ q, max(m, 1), a.dtype))


def solve_ratio(a, x, b):
    """Of the residual of a x = b."""
    return ratio(a @ x - b, max(a.shape[0], 1) * (norm(a) * norm(x) + norm(b)), a.dtype)


def least_squares_ratio(a, x, b):
    """As LAPACK's qrt17: how far the residual is from orthogonal to the columns of a."""
    rest = b - a @ x
    return ratio(a.conj().T @ rest, max(*a.shape, 1) * norm(a) * max(norm(rest), norm(a) * norm(x)), a.dtype)


def triangle(rng, n, dtype, lower):
    """A well-conditioned triangle; the rest holds NaN, which nobody may read."""
    x = values(rng, (n, n), dtype) / max(n, 1) + 2 * np.eye(n)
    kept = np.tril(np.ones((n, n), bool)) if lower else np.triu(np.ones((n, n), bool))
    return np.where(kept, x, np.nan).astype(dtype)


def solution(a, b, trans, lower, unit):
    """SciPy's."""
    if min(b.shape) == 0:
        return b
    whole = np.nan_to_num(a)
    return scipy.linalg.solve_triangular(whole, b, trans=trans, lower=lower, unit_diagonal=unit)
