"""`bench nests --case chain`: chains against their nests run one after another, by tw.run and bound; on one and two
ranks.
"""

import time

import numpy as np
import tilewave as tw

from bench.dense import ratio
from bench.nests_bodies import relax, spread_out
from bench.nests_race import must_equal
from bench.results import on_ranks, row

RANKS = "bench.nests_ranks"
#: By case: the points along each side, repetitions a turn and what the chain is compared with.
CASES = {"two sweeps, opposite directions": ("sweeps", 2048, 5), "eight nests": ("eight", 32, 200)}


def chains(quick):
    """Seconds a repetition of the chain, of bound runs and of tw.run."""
    rows = []
    for ranks in (1, 2):
        for name, (what, n, each) in CASES.items():
            n, each = (min(n, 256), 3) if quick else (n, each)
            arguments = {"what": "chain", "kind": what, "n": n, "each": each, "repeats": 2 if quick else 9}
            found = on_ranks(RANKS, ranks, arguments)
            case = f"{name} {n}x{n} f8, {ranks} rank{'s' * (ranks > 1)}"
            for contender, seconds in found["times"].items():
                ours = None if contender.startswith("chain") else ratio(seconds, found["times"]["chain"])
                rows.append(row(case, contender, [t * 1e6 for t in seconds], "us/repetition", ratio_to_contender=ours))
            rows[-len(found["times"])].contender = f"chain, {found['how']}"
    return rows


def _nests(kind, n, context):
    """(nest, arrays, loops) of each."""
    rim = lambda i, j: 1e-3 * ((i * n + j) % 1013)
    A, B = (tw.field((n, n), "f8", init=rim, context=context) for _ in range(2))
    forth, back = (relax, {"A": A}, {}), (relax, {"A": A}, {"reverse": ("i", "j")})
    if kind == "sweeps":
        return [A], [forth, back]
    other = spread_out, {"B": B, "A": A}, {}
    return [A, B], [forth, other, back, other] * 2


def race_chain(kind, n, each, repeats):
    """All of them in turn on this launch's ranks, each with other fields; rank 0's times a repetition."""
    world = tw.Context(threads=1)
    fields, runs = {}, {}
    for name in ("chain", "bound nests", "tw.run"):
        fields[name], nests = _nests(kind, n, world)
        if name == "tw.run":
            runs[name] = lambda nests=nests: [tw.run(nest, **arrays, **loops) for nest, arrays, loops in nests]
            continue
        bounds = [tw.bind(nest, **arrays, **loops) for nest, arrays, loops in nests]
        runs[name] = lambda bounds=bounds: [bound.run() for bound in bounds]
        if name == "chain":
            chain = tw.chain(bounds)
            runs[name] = chain.run
    times = {name: [] for name in runs}
    for turn in range(repeats + 1):
        for name, run in runs.items():
            world._core.barrier()
            begin = time.perf_counter()
            if name == "chain":
                chain.run(times=each)
            else:
                for _ in range(each):
                    run()
            world._core.barrier()
            times[name] += [(time.perf_counter() - begin) / each] * bool(turn)
    wholes = {name: [f.gather() for f in gathered] for name, gathered in sorted(fields.items())}
    if world.rank:
        return None
    must_equal(f"chain of {kind}", {name: np.concatenate(gathered) for name, gathered in wholes.items()})
    return {"times": times, "how": "one after another" if chain.separate else "one schedule"}
