"""Experiments inside a host: lanes, steps, memory, copies."""

import collections
import math
import os

from tilewave import _core
from tilewave.machine import fit
from tilewave.machine.machine import Curve

#: CPUs are equally fast where they lack no more of the fastest one's speed (src/problem/tuning.hpp).
UNEQUAL = _core.unequal
SPEED_BYTES = 16 << 10  # of additions in the nearest cache
COPY_BYTES = 64 << 10
RUNS = (8, 16, 32, 64, 128, 512, 4096, 65536)


def _every(session, experiment, *arguments):
    """Samples of an experiment that all ranks make at once."""
    return [v for one in session.run(experiment, *arguments) for v in one]


def hand_over(session, part):
    """From one lane's signal to the end of another's await, on the ranks together: a Sample."""
    samples = session.repeat(lambda n: _every(session, _core.measure.hand_overs, n), session.until(part), most=400)
    return fit.summary(samples)


def step(session, part):
    """The overhead of a step of a schedule: a Sample."""

    def one(n):
        return list(session.run(lambda core: _core.measure.steps(256, n))[0])

    return fit.summary(session.repeat(one, session.until(part), most=200))


def copies(session, part, spread):
    """Seconds a byte of packing, by the bytes next to each other."""
    runs = RUNS[::2] + RUNS[-1:] if session.quick else RUNS
    x, y = [], []
    begin = session.now_s
    for i, run in enumerate(runs, 1):
        until = begin + part * session.budget_s * i / len(runs)

        def one(n, run=run):
            return session.run(lambda core: _core.measure.copies(run, COPY_BYTES, n))[0]

        sample = fit.summary(session.repeat(one, until, most=100))
        x.append(run)
        y.append(max(sample.value / COPY_BYTES, 1e-13))
        spread[f"copy_byte_s[{run}]"] = sample.spread
    return Curve(x, y)


def speeds(session, part, shares, spread):
    """How fast a CPU of each rank is, as a part of the fastest; empty where all are equal. All lanes add in their
    nearest caches. `shares`: the part of a CPU that a lane of each rank has; below 1 the CPU is taken to be fast.
    """
    threads, samples, until = session.context.threads, [], session.until(part)
    while len(samples) < 3 or (session.now_s < until and len(samples) < 50):
        passes = session.run(_core.measure.memory, threads, SPEED_BYTES, 300)
        samples.append([len(times) / sum(times) for times in passes])
    found = [fit.summary(each) for each in zip(*samples, strict=True)]
    spread["speeds"] = max(sample.spread for sample in found)
    whole = [share >= 1 for share in shares]
    fastest = max((sample.value for sample, all_ in zip(found, whole, strict=True) if all_), default=0.0)
    return grouped([sample.value / fastest if all_ else 1.0 for sample, all_ in zip(found, whole, strict=True)])


def grouped(speeds):
    """The same numbers, parts of the greatest, with one in place of those that are about equal; empty where all are."""
    found, begin = {}, math.inf
    for speed in sorted(speeds, reverse=True):
        if speed < (1 - UNEQUAL) * begin:
            begin = speed
        found[speed] = round(begin, 2) or 0.01
    return [found[speed] for speed in speeds] if len(set(found.values())) > 1 else []


def _largest_bytes(lanes):
    """A working set well beyond the last cache that all lanes of a host have room for; of this host."""
    try:
        cache = max(os.sysconf("SC_LEVEL3_CACHE_SIZE"), os.sysconf("SC_LEVEL2_CACHE_SIZE"), 1 << 20)
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        cache, free = 32 << 20, 1 << 30
    return int(max(1 << 20, min(4 * cache, 256 << 20, free // (8 * lanes))))


def memory(session, part, host_of, spread):
    """Seconds a byte read and written, by working set: a curve for each number of busy lanes of a host, from 1 on."""
    context = session.context
    threads, size = context.threads, context.size
    per_host = max(collections.Counter(host_of).values())
    most = per_host * threads
    before = sum(1 for r in range(context.rank) if host_of[r] == host_of[context.rank]) * threads
    largest = min(session.run(lambda core: _largest_bytes(most)))
    counts = [1]
    while counts[-1] < most:
        counts.append(most if session.quick else min(2 * counts[-1], most))
    sizes = [16 << 10]
    while sizes[-1] < largest:
        sizes.append(min(sizes[-1] * (4 if session.quick else 2), largest))
    curves, begin = {}, session.now_s
    for i, lanes in enumerate(counts):
        busy = min(max(lanes - before, 0), threads)
        x, y = [], []
        for j, bytes_ in enumerate(sizes):
            until = begin + part * session.budget_s * (i * len(sizes) + j + 1) / (len(counts) * len(sizes))
            if x and session.now_s > begin + part * session.budget_s:
                break
            samples = session.repeat(
                lambda n, b=bytes_, m=busy: _every(session, _core.measure.memory, m, b, n),
                until,
                most=15 * size * lanes,
                first=3,
            )
            sample = fit.summary(samples)
            x.append(bytes_)
            y.append(max(sample.value / bytes_, 1e-14))
            spread[f"memory[{lanes - 1}][{bytes_}]"] = sample.spread
        curves[lanes] = Curve(x, y)
    return [_between(curves, counts, lanes) for lanes in range(1, most + 1)]


def _between(curves, counts, lanes):
    """The curve of a number of lanes that was not measured lies between those of its neighbours."""
    if lanes in curves:
        return curves[lanes]
    low, high = max(c for c in counts if c < lanes), min(c for c in counts if c > lanes)
    x, below, above = curves[low].x, curves[low].flat(), curves[high].flat()
    return Curve(x, [fit.line(lanes, (low, below.at(v)), (high, above.at(v))) for v in x])
