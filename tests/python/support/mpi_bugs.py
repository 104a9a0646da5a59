"""The MPI Bugs Initiative's classes of errors as mutants of random schedules of five families: which of them go wrong
in some order of `trials`, and which the checker reports. A failure prints its seed: `mutant(KINDS[name], seed)`.
"""

import functools
import random
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
sys.path += [str(HERE / folder) for folder in ("schedule", "linalg")]

import test_factor_schedules as factors
import test_product_schedules as products
from general_sweeps import general_case
from pattern_schedules import KINDS as ALGORITHMS
from pattern_schedules import Case
from random_stencils import random_factors, stencil_plan, stencil_problem
from test_mutants import drop_wait, edit, item, one_end, pick, posted_twice, steps_of, wrong_tag
from trials import outcome, unpacked

from tilewave import _core
from tilewave.errors import ConfigError

ORDERS, MORE = 12, 2500  # that are tried of a mutant; MORE of those that are reported and right in these
BASES = 200  # schedules of a family that are mutated
MOST_STEPS, MOST_POINTS = 400, 2500  # of all ranks, so that an order takes milliseconds
POSTS = ("post_send", "post_recv")


def sweep(rng, seed):
    case = general_case(seed)
    plain = case.plan.storage == "plain" and not (case.bounds and any(array[4] for array in case.arrays))
    return case.schedules() if plain else []


def stencil(rng, seed):
    dims, ranks = rng.randint(1, 2), rng.randint(2, 6)
    extents = [rng.randint(6, 12) for _ in range(dims)]
    offsets = [tuple(rng.randint(-1, 1) for _ in range(dims)) for _ in range(rng.randint(1, 4))]
    problem = stencil_problem(extents, offsets, rng.randint(1, 4), rng.random() < 0.5)
    grid = random_factors(rng, ranks, dims)
    plan = stencil_plan(grid, [rng.randint(1, 3) for _ in range(dims)], rng.choice((1, 1, 2)))
    plan.factors = (1, *random_factors(rng, rng.randint(1, 2), dims))
    plan.chunk_bytes, plan.schedule = rng.choice((16, 1 << 18)), rng.choice(("overlapping", "blocking"))
    plan.validate(problem, ranks)
    return [_core.stencil(problem, plan, rank) for rank in range(ranks)]


def pattern(rng, seed):
    case = Case(seed)
    return case.schedules() if 2 <= case.ranks <= 6 else []


def halo(rng, seed):
    ranks, dims = rng.randint(2, 6), rng.randint(1, 3)
    arrays = []
    for _ in range(rng.randint(1, 2)):
        shape, halos = [rng.randint(4, 8) for _ in range(dims)], [rng.randint(0, 2) for _ in range(2 * dims)]
        layout = _core.Layout(tuple(shape), random_factors(rng, ranks, dims), tuple(halos[:dims]), tuple(halos[dims:]))
        layout.wraps = tuple(rng.randint(0, 1) for _ in range(dims))
        arrays.append((layout, rng.choice((4, 8))))
    axes = rng.choice((1, dims))
    return [_core.halo_update(arrays, rank, ranks, axes) for rank in range(ranks)]


def linear_algebra(rng, seed):
    ranks, linalg = rng.randint(2, 6), _core.linalg
    if rng.random() < 0.5:
        problem, by_columns = products.random_problem(rng, ranks)
        choices = products.random_choices(rng, by_columns)
        return [linalg.matmul(problem, choices, rank, ranks) for rank in range(ranks)]
    columns = linalg.Axis(rng.randint(4, 12), ranks, rng.choice((1, 2, 3)))
    square = linalg.BlockCyclic(linalg.Axis(columns.extent, 1, 0), columns, rng.random() < 0.5)
    make = rng.choice((linalg.lu, linalg.cholesky, linalg.qr))
    choices = factors.random_choices(rng, wavefront=rng.random() < 0.5)
    return [make(square, 8, choices, rank, ranks) for rank in range(ranks)]


