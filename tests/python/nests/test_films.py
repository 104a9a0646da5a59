"""Films, the last nest of a time step that writes nothing but rows for several time steps: plain loops, bit for bit."""

import ast
import math
import random

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw
from tilewave import _core
from tilewave.nest.films import film_of
from tilewave.nests.chain.films import films_of

N = 30
HEIGHTS, START = np.random.default_rng(5).random(N), np.random.default_rng(6).random(N)


@tw.nest
def heat(u, t, i, *, c=0.25):
    d = c * (u[t, i-1] - 2 * u[t, i] + u[t, i+1])
    u[t+1, i] = u[t, i] + d


@tw.nest
def decay(u, v, t, i):
    v[t+1, i] = v[t, i] * 0.5 + u[t+1, i]


@tw.nest
def each_kth(u, v, w, t, i, *, k, m):
    """The subscript is that of the time step whose values are there."""
    e = u[t+1, i] - v[t+1, i] * t
    w[(t + m) // k, i] = e


@tw.nest
def of_a_period(u, w, t, i, *, k):
    w[t % k, i] = u[t+1, i-1] + u[t+1, i]


@tw.nest
def summed(u, w, t, i, *, k):
    w[t // k, i] += u[t+1, i]


@tw.nest
def sometimes(u, v, w, t, i, *, k, m):
    if t % k == m:
        w[t // k, i] = u[t+1, i] + v[t+1, i]


@tw.nest
def shown(u, w, t, i, *, k):
    if i > t:
        w[t // k, i] = u[t+1, i]


def plain(film, steps, k, m, adds):
    """(u, v, w, what is recorded of v, the sum and the most in each step) of the plain loops."""
    u, v, w, recorded, found = HEIGHTS.copy(), START.copy(), np.zeros((40, N)), [], []
    for t in range(steps):
        d = 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
        u[1:-1] += d
        v[...] = v * 0.5 + u
        if film is each_kth:
            w[(t + m) // k] = u - v * t
        elif film is of_a_period:
            w[t % k, 1:] = u[:-1] + u[1:]
        elif film is sometimes:
            w[t // k] = u + v if t % k == m else w[t // k]
        elif film is summed:
            w[t // k] += u
        else:
            w[t // k, t + 1 :] = u[t + 1 :]
        found.append({"r": np.abs(d).max(), "e": (u - v * t).max()})
        if adds is not None:
            u[5] += adds[t, 0]
            u[9] += adds[t, 1]
        recorded.append(v[7])
    return u, v, w, np.array(recorded), found


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 2), (2, 1), (3, 2), (5, 1)])
@pytest.mark.parametrize("film", [each_kth, of_a_period, sometimes, summed, shown], ids=lambda nest: nest.name)
def test_plain_loops(film, ranks, threads, seed):
    pick = random.Random(f"{seed} {film.name} {ranks}")
    steps, k, m = pick.choice((1, 7, 12, 23)), pick.choice((1, 2, 3, 5, 30)), pick.randrange(3)
    adds = pick.choice((None, np.random.default_rng(pick.randrange(99)).random((steps, 2))))
    record, every = pick.random() < 0.5, pick.choice((None, None, 4))
    off = pick.choice(("", "", "temporal_blocks"))
    reduce = {"r": tw.max("abs(d)")} | ({"e": tw.max("e")} if film is each_kth else {})
    *expected, recorded, found = plain(film, steps, k, m, adds)

    def body(context):
        start = {"u": HEIGHTS, "v": START, "w": np.zeros((40, N))}
        fields = {name: tw.field(array.shape, "f8", array, context=context) for name, array in start.items()}
        given = {name: value for name, value in {"k": k, "m": m}.items() if name in film.scalars}
        more = {"inject": {"u": ([5, 9], adds)}} if adds is not None else {}
        more |= {"record": {"v": [7]}} if record else {}
        more |= {"until": {"r": -1.0}, "every": every} if every else {}
        report = tw.run((heat, decay, film), **fields, **given, **more, steps=steps, reduce=reduce, context=context)
        return [fields[name].gather() for name in "uvw"], report.results, report.recorded.get("v"), report.points

    for fields, results, seen, points in results_of(ranks, threads, body, without=off):
        drawn = steps, k, m, adds is not None, record, every, off
        assert fields[0] is None or all(map(np.array_equal, fields, expected)), drawn
        assert results == {name: found[-1][name] for name in results}
        assert not record or np.array_equal(seen[:, 0], recorded)
        assert film is shown or points == steps * (N - 2 + N + N - (film is of_a_period))


def test_which_nests_are_films():
    """What may fail, reads a row, or is seen by others computes each time step."""
    fails = tw.nest_from("def fails(u, w, t, i, *, k):\n    w[t // k, i] = u[t+1, i] // k\n")
    both = tw.nest_from("def both(u, v, w, t, i, *, k):\n    v[t+1, i] = v[t, i]\n    w[t // k, i] = u[t+1, i]\n")
    named = tw.nest_from("def named(u, x, t, i, *, k):\n    x[t // k, i] = u[t+1, i]\n")
    for nests, count in (
        ((heat, decay, each_kth), 1), ((heat, of_a_period, named), 2), ((heat, decay, sometimes), 1),
        ((of_a_period,), 0), ((heat, of_a_period, decay), 0), ((heat, each_kth, of_a_period), 0), ((heat, summed), 0),
        ((heat, shown), 0), ((heat, fails), 0), ((heat, both), 0),
    ):  # fmt: skip
        assert films_of(nests, None, 0) == count, [nest.name for nest in nests]
    assert films_of((heat, of_a_period), None, _core.paths_off("temporal_blocks")) == 0


@tw.nest
def filmed(u, w, t, i, *, k, m):
    """Reads what it writes before and after."""
    d = u[t, i-1] - 2 * u[t, i] + u[t, i+1]
    if t % k == m:
        w[t // k, i] = u[t, i] + d
    u[t+1, i] = u[t, i] + 0.25 * d


@tw.nest
def film_of_sums(u, w, t, i, *, k, m):
    d = u[t, i-1] - 2 * u[t, i] + u[t, i+1]
    u[t+1, i] = u[t, i] + 0.25 * d
    w[(t + m) // k, i] = d + u[t+1, i]


@tw.nest
def narrow(u, w, t, i, *, k, m):
    """What it shows ends its loops one element before."""
    d = u[t, i-1] - 2 * u[t, i] + u[t, i+1]
    u[t+1, i] = u[t, i] + 0.25 * d
    w[(t + m) // k, i] = u[t, i+2]


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 2), (3, 1)])
@pytest.mark.parametrize("film", [filmed, film_of_sums, narrow], ids=lambda nest: nest.name)
def test_one_nest(film, ranks, threads, seed):
    """Which runs without its rows between, also bound, in a chain, and where its steps and scalars are others."""
    pick = random.Random(f"{seed} {film.name} {ranks}")
    off, last = pick.choice(("", "", "temporal_blocks")), N - 1 - (film is narrow)
    runs = [(pick.choice((1, 7, 12, 23)), pick.choice((1, 2, 3, 5, 30)), pick.randrange(3)) for _ in range(3)]
    reduce = {"r": tw.max("abs(d)"), "s": tw.sum("d")}
    u, w, found = HEIGHTS.copy(), np.zeros((40, N)), []
    for steps, k, m in runs + runs[-1:] * 2:
        seen = []
        for t in range(steps):
            d = (u[:-2] - 2 * u[1:-1] + u[2:])[: last - 1]
            if film is filmed and t % k == m:
                w[t // k, 1:-1] = u[1:-1] + d
            if film is narrow:
                w[(t + m) // k, 1:last] = u[3:]
            u[1:last] += 0.25 * d
            if film is film_of_sums:
                w[(t + m) // k, 1:-1] = d + u[1:-1]
            seen += [*d]
        found.append({"r": max(map(abs, seen)), "s": math.fsum(seen)})

    def body(context):
        start = {"u": HEIGHTS, "w": np.zeros((40, N))}
        fields = {name: tw.field(array.shape, "f8", array, context=context) for name, array in start.items()}
        (steps, k, m), *others = runs
        given = {"reduce": reduce, "context": context}
        results = [tw.run(film, **fields, steps=steps, k=k, m=m, **given).results]
        for steps, k, m in others:
            bound = tw.bind(film, **fields, steps=steps, k=k, m=m, **given)
            results.append(bound.run().results)
        tw.chain([bound]).run(2)
        return [fields[name].gather() for name in "uw"], results

    for fields, results in results_of(ranks, threads, body, without=off):
        assert fields[0] is None or all(map(np.array_equal, fields, (u, w))), (runs, off)
        assert results == found[:3], (runs, off)


def test_what_nobody_sees_is_not_computed():
    """Between two films the body has none."""
    for nest, test in ((filmed, "t % k == m"), (film_of_sums, None), (narrow, None)):
        film = film_of(nest)
        assert film.rest.arrays == ("u",), nest.name
        assert (film.test and ast.unparse(film.test)) == test
    for text in (
        "    w[t // k, i] = u[t, i]\n    u[t+1, i] = u[t, i] + w[t // k, i]\n",
        "    u[t+1, i] = u[t, i]\n    if u[t, i] > 0:\n        w[t // k, i] = u[t, i]\n",
        "    u[t+1, i] = u[t, i]\n    if i % k == 0:\n        w[t // k, i] = u[t, i]\n",
        "    if t % k == 0:\n        w[t // k, i] = 1\n    else:\n        w[t // k, i] = 0\n    u[t+1, i] = u[t, i]\n",
        "    u[t+1, i] = u[t, i]\n    w[t // k, i] += 1\n",
        "    u[t+1, i] = u[t, i]\n    w[t // k, i] = u[t, i] // 2\n",
    ):  # fmt: skip
        assert film_of(tw.nest_from("def body(u, w, t, i, *, k):\n" + text)) is None, text


@pytest.mark.parametrize("ranks", [1, 3])
def test_backwards(ranks, seed):
    """A nest that only writes rows runs where the others of its time step do."""
    pick = random.Random(f"{seed} {ranks}")
    steps, k = pick.choice((1, 7, 10)), pick.choice((1, 3, 4))
    back = tw.nest_from("def back(u, t, i):\n    u[t-1, i] = 0.5 * u[t, i] + u[t, i-1] + t\n")
    film = tw.nest_from("def film(u, w, t, i, *, k):\n    w[t // k, i] = u[t-1, i] + t\n")
    u, w = HEIGHTS.copy(), np.zeros((12, N))
    for t in range(steps, 0, -1):
        u[1:] = 0.5 * u[1:] + u[:-1] + t
        w[t // k] = u + t

    def body(context):
        start = {"u": HEIGHTS, "w": np.zeros((12, N))}
        fields = {name: tw.field(array.shape, "f8", array, context=context) for name, array in start.items()}
        tw.run((back, film), **fields, steps=steps, k=k, reverse=("t",), context=context)
        return [fields[name].gather() for name in "uw"]

    assert all(map(np.array_equal, results_of(ranks, 1, body)[0], (u, w))), (steps, k)
