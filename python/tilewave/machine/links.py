"""Experiments between ranks, for each kind of neighbour that a launch has."""

import math
import time

from tilewave import _core
from tilewave.machine import fit
from tilewave.machine.machine import Curve, Link
from tilewave.machine.sharing import POLL_S, overlap_rows, seat

LARGEST = 16 << 20
LARGEST_QUICK = 4 << 20
SMALL = 8
STREAM_BYTES, LARGEST_STREAM = 256 << 10, 1 << 20  # of a message in a stream
MOST_STREAM = 16
SYNCHRONOUS = (8, 512, 4096, 32 << 10, 256 << 10, 2 << 20)
LEAST_BURST = 64 << 10
EAGER_MOST = 1 << 20


def pairs(host_of):
    """Two ranks for each kind of neighbour: (first, second), by name; rank 0 is one where it can be."""
    first, same = {}, []
    for rank, host in enumerate(host_of):
        if first.setdefault(host, rank) != rank:
            same.append((first[host], rank))
    other = next((rank for rank, host in enumerate(host_of) if host != host_of[0]), None)
    found = {"same_host": min(same, default=None), "other_host": None if other is None else (0, other)}
    return {kind: pair for kind, pair in found.items() if pair is not None}


def poll(session, part, pair):
    """A poll that finds nothing: a Sample."""
    return fit.summary(
        session.repeat(
            lambda n: session.run(_core.measure.polls, *seat(session, pair), n)[pair[1]], session.until(part), most=100
        )
    )


def link(session, part, kind, pair, spread):
    """All numbers of one kind of neighbour, in this part of the time."""
    begin, length = session.now_s, part * session.budget_s

    def until(share):
        return begin + share * length

    shares = (0.25, 0.6, 0.65, 1.0) if session.quick else (0.15, 0.42, 0.5, 1.0)
    session.run(_core.measure.round_trips, *seat(session, pair), SMALL, 10)  # connections are made at first use
    byte, burst, (send, receive) = _stream(session, until(shares[0]), pair)
    eager = _eager(session, pair, byte.value)
    points = find_times(session, until(shares[1]), pair, byte.value, eager)
    times = [(size, sample.value) for size, sample in sorted(points.items())]
    thin = fit.thinned(times)
    if thin[-1][0] < LARGEST:  # larger messages go on as streams do
        thin.append((LARGEST, thin[-1][1] + (LARGEST - thin[-1][0]) * byte.value))
    synchronous = _synchronous(session, until(shares[2]), pair, byte.value)
    overlap = overlap_rows(session, until(shares[3]), pair, byte.value)
    samples = {"latency_s": points[SMALL], "send_s": send, "receive_s": receive, "byte_s": byte}
    spread.update((f"{kind}.{name}", sample.spread) for name, sample in samples.items())
    spread.update((f"{kind}.transfer_s[{size}]", sample.spread) for size, sample in points.items())
    usual = overlap_at(overlap, "polls")
    return Link(
        latency_s=points[SMALL].value,
        send_s=send.value,
        receive_s=receive.value,
        byte_s=byte.value,
        burst_bytes=burst,
        eager_bytes=eager,
        transfer_s=_curve(thin),
        breaks_bytes=fit.breaks(times),
        synchronous_s=_curve(synchronous),
        overlap=overlap,
        busy_byte_s=usual["busy_byte_s"],
        hidden_polled=usual["hidden"],
        hidden_unpolled=overlap_at(overlap, "none")["hidden"],
    )


def _curve(points):
    return Curve([x for x, _ in points], [y for _, y in points])


def overlap_at(rows, progress):
    """The row of a kind of progress, of several periods between polls the usual one."""
    return min((r for r in rows if r["progress"] == progress), key=lambda r: abs(r["poll_period_s"] - POLL_S))


def _trips(session, end_s, pair, size, slot_s, synchronous=False):
    """Samples of half a round trip of a message of a size, both ranks waiting."""
    slot = min(slot_s, max(end_s - session.now_s, 0) / 2)
    return session.repeat(
        lambda n: session.run(_core.measure.round_trips, *seat(session, pair), size, n, synchronous)[pair[0]],
        session.now_s + slot,
        most=201,
        least=3,
        first=3,
    )


