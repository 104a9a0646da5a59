"""The planner: it obeys, repeats itself, and misses little of what the predictor says is there."""

import itertools
import math
import random
import time

import pytest

from general_sweeps import general_case
from tilewave import ConfigError, _core
from tilewave.plan.plan import CHOICES

RATE = _core.KernelRate(1e-9, 2e-8, 3e-7)


def machine(latency_s=5e-6, byte_s=1e-10, hand_over_s=1e-6, hosts=()):
    m = _core.Machine()
    for name in ("same_host", "other_host"):
        link = getattr(m, name)
        link.latency_s, link.byte_s, link.send_s, link.receive_s = latency_s, byte_s, 4e-7, 4e-7
        setattr(m, name, link)
    m.latency_s, m.byte_s, m.hand_over_s = latency_s, byte_s, hand_over_s
    m.cache_bytes = 1 << 20
    m.host_of = list(hosts)
    return m


def problem(*extents, item_bytes=4):
    """One array, unit dependences along all dimensions."""
    dims = len(extents)
    reads = [(0, tuple(-(k == d) for k in range(dims))) for d in range(dims)]
    return _core.SweepProblem(
        tuple(e + 1 for e in extents), ((1,) * dims, tuple(e + 1 for e in extents)), [(item_bytes, False)], reads
    )


def request(threads=1, **fixed):
    r = _core.PlanRequest()
    r.threads = threads
    for name, value in fixed.items():
        setattr(r, name, value)
    return r


def choices_of(plan):
    return {name: getattr(plan, name) for name in CHOICES}


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_what_is_fixed_is_obeyed_or_refused_and_plans_are_valid(first):
    planned = 0
    for seed in range(first, first + 30):
        case = general_case(seed)
        rng = random.Random(f"fixed {seed}")
        given = {name: value for name, value in choices_of(case.plan).items() if rng.random() < 0.3}
        if given.get("row") == ():
            del given["row"]
        wish = request(rng.choice((1, 2, 3)), **given)
        try:
            found = _core.choose_plan(case.problem, case.ranks, wish, machine(), RATE)
        except ConfigError:
            continue
        planned += 1
        for candidate in found.ranked:
            candidate.plan.validate(case.problem, case.ranks)
            for name, value in given.items():
                assert getattr(candidate.plan, name) == value, (
                    f"{case}: {name} was fixed to {value}, planned {candidate.plan}"
                )
        again = _core.choose_plan(case.problem, case.ranks, wish, machine(), RATE)
        assert [(str(c.plan), c.time_s) for c in again.ranked] == [(str(c.plan), c.time_s) for c in found.ranked], str(
            case
        )
        assert all(math.isfinite(c.time_s) and c.time_s >= 0 and c.memory_bytes >= 0 for c in found.ranked), str(case)
        assert not found.ranked[0].reason and all(c.reason for c in found.ranked[1:])
        best = found.ranked[0].plan
        schedules = [_core.nest_schedule(case.problem, best, r, case.ranks) for r in range(case.ranks)]
        assert (wrong := _core.check(schedules)) is None, f"{case}: planned {best}: {wrong}"
    assert planned > 10


def test_threads_that_are_asked_for_are_used():
    wish = request(4)
    wish.all_threads = True
    found = _core.choose_plan(problem(20, 20, 20), 1, wish, machine(), RATE)
    assert {c.plan.lanes for c in found.ranked} == {4}


def test_few_points_stay_on_fewer_ranks_and_many_do_not():
    for hosts in ((0, 0, 0, 0), (0, 0, 1, 1)):
        m = machine(latency_s=5e-5, byte_s=1e-8, hosts=hosts)
        few = _core.choose_plan(problem(6, 6, 30), 4, request(), m, RATE).ranked
        assert few[0].plan.ranks == 1, hosts
        assert {c.plan.ranks for c in few} > {1}
        many = _core.choose_plan(problem(60, 60, 4000), 4, request(), m, RATE).ranked
        assert many[0].plan.ranks == 4, hosts
        for grid in ((1, 2, 1), (4, 1, 1)):
            found = _core.choose_plan(problem(6, 6, 30), 4, request(grid=grid, mapping_dim=2), m, RATE).ranked
            assert {c.plan.grid for c in found} == {grid}


