"""The overlap ratio of recordings made by hand, whose answers follow from the definition in docs/guide/plans.md."""

import math
import random

import numpy as np
import pytest

from tilewave import _core
from tilewave.timeline.timeline import EVENT, OPS, REQUEST

COMPUTE, WAIT, AWAIT = (OPS.index(name) for name in ("compute", "wait", "await"))


class Recording:
    """Events and messages of some ranks, in seconds."""

    def __init__(self, ranks=2):
        self.ranks, self.events, self.requests = ranks, [], []

    def step(self, rank, op, begin, end, lane=0, peer=-1, tag=-1, send=0):
        one = np.zeros((), EVENT)
        one["rank"], one["lane"], one["op"], one["peer"], one["tag"], one["send"] = rank, lane, op, peer, tag, send
        one["begin_s"], one["end_s"] = begin, end
        self.events.append(one)
        return self

    def compute(self, rank, begin, end, lane=0):
        return self.step(rank, COMPUTE, begin, end, lane)

    def wait(self, rank, peer, tag, begin, end, send=False, lane=0):
        return self.step(rank, WAIT, begin, end, lane, peer, tag, send)

    def message(self, tag, size, posted, there, received=None, sent=None, source=0, target=1):
        """Posted by the sender and the receiver, and found to be over by both."""
        send_s, receive_s = posted
        sides = (source, target, 1, send_s, sent or there), (target, source, 0, receive_s, received or there)
        for rank, peer, send, begin, end in sides:
            one = np.zeros((), REQUEST)
            one["rank"], one["peer"], one["tag"], one["send"], one["bytes"] = rank, peer, tag, send, size
            one["posted_s"], one["completed_s"] = begin, end
            self.requests.append(one)
        return self

    def ratio(self, latency_s=0.0, byte_s=1.0):
        timeline = _core.Timeline.__new__(_core.Timeline)
        events = sorted(self.events, key=lambda e: (int(e["rank"]), int(e["lane"]), float(e["begin_s"])))
        events, requests = (b"".join(one.tobytes() for one in every) for every in (events, self.requests))
        timeline.__setstate__((self.ranks, 1, events, requests, []))
        return timeline.overlap_ratio(latency_s, byte_s)


def pipeline(arrivals, tile=4.0, size=8):
    """Rank 0 computes tiles and sends each one's face; rank 1 needs them. The line brings them at these times."""
    r = Recording()
    posts = [tile * (k + 1) for k in range(len(arrivals))]
    now = 0.0
    for k, there in enumerate(arrivals):
        r.compute(0, posts[k] - tile, posts[k])
        r.message(k, size, (posts[k], 0.0), there)
        r.wait(1, 0, k, now, max(now, there))
        now = max(now, there) + tile
        r.compute(1, now - tile, now)
    sent = posts[-1]
    for k, there in enumerate(arrivals):
        r.wait(0, 1, k, sent, max(sent, there), send=True)
        sent = max(sent, there)
    return r


def test_nothing_is_hidden_where_both_wait():
    r = Recording().compute(0, 0, 4).message(0, 8, (4, 0), 12).wait(0, 1, 0, 4, 12, send=True)
    assert r.wait(1, 0, 0, 0, 12).compute(1, 12, 16).ratio() == 0


def test_a_message_that_nobody_waits_for_is_hidden():
    r = Recording().compute(0, 0, 20).message(0, 8, (2, 0), 10).wait(0, 1, 0, 20, 20, send=True)
    assert r.compute(1, 0, 20).wait(1, 0, 0, 20, 20).ratio() == 1


def test_half_of_it():
    # The receiver waits 4 of its 8 s; the sender computes.
    r = Recording().compute(0, 0, 20).message(0, 8, (2, 0), 10).wait(0, 1, 0, 20, 20, send=True)
    assert r.compute(1, 0, 6).wait(1, 0, 0, 6, 10).compute(1, 10, 20).ratio() == (8 + 4) / (8 + 8)


def test_waits_for_the_senders_computing_do_not_count():
    # 30 s until it is posted, then all but the last of 8 s beside computing.
    r = Recording().compute(0, 0, 30).message(0, 8, (30, 0), 38).compute(0, 30, 60).wait(0, 1, 0, 60, 60, send=True)
    assert r.wait(1, 0, 0, 0, 31).ratio() == 1.0  # rank 1 computes nothing: it could hide nothing
    r = Recording().compute(0, 0, 30).message(0, 8, (30, 0), 38).compute(0, 30, 60).wait(0, 1, 0, 60, 60, send=True)
    assert r.wait(1, 0, 0, 0, 30).compute(1, 30, 37).wait(1, 0, 0, 37, 38).ratio() == 1.0


