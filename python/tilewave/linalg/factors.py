"""What factors of distributed matrices have in common: their making, running their schedules, right-hand sides."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError, KernelError
from tilewave.linalg.arrays import entered
from tilewave.linalg.blas import blas
from tilewave.linalg.checks import require_bool, require_matrix, require_square
from tilewave.linalg.choosing import FactorPlan, best_plan, by_block_columns, play_of
from tilewave.linalg.layout import Layout
from tilewave.linalg.matrix import Matrix, move
from tilewave.linalg.operands import place_of
from tilewave.linalg.prediction import Foretold
from tilewave.timeline.parts import Parts
from tilewave.timeline.timeline import Timeline

_NONE = np.iinfo(np.int64).max
#: Of right-hand sides whose rows are permuted at once: less than a processor's caches.
PERMUTED_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class FactorReport(Foretold):
    """How a factorization or a solve went.

    Attributes
    ----------
    plan : FactorPlan
        Its ``explain()`` says why it was chosen.
    moved : tuple of str
        Of the arguments those that were redistributed first: they do not lie by block columns.
    memory_bytes : int
        Of this rank beyond what is given and what comes out: the panels on their way, and copies of what is
        redistributed.
    time_s : float
        Of the slowest rank, without redistributions.
    parts : Parts or None
        Rank 0: where the lanes' time went, on average.
    timeline : Timeline
        Rank 0: of all ranks; empty elsewhere.
    """

    plan: FactorPlan
    moved: tuple[str, ...]
    memory_bytes: int
    time_s: float
    parts: Parts | None
    timeline: Timeline
    _play: Any = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def block(self) -> int:
        """int: columns of a panel."""
        return self.plan.block

    @property
    def lookahead(self) -> int:
        """int: panels that travel beside the one in use."""
        return self.plan.lookahead

    @property
    def tree(self) -> str:
        """str: "ring" or "least_rounds"."""
        return self.plan.tree

    @property
    def predicted_s(self) -> float | None:
        """float or None: None where nothing was compared."""
        return self.plan.predicted_s


class SingularMatrix(ConfigError, np.linalg.LinAlgError):
    """A system has no unique solution; every rank raises it alike.

    Attributes
    ----------
    info : int
        As LAPACK's: the number, from 1, of the first pivot that is 0.
    """

    info = 0


def refused(context, kind, info, text):
    """An error with LAPACK's info, which all ranks know."""
    error = kind(text)
    error.info = info
    return context._shared(error)


@dataclasses.dataclass(frozen=True)
class Kind:
    """A factorization by block columns.

    Attributes
    ----------
    name : str
        Of the call, for errors.
    work : str
        The core's name: "cholesky", "lu" or "qr".
    make : class
        Of the factor: a `Matrix` with ``_beside``, what the schedule writes beside the matrix.
    square : bool
        Whether other shapes are refused.
    """

    name: str
    work: str
    make: type
    square: bool = True


def factored(kind, context, a, wish, text="", overwrite=False):
    """Factor a matrix by block columns; part of a collective call.

    Parameters
    ----------
    wish : Wish
    text : str
        What else must be equal on all ranks.
    overwrite : bool
        In the memory of `a`, where it is a matrix that lies as the factor does.

    Returns
    -------
    made : Matrix
        Of `kind.make`, with ``info`` and ``report``.
    pivots : list
        Of this rank's panels.
    """
    require_bool(kind.name, "overwrite_a", overwrite)
    text = f"overwrite_a={overwrite}{text and '; '}{text}"
    given, a = a, entered(kind.name, "a", a, context)
    require_matrix(kind.name, "a", a, context)
    if kind.square:
        require_square(kind.name, "a", a)
    wish.checked(kind.name)
    problem = _core.linalg.PanelProblem(kind.work, a._blocks, a.dtype.itemsize, context.size, context.threads)
    plans = wish.plans(kind.name, problem)
    library = blas()
    yield f"{a._text()}; {wish}; {text}"
    text = f"{kind.work}, {a.shape} {a.dtype} {a.layout}, {wish}"
    chosen = yield from best_plan(context, problem, a.dtype, plans, library, text)
    error = made = run = None
    try:
        made = kind.make(context, a.shape, a.dtype, by_block_columns(a.shape, chosen.block, context.size))
        run = FactorRun(context, a.dtype, chosen, functools.partial(problem.schedule, chosen._core()), library)
    except Exception as problem:
        error = problem
    yield error or "ready"
    if (overwrite or a is not given) and a._blocks.same(made._blocks):
        made._local = a.local
    else:
        move(context, a._blocks, made._blocks, a.local, made.local)
    made._plan = dataclasses.replace(chosen, predicted_s=None, compared=(), messages="")
    made.report, info, pivots = run([made.local, *made._beside], () if a._blocks.same(made._blocks) else ("a",))
    least = context._core.allreduce_min([info or _NONE])[0]
    made.info = 0 if least == _NONE else int(least)
    return made, pivots


