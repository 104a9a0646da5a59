"""Cholesky factors of distributed matrices, and solving with them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tilewave import _core
from tilewave.choices import takes
from tilewave.context.collective import collective, holds_context
from tilewave.errors import ConfigError
from tilewave.linalg.blas import blas
from tilewave.linalg.checks import require_bool
from tilewave.linalg.choices import FactorChoices
from tilewave.linalg.factors import factored, refused, with_sides
from tilewave.linalg.matrix import Matrix
from tilewave.linalg.operators import Operators

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tilewave.annotations import Array, Collective, Number
    from tilewave.context.context import Context

    B = TypeVar("B", Matrix, Array)


class NotPositiveDefinite(ConfigError, np.linalg.LinAlgError):
    """A matrix has no Cholesky factor; every rank raises the same.

    Attributes
    ----------
    info : int
        As LAPACK's: the order of the first leading minor that is not positive definite.
    """

    info = 0


@holds_context
class CholeskyFactor(Matrix):
    """L of A = L Lᴴ, a lower triangular `Matrix`; `tilewave.linalg.cholesky` makes it.

    Attributes
    ----------
    info : int
        As LAPACK's: 0, or the order of the first leading minor that is not positive definite. Above 0 the matrix holds
        no factor.
    report : FactorReport
    """

    info: int = 0

    @collective("tw.linalg.CholeskyFactor.solve")
    def solve(self, b: B) -> Collective[B]:
        """x of A x = b; collective.

        Parameters
        ----------
        b : Matrix or numpy.ndarray
            Right-hand sides as columns, in any layout; an array, also of one dimension, is the same on every rank. It
            stays as it is.

        Returns
        -------
        Matrix or numpy.ndarray
            As b: an array on every rank, or a matrix in the layout of b, with a ``report`` of each of the two
            triangular solves: ``(down, up)``.

        Raises
        ------
        ConfigError
            On every rank: when b does not fit, or the factorization has failed.

        Notes
        -----
        Every rank solves for its columns while the panels of L go round, so few right-hand sides keep few ranks
        busy.
        """
        if self.info:
            raise ConfigError(
                f"solve: the leading minor of order {self.info} is not positive definite: there is no factor; allowed: "
                "factors with info 0"
            )
        run = functools.partial(_core.linalg.solving, "cholesky", self._factor, blas=blas())
        return (yield from with_sides("solve", self, b, run))

    def logdet(self) -> Number:
        """The logarithm of the determinant of A, on every rank; collective.

        Returns
        -------
        NumPy scalar
        """
        return 2 * np.log(self.diagonal().real).sum()


@collective("tw.linalg.cholesky")
@takes(FactorChoices)
def cholesky(
    a: Matrix,
    lower: bool = True,
    *,
    check: bool = True,
    overwrite_a: bool = False,
    context: Context | None = None,
    **choices: Unpack[FactorChoices],
) -> Collective[CholeskyFactor]:
    """The Cholesky factor of a Hermitian positive definite matrix; collective.

    Parameters
    ----------
    a : Matrix or numpy.ndarray
        Square, in any layout; an array is the same on every rank. Only one triangle is read.
    lower : bool
        The lower triangle is read, else the upper one. The factor is L in either case; SciPy's of an upper triangle is
        ``L.H``.
    grid, block, lookahead, tree, algorithm, weights, memory
        As in `lu`.
    check : bool
        Raise `NotPositiveDefinite` where there is no factor. Without, ``L.info`` says so.
    overwrite_a : bool
        Factor in the memory of `a`, a Matrix that has the factor's layout: both then have the factor's elements. Of
        others, and by default, a copy is factored and `a` stays as it is.
    context : Context, optional
        Default: the one of `a`.

    Returns
    -------
    CholeskyFactor
        In blocks that go round the ranks of the grid; its upper triangle is 0.

    Raises
    ------
    ConfigError
        On every rank: for what is no square matrix, choices that make no sense, arguments that differ between ranks.
    NotPositiveDefinite
        On every rank.

    Notes
    -----
    Collective. The owner of the next panel updates, factors and sends it before the rest is updated (look-ahead).
    """
    require_bool("cholesky", "check", check)
    require_bool("cholesky", "lower", lower)
    if not lower:
        a = a.conj().T if isinstance(a, np.ndarray) else a.H if isinstance(a, Operators) else a
    given = context, a, choices, f"check={check}, lower={lower}", overwrite_a
    made = yield from factored("cholesky", "cholesky", CholeskyFactor, *given)
    if made.info and check:
        text = (
            f"cholesky: the leading minor of order {made.info} of a is not positive definite; allowed: positive "
            "definite matrices, or check=False and L.info"
        )
        raise refused(context, NotPositiveDefinite, made.info, text)
    return made
