"""Cholesky factors of distributed matrices, and solving with them."""

import dataclasses

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError, KernelError
from tilewave.linalg.blas import blas, copy_rate, product_rate
from tilewave.linalg.candidates import TREES
from tilewave.linalg.layout import BLOCK, Layout
from tilewave.linalg.matrix import Matrix, move
from tilewave.linalg.operands import place_of
from tilewave.machine.known import share
from tilewave.runtime.collective import collective, holds_context
from tilewave.timeline.parts import Parts
from tilewave.timeline.timeline import Timeline

#: Widths of block columns that are compared where the layout leaves them free.
BLOCKS = (32, 64, BLOCK, 256)
LOOKAHEADS = (1, 2, 3)


class NotPositiveDefinite(ConfigError, np.linalg.LinAlgError):
    """A matrix has no Cholesky factor; every rank raises it alike.

    Attributes
    ----------
    info : int
        As LAPACK's: the order of the first leading minor that is not positive definite.
    """

    info = 0


@dataclasses.dataclass(frozen=True)
class FactorReport:
    """How a factorization or a solve went.

    Attributes
    ----------
    block, lookahead : int
        Columns of a panel; panels that travel beside the one in use.
    tree : str
        "ring" or "least_rounds".
    memory_bytes : int
        Of a rank beyond the matrices: the panels on their way.
    time_s : float
        Of the slowest rank, without redistributions.
    predicted_s : float or None
        None where nothing was compared.
    parts : Parts or None
        Rank 0: where the lanes' time went, on average.
    timeline : Timeline
        Rank 0: of all ranks; empty elsewhere.
    """

    block: int
    lookahead: int
    tree: str
    memory_bytes: int
    time_s: float
    predicted_s: float | None
    parts: Parts | None
    timeline: Timeline


@holds_context
class CholeskyFactor(Matrix):
    """L of A = L Lᴴ, a lower triangular `Matrix` by block columns; `tilewave.linalg.cholesky` makes it.

    Attributes
    ----------
    info : int
        As LAPACK's: 0, or the order of the first leading minor that is not positive definite. Above 0 the matrix holds
        no factor.
    report : FactorReport
    """

    info = 0

    def solve(self, b):
        """x of A x = b; collective.

        Parameters
        ----------
        b : Matrix
            Right-hand sides as columns, in any layout; it stays as it is.

        Returns
        -------
        Matrix
            In the layout of b, with a ``report`` of each of the two triangular solves: ``(down, up)``.

        Raises
        ------
        ConfigError
            On every rank: when b does not fit, or the factorization has failed.

        Notes
        -----
        Every rank solves for its own columns while the panels of L go round, so few right-hand sides keep few ranks
        busy.
        """
        return _solve(self, b)


