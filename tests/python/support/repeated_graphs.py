"""Random task graphs with a part that is repeated: tasks before it, its block, tasks behind it; several lanes."""

import copy
import random

import numpy as np
from task_graphs import Graph, plan

import tilewave as tw
from tilewave.schedule.regions import Signal


class Repeated:
    """The program."""

    def __init__(self, seed, ranks, lanes=(1, 4)):
        self.graph = Graph(seed, ranks, tasks=random.Random(seed + 9).randint(3, 10), lanes=lanes)
        rng, n = random.Random(seed + 7), len(self.graph.tasks)
        begin = rng.randint(0, n - 1)
        end = rng.randint(begin + 1, n)
        self.parts = []
        for tasks in (self.graph.tasks[:begin], self.graph.tasks[begin:end], self.graph.tasks[end:]):
            part = copy.copy(self.graph)
            part.tasks = tasks
            self.parts.append(part)

    def sequential(self, times):
        arrays = self.graph.initial()
        for part, count in zip(self.parts, (1, times, 1), strict=True):
            for _ in range(count):
                for _, _, function, reads, writes in part.tasks:
                    function(*(arrays[a][tuple(slice(l, h) for l, h in box)] for a, box in (*reads, *writes)))
        return arrays

    def __str__(self):
        return f"Repeated({self.graph.seed}, {self.graph.ranks})"


def schedule_of(program, orders=True, rank=None):
    """Without `orders` nothing orders lanes between two repetitions."""
    units = [plan(part) for part in program.parts]
    return tw.Schedule.build(write, program.graph.ranks, program, units, orders, rank=rank)


def write(b, program, units, orders):
    graph = program.graph
    rng = random.Random(graph.seed + 2 + b.rank)
    arrays = [
        b.array(f"A{a}", shape, "i8", owned=graph.owned(a, b.rank), storage=slice(None))
        for a, shape in enumerate(graph.shapes)
    ]
    lanes = [b.lane() for _ in range(graph.lanes[b.rank])]
    section(b, lanes, arrays, rng, units[0][b.rank], False)
    meet(lanes)
    with b.repeat():
        section(b, lanes, arrays, rng, units[1][b.rank], orders)
    meet(lanes)
    section(b, lanes, arrays, rng, units[2][b.rank], False)


def meet(lanes):
    """What follows in any lane is behind what all lanes have done."""
    signals = [lane.signal() for lane in lanes] if len(lanes) > 1 else []
    for lane in lanes:
        for signal in signals:
            if signal.lane is not lane:
                lane.await_signal(signal)


def section(b, lanes, arrays, rng, units, repeats):
    """The steps of a part; where it repeats, a step waits for those of the repetition before that it conflicts with."""
    at, of_tag = [], {}
    for unit in units:  # one lane posts a message and waits for it
        lane = rng.randrange(len(lanes))
        if unit.message is not None:
            lane = of_tag.setdefault(unit.message, lane)
        at.append(lane)
    first = [lane._count for lane in lanes]
    counts = [first[lane] + at[: k + 1].count(lane) for k, lane in enumerate(at)]
    messages = {}

    def region(r):
        return arrays[r[0]][tuple(slice(l, h) for l, h in r[1])]

    for k, unit in enumerate(units):
        mine = lanes[at[k]]
        for before in (0, 1) if repeats else (0,):
            latest = {}
            for other, count in enumerate(counts):
                if at[other] != at[k] and (before or other < k) and unit.conflicts(units[other]):
                    latest[at[other]] = max(count, latest.get(at[other], 0))
            for lane, count in latest.items():
                mine.await_signal(Signal(lanes[lane], count), before=before)
        op, *rest = unit.step
        if op == "task":
            number, _, function, reads, writes = rest[0]
            mine.task(function, list(map(region, reads)), list(map(region, writes)), 1.0, number=number)
        else:
            peer, where, tag = rest
            if tag not in messages:
                messages[tag] = (b.receive if unit.writes else b.send)(peer, region(where), tag)
            getattr(mine, op)(messages[tag])
        if len(lanes) > 1:
            mine.signal()


def run_on(context, program, schedule, times):
    """Run it on this rank; where what the rank owns differs from the sequential list's, as text, else None."""
    graph = program.graph
    whole, mine = graph.initial(), {}
    for a, shape in enumerate(graph.shapes):
        mine[f"A{a}"] = np.full(shape, -1)
        owned = graph.owned(a, context.rank)
        mine[f"A{a}"][owned] = whole[a][owned]
    schedule.run(context=context, times=times, **mine)
    for a, (found, right) in enumerate(zip(mine.values(), program.sequential(times), strict=True)):
        owned = graph.owned(a, context.rank)
        if not np.array_equal(found[owned], right[owned]):
            return f"{program}, {times} times, rank {context.rank}, A{a}{owned}: {found[owned]}, not {right[owned]}"
    return None
