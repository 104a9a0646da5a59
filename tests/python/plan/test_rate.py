"""The rate of a body: fitted to tiles of several shapes, measured on the tiles that a plan's lanes have."""

import ctypes
import dataclasses
import math

import pytest
from row_functions import row_function

import tilewave as tw
from tilewave import ConfigError, _core
from tilewave.nests.plan import kernel_maker


@tw.nest
def linear(A, i, j, k):
    A[i, j, k] = 0.3 * A[i-1, j, k] + 0.3 * A[i, j-1, k] + 0.3 * A[i, j, k-1]


SHAPES = [(50, 20000), (500, 12000), (4, 8)]  # rows and points


def samples(point_s, row_s, tile_s):
    return [(rows, points, tile_s + rows * row_s + points * point_s) for rows, points in SHAPES]


def test_samples_without_noise_give_what_they_were_made_of():
    r = _core.fit_rate(samples(1e-9, 2e-8, 3e-7))
    assert [r.point_s, r.row_s, r.tile_s] == pytest.approx([1e-9, 2e-8, 3e-7], rel=1e-6) and r.one_lane_factor == 0


@pytest.mark.parametrize("times, factor", [(0.4, 0.4), (1, 1), (5, 1), (0, 1e-3)])
def test_one_lane_is_not_slower_than_several(times, factor):
    """The same tile by all lanes and by one: the times of points, rows and tiles shrink by one factor."""
    rows, points, tile_s = samples(1e-9, 2e-8, 3e-7)[0]
    r = _core.fit_rate([*samples(1e-9, 2e-8, 3e-7), (rows, points, times * tile_s)])
    assert r.one_lane_factor == pytest.approx(factor, rel=1e-6)


@pytest.mark.parametrize("given", [2, 5])
def test_so_many_samples_are_refused(given):
    with pytest.raises(ConfigError, match=f"from {given} samples"):
        _core.fit_rate((samples(1e-9, 2e-8, 3e-7) * 2)[:given])


@pytest.fixture
def found(monkeypatch):
    """The samples of every rate that is measured."""
    found, sampled = [], kernel_maker.sampled

    def spy(context, given, prepared, budget_s):
        found.append(sampled(context, given, prepared, budget_s))
        return found[-1]

    monkeypatch.setattr(kernel_maker, "sampled", spy)
    return found


# Rows go along j and k here: tiles may not become wider than a lane's share of either.
@pytest.mark.parametrize(
    "factors, tile, most",
    [((1, 1, 2), (5, 63, 60), 63 * 128), ((1, 2, 1), (5, 30, 63), 32 * 255), ((1, 1, 1), (5, 63, 60), 63 * 255)],
)
def test_all_lanes_have_tiles_when_a_rate_is_measured(found, factors, tile, most):
    context = tw.Context(threads=2)
    A = tw.field((64, 64, 256), "f4", init=lambda *at: 1.0, context=context)
    plan = tw.plan(
        linear,
        A=A,
        plan={"mapping_dim": 0, "factors": factors, "tile": tile, "row": (0, -1, 1), "storage": "skewed"},
        context=context,
    )
    lanes = math.prod(factors)
    assert len(found) == 1 and len(found[0]) == (4 if lanes > 1 else 3)
    rows, points, seconds, _ = found[0][0]
    assert 5 * tile[1] * tile[2] <= points <= 5 * most and 0 < rows < points and seconds > 0
    if lanes > 1:
        assert found[0][3][:2] == (rows, points)
    assert 0 < plan.notes["rate"]["one_lane_factor"] <= 1 if lanes > 1 else plan.notes["rate"]["one_lane_factor"] == 0


SLEEP_S = 1e-3
usleep = ctypes.CDLL(None).usleep
usleep.argtypes, usleep.restype = [ctypes.c_uint], ctypes.c_int


@row_function
def sleeping(pointers, steps, points, index, direction, environment):
    usleep(1000)
    return 0


