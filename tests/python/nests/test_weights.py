"""Ranks that are not equally fast: blocks in proportion to weights, given or chosen, and the same results."""

import itertools
import math
import random

import numpy as np
import pytest
from local_ranks import refused_on_all, results_of, steady_rates, with_speeds

import tilewave as tw
from tilewave import _core
from tilewave.machine import host


@tw.nest
def relax(A, i, j):
    A[i, j] = 0.5 * A[i-1, j] + 0.25 * A[i, j-1] + 1


@tw.nest
def heat(u, t, i, j):
    u[t+1, i, j] = u[t, i, j] + 0.125 * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])


@tw.nest
def shift(B, A, i, j):
    B[i, j] = 2 * A[i+1, j] - A[i, j+1]


START = np.random.default_rng(7).random((37, 41))


def relaxed(start):
    whole = start.copy()
    for i, j in itertools.product(range(1, whole.shape[0]), range(1, whole.shape[1])):
        whole[i, j] = 0.5 * whole[i-1, j] + 0.25 * whole[i, j-1] + 1
    return whole


def heated(start, steps):
    u = start.copy()
    for _ in range(steps):
        v = u.copy()
        v[1:-1, 1:-1] += 0.125 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        u = v
    return u


def in_proportion(extent, weights):
    """Where the blocks of an axis begin and end: as near to the exact parts as whole numbers are."""
    before = [0, *itertools.accumulate(weights)]
    return [math.floor(extent * each / before[-1] + 0.5) for each in before]


@pytest.mark.parametrize("ranks", [2, 3, 4, 6])
@pytest.mark.parametrize("seed", range(6))
def test_blocks_are_in_proportion_and_results_the_same(ranks, seed):
    rng = random.Random(f"{ranks} {seed}")
    weights = tuple(rng.choice((1, 2, 3, 10, 100)) for _ in range(ranks))
    lanes = rng.choice((1, 2))

    def body(context):
        A, u = (tw.field(START, context=context) for _ in range(2))
        report = tw.run(relax, A=A, plan={"weights": weights, "grid": (ranks, 1)})
        assert report.plan.weights == weights
        owned = A.owned[0].start, A.owned[0].stop
        tw.run(heat, u=u, steps=5, plan={"weights": weights, "grid": (1, 1, ranks)})
        assert (u.owned[1].stop - u.owned[1].start > 0) == (in_proportion(41, weights)[context.rank] <
                                                            in_proportion(41, weights)[context.rank + 1])
        first, whole = tw.bind(relax, A=A, plan={"weights": weights}), tw.field(START.shape, context=context)
        second = tw.bind(shift, B=whole, A=A)
        first.run()
        second.run()
        tw.chain([first, second]).run(times=2)
        tw.run(shift, B=whole, A=A)  # as planned: even blocks, to which the fields move
        return owned, A.gather(), u.gather(), whole.gather()

    found = results_of(ranks, lanes, body)
    begins = in_proportion(37, weights) if len(set(weights)) > 1 else None
    if begins:
        assert [owned for owned, *_ in found] == list(itertools.pairwise(begins)), (weights, begins)
    expected = relaxed(relaxed(relaxed(relaxed(START))))
    shifted = np.zeros_like(START)
    shifted[:-1, :-1] = 2 * expected[1:, :-1] - expected[:-1, 1:]
    _, A, u, B = found[0]
    assert np.array_equal(A, expected) and np.array_equal(u, heated(START, 5)), (weights, lanes)
    assert np.array_equal(B, shifted), (weights, lanes)


def test_a_grid_of_two_dimensions_gives_each_coordinate_what_its_ranks_have():
    weights = (3, 1, 3, 1, 6, 2)

    def body(context):
        A = tw.field((80, 40), context=context)
        tw.run(heat, u=A, steps=2, plan={"weights": weights, "grid": (1, 3, 2)})
        return [(axis.start, axis.stop) for axis in A.owned]

    assert results_of(6, 1, body) == [
        [rows, columns] for rows in ((0, 20), (20, 40), (40, 80)) for columns in ((0, 30), (30, 40))
    ]


@pytest.mark.parametrize(
    "weights, text",
    [
        ((1, 2), "weights (1, 2) were given for 3 ranks; allowed: for each rank an integer from 1 to 1000000, or none"),
        ((1, 2, 0), "weights (1, 2, 0) were given for 3 ranks; allowed: for each rank an integer from 1"),
        ((1, 2, 10**6 + 1), "were given for 3 ranks; allowed: for each rank an integer from 1 to 1000000"),
        (("a", 2, 3), "weights: given ('a', 2, 3); allowed: a tuple of integers"),
        (2, "weights: given 2; allowed: a tuple of integers"),
    ],
)
def test_wrong_weights_are_refused(weights, text):
    refused_on_all(3, lambda c: tw.run(relax, A=tw.field(START, context=c), plan={"weights": weights}), text)


