"""Ranks that are not equally fast: hosts in a box, of which the last one may use a part of its CPU.

``tilewave bench unequal [--cpus 1,0.5] [--order N] [--repeats N] [--json FILE] [--quick]``; needs root. A sweep, a
stencil, a product and a Cholesky factorization run on one rank a host, each rank on one lane. The limit is the sum of
what the ranks compute alone, all at once.
"""

import math
import random
import statistics

import tilewave as tw

from bench.cluster import cluster_tool, on_hosts
from bench.dense import error_percent, timed
from bench.nests_bodies import roots
from bench.results import on_ranks, parser_of, publish, row
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


def unequal(json_path=None, quick=False, args=()):
    """Points a second with even blocks and as planned, as a part of the sum of the ranks' rates."""
    parser = parser_of("unequal", __doc__)
    parser.add_argument("--cpus", default="1,0.5", help="CPUs that each host may use (default 1,0.5)")
    parser.add_argument("--rate", default="1gbit", help="of each host's link (default 1gbit)")
    parser.add_argument("--order", type=int, default=4096, help="of the matrices (default 4096)")
    parser.add_argument("--repeats", type=int, default=5, help="turns (default 5)")
    options = parser.parse_args(list(args))
    cpus = [float(each) for each in options.cpus.split(",")]
    arguments = {
        "nest": [40, 40, 400] if quick else [128, 128, 2048],
        "stencil": [40] * 3 if quick else [160] * 3,
        "product": 300 if quick else options.order,
        "cholesky": 300 if quick else options.order,
        "repeats": 1 if quick else options.repeats,
    }
    with cluster_tool("unequal").Cluster(len(cpus), options.rate, "twunequal", cpus) as cluster:
        found = on_ranks(__name__, len(cpus), arguments, runner=on_hosts(cluster))
    rows = []
    for case, (unit, scale) in {
        "nest": ("MPts/s", 1e-6),
        "stencil": ("MPts/s", 1e-6),
        "product": ("GFlop/s", 1e-9),
        "cholesky": ("GFlop/s", 1e-9),
    }.items():
        size = arguments[case] if isinstance(arguments[case], list) else [arguments[case]] * 2
        one, of = found[case], f"{case} {'x'.join(map(str, size))}, hosts with {options.cpus} CPUs"
        even, total = one["contenders"]["even blocks"], sum(one["rates"])
        rows += [row(of, f"rank {r} alone", [scale * rate], unit) for r, rate in enumerate(one["rates"])]
        for label, each in one["contenders"].items():
            name = label if each is even else f"{label}: {each['plan']}"
            rates = [scale * rate for rate in each["rates"]]
            median = statistics.median(rates)
            gain = median / statistics.median(even["rates"]) / scale
            part = median / total / scale
            rows.append(row(of, name, rates, unit, ratio_to_contender=gain, fraction_of_limit=part))
            if each["predicted_s"] is None:
                continue
            error = error_percent(each["predicted_s"], each["seconds"])
            rows.append(row(of, f"{label}: prediction error", [error], "%"))
    publish("unequal", rows, json_path)
