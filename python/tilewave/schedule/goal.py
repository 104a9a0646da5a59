"""Schedules as GOAL text, which LogGOPSim reads: operations of each rank, and which must be over before which.

A lane is a CPU of its rank. ``calc`` takes nanoseconds; ``send`` and ``recv`` are posts whose transfer goes on beside
what follows, until a step waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilewave import _core


def lines(cores: list[Any], seconds: Callable[[Any, Any], float]) -> Iterator[str]:
    """The text, line by line.

    Parameters
    ----------
    cores : list of the core's schedules
        Of all ranks, in order.
    seconds : callable
        (schedule, step): what a step of computing, packing, unpacking or combining takes.
    """
    yield f"num_ranks {len(cores)}"
    for core in cores:
        yield f"rank {core.rank} {{"
        yield from _rank(core, seconds)
        yield "}"


def seconds_of(cores, kernels, operations, machine):
    """What a step takes that computes or copies: seconds by (schedule, step).

    Parameters
    ----------
    cores : list of the core's schedules
    kernels, operations : lists of the core's rates
    machine : the core's machine
    """
    rows_and_points = {
        core.rank: _core.tile_work(core) for core in cores if core.tiles and all(work.nest for work in core.works)
    }

    def seconds(core, step):
        if step.op != "compute":
            m = core.messages[step.item]
            low, high = m.region
            array = core.arrays[m.array]
            return m.bytes * machine.copy_byte_s.at(array.item_bytes * (high[-1] - low[-1]))
        work = core.works[core.tiles[step.item].work]
        if work.task:
            return operations[work.task.operation].call_s + work.task.amount * operations[work.task.operation].amount_s
        rate = kernels[work.nest.kernel if len(kernels) > 1 else 0]
        rows, points = rows_and_points[core.rank][step.item]
        return rate.tile_s + rows * rate.row_s + points * rate.point_s

    return seconds


def _rank(core, seconds):
    """The operations of a rank. Steps that await others follow those in the text, so that all names are known."""
    numbers = iter(range(1, 1 << 62))
    posted, signals = {}, {}  # the operation of a message; by lane, (count, what is over before)
    for lane, at, step in _in_order(core):
        before = at.before
        if step.op == "signal":
            signals.setdefault(lane, []).append((step.count, set(before)))
        elif step.op == "await":
            if step.count > 0:
                before |= next(over for count, over in signals[step.item] if count >= step.count)
        elif step.op == "wait":
            before.add(posted[step.item])
        else:
            name = f"l{next(numbers)}"
            if step.op in ("post_send", "post_recv"):
                m = core.messages[step.item]
                what = f"send {m.bytes}b to" if m.send else f"recv {m.bytes}b from"
                yield f"{name}: {what} {m.peer} tag {m.tag} cpu {lane}"
                posted[step.item] = name
            else:
                yield f"{name}: calc {round(1e9 * seconds(core, step))} cpu {lane}"
            for other in sorted(before, key=lambda text: int(text[1:])):
                yield f"{name} requires {other}"
            if step.op not in ("post_send", "post_recv"):
                at.before = {name}


class _Lane:
    """How far a lane is."""

    def __init__(self, steps):
        self.steps, self.next, self.signalled = steps, 0, 0
        self.before = set()  # operations that must be over before the lane's next one


def _in_order(core):
    """(lane, _Lane, step) of all lanes, each behind what it awaits."""
    lanes = [_Lane(steps) for steps in core.lanes]
    more = True
    while more:
        more = False
        for number, lane in enumerate(lanes):
            while lane.next < len(lane.steps):
                step = lane.steps[lane.next]
                if step.op == "await" and lanes[step.item].signalled < step.count:
                    break
                if step.op == "signal":
                    lane.signalled = step.count
                lane.next += 1
                more = True
                yield number, lane, step
