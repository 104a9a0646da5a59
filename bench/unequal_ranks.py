"""What the ranks of `bench unequal` do: each alone, then together with even blocks, and as planned."""

import math
import random
import statistics

import tilewave as tw

from bench.dense import timed
from bench.nests_bodies import roots
from bench.stencils_bodies import heat


def worker(nest, stencil, product, cholesky, repeats):
    """Findings of all cases, on rank 0."""
    context = tw.Context(threads=1)
    found = {
        "nest": _raced(context, *_of_nest(context, roots, "A", tuple(nest), {}), repeats),
        "stencil": _raced(context, *_of_nest(context, heat, "u", tuple(stencil), {"steps": 40}), repeats),
        "product": _raced(context, *_of_matrices(context, _product, 2 * product**3, product), repeats),
        "cholesky": _raced(context, *_of_matrices(context, tw.linalg.cholesky, cholesky**3 / 3, cholesky), repeats),
    }
    return found if context.rank == 0 else None


def start(i, j, k):
    return 1.0 + 0.01 * ((i + 2 * j + 3 * k) % 17)


def _of_nest(context, body, name, shape, more):
    """Points; the seconds of each rank alone; by name, what all run together, and what says how that was planned."""
    alone = tw.field(shape, init=start, context=context.solo())
    by_rank = tw.bind(body, **{name: alone}, **more, plan={"temporal_block": 1})
    bounds = {}
    grid = {"grid": (1, context.size, 1, 1) if more else (1, 1, context.size)}  # on all ranks
    for label, plan in {"even blocks": {"weights": (), **grid}, "as planned": {}}.items():
        field = tw.field(shape, init=start, context=context)
        bound = tw.bind(body, **{name: field}, **more, plan=plan)
        bounds[label] = bound.run, lambda done, bound=bound: (bound.plan.predicted.time_s, bound.plan._short())
    return math.prod(shape) * more.get("steps", 1), lambda: by_rank.run().measured.time_s, bounds


def _product(a, weights=None):
    return tw.linalg.matmul(a, a, weights=weights)


def _of_matrices(context, call, flops, n):
    """The same of n x n matrices: by rows or columns in turns, as they lie or as planned; and made in proportion."""
    layout = {"layout": "rows"} if call is _product else {"layout": "columns", "block": 128}

    def made(context, weights=None):
        return tw.linalg.matrix(
            (n, n), init=lambda i, j: n * (i == j) + 0.5, weights=weights, context=context, **layout
        )

    def planned(done):
        plan = done.report.plan
        return plan.predicted_s and plan.predicted_s + getattr(plan, "moving_s", 0), str(plan)

    alone, even = made(context.solo()), made(context)
    dealt = made(context, context._core.machine().weights(context.size, 1))
    runs = {
        "even blocks": (lambda: call(even, weights=()), planned),
        "as planned": (lambda: call(even), planned),
        "made in proportion": (lambda: call(dealt), planned),
    }
    return flops, lambda: call(alone).report.time_s, runs


def _raced(context, amount, alone, bounds, repeats):
    """Points or flops a second of each rank alone, all at once; and of all together, with what was predicted."""
    alone()
    rates, seconds = [], {label: [] for label in bounds}
    done = {label: run() for label, (run, _) in bounds.items()}
    for turn in range(repeats + 1):
        context._core.allreduce_min([0])
        mine = -round(amount / alone())
        every = [-context._core.allreduce_min([mine if r == context.rank else 0])[0] for r in range(context.size)]
        rates += [every] * bool(turn)
        for label in random.Random(turn).sample(list(bounds), len(bounds)):
            seconds[label] += [timed(context, bounds[label][0])] * bool(turn)
    planned = {label: of(done[label]) for label, (_, of) in bounds.items()}
    return {
        "rates": [statistics.median(each) for each in zip(*rates, strict=True)],
        "contenders": {
            label: {
                "rates": [amount / s for s in seconds[label]],
                "seconds": seconds[label],
                "predicted_s": predicted_s,
                "plan": plan,
            }
            for label, (predicted_s, plan) in planned.items()
        },
    }