def find_times(session, end_s, pair, byte_s, eager):
    """Half a round trip by bytes of the message, both ranks waiting: Samples, by size, closer where lines do not do."""
    largest = LARGEST_QUICK if session.quick else LARGEST
    sizes = [SMALL]
    while sizes[-1] < largest:
        sizes.append(min(sizes[-1] * (8 if session.quick else 4), largest))
    if SMALL < eager < EAGER_MOST:  # a protocol ends there; these two sizes tell whether times show it
        sizes = sorted({*sizes, int(eager), int(1.05 * eager) + 1})
    length = end_s - session.now_s

    def one(size):
        # A message may take so long that nothing else could be measured.
        if 8 * size * byte_s > end_s - session.now_s:
            return None
        return fit.summary(_trips(session, end_s, pair, size, max(length / 80, 6 * size * byte_s)))

    def latency():
        return fit.summary(_trips(session, end_s, pair, SMALL, length / 80))

    first = latency()
    found = {SMALL: first, **fit.find_points(one, sizes)}
    # Looked at before and after all others: of what counts most no one moment decides.
    found[SMALL] = min(first, found[SMALL], latency(), key=lambda sample: sample.value)
    return {1: found[SMALL], **found}  # a byte costs what eight do


def _synchronous(session, end_s, pair, byte_s):
    """Points (bytes, seconds) of sends that complete when they are received."""
    found, length = [], end_s - session.now_s
    for size in SYNCHRONOUS[::2] if session.quick else SYNCHRONOUS:
        if found and 8 * size * byte_s > end_s - session.now_s:
            break
        found.append((size, fit.summary(_trips(session, end_s, pair, size, length / len(SYNCHRONOUS), True)).value))
    return found


def _stream(session, end_s, pair):
    """A byte more in a stream of large messages, and the posts of a send and a receive: Samples."""

    def turns(size, count, n=1, pause_s=0.0):
        def one(core):
            time.sleep(pause_s)
            return _core.measure.stream(core, *seat(session, pair), size, count, n)

        every = session.run(one)
        return every[pair[0]][0], every[pair[0]][1], every[pair[1]][2]

    _, *posts = turns(SMALL, 16, 12)
    few, many, size = 4, MOST_STREAM, STREAM_BYTES
    turns(size, few)  # buffers of the library grow
    pilot = turns(size, few)[0][0]
    left = end_s - session.now_s
    while size < LARGEST_STREAM and 10 * (1 + many / few) * pilot < left:
        size, pilot = 2 * size, 2 * pilot
    if 2 * (1 + many / few) * pilot > left:
        many = 2 * few
    # What buffers and token buckets lend is the same in both if it is all there at the begin.
    pause_s = min(pilot / 4, 0.02)
    samples = {few: [], many: []}
    while True:
        before = session.now_s
        for count in samples:
            samples[count] += turns(size, count, 1, pause_s)[0]
        if len(samples[few]) >= 40 or 2 * session.now_s - before > end_s:
            break
    byte = fit.slope((few * size, samples[few]), (many * size, samples[many]))
    if not byte.value > 0:  # noise alone: what all bytes took
        byte = fit.summary([t / (many * size) for t in samples[many]])
    # Caches, too, make the first messages fast: a bucket is there if a small one after a rest takes no time to speak
    # of.
    small_s = min(turns(LEAST_BURST, 1, 1, pause_s)[0][0] for _ in range(5))
    ahead = few * size - min(samples[few]) / byte.value if small_s < LEAST_BURST * byte.value / 2 else 0.0
    return byte, max(float(ahead), 0.0), tuple(map(fit.summary, posts))


def cards(session, end_s, pair, host_of, byte_s):
    """How many ranks of a host send to another host at full rate at once, where `byte_s` is that of one: cards, or
    streams of one card that no single one fills.
    """
    hosts = [[rank for rank, host in enumerate(host_of) if host == host_of[one]] for one in pair]
    pairs = list(zip(*hosts, strict=False))
    if len(pairs) == 1:
        return 1
    place = seat(session, next((both for both in pairs if session.context.rank in both), pair))
    samples = {4: [], MOST_STREAM: []}
    while not samples[4] or (len(samples[4]) < 40 and session.now_s < end_s):
        for count, found in samples.items():
            every = session.run(_core.measure.stream, *place, STREAM_BYTES, count, 1)
            found.append(max(every[sender][0][0] for sender, _ in pairs))
    together = fit.slope(*((count * STREAM_BYTES, found) for count, found in samples.items())).value
    full = len(pairs) * byte_s / together if together > 0 else 1
    return min(max(int(full + 0.3), 1), len(pairs))


def _eager(session, pair, byte_s):
    """The bytes of the largest message that leaves though the receiver has not asked for it."""

    def leaves(size):
        # Until then the receiver neither asks nor polls; what was sent has arrived.
        delay_s = 4 * size * byte_s + 500e-6
        samples = session.run(_core.measure.early_sends, *seat(session, pair), size, delay_s, 5)[pair[0]]
        return min(samples) < delay_s / 2

    low, high = SMALL, EAGER_MOST
    if leaves(high):
        return float(high)
    while high > 1.04 * low:
        middle = round(math.sqrt(low * high))
        low, high = (middle, high) if leaves(middle) else (low, middle)
    return float(low)
