"""Least squares by QR factors."""

import numbers

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.linalg.blas import blas
from tilewave.linalg.checks import require_sides
from tilewave.linalg.factors import FactorReport, refused
from tilewave.linalg.layout import layout_of
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


def solved_by_qr(call, factor, b, cond):
    """x of min |A x - b| by the QR factor of A; the end of a collective call."""
    context, shape = factor.context, (factor.shape[1], b.shape[1])
    bound = cond_of(call, cond, factor.shape, factor.dtype)
    require_sides(call, factor, b, factor.shape[0])
    layout = layout_like(b.layout, shape, context.size)
    run = _core.linalg.LeastSquaresRun(call, factor._factor, b._storage, layout._core(shape), bound, blas())
    yield f"{factor._identity()}, {b._identity()}, {cond}"
    found = context._together(run.run)
    if found.info:
        text = (
            f"{call}: column {found.info - 1} of a, counted from 0, depends on those before it: no full rank; allowed: "
            f"independent columns, beyond rounding (cond={bound:.3g}), or tilewave.linalg.lstsq"
        )
        raise refused(context, RankDeficient, found.info, text)
    return matrix_of(b, layout, shape, found, [FactorReport._of(context, factor._plan, each) for each in found.reports])


def matrix_of(b, layout, shape, found, reports):
    """The x that the core has found, with its rank, residues and reports."""
    made = Matrix(b.context, shape, b.dtype, layout, found.x)
    made.report, made.rank = tuple(reports), found.rank
    made.residues = np.array(found.residues, np.finfo(b.dtype).dtype)
    return made


def layout_like(layout, shape, ranks):
    """The layout of a matrix of another number of rows: as those of that name are, with their blocks of columns."""
    if layout.name == "cyclic":
        return layout
    block = layout.block if layout.name == "columns" else None
    return layout_of("lstsq", shape, ranks, layout.name, block, None, layout._weights_of(ranks))
