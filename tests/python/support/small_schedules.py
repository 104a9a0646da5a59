"""Schedules small enough to play by hand, and a machine with round numbers."""


import numpy as np

from tilewave import _core

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
