"""Every kind of mistake in the schedules of random task graphs is found by the checker, with the words that name it.

A failure prints its seed: `Graph(seed, ranks)`.
"""


import pytest
from mutants import naming
from task_graphs import Graph, overlap, schedule_of

from tilewave import _core

EACH = 40  # mutants of a kind


def steps_of(cores, *ops):
    """(rank, lane, index) of all steps of some kinds."""
    return [
        (r, l, i)
        for r, core in cores.items()
        for l, lane in enumerate(core.lanes)
        for i, step in enumerate(lane)
        if step.op in ops
    ]


def item(cores, place):
    r, l, i = place
    return cores[r].lanes[l][i].item


def edit(core, lane, change):
    lanes = core.lanes
    change(lanes[lane])
    core.lanes = lanes


def pick(rng, places):
    return rng.choice(places) if places else None


def drop_wait(rng, cores):
    if (place := pick(rng, steps_of(cores, "wait"))) is None:
        return None
    r, l, i = place
    edit(cores[r], l, lambda steps: steps.pop(i))
    return r"never waited for|before (it has arrived|anything is there)|while (it|message \d+) is being"


def drop_message(rng, cores):
    """Both ends of a message, with all their steps."""
    if (place := pick(rng, steps_of(cores, "post_send"))) is None:
        return None
    r, number = place[0], item(cores, place)
    m = cores[r].messages[number]
    other = next(k for k, x in enumerate(cores[m.peer].messages) if (x.peer, x.tag, x.send) == (r, m.tag, False))
    for core, of in ((cores[r], number), (cores[m.peer], other)):
        moves = ("post_send", "post_recv", "wait", "pack", "unpack")
        core.lanes = [[s for s in lane if not (s.op in moves and s.item == of)] for lane in core.lanes]
    return r"before (anything is there|it holds the right values)|does not hold"


def one_end(rng, cores):
    """A send that nobody receives."""
    if (place := pick(rng, steps_of(cores, "post_recv"))) is None:
        return None
    r, number = place[0], item(cores, place)
    moves = ("post_recv", "wait", "unpack")
    cores[r].lanes = [[s for s in lane if not (s.op in moves and s.item == number)] for lane in cores[r].lanes]
    return r"posts no receive that meets it|cyclic wait|does not hold|before (anything is there|it holds the right)"


def wrong_tag(rng, cores):
    if (place := pick(rng, steps_of(cores, "post_send"))) is None:
        return None
    r, number = place[0], item(cores, place)
    messages = cores[r].messages
    messages[number].tag += 1_000_000
    cores[r].messages = messages
    return r"posts no (send|receive) that meets it"


def smaller_region(rng, cores):
    """A message carries less than what is read, on both sides."""
    found = []
    for r, core in cores.items():
        for k, m in enumerate(core.messages):
            if m.send and any(h - l > 1 for l, h in zip(*m.region, strict=True)):
                found.append((r, k))
    if not found:
        return None
    r, k = rng.choice(found)
    sent = cores[r].messages[k]
    other = next(n for n, x in enumerate(cores[sent.peer].messages) if (x.peer, x.tag, x.send) == (r, sent.tag, False))
    lo, hi = sent.region
    d = next(d for d in range(len(lo)) if hi[d] - lo[d] > 1)
    less = (lo, (*hi[:d], hi[d] - 1, *hi[d + 1 :]))
    count = 8
    for l, h in zip(*less, strict=True):
        count *= h - l
    for core, number in ((cores[r], k), (cores[sent.peer], other)):
        messages = core.messages
        messages[number].region, messages[number].bytes = less, count
        if messages[number].buffer < 0 and len(lo) > 1:
            return None  # it may be no single run any more
        core.messages = messages
    return r"before (anything is there|it holds the right values)|does not hold"


def early_task(rng, cores):
    """A task stands before the wait for its input."""
    found = []
    for r, l, i in steps_of(cores, "compute"):
        lane, core = cores[r].lanes[l], cores[r]
        task = core.works[core.tiles[lane[i].item].work].task
        reads = [(x.array, tuple(zip(*x.box, strict=True))) for x in task.reads]
        for w in range(i):
            if lane[w].op != "wait" or core.messages[lane[w].item].send:
                continue
            m = core.messages[lane[w].item]
            if any(overlap((m.array, tuple(zip(*m.region, strict=True))), read) for read in reads):
                found.append((r, l, w, i))
    if not found:
        return None
    r, l, w, i = rng.choice(found)
    edit(cores[r], l, lambda steps: steps.insert(w, steps.pop(i)))
    return r"being received|before (anything is there|it holds the right values)|no order after"


