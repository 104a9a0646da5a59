"""Chains with arrays of several time buffers: these take turns, and results are those of single runs, bit for bit."""

import random

import pytest

import tilewave as tw
from bound_cases import filled, results, same
from local_ranks import results_of
from tilewave.nests.chain import several


@tw.nest
def wave(u, t, i, j):
    u[t + 1, i, j] = 2 * u[t, i, j] - u[t - 1, i, j] + 0.1 * (u[t, i - 1, j] + u[t, i + 1, j] - u[t, i, j + 1])


@tw.nest
def energy(e, u, t, i, j):
    e[t + 1, i, j] = 0.5 * e[t, i, j] + u[t + 1, i, j]


@tw.nest
def spread(v, u, t, i, j):
    v[t + 1, i, j] = 0.2 * (v[t, i - 1, j] + v[t, i + 1, j] + v[t, i, j - 2]) + u[t + 1, i, j + 1]


@tw.nest
def edge(v, t, i, j):
    v[t + 1, i, j] = v[t + 1, i + 1, j] - 0.5


@tw.nest
def again(v, t, i, j):
    v[t + 1, i, j] = 0.25 * (v[t + 1, i - 1, j] + v[t + 1, i, j])


@tw.nest
def deep(x, v, t, i, j):
    x[t + 1, i, j] = 0.3 * (x[t, i, j - 1] + x[t - 1, i, j]) - 0.1 * x[t - 2, i, j] + v[t + 1, i, j]


@tw.nest
def beside(u, t, i, j):
    u[t + 1, i, j] = 0.4 * (u[t, i - 1, j] + u[t - 1, i, j + 1])


@tw.nest
def damp(u, t, i, j):
    u[t + 1, i, j] = 0.9 * u[t + 1, i, j]


@tw.nest
def mirror(u, t, i, j):
    u[t + 1, i, j] = u[t + 1, i + 1, j] - 0.25 * u[t + 1, i, j]


@tw.nest
def masked(w, t, i, j):
    if (i + j) % 3 > 0:
        w[t + 1, i, j] = 0.4 * (w[t, i - 1, j] + w[t, i, j + 1])


@tw.nest
def halve(w, t, i, j):
    w[t + 1, i, j] = 0.5 * w[t + 1, i, j]


@tw.nest
def triangle(w, t, i, j):
    if j <= i + 3:
        w[t + 1, i, j] = 0.4 * (w[t, i + 1, j] + w[t, i, j - 1])


#: Nests that write one array, with their bounds; of each line one is taken, or none.
STEPS = [
    [[(wave, None)], [(beside, None)]],
    [[(spread, None)], [(spread, None), (edge, {"i": (0, 1)})], [(spread, {"i": (1, 7)}), (again, None)]],
    [[(deep, None)], []],
    [[(masked, None)], [(triangle, None)], [(triangle, None), (halve, {"j": (0, 9)})], []],
]
ARRAYS = "uvwxe"
TIMES = 1, 5, 2, 12


def drawn(seed):
    """Nests of a time step and their bounds."""
    dice = random.Random(f"time buffers {seed}")
    return [*(each for some in STEPS for each in dice.choice(some)), (energy, None)]


@pytest.mark.parametrize("ranks, threads", [(1, 1), (1, 2), (2, 1), (3, 1), (4, 1), (5, 1), (2, 2)])
@pytest.mark.parametrize("seed", range(12))
def test_buffers_take_turns(monkeypatch, seed, ranks, threads):
    """Runs of several lengths, between which elements change that no point of the first nest writes."""
    monkeypatch.setattr(several, "LEAST_MOVED_BYTES", 0)
    chosen = drawn(seed)
    nests, overs = zip(*chosen, strict=True)

    def body(context):
        def fields():
            return {name: filled(context, (15, 12)) for name in ARRAYS}

        def given(arrays, *some):
            return {name: arrays[name] for nest in some for name in nest.arrays}

        ours, theirs, as_one = fields(), fields(), []
        plan = {"factors": (1, threads, 1), "mapping_dim": 2} if threads > 1 else None
        for times in TIMES:
            report = tw.run(nests, steps=times, over=list(overs), plan=plan, context=context, **given(ours, *nests))
            as_one.append("as one schedule" in str(report))
            for _ in range(times):
                for nest, over in chosen:
                    tw.run(nest, steps=1, over=over, context=context, **given(theirs, nest))
            for arrays in (ours, theirs):
                tw.run(edge, steps=1, over={"i": (0, 1)}, v=arrays["v"], context=context)
            assert all(same(ours[name], theirs[name]) for name in ARRAYS), (seed, times)
        return as_one

    for as_one in results(ranks, threads, body):
        assert all(as_one), (seed, [nest.name for nest in nests])


