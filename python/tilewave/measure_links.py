"""Experiments between ranks, for each kind of neighbour that a launch has."""
from tilewave import _core, fit
from tilewave.machine import Curve, Link

LARGEST = 16 << 20
LARGEST_QUICK = 4 << 20
SMALL = 8
STREAM_BYTES = 256 << 10  # of a message in a stream
STREAM_MEMORY = 64 << 20


def pairs(host_of):
    """Two ranks for each kind of neighbour: (first, second), by name; rank 0 is one where it can be."""
    found = {}
    for a in range(len(host_of)):
        for b in range(a + 1, len(host_of)):
            found.setdefault("same_host" if host_of[a] == host_of[b] else "other_host", (a, b))
            if len(found) == 2:
                return dict(sorted(found.items(), reverse=True))
    return found


def seat(session, pair):
    """What an experiment of two is told: whom this rank plays with (-1: nobody), and whether it begins."""
    rank = session.context.rank
    return (pair[1 - pair.index(rank)], rank == pair[0]) if rank in pair else (-1, False)


def poll(session, part, pair):
    """A poll that finds nothing: a Sample."""
    return fit.summary(session.repeat(
        lambda n: session.run(_core.measure.polls, *seat(session, pair), n)[pair[1]], session.until(part), most=100))


def link(session, part, kind, pair, host_of, spread):
    """All numbers of one kind of neighbour, in this part of the time."""
    end = session.until(part)
    length = end - session.now_s
    session.run(_core.measure.round_trips, *seat(session, pair), SMALL, 10)  # connections are made at first use
    byte, posts = _stream(session, session.now_s + 0.25 * length, pair)
    send, receive = posts
    points = _times(session, session.now_s + 0.35 * length, pair, False, byte.value)
    latency = points[SMALL]
    note = session.note
    for size, sample in points.items():
        spread[f"{kind}.transfer_s[{size}]"] = sample.spread
    values = [(size, sample.value) for size, sample in sorted(points.items())]
    thin = fit.thinned(values)
    name = kind + "."
    return Link(latency_s=note(spread, name + "latency_s", latency), send_s=note(spread, name + "send_s", send),
                receive_s=note(spread, name + "receive_s", receive), byte_s=note(spread, name + "byte_s", byte),
                transfer_s=Curve([x for x, _ in thin], [y for _, y in thin]), breaks_bytes=fit.breaks(values))


def _times(session, end_s, pair, synchronous, byte_s):
    """One message by bytes, one way, both ranks waiting: samples, by size."""
    largest = LARGEST_QUICK if session.quick else LARGEST
    sizes = [1, SMALL]
    while sizes[-1] < largest:
        sizes.append(sizes[-1] * (8 if session.quick else 4))
    sizes[-1] = largest
    begin = session.now_s
    length = end_s - begin

    def one(size):
        # A message may take so long that nothing else could be measured.
        if size > 64 and (session.now_s > end_s or 4 * size * byte_s > end_s - session.now_s):
            return None
        slot = min(max(length / 60, 6 * size * byte_s), max(end_s - session.now_s, 0) / 2)
        return fit.summary(session.repeat(
            lambda n: session.run(_core.measure.round_trips, *seat(session, pair), size, n, synchronous)[pair[0]],
            session.now_s + slot, most=201, least=3, first=3))

    return fit.find_points(one, sizes)


def _stream(session, end_s, pair):
    """A byte more in a stream of large messages, and the posts of a send and a receive: Samples."""
    def turns(size, count, n):
        return session.run(_core.measure.stream, *seat(session, pair), size, count, n)

    small = turns(SMALL, 16, 12)
    posts = fit.summary(small[pair[0]][1]), fit.summary(small[pair[1]][2])
    few, pilot = 4, []
    for _ in range(2):  # the first grows buffers of the library
        pilot = turns(STREAM_BYTES, few, 1)[pair[0]][0]
    left = max(end_s - session.now_s, 1e-3)
    # Long enough that what buffers and token buckets lend is the same in both.
    many = int(min(max(left / 4 / (pilot[0] / few), 2 * few), STREAM_MEMORY // STREAM_BYTES))
    samples = {few: [], many: []}
    while True:
        before = session.now_s
        for count in samples:
            samples[count] += turns(STREAM_BYTES, count, 1)[pair[0]][0]
        each = session.now_s - before
        if len(samples[few]) >= 25 or session.now_s + each > end_s:
            break
    byte = fit.slope((few * STREAM_BYTES, samples[few]), (many * STREAM_BYTES, samples[many]))
    if not byte.value > 0:  # noise alone: what all bytes took
        byte = fit.summary([t / (many * STREAM_BYTES) for t in samples[many]])
    return byte, posts
