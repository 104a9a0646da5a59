"""Grids that ranks share: the same bits on any ranks, almost nothing moves between grids, ranks drop out."""

import re

import numpy as np
import pytest

import tilewave as tw
from local_ranks import results_of
from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.multigrid import Poisson, sharing


CASES = [
    ((48,), {"smoother": "gauss-seidel"}, [(2,), (3,), (6,)]),
    ((24, 16), {"smoother": "gauss-seidel"}, [(2, 1), (1, 3), (2, 2), (3, 2)]),
    ((12, 20), {"smoother": "red-black", "boundary": "neumann", "sigma": 2.0}, [(2, 1), (3, 1), (4, 1)]),
    ((8, 12, 16), {"smoother": "jacobi", "cycle": "F"}, [(2, 1, 1), (3, 2, 1)]),
    ((8, 16, 8), {"k": lambda i, j, k: 1.0 + (i > 3) + 0.1 * j, "smoother": "gauss-seidel"}, [(1, 2, 1), (1, 3, 2)]),
]


def found_on(ranks, body):
    """What `body` gives on each of some ranks."""
    return results_of(ranks, 1, body, 600)  # of a busy machine: rank 0 proves the schedule of all


def solved(shape, options, ranks, grid):
    """Solution, norms and what the schedule says, with ranks of this grid."""
    f = np.random.default_rng(5).standard_normal(shape)

    def body(context):
        solver = Poisson(shape, grid=grid, context=context, **options)
        found = solver.solve(f, tol=1e-9, max_cycles=4).gather()
        chain = solver._cycles()
        assert not chain.separate, chain.separate
        assert all(plan.grid == (grid or plan.grid) for plan in chain.plans)
        schedule = tw.schedule(chain, context=context)  # of all ranks: one checks it
        return found, solver.history.norms, tw.check(schedule) if context.rank == 0 else None

    results = found_on(ranks, body)
    assert all(violation is None for _, _, violation in results), results[0][2]
    assert len({tuple(norms) for _, norms, _ in results}) == 1
    return results[0][:2]


def random_case(seed):
    """(shape, options, process grid of each number of ranks): axes that wrap and others, shared in any way."""
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, (50, 20, 11)[dims - 1], dims))
    options = {
        "boundary": [str(rng.choice(["periodic", "periodic", "dirichlet", "neumann"])) for _ in range(dims)],
        "smoother": str(rng.choice(["gauss-seidel", "red-black", "jacobi"])),
        "cycle": str(rng.choice(["V", "V", "F" if dims > 1 else "W"])),
        "sigma": [0.5, 1 + 3j][int(rng.integers(4) == 0)],
        "pre": int(rng.integers(1, 3)),
        "post": int(rng.integers(1, 3)),
    }
    if rng.integers(3) == 0:
        options["k"] = 1 + rng.random(shape)
    grids = []
    for ranks in (2, 3, 4, 6):
        cuts = [g for g in np.ndindex(*(ranks + 1,) * dims) if np.prod(g) == ranks]
        grids.append(tuple(int(n) for n in cuts[rng.integers(len(cuts))]))
    return shape, options, grids


SHORT_SEEDS = 3  # those have one process grid each


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[] if seed < SHORT_SEEDS else pytest.mark.long) for seed in range(60)]
)
def test_random_grids_have_the_same_bits_on_any_ranks(seed, monkeypatch):
    shape, options, grids = random_case(seed)
    least = (1, 20)[seed % 2]
    print(f"seed {seed}: {shape} {options} {grids}, {least} cells a rank")
    monkeypatch.setattr(sharing, "LEAST_CELLS", least)
    alone, norms = solved(shape, options, 1, None)
    for grid in grids if seed >= SHORT_SEEDS else grids[seed % 4 :][:1]:
        found, others = solved(shape, options, int(np.prod(grid)), grid)
        assert others == norms, (grid, others, norms)
        assert np.array_equal(found.view("u8"), alone.view("u8")), grid


SHORT = [(case, (1, 60)[case % 2]) for case in range(len(CASES))]  # both for each case with --long


@pytest.mark.parametrize(
    "case, least",
    [
        pytest.param(case, least, marks=[] if (case, least) in SHORT else pytest.mark.long)
        for case in range(len(CASES))
        for least in (1, 60)
    ],
)
def test_the_same_bits_on_any_ranks(case, least, monkeypatch, request):
    monkeypatch.setattr(sharing, "LEAST_CELLS", least)
    shape, options, grids = CASES[case]
    alone, norms = solved(shape, options, 1, None)
    for grid in grids if request.config.getoption("--long") else [grids[case % len(grids)]]:
        found, others = solved(shape, options, int(np.prod(grid)), grid)
        assert others == norms, (grid, others, norms)
        assert np.array_equal(found.view("u8"), alone.view("u8")), grid


