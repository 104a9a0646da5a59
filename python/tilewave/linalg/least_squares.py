"""Least squares by QR factors."""

import numbers

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.linalg.blas import blas
from tilewave.linalg.checks import require_sides
from tilewave.linalg.choosing import by_block_columns
from tilewave.linalg.factors import refused, sides_layout, solve_run
from tilewave.linalg.layout import layout_of
from tilewave.linalg.matrix import Matrix, Move
from tilewave.machine.known import share
from tilewave.runtime.ready import ready

_NONE = np.iinfo(np.int64).max


class RankDeficient(ConfigError, np.linalg.LinAlgError):
    """A least-squares problem has no unique solution; every rank raises it alike.

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


def solved_by_qr(call, factor, b, cond, reflect_run, wide=False, held=0):
    """x of min |A x - b| by the QR factor of A; with `wide` the least x of A x = b by that of Aᴴ.

    A part of a collective call, which holds so many bytes beside what is made here.
    """
    context, (m, n) = factor.context, factor.shape  # m >= n

    def make():
        bound = cond_of(call, cond, factor.shape, factor.dtype)
        require_sides(call, factor, b, n if wide else m)
        return _Solution(factor, b, reflect_run, wide), _deficient(factor, bound), bound

    solution, deficient, bound = yield from ready(f"{factor._identity()}, {b._identity()}, {cond}, {wide}", make)
    _require_full_rank(call, context, deficient, bound, "row" if wide else "column")
    made, local = solution.made, solution.sides.local
    held += local.nbytes
    if wide:
        local[n:] = 0
    solution.take(b.local, local[: b.shape[0]])
    moved = () if b._blocks.same(solution.of_b) else ("b",)
    if wide:
        first = solution.solve([factor.local[:n], local[:n]], moved, held + solution.reflect.panels_bytes)
        last = solution.reflect([*solution.factor, local], (), held + solution.solve.panels_bytes)
    else:
        first = solution.reflect([*solution.factor, local], moved, held + solution.solve.panels_bytes)
        last = solution.solve([factor.local[:n], local[:n]], (), held + solution.reflect.panels_bytes)
    made.report, made.rank = (first, last), n
    made.residues = np.zeros(0, _real(b.dtype))
    if m > n and not wide:
        made.residues = yield from _residues(solution.sides, n)
    solution.give(local[: made.shape[0]], made.local)
    return made


class _Solution:
    """Memory and schedules of a solution; making it is local."""

    def __init__(self, factor, b, reflect_run, wide):
        context, (m, n), count = factor.context, factor.shape, b.shape[1]
        self.sides = Matrix(context, (m, count), b.dtype, sides_layout((m, count), context.size))
        top = sides_layout((n, count), context.size)._core((n, count))  # of the sides the first n rows
        self.of_b, self.of_x = (top, self.sides._blocks) if wide else (self.sides._blocks, top)
        shape = (m if wide else n, count)
        self.made = Matrix(context, shape, b.dtype, _layout_like(b.layout, shape, context.size))
        triangle = by_block_columns((n, n), factor.layout.block[1], context.size)._core((n, n))
        system = _core.linalg.TriangularSystem(upper=True, op="C" if wide else "N")
        self.factor = factor.local, *factor._beside
        self.reflect = reflect_run(factor, self.sides, adjoint=not wide)
        self.solve = solve_run(context, factor._plan, blas(), triangle, top, system, b.dtype)
        self.take = Move(context, b._blocks, self.of_b, b.dtype)
        self.give = Move(context, self.of_x, self.made._blocks, b.dtype)


def _deficient(factor, cond):
    """The number, from 1, of this rank's first column that depends on those before it, up to rounding; by its part of
    R's diagonal, relative to its norm.
    """
    for column, values in zip(factor.columns.tolist(), factor.local.T, strict=True):
        largest = np.abs(values[: column + 1]).max()
        if largest == 0 or (
            np.isfinite(largest)
            and abs(values[column] / largest) <= cond * np.linalg.norm(values[: column + 1] / largest)
        ):
            return column + 1
    return _NONE


def _require_full_rank(call, context, deficient, cond, what):
    info = context._core.allreduce_min([deficient])[0]
    if info != _NONE:
        text = (
            f"{call}: {what} {info - 1} of a, counted from 0, depends on those before it: no full rank; allowed: "
            f"independent {what}s, beyond rounding (cond={cond:.3g})"
        )
        raise refused(context, RankDeficient, int(info), text)


def _residues(sides, n):
    """By right-hand side, on every rank: the sum of squares of what no x takes away. A part of a collective call."""

    def make():
        rest = sides.local[n:]
        mine = np.einsum("ij,ij->j", rest.real, rest.real) + np.einsum("ij,ij->j", rest.imag, rest.imag)
        return (sides.columns.tolist(), mine.tolist()), np.zeros(sides.shape[1], _real(sides.dtype))

    mine, found = yield from ready("residues", make)
    for columns, values in share(sides.context, mine):
        found[columns] = values
    return found


def _real(dtype):
    return np.finfo(dtype).dtype


def _layout_like(layout, shape, ranks):
    """The layout of a matrix of another number of rows: as those of that name are, with their blocks of columns."""
    if layout.name == "cyclic":
        return layout
    return layout_of("lstsq", shape, ranks, layout.name, layout.block if layout.name == "columns" else None, None)
