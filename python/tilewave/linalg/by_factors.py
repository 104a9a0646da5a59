"""Determinants, conditions and solutions of matrices by their factors, as calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tilewave import _core
from tilewave.context.collective import collective
from tilewave.errors import ConfigError, shown
from tilewave.linalg.checks import require_one_of
from tilewave.linalg.cholesky import cholesky
from tilewave.linalg.lstsq import solve_triangular
from tilewave.linalg.lu import lu
from tilewave.linalg.norm import norm

if TYPE_CHECKING:
    from tilewave.annotations import Array, Collective
    from tilewave.context.context import Context
    from tilewave.linalg.matrix import Matrix

    B = TypeVar("B", Matrix, Array)

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
        Of a positive definite matrix ``tw.linalg.cholesky(a).logdet()`` is faster.
    """
    yield "factors"
    return lu(a, context=context).slogdet()


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
    return cholesky(a, lower, context=context).solve(b)


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
    ops, complex_ = ("N", "C") if p == 1 else ("C", "N"), factor.dtype.kind == "c"

    def solved(b, adjoint):
        given = np.array(b) if complex_ else np.array(b).real
        return factor.solve(given.astype(factor.dtype), ops[adjoint]).astype("c16").tolist()

    with np.errstate(all="ignore"):
        return size * size.dtype.type(_core.linalg.norm_of_inverse(factor.shape[0], complex_, solved))
