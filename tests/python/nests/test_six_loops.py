"""Nests and fields of five and six dimensions, against plain loops and NumPy."""

import itertools

import numpy as np
import pytest

import tilewave as tw
from local_ranks import results_of
from random_paths import random_paths


@tw.nest
def transport(p, q, g, m, z, y, x):
    p[g, m, z, y, x] = q[g, z, y, x] + p[g, m, z-1, y, x] - p[g, m, z, y+1, x] * p[g, m, z, y, x-1]


@tw.nest
def relaxed(u, t, a, b, c, d, e):
    x = u[t, a, b, c+1, d, e] + u[t, a, b, c, d, e-1]
    u[t+1, a, b, c, d, e] = u[t, a, b, c, d, e] - u[t, a-1, b, c, d, e] + 3 * x


@tw.nest
def sums(A, a, b, c, d, e, f):
    A[a, b, c, d, e, f] = A[a-1, b, c, d+1, e, f] + A[a, b, c, d-1, e, f] - A[a, b+1, c, d, e, f-1]


#: Extents, and the points of each dimension.
CASES = {
    "transport": (transport, "p", (3, 4, 6, 7, 9), (0, 0, 1, 0, 1), (3, 4, 6, 6, 9)),
    "relaxed": (relaxed, "u", (5, 3, 5, 3, 6), (1, 0, 0, 0, 1), (5, 3, 4, 3, 6)),
    "sums": (sums, "A", (4, 3, 3, 5, 2, 6), (1, 0, 0, 1, 0, 1), (4, 2, 3, 4, 2, 6)),
}


def plain(name, arrays, steps):
    nest, written, _, low, high = CASES[name]
    points = [*itertools.product(*map(range, low, high))]
    if steps is None:
        for point in points:
            nest.function(*arrays.values(), *point)
        return arrays[written]
    for _ in range(steps):
        both = np.stack([arrays[written]] * 2)
        for point in points:
            nest.function(both, 0, *point)
        arrays[written] = both[1]
    return arrays[written]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("name", CASES)
def test_nests(name, ranks):
    nest, written, shape, low, high = CASES[name]
    draw, steps = np.random.default_rng([len(name), ranks]), 3 if name == "relaxed" else None
    start = {written: draw.integers(-9, 9, shape)}
    if name == "transport":
        start["q"] = draw.integers(-9, 9, shape[:1] + shape[2:])
    wanted = plain(name, {key: value.copy() for key, value in start.items()}, steps)

    def on_rank(context):
        fields = {key: tw.field(value, context=context) for key, value in start.items()}
        reduce = {"most": tw.max(written)} if steps is None else None
        report = tw.run(nest, **fields, steps=steps, reduce=reduce, context=context)
        return fields[written].gather(), report.results and report.results["most"]

    with np.errstate(over="ignore"):
        found, most = results_of(ranks, 1, on_rank, without=random_paths(f"{name} {ranks}"))[0]
    assert np.array_equal(found, wanted)
    assert most is None or steps or most == wanted[tuple(map(slice, low, high))].max()


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
def test_fields(ranks, tmp_path):
    """Halos, files of both kinds, and elements by global index."""
    shape = (3, 2, 5, 4, 3, 6)
    whole = np.random.default_rng(ranks).random(shape)

    def on_rank(context):
        u = tw.field(whole, halo=1, periodic=(0, 5), context=context)
        tw.exchange(u)
        padded = np.pad(whole, [(1, 1), *[(0, 0)] * 4, (1, 1)], mode="wrap")
        box = tuple(slice(s.start, s.stop + 2 * (k in (0, 5))) for k, s in enumerate(u.owned))
        inside = list(u.inside)
        for k in (0, 5):
            inside[k] = slice(inside[k].start - 1, inside[k].stop + 1)
        right = u.local.size == 0 or np.array_equal(u.local[tuple(inside)], padded[box])
        for name in ("u.npy", "u.zarr"):
            u.save(tmp_path / f"{ranks}{name}")
        return right, u.gather()

    results = results_of(ranks, 1, on_rank)
    assert all(right for right, _ in results) and np.array_equal(results[0][1], whole)
    assert np.array_equal(np.load(tmp_path / f"{ranks}u.npy"), whole)
    again = results_of(ranks, 1, lambda context: tw.load(tmp_path / f"{ranks}u.zarr", context=context).gather())
    assert np.array_equal(again[0], whole)


def test_seven_are_refused():
    with pytest.raises(tw.ConfigError, match="one to six extents"):
        tw.field((1,) * 7)
    nest = tw.nest_from("def deep(A, a, b, c, d, e, f, g): A[a, b, c, d, e, f, g] = 1.0")
    with pytest.raises(tw.ConfigError, match="6"):
        tw.run(nest, A=np.zeros((2,) * 7))
