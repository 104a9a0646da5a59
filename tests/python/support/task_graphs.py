"""Random task graphs: a sequential list of tasks on regions of arrays, each task on some rank, and a generator that
writes the schedules for it: messages for what is elsewhere, receives posted early, waits for sends late, several lanes.
"""

import itertools
import random

import numpy as np

import tilewave as tw

WEIGHT, MODULUS = 7, 100_003


def mixer(reads, salt):
    """A task that writes values which depend on all elements of what it reads, and on their places."""

    def mix(*views):
        total = salt
        for view in views[:reads]:
            flat = view.ravel()
            total = (total * WEIGHT + int((flat * (np.arange(flat.size) % 13 + 1)).sum())) % MODULUS
        for number, view in enumerate(views[reads:]):
            view[...] = ((np.arange(view.size) * (number + 3) + total) % MODULUS).reshape(view.shape)

    mix.__name__ = f"mix_{reads}_{salt}"
    return mix


MIXERS = {(reads, salt): mixer(reads, salt) for reads in range(4) for salt in range(3)}


def box_points(box):
    return itertools.product(*(range(lo, hi) for lo, hi in box))


def overlap(a, b):
    return a[0] == b[0] and all(max(l, m) < min(h, g) for (l, h), (m, g) in zip(a[1], b[1], strict=True))


class Graph:
    """The program: arrays, who owns them, tasks in order."""

    def __init__(self, seed, ranks, tasks=None, lanes=(1, 3)):
        rng = self.rng = random.Random(seed)
        self.seed, self.ranks = seed, ranks
        self.shapes = [tuple(rng.randint(1, 9) for _ in range(rng.choice([1, 1, 2]))) for _ in range(rng.randint(1, 3))]
        self.separate = [False for _ in self.shapes]
        self.cuts = [
            [0, *sorted(rng.randint(0, shape[0]) for _ in range(ranks - 1)), shape[0]] for shape in self.shapes
        ]
        self.lanes = [rng.randint(*lanes) for _ in range(ranks)]
        self.tasks = []
        for number in range(rng.randint(1, 12) if tasks is None else tasks):
            writes = []
            for _ in range(rng.randint(1, 2)):
                region = self.region()
                if not any(overlap(region, other) for other in writes):
                    writes.append(region)
            reads = [self.region() for _ in range(rng.randint(0, 2))]
            if rng.random() < 0.4:
                reads.append(rng.choice(writes))  # updated
            function = MIXERS[len(reads), rng.randrange(3)]
            self.tasks.append((2 * number + rng.randrange(2), rng.randrange(ranks), function, reads, writes))

    def region(self):
        a = self.rng.randrange(len(self.shapes))
        box = []
        for extent in self.shapes[a]:
            lo = self.rng.randrange(extent)
            box.append((lo, self.rng.randint(lo + 1, min(extent, lo + 4))))
        return a, tuple(box)

    def initial(self):
        """The whole arrays before the run."""
        values = np.random.default_rng(self.seed)
        return [values.integers(0, MODULUS, shape) for shape in self.shapes]

    def sequential(self):
        """The whole arrays after the tasks, one after another."""
        arrays = self.initial()
        for _, _, function, reads, writes in self.tasks:
            function(*(arrays[a][tuple(slice(l, h) for l, h in box)] for a, box in (*reads, *writes)))
        return arrays

    def owner(self, a, point):
        return max(r for r in range(self.ranks) if self.cuts[a][r] <= point[0] < self.cuts[a][r + 1])

    def owned(self, a, rank):
        return slice(self.cuts[a][rank], self.cuts[a][rank + 1])

    def __str__(self):
        return f"Graph({self.seed}, {self.ranks})"


class Unit:
    """A step, with what it touches: to move it among others, and to order lanes."""

    def __init__(self, step, reads=(), writes=(), message=None):
        self.step, self.reads, self.writes, self.message = step, list(reads), list(writes), message

    def conflicts(self, other):
        if self.message is not None and self.message == other.message:
            return True
        return any(
            overlap(a, b)
            for mine, theirs in ((self.writes, other.writes), (self.writes, other.reads), (self.reads, other.writes))
            for a in mine
            for b in theirs
        )


