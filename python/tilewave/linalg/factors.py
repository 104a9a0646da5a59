"""What factors of distributed matrices have in common: their making, running their schedules, right-hand sides."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from tilewave import _core, units
from tilewave.errors import ConfigError, KernelError
from tilewave.linalg.arrays import entered
from tilewave.linalg.blas import blas
from tilewave.linalg.checks import require_bool, require_matrix, require_square
from tilewave.linalg.choosing import best_plan, by_block_columns, play_of
from tilewave.linalg.layout import Layout
from tilewave.linalg.matrix import Matrix, Move, require_no_factor
from tilewave.linalg.operands import place_of
from tilewave.linalg.plan import FactorPlan, Foretold
from tilewave.runtime.ready import ready
from tilewave.timeline.parts import Parts
from tilewave.timeline.timeline import Timeline

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

    def __str__(self) -> str:
        moved = f"; {' and '.join(self.moved)} redistributed first" if self.moved else ""
        return f"{self.plan}{moved}\nmeasured {units.seconds(self.time_s)}"

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
    tells : str
        What ranks tell each other of a run: "info" or "pivots".
    """

    name: str
    work: str
    make: type
    square: bool = True
    tells: str = "info"


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
    Matrix
        Of `kind.make`, with ``info`` and ``report``, of LU with ``pivots``.
    """
    require_bool(kind.name, "overwrite_a", overwrite)
    text = f"overwrite_a={overwrite}{text and '; '}{text}"
    if overwrite:
        require_no_factor(kind.name, "a", a)
    given, a = a, entered(kind.name, "a", a, context)
    require_matrix(kind.name, "a", a, context)
    if kind.square:
        require_square(kind.name, "a", a)
    wish.checked(kind.name)
    problem = _core.linalg.PanelProblem(kind.work, a._blocks, a.dtype.itemsize, context.size, context.threads)
    plans = wish.plans(kind.name, problem)
    library = blas()
    yield f"{a._identity()}; {wish}; {text}"
    text = f"{kind.work}, {a.shape} {a.dtype} {a.layout}, {wish}"
    chosen = yield from best_plan(context, problem, a.dtype, plans, library, text)

    def make():
        made = kind.make(context, a.shape, a.dtype, by_block_columns(a.shape, chosen.block, context.size))
        schedule_of = functools.partial(problem.schedule, chosen._core())
        run = FactorRun(context, a.dtype, chosen, schedule_of, library, tells=kind.tells, rows=a.shape[0])
        in_place = (overwrite or a is not given) and a._blocks.same(made._blocks)
        return made, run, None if in_place else Move(context, a._blocks, made._blocks, a.dtype)

    made, run, move = yield from ready("ready", make)
    if move is None:
        made._local = a.local
    else:
        move(a.local, made.local)
    made._plan = dataclasses.replace(chosen, predicted_s=None, compared=(), messages="")
    made.report = run([made.local, *made._beside], () if a._blocks.same(made._blocks) else ("a",))
    made.info = run.info
    if run.pivots is not None:
        made.pivots = run.pivots
    return made


class FactorRun:
    """A schedule of factors or right-hand sides that is ready to run; making it is local.

    Parameters
    ----------
    beside : FactorRun, optional
        Of the same panels: its memory is used for them.
    tells : str
        What ranks tell each other of a run: "nothing", "info" or "pivots".
    rows : int
        Of the matrix, for pivots.

    Attributes
    ----------
    panels_bytes : int
        Of panels on their way.
    info : int
        LAPACK's, after a run.
    pivots : numpy.ndarray or None
        After a run.
    """

    def __init__(self, context, dtype, plan, schedule_of, library, beside=None, tells="nothing", rows=0):
        self._context, self._dtype, self._plan = context, dtype, plan
        schedule = schedule_of(context.rank)
        self.panels_bytes = sum(array.item_bytes * _kept(array) for array in schedule.arrays)
        self._core = _core.linalg.FactorRun(
            context._core, schedule, library, dtype.name, tells, rows, beside and beside._core
        )
        self.pivots = np.empty(rows, dtype=np.int64) if tells == "pivots" else None
        self._play = play_of(schedule_of, context, dtype, library) if context.rank == 0 else None

    @property
    def info(self):
        return self._core.info

    def __call__(self, arrays, moved=(), copies=0):
        """Run on this rank's memory, beside so many bytes of copies; collective. The report."""
        context, places = self._context, [place_of(array) for array in arrays]
        try:
            done = self._core.run(places, self._dtype.itemsize)
        except (ConfigError, KernelError, MemoryError) as problem:
            raise context._shared(problem) from None
        context._finished(done)
        if self.pivots is not None:
            self._core.copy_pivots(self.pivots.ctypes.data)
        parts = Parts.of(done.parts) if context.rank == 0 else None
        how = self._plan, tuple(moved), copies + self.panels_bytes, done.time_s
        return FactorReport(*how, parts, Timeline(done.timeline), self._play)