@pytest.mark.parametrize("ranks, threads", [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("chosen", [[(wave, None)], [(spread, None), (edge, {"i": (0, 1)})], [(deep, None)]])
def test_slices_take_turns_with_buffers(chosen, ranks, threads):
    """Arrays that no cache holds: slices of several repetitions, and what the lanes carry in pieces."""
    chosen = [*chosen, (energy, None)]
    nests, overs = zip(*chosen, strict=True)
    names = dict.fromkeys(name for nest in nests for name in nest.arrays)

    def body(context):
        arrays = {name: filled(context, (1100 * ranks, 450)) for name in names}
        plan = {"factors": (1, threads, 1), "mapping_dim": 2} if threads > 1 else None
        for times in (13, 1, 6):
            tw.run(nests, steps=times, over=list(overs), plan=plan, context=context, **arrays)
        s = tw.schedule(nests, steps=13, over=list(overs), plan=plan, context=context, **arrays)
        return [arrays[name].gather() for name in names], str(s)

    (ours, text), *_ = results(ranks, threads, body)
    assert "slices of which take turns" in text
    (theirs, text), *_ = results(ranks, threads, body, without="fused_nests")
    assert "turns" not in text
    assert all(x is None or x.tobytes() == y.tobytes() for x, y in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("ranks, threads", [(1, 1), (1, 2), (3, 1)])
@pytest.mark.parametrize(
    "layers", [[(damp, None)], [(damp, {"i": (0, 3)}), (damp, {"j": (9, 12)}), (mirror, {"i": (0, 1)})]]
)
def test_layers_change_a_time_step_in_place(monkeypatch, layers, ranks, threads):
    """Their runs make no other time step, so that the wave reads the one before, as plain loops do."""
    monkeypatch.setattr(several, "LEAST_MOVED_BYTES", 0)
    nests, overs = zip((wave, None), *layers, strict=True)
    times = 1, 5, 2

    def body(context):
        u = filled(context, (15, 12))
        plan = {"factors": (1, threads, 1), "mapping_dim": 2} if threads > 1 else None
        for steps in times:
            report = tw.run(nests, steps=steps, over=list(overs), plan=plan, context=context, u=u)
        return u.gather(), "as one schedule" in str(report)

    (found, as_one), *_ = results(ranks, threads, body)
    new = results(1, 1, lambda context: filled(context, (15, 12)).gather())[0]
    old = new.copy()
    for _ in range(sum(times)):
        u, before, old, new = new, old, new, new.copy()
        for i in range(1, 14):
            for j in range(11):
                new[i, j] = 2 * u[i, j] - before[i, j] + 0.1 * (u[i - 1, j] + u[i + 1, j] - u[i, j + 1])
        for nest, over in layers:
            low, high = {"i": (0, 15), "j": (0, 12), **(over or {})}.values()
            for i in range(*low):
                for j in range(*high):
                    new[i, j] = 0.9 * new[i, j] if nest is damp else new[i + 1, j] - 0.25 * new[i, j]
    assert as_one and found.tobytes() == new.tobytes()


def test_a_chain_of_bound_nests_has_buffers_in_turn():
    """Each runs several time steps; elements that no point writes change between runs."""
    context = tw.Context(threads=1)
    ours, theirs = ({name: filled(context, (15, 12)) for name in "uve"} for _ in range(2))

    def bound(arrays):
        return [
            tw.bind(wave, steps=3, u=arrays["u"], context=context),
            tw.bind(spread, steps=2, v=arrays["v"], u=arrays["u"], context=context),
            tw.bind(energy, steps=1, e=arrays["e"], u=arrays["u"], context=context),
        ]

    chain, singles = tw.chain(bound(ours)), bound(theirs)
    assert not chain.separate and tw.check(tw.schedule(chain)) is None
    for times in (1, 4, 7):
        chain.run(times=times)
        for _ in range(times):
            for nest in singles:
                nest.run()
        for arrays in (ours, theirs):
            arrays["u"].local[0] += 1.0
        assert all(same(ours[name], theirs[name]) for name in ours), times


def test_buffers_are_copied_once_a_run():
    """A block of all repetitions after which buffers are where they were has no task that turns them."""
    context = tw.Context(threads=1)
    arrays = {name: filled(context, (15, 12)) for name in "uve"}
    s = tw.schedule((wave, spread, energy), steps=12, context=context, **arrays)
    assert "3 nests in 6 repetitions" in str(s) and tw.check(s) is None
    assert not any(name.startswith("all buffers") for name in s.arrays)


@tw.nest
def grows(u, t, i):
    u[t + 1, i] = 1.5 * u[t, i]


@tw.nest
def looks_back(u, t, i):
    u[t + 1, i] = u[t, i] - u[t - 2, i]


def test_several_nests_keep_what_a_later_nest_reads_of_the_past():
    def body(context):
        chained, alone = (tw.field((9,), init=lambda i: 1.0 + i, context=context) for _ in range(2))
        nests = ((grows,), looks_back, grows)
        tw.chain([tw.bind(nest, u=chained, steps=1) for nest in nests]).run(times=3)
        for nest in nests * 3:
            tw.run(nest, u=alone, steps=1)
        return chained.gather(), alone.gather()

    chained, alone = results_of(2, 1, body)[0]
    assert (chained == alone).all()


@tw.nest
def ahead(u, t, i):
    u[t + 1, i] = u[t, i + 2]


def test_points_are_independent_or_not_by_what_the_field_keeps():
    one, other = (tw.field((9,), init=lambda i: 1.0 + i) for _ in range(2))
    for nest in (looks_back, (ahead,), looks_back, (ahead,)):
        tw.run(nest, u=one, steps=1)
    bound = [tw.bind(nest, u=other, steps=1) for nest in (looks_back, (ahead,))]
    for each in bound * 2:
        each.run()
    assert (one.gather() == other.gather()).all()
