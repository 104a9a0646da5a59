"""What the ranks of `bench nests` do."""

import os
import resource
import time

import tilewave as tw

from bench.nests_alignment import aligning
from bench.nests_plain import sequences
from bench.nests_race import SEPARATE, lanes


def worker(what, **arguments):
    """What the ranks of one case do; rank 0's findings."""
    return {"alignment": _align_on_ranks, "memory": _memory}[what](**arguments)


def _on_one_cpu(world):
    """A context of this rank alone, on a CPU that no other rank of its host has."""
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[world.rank % len(cpus)]})
    try:
        return lanes(1)
    finally:
        os.sched_setaffinity(0, cpus)


def _align_on_ranks(length, repeats):
    """Two ranks, rank 0 alone, and both ranks alone at once, which counts half, in turn."""
    a, b = sequences(length)
    world = tw.Context(threads=1)
    separate = aligning(a, b, _on_one_cpu(world))
    runs = {
        "1 rank": aligning(a, b, lanes(1)) if world.rank == 0 else None,
        "2 ranks": aligning(a, b, world),
        SEPARATE: separate,
    }
    times, scores = {name: [] for name in runs}, set()
    for turn in range(repeats + 1):
        for name, start in runs.items():
            world._core.barrier()
            if start:
                begin = time.perf_counter()
                report = start()
                if name == SEPARATE:
                    world._core.barrier()  # both
                seconds = (time.perf_counter() - begin) / 2 if name == SEPARATE else report.measured.time_s
                times[name] += [seconds] * bool(turn)
                scores.add(int(report.results["best"]))
    if len(scores) > 1:
        raise SystemExit(f"the scores on 1 and 2 ranks differ: {scores}")
    return {"times": times} if world.rank == 0 else None


def _memory(length):
    """Growth of the process's largest resident size by fields and run.

    A small alignment first: compiler and MPI are loaded then.
    """
    context = tw.Context(threads=1)
    aligning(*sequences(500), context)()
    a, b = sequences(length)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    aligning(a, b, context)()
    return {"bytes": 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)}