FAMILIES = {"sweeps": sweep, "stencils": stencil, "patterns": pattern, "halos": halo, "linear algebra": linear_algebra}


def unit(array):
    n = len(array.storage[0])
    return [tuple(int(k == d) for k in range(n)) for d in range(n)]


@functools.cache
def schedules(family, seed):
    """Those of all ranks, and what comes of them; None where there is nothing to mutate, or too much."""
    try:
        cores = FAMILIES[family](random.Random(seed), seed)
    except ConfigError:
        return None
    steps = sum(core.steps for core in cores)
    if not 1 < steps <= MOST_STEPS or not steps_of(dict(enumerate(cores)), "post_send"):
        return None
    arrays = [array for core in cores for array in core.arrays]
    if any(array.planes or array.view.buffers or array.view.rows not in ([], unit(array)) for array in arrays):
        return None  # trials know no rolling windows, and shared memory only in the arrays' own coordinates
    parts = unpacked(cores)
    if sum(map(len, (part.results_at for part in parts))) > MOST_POINTS:
        return None
    right, why = outcome(parts, 0)
    for order in range(1, ORDERS):
        assert why is None and outcome(parts, order) == (right, None), f"{family}, seed {seed}, order {order}: {why}"
    return cores, parts, right


def posted(cores, *ops):
    """(rank, number) of messages that are posted."""
    return [(place[0], item(cores, place)) for place in steps_of(cores, *(ops or POSTS))]


def change(cores, rank, number, **values):
    messages = cores[rank].messages
    for name, value in values.items():
        setattr(messages[number], name, value(getattr(messages[number], name)) if callable(value) else value)
    cores[rank].messages = messages
    return True


def meets(cores, rank, number):
    """The other end: in each link's and tag's order, the one of the same place."""
    m = cores[rank].messages[number]
    ends = [
        [n for r, n in posted(cores) if r == a and (x := cores[a].messages[n]).peer == b and x.tag == m.tag and
         x.send == send]
        for a, b, send in ((rank, m.peer, m.send), (m.peer, rank, not m.send))
    ]
    return m.peer, ends[1][ends[0].index(number)]


def moved(rng, cores, ops, by, send=None):
    """A step moves in its lane by -n to n steps, as `by` says."""
    places = [p for p in steps_of(cores, *ops) if send is None or cores[p[0]].messages[item(cores, p)].send == send]
    if (place := pick(rng, places)) is None:
        return None
    r, l, i = place
    to = i + by(rng.randint(1, 6))
    edit(cores[r], l, lambda steps: steps.insert(max(to, 0), steps.pop(i)))
    return True


def invalid(rng, cores):
    r, m = rng.choice(posted(cores))
    name, value = rng.choice((
        ("peer", -1), ("peer", len(cores)), ("peer", r), ("tag", -1), ("array", 99), ("buffer", 99),
        ("bytes", lambda b: -b), ("region", lambda box: tuple(tuple(x + 1000 for x in end) for end in box)),
    ))
    return change(cores, r, m, **{name: value})


def waited_twice(rng, cores):
    r, l, i = rng.choice(steps_of(cores, "wait"))
    edit(cores[r], l, lambda steps: steps.insert(rng.randint(i, len(steps)), steps[i]))
    return True


def early_wait(rng, cores):
    return moved(rng, cores, ["wait"], lambda n: -n)


def late_wait(rng, cores):
    return moved(rng, cores, ["wait"], lambda n: n)


def early_post(rng, cores):
    return moved(rng, cores, ["post_recv"], lambda n: -n)


def early_pack(rng, cores):
    return moved(rng, cores, ["pack", "combine"], lambda n: -n)


def other_buffer(rng, cores):
    r, m = rng.choice(posted(cores))
    return change(cores, r, m, buffer=rng.randrange(max(1, len(cores[r].buffers))))


def other_tag(rng, cores):
    """One that is in use, at one end; or a new one, at both: that is harmless."""
    r, m = rng.choice(posted(cores))
    ends, tag = [(r, m)], rng.choice([x.tag for core in cores.values() for x in core.messages])
    if rng.random() < 0.3:
        ends, tag = [(r, m), meets(cores, r, m)], 999
    return all(change(cores, *end, tag=tag) for end in ends)


