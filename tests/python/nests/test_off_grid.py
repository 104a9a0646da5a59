"""Sources and receivers between the points of the grid: equal plain loops, bit for bit; one transposes the other."""

import itertools
import math

import numpy as np
import pytest
from local_ranks import refused_on_all, results_of
from off_grid_points import neighbours

import tilewave as tw
from tilewave.nests.points.off_grid import KAISER

STEP = tw.nest_from(
    "def step(u, t, i, j):\n    u[t+1, i, j] = 0.25 * (u[t, i-1, j] + u[t, i, j+1] + u[t, i, j])\n"
)


@pytest.mark.parametrize("radius", sorted(KAISER))
def test_weights(radius):
    at = np.random.default_rng(3).random((20, 2)) * (24, 30)
    first, weights = tw.OffGrid(at)._neighbours((25, 31), 1)
    assert np.array_equal(first, np.floor(at)) and np.array_equal(weights[..., 1], at - first)
    first, weights = tw.OffGrid(at, "sinc", radius=radius)._neighbours((25, 31), 1)
    for point, axis in itertools.product(range(20), range(2)):
        for k in range(2 * radius):
            index = first[point, axis] + k
            x = (index - at[point, axis]) * math.pi
            window = math.sqrt(1 - (x / math.pi / radius) ** 2)
            expected = math.sin(x) / x * np.i0(KAISER[radius] * window) / np.i0(KAISER[radius])
            assert weights[point, axis, k] == pytest.approx(expected if 0 <= index < (25, 31)[axis] else 0, abs=1e-13)
    assert weights[:, 0][(at[:, 0] > radius) & (at[:, 0] < 24 - radius)].sum(axis=1) == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize("interpolation", ["linear", "sinc"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_record_is_the_transpose_of_inject(ranks, interpolation):
    """The matrix of all sources is that of all receivers, transposed; its columns are found one a time step."""
    shape, count = (5, 6), 7
    same = tw.nest_from("def same(u, t, i, j):\n    u[t+1, i, j] = 0 * u[t, i, j]\n")
    points = tw.OffGrid(np.random.default_rng(8).random((count, 2)) * (4, 5), interpolation, radius=3)

    def body(context):
        u = tw.field(shape, context=context)
        grid = list(np.ndindex(shape))
        given = {"inject": {"u": (points, np.eye(count))}, "record": {"u": grid}}
        injected = tw.run(same, u=u, steps=count, **given).recorded["u"]
        given = {"inject": {"u": (grid, np.eye(len(grid)))}, "record": {"u": points}}
        recorded = tw.run(same, u=u, steps=len(grid), **given).recorded["u"]
        return injected, recorded

    for injected, recorded in results_of(ranks, 1, body):
        assert np.count_nonzero(injected) >= 4 * count and np.array_equal(injected, recorded.T)


@pytest.mark.parametrize("ranks", [1, 4])
def test_points_of_the_grid_and_arrays_that_no_nest_writes(ranks):
    draw = np.random.default_rng(5)
    points, values, first = draw.integers(0, 8, (9, 2)), draw.random((4, 9)), draw.random((8, 8))
    scaled = tw.nest_from("def scaled(u, m, t, i, j):\n    u[t+1, i, j] = m[i, j] * u[t, i, j]\n")
    moving = tw.OffGrid(draw.random((4, 3, 2)) * 7)

    def body(context):
        found = []
        for given in (points, tw.OffGrid(points), tw.OffGrid(points, "sinc")):
            u, m = (tw.field((8, 8), "f8", first, context=context) for _ in "um")
            receivers = {"u": given, "m": moving}
            report = tw.run(scaled, u=u, m=m, steps=4, inject={"u": (given, values)}, record=receivers)
            found.append((u[...].tobytes(), report.recorded["u"].tobytes()))
        assert found[0] == found[1] == found[2]
        return report.recorded["m"]

    expected = [
        [sum((w * first[at] for at, w in around), 0.0) for around in neighbours(moving, (8, 8), 4, step)]
        for step in range(4)
    ]
    assert all(np.array_equal(found, expected) for found in results_of(ranks, 1, body))


@pytest.mark.parametrize("ranks", [1, 3])
def test_points_that_move_from_repetition_to_repetition(ranks):
    """A chain takes the rows of its repetitions, those of its points, too."""
    draw = np.random.default_rng(7)
    first, at, values = draw.random((9, 8)), draw.random((4, 2, 2)) * 7, draw.random((4, 2))

    def body(context):
        u, v = (tw.field(first, context=context) for _ in "uv")
        sources = {"inject": {"u": (tw.OffGrid(at), values)}, "record": {"u": tw.OffGrid(at[::-1].tolist(), "sinc")}}
        chain = tw.chain([tw.bind(STEP, u=u, steps=1)], **sources)
        for times in (3, 1):
            sources = {"inject": {"u": (tw.OffGrid(at[:times]), values[:times])}}
            sources["record"] = {"u": tw.OffGrid(at[::-1][:times], "sinc")}
            wanted = tw.run(STEP, u=v, steps=times, **sources).recorded["u"]
            assert np.array_equal(chain.run(times).recorded["u"], wanted) and np.array_equal(u[...], v[...])
        with pytest.raises(tw.ConfigError, match=r"allowed: .* \(5 steps, points, 2\)"):
            chain.run(5)

    results_of(ranks, 1, body)


def test_sums_of_several_ranks_are_exchanged_in_parts(monkeypatch):
    monkeypatch.setattr("tilewave.nests.points.off_grid.EXCHANGED", 100)
    draw = np.random.default_rng(6)
    first, values = draw.random((9, 8)), draw.random((5, 6))
    sources, receivers = (tw.OffGrid(draw.random((6, 2)) * 7, "sinc") for _ in range(2))

    def body(context):
        u = tw.field(first, context=context)
        given = {"inject": {"u": (sources, values)}, "record": {"u": receivers}}
        return tw.run(STEP, u=u, steps=5, **given).recorded["u"]

    (expected,) = results_of(1, 1, body)
    assert all(np.array_equal(recorded, expected) for recorded in results_of(3, 1, body))


@pytest.mark.parametrize(
    "given, wanted",
    [
        (lambda: tw.OffGrid([(1.5, 7.5)]), "point 0 is at subscripts (1.5, 7.5); allowed: inside"),
        (lambda: tw.OffGrid([[(1.0, 2.0)], [(1.0, np.nan)], [(0, 0)]]), "point 0 of time step 1 is at"),
        (lambda: tw.OffGrid([(1.5, 2.5)], "cubic"), "interpolation='cubic'; allowed: 'linear' or 'sinc'"),
        (lambda: tw.OffGrid([(1.5, 2.5)], "sinc", radius=11), "radius=11; allowed: an integer from 2 to 10"),
        (lambda: tw.OffGrid([1.5, 2.5]), "coordinates of shape (2,); allowed: real coordinates"),
        (lambda: tw.OffGrid(np.zeros((2, 1, 2))), "(3 steps, points, 2)"),
        (lambda: tw.OffGrid([(1.5, 2.5)], spacing=(1.0, 2.0, 3.0)), "for origin and spacing a number or 2"),
        (lambda: tw.OffGrid([("a", "b")]), "could not convert"),
        (lambda: tw.OffGrid([(1.0, 2.0)], spacing=0), "a spacing of 0; allowed"),
    ],
)
def test_refused(given, wanted):
    refused_on_all(2, lambda c: tw.run(STEP, u=tw.field((8, 8), context=c), steps=3, record={"u": given()}), wanted)


def test_integers_are_refused():
    fall = tw.nest_from("def fall(u, t, i):\n    u[t+1, i] = u[t, i] + u[t, i-1]\n")
    with pytest.raises(tw.ConfigError, match="dtype int64; allowed with OffGrid: real or complex"):
        tw.run(fall, u=tw.field((9,), "i8"), steps=2, record={"u": tw.OffGrid([[1.5]])})


def test_no_time_steps():
    """Receivers that lanes note have nothing to note."""
    u, at = tw.field((12, 12)), tw.OffGrid(np.array([[3.5, 4.25], [6.0, 2.0]]))
    report = tw.run(STEP, u=u, steps=0, record={"u": at})
    assert report.recorded["u"].shape == (0, 2)
