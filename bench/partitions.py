"""The experiment of prieto1999: how long every partition of a box takes; `bench papers` has its strided faces.

``tilewave bench partitions [--where NAME,...] [--extent N] [--json FILE] [--quick]``; NAME: 2x1 (ranks x
threads here), or HOSTS@RATE as in 4@1gbit (hosts in a box; needs root). An explicit 7-point scheme on double-precision
complex cells, in C order, runs on every factorisation of the ranks, with the border first and the messages behind the
inner part (overlapped), or computed whole and then sent (plain); so does the plan that is taken when nothing is asked
for. The ratio of a partition is to the best one, and of "plain / overlapped" what overlapping gains.
"""

import itertools
import math
import statistics

import numpy as np
import tilewave as tw
from tilewave.errors import ConfigError

from bench.halo import BATCH_S, OURS, PACKED, TYPES, contenders_of
from bench.runner import Turn, benchmark, compared, error_row, places, race, ratio, row
from bench.stencils_bodies import heat


def worker(strides, sizes, extents, steps, repeats):
    """Findings of both experiments, on rank 0."""
    context = tw.Context(threads=1)
    messages = [_message(context, *each, repeats) for each in itertools.product(strides, sizes) if context.size == 2]
    found = {"messages": messages, "partitions": [_partitions(context, n, steps, repeats) for n in extents]}
    return found if context.rank == 0 else None


def _message(context, stride, size, repeats):
    """Seconds of an exchange of so many bytes in each direction, a word of 8 bytes every `stride` words."""
    words, ends = size // 8, []
    # The face is normal to the last axis, on which a rank has a halo of one and stride - 1 points.
    shape, axis = ((1, 2, words), 1) if stride == 1 else ((1, words, 2 * (stride - 1)), 2)
    turns = [one for one in contenders_of(context, ends, shape, axis, 1, 1) if one.name in (OURS, PACKED, TYPES)]
    left = race(context, turns, max(3, 2 * repeats), batch_s=BATCH_S)
    for end in ends:
        end()
    return {"stride": stride, "bytes": words * 8, "times": {one.name: one.seconds for one in left}}


def factorisations(ranks):
    """All grids of the ranks with three axes."""
    return [grid for grid in itertools.product(range(1, ranks + 1), repeat=3) if math.prod(grid) == ranks]


def _partitions(context, n, steps, repeats):
    """Seconds and predictions of each partition, overlapped and plain, and of what the planner takes."""
    plans = {"planned": {}}
    for grid, schedule in itertools.product(factorisations(context.size), ("overlapping", "blocking")):
        choices = {"grid": (1, *grid), "schedule": schedule, "generator": "stencil"}
        plans[f"{'x'.join(map(str, grid))} {schedule}"] = choices
    turns, fields = [], []
    for name, choices in plans.items():
        u = tw.field((n, n, n), "c16", init=lambda i, j, k: 1.0 * ((i + j + k) % 7), context=context)
        try:
            bound = tw.bind(heat, u=u, steps=steps, context=context, plan=choices)
        except ConfigError:  # more ranks along an axis than it has points for
            u.close()
            continue
        plan = lambda bound=bound: (bound.plan._short(), bound.plan.predicted.time_s)
        turns.append(Turn(name, bound.run, plan=plan))
        fields.append(u)
    race(context, turns, repeats)
    sums = [complex(tw.sum(u)) for u in fields]
    if not np.allclose(sums, sums[0]):
        raise SystemExit("bench partitions: the partitions have other values")
    return {"case": f"{n}x{n}x{n} c16, {steps} steps", "plans": [one.record() for one in turns]}


@benchmark(
    "partitions",
    __doc__,
    places=("2x1", "2@1gbit", "2@none", "4@1gbit", "4@none", "8@1gbit"),
    usual=("2x1", "2@1gbit", "4@1gbit"),
    options={
        "--extent": {"type": int, "action": "append", "help": "cells along each axis (default 64 and 128)"},
        "--steps": {"type": int, "default": 10, "help": "time steps (default 10)"},
    },
)
def partitions(options):
    extents = options.extent or ([12] if options.quick else [64, 128])
    given = {"extents": extents, "steps": 2 if options.quick else options.steps, "repeats": options.repeats}
    for place in places(options):
        for one in place.call(__name__, strides=[], sizes=[], **given)["partitions"]:
            yield from _rows(f"{place.name}, {one['case']}", {each["name"]: each for each in one["plans"]})


def _rows(case, plans):
    """Seconds of every partition, what overlapping gains in each, and the plan against the best."""
    times = {name: each["seconds"] for name, each in plans.items()}
    fixed = [name for name in times if name != "planned"]
    rows = []
    for one in compared(case, times, "ms", theirs=fixed):
        name = one.contender
        rows += [one, *error_row(case, name, plans[name]["predicted_s"], times[name])]
        if name == "planned":
            one.contender = f"planned: {plans[name]['plan']}"
    for grid in [name.partition(" ")[0] for name in fixed if name.endswith(" overlapping")]:
        gain = [ratio(times[f"{grid} blocking"], times[f"{grid} overlapping"])]
        rows.append(row(case, f"{grid}: plain / overlapped", gain, "x"))
    if fixed:
        regret = statistics.median(times["planned"]) / min(statistics.median(times[name]) for name in fixed)
        rows.append(row(case, "the plan against the best partition (target 1.05)", [regret], "x"))
    return rows
