"""Blocks that are repeated: proved by two repetitions, run as often as asked, predicted from the steady block."""

import numpy as np
import pytest
from local_ranks import results_of
from repeated_graphs import Repeated, run_on, schedule_of

import tilewave as tw


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_random_graphs(ranks, threads):
    run_seeds(ranks, threads, range(500, 512))


def run_seeds(ranks, threads, seeds):
    programs = [Repeated(seed, ranks) for seed in seeds]
    schedules = [schedule_of(program) for program in programs]
    for program, schedule in zip(programs, schedules, strict=True):
        assert tw.check(schedule) is None, f"{tw.check(schedule)}; {program}\n{schedule.text()}"

    def body(context):
        return [
            run_on(context, program, schedule, times)
            for program, schedule in zip(programs, schedules, strict=True)
            for times in (1, 2, 3, 7)
        ]

    results = results_of(ranks, threads, body, timeout_s=300)
    assert [found for mine in results for found in mine if found] == []


def test_lanes_that_nothing_orders_between_repetitions_are_found():
    found = 0
    for seed in range(600, 660):
        program = Repeated(seed, 2, lanes=(2, 4))
        text = tw.check(schedule_of(program, orders=False))
        if text is None:  # no two lanes touch the same elements in turn
            continue
        found += 1
        assert "where the block is repeated" in text, text
    assert found > 20


def smoother(b):
    """Each rank adds its left neighbour's last value of the repetition before to its own block."""
    n = 4 * b.ranks
    owned, stored = slice(4 * b.rank, 4 * b.rank + 4), slice(max(4 * b.rank - 1, 0), 4 * b.rank + 4)
    A = b.array("A", n, "i8", owned=owned, storage=stored)
    lane = b.lane()
    lane.task(begin, [], [A.owned], number=b.rank)
    with b.repeat():
        left = A[4 * b.rank - 1] if b.rank else A[0:0]
        if b.rank + 1 < b.ranks:
            out = b.send(b.rank + 1, A[4 * b.rank + 3])
            lane.post_send(out)
            lane.wait(out)
        if b.rank:
            m = b.receive(b.rank - 1, left)
            lane.post_recv(m)
            lane.wait(m)
        # In the program the ranks are taken from the last one on: each reads what the one before has not changed yet.
        lane.task(add, [left, A.owned], [A.owned], 1.0, number=2 * b.ranks - 1 - b.rank)
    lane.task(double, [A.owned], [A.owned], number=2 * b.ranks + b.rank)


def begin(out):
    out[...] = 1


def add(left, old, new):
    new[...] = (old + left.sum()) % 100_003


def double(old, new):
    new[...] = 2 * old


def smoothed(ranks, times):
    A = np.ones(4 * ranks, dtype="i8")
    for _ in range(times):
        for rank in reversed(range(ranks)):
            A[4 * rank : 4 * rank + 4] += A[4 * rank - 1] if rank else 0
        A %= 100_003
    return 2 * A


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_many_repetitions(ranks):
    schedule = tw.Schedule.build(smoother, ranks)
    assert tw.check(schedule) is None

    def body(context):
        A = np.zeros(4 * ranks, dtype="i8")
        report = schedule.run(context=context, times=300, A=A)
        if context.rank == 0:
            steps = sum(schedule.steps.values())
            events, requests = report.timeline.events, report.timeline.requests
            assert len(events) > 290 * (steps - 2 * ranks)
            assert len(requests) == 2 * (ranks - 1) * 300
        return A[4 * context.rank : 4 * context.rank + 4]

    results = results_of(ranks, 1, body)
    assert np.array_equal(np.concatenate(results), smoothed(ranks, 300))


def test_a_failure_in_one_repetition_ends_all():
    count = []

    def fails(left, old, new):
        count.append(0)
        if len(count) == 25:
            raise ValueError("no such luck")
        add(left, old, new)

    schedules = tw.Schedule.build(smoother, 3)
    core_names = schedules.functions

    def body(context):
        calls = {name: fails if name == "add" and context.rank == 1 else call for name, call in CALLS.items()}
        part = tw.Schedule.build(smoother, 3, rank=context.rank)
        with pytest.raises(tw.KernelError, match="rank 1: ValueError: no such luck"):
            part.run(context=context, times=200, functions=calls, A=np.zeros(12, dtype="i8"))
        A = np.zeros(12, dtype="i8")
        schedules.run(context=context, times=5, A=A)
        return A[4 * context.rank : 4 * context.rank + 4]

    assert set(core_names) == set(CALLS)
    results = results_of(3, 1, body)
    assert len(count) == 25
    assert np.array_equal(np.concatenate(results), smoothed(3, 5))


