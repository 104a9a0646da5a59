"""Least squares and systems with triangles, as calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewave import _core
from tilewave.choices import takes
from tilewave.context.collective import collective
from tilewave.linalg.arrays import dtype_for, entered, entered_sides, left
from tilewave.linalg.blas import blas
from tilewave.linalg.checks import require_bool, require_matrix, require_sides, require_square, transpose_of
from tilewave.linalg.choices import SolveChoices, SquareChoices
from tilewave.linalg.factors import FactorReport, SingularMatrix, made_of, refused, used_alone
from tilewave.linalg.least_squares import cond_of, layout_like, matrix_of
from tilewave.linalg.matrix import Matrix, as_matrix
from tilewave.linalg.plan import FactorPlan, looked_up, options_of, ranked

if TYPE_CHECKING:
    from typing import TypeVar

    from typing_extensions import Unpack

    from tilewave.annotations import Array, Collective
    from tilewave.context.context import Context

    B = TypeVar("B", Matrix, Array)


@collective("tw.linalg.lstsq")
@takes(SquareChoices)
def lstsq(
    a: Matrix,
    b: B,
    cond: float | None = None,
    *,
    context: Context | None = None,
    **choices: Unpack[SquareChoices],
) -> Collective[tuple[B, Array, int, None]]:
    """x with the least norm of a x - b, and of several such x the least one, by QR factors; collective.

    Parameters
    ----------
    a : Matrix or numpy.ndarray
        Of any shape and rank, in any layout; an array is the same on every rank. It stays as it is.
    b : Matrix or numpy.ndarray
        Right-hand sides as columns, in any layout; an array, also of one dimension, is the same on every rank. It stays
        as it is.
    cond : float, optional
        Singular values count as 0 up to this part of the largest one, as NumPy's rcond: in place of these, diagonal
        elements of R with column pivoting. Default: the dtype's eps times the larger side of a. NumPy computes float32
        in float64, with that eps: ``lstsq(a.astype("f8"), b.astype("f8"))`` is that.
    grid, block, lookahead, tree, algorithm, memory, context
        As in `qr`.

    Returns
    -------
    Matrix or tuple
        Of an array b: ``(x, residues, rank, None)`` with arrays on every rank, as SciPy's; singular values are not
        computed. Of a matrix b: x, in a layout as b's. ``x.residues``: of each right-hand side the squared norm of
        a x - b, on every rank, as SciPy's; empty where a has no more rows than columns, or not full rank. ``x.rank``;
        ``x.report``: of the factorization and of the two parts of the solution.

    Raises
    ------
    ConfigError
        On every rank: when b does not fit, for choices that make no sense, arguments that differ between ranks.

    Notes
    -----
    Collective. Where R of a QR without pivoting shows that a may not have full rank, R is factored again with column
    pivoting: a message a column and no blocks, so that takes longer. A matrix with columns of very different sizes is
    solved as NumPy solves it. Elements whose squares leave the range are scaled, as LAPACK's gels does.
    """
    a, b = (yield from as_matrix(a)), (yield from as_matrix(b))
    a, b, shape = _entered("lstsq", a, b, context)
    require_matrix("lstsq", "a", a, context)
    require_sides("lstsq", a, b, a.shape[0])
    bound = cond_of("lstsq", cond, a.shape, a.dtype)
    options, shape_of_x = options_of("lstsq", FactorPlan, choices), (a.shape[1], b.shape[1])
    layout = layout_like(b.layout, shape_of_x, context.size)
    given = a._storage, b._storage, layout._core(shape_of_x), bound, options, blas()
    call = _core.linalg.LeastSquaresCall("lstsq", *given)
    yield f"{a._identity()}; {options}; b {b._identity()}, cond={cond}"
    yield from looked_up(context, call)
    found = context._together(call.run)
    plans = [FactorPlan._of(each, context) for each in found.ranked]
    solved = [(used_alone(plans[-1]), "solve")] * (len(found.reports) - len(plans))
    ran = zip([*((plan, "qr") for plan in plans), *solved], found.reports, strict=True)
    reports = [FactorReport._of(context, plan, done, name) for (plan, name), done in ran]
    x = matrix_of(b, layout, shape_of_x, found, reports)
    if shape is None:
        return x
    residues = x.residues if len(shape) == 2 or x.residues.size == 0 else x.residues[0]
    return (yield from left(x, shape)), residues, x.rank, None


def _entered(call, a, b, context):
    """Both as matrices of one dtype, and the shape of b's array, None of a matrix. Local."""
    if isinstance(a, np.ndarray):
        dtype = dtype_for(call, "a", a)
        if isinstance(b, np.ndarray):
            dtype = np.result_type(dtype, dtype_for(call, "b", b))
        a = entered(call, "a", a, context, dtype)
    else:
        a = entered(call, "a", a, context)
    return a, *entered_sides(call, b, a)