def test_two_ranks_of_the_first_host_where_the_second_is_far():
    m = machine(latency_s=2e-3, byte_s=1e-9, hosts=(0, 0, 1, 1))
    near = m.same_host
    near.latency_s, near.byte_s = 1e-6, 1e-10
    m.same_host = near
    found = _core.choose_plan(problem(40, 40, 200), 4, request(), m, RATE).ranked
    assert found[0].plan.ranks == 2
    assert any("rank" in c.reason or "slower" in c.reason for c in found if c.plan.ranks == 4)


def test_fewer_ranks_must_be_clearly_better():
    """Arrays would have to move: of 3 % nobody takes note."""
    for latency_s in (1e-6, 2e-6, 4e-6, 8e-6, 1.6e-5, 3.2e-5):
        found = _core.choose_plan(
            problem(12, 12, 60), 2, request(), machine(latency_s=latency_s, byte_s=1e-10, hosts=(0, 0)), RATE
        ).ranked
        all_of_them = min(c.time_s for c in found if c.plan.ranks == 2)
        if found[0].plan.ranks == 1:
            assert found[0].time_s <= 0.9 * all_of_them
        else:
            assert all(c.time_s > 0.88 * all_of_them for c in found if c.plan.ranks == 1)


def test_a_helper_is_taken_where_it_moves_what_lanes_would_and_a_thread_is_free():
    p, m = problem(32, 3, 400, item_bytes=8), machine(latency_s=2e-5, byte_s=2e-9, hosts=(0, 1))
    link = m.other_host
    link.busy_byte_s, link.eager_bytes = 3e-9, 1000
    m.other_host = link
    fixed = {"grid": (2, 1, 1), "mapping_dim": 2, "factors": (1, 1, 1), "schedule": "overlapping"}
    helped = _core.choose_plan(p, 2, request(2, **fixed), m, RATE).ranked
    assert helped[0].plan.helper and helped[0].plan.poll_period_s == 0
    assert not any(c.plan.helper for c in _core.choose_plan(p, 2, request(1, **fixed), m, RATE).ranked)
    for helper in (False, True):
        for threads in (1, 2, 3):
            found = _core.choose_plan(p, 2, request(threads, helper=helper), m, RATE).ranked
            assert {c.plan.helper for c in found} == {helper}
            assert all(c.plan.lanes + helper <= max(threads, 1 + helper) for c in found)


def test_a_helper_takes_the_copies_off_the_lanes():
    p, m, plan = problem(16, 4, 400, item_bytes=8), machine(latency_s=2e-5, byte_s=2e-9, hosts=(0, 1)), _core.Plan()
    link = m.other_host
    link.busy_byte_s, link.eager_bytes = 3e-9, 100  # asked for, then moved by whoever polls
    m.other_host = link
    plan.grid, plan.factors, plan.mapping_dim, plan.tile = (2, 1, 1), (1, 1, 1), 2, (8, 4, 40)
    alone = _core.evaluate(p, plan, m, RATE)
    plan.helper, plan.poll_period_s = True, 0
    helped = _core.evaluate(p, plan, m, RATE)
    assert helped.time_s < alone.time_s
    assert helped.parts.compute_s < alone.parts.compute_s  # an average of the lanes that work, the helper not counted
    assert helped.parts.compute_s > 0.9 * 8 * 4 * 400 * RATE.point_s
    plan.helper = False  # nobody moves what is asked for while a tile is computed
    link.hidden_unpolled = 0
    m.other_host = link
    assert _core.evaluate(p, plan, m, RATE).time_s > helped.time_s


def heights(block):
    return sorted(
        {
            math.ceil(block / math.ceil(block / h))
            for h in (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 256, 512, 1024)
            if h <= block
        }
        | {block}
    )


