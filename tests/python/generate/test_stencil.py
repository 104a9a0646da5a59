"""Stencils in time equal plain loops, bit for bit, for random bodies, periodic loops, grids, lanes, tiles and deep
halos; every schedule is proved.
"""

import itertools
import math

import numpy as np
import pytest
from local_ranks import results_of
from random_paths import random_paths
from random_stencils import stencil_case, stencil_plan, stencil_problem

import tilewave as tw
from tilewave import _core


def run_case(case):
    nest, expected = case.nest(), case.expected()

    def body(context):
        arrays = case.fields(context)
        given = {
            **arrays,
            "steps": case.steps,
            "periodic": case.periodic,
            "over": case.over or None,
            "reverse": case.reverse,
            "context": context,
            "plan": case.choices,
        }
        schedule = tw.schedule(nest, **given)
        violation = tw.check(schedule) if context.rank == 0 else None
        tw.run(nest, **given)
        return violation, {name: arrays[name].gather() for name in expected}

    results = results_of(case.ranks, case.lanes, body, without=random_paths(case.seed))
    violation, found = results[0]
    assert violation is None, f"{case}: {violation}"
    for name, value in expected.items():
        assert np.array_equal(found[name], value, equal_nan=True), f"{case}: array {name}"


@pytest.mark.parametrize("first", range(0, 40, 4))
def test_random_stencils_equal_plain_loops(first):
    for seed in range(first, first + 4):
        run_case(stencil_case(seed))


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 2000, 200))
def test_many_random_stencils_equal_plain_loops(first):
    for seed in range(first, first + 200):
        run_case(stencil_case(seed))


STAR = [tuple(r * (k == d) for k in range(3)) for d in range(3) for r in (-1, 1)]
BOX = list(itertools.product((-1, 0, 1), repeat=3))
UPWIND = [(0, 0, 0), (-2, 0, 0), (0, 0, 1)]


@pytest.mark.parametrize("grid", [(2, 2, 2), (3, 2, 2), (1, 4, 3)])
@pytest.mark.parametrize("periodic", [False, True])
def test_grids_of_three_dimensions_and_who_hears_of_whom(grid, periodic):
    ranks = math.prod(grid)
    for (name, offsets), together in itertools.product({"star": STAR, "box": BOX, "up": UPWIND}.items(), (1, 2)):
        p = stencil_problem((7, 8, 9), offsets, 4, periodic)
        plan = stencil_plan(grid, [2 if g > 1 else 5 for g in grid], together)
        schedules = [_core.stencil(p, plan, r) for r in range(ranks)]
        assert (wrong := _core.check(schedules)) is None, f"{name} {plan}: {wrong}"
        if together > 1:
            continue  # halos that are computed redundantly have edges and corners
        at = list(itertools.product(*map(range, grid)))
        for s in schedules:
            heard = {m.peer for m in s.messages if not m.send and m.peer != s.rank and m.tag >= 8192}
            expected = {
                r
                for o in offsets
                for r, other in enumerate(at)
                if r != s.rank
                and all(
                    x == y or (s and ((x + s) % g == y if periodic else x + s == y))
                    for x, y, s, g in zip(at[s.rank], other, (sign(c) for c in o), grid)
                )
            }
            assert heard == expected, f"{name}, rank {s.rank}"


def check_repeated(seed):
    """A block of time steps that repeats, of one nest: proved by two repetitions, and three in case."""
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(1, 4))
    grid = [int(rng.integers(1, 4 if dims < 3 else 3)) for _ in range(dims)]
    factors = [int(rng.integers(1, 3)) for _ in range(dims)]
    extents = [int(rng.integers(7, 12 if dims < 3 else 9)) for _ in range(dims)]
    offsets = [tuple(o[:dims]) for o in (STAR, BOX, UPWIND)[int(rng.integers(3))]]
    together = int(rng.integers(1, 3))
    p = stencil_problem(extents, offsets, together * int(rng.integers(1, 4)), bool(rng.integers(2)))
    plan = stencil_plan(grid, [2 if g > 1 else 4 for g in grid], together, ("overlapping", "blocking")[rng.integers(2)])
    plan.factors, plan.synchronous = (1, *factors), True
    try:
        blocks = [_core.stencil(p, plan, r) for r in range(math.prod(grid))]
    except tw.ConfigError:
        return False  # blocks that are too thin
    schedules = [_core.repeated_block(p, block) for block in blocks]
    for wrong in (_core.check(schedules), _core.check(_core.unrolled(schedules, 3))):
        assert wrong is None, f"seed {seed}: {plan}: {wrong}"
    return True


