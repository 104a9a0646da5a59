"""predict() on schedules small enough to play by hand, and on random ones."""

import ctypes
import random

import numba
import numpy as np
import pytest
from general_runs import INTS, given_values, placed
from general_sweeps import general_case
from local_ranks import on_ranks
from numba import types
from pattern_schedules import Case
from sweeps import describe, random_case, schedules

from tilewave import _core
from tilewave.errors import ConfigError

PARTS = ("fill_s", "compute_s", "pack_s", "post_s", "wait_s", "hand_over_s", "drain_s")


def machine(hosts=(), **link):
    """2 s for a message and half a second a byte; steps, polls and hand-overs cost nothing unless said."""
    m = _core.Machine()
    m.hand_over_s = m.poll_s = m.step_s = 0
    one = _core.Link()
    one.latency_s, one.send_s, one.receive_s, one.byte_s, one.busy_byte_s = 2, 0.25, 0.125, 0.5, 0
    one.eager_bytes, one.hidden_polled, one.hidden_unpolled = 100, 1, 0
    for name, value in link.items():
        setattr(one, name, value)
    m.same_host = m.other_host = one
    m.host_of = list(hosts)
    return m


def schedule(rank, ranks, lanes, messages=(), tiles=(), array_extents=(64, 1)):
    """Steps as (op, item, count) a lane; messages as (send, peer, tag, bytes, synchronous); tiles by points."""
    s = _core.Schedule()
    s.rank, s.ranks = rank, ranks
    a = _core.Array()
    a.item_bytes = 1
    a.storage = a.owned = (tuple(0 for _ in array_extents), tuple(array_extents))
    s.arrays = [a]
    s.works = [_core.Work(0, _core.NestWork(a.storage, []))]
    made = []
    for send, peer, tag, size, synchronous in messages:
        m = _core.Message()
        m.send, m.peer, m.tag, m.bytes, m.synchronous = send, peer, tag, size, synchronous
        m.region = ((0,) * len(array_extents), (size,) + (1,) * (len(array_extents) - 1))
        made.append(m)
    s.messages = made
    boxes = []
    for i, points in enumerate(tiles):
        t = _core.Tile()
        t.coord, t.box = (i, 0), ((0, 0), (points, 1))  # a point a row
        boxes.append(t)
    s.tiles = boxes
    s.lanes = [[_core.Step(*step) for step in lane] for lane in lanes]
    return s


def ends(prediction):
    """When each step ends, by (rank, lane)."""
    found = {}
    events = np.frombuffer(prediction.timeline.event_bytes, np.uint8)
    from tilewave.timeline.timeline import EVENT

    for e in events.view(EVENT):
        found.setdefault((int(e["rank"]), int(e["lane"])), []).append(float(e["end_s"]))
    return found


SECOND = _core.KernelRate(point_s=1, row_s=0, tile_s=0)
COMPUTE, WAIT = ("compute", 0), ("wait", 0)
SEND, RECEIVE = ("post_send", 0), ("post_recv", 0)


def pair(sender, receiver, size=4, synchronous=False, tiles=(1,)):
    """Ranks 0 and 1 with one message from 0 to 1."""
    return [
        schedule(0, 2, [sender], [(True, 1, 7, size, synchronous)], tiles),
        schedule(1, 2, [receiver], [(False, 0, 7, size, False)], tiles),
    ]


def predict(all_schedules, m, poll=0.0, rate=SECOND):
    return _core.predict(all_schedules, m, rate, poll_period_s=poll)


def test_short_message_leaves_with_its_post():
    p = predict(pair([COMPUTE, SEND, WAIT], [RECEIVE, WAIT]), machine())
    # 4 bytes: 2 + 4/2 s from the post, 1 s after the start. A send is over when it is posted.
    assert ends(p) == {(0, 0): [1, 1.25, 1.25], (1, 0): [0.125, 5]}
    assert p.time_s == 5
    # fill: nobody computes on rank 1; rank 0 begins at once and drains 3.75 s.
    assert p.parts.compute_s == 0.5 and p.parts.drain_s == 3.75 / 2 and p.parts.wait_s == 4.875 / 2
    assert sum(getattr(p.parts, f) for f in PARTS) == pytest.approx(p.parts.total_s)


