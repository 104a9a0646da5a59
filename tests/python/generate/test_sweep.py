"""Sweeps on ranks as threads equal plain loops, for random problems and plans."""

import numpy as np
import pytest
from general_runs import run_case
from general_sweeps import general_case
from local_ranks import results_of

import tilewave as tw
from tilewave import _core


def check(seeds, **kind):
    for seed in seeds:
        case = general_case(seed, item_bytes=(8,), **kind)
        wrong = run_case(case)
        assert not wrong, f"{wrong}; {case}"


@pytest.mark.parametrize("first", range(0, 210, 10))
def test_random_general_sweeps_equal_plain_loops(first):
    check(range(first, first + 10))


@pytest.mark.long
@pytest.mark.parametrize("first", range(10_000, 19_000, 500))
def test_many_random_general_sweeps_equal_plain_loops(first):
    check(range(first, first + 500))


@pytest.mark.parametrize("seed", range(12))
def test_general_sweeps_with_rolling_windows_in_panels(seed):
    check([seed], long_rows=True)


@pytest.mark.long
def test_many_general_sweeps_with_rolling_windows_in_panels():
    check(range(10_000, 11_000), long_rows=True)


@pytest.mark.parametrize("first", range(0, 40, 5))
def test_sweeps_with_deep_halos(first):
    check(range(first, first + 5), deep_halo=True)


@pytest.mark.long
@pytest.mark.parametrize("first", range(10_000, 12_000, 250))
def test_many_sweeps_with_deep_halos(first):
    check(range(first, first + 250), deep_halo=True)


def test_every_face_has_its_own_tag():
    problem = _core.SweepProblem((4, 40003), ((1, 0), (4, 40003)), [(8, False)], [(0, (-1, 0))])
    plan = _core.Plan()
    plan.grid, plan.factors, plan.tile, plan.mapping_dim = (2, 1), (1, 3), (1, 1), 0
    made = [_core.sweep(problem, plan, r) for r in range(2)]
    tags = [m.tag for m in made[0].messages]
    assert len(tags) == len(set(tags)) == 40003
    assert _core.check(made) is None

    @tw.nest
    def below(A, i, j):
        A[i, j] = A[i-1, j] + j

    def body(context):
        A = tw.field((4, 40003), "i8", init=lambda i, j: 7 * j + i, context=context)
        tw.run(below, A=A, context=context, plan={"grid": (2, 1), "factors": (1, 3), "tile": (1, 1), "mapping_dim": 0})
        return A.gather()

    results = results_of(2, 3, body)
    expected = np.empty((4, 40003), "i8")
    expected[:] = 7 * np.arange(40003) + np.arange(4)[:, None]
    for i in range(1, 4):
        expected[i] = expected[i-1] + np.arange(40003)
    assert np.array_equal(results[0], expected)
