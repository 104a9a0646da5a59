"""Sweeps on ranks as threads equal plain loops, for random problems and plans."""

import pytest
from general_runs import run_case
from general_sweeps import general_case


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