def test_receive_that_is_posted_late_finds_the_message():
    p = predict(pair([SEND, WAIT], [COMPUTE, RECEIVE, WAIT], tiles=(10,)), machine())
    assert ends(p)[1, 0] == [10, 10.125, 10.125]


def test_synchronous_send_ends_when_the_receiver_has_matched_it():
    p = predict(pair([SEND, WAIT], [RECEIVE, WAIT], synchronous=True), machine())
    assert ends(p) == {(0, 0): [0.25, 6], (1, 0): [0.125, 4]}  # there at 4, the answer 2 s later
    p = predict(pair([SEND, WAIT], [COMPUTE, RECEIVE, WAIT], synchronous=True, tiles=(10,)), machine())
    assert ends(p)[0, 0] == [0.25, 12]  # matched where the receive is posted


def test_large_message_leaves_when_both_have_asked():
    late = predict(pair([COMPUTE, SEND, WAIT], [RECEIVE, WAIT]), machine(eager_bytes=0))
    assert ends(late) == {
        (0, 0): [1, 1.25, 3],
        (1, 0): [0.125, 5],
    }  # the sender's memory is free 2 s before it is there
    early = predict(pair([SEND, WAIT], [COMPUTE, RECEIVE, WAIT], tiles=(10,)), machine(eager_bytes=0))
    assert ends(early) == {(0, 0): [0.25, 12], (1, 0): [10, 10.125, 14]}


@pytest.mark.parametrize(
    "poll,hidden,there,found",
    [
        (0, 1, None, 13.875),  # nobody polls until the wait; the send has long been posted
        (3, 1, 6.875, 10.125),  # asked for at the first poll, 3.125; all hidden
        (3, 0.5, 6.875, 11.125),  # of the 2 s that bytes move, one is left to the wait
        (11, 1, None, 13.875),  # no poll within the tile
    ],
)
def test_large_message_waits_for_a_poll_of_the_receiver(poll, hidden, there, found):
    sender, receiver = [("compute", 1), SEND, WAIT], [RECEIVE, COMPUTE, WAIT]
    p = predict(pair(sender, receiver, tiles=(10, 1)), machine(eager_bytes=0, hidden_polled=hidden), poll)
    assert ends(p)[1, 0] == [0.125, 10.125, found]
    if there is not None:
        assert ends(p)[0, 0][-1] == there - 2


def test_large_message_waits_for_a_poll_of_the_sender():
    p = predict(pair([SEND, COMPUTE, WAIT], [RECEIVE, WAIT], tiles=(10,)), machine(eager_bytes=0), poll=4)
    assert ends(p) == {(0, 0): [0.25, 10.25, 10.25], (1, 0): [0.125, 8.25]}  # granted at 4.25
    p = predict(pair([SEND, COMPUTE, WAIT], [RECEIVE, WAIT], tiles=(10,)), machine(eager_bytes=0, hidden_unpolled=1))
    assert ends(p)[1, 0] == [0.125, 4]  # a network that needs no polls
    p = predict(pair([SEND, WAIT], [COMPUTE, RECEIVE, WAIT], tiles=(10,)), machine(eager_bytes=0, hidden_unpolled=1))
    assert ends(p)[1, 0] == [10, 10.125, 10.125]


def test_polls_and_copies_cost_the_computing_lane():
    m = machine(busy_byte_s=0.25)
    m.poll_s = 0.5
    p = predict(pair([SEND, WAIT], [RECEIVE, COMPUTE, WAIT], tiles=(10,)), m, poll=3)
    # The sender copies 4 bytes as it posts. The receiver polls three times, and copies when it has computed.
    assert ends(p) == {(0, 0): [1.25, 1.25], (1, 0): [0.125, 11.625, 12.625]}


