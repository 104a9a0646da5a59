"""A rank's schedule comes from its neighbours alone, and is the one that asking every rank gives."""

import random

import pytest
from general_sweeps import factorisations, general_case, largest_blocks, unit_dims
from schedule_text import schedule_text

from tilewave import _core
from tilewave.errors import ConfigError


def compare(name, problem, plan, ranks):
    everyone = list(range(ranks))
    for rank in everyone:
        own = schedule_text(_core.sweep(problem, plan, rank, ranks))
        asked = schedule_text(_core.sweep_among(problem, plan, rank, ranks, everyone))
        assert own == asked, f"{name}, rank {rank} of {ranks}, {plan}"
        messages = {m.peer for m in _core.sweep(problem, plan, rank, ranks).messages if m.aggregate < 0}
        assert messages <= set(_core.sweep_neighbours(problem, plan, rank)), f"{name}, rank {rank}, {plan}"
    times = [t.wave for r in everyone for t in _core.sweep(problem, plan, r, ranks).tiles]
    steps = max(times) - min(times) + 1 if times else 0
    assert _core.sweep_waves(problem, plan) == steps, f"{name}, {ranks} ranks, {plan}"


def on_more_ranks(case):
    """The case's problem and plan on up to 64 ranks, most of them with few points or none; None where nothing may be
    cut.
    """
    rng = random.Random(case.seed)
    cut = [k for k in range(len(case.shape)) if case.problem.may_cut(k)]
    if not cut:
        return None
    ranks = rng.choice((5, 7, 8, 9, 12, 16, 24, 27, 30, 36, 48, 64))
    grid = [1] * len(case.shape)
    for k, n in zip(cut, factorisations(ranks, len(cut), rng)):
        grid[k] = n
    problem, plan = case.problem, case.plan  # the case is used no more
    if plan.weights:
        plan.weights = tuple(rng.choice((1, 3, 10)) for _ in range(ranks))
        problem = problem.weighted(plan.weights, ranks)
    plan.grid = tuple(grid)
    blocks = zip(unit_dims(case), case.plan.tile, largest_blocks(case, plan.grid))
    plan.tile = tuple(1 if unit else max(1, min(tile, block)) for unit, tile, block in blocks)
    try:
        plan.validate(problem, ranks)
    except ConfigError:
        return None
    return problem, plan, ranks


@pytest.mark.parametrize("first", range(0, 240, 30))
def test_random_general_sweeps_ask_neighbours_only(first):
    for seed in range(first, first + 30):
        case = general_case(seed, deep_halo=seed % 7 == 0)
        compare(str(case), case.problem, case.plan, case.ranks)
        more = on_more_ranks(case)
        if more:
            compare(str(case), *more)


def test_loops_in_opposite_directions():
    """One loop runs downwards and the other up: the neighbour lies across a corner of the grid."""
    accesses = [(0, (0, 0), True, False), (0, (1, -1), False, False), (0, (0, -1), False, False)]
    arrays = [(8, False, (12, 12), (0, 1), 0, False)]
    problem = _core.SweepProblem((12, 12), ((0, 1), (11, 12)), arrays, accesses, [], [True, False], False)
    plan = _core.Plan()
    plan.grid, plan.factors, plan.tile, plan.mapping_dim = (4, 4), (1, 1), (3, 1), 1
    compare("opposite directions", problem, plan, 16)


def weak_sweep(ranks):
    """The same block for every rank, in a row of ranks."""
    shape = (1 + 8 * ranks, 33)
    problem = _core.SweepProblem(shape, ((1, 1), shape), [(8, False)], [(0, (-1, 0)), (0, (0, -1))])
    plan = _core.Plan()
    plan.grid, plan.factors, plan.tile, plan.mapping_dim = (ranks, 1), (1, 1), (8, 8), 1
    return problem, plan


@pytest.mark.parametrize("ranks", [64, 4096, 65536, 1 << 20])
def test_a_rank_of_many_has_few_neighbours(ranks):
    problem, plan = weak_sweep(ranks)
    middle = ranks // 2
    assert _core.sweep_neighbours(problem, plan, middle) == [middle - 1, middle + 1]
    schedule = _core.sweep(problem, plan, middle, ranks)
    assert {m.peer for m in schedule.messages} == {middle - 1, middle + 1}
    assert _core.sweep_waves(problem, plan) >= ranks


@pytest.mark.parametrize("seed", range(60))
def test_blocks_with_a_point(seed):
    """Layout.owners by arithmetic is the list of ranks whose block meets the region."""
    rng = random.Random(seed)
    dims = rng.choice((1, 2, 3, 4))
    shape = tuple(rng.randint(0 if rng.random() < 0.1 else 1, 12) for _ in range(dims))
    layout = _core.Layout(shape, factorisations(rng.choice((1, 2, 6, 12, 30)), dims, rng))
    low = tuple(rng.randint(-1, n) for n in shape)
    high = tuple(rng.randint(a, n + 1) for a, n in zip(low, shape))
    meeting = []
    for rank in range(layout.ranks):
        ends = zip(*layout.owned(rank), low, high)
        if all(max(a, c) < min(b, d) for a, b, c, d in ends):
            meeting.append(rank)
    assert layout.owners((low, high)) == meeting