@collective("tw.linalg.solve_triangular")
@takes(SolveChoices)
def solve_triangular(
    a: Matrix,
    b: B,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    *,
    context: Context | None = None,
    **choices: Unpack[SolveChoices],
) -> Collective[B]:
    """x of op(a) x = b, with one triangle of a; collective.

    Parameters
    ----------
    a : Matrix or numpy.ndarray
        Square, in any layout; what is not its triangle is not read. An array is the same on every rank. It stays as it
        is.
    b : Matrix or numpy.ndarray
        Right-hand sides as columns, in any layout; an array, also of one dimension, is the same on every rank. It stays
        as it is.
    trans : str or int
        op: "N" or 0, as it is; "T" or 1, transposed; "C" or 2, transposed and conjugate.
    lower : bool
        The lower triangle; else the upper one.
    unit_diagonal : bool
        Take ones for the diagonal, which is then not read.
    block, lookahead, tree, memory, context
        As in `lu`.

    Returns
    -------
    Matrix or numpy.ndarray
        As b: an array on every rank, or a matrix in the layout of b, with a ``report``. Its ``moved`` says what was
        redistributed: a if it is not by block columns, b where ranks do not have equal numbers of its columns.

    Raises
    ------
    ConfigError
        On every rank: when b does not fit, for choices that make no sense, arguments that differ between ranks.
    SingularMatrix
        On every rank, when an element of the diagonal is 0. Its ``info`` is LAPACK's.

    Notes
    -----
    Collective. The panels of a go round while every rank solves for its columns of b: few right-hand sides keep few
    ranks busy.
    """
    a, b = (yield from as_matrix(a)), (yield from as_matrix(b))
    a, b, array = _entered("solve_triangular", a, b, context)
    require_matrix("solve_triangular", "a", a, context)
    require_square("solve_triangular", a)
    require_sides("solve_triangular", a, b, a.shape[0])
    op = transpose_of("solve_triangular", "trans", trans)
    require_bool("solve_triangular", "lower", lower)
    require_bool("solve_triangular", "unit_diagonal", unit_diagonal)
    options = options_of("solve_triangular", FactorPlan, choices)
    system = _core.linalg.TriangularSystem(not lower, op, bool(unit_diagonal))
    call = _core.linalg.TriangularSolution("solve_triangular", a._storage, b._storage, system, options, blas())
    text = f"trans={op}, lower={lower}, unit_diagonal={unit_diagonal}, {call.text}"
    yield f"{a._identity()}; b {b._identity()}; {text}"
    if info := context._together(call.info):
        text = (
            f"solve_triangular: element {info - 1} of a's diagonal, counted from 0, is 0: the matrix is singular; "
            "allowed: a diagonal without 0, or unit_diagonal=True"
        )
        raise refused(context, SingularMatrix, info, text)
    plans = yield from ranked(context, call)
    made = made_of(b, FactorPlan._of(plans, context), *context._together(call.run, plans))
    return (yield from left(made, array))
