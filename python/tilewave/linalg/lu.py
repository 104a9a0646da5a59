"""LU factors of distributed matrices with partial pivoting: solving, determinants."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tilewave import _core
from tilewave.choices import takes
from tilewave.context.collective import collective, holds_context, ready
from tilewave.linalg.arrays import entered, entered_sides, left
from tilewave.linalg.blas import blas
from tilewave.linalg.checks import require_sides, transpose_of
from tilewave.linalg.choices import FactorChoices, SquareChoices
from tilewave.linalg.factors import SingularMatrix, factored, made_of, refused, with_sides
from tilewave.linalg.matrix import Matrix, as_matrix

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tilewave.annotations import Array, Collective
    from tilewave.context.context import Context

    B = TypeVar("B", Matrix, Array)


@holds_context
class LuFactor(Matrix):
    """L and U of P A = L U in one `Matrix`, as LAPACK has them; `tilewave.linalg.lu` makes it.

    Attributes
    ----------
    info : int
        As LAPACK's: 0, or the number, from 1, of the first pivot that is 0: U is singular.
    report : FactorReport
    """

    info: int = 0

    @property
    def pivots(self) -> Array:
        """numpy.ndarray: as SciPy's ``lu_factor`` has them, everywhere: row i was interchanged with row pivots[i]."""
        return self._factor.pivots

    @property
    def permutation(self) -> Array:
        """numpy.ndarray: row i of L U is row permutation[i] of A."""
        rows = np.arange(self.shape[0])
        for i, j in enumerate(self.pivots.tolist()):
            rows[i], rows[j] = rows[j], rows[i]
        return rows

    @collective("tw.linalg.LuFactor.solve")
    def solve(self, b: B, trans: int | str = 0) -> Collective[B]:
        """x of op(A) x = b; collective.

        Parameters
        ----------
        b : Matrix or numpy.ndarray
            Right-hand sides as columns, in any layout; an array, also of one dimension, is the same on every rank. It
            stays as it is.
        trans : str or int
            op: "N" or 0, as it is; "T" or 1, transposed; "C" or 2, transposed and conjugate.

        Returns
        -------
        Matrix or numpy.ndarray
            As b: an array on every rank, or a matrix in the layout of b, with a ``report`` of each of the two
            triangular solves: ``(lower, upper)``, in the other order where A is transposed.

        Raises
        ------
        ConfigError
            On every rank, when b does not fit.
        SingularMatrix
            On every rank, when a pivot is 0.
        """
        op = transpose_of("solve", "trans", trans)
        if self.info:
            b, _ = entered_sides("solve", b, self)
            require_sides("solve", self, b, self.shape[0])
            yield f"a singular {self._identity()}"
            raise _singular("solve", self.context, self.info)
        run = functools.partial(_core.linalg.solving, "lu", self._factor, blas=blas(), op=op)
        return (yield from with_sides("solve", self, b, run, f"; trans={op}"))

    @collective("tw.linalg.LuFactor.det")
    def det(self) -> Collective[Any]:
        """The determinant of A, on every rank; collective.

        Returns
        -------
        number
            Of the matrix's dtype; infinite or 0 where it leaves that dtype's range.
        """
        yield self._identity()
        found, exponent = self.context._together(_core.linalg.determinant_of, self._factor)
        with np.errstate(over="ignore", under="ignore"):
            real, imaginary = (np.ldexp(part, max(min(exponent, 10**6), -(10**6))) for part in (found.real, found.imag))
            return self.dtype.type(complex(real, imaginary) if self.dtype.kind == "c" else real)

    @collective("tw.linalg.LuFactor.slogdet")
    def slogdet(self) -> Collective[tuple[Any, Any]]:
        """Sign and logarithm of the determinant of A, on every rank; collective.

        Returns
        -------
        (NumPy scalar, NumPy scalar)
            As `tilewave.linalg.slogdet`.
        """
        yield self._identity()
        found, exponent = self.context._together(_core.linalg.determinant_of, self._factor)
        with np.errstate(all="ignore"):
            size = np.abs(found)
            sign, log = found / size if size else 0.0, np.log(size) + exponent * np.log(2)
        return self.dtype.type(sign if self.dtype.kind == "c" else sign.real), np.finfo(self.dtype).dtype.type(log)