def test_fields_with_blocks_of_their_own_and_weights_are_refused():
    def body(context):
        A = tw.field((9, 9), blocks=tw.Blocks(8, shift=1), context=context)
        tw.run(relax, A=A, plan={"weights": (1, 2)})

    refused_on_all(2, body, "weights (1, 2) were given for a nest over fields with blocks=")


def test_a_plan_keeps_its_weights_in_a_file_and_for_other_bounds(tmp_path):
    def body(context):
        A = tw.field(START, context=context)
        plan = tw.run(relax, A=A, plan={"weights": (1, 3), "grid": (2, 1)}).plan
        again = tw.run(relax, A=A, over={"i": (1, 30)}, plan={"weights": (1, 3), "grid": (2, 1)}).plan
        path = tmp_path / f"{context.rank}.json"
        plan.save(path)
        A[...] = START
        report = tw.run(relax, A=A, plan=tw.Plan.load(path))
        return plan.weights, again.weights, report.plan == plan, A.gather()

    (*weights, same, whole), _ = results_of(2, 1, body)
    assert weights == [(1, 3), (1, 3)] and same and np.array_equal(whole, relaxed(START))


def test_saved_fields_are_read_by_other_numbers_of_ranks(tmp_path):
    def save(context):
        A = tw.field(START, context=context)
        tw.run(relax, A=A, plan={"weights": (5, 1, 2), "grid": (3, 1)})
        A.save(tmp_path / "A.npy")
        tw.checkpoint(tmp_path / "state", 1, A=A, context=context)

    def load(context):
        A = tw.field(START.shape, init=lambda i, j: 0, context=context)
        tw.run(relax, A=A, plan={"weights": (1, 7), "grid": (1, 2)})
        resumed = tw.resume(tmp_path / "state", context=context)["A"]
        return resumed.gather(), tw.load(tmp_path / "A.npy", context=context).gather()

    results_of(3, 1, save)
    for whole in results_of(2, 1, load)[0]:
        assert np.array_equal(whole, relaxed(START))


@pytest.mark.parametrize("slow, unequal", [(0.5, True), (0.8, True), (0.9, False), (1.0, False)])
def test_blocks_are_in_proportion_where_ranks_are_not_equally_fast(monkeypatch, slow, unequal):
    steady_rates(monkeypatch)

    def body(context):
        with_speeds(context, [1.0, slow])
        u = tw.field((600, 500), init=lambda i, j: i + 0.5 * j, context=context)
        plan = tw.plan(heat, u=u, steps=40, plan={"grid": (1, 2, 1), "threads": 1})
        even = tw.plan(heat, u=u, steps=40, plan={"grid": (1, 2, 1), "threads": 1, "weights": ()})
        return plan.weights, even.weights, plan.explain(), plan.predicted.time_s, even.predicted.time_s

    (weights, even, text, time_s, even_s), other = results_of(2, 1, body)
    assert weights == other[0] == ((100, round(100 * slow)) if unequal else ()) and even == ()
    assert ("points in proportion to 100 : " in text.splitlines()[0]) == unequal
    assert ("Ranks are not equally fast: even blocks are predicted to take" in text) == unequal
    if unequal:
        assert 1.7 * time_s > even_s > (1 + 0.7 * (1 - slow)) / (1 + slow) * time_s


def test_a_lane_of_crowded_ranks_has_a_part_of_a_cpu():
    machine = _core.Machine()
    machine.set_of, machine.set_cpus = [0, 1, 1, 2], [1.0, 1.0, 0.25]
    assert machine.lane_speeds(4, 1) == [1, 0.5, 0.5, 0.25] and machine.weights(4, 1) == (100, 50, 50, 25)
    assert machine.lane_speeds(2, 2) == [0.5, 0.5] and machine.weights(2, 2) == ()
    machine.speeds = [1, 1, 0.5, 1]
    assert machine.weights(4, 1) == (100, 50, 25, 25)


@pytest.mark.parametrize(
    "speeds, found",
    [
        ([1.0, 0.97, 0.9], []),
        ([1.0, 0.5], [1.0, 0.5]),
        ([0.52, 1.0, 0.5, 0.95], [0.52, 1.0, 0.52, 1.0]),
        ([1.0, 0.001], [1.0, 0.01]),
        ([1.0], []),
    ],
)
def test_about_equal_speeds_are_one(speeds, found):
    assert host.grouped(speeds) == found
