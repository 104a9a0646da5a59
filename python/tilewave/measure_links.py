"""Experiments between ranks, for each kind of neighbour that a launch has."""
import statistics
import time

from tilewave import _core, fit
from tilewave.machine import Curve, Link

LARGEST = 16 << 20
LARGEST_QUICK = 4 << 20
SMALL = 8
STREAM_BYTES, LARGEST_STREAM = 256 << 10, 1 << 20  # of a message in a stream
MOST_STREAM = 16
POLL_S = 50e-6  # between polls, as runs do
BESIDE_LEAST, BESIDE_MOST = 256 << 10, 4 << 20  # bytes of a message beside computing
SYNCHRONOUS = (8, 512, 4096, 32 << 10, 256 << 10, 2 << 20)
STRIDES = (1, 2, 4, 8, 16, 32, 64)  # float64s
STRIDED = (4096, 64 << 10, 1 << 20, 4 << 20)  # bytes
CHUNK_BYTES = 32 << 10


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
    begin, length = session.now_s, part * session.budget_s

    def until(share):
        return begin + share * length

    shares = (0.25, 0.55, 0.6, 0.9, 1.0, 1.0) if session.quick else (0.15, 0.42, 0.5, 0.75, 0.82, 1.0)
    session.run(_core.measure.round_trips, *seat(session, pair), SMALL, 10)  # connections are made at first use
    byte, (send, receive) = _stream(session, until(shares[0]), pair)
    points = find_times(session, until(shares[1]), pair, byte.value)
    times = [(size, sample.value) for size, sample in sorted(points.items())]
    thin = fit.thinned(times)
    if thin[-1][0] < LARGEST:  # larger messages go on as streams do
        thin.append((LARGEST, thin[-1][1] + (LARGEST - thin[-1][0]) * byte.value))
    synchronous = _synchronous(session, until(shares[2]), pair, byte.value)
    overlap = beside(session, until(shares[3]), pair, byte.value)
    crowd = _crowd(session, until(shares[4]), kind, pair, host_of, byte.value)
    strided = [] if session.quick else _strided(session, until(shares[5]), pair, byte.value)
    for name, sample in (("latency_s", points[SMALL]), ("send_s", send), ("receive_s", receive), ("byte_s", byte), ("crowd", crowd)):
        spread[f"{kind}.{name}"] = sample.spread
    spread.update((f"{kind}.transfer_s[{size}]", sample.spread) for size, sample in points.items())
    usual = overlap_at(overlap, "polls")
    return Link(latency_s=points[SMALL].value, send_s=send.value, receive_s=receive.value, byte_s=byte.value,
                transfer_s=_curve(thin), breaks_bytes=fit.breaks(times), synchronous_s=_curve(synchronous), overlap=overlap,
                busy_byte_s=usual["busy_byte_s"], hidden_polled=usual["hidden"], hidden_unpolled=overlap_at(overlap, "none")["hidden"],
                crowd=crowd.value, strided=strided)


def _curve(points):
    return Curve([x for x, _ in points], [y for _, y in points])


def overlap_at(rows, way, period_s=POLL_S):
    """The row of a way of polling, of several periods the given one."""
    return min((r for r in rows if r["way"] == way), key=lambda r: abs(r["poll_period_s"] - period_s))


def _trips(session, end_s, pair, size, slot_s, synchronous=False):
    """Samples of one message of a size, one way, both ranks waiting."""
    slot = min(slot_s, max(end_s - session.now_s, 0) / 2)
    return session.repeat(lambda n: session.run(_core.measure.round_trips, *seat(session, pair), size, n, synchronous)[pair[0]],
                          session.now_s + slot, most=201, least=3, first=3)


def find_times(session, end_s, pair, byte_s):
    """One message by bytes, one way, both ranks waiting: Samples, by size, closer where lines do not do."""
    largest = LARGEST_QUICK if session.quick else LARGEST
    sizes = [SMALL]
    while sizes[-1] < largest:
        sizes.append(min(sizes[-1] * (8 if session.quick else 4), largest))
    length = end_s - session.now_s

    def one(size):
        # A message may take so long that nothing else could be measured.
        if 8 * size * byte_s > end_s - session.now_s:
            return None
        return fit.summary(_trips(session, end_s, pair, size, max(length / 80, 6 * size * byte_s)))

    first = fit.summary(_trips(session, end_s, pair, SMALL, length / 80))
    found = {SMALL: first, **fit.find_points(one, sizes)}
    return {1: found[SMALL], **found}  # a byte costs what eight do


def _synchronous(session, end_s, pair, byte_s):
    """Points (bytes, seconds) of sends that complete when they are received."""
    found, length = [], end_s - session.now_s
    for size in SYNCHRONOUS[::2] if session.quick else SYNCHRONOUS:
        if found and 8 * size * byte_s > end_s - session.now_s:
            break
        found.append((size, fit.summary(_trips(session, end_s, pair, size, length / len(SYNCHRONOUS), True)).value))
    return found