def choices_of(plan, threads):
    """As solves and reflections take them."""
    return _core.linalg.FactorChoices(plan.tree == "least_rounds", plan.lookahead, threads)


def _kept(array):
    """Items of a moving array that are in memory; 0 of a matrix."""
    extents = [max(0, h - l) for l, h in zip(*array.storage, strict=True)]
    return int(min(array.time_buffers, extents[0]) * np.prod(extents[1:], dtype=np.int64))


def sides_layout(shape, ranks):
    """Right-hand sides by columns, as even as can be: each rank works on its own."""
    return Layout("columns", (max(1, shape[0]), max(1, -(-shape[1] // ranks))), (1, ranks))


class WorkingSides:
    """Right-hand sides by columns to work on, and what they become in the layout of `b`. Making it is local.

    Attributes
    ----------
    sides, made : Matrix
        The same one where that will do.
    copied_bytes : int
    moved : tuple of str
        ("b",) where b does not lie so.
    """

    def __init__(self, b, layout=None):
        self._b, self.made = b, Matrix(b.context, b.shape, b.dtype, b.layout)
        layout = layout or sides_layout(b.shape, b.context.size)
        stays = self.made._blocks.same(layout._core(b.shape))
        self.sides = self.made if stays else Matrix(b.context, b.shape, b.dtype, layout)
        self.copied_bytes, self.moved = (0, ()) if stays else (self.sides.local.nbytes, ("b",))
        self._in = Move(b.context, b._blocks, self.sides._blocks, b.dtype)
        self._out = None if stays else Move(b.context, self.sides._blocks, b._blocks, b.dtype)

    def take(self):
        """The values of b; collective, after an agreement. This rank's part."""
        self._in(self._b.local, self.sides.local)
        return self.sides.local

    def give(self):
        """The result where it is wanted; collective."""
        if self._out is not None:
            self._out(self.sides.local, self.made.local)
        return self.made


def permute_rows(local, permutation):
    """Row i becomes row permutation[i]: some columns at a time, for little memory."""
    columns = max(1, PERMUTED_BYTES // max(1, local.itemsize * local.shape[0]))
    for lo in range(0, local.shape[1], columns):
        local[:, lo : lo + columns] = local[permutation, lo : lo + columns]


def solve_run(context, plan, library, triangle, sides, system, dtype, beside=None):
    """Solving with a triangle, both as layouts of the core; ready to run on [matrix, sides]."""

    item, choices, ranks = dtype.itemsize, choices_of(plan, context.threads), context.size

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
    work = WorkingSides(b)
    runs = solve_runs(factor, work.sides, systems)
    yield f"{factor._identity()}; b {b._identity()}"
    local = work.take()
    if permutation is not None:
        permute_rows(local, permutation)
    work.made.report = tuple(run([factor.local, local], work.moved, work.copied_bytes) for run in runs)
    return work.give()