def test_messages_of_a_host_share_its_links():
    send = [schedule(r, 4, [[SEND, WAIT]], [(True, r + 2, 7, 4, False)]) for r in (0, 1)]
    take = [schedule(r, 4, [[RECEIVE, WAIT]], [(False, r - 2, 7, 4, False)]) for r in (2, 3)]
    found = {
        hosts: ends(predict(send + take, machine(hosts)))
        for hosts in ((0, 0, 1, 1), (0, 0, 1, 2), (0, 1, 2, 2), (0, 1, 2, 3))
    }
    for hosts, when in found.items():
        # 4 bytes keep a link for 2 s, going out or coming in.
        assert (when[2, 0][-1], when[3, 0][-1]) == ((4, 4) if hosts == (0, 1, 2, 3) else (4, 6)), hosts


def test_a_rested_host_sends_ahead_of_its_rate():
    """Three messages of 4 bytes at once and one later: 8 bytes at no more than their latency, then half a second a
    byte.
    """
    m = machine((0, 1), burst_bytes=8, transfer_s=_core.Curve([0.0], [2.0]))  # of a rested host
    sends = schedule(
        0,
        2,
        [[("post_send", i) for i in range(3)] + [COMPUTE, ("post_send", 3)]],
        [(True, 1, i, 4, False) for i in range(4)],
        (100,),
    )
    takes = schedule(
        1,
        2,
        [[("post_recv", i) for i in range(4)] + [("wait", i) for i in range(4)]],
        [(False, 0, i, 4, False) for i in range(4)],
    )
    # Posted at 0, 0.25, 0.5 and 100.75. The bucket fills 2 bytes a second: the third waits until 6 s of bytes are 4 s
    # ahead.
    assert ends(predict([sends, takes], m))[1, 0][4:] == [2, 2.25, 4, 102.75]
    # Nobody said so, but 8 bytes took less than their 4 s of a stream.
    m = machine((0, 1), transfer_s=_core.Curve([0.0, 8.0, 64.0], [2.0, 2.0, 40.0]))
    assert ends(predict([sends, takes], m))[1, 0][4:] == [2, 2.25, 4, 102.75]


def test_no_more_is_sent_ahead_than_the_rate_leaves_unexplained():
    """16 bytes took 6 s, 4 less their latency than a stream of 8 s: 8 bytes were ahead, and not all 16."""
    m = machine((0, 1), transfer_s=_core.Curve([0.0, 16.0, 64.0], [2.0, 6.0, 30.0]))
    steps = [("post_send", 0), COMPUTE, ("post_send", 1)]
    sends = schedule(0, 2, [steps], [(True, 1, i, 16, False) for i in range(2)], (4,))
    takes = schedule(
        1,
        2,
        [[(op, i) for op in ("post_recv", "wait") for i in range(2)]],
        [(False, 0, i, 16, False) for i in range(2)],
    )
    # The second is posted at 4.25. Both leave in 16 s, 4 of them ahead; a latency later it is there.
    assert ends(predict([sends, takes], m))[1, 0][2:] == [6, 14]


def test_a_rested_host_is_not_slowed_by_a_curve_of_a_busy_one():
    """4 bytes keep the line for 2 s, of whatever the curve says: sent ahead they take that less, but their latency at
    least.
    """
    for curve, there in ((3, [4, 2]), (4.5, [4.5, 2.5]), (5, [5, 3])):
        sends = schedule(0, 2, [[("post_send", 0)]], [(True, 1, 0, 4, False)])
        takes = schedule(1, 2, [[("post_recv", 0), ("wait", 0)]], [(False, 0, 0, 4, False)])
        times = [
            ends(
                predict(
                    [sends, takes], machine((0, 1), burst_bytes=burst, transfer_s=_core.Curve([0.0], [float(curve)]))
                )
            )[1, 0][-1]
            for burst in (0, 8)
        ]
        assert times == there, curve


def test_messages_within_a_host_share_the_cpu_that_copies():
    m = machine(busy_byte_s=0.5)
    both = [schedule(r, 3, [[SEND, WAIT]], [(True, 2, 7, 4, False)]) for r in (0, 1)]
    take = schedule(
        2, 3, [[RECEIVE, ("post_recv", 1), WAIT, ("wait", 1)]], [(False, 0, 7, 4, False), (False, 1, 7, 4, False)]
    )
    assert ends(predict([*both, take], m))[2, 0][-2:] == [4, 6]


