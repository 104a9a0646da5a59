"""QR factors of distributed matrices: Q and R, applying Q, least squares."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tilewave import _core
from tilewave.choices import takes
from tilewave.context.collective import collective, holds_context
from tilewave.errors import ConfigError
from tilewave.linalg.arrays import entered_sides, left
from tilewave.linalg.blas import blas
from tilewave.linalg.checks import require_one_of, transpose_of
from tilewave.linalg.choices import FactorChoices
from tilewave.linalg.factors import FactorReport, factored, with_sides
from tilewave.linalg.layout import by_block_columns, of_factor
from tilewave.linalg.least_squares import solved_by_qr
from tilewave.linalg.matrix import Matrix, as_matrix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Unpack

    from tilewave.annotations import Array, Collective
    from tilewave.context.context import Context

    B = TypeVar("B", Matrix, Array)

#: Of `qr`: what the factors unpack to.
MODES = ("economic", "full", "r")


@holds_context
class QrFactor(Matrix):
    """R and the reflectors of A = Q R in one `Matrix`, as LAPACK has them.

    `tilewave.linalg.qr` makes it. ``Q, R = factor`` makes both, as the mode says; collective.

    Attributes
    ----------
    mode : str
        "economic", "full" or "r".
    report : FactorReport
    """

    mode: str = "economic"

    def __iter__(self) -> Iterator[Matrix]:
        return iter((self.r(),) if self.mode == "r" else (self.q(), self.r()))

    @collective("tw.linalg.QrFactor.q")
    def q(self, mode: str | None = None) -> Collective[Matrix]:
        """Q, with orthonormal columns; collective.

        Parameters
        ----------
        mode : str, optional
            "economic": as many columns as the lesser side of A has; "full": as many as A has rows. Default: that of
            the factor; of "r" the economic one.

        Returns
        -------
        Matrix
            By block columns, as the factor.
        """
        require_one_of("q", "mode", mode, MODES)
        m, n = self.shape
        mode = mode or self.mode
        shape = (m, m if mode == "full" else min(m, n))
        ranks = self.context.size
        layout = by_block_columns(shape, self.layout.block[1], ranks, self.layout._weights_of(ranks) or ())
        made = Matrix(self.context, shape, self.dtype, layout)
        run = _core.linalg.forming(self._factor, made._storage, blas())
        yield f"{self._identity()}; mode {mode}"
        _, (report,) = self.context._together(run.run)
        made.report = FactorReport._of(self.context, self._plan, report, "q")
        return made

    @collective("tw.linalg.QrFactor.r")
    def r(self, mode: str | None = None) -> Collective[Matrix]:
        """R, upper trapezoidal; collective.

        Parameters
        ----------
        mode : str, optional
            "economic" or "r": as many rows as the lesser side of A has; "full": as many as A has. Default: that of the
            factor.

        Returns
        -------
        Matrix
            By block columns, as the factor.
        """
        require_one_of("r", "mode", mode, MODES)
        m, n = self.shape
        mode = mode or self.mode
        shape = (m if mode == "full" else min(m, n), n)
        made = Matrix(self.context, shape, self.dtype, of_factor(shape, self._plan))
        above = made.rows[:, None] <= made.columns[None, :]
        yield f"{self._identity()}; mode {mode}"
        made.local[...] = 0
        np.copyto(made.local, self.local[: made.local.shape[0]], where=above)
        return made

    @collective("tw.linalg.QrFactor.apply")
    def apply(self, b: B, trans: str = "N") -> Collective[B]:
        """Q b or Qᴴ b, with the whole square Q, which is not formed; collective.

        Parameters
        ----------
        b : Matrix or numpy.ndarray
            Of as many rows as A, in any layout; an array is the same on every rank. It stays as it is.
        trans : str or int
            "N" or 0: Q; "C" or 2: its conjugate transposed; of real factors also "T" or 1.

        Returns
        -------
        Matrix or numpy.ndarray
            As b: an array on every rank, or a matrix in the layout of b, with a ``report``.

        Raises
        ------
        ConfigError
            On every rank: when b does not fit.
        """
        adjoint = transpose_of("apply", "trans", trans, "NC" if self.dtype.kind == "c" else "NTC") != "N"
        run = functools.partial(_core.linalg.applying, self._factor, adjoint=adjoint, blas=blas())
        return (yield from with_sides("apply", self, b, run, f"; adjoint {adjoint}"))

    @collective("tw.linalg.QrFactor.solve")
    def solve(self, b: B, cond: float | None = None) -> Collective[B]:
        """x with the least norm of A x - b, of an A with at least as many rows as columns; collective.

        Parameters
        ----------
        b : Matrix or numpy.ndarray
            Right-hand sides as columns, in any layout; an array is the same on every rank. It stays as it is.
        cond : float, optional
            As in `tilewave.linalg.lstsq`.

        Returns
        -------
        Matrix or numpy.ndarray
            A matrix as `tilewave.linalg.lstsq` gives it; of an array x alone.

        Raises
        ------
        ConfigError
            On every rank: when b does not fit, or A is wide.
        RankDeficient
            On every rank.
        """
        if self.shape[0] < self.shape[1]:
            raise ConfigError(
                f"solve: the factor of a matrix of shape {self.shape} was given; allowed: at least as many rows as "
                "columns, or lstsq, which finds the least x"
            )
        b, shape = entered_sides("solve", (yield from as_matrix(b)), self)
        made = yield from solved_by_qr("solve", self, b, cond)
        return (yield from left(made, shape))


@collective("tw.linalg.qr")
@takes(FactorChoices)
def qr(
    a: Matrix,
    mode: str = "economic",
    *,
    overwrite_a: bool = False,
    context: Context | None = None,
    **choices: Unpack[FactorChoices],
) -> Collective[QrFactor]:
    """QR factors of a matrix of any shape by Householder reflections; collective.

    Parameters
    ----------
    a : Matrix or numpy.ndarray
        In any layout; an array is the same on every rank.
    mode : str
        What the factors unpack to: "economic", ``Q, R = qr(a)`` with as many columns of Q as the lesser side of a has;
        "full", with a square Q; "r", ``R, = qr(a, mode="r")``.
    grid, block, lookahead, tree, algorithm, weights, memory
        As in `lu`.
    overwrite_a : bool
        Factor in the memory of `a`, a Matrix that has the factor's layout: both then have the factor's elements. Of
        others, and by default, a copy is factored and `a` stays as it is.
    context : Context, optional
        Default: the one of `a`.

    Returns
    -------
    QrFactor
        In blocks that go round the ranks of the grid.

    Raises
    ------
    ConfigError
        On every rank: for what is no matrix, choices that make no sense, arguments that differ between ranks.

    Notes
    -----
    Collective. Of a panel its reflectors travel as I - V T Vᴴ (compact WY), which the other block columns are
    multiplied with. The owner of the next panel updates, factors and sends it before the rest is updated (look-ahead).
    """
    require_one_of("qr", "mode", "None" if mode is None else mode, MODES)
    given = context, a, choices, f"mode {mode}", overwrite_a
    made = yield from factored("qr", "qr", QrFactor, *given)
    made.mode = mode
    return made