def every_plan(p, ranks, lanes_allowed, cache=None):
    """Plans of a grid of choices: mapping dimension, process grid, lanes, heights, schedule, grouping."""
    dims = len(p.shape)
    extents = [hi - lo for lo, hi in zip(*p.space)]
    for mapping in range(dims):
        others = [k for k in range(dims) if k != mapping]
        for cut in itertools.product(range(1, ranks + 1), repeat=len(others)):
            if math.prod(cut) != ranks:
                continue
            for lanes in lanes_allowed:
                for m in itertools.product(range(1, lanes + 1), repeat=len(others)):
                    if math.prod(m) != lanes:
                        continue
                    plan = _core.Plan()
                    grid, factors = [1] * dims, [1] * dims
                    for k, g, f in zip(others, cut, m):
                        grid[k], factors[k] = g, f
                    plan.grid, plan.factors, plan.mapping_dim = tuple(grid), tuple(factors), mapping
                    for height in heights(extents[mapping]):
                        tile = [max(1, -(-_core.largest_block(p, tuple(grid), k) // factors[k])) for k in range(dims)]
                        tile[mapping] = height
                        plan.tile = tuple(tile)
                        for schedule, grouping in itertools.product(
                            ("blocking", "overlapping"), ("hyperplane", "vertical") if lanes > 1 else ("hyperplane",)
                        ):
                            plan.schedule, plan.grouping = schedule, grouping
                            try:
                                plan.validate(p, ranks)
                            except ConfigError:
                                continue
                            yield plan


@pytest.mark.parametrize(
    "extents, ranks, lanes, latency_s, byte_s",
    [
        ((240, 300), 2, (1,), 5e-6, 1e-10), ((240, 300), 4, (1, 2), 5e-5, 8e-9),
        ((24, 30, 400), 4, (1,), 2e-5, 1e-9), ((24, 30, 400), 1, (1, 2), 5e-6, 1e-10),
        ((16, 16, 200), 6, (1,), 1e-4, 1e-8), ((12, 9, 7), 4, (1, 2), 5e-6, 1e-10),
    ],
)
def test_little_is_missed_of_what_the_predictor_says(extents, ranks, lanes, latency_s, byte_s):
    p, m = problem(*extents), machine(latency_s, byte_s)
    found = _core.choose_plan(p, ranks, request(max(lanes)), m, RATE)
    best = min(
        ((_core.evaluate(p, plan, m, RATE).time_s, str(plan)) for plan in every_plan(p, ranks, lanes)),
        key=lambda t: t[0],
    )
    regret = found.ranked[0].time_s / best[0]
    assert regret <= 1.04, f"planned {found.ranked[0].plan} takes {found.ranked[0].time_s}, {best[1]} {best[0]}"


@pytest.mark.parametrize(
    "grid, row, better",
    [
        ((1, 2, 1), (0, -1, 1), (0, 1, -1)), ((1, 1, 2), (0, -1, 1), (0, -1, 1)),
        ((1, 2, 1), (0, 1, -1), (0, 1, -1)), ((1, 1, 4), (0, 1, -1), (0, -1, 1)),
        ((1, 1, 1), (0, -1, 1), (0, -1, 1)), ((2, 1, 1), (0, 1, -1), (0, 1, -1)),
    ],
)
def test_rows_go_down_the_longer_side_of_a_block(grid, row, better):
    p, plans = problem(16, 64, 64), []
    for r in (row, better):
        mapping_dim = 0 if grid[0] == 1 else 2
        plans.append(
            _core.make_plan(
                p, math.prod(grid), request(grid=grid, row=r, storage="skewed", mapping_dim=mapping_dim), machine()
            )
        )
    assert _core.row_of_blocks(p, plans[0]) == better and _core.row_of_blocks(p, plans[1]) == better
    bytes_of = [_core.evaluate(p, plan, machine(), _core.KernelRate(1e-9, 0, 0)).memory_bytes for plan in plans]
    assert bytes_of[0] == bytes_of[1] if row == better else bytes_of[1] < 0.7 * bytes_of[0]
    plans[0].storage = "plain"
    assert _core.row_of_blocks(p, plans[0]) == row


def test_factors_against_enumeration():
    """The way to the last lane, sum g_k m_k, is least: for all lane counts up to 48 and some grids."""
    p = problem(500, 500, 500, 500)
    for lanes, grid in itertools.product(range(1, 49), ((1, 1, 1, 1), (2, 1, 1, 1), (4, 1, 3, 1), (2, 8, 1, 1))):
        m = _core.best_factors(p, grid, 3, lanes)
        assert math.prod(m) == lanes and m[3] == 1
        cost = sum(g * f for g, f in zip(grid[:3], m[:3]))
        least = min(
            sum(g * f for g, f in zip(grid[:3], some))
            for some in (
                (a, b, lanes // a // b)
                for a in range(1, lanes + 1)
                if lanes % a == 0
                for b in range(1, lanes // a + 1)
                if (lanes // a) % b == 0
            )
        )
        assert cost <= 1.34 * least and (cost == least or lanes & (lanes - 1)), (lanes, grid, m, cost, least)


def test_no_dimension_has_more_lanes_than_a_block_has_points():
    """Lanes that find no place are left out."""
    for shape, grid, lanes, factors in (
        ((500, 3, 500), (1, 1, 1), 16, (8, 2, 1)),
        ((3, 3, 500), (1, 1, 1), 4, (2, 2, 1)),
        ((3, 3, 500), (1, 1, 1), 64, (2, 2, 1)),
        ((12, 1, 500), (2, 1, 1), 16, (4, 1, 1)),
        ((5, 7, 500), (1, 1, 1), 35, (5, 7, 1)),
    ):
        assert tuple(_core.best_factors(problem(*shape), grid, 2, lanes)) == factors, (shape, grid, lanes)


def test_lanes_that_share_the_memory_or_have_little_to_do_are_fewer():
    m = machine()
    bound = 4 * 2e-10
    m.memory = [_core.Curve([1e4, 1e9], [1e-10, 1e-10]), _core.Curve([1e4, 1e9], [2e-10, 2e-10])]
    found = _core.choose_plan(problem(2000, 2000), 1, request(2), m, _core.KernelRate(bound, 0, 0))
    assert found.ranked[0].plan.lanes == 1
    m.memory = [_core.Curve([1e4, 1e9], [1e-10, 1e-10])] * 2
    found = _core.choose_plan(problem(2000, 2000), 1, request(2), m, _core.KernelRate(bound, 0, 0))
    assert found.ranked[0].plan.lanes == 2
    found = _core.choose_plan(problem(6, 6), 1, request(2), m, _core.KernelRate(bound, 0, 0))
    assert found.ranked[0].plan.lanes == 1
    # What one lane alone takes was measured with the rest: that counts, whatever the memory is.
    for alone, lanes in ((0.45, 1), (1, 2)):
        for at in (1e-10, 4e-10):
            m.memory = [_core.Curve([1e4, 1e9], [1e-10, 1e-10]), _core.Curve([1e4, 1e9], [at, at])]
            found = _core.choose_plan(
                problem(2000, 2000), 1, request(2), m, _core.KernelRate(bound, 0, 0, one_lane_factor=alone, lanes=2)
            )
            assert found.ranked[0].plan.lanes == lanes, (alone, at)


@pytest.mark.parametrize("extents, lanes", [((24, 24, 24, 24), 2), ((60, 60, 60), 2), ((48, 48, 48), 3)])
def test_of_equal_plans_the_one_whose_lanes_lie_apart_in_memory(extents, lanes):
    m = machine()
    found = _core.choose_plan(
        problem(*extents), 1, request(lanes), m, _core.KernelRate(1e-8, 0, 0, one_lane_factor=1, lanes=lanes)
    )
    best = found.ranked[0].plan
    print(best)
    cut = [k for k, f in enumerate(best.factors) if f > 1]
    open_dims = [k for k in range(len(extents)) if k != best.mapping_dim]
    assert best.lanes == lanes and cut == open_dims[:1]


def test_planes_that_are_kept_do_not_wait_for_the_memory():
    shape, reads = (3000, 3000), [(0, offset, False, False) for offset in ((-1, -1), (-1, 0), (0, -1))]
    kept = _core.SweepProblem(
        shape,
        ((1, 1), shape),
        [(2, False, shape, (0, 1), 0, True)],
        [(0, (0, 0), True, False), *reads],
        [],
        [False, False],
        False,
    )
    assert kept.window[0] >= 0
    m = machine()
    m.memory = [_core.Curve([1e4, 1e9], [1e-12, 1e-12]), _core.Curve([1e4, 1e9], [1e-9, 1e-9])]  # alone far quicker
    lanes = {
        c.plan.lanes: c.time_s
        for c in reversed(_core.choose_plan(kept, 1, request(2), m, _core.KernelRate(2e-10, 1e-8, 3e-7)).ranked)
    }
    assert lanes[2] < 0.7 * lanes[1]


@pytest.mark.parametrize(
    "ranks, extents",
    [(64, (512, 512, 2000)), (4096, (8192, 8192, 4000)), (4096, (60000, 60000)), (64, (100, 4096, 4096))],
)
def test_many_ranks_end(ranks, extents, capsys):
    begin = time.perf_counter()
    found = _core.choose_plan(
        problem(*extents), ranks, request(2), machine(2e-5, 1e-9, hosts=[r // 2 for r in range(ranks)]), RATE
    )
    took = time.perf_counter() - begin
    found.ranked[0].plan.validate(problem(*extents), ranks)
    with capsys.disabled():
        print(
            f"\n{ranks} ranks, {extents}: {took:.2f} s for {found.considered} plans, {found.simulated} played; "
            f"{found.ranked[0].plan}"
        )


def test_fewer_ranks_and_tiles_say_what_all_of_them_do():
    """A plan whose schedules are too many to be played, against playing them all the same."""
    p, m = problem(64, 2000, item_bytes=8), machine(2e-5, 1e-9)
    for grid, tile in (((16, 1), (4, 2)), ((16, 1), (4, 1)), ((1, 1), (64, 1))):
        plan = _core.make_plan(p, math.prod(grid), request(grid=grid, tile=tile, mapping_dim=1), m)
        less = _core.evaluate(p, plan, m, RATE)
        whole = _core.predict([_core.sweep(p, plan, r) for r in range(math.prod(grid))], m, RATE, record=False)
        assert less.time_s == pytest.approx(whole.time_s, rel=0.05), plan


def test_ranks_of_a_plan_share_the_cpus_that_they_are_on():
    """64 ranks, of which fewer are played, on 16 CPUs; and 16 of them, with a CPU each."""
    p, m = problem(64, 64, 4000, item_bytes=8), machine(1e-9, 1e-12)
    slow = _core.KernelRate(2e-8, 0, 0)
    plan = _core.make_plan(p, 64, request(grid=(8, 8, 1), mapping_dim=2, tile=(8, 8, 40)), m)
    alone = _core.evaluate(p, plan, m, slow).time_s
    m.set_of, m.set_cpus = [0] * 64, [16.0]
    assert 3.6 < _core.evaluate(p, plan, m, slow).time_s / alone < 4.1
    few = _core.make_plan(p, 16, request(grid=(4, 4, 1), mapping_dim=2, tile=(16, 16, 40)), m)
    shared = _core.evaluate(p, few, m, slow).time_s
    m.set_of = []
    assert shared == _core.evaluate(p, few, m, slow).time_s


def fetched(plan, extents):
    """Values next to its tile that a point reads, as a part of a value; none where a tile is a rank's whole extent."""
    return sum(1 / t for t, e, g in zip(plan.tile, extents, plan.grid) if t < math.ceil(e / g))


@pytest.mark.parametrize("extents", [(63, 63, 8191), (31, 127, 8191), (127, 31, 16383)])
def test_tiles_are_less_flat_where_what_left_the_cache_costs_more(extents):
    least = []
    for byte_s in (0, 4e-10):
        m = machine(latency_s=5e-7, hosts=(0, 0))
        m.memory = [_core.Curve([1e6, 4e6, 1e9], [0, byte_s, byte_s])] * 2
        plan = _core.choose_plan(problem(*extents), 2, request(), m, RATE).ranked[0].plan
        least.append(fetched(plan, extents))
    assert least[1] < 0.5 * least[0], least