def test_lanes_hand_over():
    m = machine()
    m.hand_over_s, m.step_s = 0.5, 0.0625
    lanes = [[COMPUTE, ("signal", 0, 1), COMPUTE], [("await", 0, 1), COMPUTE]]
    p = predict([schedule(0, 1, lanes, tiles=(1,))], m)
    assert ends(p) == {(0, 0): [1.0625, 1.125, 2.1875], (0, 1): [1.625, 2.6875]}
    # The first tile of lane 1 is what it waits for: fill, not hand-over.
    assert p.parts.hand_over_s == 0 and p.parts.fill_s == 1.625 / 2


@pytest.mark.parametrize(
    "region,run,size",
    [
        (((0, 0), (2, 8)), 16, 16),  # whole rows
        (((0, 0), (2, 4)), 4, 8),  # parts of rows
        (((0, 2), (8, 3)), 1, 8),  # a column
        (((3, 2), (4, 6)), 4, 4),  # part of one row
    ],
)
def test_packing_is_by_what_is_contiguous(region, run, size):
    m = machine()
    m.copy_byte_s = _core.Curve([1.0, 16.0], [16.0, 1.0])  # 17 - run seconds a byte
    s = schedule(0, 2, [[("pack", 0)]], [(True, 1, 7, size, False)], array_extents=(8, 8))
    packed = s.messages
    packed[0].region = region
    s.messages = packed
    other = schedule(1, 2, [[]], [])
    assert predict([s, other], m).time_s == size * (17 - run)


def test_large_copies_wait_only_for_what_was_not_done_meanwhile():
    """A lane that has waited for another message has moved this one, too."""
    m = machine(eager_bytes=0, hidden_polled=0, byte_s=0.5)
    sends = schedule(
        0, 2, [[SEND, ("post_send", 1), ("wait", 0), ("wait", 1)]], [(True, 1, 7, 4, False), (True, 1, 8, 4, False)]
    )
    takes = schedule(
        1,
        2,
        [[RECEIVE, ("post_recv", 1), ("wait", 0), ("wait", 1)]],
        [(False, 0, 7, 4, False), (False, 0, 8, 4, False)],
    )
    assert ends(predict([sends, takes], m))[1, 0][-2:] == [4.5, 4.5]


def test_spread_keeps_the_mean_and_lengthens_pipelines():
    tiles, ranks = 4000, 3

    def row(rank):
        take = [(False, rank - 1, i, 4, False) for i in range(tiles)] if rank else []
        give = [(True, rank + 1, i, 4, False) for i in range(tiles)] if rank + 1 < ranks else []
        lane = []
        for i in range(tiles):
            lane += [("post_recv", i), ("wait", i)] if rank else []
            lane += [("compute", 0)] + ([("post_send", len(take) + i)] if give else [])
        return schedule(rank, ranks, [lane], take + give, (1,))

    m = machine(range(ranks), latency_s=0, send_s=0, receive_s=0, byte_s=0)
    even, spread = (
        predict([row(r) for r in range(ranks)], m, rate=_core.KernelRate(point_s=1, row_s=0, tile_s=0, spread=s))
        for s in (0, 0.25)
    )
    assert even.time_s == tiles + 2
    assert spread.parts.compute_s == pytest.approx(tiles, rel=0.02)
    assert tiles + 2 < spread.time_s < 1.1 * tiles
    assert (
        spread.time_s
        == predict(
            [row(r) for r in range(ranks)], m, rate=_core.KernelRate(point_s=1, row_s=0, tile_s=0, spread=0.25)
        ).time_s
    )


# --- refusals --------------------------------------------------------------------------------------------------


def test_cyclic_wait_is_refused():
    ranks = [
        schedule(
            r,
            2,
            [[RECEIVE, WAIT, ("post_send", 1), ("wait", 1)]],
            [(False, 1 - r, 7, 4, False), (True, 1 - r, 7, 4, False)],
        )
        for r in (0, 1)
    ]
    with pytest.raises(
        ConfigError,
        match=r"do not end: 2 lanes wait .*rank 0, lane 0, step 1: wait message 0 \(receive of 4 bytes "
        r"from rank 1, tag 7\); rank 1",
    ):
        predict(ranks, machine())
    lanes = [[("await", 1, 1), ("signal", 0, 1)], [("await", 0, 1), ("signal", 0, 1)]]
    with pytest.raises(ConfigError, match="rank 0, lane 1, step 0: await counter 1 of lane 0"):
        predict([schedule(0, 1, lanes)], machine())