def sent(ready, ranks):
    """Elements that ranks send in one nest of a chain, and the ranks that have work in it."""
    problem, plan = ready.sweep.problem, ready.sweep.plan
    schedules = [_core.nest_schedule(problem, plan, rank, ranks) for rank in range(ranks)]
    elements = 0
    for schedule in schedules:
        for message in schedule.messages:
            low, high = message.region
            elements += message.send * int(np.prod(np.subtract(high, low)))
    return elements, {rank for rank, schedule in enumerate(schedules) if len(schedule.tiles)}


def test_ends_of_a_periodic_axis_send_one_face_each_and_keep_their_blocks(monkeypatch):
    monkeypatch.setattr(sharing, "LEAST_CELLS", 1)
    shape, grid = (48, 32), (4, 1)

    def body(context):
        solver = Poisson(shape, (1.0, 1.0), boundary="periodic", sigma=1.0, grid=grid, context=context)
        chain = tw.chain(solver._cycle.residual(0), context=context)
        give, take = chain._first.readies[:2]
        assert (give.problem.nest.name, take.problem.nest.name) == ("give_ends", "take_ends")
        assert not chain.separate
        return sent(give, 4), sent(take, 4), str(tw.schedule(chain, context=context))

    found = found_on(4, body)
    assert found[0][:2] == ((0, {0, 3}), (2 * (32 + 2), {0, 3}))
    stored = re.findall(r"array u of nest 4: stored \[(\d+):(\d+), 0:34\]", found[0][2])
    assert [int(end) - int(begin) for begin, end in stored] == [14, 14, 14, 14]


@pytest.mark.parametrize("ranks, grid", [(2, (2, 1)), (3, (3, 1)), (4, (2, 2)), (6, (2, 3))])
def test_little_moves_between_grids_and_ranks_drop_out(ranks, grid, monkeypatch):
    monkeypatch.setattr(sharing, "LEAST_CELLS", 100)
    shape = (96, 192)

    def body(context):
        solver = Poisson(shape, (1.0, 1.0), grid=grid, smoother="jacobi", context=context)
        names = [bound.nest.name for bound in solver._cycles().nests]
        return names, [sent(ready, ranks) for ready in solver._cycles()._first.readies]

    names, facts = found_on(ranks, body)[0]
    levels = len(Poisson(shape, (1.0, 1.0)).levels)
    restrictions = [fact for name, fact in zip(names, facts, strict=True) if name == "restrict"]
    corrections = [fact for name, fact in zip(names, facts, strict=True) if name == "correct"][::-1]
    assert len(restrictions) == levels - 1
    working = []
    for level, ((elements, ranks_here), (back, _)) in enumerate(zip(restrictions, corrections, strict=True)):
        fine = [n >> level for n in shape]
        border = sum(2 * (g - 1) * (fine[1 - axis] // 2 + 2) for axis, g in enumerate(grid))
        working.append(len(ranks_here))
        if np.prod(fine) >= 4 * 100 * ranks:  # both grids are shared by all
            assert elements == 0, (level, elements)
            assert 0 < back <= border, (level, back, border)
    assert working[0] == ranks and working[-1] == 1 and working == sorted(working, reverse=True), working


def test_blocks_follow_a_grid_that_ranks_share_evenly():
    shapes = [(128 >> k, 96 >> k) for k in range(6)]
    assert sharing.blocks_of(shapes, 1) == [None] * 6
    two = sharing.blocks_of(shapes, 2)
    assert two[0].points == (4, 3 << 1) and two[0].scale == (32, 16) and two[5].per == (1, 2)
    three = sharing.blocks_of(shapes, 3)
    assert three[0].points == (32, 3) and three[0].scale == (4, 32)
    assert [blocks.every for blocks in three] == [1, 1, 4, 4, 4, 4]


def test_what_is_no_grid():
    for grid in [(1,), (2, 1), (0, 1), "ij", (1.0, 1), 1]:
        with pytest.raises(ConfigError, match="grid") as error:
            Poisson((16, 16), grid=grid)
        assert "allowed" in str(error.value)
