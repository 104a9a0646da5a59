"""Closed-form costs of pipelined tiles; the worked examples are those of athanasaki2002."""

import itertools
import math

import pytest

from docs.theory import tilings as theory
from tilewave.errors import ConfigError

KINDS = pytest.mark.parametrize("kind", ["hyperplane", "vertical"])
SCHEDULES = pytest.mark.parametrize("schedule", ["blocking", "overlapping"])


def grid(*extents):
    return itertools.product(*(range(e) for e in extents))


def pairs(along, across):
    """X/x by Y/y tiles on nodes of two CPUs."""
    return theory.cost.TileGrid(tiles=(along, 2), nodes=(1, across // 2), factors=(1, 2), mapping_dim=0)


@SCHEDULES
@KINDS
@pytest.mark.parametrize("along,across", [(1, 2), (7, 4), (100, 8), (3, 10)])
def test_pipeline_steps_are_those_of_the_schedule(kind, schedule, along, across):
    g = theory.Grouping(kind, 0, [1, 2])
    s = theory.LinearSchedule.for_groups(schedule, g)
    tiles = list(grid(along, across))
    assert theory.cost.pipeline_steps(schedule, kind, pairs(along, across)) == s.waves(tiles, g)


@pytest.mark.parametrize(
    "schedule,kind,expected",
    [
        ("blocking", "vertical", 100 + 4 - 1),
        ("overlapping", "vertical", 100 + 8 - 2),
        ("overlapping", "hyperplane", 100 + 12 - 2),
        ("blocking", "hyperplane", 100 + 8 - 1),
    ],
)
def test_pipeline_steps_2d(schedule, kind, expected):
    assert theory.cost.pipeline_steps(schedule, kind, pairs(100, 8)) == expected


def test_best_slices():
    alpha, sync = 69e-3, 11e-6
    best = theory.cost.best_slices(alpha, sync)
    assert round(best) == 79
    least = theory.cost.least_vertical_group_s(alpha, sync)
    assert theory.cost.vertical_group_s(alpha, sync, best) == pytest.approx(least, rel=1e-12)
    for e in (-0.5, -0.1, 0.1, 1.0):
        loss = theory.cost.vertical_group_s(alpha, sync, best * (1 + e)) / least - 1
        assert loss == pytest.approx(e * e / (1 + e) / (2 + math.sqrt(alpha / sync)), rel=1e-6)


def test_step_and_run_times():
    c = theory.cost.StepCosts(
        alpha_s=4.0,
        t_sync_in_s=0.25,
        t_comm_s=3.0,
        t_comm_dma_s=5.0,
        t_start_dma_s=0.5,
        t_synchro_s=0.125,
    )
    g = pairs(100, 8)
    assert theory.cost.step_s("blocking", "vertical", g, c) == 4 + 2 * 1 + 3  # beta_min = 6
    assert theory.cost.step_s("blocking", "hyperplane", g, c) == 4 + 3
    assert theory.cost.step_s("overlapping", "vertical", g, c) == 0.5 + 6 + 0.125
    assert theory.cost.step_s("overlapping", "hyperplane", g, c) == 0.5 + 5 + 0.125
    assert theory.cost.run_s("overlapping", "hyperplane", g, c) == 110 * 5.625


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_vertical_groups_of_several_cpus(depth):
    alpha, sync = 4.0, 0.25
    best = theory.cost.best_slices(alpha, sync, depth)
    least = theory.cost.least_vertical_group_s(alpha, sync, depth)
    assert theory.cost.vertical_group_s(alpha, sync, max(best, 1), depth) == pytest.approx(least, rel=1e-12)
    # N slices, the last CPU `depth` of them behind, a hand-over wherever one slice follows another.
    assert theory.cost.vertical_group_s(alpha, sync, 8, depth) == (
        (8 + depth) * alpha / 8 + (7 + depth) * sync if depth else alpha
    )


def test_run_time_of_the_experiment():
    # 3-D, P (100 us + x^2 z 39.6 ns) with communication hidden.
    c = theory.cost.StepCosts(alpha_s=32 * 32 * 256 * 39.6e-9, t_start_dma_s=60e-6, t_synchro_s=40e-6)
    expected = 100e-6 + 32 * 32 * 256 * 39.6e-9
    g = theory.cost.TileGrid(tiles=(2, 1, 64), nodes=(4, 8, 1), factors=(2, 1, 1), mapping_dim=2)
    assert theory.cost.step_s("overlapping", "hyperplane", g, c) == pytest.approx(expected, rel=1e-12)
    steps = 3 * 8 // 2 + 2 * 8 + 64 - 4
    assert theory.cost.run_s("overlapping", "hyperplane", g, c) == pytest.approx(steps * expected, rel=1e-12)


@pytest.mark.parametrize("lam", [1e-3, 1e-2])
def test_criteria_agree_with_the_times_for_small_lambda(lam):
    """Just above and below each threshold; the criteria drop terms of relative size lambda
    and, in the steps, the constants, so the pipeline is long and the margin 10 %."""
    along = 10**9
    tiles = pairs(along, round(lam * along))
    alpha = 1.0
    for margin, expected in ((1.1, True), (0.9, False)):
        sync = margin * alpha * (lam / 4) ** 2
        c = theory.cost.StepCosts(alpha_s=alpha, t_sync_in_s=sync)
        assert theory.cost.hyperplane_beats_vertical(lam, c) is expected
        kinds = ("hyperplane", "vertical")
        times = [theory.cost.run_s("overlapping", k, tiles, c) for k in kinds]
        assert (times[0] < times[1]) is expected
        beta = theory.cost.least_vertical_group_s(alpha, sync)
        c.t_comm_s = margin * lam / 2 * beta
        assert theory.cost.overlapping_beats_blocking(lam, c) is expected
        kinds = ("overlapping", "blocking")
        times = [theory.cost.run_s(k, "vertical", tiles, c) for k in kinds]
        assert (times[0] < times[1]) is expected


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda: pairs(0, 2), r"tiles=\(0, 2\)"),
        (
            lambda: theory.cost.TileGrid(tiles=(2, 2), nodes=(1, 1), factors=(2, 1), mapping_dim=0),
            "1 at the mapping dimension",
        ),
    ],
)
def test_refusals_say_what_was_given(call, message):
    with pytest.raises(ConfigError, match=message) as error:
        call()
    assert isinstance(error.value, ValueError) and "allowed" in str(error.value)