@collective("tw.linalg.cholesky")
def cholesky(a, *, block=None, lookahead=None, tree=None, check=True, context=None):
    """The Cholesky factor of a Hermitian positive definite matrix; collective.

    Parameters
    ----------
    a : Matrix
        Square, in any layout. Only its lower triangle is read; it stays as it is.
    block : int, optional
        Columns of a panel. Default: those of a's blocks where a lies by columns that go round; else predicted.
    lookahead : int, optional
        Panels that may travel beside the one in use. Default: predicted.
    tree : str, optional
        How a panel goes to all ranks: "ring" or "least_rounds". Default: predicted.
    check : bool
        Raise `NotPositiveDefinite` where there is no factor. Without, ``L.info`` says so.
    context : Context, optional
        Default: the one of `a`.

    Returns
    -------
    CholeskyFactor
        By columns whose blocks go round the ranks; its upper triangle is 0.

    Raises
    ------
    ConfigError
        On every rank: for what is no square matrix, choices that make no sense, arguments that differ between ranks.
    NotPositiveDefinite
        On every rank alike.

    Notes
    -----
    Collective. The owner of the next panel updates, factors and sends it before the rest is updated (look-ahead).
    """
    _require_square(context, a)
    free = _free(a, context.size, block, lookahead, tree)
    if not isinstance(check, bool | np.bool_):
        raise ConfigError(f"cholesky: check: given {check!r}; allowed: True, False")
    library = blas()
    yield f"{a._text()}, {block}, {lookahead}, {tree}, {check}"
    machine = context._core.machine()
    error, chosen = None, None
    try:
        chosen = _best(context, a, free, machine)
    except Exception as problem:
        error = problem
    yield error or "planned"
    block, lookahead, tree, predicted_s = share(context, chosen)[0]
    error = made = schedule = moving = None
    try:
        layout = Layout("columns", (max(1, a.shape[0]), block), (1, context.size))
        made = CholeskyFactor(context, a.shape, a.dtype, layout)
        schedule = _schedule(made, lookahead, tree, context.threads, context.rank)
        moving = _core.linalg.MovingMemory(schedule)
    except Exception as problem:
        error = problem
    yield error or "ready"
    move(context, a._blocks, made._blocks, a.local, made.local)
    done, info = _run(context, schedule, library, moving, [place_of(made.local)], a.dtype)
    least = context._core.allreduce_min([info or np.iinfo(np.int64).max])[0]
    made.info = 0 if least == np.iinfo(np.int64).max else int(least)
    made.local[made.rows[:, None] < made.columns[None, :]] = 0
    made.report = _report(context, done, schedule, block, lookahead, tree, predicted_s)
    if made.info and check:
        refused = NotPositiveDefinite(
            f"cholesky: the leading minor of order {made.info} of a is not positive definite; allowed: positive "
            "definite matrices, or check=False and L.info"
        )
        refused.info = made.info
        raise context._shared(refused)
    return made


def _require_square(context, a):
    if not isinstance(a, Matrix):
        raise ConfigError(f"cholesky: a: given {type(a).__name__}; allowed: a tilewave.linalg.Matrix")
    if a.context is not context:
        raise ConfigError("cholesky: a lives on another context; allowed: one context")
    if a.shape[0] != a.shape[1]:
        raise ConfigError(f"cholesky: a of shape {a.shape} was given; allowed: square matrices")


