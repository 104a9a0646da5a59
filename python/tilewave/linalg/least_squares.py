"""Least squares by QR factors."""

import numbers

import numpy as np

from tilewave import _core
from tilewave.allgather import allgather
from tilewave.context.collective import ready
from tilewave.errors import ConfigError
from tilewave.linalg.blas import blas
from tilewave.linalg.checks import require_sides
from tilewave.linalg.factors import FactorReport, refused
from tilewave.linalg.layout import indices_of, layout_of
from tilewave.linalg.matrix import Matrix


class RankDeficient(ConfigError, np.linalg.LinAlgError):
    """A least-squares problem has no unique solution; every rank raises the same.

    Attributes
    ----------
    info : int
        As LAPACK's gels: the number, from 1, of the first diagonal element of R that is 0, or as good as 0.
    """

    info = 0


def cond_of(call, given, shape, dtype):
    """The bound of what counts as 0, relative to a column's norm."""
    if given is None:
        return float(np.finfo(dtype).eps) * max(1, *shape)
    wrong = isinstance(given, bool) or not isinstance(given, numbers.Real) or not 0 <= given < np.inf
    if wrong:
        raise ConfigError(f"{call}: cond: given {given!r}; allowed: a number >= 0, or None")
    return float(given)


def solved_by_qr(call, factor, b, cond, wide=False, held=0):
    """x of min |A x - b| by the QR factor of A; with `wide` the least x of A x = b by that of Aᴴ.

    A part of a collective call, which holds so many bytes in addition to what is made here.
    """
    context, (m, n), count = factor.context, factor.shape, b.shape[1]  # m >= n
    shape = (m if wide else n, count)

    def make():
        bound = cond_of(call, cond, factor.shape, factor.dtype)
        require_sides(call, factor, b, n if wide else m)
        layout = layout_like(b.layout, shape, context.size)
        given = factor._factor, b._storage, layout._core(shape), bound, wide, held, blas()
        return _core.linalg.LeastSquaresRun(call, *given), layout, bound

    run, layout, bound = yield from ready(f"{factor._identity()}, {b._identity()}, {cond}, {wide}", make)
    found = context._together(run.run)
    if found.info:
        text = (
            f"{call}: column {found.info - 1} of a, counted from 0, depends on those before it: no full rank; allowed: "
            f"independent columns, beyond rounding (cond={bound:.3g}), or tilewave.linalg.lstsq"
        )
        raise refused(context, RankDeficient, found.info, text)
    made = Matrix(context, shape, b.dtype, layout, found.x)
    made.report = tuple(FactorReport._of(context, factor._plan, each) for each in found.reports)
    made.rank, made.residues = n, np.zeros(0, _real(b.dtype))
    if m > n and not wide:
        made.residues = yield from residues_of(context, found.sides.array(), found.sides.layout, n)
    return made


def residues_of(context, local, blocks, n):
    """By right-hand side, on every rank: the sum of squares of what no x takes away. A part of a collective call."""

    def make():
        rest = local[n:]
        sums = np.einsum("ij,ij->j", rest.real, rest.real) + np.einsum("ij,ij->j", rest.imag, rest.imag)
        columns = indices_of(blocks.columns, context.rank).tolist()
        return (columns, sums.tolist()), np.zeros(blocks.columns.extent, _real(local.dtype))

    sums, found = yield from ready("residues", make)
    for columns, values in allgather(context, sums):
        found[columns] = values
    return found


def _real(dtype):
    return np.finfo(dtype).dtype


def layout_like(layout, shape, ranks):
    """The layout of a matrix of another number of rows: as those of that name are, with their blocks of columns."""
    if layout.name == "cyclic":
        return layout
    block = layout.block if layout.name == "columns" else None
    return layout_of("lstsq", shape, ranks, layout.name, block, None, layout._weights_of(ranks))