def test_synchronous_sends_to_each_other_do_not_end():
    both = [
        schedule(
            r,
            2,
            [[SEND, WAIT, ("post_recv", 1), ("wait", 1)]],
            [(True, 1 - r, 7, 4, True), (False, 1 - r, 7, 4, False)],
        )
        for r in (0, 1)
    ]
    with pytest.raises(ConfigError, match="do not end"):
        predict(both, machine())


def on_cpus(m, count, ranks):
    m.set_of, m.set_cpus = [0] * ranks, [count]
    return m


@pytest.mark.parametrize(
    "cpus, tiles, want",
    [
        (1, (10, 4), (14, 8)),  # half each until the shorter has had its 4 s
        (1, (10, 10), (20, 20)),
        (2, (10, 4), (10, 4)),  # one each
        (2, (6, 6, 6), (9, 9, 9)),
        (2, (12, 3, 3), (13.5, 4.5, 4.5)),  # two thirds each until 4.5, when the first has 9 left
    ],
)
def test_those_that_compute_share_the_cpus(cpus, tiles, want):
    ranks = len(tiles)
    every = [schedule(r, ranks, [[COMPUTE]], tiles=(points,)) for r, points in enumerate(tiles)]
    found = ends(predict(every, on_cpus(machine(), cpus, ranks)))
    assert [found[r, 0][0] for r in range(ranks)] == pytest.approx(want)
    # Ranks of other hosts may share them too, and others that have nothing to do take nothing.
    idle = [
        schedule(r, ranks + 1, [[COMPUTE]] if r < ranks else [[]], tiles=(points,))
        for r, points in enumerate((*tiles, 1))
    ]
    assert predict(idle, on_cpus(machine(range(ranks + 1)), cpus, ranks + 1)).time_s == pytest.approx(max(want))


def test_who_waits_gives_its_part_of_the_cpus_away():
    # Rank 1 posts in 0.25 s, beside rank 0, and waits, so rank 0 computes alone; its message of 4 bytes is there 4 s
    # after its post.
    p = predict(
        pair([COMPUTE, SEND, ("compute", 1)], [RECEIVE, WAIT, COMPUTE], tiles=(10, 6)), on_cpus(machine(), 1, 2)
    )
    # Then both: rank 0 from 10.25 on, alone until 14 with 3.75 of its 6 s done, the rest beside rank 1.
    assert ends(p)[0, 0] == pytest.approx([10, 10.25, 14 + 2 * 2.25]) and ends(p)[1, 0] == pytest.approx(
        [0.25, 14, 14 + 2 * 2.25 + 7.75]
    )


@pytest.mark.parametrize("seed", range(20))
def test_cpus_that_are_shared_are_never_idle_nor_overtaken(seed):
    rng = random.Random(seed)
    ranks, cpus = rng.randint(2, 5), rng.randint(1, 3)
    tiles = [[rng.randint(1, 9) for _ in range(rng.randint(1, 6))] for _ in range(ranks)]
    every = [schedule(r, ranks, [[("compute", i) for i in range(len(t))]], tiles=t) for r, t in enumerate(tiles)]
    took = predict(every, on_cpus(machine(), cpus, ranks)).time_s
    least = max(sum(map(sum, tiles)) / cpus, max(map(sum, tiles)))
    assert took >= least * (1 - 1e-12), (seed, tiles)
    assert cpus > 1 or took == pytest.approx(least), (seed, tiles)
    assert cpus < ranks or took == max(map(sum, tiles)), (seed, tiles)


