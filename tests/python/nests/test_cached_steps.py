"""Several nests in one time step are prepared once for calls with the same arrays, which stay their owner's."""

import sys
import weakref

import numpy as np
import pytest
from local_ranks import results_of
from several_nests import SHAPE, height, meridional, plain, random, some_nests, zonal

import tilewave as tw
from tilewave.nests.chain import several

NESTS = height, zonal, meridional
FACTOR = 0.25


@tw.nest
def spread(u, v, t, i, j, *, c=0.1):
    u[t+1, i, j] = u[t, i, j] + c * (v[t, i, j+1] - v[t, i, j]) * FACTOR


@tw.nest
def gather(v, u, t, i, j, *, c=0.1, n=3):
    v[t+1, i, j] = v[t, i, j] - c * (u[t+1, i, j] - u[t+1, i, j-1]) + n


@tw.nest
def look_up(v, u, s, at, t, i, j):
    v[t+1, i, j] = v[t, i, j] + u[t+1, i, j] * s[at[i]]


@pytest.fixture(autouse=True)
def one_layout(monkeypatch):
    monkeypatch.setattr(several, "LEAST_MOVED_BYTES", 0)


def same(given, expected, text=""):
    for name, array in given.items():
        whole = array.gather() if isinstance(array, tw.Field) else array
        assert whole is None or whole.tobytes() == expected[name].tobytes(), (name, text)


def agreements(context, nests, **given):
    """Of the ranks, in a call."""
    before = context._core.started
    tw.run(nests, context=context, **given)
    return context._core.started - before


@pytest.mark.parametrize("seed", range(10))
def test_random_nests_again_and_again(seed):
    """Other arrays, scalars and numbers of steps, as one schedule and nest by nest."""
    print(f"seed {seed}")
    rng = np.random.default_rng([33, seed])
    nests, written, names = some_nests(rng, "number", ", *, number=0.25")
    names = [name for name in names if any(name in nest.arrays for nest in nests)]
    starts = [{name: (random(rng.integers(99)), random(rng.integers(99))) for name in names} for _ in range(2)]
    calls = [
        (int(rng.integers(2)), int(rng.integers(6)), [{}, {"number": 0.5}, {"number": 2}][rng.integers(3)])
        for _ in range(9)
    ]
    record = {written[0]: [(1, 2)]} if seed % 3 == 2 else None
    expected = [{name: now.copy() for name, (now, _) in start.items()} for start in starts]
    before = [{name: [then.copy()] for name, (_, then) in start.items()} for start in starts]
    wanted, like = [], {name: tw.field(SHAPE) for name in names}
    for at, steps, scalars in calls:
        plain(nests, expected[at], before[at], steps, [None] * len(nests), like, scalars=scalars)
        wanted.append({name: array.copy() for name, array in expected[at].items()})

    def body(context):
        given = [
            {name: tw.field(SHAPE, "f8", now.copy(), history=[then.copy()], context=context)
             for name, (now, then) in start.items()}
            for start in starts
        ]
        for number, (at, steps, scalars) in enumerate(calls):
            tw.run(nests, **given[at], **scalars, steps=steps, record=record, context=context)
            same(given[at], wanted[number], f"seed {seed}, call {number}")
        return sum(len(key.nests) > 1 for key in context._calls)

    for ranks in (1, 2, 3):
        kept = results_of(ranks, 1 + seed % 2, body)
        assert len(set(kept)) == 1 and kept[0] >= 2, kept


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_one_agreement(ranks):
    """As of a single nest that is repeated."""

    def body(context):
        given = {name: tw.field(random(k), context=context) for k, name in enumerate("huv")}
        first = agreements(context, NESTS, **given, steps=3)
        again = [agreements(context, NESTS, **given, steps=steps) for steps in (3, 1, 7, 3)]
        others = {name: tw.field(random(k), context=context) for k, name in enumerate("huv")}
        new = agreements(context, NESTS, **others, steps=3)
        both = [agreements(context, NESTS, **one, steps=3) for one in (given, others, given)]
        single = [agreements(context, zonal, u=given["u"], h=given["h"], steps=3) for _ in range(3)]
        return first, again, new, both, single[-1]

    for first, again, new, both, single in results_of(ranks, 1, body):
        once = max(single, 1)  # one rank has nothing to agree on where all is as in some call before
        assert again == [single, once, once, single] and both == [single] * 3 and min(first, new) > 2 * once


