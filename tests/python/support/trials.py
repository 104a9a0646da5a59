"""Schedules run on symbolic values, in one thread, in orders that ranks, lanes and the transport could take: an opinion
on a schedule that owes nothing to the checker. It knows MPI's rules: what is in flight is not touched, every request is
waited for once, both ends of a message have one size, sends may be synchronous.
"""

import itertools
import random
from types import SimpleNamespace

AT_THE_END = 2**63 - 1  # Result::at_the_end


class Wrong(Exception):
    """What goes wrong in one order."""


def points(box):
    return itertools.product(*map(range, *box))


def folded(point, period):
    return tuple(x % n if n else x for x, n in zip(point, period, strict=True)) if period else point


def named(things, k):
    if not 0 <= k < len(things):
        raise Wrong(f"number {k} of {len(things)}")
    return things[k]


class Array:
    """One array as one rank holds it; `memory` is its own, or a number of -1000 and below that others have, too."""

    def __init__(self, number, of):
        shared = of.view.memory >= 0
        self.memory, self.shift = (-1000 - of.view.memory, of.view.shift) if shared else (number, None)
        (self.lo, self.hi), self.owned, self.item, self.lacks = of.storage, of.owned, of.item_bytes, of.lacks
        self.separate, self.whole, self.times, self.period = of.separate, of.whole, of.time_buffers, of.period
        self.stride, below = list(of.stride), 1
        for l, h in zip(reversed(self.lo), reversed(self.hi), strict=True) if not self.stride else ():
            self.stride.insert(0, below)
            below *= max(0, h - l)

    def address(self, point):
        """Of an element in the array's memory."""
        point = tuple(0 if self.lacks >> k & 1 else x for k, x in enumerate(point))
        if self.whole:
            return point
        if not all(l <= x < h for l, x, h in zip(self.lo, point, self.hi, strict=True)):
            raise Wrong(f"{point} is outside {self.lo} to {self.hi}")
        away = [x + b if self.shift else x - l for x, l, b in zip(point, self.lo, self.shift or self.lo, strict=True)]
        if self.times:
            away[0] = point[0] % self.times
        return sum(x * s for x, s in zip(away, self.stride, strict=True))

    def held(self):
        """The elements that the rank owns."""
        lo, hi = (tuple(map(f, a, b)) for f, a, b in ((max, self.lo, self.owned[0]), (min, self.hi, self.owned[1])))
        return points((lo, hi)) if lo else ()

    def first(self, a, rank, point):
        """The value of an element before the run."""
        time = bool(self.times)
        return hash((1, rank if self.separate else -1, a, *folded(point[time:], self.period[time:])))