@pytest.mark.parametrize(
    "change,message",
    [
        (lambda s, m: setattr(m, "set_of", [0]), "set_of says where 1 ranks are"),
        (lambda s, m: (setattr(m, "set_of", [0, 1]), setattr(m, "set_cpus", [2.0])), "set_of names set 1"),
        (lambda s, m: s.reverse(), "schedule 0 of 2 is for rank 1 of 2; allowed: those of all ranks, in order"),
        (lambda s, m: s.pop(), "schedule 0 of 1 is for rank 0 of 2"),
        (lambda s, m: setattr(s[0], "lanes", [[_core.Step("compute", 3)]]), "step 0: compute names 3"),
        (lambda s, m: setattr(s[0], "lanes", [[_core.Step("post_recv", 0)]]), "cannot be posted so"),
        (lambda s, m: setattr(s[0], "lanes", [[_core.Step("wait", 0)]]), "not posted before"),
        (
            lambda s, m: setattr(s[0], "lanes", [[_core.Step("post_send", 0), _core.Step("post_send", 0)]]),
            "posted twice",
        ),
        (lambda s, m: setattr(m, "host_of", [0]), "host_of says where 1 ranks are"),
        (lambda s, m: setattr(m, "step_s", -1.0), "step_s is -1"),
        (lambda s, m: setattr(m, "poll_s", float("inf")), "poll_s is inf"),
        (lambda s, m: setattr(m, "other_host", with_byte_s(float("nan"))), "other_host.byte_s is nan"),
    ],
)
def test_what_cannot_be_played_is_refused(change, message):
    s, m = pair([SEND, WAIT], [RECEIVE, WAIT]), machine()
    change(s, m)
    with pytest.raises(ConfigError, match=message):
        predict(s, m)


def with_byte_s(value):
    link = _core.Link()
    link.byte_s = value
    return link


def test_messages_of_different_sizes_are_refused():
    a, b = pair([SEND, WAIT], [RECEIVE, WAIT], size=4)[0], pair([SEND, WAIT], [RECEIVE, WAIT], size=8)[1]
    with pytest.raises(ConfigError, match="meets a message of 4 bytes on rank 0"):
        predict([a, b], machine())


# --- random schedules ------------------------------------------------------------------------------------------


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
    problem, plan, ranks = random_case(seed)
    all_schedules = schedules(problem, plan, ranks)
    if _core.check(all_schedules) is not None:
        pytest.skip("refused by the checker")
    m, poll = random_machine(rng, ranks), rng.choice((0, 0.5, 20))
    rate = _core.KernelRate(point_s=rng.random(), row_s=rng.random(), tile_s=rng.random())
    p, again = predict(all_schedules, m, poll, rate), predict(all_schedules, m, poll, rate)
    where = f"seed {seed}, {describe(problem, plan, ranks)}"
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
    problem, plan, ranks = random_case(seed)
    all_schedules = schedules(problem, plan, ranks)
    m = random_machine(rng, ranks)
    costs = {"latency_s": m.same_host.latency_s, "send_s": 0.02, "receive_s": 0.03}
    numbers = {"hand_over_s": 0.05, "step_s": 0.01}

    def time(**slower):
        one = machine(
            range(ranks), byte_s=0, eager_bytes=1e9, **{**costs, **{k: v for k, v in slower.items() if k in costs}}
        )
        for name, value in {**numbers, **slower}.items():
            if name in numbers:
                setattr(one, name, value)
        rate = _core.KernelRate(
            **{
                **{"point_s": 0.1, "row_s": 0.2, "tile_s": 0.3},
                **{k: v for k, v in slower.items() if k in ("point_s", "row_s", "tile_s")},
            }
        )
        return _core.predict(all_schedules, one, rate, poll_period_s=0, record=False).time_s

    before = time()
    for name in [*costs, *numbers, "point_s", "row_s", "tile_s"]:
        assert time(**{name: 2.0}) >= before * (1 - 1e-12), (
            f"seed {seed}, slower {name}, {describe(problem, plan, ranks)}"
        )


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


@numba.cfunc(types.int64(types.CPointer(INTS), INTS, types.int64, INTS, INTS, INTS))
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
            sweep.run(operands, ctypes.cast(count_row.ctypes, ctypes.c_void_p).value, env.ctypes.data, None)
            return env

        results, errors = on_ranks(case.ranks, 1, body)
        assert not any(errors), (str(case), errors)
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
