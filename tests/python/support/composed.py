"""Random schedules made of schedules: task graphs, compiled nests in a pipeline over the ranks, reductions by patterns,
appended to one another on mapped lanes, one of them in a block that repeats; more lanes than threads.
"""

import copy
import random

import numpy as np
import task_graphs
from task_graphs import MODULUS, Graph, plan

import tilewave as tw
import itertools

APART = 10_000  # numbers and tags of one section


@tw.nest
def along_one(i, u):
    u[i] = (2 * u[i - 1] + u[i]) % 100_003


@tw.nest
def along_two(i, j, u):
    u[i, j] = (2 * u[i - 1, j] + 3 * u[i, j - 1] + u[i, j]) % 100_003


def summed(value, out):
    out[...] = (value.sum() + np.arange(out.size)).reshape(out.shape) % MODULUS


def added(value, before, after):
    after[...] = (before + value.sum()) % MODULUS


class Tasks:
    """Tasks of a graph; `of` has the arrays."""

    def __init__(self, of, seed, lanes):
        self.graph = copy.copy(of)
        self.graph.seed, self.graph.rng, made = seed, random.Random(seed), []
        for number in range(self.graph.rng.randint(1, 4)):
            rng = self.graph.rng
            writes, reads = [self.graph.region()], [self.graph.region() for _ in range(rng.randint(0, 2))]
            if rng.random() < 0.4:
                reads.append(writes[0])
            function = task_graphs.MIXERS[len(reads), rng.randrange(3)]
            made.append((2 * number + rng.randrange(2), rng.randrange(of.ranks), function, reads, writes))
        self.graph.tasks, self.graph.lanes = made, [lanes] * of.ranks
        self.units = plan(self.graph)

    def write(self, b):
        task_graphs.write(b, self.graph, self.units)

    def sequential(self, arrays):
        for _, _, function, reads, writes in self.graph.tasks:
            function(*(arrays[a][tuple(slice(l, h) for l, h in box)] for a, box in (*reads, *writes)))