def pairs(cores, depend):
    """(rank, lane, earlier, later) of tasks in one lane that depend."""
    found = []
    for r, core in cores.items():
        for l, lane in enumerate(core.lanes):
            tasks = [(i, core.works[core.tiles[s.item].work].task) for i, s in enumerate(lane) if s.op == "compute"]
            found += [(r, l, i, j) for i, a in tasks for j, b in tasks if i < j and depend(a, b)]
    return found


def flow(a, b):
    """The later reads what the earlier writes."""
    return touch(a.writes, b.reads) and not touch(a.reads, a.writes)


def anti(a, b):
    """The later writes what the earlier reads."""
    return touch(a.reads, b.writes)


def touch(some, others):
    boxes = [[(x.array, tuple(zip(*x.box, strict=True))) for x in regions] for regions in (some, others)]
    return any(overlap(a, b) for a in boxes[0] for b in boxes[1])


ORDER = r"before (anything is there|it holds the right values)|does not hold|no order after|being (received|sent)|while"


def swap_tasks(rng, cores, depend=flow):
    if (pair := pick(rng, pairs(cores, depend))) is None:
        return None
    r, l, i, j = pair

    def change(steps):
        steps[i], steps[j] = steps[j], steps[i]

    edit(cores[r], l, change)
    return ORDER


def early_write(rng, cores):
    return swap_tasks(rng, cores, anti)


def swap_numbers(rng, cores):
    """The two works have each other's place in the program."""
    if (pair := pick(rng, pairs(cores, flow))) is None:
        return None
    r, l, i, j = pair
    core = cores[r]
    a, b = (core.tiles[core.lanes[l][k].item].work for k in (i, j))
    works, tiles = core.works, core.tiles
    first, second = works[a].task, works[b].task
    works[a], works[b] = _core.Work(works[a].number, second), _core.Work(works[b].number, first)
    for tile in tiles:
        tile.work = {a: b, b: a}.get(tile.work, tile.work)
    core.works, core.tiles = works, tiles
    return ORDER


def twice(rng, cores):
    if (place := pick(rng, steps_of(cores, "compute"))) is None:
        return None
    r, l, i = place
    edit(cores[r], l, lambda steps: steps.insert(i, steps[i]))
    return r"is computed twice"


def never(rng, cores):
    if (place := pick(rng, steps_of(cores, "compute"))) is None:
        return None
    r, l, i = place
    edit(cores[r], l, lambda steps: steps.pop(i))
    return r"is never computed|" + ORDER


def outside(rng, cores):
    if (place := pick(rng, steps_of(cores, "compute"))) is None:
        return None
    r = place[0]
    core = cores[r]
    works = core.works
    w = core.tiles[item(cores, place)].work
    task = works[w].task
    writes = task.writes
    lo, hi = writes[0].box
    beyond = core.arrays[writes[0].array].storage[1][0] + 3
    writes[0] = _core.Region(writes[0].array, (lo, (beyond, *hi[1:])))
    works[w] = _core.Work(works[w].number, _core.TaskWork(task.operation, task.reads, writes, task.amount))
    core.works = works
    return r"outside its storage|writes an element twice"


def not_a_send(rng, cores):
    if (place := pick(rng, steps_of(cores, "post_recv"))) is None:
        return None
    r, l, i = place

    def change(steps):
        steps[i] = _core.Step("post_send", steps[i].item)

    edit(cores[r], l, change)
    return r"post_send of message \d+, which is a receive"


def posted_twice(rng, cores):
    if (place := pick(rng, steps_of(cores, "post_send", "post_recv"))) is None:
        return None
    r, l, i = place
    edit(cores[r], l, lambda steps: steps.insert(i, steps[i]))
    return r"is posted twice|is being (received|sent)"


KINDS = [
    drop_wait, drop_message, one_end, wrong_tag, smaller_region, early_task, swap_tasks, early_write, swap_numbers,
    twice, never, outside, not_a_send, posted_twice,
]


name_mutants = naming(lambda seed: Graph(seed, 1 + seed % 4), schedule_of, lambda _, words: words)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_mutant_is_named(kind):
    name_mutants(kind, EACH, 0)