def test_blocks_of_time_steps_repeat():
    assert sum(check_repeated(seed) for seed in range(40)) > 20


def test_wrong_blocks_that_repeat_are_told():
    """Another advance than the block's steps, and awaits of the repetition before that are left out."""
    p, plan = stencil_problem((9, 8), [(-1, 0), (1, 0), (0, -1), (0, 1)], 3, False), stencil_plan((2, 1), (2, 4))
    plan.factors, plan.synchronous = (1, 1, 2), True
    blocks = [_core.stencil(p, plan, r) for r in range(2)]

    def repeated():
        return [_core.repeated_block(p, block) for block in blocks]

    assert _core.check(repeated()) is None and repeated()[0].advance == (3, 0, 0)
    for advance in (2, 4, 5):
        schedules = repeated()
        for s in schedules:
            s.advance = (advance, 0, 0)
        assert _core.check(schedules) is not None, advance
    seen = told = 0
    for rank, lane in itertools.product(range(2), range(2)):
        whole = repeated()  # lives as long as its steps
        steps = whole[rank].lanes[lane]
        for i, step in enumerate(steps):
            if step.op != "await" or step.count > 0:
                continue
            schedules = repeated()
            lanes = schedules[rank].lanes
            lanes[lane] = [*steps[:i], *steps[i + 1 :]]
            schedules[rank].lanes = lanes
            schedules[rank].repeated = [(0, len(each)) for each in lanes]
            seen, told = seen + 1, told + (_core.check(schedules) is not None)
    assert seen >= 4 and told >= seen - 2, (seen, told)  # one await may follow from others


@pytest.mark.long
def test_many_blocks_of_time_steps_repeat():
    assert sum(check_repeated(seed) for seed in range(100, 2000)) > 1000


def sign(x):
    return (x > 0) - (x < 0)


def test_faces_of_whole_rows_go_in_place_and_fields_go_together():
    p = stencil_problem((12, 6, 6), STAR, 3, True)
    s = _core.stencil(p, stencil_plan((3, 1, 1), (4, 6, 6)), 1)
    faces = [m for m in s.messages if m.tag >= 8192 and m.peer != 1]
    # With halos along the other loops rows do not follow each other: packed, one message for each neighbour and step.
    assert len([m for m in faces if m.aggregate < 0]) == 2 * 2 * 2 and all(m.buffer >= 0 for m in faces)
    p = stencil_problem((12, 6, 6), STAR, 3, False)
    s = _core.stencil(p, stencil_plan((3, 1, 1), (4, 4, 4)), 1)
    faces = [m for m in s.messages if m.tag >= 8192]
    # With the elements beside the loops, which keep their values, a face is whole rows.
    assert len(faces) == 2 * 2 * 2 and all(m.buffer < 0 and m.bytes == 36 * 8 for m in faces)
    s = _core.stencil(p, stencil_plan((1, 1, 3), (6, 4, 2)), 1)
    assert all(m.buffer >= 0 for m in s.messages if m.tag >= 8192)
    line = stencil_problem((30,), [(-3,), (1,)], 5, False)
    s = _core.stencil(line, stencil_plan((3,), (9,)), 1)
    faces = [m for m in s.messages if m.tag >= 8192]
    assert len(faces) == 4 * 4 and all(m.buffer < 0 for m in faces)
    assert {(m.send, m.region[1][1] - m.region[0][1]) for m in faces} == {(True, 3), (True, 1), (False, 3), (False, 1)}
