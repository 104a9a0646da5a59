"""Determinants, conditions and solutions of matrices by their factors, as calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewave.context.collective import collective
from tilewave.errors import ConfigError, shown
from tilewave.linalg.checks import require_one_of
from tilewave.linalg.cholesky import cholesky
from tilewave.linalg.lstsq import solve_triangular
from tilewave.linalg.lu import lu
from tilewave.linalg.norm import norm

if TYPE_CHECKING:
    from typing import Any, TypeVar

    from tilewave.annotations import Array, Collective
    from tilewave.context.context import Context
    from tilewave.linalg.matrix import Matrix

    B = TypeVar("B", Matrix, Array)

#: Steps of the estimate of `cond` at most, as LAPACK's lacn2.
MOST_STEPS = 5
#: SciPy's names of what is known of a matrix.
ASSUMED = {
    "gen": "general",
    "general": "general",
    "pos": "positive definite",
    "positive definite": "positive definite",
    "upper triangular": "upper triangular",
    "lower triangular": "lower triangular",
}


@collective("tw.linalg.det", whole=True)
def det(a: Matrix, *, context: Context | None = None) -> Collective[Any]:
    """The determinant, by LU factors, on every rank; collective.

    Parameters
    ----------
    a : Matrix or numpy.ndarray
        Square.
    context : Context, optional
        Default: the one of `a`.

    Returns
    -------
    NumPy scalar
    """
    yield "factors"
    return lu(a, context=context).det()


@collective("tw.linalg.slogdet", whole=True)
def slogdet(a: Matrix, *, context: Context | None = None) -> Collective[tuple[Any, Any]]:
    """Sign and logarithm of the determinant, by LU factors, on every rank; collective.

    Parameters
    ----------
    a : Matrix or numpy.ndarray
        Square.
    context : Context, optional
        Default: the one of `a`.

    Returns
    -------
    (NumPy scalar, NumPy scalar)
        ``(sign, logdet)``, as NumPy's: the sign of a complex one has magnitude 1; ``(0, -inf)`` of a singular matrix.
        Of a positive definite matrix ``2 * np.log(tw.linalg.cholesky(a).diagonal()).sum()`` is faster.
    """
    yield "factors"
    factor = lu(a, context=context)
    values, real = factor.diagonal(), np.finfo(factor.dtype).dtype
    if factor.info:
        return factor.dtype.type(0), real.type(-np.inf)
    swaps = int(np.count_nonzero(factor.pivots != np.arange(len(values))))
    sizes = np.abs(values)
    return np.prod(values / sizes) * factor.dtype.type((-1) ** swaps), np.log(sizes).sum()


@collective("tw.linalg.solve", whole=True)
def solve(
    a: Matrix, b: B, lower: bool = False, *, assume_a: str = "general", context: Context | None = None
) -> Collective[B]:
    """x of a x = b; collective.

    Parameters
    ----------
    a : Matrix or numpy.ndarray
        Square, in any layout; an array is the same on every rank. It stays as it is.
    b : Matrix or numpy.ndarray
        Right-hand sides as columns, in any layout; an array, also of one dimension, is the same on every rank.
    lower : bool
        Of a positive definite matrix: it is given by its lower triangle, and the upper one is not read; by default the
        other way round, as in SciPy.
    assume_a : str
        SciPy's: "general", "positive definite", "upper triangular" or "lower triangular".
    context : Context, optional
        Default: the one of `a`.

    Returns
    -------
    Matrix or numpy.ndarray
        As b: an array on every rank, or a matrix in the layout of b.

    Raises
    ------
    ConfigError
        On every rank: when b does not fit, arguments that differ between ranks.
    SingularMatrix, NotPositiveDefinite
        On every rank.

    Notes
    -----
    Collective. One who solves more than once factors once: ``F = tw.linalg.lu(a)``, then ``F.solve(b)``.
    """
    require_one_of("solve", "assume_a", assume_a, ASSUMED)
    if not isinstance(lower, bool | np.bool_):
        raise ConfigError(f"solve: lower: given {shown(lower)}; allowed: True, False")
    kind = ASSUMED[assume_a]
    yield f"{kind}, lower={lower}"
    if kind == "general":
        return lu(a, context=context).solve(b)
    if kind != "positive definite":
        return solve_triangular(a, b, lower=kind.startswith("lower"), context=context)
    if not lower:
        a = a.conj().T if isinstance(a, np.ndarray) else a.H
    return cholesky(a, context=context).solve(b)


@collective("tw.linalg.cond", whole=True)
def cond(a: Matrix, p: float = 1, *, context: Context | None = None) -> Collective[Any]:
    """An estimate of the condition number of a square matrix, on every rank; collective.

    Parameters
    ----------
    a : Matrix or numpy.ndarray
        Square.
    p : 1 or numpy.inf
        Of which norm.
    context : Context, optional
        Default: the one of `a`.

    Returns
    -------
    NumPy scalar
        A lower bound, seldom less than a third of the condition number; as LAPACK's gecon, by the method of Hager and
        Higham: a few solves with LU factors. Infinite for a singular matrix. NumPy's default, the one of the 2-norm,
        would need singular values.
    """
    if isinstance(p, bool) or p not in (1, np.inf):
        raise ConfigError(f"cond: p: given {shown(p)}; allowed: 1, numpy.inf; singular values are not computed")
    yield f"p {p}"
    size = norm(a, p, context=context)
    factor = lu(a, context=context)
    if factor.info:
        return size.dtype.type(np.inf)
    if not np.isfinite(size) or not size:
        return size
    ops = ("N", "C") if p == 1 else ("C", "N")
    with np.errstate(all="ignore"):
        return size * size.dtype.type(_norm_of_inverse(factor, *ops))


def _norm_of_inverse(factor, op, adjoint):
    """An estimate of the 1-norm of the inverse of op(A), as LAPACK's lacn2."""
    n, complex_ = factor.shape[0], factor.dtype.kind == "c"
    if n == 0:
        return 0.0
    y = factor.solve(np.full(n, 1 / n, factor.dtype), op)
    found, signs, last = np.abs(y).sum(), None, -1
    for _ in range(MOST_STEPS - 1 if n > 1 else 0):
        sizes = np.abs(y)
        new = np.where(sizes > 0, y / np.where(sizes > 0, sizes, 1), 1) if complex_ else np.where(y >= 0, 1.0, -1.0)
        if not complex_ and signs is not None and np.array_equal(new, signs):
            break
        signs = new
        z = np.abs(factor.solve(signs.astype(factor.dtype), adjoint))
        at = int(np.argmax(z))
        if last >= 0 and z[last] == z[at]:
            break
        last = at
        y = factor.solve(np.arange(n) == at, op)
        before, found = found, np.abs(y).sum()
        if found <= before:
            found = before
            break
    if n == 1:
        return found
    k = np.arange(n)
    other = factor.solve(((-1.0) ** k * (1 + k / (n - 1))).astype(factor.dtype), op)
    return max(found, 2 * np.abs(other).sum() / (3 * n))
