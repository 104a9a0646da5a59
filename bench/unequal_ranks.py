"""What the ranks of `bench unequal` do: each alone, then together with even blocks, and as planned."""

import math
import random
import statistics

import numpy as np
import tilewave as tw

from bench.dense import timed
from bench.stencils_bodies import heat


@tw.nest
def relax(A, i, j, k):
    A[i, j, k] = np.sqrt(A[i - 1, j, k]) + np.sqrt(A[i, j - 1, k]) + np.sqrt(A[i, j, k - 1])


def worker(nest, stencil, repeats):
    """Findings of both cases, on rank 0."""
    context = tw.Context(threads=1)
    found = {
        "nest": _raced(context, relax, "A", tuple(nest), {}, repeats),
        "stencil": _raced(context, heat, "u", tuple(stencil), {"steps": 40}, repeats),
        "weights": list(context._core.machine().weights(context.size, 1)),
    }
    return found if context.rank == 0 else None


def start(i, j, k):
    return 1.0 + 0.01 * ((i + 2 * j + 3 * k) % 17)


def _raced(context, body, name, shape, more, repeats):
    """Points a second of each rank alone, all at once; and of all together, with what was predicted."""
    alone = tw.field(shape, init=start, context=context.solo())
    by_rank = tw.bind(body, **{name: alone}, **more, plan={"temporal_block": 1})
    by_rank.run()
    bounds, points = {}, math.prod(shape) * more.get("steps", 1)
    grid = {"grid": (1, context.size, 1, 1) if more else (1, 1, context.size)}  # on all ranks
    for label, plan in {"even blocks": {"weights": (), **grid}, "as planned": {}}.items():
        field = tw.field(shape, init=start, context=context)
        bounds[label] = tw.bind(body, **{name: field}, **more, plan=plan)
    rates, seconds = [], {label: [] for label in bounds}
    for turn in range(repeats + 1):
        context._core.allreduce_min([0])
        report = by_rank.run()
        mine = -round(points / report.measured.time_s)
        every = [-context._core.allreduce_min([mine if r == context.rank else 0])[0] for r in range(context.size)]
        rates += [every] * bool(turn)
        for label in random.Random(turn).sample(list(bounds), len(bounds)):
            seconds[label] += [timed(context, bounds[label].run)] * bool(turn)
    return {
        "rates": [statistics.median(each) for each in zip(*rates, strict=True)],
        "contenders": {
            label: {
                "rates": [points / s for s in seconds[label]],
                "seconds": seconds[label],
                "predicted_s": bound.plan.predicted.time_s,
                "plan": bound.plan._short(),
            }
            for label, bound in bounds.items()
        },
    }
