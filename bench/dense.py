"""What the benchmarks of dense matrices share: places, sizes, matrices, limits, and turns on the ranks."""

import math
import random
import statistics
import time

import numpy as np
import tilewave as tw
from tilewave import _core

from bench import scalapack
from bench.cluster import LINE_BYTES_S, at_place, place_option
from bench.results import on_ranks, ratio, row

#: ranks x threads here, or hosts@rate.
PLACES = ("2x1", "2@100mbit", "2@1gbit", "2@none", "4@100mbit", "4@1gbit", "4@none")
#: Of contenders: the best of these counts, as their users would tune them.
BLOCKS = (64, 128, 256)
#: Bytes of the messages by which a network without a named rate is measured.
PROBE_BYTES = 4 << 20
MBIT = {"100mbit": 0.1, "1gbit": 1.0}


def options_of(parser):
    """Options that all these benchmarks have."""
    place_option(parser, PLACES)
    parser.add_argument("--size", type=int, action="append", help="rows of the matrices (default: around the balance)")
    parser.add_argument("--least", type=int, default=768, help="least size that is chosen (default 768)")
    parser.add_argument("--most", type=int, default=4096, help="largest size that is chosen (default 4096)")
    parser.add_argument("--repeats", type=int, default=5, help="turns (default 5)")


def run_at(where, module, arguments, benchmark, after=None, before=None):
    """What rank 0 of the module's `worker` returns at a place.

    `after(start, found)` then runs other programs there: start(command, ranks) gives their exit code. So does
    `before(start, ranks, arguments)` first, which gives the arguments.
    """
    arguments = {**arguments, "rate": MBIT.get(where.partition("@")[2])}
    with scalapack.environment(), at_place(where, benchmark) as place:
        if before:
            arguments = before(place.start, place.ranks, arguments)
        found = on_ranks(module, place.ranks, arguments, runner=place.start)
        if after:
            after(place.start, found)
        return found


def sizes_around(balance, least, most):
    """Three sizes: half the balance, the balance and twice that, or as near as the bounds allow."""
    middle = min(max(balance, 2 * least), most / 2)
    return sorted({_even(s) for s in (middle / 2, middle, 2 * middle)})


def _even(size):
    return max(32, round(size / 32) * 32)


# --- values ---------------------------------------------------------------------------------------


