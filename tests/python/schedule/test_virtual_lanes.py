"""More lanes than threads: lanes take turns, and the schedule means the same.

A failure prints its seed: `Graph(seed, ranks, lanes=(2, 8))`.
"""

import threading

import numpy as np
import pytest
from local_ranks import on_ranks, results_of
from task_graphs import Graph, run_on, schedule_of, wrong

import tilewave as tw


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_random_graphs(ranks, threads):
    run_seeds(ranks, threads, range(300, 312))


def run_seeds(ranks, threads, seeds):
    graphs = [Graph(seed, ranks, lanes=(2, 8)) for seed in seeds]
    schedules = [schedule_of(graph) for graph in graphs]
    for graph, schedule in zip(graphs, schedules, strict=True):
        played = tw.predict(schedule, threads=threads)
        assert played.time_s > 0 or not sum(schedule.steps.values()), graph
        assert len(played.timeline.events) == sum(schedule.steps.values())
        one_at_a_time(played.timeline, threads)
        assert_parts_add_up(played.parts)

    def body(context):
        return [run_on(context, graph, s) for graph, s in zip(graphs, schedules, strict=True)]

    results = results_of(ranks, threads, body, timeout_s=300)
    for rank, mine in enumerate(results):
        for graph, arrays in zip(graphs, mine, strict=True):
            assert wrong(graph, rank, arrays) is None, f"{wrong(graph, rank, arrays)}; {graph}"


def one_at_a_time(timeline, threads):
    """The steps of a thread's lanes do not overlap, and those of a lane are in order."""
    events = timeline.events
    for rank in set(events["rank"]):
        of_rank = events[events["rank"] == rank]
        if of_rank["lane"].max() < threads:
            continue
        for thread in range(threads):
            mine = of_rank[of_rank["lane"] % threads == thread]
            mine = mine[np.lexsort((mine["end_s"], mine["begin_s"]))]
            assert (mine["begin_s"] <= mine["end_s"]).all()
            assert (mine["begin_s"][1:] >= mine["end_s"][:-1] - 1e-12).all()
            for lane in set(mine["lane"]):
                assert (np.diff(mine["step"][mine["lane"] == lane]) > 0).all()


def assert_parts_add_up(parts):
    names = ("fill_s", "compute_s", "pack_s", "post_s", "wait_s", "hand_over_s", "drain_s")
    assert sum(getattr(parts, name) for name in names) == pytest.approx(parts.total_s, abs=1e-9)
    assert min(getattr(parts, name) for name in names) >= -1e-9


def one_more(before, after):
    after[...] = before + 1


def ring(b, pieces, lanes, task=one_more):
    """A ring pipeline: each rank adds its number to what the rank before it hands on; a piece a lane in turn."""
    A = b.array("A", (b.ranks + 1, pieces, 3), owned=slice(b.rank + (b.rank > 0), b.rank + 2), storage=slice(None))
    made = [b.lane() for _ in range(lanes)]
    for piece in range(pieces):
        lane = made[piece % lanes]
        if b.rank > 0:
            m = b.receive(b.rank - 1, A[b.rank, piece], tag=piece)
            lane.post_recv(m)
            lane.wait(m)
            lane.unpack(m)
        lane.task(task, [A[b.rank, piece]], [A[b.rank + 1, piece]], 1.0, number=piece * b.ranks + b.rank)
        if b.rank + 1 < b.ranks:
            m = b.send(b.rank + 1, A[b.rank + 1, piece], tag=piece)
            lane.pack(m)
            lane.post_send(m)
            lane.wait(m)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_ring_pipelines(ranks, threads):
    cases = [(pieces, lanes) for lanes in (2, 3, 5, 8) for pieces in (1, 7, 16)]
    schedules = [tw.Schedule.build(ring, ranks, *case) for case in cases]

    def body(context):
        found = []
        for (pieces, _), schedule in zip(cases, schedules, strict=True):
            A = np.zeros((ranks + 1, pieces, 3))
            A[0] = np.arange(pieces * 3).reshape(pieces, 3)
            report = schedule.run(context=context, A=A)
            found.append(A[context.rank + 1])
            if context.rank == 0:
                assert len(report.timeline.events) == sum(schedule.steps.values())
                one_at_a_time(report.timeline, threads)
                assert_parts_add_up(report.parts)
        return found

    results = results_of(ranks, threads, body)
    for rank, found in enumerate(results):
        for (pieces, _), A in zip(cases, found, strict=True):
            assert np.array_equal(A, np.arange(pieces * 3).reshape(pieces, 3) + rank + 1)


def test_lanes_of_a_thread_have_a_task_each_in_turn():
    """Three lanes that can always go, and a fourth that has to wait for one of them: none has two tasks in a row."""
    order = []

    def task(lane):
        def run(out):
            order.append(lane)

        return run

    calls = [task(lane) for lane in range(4)]

    def build(b):
        A, lanes, number = b.array("A", (4, 1)), [b.lane() for _ in range(4)], 0
        signals = []
        for _ in range(9):
            for lane in range(3):
                lanes[lane].task(calls[lane], [], [A[lane]], number=number)
                number += 1
            signals.append(lanes[1].signal())
        for k in range(9):
            lanes[3].await_signal(signals[k])
            lanes[3].task(calls[3], [], [A[3]], number=number)
            number += 1

    schedule = tw.Schedule.build(build, 1)
    _, errors = on_ranks(1, 1, lambda c: schedule.run(context=c, A=np.zeros((4, 1))))
    assert errors == [None] and order == [0, 1, 2, 3] * 9
    events = tw.predict(schedule, threads=1).timeline.events
    events = events[events["op"] == 0]
    assert list(events[np.argsort(events["begin_s"], kind="stable")]["lane"]) == [0, 1, 2, 3] * 9