def plan(graph):
    """Of each rank its units, in an order that all ranks' schedules could be run in one after another."""
    rng, units = random.Random(graph.seed + 1), [[] for _ in range(graph.ranks)]
    holders = {  # of each element the ranks that have its present value
        (a, point): {graph.owner(a, point)}
        for a, shape in enumerate(graph.shapes)
        for point in box_points([(0, n) for n in shape])
    }
    count = itertools.count()

    def bring(rank, a, box):
        points = list(box_points(box))
        sources = set.intersection(*(holders[a, p] for p in points))
        if rank in sources:
            return
        # Nothing is brought twice: each message is needed.
        if sources and not any(rank in holders[a, p] for p in points):
            pieces = [(rng.choice(sorted(sources)), box)]
        else:
            pieces = [
                (rng.choice(sorted(holders[a, p])), tuple((x, x + 1) for x in p))
                for p in points
                if rank not in holders[a, p]
            ]
        for source, piece in pieces:
            tag, region = next(count), (a, piece)
            units[source] += [
                Unit(("pack", rank, region, tag), [region], message=tag),
                Unit(("post_send", rank, region, tag), [region], message=tag),
                Unit(("wait", rank, region, tag), [region], message=tag),
            ]
            units[rank] += [
                Unit(("post_recv", source, region, tag), [], [region], message=tag),
                Unit(("wait", source, region, tag), [], [region], message=tag),
                Unit(("unpack", source, region, tag), [], [region], message=tag),
            ]
            for p in box_points(piece):
                holders[a, p].add(rank)

    for task in graph.tasks:
        _, rank, _, reads, writes = task
        for a, box in reads:
            bring(rank, a, box)
        units[rank].append(Unit(("task", task), reads, writes))
        for a, box in writes:
            for p in box_points(box):
                holders[a, p] = {rank}
    for (a, p), ranks in list(holders.items()):
        if (home := graph.owner(a, p)) not in ranks:
            bring(home, a, tuple((x, x + 1) for x in p))
    for mine in units:
        overlapped(rng, mine)
    return units


def overlapped(rng, units):
    """Post receives earlier and wait for sends later, where nothing between touches the region."""
    for i in range(len(units)):
        early = units[i].step[0] == "post_recv"
        while early and i > 0 and not units[i].conflicts(units[i - 1]) and rng.random() < 0.8:
            units[i - 1], units[i] = units[i], units[i - 1]
            i -= 1
    for i in range(len(units) - 1, -1, -1):
        late = units[i].step[0] == "wait" and units[i].reads
        while late and i + 1 < len(units) and not units[i].conflicts(units[i + 1]) and rng.random() < 0.8:
            units[i + 1], units[i] = units[i], units[i + 1]
            i += 1


def write(b, graph, units):
    """The generator: the steps of one rank."""
    rng = random.Random(graph.seed + 2 + b.rank)
    arrays = [
        b.array(f"A{a}", shape, "i8", owned=graph.owned(a, b.rank), storage=slice(None))
        for a, shape in enumerate(graph.shapes)
    ]

    def region(r):
        return arrays[r[0]][tuple(slice(l, h) for l, h in r[1])]

    lanes = [b.lane() for _ in range(graph.lanes[b.rank])]
    messages, done = {}, []  # done: (unit, lane, its signal)
    for unit in units[b.rank]:
        lane = rng.randrange(len(lanes))
        # By other lane, the last signal that is awaited.
        latest = {there: signal for before, there, signal in done if there != lane and unit.conflicts(before)}
        for signal in latest.values():
            lanes[lane].await_signal(signal)
        op, *rest = unit.step
        if op == "task":
            number, _, function, reads, writes = rest[0]
            lanes[lane].task(function, list(map(region, reads)), list(map(region, writes)), 1.0, number=number)
        else:
            peer, where, tag = rest
            if tag not in messages:
                make = b.receive if unit.writes else b.send
                messages[tag] = make(peer, region(where), tag)
            getattr(lanes[lane], op)(messages[tag])
        done.append((unit, lane, lanes[lane].signal() if len(lanes) > 1 else None))


def schedule_of(graph, rank=None):
    """The schedules that compute a graph."""
    return tw.Schedule.build(write, graph.ranks, graph, plan(graph), rank=rank)


def run_on(context, graph, schedule):
    """Run it on this rank; the rank's arrays afterwards, of which it owns a part."""
    whole, mine = graph.initial(), {}
    for a, shape in enumerate(graph.shapes):
        mine[f"A{a}"] = np.full(shape, -1)
        owned = graph.owned(a, context.rank)
        mine[f"A{a}"][owned] = whole[a][owned]
    schedule.run(context=context, **mine)
    return list(mine.values())


def wrong(graph, rank, arrays):
    """Where what the rank owns differs from the sequential list's, as text; else None."""
    for a, (found, right) in enumerate(zip(arrays, graph.sequential(), strict=True)):
        owned = graph.owned(a, rank)
        if not np.array_equal(found[owned], right[owned]):
            return f"rank {rank}, A{a}{owned}: {found[owned]} where {right[owned]} is right"
    return None