class FactorRun:
    """A schedule of factors or right-hand sides that is ready to run; making it is local.

    Parameters
    ----------
    beside : FactorRun, optional
        Of the same panels: its memory is used for them.

    Attributes
    ----------
    panels_bytes : int
        Of panels on their way.
    """

    def __init__(self, context, dtype, plan, schedule_of, library, beside=None):
        self._context, self._dtype, self._plan, self._library = context, dtype, plan, library
        self._schedule = schedule_of(context.rank)
        self.panels_bytes = sum(array.item_bytes * _kept(array) for array in self._schedule.arrays)
        self._moving = beside._moving if beside else _core.linalg.MovingMemory(self._schedule)
        self._play = play_of(schedule_of, context, dtype, library) if context.rank == 0 else None

    def __call__(self, arrays, moved=(), copies=0):
        """Run on this rank's memory, beside so many bytes of copies; collective. The report, this rank's info and
        pivots.
        """
        context, places = self._context, [place_of(array) for array in arrays]
        try:
            done, info, pivots = _core.linalg.run_factor(
                context._core, self._schedule, self._library, self._moving, places, self._dtype.name
            )
        except (ConfigError, KernelError, MemoryError) as problem:
            raise context._shared(problem) from None
        if done.interrupted:
            raise KeyboardInterrupt("another rank was interrupted" if context.size > 1 else "")
        parts = Parts.of(done.parts) if context.rank == 0 else None
        how = self._plan, tuple(moved), copies + self.panels_bytes, done.time_s
        return FactorReport(*how, parts, Timeline(done.timeline), self._play), info, pivots


def _kept(array):
    """Items of a moving array that are in memory; 0 of a matrix."""
    extents = [max(0, h - l) for l, h in zip(*array.storage, strict=True)]
    return int(min(array.time_buffers, extents[0]) * np.prod(extents[1:], dtype=np.int64))


def sides_layout(shape, ranks):
    """Right-hand sides by columns, as even as can be: each rank works on its own."""
    return Layout("columns", (max(1, shape[0]), max(1, -(-shape[1] // ranks))), (1, ranks))


def working_sides(b):
    """Right-hand sides by columns to work on, what they become in the layout of b, which is the same matrix where that
    will do, and the bytes of the copy. Local.
    """
    made, layout = Matrix(b.context, b.shape, b.dtype, b.layout), sides_layout(b.shape, b.context.size)
    if made._blocks.same(layout._core(b.shape)):
        return made, made, 0
    sides = Matrix(b.context, b.shape, b.dtype, layout)
    return sides, made, sides.local.nbytes


def move_back(sides, made):
    """Results to where they are wanted; collective, after an agreement."""
    if made is not sides:
        move(sides.context, sides._blocks, made._blocks, sides.local, made.local)


def permute_rows(local, permutation):
    """Row i becomes row permutation[i]: some columns at a time, for little memory."""
    columns = max(1, PERMUTED_BYTES // max(1, local.itemsize * local.shape[0]))
    for lo in range(0, local.shape[1], columns):
        local[:, lo : lo + columns] = local[permutation, lo : lo + columns]


def solve_run(context, plan, library, triangle, sides, system, dtype, beside=None):
    """Solving with a triangle, both as layouts of the core; ready to run on [matrix, sides]."""

    item, choices, ranks = dtype.itemsize, plan._choices(context.threads), context.size

    def schedule_of(rank):
        return _core.linalg.triangular_solve(triangle, sides, item, system, choices, rank, ranks)

    return FactorRun(context, dtype, plan, schedule_of, library, beside)


def solve_runs(factor, sides, systems):
    """Of triangles of a factor, one after another."""
    runs = []
    for system in systems:
        given = factor.context, factor._plan, blas(), factor._blocks, sides._blocks, system, factor.dtype
        runs.append(solve_run(*given, beside=runs[0] if runs else None))
    return runs


def solved(factor, b, systems, permutation=None):
    """Solve with triangles of a factor, one after another; part of a collective call.

    Parameters
    ----------
    systems : sequence of TriangularSystem
    permutation : numpy.ndarray, optional
        Row i of what is solved for is row permutation[i] of b.
    """
    context = factor.context
    sides, made, copies = working_sides(b)
    runs = solve_runs(factor, sides, systems)
    yield f"{factor._text()}; b {b._text()}"
    move(context, b._blocks, sides._blocks, b.local, sides.local)
    if permutation is not None:
        permute_rows(sides.local, permutation)
    moved = () if b._blocks.same(sides._blocks) else ("b",)
    made.report = tuple(run([factor.local, sides.local], moved, copies)[0] for run in runs)
    move_back(sides, made)
    return made
