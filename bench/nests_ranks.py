"""What the ranks of `bench nests` do."""

import os
import resource
import time

import tilewave as tw

from bench.nests_alignment import aligning
from bench.nests_bodies import sor
from bench.nests_chain import race_chain
from bench.nests_plain import sequences
from bench.nests_race import SEPARATE, lanes, must_equal


def worker(what, **arguments):
    """What the ranks of one case do; rank 0's findings."""
    workers = {"alignment": _align_on_ranks, "memory": _memory, "sor": _sor_on_ranks, "chain": race_chain}
    return workers[what](**arguments)


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


def _sor_on_ranks(n, steps, repeats):
    """Layouts and schedules in turn, each over other fields, which are laid out as its plan wants.

    One exchange a sweep: a run of one sweep, repeated. SEPARATE: each rank sweeps over rows that no other has, as many
    as its part of the whole.
    """
    world = tw.Context(threads=1)
    rim = lambda i, j: 1e-3 * ((i * n + j) % 1013)
    separate = _on_one_cpu(world)
    runs = {
        "1 rank": (lanes(1) if world.rank == 0 else None, steps),
        "2 ranks": (world, steps),
        "2 ranks, one exchange a sweep": (world, 1),
        SEPARATE: (separate, steps),
    }
    shape = dict.fromkeys(runs, (n, n)) | {SEPARATE: (n // 2 + 1, n)}
    fields = {
        name: {
            "u": tw.field(shape[name], "f8", init=rim, context=context),
            "f": tw.field(shape[name], "f8", context=context),
        }
        for name, (context, _) in runs.items()
        if context
    }
    times = {name: [] for name in runs}
    for turn in range(repeats + 1):
        for name, (context, batch) in runs.items():
            world._core.barrier()
            if not context:
                continue
            begin = time.perf_counter()
            for _ in range(steps // batch):
                tw.run(sor, context=context, **fields[name], w=1.9, steps=batch)
            if name == SEPARATE:
                world._core.barrier()  # both
            times[name] += [time.perf_counter() - begin] * bool(turn)
    wholes = {name: arrays["u"].gather() for name, arrays in sorted(fields.items()) if name != SEPARATE}
    if world.rank:
        return None
    must_equal("SOR", wholes)
    return {"times": times}