class Part:
    """One rank's schedule, unpacked. A place is (memory, address), or (~buffer, byte)."""

    def __init__(self, core):
        self.rank, self.buffers = core.rank, core.buffers
        self.lanes = [[(s.op, s.item, s.count) for s in lane] for lane in core.lanes]
        self.arrays = [Array(number, a) for number, a in enumerate(core.arrays)]
        self.messages, self.tiles, self.works, self.results = core.messages, core.tiles, core.works, core.results
        self.known = {}

    def once(self, make, k):
        if (make.__name__, k) not in self.known:
            self.known[make.__name__, k] = make(k)
        return self.known[make.__name__, k]

    def region(self, a, box):
        array = named(self.arrays, a)
        return [(array.memory, array.address(p)) for p in points(box)]

    def in_array(self, k):
        """The places of a message's region."""
        return self.region(self.messages[k].array, self.messages[k].region)

    def in_flight(self, k):
        """What the transport sees: one run of a buffer, or of an array."""
        m = self.messages[k]
        array = named(self.arrays, m.array)
        if m.pieces:
            parts = range(k + 1, k + 1 + m.pieces)
            return [(~m.buffer, byte) for part in parts for _, byte in self.in_flight(part)]
        if m.bytes < 0 or (m.buffer != -1 and m.at + m.bytes > named(self.buffers, m.buffer)):
            raise Wrong(f"{m.bytes} bytes")
        if m.buffer != -1:
            return [(~m.buffer, byte) for byte in range(m.at, m.at + m.bytes, array.item)]
        region = self.in_array(k)
        return [(array.memory, region[0][1] + i) for i in range(m.bytes // array.item)] if region else []

    def staged(self, k):
        """The places of a message's region in its buffer."""
        if self.messages[k].buffer < 0:
            raise Wrong("a message without a buffer")
        return self.in_flight(k)

    def computed(self, t):
        """Of a tile (what stands for it, places read, places written), point by point."""
        tile = named(self.tiles, t)
        work = named(self.works, tile.work)
        if (task := work.task) is not None:
            reads, writes = ([p for x in of for p in self.region(x.array, x.box)] for of in (task.reads, task.writes))
            return [((work.number,), reads, writes)]
        nest, order, bounds = work.nest, work.nest.order, work.nest.bounds
        writes = [(p.array, p.offset) for p in nest.places if p.writes]
        reads = [(p.array, p.offset) for p in nest.places if not p.writes]
        for p in nest.places:
            if p.writes and p.keeps:  # of a time buffer, the value of the step before
                reads.append((p.array, (p.offset[0] - bool(self.arrays[p.array].times), *p.offset[1:])))

        def dot(row, z):
            return sum(c * x for c, x in zip(row, z, strict=True))

        def around(z, accesses):
            return [
                (self.arrays[a].memory, self.arrays[a].address(tuple(x + o for x, o in zip(z, offset, strict=True))))
                for a, offset in accesses
            ]

        return [
            ((work.number, *folded(z, nest.period)), around(z, reads), around(z, writes))
            for z in sorted(points(tile.box), key=lambda z: [dot(row, z) for row in order] if order else z)
            if all(dot(row, z) + more >= 0 for row, more in bounds)
        ]

    def touched(self, step):
        """The places that a step reads and writes."""
        op, k, count = step
        if op == "compute":
            return [{place for point in self.once(self.computed, k) for place in point[1 + n]} for n in (0, 1)]
        if op in ("post_send", "post_recv"):
            ends = [set(self.once(self.in_flight, k)), set()]
            return ends if op == "post_send" else ends[::-1]
        if op in ("wait", "signal", "await"):
            return set(), set()
        staged, other = set(self.once(self.staged, k)), self.once(self.in_array, k)
        if op == "combine" and count >= 0:
            other = self.once(self.staged, count)
        return (staged, set(other)) if op == "unpack" else (set(other), staged)

    def counts(self):
        """The places whose values at the end are results: what is stated, and what ranks own or tasks write."""
        of_tasks = {x.array for work in self.works if work.task is not None for x in work.task.writes}
        found = [p for r in self.results if r.number == AT_THE_END for p in self.region(r.array, r.region)]
        for a, array in enumerate(self.arrays):
            if not array.whole and (not array.separate or a in of_tasks):
                found += [(array.memory, array.address(p)) for p in array.held()]
        return found


class Trial:
    """One order of everything. `run` gives the values that count, or raises Wrong."""

    def __init__(self, parts, seed):
        self.parts, self.rng = parts, random.Random(seed)
        self.eager = (0.0, 1.0, 0.5)[seed % 3]  # of sends, those that are over once their bytes are copied
        self.memory, self.busy, self.requests, self.under_way, self.unmatched = [], {}, {}, [], {}
        for part in parts:
            self.memory.append({})
            for a, array in enumerate(part.arrays):
                if not array.whole:
                    held = {(array.memory, array.address(p)): array.first(a, part.rank, p) for p in array.held()}
                    self.memory[-1] |= held
        self.lanes = {(r, l): lane for r, part in enumerate(parts) for l, lane in enumerate(part.lanes)}
        self.next, self.counters = dict.fromkeys(self.lanes, 0), dict.fromkeys(self.lanes, 0)
        self.priority = {actor: self.rng.random() for actor in (*self.lanes, None)} if seed % 2 else None

    def run(self):
        left = list(self.lanes)
        while True:
            left = [actor for actor in left if self.next[actor] < len(self.lanes[actor])]
            able = [actor for actor in left if self.ready(actor[0], *self.lanes[actor][self.next[actor]])]
            self.no_race(able)
            moves = [x for x in self.under_way if x.partner or (x.payload is None and not x.rendezvous)]
            able += [None] * bool(moves)  # the transport
            if not able:
                break
            actor = max(able, key=self.priority.get) if self.priority else self.rng.choice(able)
            if self.priority and self.rng.random() < 0.05:
                self.priority[actor] = self.rng.random()
            if actor is None:
                self.move(self.rng.choice(moves))
            else:
                self.next[actor] += 1
                self.perform(*actor, *self.lanes[actor][self.next[actor] - 1])
        if left or not all(x.waited and x.delivered for x in self.requests.values()):
            raise Wrong(f"lanes {left} wait for ever, or a request is open at the end")
        return [[self.memory[r].get(place) for place in part.results_at] for r, part in enumerate(self.parts)]

    def no_race(self, able):
        """No two lanes of a rank that could go on now touch a place that one of them writes."""
        for (r, l), (s, m) in itertools.combinations(able, 2):
            if r == s:
                part = self.parts[r]
                steps = [self.lanes[actor][self.next[actor]] for actor in ((r, l), (s, m))]
                (reads, writes), (others, also) = (part.once(part.touched, step) for step in steps)
                if writes & (others | also) or also & reads:
                    raise Wrong("two lanes race")

    def ready(self, r, op, item, count):
        if op == "await":
            return self.counters.get((r, item), count) >= count
        if op == "wait" and (x := self.requests.get((r, item))) is not None:
            return x.delivered or (x.send and x.payload is not None and not x.rendezvous)
        return True

    def there(self, r, place):
        a, at = place
        return hash((2, a, *at)) if isinstance(at, tuple) else self.memory[r].get(place, hash((3, r, a, at)))

    def read(self, r, place):
        if self.busy.get((r, place), 0) < 0:
            raise Wrong("what is being received is read")
        return self.there(r, place)

    def write(self, r, place, value):
        if self.busy.get((r, place), 0):
            raise Wrong("what is in flight is overwritten")
        self.memory[r][place] = value

    def perform(self, r, lane, op, item, count):
        part = self.parts[r]
        if op == "compute":
            for name, reads, writes in part.once(part.computed, item):
                value = hash((4, *name, *(self.read(r, place) for place in reads)))
                for k, place in enumerate(writes):
                    self.write(r, place, hash((value, k)))
        elif op == "signal":
            self.counters[r, lane] = count
        elif op == "await":
            named(part.lanes, item)
        elif op.startswith("post"):
            self.post(r, named(part.messages, item), item, op == "post_send")
        elif op == "wait":
            self.wait(r, self.requests.get((r, item)))
        else:
            staged, other = part.once(part.staged, item), part.once(part.in_array, item)
            if op == "combine" and count >= 0:
                other = part.once(part.staged, count)
            for a, b in zip(staged, other, strict=False):
                if op == "combine":  # in order, however it is bracketed
                    left, right = (a, b) if count == -1 else (b, a)
                    self.write(r, a, terms(self.read(r, left)) + terms(self.read(r, right)))
                else:
                    here, there = (a, b) if op == "pack" else (b, a)
                    self.write(r, here, self.read(r, there))

    def post(self, r, m, id, send):
        if (r, id) in self.requests or send != m.send:
            raise Wrong("posted twice, or as the other end")
        if not 0 <= m.peer < len(self.parts) or m.peer == r or m.tag < 0:
            raise Wrong("no peer or no tag")
        if not m.pieces:
            self.parts[r].once(self.parts[r].in_array, id)  # lies in its array
        part, rendezvous = self.parts[r], m.synchronous or self.rng.random() >= self.eager
        x = SimpleNamespace(rank=r, send=send, bytes=m.bytes, places=part.once(part.in_flight, id))
        x.rendezvous, x.partner, x.payload, x.delivered, x.waited = rendezvous, None, None, False, False
        self.requests[r, id] = x
        for place in x.places:
            uses = self.busy.get((r, place), 0)
            if uses < 0 or (uses and not send):
                raise Wrong("two messages use one place")
            self.busy[r, place] = uses + 1 if send else -1
        self.under_way += [x] * send
        link = (r, m.peer, m.tag) if send else (m.peer, r, m.tag)
        if not (others := self.unmatched.setdefault((*link, not send), [])):
            self.unmatched.setdefault((*link, send), []).append(x)
            return
        x.partner = others.pop(0)
        x.partner.partner = x
        if x.partner.bytes != x.bytes:
            raise Wrong("sizes differ")

    def move(self, x):
        """What the transport does: copies what a send has, or brings it to where it goes."""
        if x.payload is None:
            x.payload = [self.there(x.rank, place) for place in x.places]
            return
        self.under_way.remove(x)
        x.delivered = x.partner.delivered = True
        self.memory[x.partner.rank].update(zip(x.partner.places, x.payload, strict=False))

    def wait(self, r, x):
        if x is None or x.waited:
            raise Wrong("a wait for what is not open")
        x.waited = True
        for place in x.places:
            self.busy[r, place] = self.busy[r, place] - 1 if x.send else 0


def terms(value):
    return value if isinstance(value, tuple) else (value,)


def outcome(parts, seed):
    """(values that count, None), or (None, what goes wrong), in one order."""
    try:
        return Trial(parts, seed).run(), None
    except Wrong as error:
        return None, str(error)


def unpacked(cores, like=None):
    """The parts of all ranks; with the places that count of other parts."""
    parts = [Part(core) for core in cores]
    for r, part in enumerate(parts):
        part.results_at = part.counts() if like is None else like[r].results_at
    return parts