def _free(a, ranks, block, lookahead, tree):
    """The choices that are to be compared: blocks, look-aheads, trees."""
    for name, value, least in (("block", block, 1), ("lookahead", lookahead, 0)):
        wrong = isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least
        if value is not None and wrong:
            raise ConfigError(f"cholesky: {name}: given {value!r}; allowed: an integer >= {least}")
    if tree not in (None, *TREES):
        raise ConfigError(f"cholesky: tree: given {tree!r}; allowed: {', '.join(TREES)}")
    n, (rows, columns) = a.shape[0], a.layout.grid
    fits = rows == 1 and columns == ranks and a.layout.block[1] * ranks < n
    if block is not None:
        blocks = [int(block)]
    elif fits and ranks > 1:
        blocks = [a.layout.block[1]]
    else:
        # Some block columns for each rank, so that none is idle for long.
        blocks = [b for b in BLOCKS if b * ranks * 2 <= n] or [max(1, min(BLOCK, -(-n // (2 * ranks))))]
    return (
        blocks,
        LOOKAHEADS if lookahead is None else [int(lookahead)],
        [tree] if tree else TREES[: 2 if ranks > 2 else 1],
    )


def _blocks(n, block, ranks):
    axis = _core.linalg.Axis
    return _core.linalg.BlockCyclic(axis(n, 1, max(1, n)), axis(n, ranks, block), False)


def _schedule(made, lookahead, tree, lanes, rank):
    choices = _core.linalg.FactorChoices(tree == "least_rounds", lookahead, lanes)
    return _core.linalg.cholesky(made._blocks, made.dtype.itemsize, choices, rank, made.context.size)


def _best(context, a, free, machine):
    """Block, look-ahead, tree and predicted seconds of the fastest choices; every rank measures, rank 0 compares."""
    every = [(block, ahead, tree) for block in free[0] for ahead in free[1] for tree in free[2]]
    if len(every) == 1 or a.shape[0] == 0:
        return (*every[0], None)
    rates = {block: _rates(a.dtype, block) for block in free[0]}
    if context.rank:
        return (*every[0], None)
    played = []
    for block, ahead, tree in every:
        choices = _core.linalg.FactorChoices(tree == "least_rounds", ahead, context.threads)
        layout = _blocks(a.shape[0], block, context.size)
        parts = [
            _core.linalg.cholesky(layout, a.dtype.itemsize, choices, rank, context.size) for rank in range(context.size)
        ]
        time_s = _core.predict_works(parts, machine, [_core.KernelRate()], rates[block]).time_s
        played.append((block, ahead, tree, time_s))
    return min(played, key=lambda one: one[3])


def _rates(dtype, block):
    """Of the operations: a panel's own factor is counted at half the speed of products."""
    update, copy = product_rate(dtype, block, block, block), copy_rate(dtype)
    factor = _core.OperationRate(update.call_s, 2 * update.amount_s)
    return [factor, update, copy, update, update]


def _run(context, schedule, library, moving, places, dtype):
    try:
        done, info = _core.linalg.run_factor(context._core, schedule, library, moving, places, dtype.name)
    except (ConfigError, KernelError, MemoryError) as problem:
        raise context._shared(problem) from None
    if done.interrupted:
        raise KeyboardInterrupt("another rank was interrupted" if context.size > 1 else "")
    return done, info


def _report(context, done, schedule, block, lookahead, tree, predicted_s):
    memory = sum(array.item_bytes * _kept(array) for array in schedule.arrays)
    parts = Parts.of(done.parts) if context.rank == 0 else None
    return FactorReport(block, lookahead, tree, memory, done.time_s, predicted_s, parts, Timeline(done.timeline))


def _kept(array):
    """Items of a moving array that are in memory; 0 of a matrix."""
    extents = [max(0, h - l) for l, h in zip(*array.storage, strict=True)]
    return int(min(array.time_buffers, extents[0]) * np.prod(extents[1:], dtype=np.int64))


@collective("tw.linalg.CholeskyFactor.solve")
def _solve(factor, b):
    context = factor.context
    if not isinstance(b, Matrix):
        raise ConfigError(f"solve: b: given {type(b).__name__}; allowed: a tilewave.linalg.Matrix")
    if b.context is not context or b.dtype != factor.dtype or b.shape[0] != factor.shape[0]:
        raise ConfigError(
            f"solve: b of {b.shape} {b.dtype} was given for a factor of {factor.shape} {factor.dtype}; allowed: as "
            "many rows, the same dtype, on the same context"
        )
    if factor.info:
        raise ConfigError(
            f"solve: the leading minor of order {factor.info} is not positive definite: there is no factor; allowed: "
            "factors with info 0"
        )
    block, ahead, tree = factor.report.block, factor.report.lookahead, factor.report.tree
    columns = max(1, -(-b.shape[1] // context.size))
    layout = Layout("columns", (max(1, b.shape[0]), columns), (1, context.size))
    sides, made = Matrix(context, b.shape, b.dtype, layout), Matrix(context, b.shape, b.dtype, b.layout)
    choices = _core.linalg.FactorChoices(tree == "least_rounds", ahead, context.threads)
    item, size = b.dtype.itemsize, context.size
    schedules = [
        _core.linalg.triangular_solve(factor._blocks, sides._blocks, item, up, choices, context.rank, size)
        for up in (False, True)
    ]
    moving = _core.linalg.MovingMemory(schedules[0])
    library = blas()
    yield f"{factor._text()}, {b._text()}"
    move(context, b._blocks, sides._blocks, b.local, sides.local)
    places = [place_of(factor.local), place_of(sides.local)]
    reports = []
    for schedule in schedules:
        done, _ = _run(context, schedule, library, moving, places, b.dtype)
        reports.append(_report(context, done, schedule, block, ahead, tree, None))
    move(context, sides._blocks, made._blocks, sides.local, made.local)
    made.report = tuple(reports)
    return made
