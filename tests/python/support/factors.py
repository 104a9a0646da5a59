"""Random matrices of many kinds, and LAPACK's test ratios (LAWN 41), which are to be below 30."""

import numpy as np
import scipy.linalg
from matrices import values

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
    return (
        ratio(a - q @ r, max(m, n, 1) * norm(a), a.dtype),
        ratio(identity - q.conj().T @ q, max(m, 1), a.dtype),
    )


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