def test_scalars_and_numbers_from_outside():
    global FACTOR
    context = tw.Context(threads=1)
    start = {"u": random(1), "v": random(2)}
    given, expected = {name: tw.field(value.copy(), context=context) for name, value in start.items()}, start
    kept = FACTOR
    try:
        for factor in (0.25, 0.5, 0.25):
            FACTOR = factor
            for scalars in ({"c": 0.3}, {"c": -0.0}, {"c": 2}, {"c": 300}, {"n": 4, "c": 0.5}, {"n": 0.5}, {}):
                tw.run((spread, gather), **given, **scalars, steps=2, context=context)
                plain((spread, gather), expected, {}, 2, (None, None), expected, scalars=scalars)
                same(given, expected, (factor, scalars))
    finally:
        FACTOR = kept
    for wrong, text in (({"d": 1}, "none of the nests"), ({"c": "x"}, "'c'"), ({"steps": -1}, ">= 0")):
        with pytest.raises(tw.ConfigError, match=text):
            tw.run((spread, gather), **given, **{"steps": 2, **wrong}, context=context)
    same(given, expected)


def test_what_else_a_call_says_counts():
    context = tw.Context(threads=1)
    expected = {"u": random(1), "v": random(2)}
    given = {name: tw.field(value.copy(), context=context) for name, value in expected.items()}
    for lower in (1, 2, 1):
        upper = up_to(lower)
        for over in (None, {"i": (0, 5)}, {"j": (1, [upper, 9])}, [None, {"i": (2, "6")}], [{"j": (3, 4)}, None]):
            tw.run((spread, gather), **given, steps=2, over=over, context=context)
            overs = over if isinstance(over, list) else [over] * 2
            plain((spread, gather), expected, {}, 2, overs, expected)
            same(given, expected, over)
    with pytest.raises(tw.ConfigError, match="list of another length"):
        tw.run((spread, gather), **given, steps=2, over=[None], context=context)
    given["u"].close()
    with pytest.raises(tw.ConfigError, match="was closed"):
        tw.run((spread, gather), **given, steps=2, context=context)


def up_to(more):
    return lambda i: i + more


def test_numpy_arrays_and_tables():
    context = tw.Context(threads=1)
    u, v, at, s = random(1), random(2), np.arange(SHAPE[0]) % 3, np.arange(4.0)
    expected = {"u": u.copy(), "v": v.copy()}
    for turn in range(4):
        at[turn] = 3  # in place
        s[1] += 0.5
        tw.run((spread, look_up), u=u, v=v, s=s, at=at, steps=2, context=context)
        for _ in range(2):
            before = expected["v"].copy()
            expected["u"][:, :-1] += 0.1 * (before[:, 1:] - before[:, :-1]) * FACTOR
            expected["v"] += expected["u"] * s[at][:, None]
        np.testing.assert_array_equal(u, expected["u"])
        np.testing.assert_array_equal(v, expected["v"])
    v.flags.writeable = False
    with pytest.raises(tw.ConfigError, match="read-only"):
        tw.run((spread, look_up), u=u, v=v, s=s, at=at, steps=2, context=context)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("record", [None, {"h": [(1, 1)]}])
def test_fields_are_not_kept_alive(ranks, record):
    """Not even until the next garbage collection."""

    def body(context):
        given = {name: tw.field(random(k), context=context) for k, name in enumerate("huv")}
        for steps in (2, 2, 3):
            tw.run(NESTS, **given, steps=steps, record=record, context=context)
        alive, storages = [weakref.ref(each) for each in given.values()], [each._storage for each in given.values()]
        del given
        found = [ref() for ref in alive], [sys.getrefcount(each) for each in storages]
        others = {name: tw.field(random(k), context=context) for k, name in enumerate("huv")}
        tw.run(NESTS, **others, steps=2, record=record, context=context)
        return found, sum(len(key.nests) == 3 for key in context._calls)

    for found, kept in results_of(ranks, 1, body):
        at_once = ranks == 1 and record is None  # one more for the very same call
        assert (found, kept) == (([None] * 3, [3] * 3), 1 + at_once)


def test_one_rank_that_has_lost_it_prepares_with_the_others():
    def body(context):
        expected = {name: random(k) for k, name in enumerate("huv")}
        given = {name: tw.field(value.copy(), context=context) for name, value in expected.items()}
        for turn in range(4):
            if turn % 2 and context.rank == 1:
                context._calls.clear()
            tw.run(NESTS, **given, steps=2, context=context)
            plain(NESTS, expected, {}, 2, [None] * 3, expected)
            same(given, expected, turn)
        with pytest.raises(tw.ConfigError, match="scalars|steps"):
            tw.run(NESTS, **given, steps=2 + context.rank, context=context)

    results_of(2, 1, body)