class Pipeline:
    """A nest with dependences along all loops, in pieces along the last one, from rank to rank."""

    def __init__(self, of, seed, lanes):
        rng = random.Random(seed)
        self.graph, self.array = of, rng.randrange(len(of.shapes))
        self.pieces = rng.randint(1, 3)

    def write(self, b):
        of, shape = self.graph, self.graph.shapes[self.array]
        A = b.array(f"A{self.array}", shape, "i8", owned=of.owned(self.array, b.rank), storage=slice(None))
        lane, two = b.lane(), len(shape) == 2
        work = b.nest(along_two if two else along_one, {"u": A}, number=0)
        lo, hi = max(A.owned.lo[0], 1), A.owned.hi[0]
        if A.owned.lo[0] >= hi:
            return
        has = [r for r in range(b.ranks) if of.cuts[self.array][r] < of.cuts[self.array][r + 1]]
        before, behind = [r for r in has if r < b.rank], [r for r in has if r > b.rank]
        ends = [1 + (shape[1] - 1) * k // self.pieces for k in range(self.pieces + 1)] if two else [0, 1]
        if two and shape[1] < 2:
            return
        for piece, (first, end) in enumerate(itertools.pairwise(ends)):
            part = (slice(first, end),) if two else ()
            if first == end:
                continue
            if before:
                m = b.receive(before[-1], A[(lo - 1, *part)], piece)
                lane.post_recv(m)
                lane.wait(m)
                lane.unpack(m)
            if lo < hi:
                lane.compute(work, slice(lo, hi), *part)
            if behind:  # also of a rank that has row 0 alone, and computes nothing
                self.hand_on(b, lane, A, hi, part, behind[0], piece)

    @staticmethod
    def hand_on(b, lane, A, hi, part, peer, piece):
        m = b.send(peer, A[(hi - 1, *part)], piece)
        lane.pack(m)
        lane.post_send(m)
        lane.wait(m)

    def sequential(self, arrays):
        u = arrays[self.array]
        for point in np.ndindex(u.shape):
            if min(point) > 0:
                i, *j = point
                below = 3 * u[i, j[0] - 1] if j else 0
                u[point] = (2 * u[(i - 1, *j)] + below + u[point]) % MODULUS


class Summed:
    """Each rank sums what it owns; a reduce and a broadcast, or a multi-reduce and a spread; all add the result."""

    def __init__(self, of, seed, lanes):
        rng = random.Random(seed)
        self.graph, self.array, self.number = of, rng.randrange(len(of.shapes)), seed
        self.width, self.parts = rng.randint(1, 6), rng.random() < 0.5
        self.root, self.op = rng.randrange(of.ranks), rng.choice(["sum", "max", "min"])
        self.algorithm = rng.choice(["ring", "direct"] if self.parts else ["ring", "tree"])
        self.chunk, self.tag = rng.choice([8, 16, 1000]), rng.randrange(3)
        cuts = [0, *sorted(rng.randint(0, self.width) for _ in range(of.ranks - 1)), self.width]
        self.columns = [h - l for l, h in itertools.pairwise(cuts)]

    def declare(self, b):
        of = self.graph
        A = b.array(
            f"A{self.array}", of.shapes[self.array], "i8", owned=of.owned(self.array, b.rank), storage=slice(None)
        )
        return A, *self.own(b)

    def own(self, b):
        S = b.array(f"S{self.number}", self.width, "i8", separate=True, combine=self.op)
        R = b.array(f"R{self.number}", self.width, "i8", separate=True)
        Q = b.array(f"Q{self.number}", self.width, "i8", separate=True)
        return S, R, Q

    def write(self, b):
        A, S, R, Q = self.declare(b)
        lane, n = b.lane(), b.ranks
        lane.task(summed, [A.owned], [S[:]], number=b.rank)
        choices = {"chunk_bytes": self.chunk, "lane": lane}
        if self.parts:
            b.pattern(
                "multi_reduce", S[:], R, columns=self.columns, number=n, tag=1, algorithm=self.algorithm, **choices
            )
            b.pattern("spread", R[:], Q, columns=self.columns, number=n + 1, tag=2, algorithm="ring", **choices)
        else:
            b.pattern("reduce", S[:], Q, root=self.root, number=n, tag=1, algorithm=self.algorithm, **choices)
            b.pattern("broadcast", Q[:], root=self.root, number=n + 1, tag=2, algorithm="rounds", **choices)
        lane.task(added, [Q[:], A.owned], [A.owned], number=n + 2 + b.rank)

    def sequential(self, arrays):
        A = arrays[self.array]
        owned = [A[self.graph.owned(self.array, r)] for r in range(self.graph.ranks)]
        parts = []
        for value in owned:
            parts.append(np.empty(self.width, np.int64))
            summed(value, parts[-1])
        total = {"sum": np.add, "max": np.maximum, "min": np.minimum}[self.op].reduce(parts)
        for value in owned:
            added(total, value, value)


class Composed:
    """Sections, one of which may be a block that repeats."""

    def __init__(self, seed, ranks):
        rng = random.Random(seed)
        self.graph, self.seed, self.ranks = Graph(seed, ranks, tasks=0), seed, ranks
        self.lanes, count = rng.randint(1, 4), rng.randint(1, 5)
        self.block = rng.randrange(count) if rng.random() < 0.6 else None
        self.sections, self.order = [], []
        for k in range(count):
            repeats = k == self.block
            kinds = [Tasks, Pipeline] if repeats else [Tasks, Pipeline, Summed]
            lanes = 1 if repeats else rng.randint(1, self.lanes)
            self.sections.append(rng.choice(kinds)(self.graph, 100 * seed + k, lanes))
            self.order.append(rng.sample(range(self.lanes), self.lanes))  # which lanes go on with those of the section

    def sequential(self, times):
        arrays = self.graph.initial()
        for k, section in enumerate(self.sections):
            for _ in range(times if k == self.block else 1):
                section.sequential(arrays)
        return arrays

    def __str__(self):
        return f"Composed({self.seed}, {self.ranks})"


def schedule_of(program):
    parts = [tw.Schedule.build(lambda b, s=section: s.write(b), program.ranks) for section in program.sections]
    return tw.Schedule.build(write, program.ranks, program, parts)


def write(b, program, parts):
    of = program.graph
    for a, shape in enumerate(of.shapes):
        b.array(f"A{a}", shape, "i8", owned=of.owned(a, b.rank), storage=slice(None))
    for section in program.sections:
        if isinstance(section, Summed):
            section.own(b)
    lanes = [b.lane() for _ in range(program.lanes)]
    for k, (part, order) in enumerate(zip(parts, program.order, strict=True)):
        taken = [lanes[number] for number in order[: len(part._cores[b.rank].lanes)]]
        at = {"number": APART * k, "tag": 100 * k, "lanes": taken}
        if k == program.block:
            with b.repeat():
                b.append(part, **at)
        else:
            b.append(part, **at)


def run_on(context, program, schedule, times):
    """Run it on this rank; where what the rank owns differs from the sequential list's, as text, else None."""
    of = program.graph
    whole, mine = of.initial(), {}
    for name, array in zip(schedule.arrays, schedule._cores[context.rank].arrays, strict=True):
        mine[name] = np.full(array.storage[1], -1)
        if name.startswith("A"):
            owned = of.owned(int(name[1:]), context.rank)
            mine[name][owned] = whole[int(name[1:])][owned]
    schedule.run(context=context, times=times, **mine)
    for a, right in enumerate(program.sequential(times)):
        owned, found = of.owned(a, context.rank), mine[f"A{a}"]
        if not np.array_equal(found[owned], right[owned]):
            return f"{program}, {times} times, rank {context.rank}, A{a}{owned}: {found[owned]}, not {right[owned]}"
    return None