CALLS = {"begin": begin, "add": add, "double": double}


def test_the_prediction_of_many_repetitions_is_that_of_the_steady_one():
    schedule = tw.Schedule.build(smoother, 4)
    rates = {add: (1e-6, 1e-5)}
    times = {n: tw.predict(schedule, rates=rates, times=n).time_s for n in (1, 2, 4, 8, 1000, 2000, 1_000_000)}
    assert times[1] < times[2] < times[4] < times[8] < times[1000]
    one = (times[8] - times[4]) / 4
    assert times[1000] == pytest.approx(times[8] + 992 * one, rel=0.01)
    assert times[2000] - times[1000] == pytest.approx(1000 * one, rel=0.01)
    assert times[1_000_000] == pytest.approx(1_000_000 * one, rel=0.01)
    parts = tw.predict(schedule, rates=rates, times=1000).parts
    assert parts.total_s == pytest.approx(times[1000]) and parts.compute_s < parts.total_s


def test_files_and_text_have_the_block(tmp_path):
    schedule = tw.Schedule.build(smoother, 2)
    schedule.save(tmp_path / "s.json")
    again = tw.Schedule.load(tmp_path / "s.json")
    assert again == schedule and "repeated: steps 1 to 3" in schedule.text(0)
    plain = tw.Schedule.load(tmp_path / "s.json")
    for core in plain._cores.values():
        core.repeated = []
    assert plain != schedule


def mistake(change, ranks=2):
    schedule = tw.Schedule.build(smoother, ranks)
    for core in schedule._cores.values():
        change(core)
    return tw.check(schedule)


def test_mistakes_are_named():
    def ranges(*all):
        def change(core):
            core.repeated = list(all)

        return change

    assert "of a lane of" in mistake(ranges((1, 99)))
    assert "ranges for 2 lanes" in mistake(ranges((1, 2), (1, 2)))
    assert "allowed: one of them" in mistake(ranges((2, 4)))
    assert "its number among those of the block" not in (mistake(ranges((1, 4))) or "")
    schedule = tw.Schedule.build(smoother, 2)
    schedule._cores[1].repeated = []
    assert "not as many are sent as received" in tw.check(schedule)

    def two_lanes(b):
        A, one, other = b.array("A", b.ranks), b.lane(), b.lane()
        with b.repeat():
            one.task(begin, [], [A[b.rank]], number=b.rank)
            x = one.signal()
            other.await_signal(x)
            other.task(double, [A[b.rank]], [A[b.rank]], number=b.ranks + b.rank)
            y = other.signal()
        if orders:
            one._steps.insert(0, ("await", other.number, (y.count, 1)))
            b._repeated[0] = 0, len(one._steps)

    orders = True
    assert tw.check(tw.Schedule.build(two_lanes, 2)) is None
    orders = False
    assert "where the block is repeated" in tw.check(tw.Schedule.build(two_lanes, 2))

    def later(core):
        core.lanes = [[tw._core.Step("await", 0, 1), *core.lanes[0]]]
        core.repeated = [(0, 5)]

    assert "allowed: what it has counted by the end of the same repetition" in mistake(later)


def test_numbers_of_tasks_outside_the_block_are_not_among_its():
    def build(b):
        A, lane = b.array("A", b.ranks), b.lane()
        with b.repeat():
            lane.task(begin, [], [A[b.rank]], number=2 * b.rank)
        lane.task(double, [A[b.rank]], [A[b.rank]], number=2 * b.rank + 1)

    assert "its number among those of the block" in tw.check(tw.Schedule.build(build, 2))
    assert tw.check(tw.Schedule.build(build, 1)) is None


def test_bad_numbers():
    schedule, plain = tw.Schedule.build(smoother, 1), tw.Schedule.build(smoother, 1)
    plain._cores[0].repeated = []
    for bad in (0, -3, 2.5, True, "4", 1 << 40):
        with pytest.raises(tw.ConfigError, match="times"):
            tw.predict(schedule, times=bad)
    with pytest.raises(tw.ConfigError, match="without a block"):
        tw.predict(plain, times=2)

    def body(context):
        with pytest.raises(tw.ConfigError, match="times"):
            schedule.run(context=context, times=0, A=np.zeros(4, dtype="i8"))

    results_of(1, 1, body)

    def twice(b):
        with b.repeat():
            pass
        with b.repeat():
            pass

    with pytest.raises(tw.ConfigError, match="one block"):
        tw.Schedule.build(twice, 1)
