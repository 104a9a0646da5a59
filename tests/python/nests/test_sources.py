"""What sources add: to elements that no point writes, in any order of memory, rounded as NumPy rounds."""

import itertools

import numpy as np
import pytest
from local_ranks import refused_on_all, results_of
from off_grid_points import neighbours, times

import tilewave as tw


def stepped(nest, box, first, history, steps, sources, values):
    """All time steps of the plain loops, each of which begins as a copy of the one before."""
    older = len(history)
    u = np.array([*history[::-1], first, *[first] * steps])

    class InTime:
        def __getitem__(self, at):
            return u[(at[0] + older, *at[1:])]

        def __setitem__(self, at, value):
            u[(at[0] + older, *at[1:])] = value

    for t in range(steps):
        u[older + t + 1] = u[older + t]
        for x in itertools.product(*box):
            nest.function(InTime(), t, *x)
        now = u[older + t + 1]
        if isinstance(sources, np.ndarray):
            for k, point in enumerate(sources):
                now[tuple(point)] += values[t, k]
            continue
        for k, around in enumerate(neighbours(sources, first.shape, steps, t)):
            for index, weight in around:
                wide = "c16" if now.dtype.kind == "c" else "f8"
                now[index] = now[index].astype(wide) + times(weight, values[t, k].astype(wide))
    return u


WAVES = {
    1: "u[t+1, i, j] = 0.5 * u[t, i, j] + 0.25 * (u[t, i-1, j] + u[t, i, j-1])",
    2: "u[t+1, i, j] = u[t, i, j] - 0.5 * u[t-1, i, j] + 0.25 * (u[t, i-1, j] + u[t, i, j-1])",
    3: "u[t+1, i, j] = u[t, i, j] + 0.5 * u[t-1, i-1, j] - 0.25 * (u[t-2, i, j] + u[t, i, j-1])",
    4: "u[t+1, i, j] = 0.5 * u[t, i, j] + 0.5 * u[t-3, i, j] - 0.25 * (u[t, i-1, j-1] + u[t, i, j])",
}
NESTS = {back: tw.nest_from(f"def wave(u, t, i, j):\n    {text}\n") for back, text in WAVES.items()}


def random_case(draw, inside=False):
    """A nest, its first and earlier values, steps, sources, values; `inside`: at elements that points write."""
    back, steps, count = int(draw.integers(1, 5)), int(draw.integers(1, 9)), int(draw.integers(1, 4))
    dtype = str(draw.choice(["f4", "f8", "c8"]))
    given = str(draw.choice(["f4", "f8", "i8"] if dtype == "f4" else [dtype, "f8"]))
    shape = tuple(int(n) for n in draw.integers(4, 12, 2))
    at = draw.random((steps, count, 2)) * (np.array(shape) - 1)
    at = np.where(draw.random(at.shape) < 0.5, 0, at)  # at edges, which the nest does not write
    if inside:
        at = np.rint(2 * (1 + draw.random((count, 2)) * (np.array(shape) - 2))) / 2  # at elements or between two
        if draw.random() < 0.5:
            at = np.rint(at - 0.25).astype("i8")
    elif draw.random() < 0.3:
        at = np.rint(at[0]).astype(str(draw.choice(["i4", "u1"])))
    at = at if draw.random() < 0.5 else np.asfortranarray(at)
    how = "linear" if inside else str(draw.choice(["linear", "sinc"]))
    sources = at if at.dtype.kind in "iu" else tw.OffGrid(at, how, radius=2)
    values = np.asfortranarray((8 * draw.standard_normal((steps, count))).astype(given))
    history = [draw.standard_normal(shape).astype(dtype) for _ in range(back - 1)]
    return NESTS[back], draw.standard_normal(shape).astype(dtype), history, steps, sources, values


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_elements_that_no_point_writes_keep_what_is_added(seed, ranks):
    nest, first, history, steps, sources, values = random_case(np.random.default_rng([seed, ranks]))
    expected = stepped(nest, [range(1, n) for n in first.shape], first, history, steps, sources, values)

    def body(context):
        u = tw.field(first.shape, first.dtype, first, history=history, context=context)
        tw.run(nest, u=u, steps=steps, inject={"u": (sources, values)})
        return [u.gather(), *(u.buffer(-k).gather() for k in range(1, len(history) + 1))]

    found = results_of(ranks, 1, body)[0]
    assert all(u.tobytes() == right.tobytes() for u, right in zip(found, expected[::-1]))


