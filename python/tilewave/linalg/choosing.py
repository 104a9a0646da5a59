"""The choices of a factorization or a solve that are free, and those of them that are predicted fastest."""

import dataclasses
import functools

from tilewave import _core
from tilewave.linalg.blas import copy_rate, product_rate
from tilewave.linalg.candidates import TREES
from tilewave.linalg.checks import require_integer, require_one_of
from tilewave.linalg.layout import BLOCK, Layout
from tilewave.linalg.prediction import Play
from tilewave.machine.known import share

#: Widths of block columns that are compared where the layout leaves them free.
BLOCKS = (32, 64, BLOCK, 256)
LOOKAHEADS = (1, 2, 3)


@dataclasses.dataclass(frozen=True)
class Choices:
    """How the panels of a factor travel."""

    block: int
    lookahead: int
    tree: str
    predicted_s: float | None = None  # None where nothing was compared

    def _core(self, threads):
        return _core.linalg.FactorChoices(self.tree == "least_rounds", self.lookahead, threads)


def free_choices(call, a, ranks, block, lookahead, tree):
    """All that may be chosen, as a list; raises ConfigError."""
    require_integer(call, "block", block, 1)
    require_integer(call, "lookahead", lookahead, 0)
    require_one_of(call, "tree", tree, TREES)
    n = min(a.shape)
    if block is not None:
        blocks = [min(int(block), max(1, a.shape[1]))]
    elif ranks > 1 and a.layout.grid == (1, ranks) and a.layout.block[1] * ranks < n:
        blocks = [a.layout.block[1]]
    else:
        # Some block columns for each rank, so that none is idle for long.
        blocks = [b for b in BLOCKS if b * ranks * 2 <= n] or [max(1, min(BLOCK, -(-n // (2 * ranks))))]
    return [
        Choices(b, ahead, way)
        for b in blocks
        for ahead in (LOOKAHEADS if lookahead is None else [int(lookahead)])
        for way in ([tree] if tree else TREES[: 2 if ranks > 2 else 1])
    ]


def by_block_columns(shape, block, ranks):
    """The layout of a factor."""
    return Layout("columns", (max(1, shape[0]), block), (1, ranks))


def best_choices(schedule_of, context, a, free):
    """The fastest of some choices; a part of a collective call, which agrees.

    Parameters
    ----------
    schedule_of : function
        Of choices and a rank: its schedule.
    """
    chosen = error = None
    try:
        chosen = _best(schedule_of, context, a, free)
    except Exception as problem:
        error = problem
    yield error or "planned"
    return Choices(*share(context, dataclasses.astuple(chosen))[0])


def _best(schedule_of, context, a, free):
    """Every rank measures, rank 0 compares."""
    if len(free) == 1 or min(a.shape) == 0:
        return free[0]
    for block in {choices.block for choices in free}:
        factor_rates(a.dtype, block)
    if context.rank:
        return free[0]
    times = [(play_of(schedule_of, context, a.dtype, choices)().time_s, choices) for choices in free]
    predicted_s, choices = min(times, key=lambda one: one[0])
    return dataclasses.replace(choices, predicted_s=predicted_s)


def play_of(schedule_of, context, dtype, choices):
    """The prediction of schedules with these choices."""
    return Play(
        functools.partial(schedule_of, choices),
        context.size,
        context._core.machine(),
        lambda _: factor_rates(dtype, choices.block),
    )


def factor_rates(dtype, block):
    """Of the operations: a panel's own factor is counted at half the speed of products."""
    update, copy = product_rate(dtype, block, block, block), copy_rate(dtype)
    rates = {"panel": _core.OperationRate(update.call_s, 2 * update.amount_s), "product": update, "copy": copy}
    return [rates[speed] for speed in _core.linalg.factor_speeds()]