@collective("tw.linalg.lu")
@takes(FactorChoices)
def lu(
    a: Matrix,
    *,
    overwrite_a: bool = False,
    context: Context | None = None,
    **choices: Unpack[FactorChoices],
) -> Collective[LuFactor]:
    """LU factors of a square matrix with partial pivoting; collective.

    Parameters
    ----------
    a : Matrix or numpy.ndarray
        Square, in any layout; an array is the same on every rank.
    grid : (int, int), optional
        Ranks along the rows and the columns of the matrix; of more than one row blocks are square. Default: predicted.
    block : int, optional
        Columns of a panel. Default: those of a's blocks where a is by cyclic blocks of columns, unless more than 128
        blocks have fewer than 32 columns; else predicted.
    lookahead : int, optional
        Panels that may travel while another one is used. Default: predicted.
    tree : str, optional
        How a panel goes to all ranks: "ring" or "least_rounds". Default: predicted.
    algorithm : str
        "broadcast": a panel is used when all of it is there; "wavefront": it goes around the ring, and each chunk is
        used as it comes, whatever the rank waits for; "auto": what is predicted fastest.
    weights : sequence of int, optional
        For each rank an integer: ranks have blocks in proportion; empty: they take turns. Default: as those of a, else
        the machine's speeds, where that is predicted faster.
    memory : int, optional
        Bytes that each rank may use beyond the matrices, for panels in flight. Default: as much as the fastest plan
        needs.
    overwrite_a : bool
        Factor in the memory of `a`, a Matrix that has the factor's layout: both then have the factor's elements. Of
        others, and by default, a copy is factored and `a` stays as it is.
    context : Context, optional
        Default: the one of `a`.

    Returns
    -------
    LuFactor
        In blocks that go round the ranks of the grid. A singular matrix has factors, too: ``info`` says so.

    Raises
    ------
    ConfigError
        On every rank: for what is no square matrix, choices that make no sense, arguments that differ between ranks.

    Notes
    -----
    Collective. The owner of the next panel updates, factors and sends it before the rest is updated (look-ahead).
    """
    return (yield from factored("lu", "lu", LuFactor, context, a, choices, overwrite=overwrite_a))


@collective("tw.linalg.inv")
@takes(SquareChoices)
def inv(
    a: Matrix,
    *,
    context: Context | None = None,
    **choices: Unpack[SquareChoices],
) -> Collective[Matrix]:
    """The inverse of a square matrix, by its LU factors; collective.

    Parameters
    ----------
    a : Matrix or numpy.ndarray
        Square, in any layout; an array is the same on every rank. It stays as it is.
    grid, block, lookahead, tree, algorithm, memory, context
        As in `lu`.

    Returns
    -------
    Matrix or numpy.ndarray
        As a: an array on every rank, or a matrix in the layout of a. Its ``report`` has those of the factorization and
        of the two triangular solves: ``(lu, lower, upper)``.

    Raises
    ------
    ConfigError
        On every rank, as `lu`.
    SingularMatrix
        On every rank, when a pivot is 0.

    Notes
    -----
    Collective. A system is solved faster and more accurately by ``lu(a).solve(b)``. Memory beyond a and its inverse:
    the factors, and the inverse by block columns.
    """
    array = a.shape if isinstance(a, np.ndarray) else None
    a = entered("inv", "a", (yield from as_matrix(a)), context)
    factor = yield from factored("inv", "lu", LuFactor, context, a, choices)
    if factor.info:
        raise _singular("inv", context, factor.info)
    core = factor._factor
    run = yield from ready("the factors' solves", lambda: _core.linalg.inverting(core, a._storage, blas()))
    made = made_of(a, factor._plan, *context._together(run.run, "", core.bytes))
    made.report = (factor.report, *made.report)
    return (yield from left(made, array))


def _singular(call, context, info):
    text = f"{call}: pivot {info} is 0: the matrix is singular; allowed: factors with info 0"
    return refused(context, SingularMatrix, info, text)