def test_a_message_is_taken_between_tasks_of_another_lane():
    """Rank 0 has tasks enough; what rank 1 has sent by the end of its first one is taken right after it."""
    there, order = threading.Event(), []

    def busy(out):
        if not order:
            assert there.wait(300)
        order.append("busy")

    def taken(value, out):
        order.append("taken")

    def tell(out):
        there.set()

    def build(b):
        A = b.array("A", 3, owned=slice(0, 2) if b.rank == 0 else slice(2, 3), storage=slice(None))
        lane = b.lane()
        if b.rank == 1:
            m = b.send(0, A[2], synchronous=True)
            lane.post_send(m)
            lane.wait(m)
            lane.task(tell, [], [A[2]], number=200)
            return
        m = b.receive(1, A[2])
        lane.post_recv(m)
        lane.wait(m)
        lane.task(taken, [A[2]], [A[0]], number=150)
        many = b.lane()
        for number in range(100):
            many.task(busy, [], [A[1]], number=number)

    schedule = tw.Schedule.build(build, 2)
    results_of(2, 1, lambda c: schedule.run(context=c, A=np.zeros(3)))
    assert order[:2] == ["busy", "taken"] and len(order) == 101


def test_a_lane_whose_thread_computes_has_not_idled():
    """Two messages come at 10 ms, while another lane of the thread computes: the second is taken behind the first."""

    def late(out):
        pass

    def busy(out):
        pass

    def taken(first, second, out):
        pass

    def build(b):
        A = b.array("A", 4, owned=slice(0, 2) if b.rank == 0 else slice(2, 4), storage=slice(None))
        lane = b.lane()
        if b.rank == 1:
            lane.task(late, [], [A[2:4]], number=0)
            sends = [b.send(0, A[place], tag=place) for place in (2, 3)]
            for send in sends:
                lane.post_send(send)
            for send in sends:
                lane.wait(send)
            return
        receives = [b.receive(1, A[place], tag=place) for place in (2, 3)]
        for receive in receives:
            lane.post_recv(receive)
        for receive in receives:
            lane.wait(receive)
        lane.task(taken, [A[2], A[3]], [A[0]], number=100)
        other = b.lane()
        for number in range(1, 31):
            other.task(busy, [], [A[1]], number=number)

    rates = {"late": 10e-3, "busy": 1e-3, "taken": 0.0}
    events = tw.predict(tw.Schedule.build(build, 2), rates=rates, threads=1).timeline.events
    of_lane = events[(events["rank"] == 0) & (events["lane"] == 0) & (events["op"] == 0)]
    assert 10e-3 < of_lane["end_s"][0] < 13e-3


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_rank_that_fails_alone_ends_the_others(bad):
    def body(context):
        def fails(before, after):
            if context.rank == bad:
                raise ValueError("no such luck")
            one_more(before, after)

        schedule = tw.Schedule.build(ring, 3, 12, 5, fails)
        with pytest.raises(tw.KernelError, match=f"on rank {bad}: ValueError: no such luck"):
            schedule.run(context=context, A=np.zeros((4, 12, 3)))
        tw.Schedule.build(ring, 3, 4, 3).run(context=context, A=np.zeros((4, 4, 3)))

    results_of(3, 1, body)


def collect(b, lanes):
    """Rank 0 works on what the others make, which takes them longer the lower their rank is."""
    A = b.array("A", b.ranks, storage=slice(None))
    B = b.array("B", b.ranks, owned=slice(0, b.ranks if b.rank == 0 else 0))
    if b.rank > 0:
        lane, m = b.lane(), b.send(0, A[b.rank])
        lane.task(one_more, [A[b.rank]], [A[b.rank]], b.ranks - b.rank, number=b.rank)
        lane.post_send(m)
        lane.wait(m)
        return
    made = [b.lane() for _ in range(lanes)]
    R = [(b.receive(peer, A[peer]), peer) for peer in range(1, b.ranks)]
    for m, peer in R:
        made[peer % lanes].post_recv(m)
    for m, peer in R:
        made[peer % lanes].wait(m)
        made[peer % lanes].task(one_more, [A[peer]], [B[peer]], 1, number=b.ranks + peer)


def test_virtual_lanes_pay_where_messages_come_in_another_order():
    rates = {one_more: (0, 1e-3)}
    in_order = tw.predict(tw.Schedule.build(collect, 5, 1), rates=rates, threads=1)
    turns = tw.Schedule.build(collect, 5, 4)
    assert tw.check(turns) is None
    taken = tw.predict(turns, rates=rates, threads=1)
    apart = tw.predict(turns, rates=rates)
    assert in_order.time_s > 7.9e-3
    assert taken.time_s < 5.2e-3
    assert apart.time_s <= taken.time_s * 1.001
    one_at_a_time(taken.timeline, 1)


def test_threads_make_sense():
    schedule = tw.Schedule.build(ring, 2, 3, 3)
    for bad in (0, -1, 1.5, True, "2"):
        with pytest.raises(tw.ConfigError, match="threads"):
            tw.predict(schedule, threads=bad)
    times = [tw.predict(schedule, threads=n).time_s for n in (1, 2, 3, 7)]
    assert times[2] == times[3] == tw.predict(schedule).time_s