def uniform(i, j):
    """Numbers between -0.5 and 0.5 that look random: a hash of the indices."""
    i, j = np.asarray(i, np.uint64), np.asarray(j, np.uint64)
    x = i * np.uint64(0x9E3779B97F4A7C15) + j * np.uint64(0xC2B2AE3D27D4EB4F) + np.uint64(1)
    for shift, factor in ((31, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return (x >> np.uint64(11)).astype("f8") * 2.0**-53 - 0.5


def other(i, j):
    """Others of the kind."""
    return uniform(np.asarray(i) + 77777, j)


def positive_definite(n):
    """A function of the indices: symmetric, with a diagonal that is larger than the rest of a row."""
    return lambda i, j: uniform(np.minimum(i, j), np.maximum(i, j)) + n * (i == j)


# --- on the ranks ---------------------------------------------------------------------------------


def measured_context():
    """A context of one thread a rank, with the machine as it is now: a stored one may be of other times."""
    context = tw.Context(threads=1)
    if context.size > 1:
        tw.measure(quick=True, context=context)
    return context


class Limits:
    """Rates of a place: of products on one rank while all compute, and of the network in one direction."""

    def __init__(self, context, rate, quick):
        from tilewave.linalg.blas import blas

        size = 256 if quick else 1024
        context._core.barrier()
        product = _core.linalg.product_rate(blas(), "float64", (size, size, size), (size, size))
        self.flops_s = 2.0 * size**3 / slowest_s(context, product.call_s + product.amount_s * 2.0 * size**3)
        self.bytes_s = LINE_BYTES_S * rate if rate else _exchange_rate(context)
        #: Rows of the product of two ranks that compute as long as they receive.
        self.balance = 4 * self.flops_s / self.bytes_s

    def shown(self):
        return {"flops_s": self.flops_s, "bytes_s": self.bytes_s, "balance": self.balance}


def _exchange_rate(context):
    """Bytes a second that each rank receives from the one before while it sends to the next."""
    from mpi4py import MPI

    world, out = MPI.COMM_WORLD, np.zeros(PROBE_BYTES, "u1")
    into, best = np.zeros_like(out), math.inf
    for _ in range(8):
        world.Barrier()
        begin = time.perf_counter()
        world.Sendrecv(out, (world.rank + 1) % world.size, 1, into, (world.rank - 1) % world.size, 1)
        best = min(best, world.allreduce(time.perf_counter() - begin, MPI.MAX))
    return PROBE_BYTES / best


class Turn:
    """A contender: something that is computed and timed.

    Parameters
    ----------
    run : function
        What is timed.
    grid : tuple of int
        Of ranks.
    ready, check : function, optional
        Called before each run, and after the first: what this returns is `after`.
    family : str, optional
        Of contenders of which the best counts.
    plan : function, optional
        Called after the runs: (plan in a line, seconds that were predicted).
    """

    def __init__(self, name, run, grid, ready=None, check=None, family=None, plan=None):
        self.name, self.run, self.grid, self.family, self.plan = name, run, grid, family or name, plan
        self.ready, self.check = ready or (lambda: None), check or (lambda: None)
        self.seconds, self.first, self.after = [], 0.0, None

    def record(self):
        plan, predicted_s = self.plan() if self.plan else ("", None)
        return {
            "name": self.name,
            "family": self.family,
            "grid": self.grid,
            "seconds": self.seconds,
            "plan": plan,
            "predicted_s": predicted_s,
        }


def race(context, turns, repeats):
    """Times all, in changing order; the first turn is checked and counts not. Of each family the best goes on."""
    for one in turns:
        one.ready()
        one.run()
        one.after = one.check()
        # Once more before a family's best is taken: the first run of a library sets it up.
        one.ready()
        one.first = timed(context, one.run)
    best = {one.family: min((o for o in turns if o.family == one.family), key=lambda o: o.first) for one in turns}
    left = list(best.values())
    for turn in range(repeats):
        for one in random.Random(turn).sample(left, len(left)):
            one.ready()
            one.seconds.append(timed(context, one.run))
    return left


def planned(plan):
    """A plan of matrices as `Turn` records it."""
    return str(plan).splitlines()[0], plan.predicted_s


def slowest_s(context, seconds):
    """Seconds of the slowest rank, the same on all."""
    return -context._core.allreduce_min([-int(seconds * 1e9)])[0] / 1e9


def timed(context, run, count=1):
    """Seconds of one of so many runs in a row on the slowest rank, the same on all."""
    context._core.barrier()
    begin = time.perf_counter()
    for _ in range(count):
        run()
    return slowest_s(context, time.perf_counter() - begin) / count


def grids(ranks):
    """Every grid of the ranks that has a row, a column or is nearest to a square."""
    square = max(d for d in range(1, math.isqrt(ranks) + 1) if ranks % d == 0)
    return list(dict.fromkeys([(1, ranks), (ranks, 1), (square, ranks // square)]))


def cyclic(context, n, block, grid, init):
    return tw.linalg.matrix((n, n), init=init, layout="cyclic", block=block, grid=grid, context=context)


def refuse(context, what, right):
    """Ends the benchmark on every rank where a result is wrong on one."""
    if not context._core.allreduce_min([int(bool(right))])[0]:
        raise SystemExit(f"{what}: wrong values")


# --- rows -----------------------------------------------------------------------------------------


def case_of(where, found, n):
    return f"{where}, n = {n}, {n / found['limits']['balance']:.2g} n*"


def limit_s(found, n, grid, flops, part=1.0):
    """Seconds that computing so many flops takes at least, and receiving of each matrix this part of what other ranks
    of a row or column of the grid have.
    """
    limits, (rows, columns) = found["limits"], grid
    received = 8.0 * n**2 * part * (columns - 1 + rows - 1) / (rows * columns)
    return flops / found["ranks"] / limits["flops_s"], received / limits["bytes_s"]


def size_rows(case, size, flops, limit, libraries, compared):
    """Rows of all contenders at one size, ours with the ratio to the best of the others.

    Parameters
    ----------
    flops : float
        Of one run.
    limit : function
        Of a grid: seconds that computing and receiving take at least.
    libraries : sequence of str
        Families of the others.
    compared : str
        Which of ours is compared with each of them.
    """
    theirs = {c["family"]: c["seconds"] for c in size["contenders"] if c["family"] in libraries}
    best = min(theirs.values(), key=statistics.median, default=None)
    rows = []
    for contender in size["contenders"]:
        name, seconds = contender["name"], contender["seconds"]
        rates = [1e-9 * flops / s for s in seconds]
        limits = limit(contender["grid"])
        fraction = max(limits) / statistics.median(seconds)
        against = ratio(best, seconds) if name.startswith("tilewave") and best else None
        rows.append(row(case, name, rates, "GFlop/s", ratio_to_contender=against, fraction_of_limit=fraction))
        if hidden := overlap(seconds, *limits):
            rows.append(row(case, f"{name}: overlap", hidden, "of hideable"))
        if contender.get("predicted_s"):
            error = error_percent(contender["predicted_s"], seconds)
            rows.append(row(case, f"{name}: prediction error", [error], "%"))
        for family, other in theirs.items() if name == compared else ():
            against = {"ratio_to_contender": ratio(other, seconds)}
            rows.append(row(case, f"{name}, against {family}", rates, "GFlop/s", **against))
    return rows


def overlap(seconds, compute_s, wire_s):
    """What is hidden of what could be: of the shorter of computing and receiving."""
    hideable = min(compute_s, wire_s)
    return [min(1.0, max(0.0, (compute_s + wire_s - s) / hideable)) for s in seconds] if hideable > 0 else None


def error_percent(predicted, seconds):
    measured = statistics.median(seconds)
    return 100 * abs(predicted - measured) / measured
