"""The experiment of prieto1999: how long every partition of a box takes; `bench papers` has its strided faces.

``tilewave bench partitions [--where NAME,...] [--extent N] [--json FILE] [--quick]``; NAME: 2x1 (ranks x
threads here), or HOSTS@RATE as in 4@1gbit (hosts in a box; needs root). An explicit 7-point scheme on double-precision
complex cells, in C order, runs on every factorisation of the ranks, with the border first and the messages behind the
inner part (overlapped), or computed whole and then sent (plain); so does the plan that is taken when nothing is asked
for. The ratio of a partition is to the best one, and of "plain / overlapped" what overlapping gains.
"""

import itertools
import math
import random
import statistics
import sys

import numpy as np
import tilewave as tw
from tilewave.errors import ConfigError

from bench.cluster import at_place, place_option, places
from bench.dense import error_percent, timed
from bench.halo import OURS, PACKED, TYPES, contenders_of, race
from bench.results import on_ranks, parser_of, publish, row
from bench.stencils_bodies import heat

PLACES = ("2x1", "2@1gbit", "2@none", "4@1gbit", "4@none", "8@1gbit")


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


def partitions(json_path=None, quick=False, args=()):
    """The time of every partition, and overlapped against plain."""
    parser = parser_of("partitions", __doc__)
    place_option(parser, PLACES, ("2x1", "2@1gbit", "4@1gbit"))
    parser.add_argument("--extent", type=int, action="append", help="cells along each axis (default 64 and 128)")
    parser.add_argument("--steps", type=int, default=10, help="time steps (default 10)")
    parser.add_argument("--repeats", type=int, default=5, help="turns (default 5)")
    options = parser.parse_args(list(args))
    arguments = {
        "strides": [],
        "sizes": [],
        "extents": [[n] * 3 for n in options.extent or ([12] if quick else [64, 128])],
        "steps": 2 if quick else options.steps,
        "repeats": 1 if quick else options.repeats,
    }
    found = {}
    for where in places(options.where, PLACES, "partitions"):
        with at_place(where, "partitions") as place:
            found[where] = on_ranks(__name__, place.ranks, arguments, runner=place.start)
    rows = [r for where, data in found.items() for one in data["partitions"] for r in partition_rows(where, one)]
    publish("partitions", rows, json_path)


def partition_rows(where, one):
    """Seconds of every partition, what overlapping gains in each, and the plan against the best."""
    n = one["extent"]
    case = f"{where}, {'x'.join(map(str, n))} c16, {one['steps']} steps"
    plans = {each["name"]: each for each in one["plans"]}
    fixed = {name: each for name, each in plans.items() if name != "planned"}
    best = min(each["median_s"] for each in fixed.values()) if fixed else None
    rows = []
    for name, each in plans.items():
        label = f"planned: {one['plan']}" if name == "planned" else name
        against = best / each["median_s"] if best else None
        rows.append(row(case, label, [1e3 * s for s in each["seconds"]], "ms", ratio_to_contender=against))
        rows.append(row(case, f"{name}: prediction error", [error_percent(each["predicted_s"], each["seconds"])], "%"))
    for name, each in fixed.items():
        grid, _, schedule = name.partition(" ")
        if schedule == "overlapping" and (plain := fixed.get(f"{grid} blocking")):
            gains = [p / o for p, o in zip(plain["seconds"], each["seconds"], strict=True)]
            rows.append(row(case, f"{grid}: plain / overlapped", gains, "x"))
    if best:
        regret = plans["planned"]["median_s"] / best
        rows.append(row(case, "the plan against the best partition (target 1.05)", [regret], "x"))
    return rows
