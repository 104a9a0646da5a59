"""Plans for stencils in time: the generator and the steps for one exchange are those that are predicted to be best."""

import itertools

import pytest
from test_planner import machine, request

from tilewave import _core

RATE = _core.KernelRate(1e-9, 2e-8, 3e-7)


def heat(*extents, steps=24, radius=1, periodic=False):
    dims = len(extents)
    offsets = [(0, *(r * (k == d) for k in range(dims))) for d in range(dims) for r in range(-radius, radius + 1) if r]
    accesses = [(0, (1, *(0,) * dims), True, False), (0, (0,) * (dims + 1), False, False)]
    accesses += [(0, offset, False, False) for offset in offsets]
    inner = (0,) * dims if periodic else (radius,) * dims, extents if periodic else tuple(e - radius for e in extents)
    return _core.SweepProblem(
        (steps, *extents),
        ((0, *inner[0]), (steps, *inner[1])),
        [(4, False, extents, tuple(range(1, dims + 1)), 2, False)],
        accesses,
        [],
        [False] * (dims + 1),
        False,
        (0, *(1,) * dims) if periodic else (),
    )


def planned(p, ranks, wish, m):
    return _core.choose_plan(p, ranks, wish, m, RATE).ranked[0]


@pytest.mark.parametrize("extents", [(200, 210), (40, 44, 48), (3000,)])
@pytest.mark.parametrize("latency_s", [2e-6, 1e-3])
def test_no_generator_and_no_deep_halo_is_predicted_to_be_faster(extents, latency_s):
    p = heat(*extents)
    for ranks, threads in ((1, 1), (1, 2), (2, 1), (4, 1)):
        m = machine(latency_s=latency_s, hosts=range(ranks))
        taken = planned(p, ranks, request(threads), m)
        for fixed in (
            {"generator": "sweep"},
            {"generator": "stencil"},
            {"generator": "stencil", "temporal_block": 1},
            {"generator": "stencil", "temporal_block": 4},
            {"generator": "stencil", "schedule": "blocking"},
        ):
            other = planned(p, ranks, request(threads, **fixed), m)
            least = 0.88 if other.plan.ranks < taken.plan.ranks else 0.97
            assert other.time_s > least * taken.time_s, f"{ranks} ranks: {taken.plan} {taken.time_s}; {other.plan}"


def test_steps_share_an_exchange_where_messages_are_slow():
    for ranks, periodic in itertools.product((2, 4), (False, True)):
        p = heat(300, 300, steps=32, periodic=periodic)
        slow = planned(p, ranks, request(grid=(1, ranks, 1)), machine(latency_s=2e-3, hosts=range(ranks)))
        assert slow.plan.generator == "stencil" and slow.plan.temporal_block > 2
        fast = planned(p, ranks, request(grid=(1, ranks, 1), generator="stencil"), machine(latency_s=1e-7))
        assert fast.plan.temporal_block <= 2


def test_lanes_in_time_pay_for_lines_from_another_cache():
    """Two lanes that take every other time step hand each value over; lanes that share space do not."""
    p = heat(120, 120, 120, steps=20)
    times = {}
    for name, fixed in {
        "in time": {"factors": (2, 1, 1, 1), "temporal_block": 4, "tile": (1, 118, 4, 118), "mapping_dim": 2},
        "in space": {"factors": (1, 2, 1, 1), "generator": "stencil"},
    }.items():
        times[name] = planned(p, 1, request(2, **fixed), machine(hand_over_s=4e-7)).time_s
    assert times["in time"] > 1.5 * times["in space"]


@pytest.mark.parametrize("threads", [2, 3])
def test_lanes_side_by_side_take_steps_of_time_together_where_these_were_measured_faster(threads):
    p, m = heat(200, 200, 200), machine(hand_over_s=2e-7)
    side = {"factors": (1, 1, threads, 1), "tile": (1, 1, -(-198 // threads), 198), "mapping_dim": 1}
    in_time = planned(p, 1, request(threads, temporal_block=4, **side), m).plan
    apart = planned(p, 1, request(threads, generator="stencil"), m).plan
    slow, fast = (_core.KernelRate(rate, 2e-8, 3e-7, one_lane_factor=1, lanes=threads) for rate in (6e-10, 2e-10))
    rates = [_core.MeasuredRate(apart, slow, False), _core.MeasuredRate(in_time, fast, False)]
    taken = _core.choose_plan(p, 1, request(threads), m, rates).ranked[0]
    assert taken.plan.temporal_block > 1 and taken.plan.factors[0] == 1 and taken.plan.lanes == threads, taken.plan


@pytest.mark.parametrize(
    "extents, tile, what",
    [((256, 256, 256), (4, 4, 254), "4 and 8 of 16 tiles along loop 2"),  # many tiles
     ((6000, 6000, 6000), (1500, 1500, 5998), "4 and 6 of 16 tiles along loop 1")],  # many chunks of faces
)
def test_blocks_that_are_too_large_to_be_simulated_are_predicted_from_smaller_ones(extents, tile, what):
    """As the simulation of all ranks, which has more of them, says."""
    problem, plan = heat(*extents, steps=16), _core.Plan()
    plan.generator, plan.grid, plan.factors, plan.tile = "stencil", (1, 4, 4, 1), (1, 1, 1, 1), (1, *tile)
    hosts = _core.Machine()
    hosts.host_of = list(range(16))
    some, all_ranks = (
        _core.evaluate(problem, plan, hosts, _core.KernelRate(1e-9, 0, 0), all_ranks=whole) for whole in (False, True)
    )
    assert what in some.sample and all_ranks.sample == "all ranks"
    assert some.time_s == pytest.approx(all_ranks.time_s, rel=0.1)
