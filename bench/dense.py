"""What the benchmarks of dense matrices share: options, sizes, matrices, limits, and rows."""

import math
import time

import numpy as np
import tilewave as tw
from tilewave import _core
from tilewave.linalg.blas import blas

from bench import scalapack
from bench.runner import LINE_BYTES_S, compared, error_percent, error_row, ratio, row, slowest_s

#: ranks x threads here, or hosts@rate.
PLACES = ("2x1", "2@100mbit", "2@1gbit", "2@none", "4@100mbit", "4@1gbit", "4@none")
#: Of contenders: the best of these counts, as their users would tune them.
BLOCKS = (64, 128, 256)
#: Bytes of the messages by which a network without a named rate is measured.
PROBE_BYTES = 4 << 20
RATES = {"100mbit": 0.1, "1gbit": 1.0}
OPTIONS = {
    "--size": {"type": int, "action": "append", "help": "rows of the matrices (default: around the balance)"},
    "--least": {"type": int, "default": 768, "help": "least size that is chosen (default 768)"},
    "--most": {"type": int, "default": 4096, "help": "largest size that is chosen (default 4096)"},
}


def arguments(options, place):
    """What the workers of all get."""
    given = {"sizes": options.size or ([96] if options.quick else []), "around": (options.least, options.most)}
    return {
        **given,
        "repeats": options.repeats,
        "rate": RATES.get(place.name.partition("@")[2]),
        "quick": options.quick,
    }


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


def cyclic(context, n, block, grid, init):
    return tw.linalg.matrix((n, n), init=init, layout="cyclic", block=block, grid=grid, context=context)


# --- on the ranks ---------------------------------------------------------------------------------


class Setting:
    """The ranks of a worker: a context of one thread each, rates, libraries.

    The machine is measured as it is now: a stored one may be of other times. Rates are of products on one rank while
    all compute, and of the network in one direction; at `balance` rows two ranks compute as long as they receive.
    """

    def __init__(self, rate, quick):
        self.context = context = tw.Context(threads=1)
        if context.size > 1:
            tw.measure(quick=True, context=context)
        size = 256 if quick else 1024
        context._core.barrier()
        product = _core.linalg.product_rate(blas(), "float64", (size, size, size), (size, size))
        flops_s = 2.0 * size**3 / slowest_s(context, product.call_s + product.amount_s * 2.0 * size**3)
        bytes_s = LINE_BYTES_S * rate if rate else _exchange_rate(context)
        self.limits = {"flops_s": flops_s, "bytes_s": bytes_s, "balance": 4 * flops_s / bytes_s}
        self.libraries = scalapack.load(quiet=context.rank > 0)

    def sizes(self, around):
        """Three sizes: half the balance, the balance and twice that, or as near as the bounds allow."""
        least, most = around
        balance = self.context._core.allreduce_min([int(self.limits["balance"])])[0]
        middle = min(max(balance, 2 * least), most / 2)
        return sorted({max(32, round(s / 32) * 32) for s in (middle / 2, middle, 2 * middle)})

    def found(self, sizes):
        """What a worker returns, of {n: records of turns}."""
        listed = [{"n": n, "contenders": contenders} for n, contenders in sizes.items()]
        return {"limits": self.limits, "ranks": self.context.size, "sizes": listed} if self.context.rank == 0 else None


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


def planned(plan):
    """A plan of matrices as `Turn` records it."""
    return str(plan).splitlines()[0], plan.predicted_s


def grids(ranks):
    """Every grid of the ranks that has a row, a column or is nearest to a square."""
    square = max(d for d in range(1, math.isqrt(ranks) + 1) if ranks % d == 0)
    return list(dict.fromkeys([(1, ranks), (ranks, 1), (square, ranks // square)]))


def refuse(context, what, right):
    """Ends the benchmark on every rank where a result is wrong on one."""
    if not context._core.allreduce_min([int(bool(right))])[0]:
        raise SystemExit(f"{what}: wrong values")


# --- rows -----------------------------------------------------------------------------------------


def case_of(place, found, n):
    return f"{place.name}, n = {n}, {n / found['limits']['balance']:.2g} n*"


def rows_of(case, found, size, flops, chosen, part=1.0):
    """Rows of all contenders at one size, ours with the ratio to the best of the others.

    Parameters
    ----------
    flops : float
        Of one run.
    chosen : str
        Which of ours is compared with each of the others.
    part : float
        Of each matrix the part that a rank receives of what other ranks of its row or column of the grid have.
    """
    by_name = {each["name"]: each for each in size["contenders"]}
    times = {name: each["seconds"] for name, each in by_name.items()}
    theirs = {each["family"]: times[name] for name, each in by_name.items() if not name.startswith("tilewave")}
    least = {}
    for name, each in by_name.items():
        p, q = each["grid"]
        received = 8.0 * size["n"] ** 2 * part * (p + q - 2) / (p * q)
        least[name] = flops / found["ranks"] / found["limits"]["flops_s"], received / found["limits"]["bytes_s"]
    limits = {name: [max(both)] * len(times[name]) for name, both in least.items()}
    rows = []
    for one in compared(case, times, "GFlop/s", flops, limits=limits):
        name, seconds = one.contender, times[one.contender]
        (compute_s, wire_s), hideable = least[name], min(least[name])
        rows.append(one)
        if hideable > 0:  # what is hidden of the shorter of computing and receiving
            hidden = [min(1.0, max(0.0, (compute_s + wire_s - s) / hideable)) for s in seconds]
            rows.append(row(case, f"{name}: overlap", hidden, "of hideable"))
        rows += error_row(case, name, by_name[name].get("predicted_s"), seconds)
        for family, other_s in theirs.items() if name == chosen else ():
            label = f"{name}, against {family}"
            rows.append(row(case, label, [1e-9 * flops / s for s in seconds], "GFlop/s"))
            rows[-1].ratio_to_contender = ratio(other_s, seconds)
    return rows


def summary(sizes):
    """The median of the predictions' errors."""
    every = [each for size in sizes for each in size["contenders"] if each.get("predicted_s")]
    errors = [error_percent(each["predicted_s"], each["seconds"]) for each in every]
    label = "prediction error, median (target 8)"
    return [row(f"{len(errors)} runs", label, [float(np.median(errors))], "%")] if errors else []
