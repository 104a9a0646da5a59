"""This file has what a pattern would take, while its script is only planned."""

import math

from tilewave import _core, units
from tilewave.context.planned_calls import MOST_RANKS
from tilewave.patterns.matrix import rows_and_columns

#: Messages of all ranks together that are simulated, about a second.
MOST_MESSAGES = 200_000


class PlannedPattern:
    """The core's pattern of a `Handle` where nothing is sent.

    Parameters
    ----------
    core
        The real one, which knows its plan.
    run : function
        Notes one more run.
    """

    def __init__(self, core, run):
        self._core, self.start, self.run = core, run, run

    def __getattr__(self, name):
        return getattr(self._core, name)

    def test(self):
        """Return True: it is over."""
        return True

    def wait(self):
        """Return at once."""


def planned(call, calls, memory):
    """What a call of a pattern takes: all ranks where they are few, else some of them, and the ratio that the closed
    forms have.

    Returns
    -------
    (int, function)
        The columns of all ranks together; notes one run in `PlannedCalls`.
    """
    context = call.context
    machine, ranks = context._core.machine(), context.size
    (rows, columns), item, block = rows_and_columns("M", memory[0]).shape, memory[0].itemsize, call.core.block

    def problem(size):
        dealt = [columns] if call.kind in ("broadcast", "reduce") else [columns] * size
        if call.kind == "multi_reduce":
            share = max(columns // ranks, 1) * size
            dealt = [_core.dealt_columns(share, block, size, rank) for rank in range(size)]
        elif block:
            dealt = [_core.dealt_columns(columns * size, block, size, rank) for rank in range(size)]
        root = call.core.root if size == ranks else 0
        return _core.PatternProblem(call.kind, size, rows, dealt, item, root, block)

    whole = problem(ranks)
    plan = _core.make_pattern_plan(whole, machine, call.algorithm, *call.sizes)
    each = ranks if call.kind in ("spread", "multi_reduce") else 1
    chunks = max(math.ceil(whole.bytes / each / plan.chunk_bytes), 1)
    some = min(ranks, MOST_RANKS)
    while some > 8 and some * min(some, each) * chunks > MOST_MESSAGES:
        some //= 2
    part = problem(some)
    schedules = [_core.pattern_schedule(part, plan, rank, columns * item, columns * item) for rank in range(some)]
    time_s = _core.predict(schedules, machine, _core.KernelRate(), record=False).time_s
    sample = "all ranks"
    if some < ranks:
        closed = [_core.pattern_time(one, plan, machine) for one in (whole, part)]
        time_s *= closed[0] / closed[1]
        sample = f"{some} of {units.count(ranks, 'rank')}, then by the ratio of closed forms"

    def run():
        calls.noted(
            f"tw.patterns.{call.kind}",
            lambda: calls.add(f"{call.kind} by {plan.algorithm}", time_s, None, sample=sample),
        )

    return columns * ranks, run
