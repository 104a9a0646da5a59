"""predict() on random schedules: what must hold of all of them."""

import random

import numpy as np
import pytest
from general_runs import given_values, placed
from general_sweeps import general_case
from local_ranks import results_of
from pattern_schedules import Case
from row_functions import row_function
from small_schedules import PARTS, ends, machine, predict

from tilewave import _core

def random_machine(rng, ranks):
    m = machine(
        [r // rng.choice((1, 2, 3)) for r in range(ranks)],
        latency_s=rng.random(),
        send_s=rng.random() / 10,
        receive_s=rng.random() / 10,
        byte_s=rng.random() / 100,
        busy_byte_s=rng.random() / 200,
        eager_bytes=rng.choice((0, 40, 1e9)),
        hidden_polled=rng.random(),
    )
    m.hand_over_s, m.step_s, m.poll_s = rng.random() / 10, rng.random() / 100, rng.random() / 100
    return m


@pytest.mark.parametrize("seed", range(40))
def test_random_sweeps(seed):
    """Any schedule that the checker passes ends, the same each time; parts add up, measured as played; nothing
    overlaps.
    """
    rng = random.Random(seed)
    case = general_case(seed)
    all_schedules = case.schedules()
    if _core.check(all_schedules) is not None:
        pytest.skip("refused by the checker")
    m, poll = random_machine(rng, case.ranks), rng.choice((0, 0.5, 20))
    rate = _core.KernelRate(point_s=rng.random(), row_s=rng.random(), tile_s=rng.random())
    p, again = predict(all_schedules, m, poll, rate), predict(all_schedules, m, poll, rate)
    where = f"seed {seed}, {case}"
    assert p.timeline.event_bytes == again.timeline.event_bytes, where
    assert p.time_s == _core.predict(all_schedules, m, rate, poll_period_s=poll, record=False).time_s, where
    measured = _core.parts(p.timeline)
    for f in PARTS:
        assert getattr(p.parts, f) == pytest.approx(getattr(measured, f), rel=1e-9, abs=1e-9), (f, where)
    assert sum(getattr(p.parts, f) for f in PARTS) == pytest.approx(p.parts.total_s), where
    for steps in ends(p).values():
        assert steps == sorted(steps), where


@pytest.mark.parametrize("seed", range(30))
def test_slower_is_never_faster(seed):
    """Where messages leave at once and share nothing, no cost shortens a run: every time is a sum or a maximum of
    others.

    With shared links or polls it need not be so: another order may suit a schedule better.
    """
    rng = random.Random(seed)
    case = general_case(seed)
    all_schedules = case.schedules()
    m = random_machine(rng, case.ranks)
    costs = {"latency_s": m.same_host.latency_s, "send_s": 0.02, "receive_s": 0.03}
    numbers = {"hand_over_s": 0.05, "step_s": 0.01}

    def time(**slower):
        one = machine(
            range(case.ranks), byte_s=0, eager_bytes=1e9, **{**costs, **{k: v for k, v in slower.items() if k in costs}}
        )
        for name, value in {**numbers, **slower}.items():
            if name in numbers:
                setattr(one, name, value)
        rate = _core.KernelRate(
            **{
                "point_s": 0.1, "row_s": 0.2, "tile_s": 0.3,
                **{k: v for k, v in slower.items() if k in ("point_s", "row_s", "tile_s")},
            }
        )
        return _core.predict(all_schedules, one, rate, poll_period_s=0, record=False).time_s

    before = time()
    for name in [*costs, *numbers, "point_s", "row_s", "tile_s"]:
        assert time(**{name: 2.0}) >= before * (1 - 1e-12), f"seed {seed}, slower {name}, {case}"


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_patterns_are_played_and_no_link_carries_more_than_its_rate(first):
    """Every kind and algorithm, with combine steps and forwards from buffers."""
    for seed in range(first, first + 100):
        case = Case(seed)
        all_schedules = case.schedules()
        m = random_machine(random.Random(seed), case.ranks)
        p = predict(all_schedules, m, random.Random(seed).choice((0, 0.5)))
        moved = {}
        for s in all_schedules:
            for message in s.messages:
                ends_at = m.host_of[s.rank], m.host_of[message.peer]
                if ends_at[0] != ends_at[1]:
                    moved[ends_at[0], message.send] = moved.get((ends_at[0], message.send), 0) + message.bytes
        assert p.time_s >= m.other_host.byte_s * max(moved.values(), default=0) * (1 - 1e-9), str(case)
        assert sum(getattr(p.parts, f) for f in PARTS) == pytest.approx(p.parts.total_s), str(case)


@row_function
def count_row(ptr, step, n, index, direction, env):
    env[0] += 1
    env[1] += n
    return 0


@pytest.mark.parametrize("seed", range(60))
def test_rows_and_points_are_those_of_the_run(seed):
    """Any uniform nest: bounds, skews, time buffers, rolling windows; and what is played of it."""
    case = general_case(seed, long_rows=seed % 3 == 0)
    all_schedules = case.schedules()
    work = [_core.tile_work(s) for s in all_schedules]
    given = given_values(case)
    if case.plan.lanes == 1:  # a counter for each rank

        def body(context):
            sweep, *_, operands, _keep = placed(case, context, given)
            env = np.zeros(2, np.int64)
            sweep.run(operands, _core.Kernel(count_row().address, env.ctypes.data))
            return env

        results = results_of(case.ranks, 1, body)
        for found, tiles in zip(results, work):
            assert tuple(found) == (sum(t[0] for t in tiles), sum(t[1] for t in tiles)), str(case)
    p = _core.predict(
        all_schedules,
        random_machine(random.Random(seed), case.ranks),
        _core.KernelRate(point_s=1, row_s=0, tile_s=0),
        poll_period_s=0,
    )
    lanes = sum(1 for s in all_schedules for lane in s.lanes if any(step.op != "await" for step in lane))
    if lanes and p.time_s:
        steps = sum(1 for s in all_schedules for lane in s.lanes for step in lane if step.op == "compute")
        points = sum(t[1] for tiles in work for t in tiles)
        step_s = p.parts.compute_s * lanes - points
        assert -1e-6 * points <= step_s <= 0.01 * steps + 1e-6 * points, str(case)