def beside(session, end_s, pair, byte_s):
    """Rows: the part of a large transfer that runs beside computing, and what that costs the computing, by way of polling."""
    length = max(end_s - session.now_s, 1e-3)
    size = int(min(max(length / 150 / byte_s, BESIDE_LEAST), BESIDE_MOST))

    def run(bytes_, rows, turns, period_s, helper=False):
        both = session.run(_core.measure.beside, *seat(session, pair), bytes_, rows, turns, period_s, helper)
        return [both[rank] for rank in pair]

    row_s = statistics.median(v for _, computed, _ in run(0, 64, 9, 0.0) for v in computed) / 64
    run(size, 1, 1, 0.0)
    alone_s = statistics.median(max(waits) for waits in zip(*(waited for *_, waited in run(size, 1, 7, 0.0)), strict=True))
    rows = max(1, round(1.5 * alone_s / row_s))
    ways = [("none", 0.0), ("polls", POLL_S), ("helper", 0.0)]
    if not session.quick:
        ways[1:2] = [("polls", p) for p in (25e-6, POLL_S, 200e-6, 1e-3)]
    plain, with_message = {w: [[], []] for w in ways}, {w: [[], []] for w in ways}
    waits, posts = {w: [] for w in ways}, {w: [[], []] for w in ways}
    begin = session.now_s
    for turn in range(25):
        for way, period in ways:
            for bytes_, computed in ((0, plain), (size, with_message)):
                both = run(bytes_, rows, 1, period, way == "helper")
                for i, (_, seconds, _) in enumerate(both):
                    computed[way, period][i] += seconds
            for i, (seconds, *_) in enumerate(both):
                posts[way, period][i] += seconds
            waits[way, period].append(max(both[0][2][0], both[1][2][0]))
        each = (session.now_s - begin) / (turn + 1)
        if session.now_s + each > end_s:
            break
    return [_row(way, period, size, alone_s, waits[way, period],
                 *(plain[ways[0]], plain[way, period], with_message[way, period], posts[way, period])) for way, period in ways]


def _row(way, period_s, size, alone_s, waits, *samples):
    """One way of polling. Samples of both ranks: computing without any polls, without a message, with one; and its post."""
    never, without, beside_it, post = ([statistics.median(s) for s in both] for both in samples)
    busy = [(max(b - a, 0.0) + p) / size for a, b, p in zip(without, beside_it, post, strict=True)]
    return {"way": way, "poll_period_s": period_s, "bytes": size,
            "hidden": min(max(1.0 - statistics.median(waits) / alone_s, 0.0), 1.0),
            "slowdown": sum(beside_it) / sum(never), "polls_slowdown": sum(without) / sum(never),
            "busy_byte_s": sum(busy) / 2, "send_busy_byte_s": busy[0], "receive_busy_byte_s": busy[1]}


def _crowd(session, end_s, kind, pair, host_of, byte_s):
    """The time of all neighbours at once over that of a pair alone, by the bytes that the fullest host moves: a Sample."""
    ranks, me = len(host_of), session.context.rank
    targets = ring(host_of, kind == "same_host")
    size = int(min(max((end_s - session.now_s) / 20 / ranks / byte_s, STREAM_BYTES), 1 << 20))

    def together(to, count):
        """Seconds of the slowest rank, each time."""
        mine = [to[me]] if me in to else []
        every = session.run(_core.measure.exchange, mine, [r for r in sorted(to) if to[r] == me], size, count)
        taking_part = [every[r] for r in range(ranks) if r in to or r in to.values()]
        return [max(one) for one in zip(*taking_part, strict=True)]

    moved = [0] * (max(host_of) + 1)
    for r in targets:
        moved[host_of[r]] += 1
    samples, begin = [], session.now_s
    together(targets, 1)
    for turn in range(15):
        alone, crowded = together({pair[0]: pair[1]}, 1)[0], together(targets, 1)[0]
        samples.append(crowded / (alone * max(moved)))
        if session.now_s + (session.now_s - begin) / (turn + 1) > end_s:
            break
    return fit.summary(samples)


def ring(host_of, same_host):
    """To whom each rank sends when all do, by rank: the next rank of its host, or its like on the next host that has one."""
    hosts = [[r for r, h in enumerate(host_of) if h == host] for host in dict.fromkeys(host_of)]
    found = {}
    for at, ranks in enumerate(hosts):
        for i, rank in enumerate(ranks):
            others = ranks if same_host else hosts[(at + 1) % len(hosts)]
            to = others[(i + 1 if same_host else i) % len(others)]
            if to != rank:
                found[rank] = to
    return found


def _strided(session, end_s, pair, byte_s):
    """Rows: seconds a byte of float64s with a stride, by way of sending, size and stride."""
    ways = ("datatype", "packed", "chunks") if _core.measure.native(session.context._core) else ("packed", "chunks")
    cases = [(size, stride, way) for size in STRIDED for stride in STRIDES for way in ways]
    found, took = [], {}
    for i, (size, stride, way) in enumerate(cases):
        begin = session.now_s
        slot = (end_s - begin) / (len(cases) - i)
        # Memory is made at every call, so there is one; the next stride has twice as much of it.
        if 2.5 * took.get((size, stride // 2, way), took.get((size // 4, stride, way), 0.0)) > end_s - begin:
            break
        rounds = int(min(max(slot / 2 / (4 * size * byte_s + 1e-5), 3), 41))
        samples = session.run(_core.measure.strided_trips, *seat(session, pair), size, rounds, way, stride, CHUNK_BYTES)[pair[0]]
        found.append({"way": way, "stride": stride, "bytes": size, "byte_s": fit.summary(samples).value / size})
        took[size, stride, way] = session.now_s - begin
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
    return byte, tuple(map(fit.summary, posts))
