"""Random reductions among tasks: separate arrays whose values on some ranks are combined in a random order, by random
trees of messages, with tasks before and behind.
"""

import random

import numpy as np

import tilewave as tw

OPS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


def maker(salt):
    def make(out):
        out[...] = ((np.arange(out.size) + 2) * (salt + 3) % 17 - 5).reshape(out.shape) + 0.5

    make.__name__ = f"make_{salt}"
    return make


def doubled(value, out):
    out[...] = 2 * value + 1


MAKERS = [maker(salt) for salt in range(12)]


class Reduction:
    """Rounds: in each some ranks' values of S are combined in an order on a root, which has the result in R."""

    def __init__(self, seed, ranks, rounds=None):
        rng = random.Random(seed)
        self.seed, self.ranks = seed, ranks
        self.op = rng.choice(sorted(OPS))
        self.shape = tuple(rng.randint(1, 5) for _ in range(rng.choice([1, 2])))
        self.lanes = rng.randint(1, 3)
        self.rounds = []
        for _ in range(rounds or rng.randint(1, 3)):
            order = [r for r in range(ranks) if rng.random() < 0.8] or [rng.randrange(ranks)]
            rng.shuffle(order)
            box = tuple(sorted(rng.sample(range(n + 1), 2)) for n in self.shape)
            salts = [rng.randrange(len(MAKERS)) for _ in range(ranks)]
            tree = self.tree(rng, order)
            root = tree[0] if isinstance(tree, tuple) else tree
            self.rounds.append((order, tree, root, box, salts))

    def tree(self, rng, order):
        """(rank, left, right): the rank combines what two trees of ranks give; a leaf is a rank with its own values.

        The rank is one of those below, so that each rank combines its own values with others'.
        """
        if len(order) == 1:
            return order[0]
        cut = rng.randint(1, len(order) - 1)
        left, right = self.tree(rng, order[:cut]), self.tree(rng, order[cut:])
        return rng.choice([self.root(left), self.root(right)]), left, right

    @staticmethod
    def root(tree):
        return tree[0] if isinstance(tree, tuple) else tree

    def sequential(self):
        """By round: R on the root after the task that follows the combination."""
        found = []
        for order, _, root, box, salts in self.rounds:
            values = []
            for r in order:
                S = np.zeros(self.shape)
                MAKERS[salts[r]](S)
                values.append(S[tuple(slice(l, h) for l, h in box)])
            total = values[0]
            for value in values[1:]:
                total = OPS[self.op](total, value)
            found.append((root, box, total))
        return found

    def __str__(self):
        return f"Reduction({self.seed}, {self.ranks})"


def write(b, program):
    lanes = [b.lane() for _ in range(program.lanes)]
    for k, (order, tree, root, box, salts) in enumerate(program.rounds):
        S = b.array(f"S{k}", program.shape, separate=True, combine=program.op)
        R = b.array(f"R{k}", program.shape, separate=True)
        T = b.array(f"T{k}", program.shape, separate=True)
        cut = tuple(slice(l, h) for l, h in box)
        lane, other = lanes[k % len(lanes)], lanes[(k + 1) % len(lanes)]
        lane.task(MAKERS[salts[b.rank]], [], [S[:]], number=(3 * k) * program.ranks + b.rank)
        if b.rank == root:
            b.result(R[cut], S, order, number=(3 * k + 1) * program.ranks)
        last = combined(b, lane, tree, S[cut], 10 * k)
        if b.rank == root:
            lane.copy(S[cut], R) if isinstance(last, type(S[cut])) else lane.unpack(last, into=R)
            done = lane.signal()
            if other is not lane:
                other.await_signal(done)
            other.task(doubled, [R[cut]], [T[cut]], number=(3 * k + 2) * program.ranks)


def combined(b, lane, tree, region, tag):
    """Where the values of a tree are, on the rank that has them: its region, or a message's buffer; else None."""
    if not isinstance(tree, tuple):
        return region if tree == b.rank else None
    rank, *sides = tree
    roots = [Reduction.root(side) for side in sides]
    have = [combined(b, lane, side, region, tag) for side in sides]
    if b.rank not in roots:
        return None
    if b.rank != rank:  # hand it over
        mine = have[roots.index(b.rank)]
        if isinstance(mine, type(region)):
            m = b.send(rank, region, tag)
            lane.pack(m)
        else:
            m = b.send(rank, region, tag, buffer=b._messages[mine.number].buffer)
        lane.post_send(m)
        lane.wait(m)
        return None
    side = 1 - roots.index(rank)
    m = b.receive(roots[side], region, tag, buffer=b.buffer())
    lane.post_recv(m)
    lane.wait(m)
    have[side] = m
    lane.combine(*have)
    return have[1] if isinstance(have[1], type(m)) else have[0]


def schedule_of(program, rank=None):
    return tw.Schedule.build(write, program.ranks, program, rank=rank)


def run_on(context, program, schedule):
    """Run it on this rank; where a result differs from the sequential one, as text, else None."""
    mine = {f"{name}{k}": np.zeros(program.shape) for k in range(len(program.rounds)) for name in "SRT"}
    schedule.run(context=context, **mine)
    for k, (root, box, right) in enumerate(program.sequential()):
        cut = tuple(slice(l, h) for l, h in box)
        if context.rank == root and not np.array_equal(mine[f"R{k}"][cut], right):
            return f"{program}, round {k}: {mine[f'R{k}'][cut]} where {right} is right"
        if context.rank == root and not np.array_equal(mine[f"T{k}"][cut], 2 * right + 1):
            return f"{program}, round {k}: T {mine[f'T{k}'][cut]}"
    return None