class Sleeping:
    """A kernel whose rows keep no CPU busy."""

    rows_address = 0

    def __init__(self, kernel):
        self._kernel, self.address = kernel, sleeping().address

    def __getattr__(self, name):
        return getattr(self._kernel, name)


@pytest.mark.parametrize("more", [0, 1])
def test_what_lanes_have_of_the_cpus_counts(monkeypatch, more):
    found, sampled = [], kernel_maker.sampled

    def spy(context, given, prepared, budget_s):
        found.append(sampled(context, given, dataclasses.replace(prepared, kernel=Sleeping(prepared.kernel)), budget_s))
        return found[-1]

    monkeypatch.setattr(kernel_maker, "sampled", spy)
    context = tw.Context(threads=len(_core.allowed_cpus()) + more)
    A = tw.field((4, 9, 300), "f4", init=lambda *at: 1.0, context=context)
    tw.plan(
        linear,
        A=A,
        plan={"mapping_dim": 0, "factors": (1, 1, 1), "tile": (3, 8, 299), "row": (0, 0, 1), "storage": "plain"},
        context=context,
    )
    rows, points, seconds, _ = found[0][0]
    assert points > 0 and seconds < 0.5 * rows * SLEEP_S


@pytest.mark.parametrize("disturbed", ["plain", "skewed"])
@pytest.mark.parametrize("faster", ["plain", "skewed"])
def test_storages_are_measured_in_turn(monkeypatch, faster, disturbed):
    visits = {"plain": [], "skewed": []}

    def beside_other_work(context, given, prepared, budget_s):
        storage = prepared.sweep.plan.storage
        visits[storage].append(prepared)
        slower = (4 if storage != faster else 1) * (100 if storage == disturbed and len(visits[storage]) == 1 else 1)
        return [(10, 100_000, slower * 1e-4, 0), (100, 10_000, slower * 1e-5, 0), (10, 100, slower * 1e-7, 0)]

    monkeypatch.setattr(kernel_maker, "sampled", beside_other_work)
    context = tw.Context(threads=1)
    A = tw.field((40, 50, 60), "f4", init=1.0, context=context)
    plan = tw.plan(linear, A=A, planning="thorough", context=context)
    assert {storage: len(times) for storage, times in visits.items()} == {"plain": 2, "skewed": 2}
    assert plan.storage == faster and all(each["bringing_s"] == 0 for each in plan.notes["alternatives"])


@tw.nest
def down(H, B, i, j):
    H[i, j] = H[i-1, j] + B[i, j]
    B[i, j] = H[i, j]


@tw.nest
def scored(H, B, i, j):
    H[i, j] = max(H[i-1, j], H[i, j-1], H[i-1, j-1] + B[i, j])


@pytest.mark.parametrize("nest", [down, scored])
@pytest.mark.parametrize("shape", [(300, 300), (40, 3000), (2500, 60), (1500, 1400)])
@pytest.mark.parametrize("threads", [1, 2])
def test_planes_are_measured_in_rows_of_two_lengths_and_tiles_of_few(found, nest, shape, threads):
    """Else what begins a row cannot be told from what a point takes, nor from what begins a tile."""
    context = tw.Context(threads=threads)
    fields = {
        "H": tw.field(shape, "i4", keep="window", context=context),
        "B": tw.field(shape, "i4", init=1, context=context),
    }
    plan = tw.plan(nest, **fields, context=context)
    lengthy, brief, tiny = found[0][:3]
    assert lengthy[1] / lengthy[0] > 1.3 * brief[1] / brief[0] and 2 * tiny[0] <= max(lengthy[0], brief[0]), (
        plan,
        found[0],
    )
    assert len(found[0]) == (4 if threads > 1 else 3) and (threads == 1 or found[0][3][:2] == lengthy[:2]), (
        plan,
        found[0],
    )