@pytest.mark.parametrize("late", [0.0, 1.0, 3.0, 7.5, 100.0])
def test_a_run_above_the_bound_of_the_line_says_so(late):
    """Of a run that the line bounds, what it takes more is not hidden: the ratio is what the times say."""
    tiles, tile, transfer = 16, 4.0, 8.0
    arrivals = [tile + transfer * (k + 1) + (late if k >= tiles // 2 else 0.0) for k in range(tiles)]
    computing, sent = tiles * tile, tiles * transfer
    # On both sides: what the transfers take more than computing, and a tile's time that has nothing beside it.
    exposed = sent - computing + tile + late
    assert pipeline(arrivals).ratio() == pytest.approx(max(sent - exposed, 0) / computing)


def test_a_wait_that_is_longer_than_the_message_takes_counts_whole():
    r = Recording().compute(0, 0, 100).wait(0, 1, 0, 100, 100, send=True)
    r.message(0, 8, (0, 0), 90).message(1, 32, (0, 0), 90).compute(1, 0, 60).wait(1, 0, 0, 60, 90)
    # 40 s of transfers; rank 1 waited 30 s for one that takes 8.
    assert r.ratio() == (40 + 10) / (40 + 40)


def test_a_message_takes_no_longer_than_it_was_under_way():
    # A token bucket brought it in 2 s, of which rank 1 waited 1.
    r = Recording().compute(0, 0, 20).message(0, 8, (5, 0), 7).wait(0, 1, 0, 20, 20, send=True)
    assert r.compute(1, 0, 6).wait(1, 0, 0, 6, 7).compute(1, 7, 20).ratio() == (2 + 1) / (2 + 2)
    # Two at a time are under way as long as either.
    r = Recording().compute(0, 0, 20).message(0, 8, (5, 0), 8).message(1, 8, (6, 0), 9).wait(0, 1, 0, 20, 20, send=True)
    assert r.compute(1, 0, 8).wait(1, 0, 0, 8, 8).wait(1, 0, 1, 8, 9).compute(1, 9, 20).ratio() == (4 + 3) / (4 + 4)


def test_lanes_count_on_average_and_helpers_not():
    def one(lanes):
        r = Recording().compute(0, 0, 20).message(0, 8, (2, 0), 10).wait(0, 1, 0, 20, 20, send=True)
        r.compute(1, 0, 6).wait(1, 0, 0, 6, 10).compute(1, 10, 20)
        for lane in range(1, lanes):
            r.compute(1, 0, 20, lane=lane)
        return r

    assert one(2).ratio() == (8 + 6) / (8 + 8)  # of two lanes one lost 4 s
    helped = one(1).step(1, AWAIT, 0, 20, lane=1)
    assert helped.ratio() == one(1).ratio()


def test_without_messages_there_is_none():
    assert math.isnan(Recording().compute(0, 0, 1).compute(1, 0, 1).ratio())
    assert math.isnan(Recording(1).ratio())


def test_latency_counts():
    r = Recording().compute(0, 0, 20).message(0, 8, (2, 0), 13).wait(0, 1, 0, 20, 20, send=True)
    r.compute(1, 0, 9).wait(1, 0, 0, 9, 13).compute(1, 13, 20)
    assert r.ratio(latency_s=3) == (11 + 7) / (11 + 11)


def test_clocks_that_differ_leave_a_ratio():
    """A message that seems to be there before it was sent."""
    r = Recording().compute(0, 0, 20).message(0, 8, (10, 0), 9, sent=11).wait(0, 1, 0, 20, 20, send=True)
    assert r.compute(1, 0, 20).wait(1, 0, 0, 20, 20).ratio() == 1


def test_any_recording_has_a_ratio_from_0_to_1():
    seed = random.randrange(1 << 30)
    print("seed", seed)
    dice = random.Random(seed)
    for _ in range(300):
        arrivals, now = [], 0.0
        for _ in range(dice.randrange(1, 12)):
            now += dice.random() * 20
            arrivals.append(now)
        recording = pipeline(arrivals, tile=dice.random() * 10 + 1e-3, size=dice.randrange(1, 30))
        assert 0 <= recording.ratio(dice.random(), dice.random()) <= 1