def other_peer(rng, cores):
    r, m = rng.choice(posted(cores))
    return change(cores, r, m, peer=rng.choice([k for k in cores if k != r]))


def shorter(rng, cores):
    """A message without its last plane, at one end or both."""
    r, m = rng.choice(posted(cores))
    lo, hi = cores[r].messages[m].region
    wide = [k for k in range(len(lo)) if hi[k] - lo[k] > 1]
    if not wide:
        return None
    k = wide[0]
    for rank, number in ((r, m), meets(cores, r, m))[: rng.randint(1, 2)]:
        x = cores[rank].messages[number]
        less = tuple(end - (d == k) for d, end in enumerate(x.region[1]))
        part = x.bytes // (x.region[1][k] - x.region[0][k])
        change(cores, rank, number, region=(x.region[0], less), bytes=x.bytes - part)
    return True


def one_tag(rng, cores):
    """Two messages of a link get one tag, at both ends."""
    r, a = rng.choice(posted(cores))
    m = cores[r].messages[a]
    same = [n for k, n in posted(cores) if k == r and n != a and (x := cores[r].messages[n]).peer == m.peer and
            x.send == m.send and x.tag != m.tag]
    if not same:
        return None
    b = rng.choice(same)
    other = meets(cores, r, b)
    return change(cores, r, b, tag=m.tag) and change(cores, *other, tag=m.tag)


def swapped_posts(rng, cores):
    """Two posts of a lane change places."""
    places = steps_of(cores, *POSTS)
    r, l, i = rng.choice(places)
    others = [j for rank, lane, j in places if (rank, lane) == (r, l) and j != i]
    if not others:
        return None
    j = rng.choice(others)

    def swap(steps):
        steps[i], steps[j] = steps[j], steps[i]

    edit(cores[r], l, swap)
    return True


def late_post(rng, cores):
    return moved(rng, cores, POSTS, lambda n: n)


def at_once(rng, cores):
    """Some ranks' sends are synchronous; each message is waited for where it is posted, or posted where that is."""
    for core in cores.values():
        if rng.random() < 0.3:
            continue
        sends = {n for n, m in enumerate(core.messages) if m.send}
        messages = core.messages
        for n in sends:
            messages[n].synchronous = True
        core.messages = messages
        core.lanes = [
            [
                _core.Step(op, s.item)
                if op in (*POSTS, "wait")
                else s
                for s in lane
                for op in (
                    ("post_send", "wait") if s.op == "post_send"
                    else ("post_recv", "wait") if s.op == "wait" and s.item not in sends
                    else () if s.op in ("post_recv", "wait") else (s.op,)
                )
            ]
            for lane in core.lanes
        ]
    return True


def dropped(op):
    def drop(rng, cores):
        if (place := pick(rng, steps_of(cores, op))) is None:
            return None
        edit(cores[place[0]], place[1], lambda steps: steps.pop(place[2]))
        return True

    drop.__name__ = f"no_{op}"
    return drop


def other_call(rng, cores, root=False):
    """A rank calls a pattern with another algorithm or root."""
    family, seed = cores.of
    case = Case(seed)
    if family != "patterns" or (root and case.kind not in ("broadcast", "reduce")):
        return None
    rank = rng.randrange(case.ranks)
    if root:
        case.root = rng.choice([r for r in range(case.ranks) if r != case.root])
    else:
        case.algorithm = rng.choice([name for name in ALGORITHMS[case.kind] if name != case.algorithm])
    results = cores[rank].results
    cores[rank] = case.schedule(rank)
    cores[rank].results = results
    return True


def other_root(rng, cores):
    return other_call(rng, cores, root=True)