@pytest.mark.parametrize(("ranks", "lanes"), [(1, 1), (1, 2), (2, 1), (3, 2)])
@pytest.mark.parametrize("seed", range(12))
def test_sources_are_inside_blocks_of_time_steps(seed, ranks, lanes):
    draw = np.random.default_rng([7, seed, ranks, lanes])
    nest, first, history, steps, sources, values = random_case(draw, inside=True)
    expected = stepped(nest, [range(1, n) for n in first.shape], first, history, steps, sources, values)
    block = int(draw.integers(2, 5))
    plan = {"temporal_block": block, "threads": lanes, "generator": "sweep"}

    def body(context):
        u = tw.field(first.shape, first.dtype, first, history=history, context=context)
        try:
            report = tw.run(nest, u=u, steps=steps, inject={"u": (sources, values)}, plan=plan)
        except tw.ConfigError as error:  # of blocks thinner than their halo
            assert "temporal_block" in str(error)
            return None
        block_of = report.plan.notes["extents"][0]
        return block_of, [u.gather(), *(u.buffer(-k).gather() for k in range(1, len(history) + 1))]

    found = results_of(ranks, lanes, body)[0]
    if found is None:
        return
    assert found[0] == steps  # of one block
    assert all(u.tobytes() == right.tobytes() for u, right in zip(found[1], expected[::-1]))


@pytest.mark.parametrize("dtype", ["f4", "c8", "u1", "i4", "bool"])
def test_sums_are_numpys(dtype):
    keep = tw.nest_from("def keep(u, t, i):\n    u[t+1, i] = u[t, i]\n")
    draw = np.random.default_rng(3)
    values = draw.integers(0, 2 if dtype == "bool" else 200, (3, 4))
    values = values * draw.random((3, 4)) if dtype in ("f4", "c8") else values.astype("u1" if dtype == "u1" else dtype)
    u, expected = np.array([0.1, 1, 7]).astype(dtype), np.array([0.1, 1, 7]).astype(dtype)
    tw.run(keep, u=u, steps=3, inject={"u": ([0, 2, 2, 1], values)})
    for row in values:
        for point, value in zip([0, 2, 2, 1], row, strict=True):
            expected[point] += value
    assert u.tobytes() == expected.tobytes()


def test_coordinates_lie_in_any_order():
    x, y = np.array([1.0, 2.5, 4.0]), np.array([5.0, 1.0, 3.25])
    keep = tw.nest_from("def keep(u, t, i, j):\n    u[t+1, i, j] = u[t, i, j]\n")
    swapped, wide = np.array([x, y]).T, np.zeros((6, 4))
    wide[::2, ::2] = swapped
    unaligned = np.frombuffer(b"0" + swapped.tobytes(), "f8", offset=1).reshape(3, 2)
    for points in (swapped, wide[::2, ::2], unaligned, swapped.astype(">f8"), swapped.astype("f4")):
        points.flags.writeable = False
        u = tw.field((6, 7), init=lambda i, j: 10.0 * i + j)
        for kind in ("linear", "sinc"):
            recorded = tw.run(keep, u=u, steps=1, record={"u": tw.OffGrid(points, kind)}).recorded["u"]
            right = tw.run(keep, u=u, steps=1, record={"u": tw.OffGrid(points.tolist(), kind)}).recorded["u"]
            assert recorded.tobytes() == right.tobytes() and (kind == "sinc" or recorded[0].tolist() == [15, 26, 43.25])


def test_longer_floats_are_refused():
    keep = tw.nest_from("def keep(u, t, i):\n    u[t+1, i] = u[t, i]\n")
    given = {"u": ([1], np.zeros((1, 1), np.longdouble))}
    wanted = "dtype float128; allowed: at most 64 bits a part"
    refused_on_all(2, lambda c: tw.run(keep, u=tw.field((3,), context=c), steps=1, inject=given), wanted)


