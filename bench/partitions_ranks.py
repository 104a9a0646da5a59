"""What the ranks of `bench partitions` do: messages of strided data, and a stencil in every partition."""

import itertools
import math
import random
import statistics
import sys

import numpy as np
import tilewave as tw
from tilewave.errors import ConfigError

from bench.dense import timed
from bench.halo import OURS, PACKED, TYPES, contenders_of, race
from bench.stencils_bodies import heat


def worker(strides, sizes, extents, steps, repeats):
    """Findings of both experiments, on rank 0."""
    context = tw.Context(threads=1)
    found = {
        "messages": [_message(context, s, b, repeats) for s, b in itertools.product(strides, sizes)]
        if context.size == 2
        else [],
        "partitions": [_partitions(context, tuple(extent), steps, repeats) for extent in extents],
    }
    return found if context.rank == 0 else None


# --- the cost of a message by stride --------------------------------------------------------------


def _message(context, stride, size, repeats):
    """Seconds of an exchange of so many bytes in each direction, a word of 8 bytes every `stride` words."""
    words, ends = size // 8, []
    # The face is normal to the last axis, on which a rank has a halo of one and stride - 1 points.
    shape, axis = ((1, 2, words), 1) if stride == 1 else ((1, words, 2 * (stride - 1)), 2)
    runs = contenders_of(context, ends, shape, axis, 1, 1)
    runs = {name: runs[name] for name in (OURS, PACKED, TYPES)}
    times = race(context, runs, max(3, 2 * repeats))
    for end in ends:
        end()
    return {"stride": stride, "bytes": words * 8, "times": times}


# --- the time of every partition ------------------------------------------------------------------


def factorisations(ranks):
    """All grids of the ranks with three axes."""
    return [grid for grid in itertools.product(range(1, ranks + 1), repeat=3) if math.prod(grid) == ranks]


def _partitions(context, extent, steps, repeats):
    """Seconds and predictions of each partition, overlapped and plain, and of what the planner takes."""
    plans = {"planned": {}}
    for grid in factorisations(context.size):
        for schedule in ("overlapping", "blocking"):
            plans[f"{'x'.join(map(str, grid))} {schedule}"] = {
                "grid": (1, *grid),
                "schedule": schedule,
                "generator": "stencil",
            }
    bounds = {}
    for name, choices in plans.items():
        u = tw.field(extent, "c16", init=lambda i, j, k: 1.0 * ((i + j + k) % 7), context=context)
        try:
            bounds[name] = (u, tw.bind(heat, u=u, steps=steps, context=context, plan=choices))
        except ConfigError:  # more ranks along an axis than it has points for
            u.close()
    times = {name: [] for name in bounds}
    for turn in range(repeats + 1):
        for name in random.Random(turn).sample(list(bounds), len(bounds)):
            seconds = timed(context, bounds[name][1].run)
            times[name] += [seconds] * bool(turn)
        if turn == 0 and context.rank == 0:
            print(".", end="", flush=True, file=sys.stderr)
    sums = [complex(tw.sum(u)) for u, _ in bounds.values()]
    if not np.allclose(sums, sums[0]):
        raise SystemExit("bench partitions: the partitions have other values")
    return {
        "extent": extent,
        "steps": steps,
        "ranks": context.size,
        "plan": bounds["planned"][1].plan._short(),
        "plans": [
            {
                "name": name,
                "seconds": times[name],
                "median_s": statistics.median(times[name]),
                "predicted_s": bound.plan.predicted.time_s,
            }
            for name, (_, bound) in bounds.items()
        ],
    }