#: Kinds of mutants by class of the initiative; the last class is ours.
CLASSES = {
    "invalid parameter": {invalid: "peer, tag, array, buffer, bytes or region that there is not"},
    "request lifecycle, leak": {
        drop_wait: "no wait", waited_twice: "two waits", posted_twice: "posted twice", early_wait: "wait earlier",
    },
    "local concurrency": {
        late_wait: "wait later", early_post: "receive posted earlier", early_pack: "packed earlier",
        other_buffer: "another buffer",
    },
    "parameter matching": {
        wrong_tag: "new tag at one end", other_tag: "another tag", other_peer: "another peer",
        shorter: "less bytes, at one end or both", other_root: "another root on a rank",
    },
    "message race": {one_tag: "one tag for two messages"},
    "call ordering": {
        one_end: "no receive", swapped_posts: "posts change places", late_post: "posted later",
        other_call: "another algorithm on a rank",
    },
    "buffering hazard": {at_once: "blocking sends and receives on some ranks"},
    "order of threads": {dropped("await"): "no await", dropped("signal"): "no signal"},
}
KINDS = {kind.__name__: kind for kinds in CLASSES.values() for kind in kinds}


class Cores(dict):
    """Schedules by rank, `of` a family and its seed."""


def mutant(kind, seed):
    """(what it is, what goes wrong in some order or None, what the checker reports or None) of one of a kind."""
    rng = random.Random(seed)
    while True:
        family, made = rng.choice(list(FAMILIES)), None
        while made is None:
            made = schedules(*(of := (family, rng.randrange(BASES))))
        cores = Cores({rank: _core.Schedule(core) for rank, core in enumerate(made[0])})
        cores.of = of
        if kind(rng, cores):
            break
    parts, report = unpacked(cores.values(), made[1]), _core.check(list(cores.values()))
    tried = (outcome(parts, order) for order in range(ORDERS if report is None else ORDERS + MORE))
    wrong = next((why or "other values" for values, why in tried if values != made[2]), None)
    return f"{kind.__name__}, seed {seed}: {of}", wrong, None if report is None else str(report)


def count(kind, mutants, first, say=print):
    """Of so many mutants: (go wrong, of them found, reported). Says where a trial and the checker differ."""
    wrong = found = reported = 0
    for seed in range(first, first + mutants):
        what, why, report = mutant(kind, seed)
        wrong += why is not None
        found += why is not None and report is not None
        reported += report is not None
        if (why is None) != (report is None):
            say(f"{what}: in a trial: {why}; reported: {report}")
    return wrong, found, reported


def speed(family, bases=BASES):
    """Of a family's schedules: (how many, their steps, reports, median seconds a step, best of three)."""
    steps, reports, seconds = 0, 0, []
    for made in filter(None, (schedules(family, seed) for seed in range(bases))):
        count, times = sum(core.steps for core in made[0]), []
        for _ in range(3):
            begin = time.perf_counter()
            found = _core.check(made[0])
            times.append((time.perf_counter() - begin) / count)
        reports, steps = reports + (found is not None), steps + count
        seconds.append(min(times))
    return len(seconds), steps, reports, statistics.median(seconds)


def tables(mutants, first, say=print):
    """Two tables in Markdown: of so many mutants of each kind, and of what they were made from."""
    head = "| class | mutation | wrong | found | reported | recall | precision |"
    lines = [f"{mutants} mutants of each kind, seeds from {first}.", "", head, "| --- " * 2 + "| ---: " * 5 + "|"]
    for name, kinds in CLASSES.items():
        for kind, words in kinds.items():
            wrong, found, reported = count(kind, mutants, first, say)
            shares = " | ".join(f"{found / max(1, of):.3f}" for of in (wrong, reported))
            lines.append(f"| {name} | {words} | {wrong} | {found} | {reported} | {shares} |")
            name = ""
    lines += ["", "| family | schedules | steps | reported | µs a step |", "| --- " + "| ---: " * 4 + "|"]
    for family in FAMILIES:
        made, steps, reports, second = speed(family)
        lines.append(f"| {family} | {made} | {steps} | {reports} | {1e6 * second:.1f} |")
    return "\n".join(lines)
