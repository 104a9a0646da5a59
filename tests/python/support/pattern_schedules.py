"""Random problems and plans of patterns, with the schedules of all ranks."""

import random

from tilewave import _core

KINDS = {
    "broadcast": ("tree", "ring", "rounds", "direct"),
    "reduce": ("tree", "ring"),
    "spread": ("ring", "direct"),
    "multi_reduce": ("ring", "direct"),
}
MACHINE = dict(latency_s=4e-6, byte_s=1e-9, chunk_s=1e-6)


def machine():
    m = _core.Machine()
    m.latency_s, m.byte_s, m.chunk_s = MACHINE["latency_s"], MACHINE["byte_s"], MACHINE["chunk_s"]
    return m


class Case:
    """Every choice that makes a pattern's schedules, at random."""

    def __init__(self, seed):
        pick = random.Random(seed)
        self.seed = seed
        self.kind = pick.choice(tuple(KINDS))
        self.ranks = pick.randint(1, 9)
        self.root = pick.randrange(self.ranks) if self.kind in ("broadcast", "reduce") else 0
        self.rows = pick.choice((0, 1, pick.randint(2, 12)))
        self.item = pick.choice((1, 4, 8, 16))
        self.block = 0
        if self.kind in ("broadcast", "reduce"):
            self.columns = [pick.choice((0, 1, pick.randint(2, 14)))]
        elif pick.random() < 0.5:
            self.columns = [pick.choice((0, 1, pick.randint(2, 6))) for _ in range(self.ranks)]
        else:
            self.block = pick.randint(1, 4)
            total = pick.randint(0, 4 * self.ranks * self.block)
            self.columns = [_core.dealt_columns(total, self.block, self.ranks, r) for r in range(self.ranks)]
        self.algorithm = pick.choice(KINDS[self.kind])
        self.chunk_bytes = pick.choice((1, pick.randint(2, 4 * self.item), pick.randint(1, 60 * self.item), 1 << 20))
        self.buffers = pick.randint(2, 6)
        self.gaps = [(pick.choice((0, 1, 3)), pick.choice((0, 2))) for _ in range(self.ranks)]

    def __str__(self):
        return str(vars(self))

    def problem(self):
        return _core.PatternProblem(self.kind, self.ranks, self.rows, self.columns, self.item, self.root, self.block)

    def plan(self):
        return _core.PatternPlan(self.algorithm, self.chunk_bytes, self.buffers)

    def widths(self, rank):
        """Columns of what a rank gives and of what it gets."""
        part, whole = self.columns[rank % len(self.columns)], sum(self.columns)
        return {"spread": (part, whole), "multi_reduce": (whole, part)}.get(self.kind, (whole, whole))

    def schedule(self, rank):
        strides = [(w + gap) * self.item for w, gap in zip(self.widths(rank), self.gaps[rank])]
        return _core.pattern_schedule(self.problem(), self.plan(), rank, *strides)

    def schedules(self):
        return [self.schedule(r) for r in range(self.ranks)]