def test_arrays_that_keep_all_time_steps_beside_sources():
    film = tw.nest_from("def film(u, f, t, i):\n    f[t+1, i] = u[t, i]\n    u[t+1, i] = u[t, i] + u[t, i-1]\n")

    def run(nests):
        u, f = tw.field((5,), init=1.0), tw.field((4, 5))
        sources, receivers = {"u": ([[2]], np.ones((3, 1)))}, {"u": [[3]]}
        report = tw.run(nests, u=u, f=f, steps=3, inject=sources, record=receivers)
        return u[...].tolist(), f[...].tolist(), report.recorded["u"][:, 0].tolist()

    sums = tw.nest_from("def sums(u, f, t, i):\n    f[t+1, i] = f[t, i] + u[t, i]\n    u[t+1, i] = 2 * u[t, i]\n")
    assert run(sums) == run((sums,))
    tw.run((film,), u=tw.field((5,)), f=tw.field((1, 5)), steps=0)
    u, f, recorded = np.ones(5), np.zeros((4, 5)), []
    for t in range(3):
        f[t + 1, 1:] = u[1:]
        u[1:] = u[1:] + u[:-1]
        u[2] += 1
        recorded.append(u[3])
    assert run((film,)) == run(film) == (u.tolist(), f.tolist(), recorded)


def test_what_is_given_is_read_when_it_is_given():
    keep = tw.nest_from("def keep(u, t, i):\n    u[t+1, i] = u[t, i]\n")
    at, u = np.array([[1.5]]), np.arange(4.0)
    points = tw.OffGrid(at)
    at[...] = 0
    assert tw.run(keep, u=u, steps=1, record={"u": points}).recorded["u"] == [[1.5]]
    field = tw.field((4,), init=1.0)
    for given, array in ((u, u), (field, field.local)):
        with pytest.raises(tw.ConfigError, match="the values of 'u' share memory with array 'u'.*allowed: a copy"):
            tw.run(keep, u=given, steps=1, inject={"u": ([0, 1, 2, 3], array[None])})
    for masked in ({"u": np.ma.masked_array([1], [True])}, {"u": tw.OffGrid(np.ma.masked_array([[1.0]], [[True]]))}):
        with pytest.raises(tw.ConfigError, match="given a masked array"):
            tw.run(keep, u=u, steps=1, record=masked)


def test_letters_beside_sources():
    letters = tw.nest_from("def letters(u, s, t, i):\n    u[t+1, i] = u[t, i] + s[i]\n")
    u = tw.field((5,), "f8")
    tw.run(letters, u=u, s=b"abcde", steps=2, inject={"u": ([2], [[1.0], [2.0]])})
    assert u.gather().tolist() == [194, 196, 201, 200, 202]


@tw.nest
def swept(u, t, i, j):
    u[t+1, i, j] = 0.5 * u[t+1, i-1, j] + 0.25 * u[t, i, j]


@pytest.mark.parametrize("ranks", [1, 2])
def test_points_of_the_same_step_read_what_was_there_before(ranks, seed):
    """Sources add when all points of a time step are computed, also where a point reads its neighbour's new value."""
    rng = np.random.default_rng(seed)
    start, points = rng.random((40, 30)), np.array([[5, 7], [20, 3], [20, 3], [38, 29]])
    values, expected = rng.random((6, 4)), start.copy()
    for step in range(6):
        for i in range(1, 40):
            expected[i] = 0.5 * expected[i - 1] + 0.25 * expected[i]
        for point, value in zip(points, values[step], strict=True):
            expected[tuple(point)] += value

    def body(context):
        u = tw.field(start, context=context)
        plan = {"temporal_block": 2, "tile": (1, 4, 5)}
        tw.run(swept, u=u, steps=6, inject={"u": (points, values)}, plan=plan, context=context)
        return u.gather()

    assert np.array_equal(results_of(ranks, 1, body)[0], expected), f"seed {seed}"


@tw.nest
def shifted(u, t, i, j):
    u[t+1, i, j] = u[t, i+1, j+1] + u[t, i, j-1]


@pytest.mark.parametrize("ranks", [1, 3])
def test_sources_beside_the_ends_of_periodic_loops(ranks, seed):
    """Blocks of time steps compute copies of elements beyond an end: they have the sources, too."""
    rng = np.random.default_rng(seed)
    start, points, values = rng.integers(0, 9, (7, 3)), np.array([[5, 1], [6, 2], [0, 0]]), rng.integers(1, 9, (5, 3))
    expected = start.copy()
    for step in range(5):
        expected = np.roll(expected, (-1, -1), (0, 1)) + np.roll(expected, 1, 1)
        for point, value in zip(points, values[step], strict=True):
            expected[tuple(point)] += value

    def body(context):
        u = tw.field(start, context=context)
        plan = {"temporal_block": 4, "grid": (1, 1, ranks)}
        tw.run(shifted, u=u, steps=5, periodic=("i", "j"), inject={"u": (points, values)}, plan=plan, context=context)
        return u.gather()

    assert np.array_equal(results_of(ranks, 1, body)[0], expected), f"seed {seed}"
