"""What factors of distributed matrices have in common: choices by prediction, runs, solving."""

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
from tilewave.timeline.parts import Parts
from tilewave.timeline.timeline import Timeline

#: Widths of block columns that are compared where the layout leaves them free.
BLOCKS = (32, 64, BLOCK, 256)
LOOKAHEADS = (1, 2, 3)
_NONE = np.iinfo(np.int64).max


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


def factored(name, generate, make, context, a, block, lookahead, tree):
    """Factor a copy of a matrix by block columns; part of a collective call.

    Parameters
    ----------
    name : str
        Of the call, for errors.
    generate : function
        The core's generator of the schedules.
    make : class
        Of the factor.

    Returns
    -------
    made : Matrix
        Of `make`, with ``info`` and ``report``.
    pivots : list
        Of this rank's panels.
    """
    _require_square(name, context, a)
    free = _free(name, a, context.size, block, lookahead, tree)
    library = blas()
    yield f"{a._text()}, {block}, {lookahead}, {tree}"
    machine = context._core.machine()
    error = chosen = None
    try:
        chosen = _best(generate, context, a, free, machine)
    except Exception as problem:
        error = problem
    yield error or "planned"
    block, lookahead, tree, predicted_s = share(context, chosen)[0]
    error = made = schedule = moving = None
    try:
        layout = Layout("columns", (max(1, a.shape[0]), block), (1, context.size))
        made = make(context, a.shape, a.dtype, layout)
        choices = _core.linalg.FactorChoices(tree == "least_rounds", lookahead, context.threads)
        schedule = generate(made._blocks, a.dtype.itemsize, choices, context.rank, context.size)
        moving = _core.linalg.MovingMemory(schedule)
    except Exception as problem:
        error = problem
    yield error or "ready"
    move(context, a._blocks, made._blocks, a.local, made.local)
    done, info, pivots = _run(context, schedule, library, moving, [place_of(made.local)], a.dtype)
    least = context._core.allreduce_min([info or _NONE])[0]
    made.info = 0 if least == _NONE else int(least)
    made.report = _report(context, done, schedule, block, lookahead, tree, predicted_s)
    return made, pivots


def solved(factor, b, kinds, permutation=None):
    """Solve with triangles of a factor, one after another; part of a collective call.

    Parameters
    ----------
    kinds : sequence of TriangularSolve
    permutation : numpy.ndarray, optional
        Row i of what is solved for is row permutation[i] of b.
    """
    context = factor.context
    if not isinstance(b, Matrix):
        raise ConfigError(f"solve: b: given {type(b).__name__}; allowed: a tilewave.linalg.Matrix")
    if b.context is not context or b.dtype != factor.dtype or b.shape[0] != factor.shape[0]:
        raise ConfigError(
            f"solve: b of {b.shape} {b.dtype} was given for a factor of {factor.shape} {factor.dtype}; allowed: as "
            "many rows, the same dtype, on the same context"
        )
    report = factor.report
    columns = max(1, -(-b.shape[1] // context.size))
    layout = Layout("columns", (max(1, b.shape[0]), columns), (1, context.size))
    sides, made = Matrix(context, b.shape, b.dtype, layout), Matrix(context, b.shape, b.dtype, b.layout)
    choices = _core.linalg.FactorChoices(report.tree == "least_rounds", report.lookahead, context.threads)
    blocks, item = (factor._blocks, sides._blocks), b.dtype.itemsize
    schedules = [
        _core.linalg.triangular_solve(*blocks, item, kind, choices, context.rank, context.size) for kind in kinds
    ]
    moving = _core.linalg.MovingMemory(schedules[0])
    library = blas()
    yield f"{factor._text()}, {b._text()}"
    move(context, b._blocks, sides._blocks, b.local, sides.local)
    if permutation is not None:
        sides.local[...] = sides.local[permutation]
    places = [place_of(factor.local), place_of(sides.local)]
    reports = []
    for schedule in schedules:
        done, _, _ = _run(context, schedule, library, moving, places, b.dtype)
        reports.append(_report(context, done, schedule, report.block, report.lookahead, report.tree, None))
    move(context, sides._blocks, made._blocks, sides.local, made.local)
    made.report = tuple(reports)
    return made


def _require_square(name, context, a):
    if not isinstance(a, Matrix):
        raise ConfigError(f"{name}: a: given {type(a).__name__}; allowed: a tilewave.linalg.Matrix")
    if a.context is not context:
        raise ConfigError(f"{name}: a lives on another context; allowed: one context")
    if a.shape[0] != a.shape[1]:
        raise ConfigError(f"{name}: a of shape {a.shape} was given; allowed: square matrices")


def _free(call, a, ranks, block, lookahead, tree):
    """The choices that are to be compared: blocks, look-aheads, trees."""
    for name, value, least in (("block", block, 1), ("lookahead", lookahead, 0)):
        wrong = isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least
        if value is not None and wrong:
            raise ConfigError(f"{call}: {name}: given {value!r}; allowed: an integer >= {least}")
    if tree not in (None, *TREES):
        raise ConfigError(f"{call}: tree: given {tree!r}; allowed: {', '.join(TREES)}")
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


def _best(generate, context, a, free, machine):
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
        parts = [generate(layout, a.dtype.itemsize, choices, rank, context.size) for rank in range(context.size)]
        time_s = _core.predict_works(parts, machine, [_core.KernelRate()], rates[block]).time_s
        played.append((block, ahead, tree, time_s))
    return min(played, key=lambda one: one[3])


def _rates(dtype, block):
    """Of the operations: a panel's own factor is counted at half the speed of products."""
    update, copy = product_rate(dtype, block, block, block), copy_rate(dtype)
    factor = _core.OperationRate(update.call_s, 2 * update.amount_s)
    return [factor, update, copy, *[update] * 4, factor, copy, update, update]


def _run(context, schedule, library, moving, places, dtype):
    try:
        found = _core.linalg.run_factor(context._core, schedule, library, moving, places, dtype.name)
    except (ConfigError, KernelError, MemoryError) as problem:
        raise context._shared(problem) from None
    if found[0].interrupted:
        raise KeyboardInterrupt("another rank was interrupted" if context.size > 1 else "")
    return found


def _report(context, done, schedule, block, lookahead, tree, predicted_s):
    memory = sum(array.item_bytes * _kept(array) for array in schedule.arrays)
    parts = Parts.of(done.parts) if context.rank == 0 else None
    return FactorReport(block, lookahead, tree, memory, done.time_s, predicted_s, parts, Timeline(done.timeline))


def _kept(array):
    """Items of a moving array that are in memory; 0 of a matrix."""
    extents = [max(0, h - l) for l, h in zip(*array.storage, strict=True)]
    return int(min(array.time_buffers, extents[0]) * np.prod(extents[1:], dtype=np.int64))
