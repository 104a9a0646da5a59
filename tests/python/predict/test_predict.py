"""predict() on schedules small enough to play by hand."""

import random

import pytest
from small_schedules import COMPUTE, PARTS, RECEIVE, SEND, WAIT, ends, machine, pair, predict, schedule

from tilewave import _core
from tilewave.errors import ConfigError

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


def test_a_rank_takes_its_steps_at_its_own_speed():
    m = machine()
    m.speeds = [1.0, 0.5]
    p = predict(pair([COMPUTE, SEND, WAIT], [RECEIVE, COMPUTE, WAIT], tiles=(10,)), m)
    # The post of a receive takes 0.25 s in place of 0.125, the tile 20 s, waiting as long as anywhere.
    assert ends(p) == {(0, 0): [10, 10.25, 10.25], (1, 0): [0.25, 20.25, 20.25]}
    for wrong in ([1.0], [1.0, 0.0], [1.0, 1.5]):
        m.speeds = wrong
        with pytest.raises(ConfigError, match="speeds has .* allowed: for each rank a number above 0, at most 1"):
            predict(pair([COMPUTE], [COMPUTE], tiles=(10,)), m)


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
        (lambda s, m: setattr(s[0], "lanes", [[_core.Step("compute", 3)]]), "compute names item 3 of 1"),
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
