"""Experiments between ranks that compute while a message travels."""

import statistics

from tilewave import _core

POLL_S = 50e-6  # between polls, as runs do
OVERLAP_LEAST, OVERLAP_MOST = 256 << 10, 4 << 20  # bytes of a message while ranks compute


def seat(session, pair):
    """This rank's role in an experiment of two ranks: its peer (-1: none), and whether it begins."""
    rank = session.context.rank
    return (pair[1 - pair.index(rank)], rank == pair[0]) if rank in pair else (-1, False)


def overlap_rows(session, end_s, pair, byte_s):
    """Rows: the part of a large transfer that overlaps computing, and how much it slows the computing, for each kind of
    progress.
    """
    length = max(end_s - session.now_s, 1e-3)
    size = int(min(max(length / 150 / byte_s, OVERLAP_LEAST), OVERLAP_MOST))

    def run(bytes_, rows, turns, period_s, helper=False):
        both = session.run(_core.measure.overlap, *seat(session, pair), bytes_, rows, turns, period_s, helper)
        return [both[rank] for rank in pair]

    row_s = statistics.median(v for _, computed, _ in run(0, 64, 9, 0.0) for v in computed) / 64
    run(size, 1, 1, 0.0)
    alone_s = statistics.median(
        max(waits) for waits in zip(*(waited for *_, waited in run(size, 1, 7, 0.0)), strict=True)
    )
    rows = max(1, round(1.5 * alone_s / row_s))
    kinds = [("none", 0.0), ("polls", POLL_S), ("helper", 0.0)]
    if not session.quick:
        kinds[1:2] = [("polls", p) for p in (25e-6, POLL_S, 200e-6, 1e-3)]
    plain, with_message = {w: [[], []] for w in kinds}, {w: [[], []] for w in kinds}
    waits, posts = {w: [] for w in kinds}, {w: [[], []] for w in kinds}
    begin = session.now_s
    for turn in range(25):
        for progress, period in kinds:
            for bytes_, computed in ((0, plain), (size, with_message)):
                both = run(bytes_, rows, 1, period, progress == "helper")
                for i, (_, seconds, _) in enumerate(both):
                    computed[progress, period][i] += seconds
            for i, (seconds, *_) in enumerate(both):
                posts[progress, period][i] += seconds
            waits[progress, period].append(max(both[0][2][0], both[1][2][0]))
        each = (session.now_s - begin) / (turn + 1)
        if session.now_s + each > end_s:
            break
    return [
        _row(
            progress,
            period,
            size,
            alone_s,
            waits[progress, period],
            *(plain[kinds[0]], plain[progress, period], with_message[progress, period], posts[progress, period]),
        )
        for progress, period in kinds
    ]


def _row(progress, period_s, size, alone_s, waits, *samples):
    """The row of one kind of progress. Samples of both ranks: computing without any polls, without a message, with one;
    and its post.
    """
    # The shortest: at slow rates the computing takes so long that what else runs here adds more than a message does.
    never, without, with_message_s, post = ([min(s) for s in both] for both in samples)
    busy = [(max(b - a, 0.0) + p) / size for a, b, p in zip(without, with_message_s, post, strict=True)]
    return {
        "progress": progress,
        "poll_period_s": period_s,
        "bytes": size,
        "hidden": min(max(1.0 - statistics.median(waits) / alone_s, 0.0), 1.0),
        "slowdown": sum(with_message_s) / sum(never),
        "polls_slowdown": sum(without) / sum(never),
        "busy_byte_s": sum(busy) / 2,
        "send_busy_byte_s": busy[0],
        "receive_busy_byte_s": busy[1],
    }
