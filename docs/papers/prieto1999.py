"""prieto1999: what strided messages cost, which partition of a box is the fastest, and whether overlap pays."""

import tilewave as tw
from tilewave import _core

from bench.halo import OURS
from bench.partitions import factorisations
from bench.runner import here
from docs.papers.page import figure, table

TITLE = "Partitions of regular domains: the stride of message data against the number of bytes."
SETTING = (
    "Its machine: `t3e-torus`, a Cray T3E-900 with E-registers ('synchronous'). The program is an explicit 7-point "
    "scheme on double-precision complex cells in C order. Here: two ranks of one host."
)
WHY = (
    "Messages of strides 1 and 2 to 8 are no predictions: the rates of copies in the machine's file are made from "
    "them. Odd strides meet other memory banks; the file has one rate for all parts of 8 bytes, that of even strides.",
    "The paper's solver is multigrid-like; predicted is one step on the finest grid. Coarser grids send smaller "
    "messages, in which the latency counts more than the stride: this brings z- and x-partition nearer to each other.",
    "A cell is taken to need 20 ns, which is assumed: the paper gives no time. Where it takes longer, all ratios come "
    "nearer to 1. How many processors its factor of 1.6 is of is not at hand.",
    "The best partitions have no xy faces, as the paper finds; 3-D and linear ones lose as much as it measured within "
    "a few percent.",
    "Overlap is predicted to gain, and lost 5 to 7 % on the T3E: it takes border cells through the cache twice, which "
    "a rate of a cell does not show. On a machine that is there, `tilewave.plan` measures both.",
    "Here a message costs a copy in shared memory, and the two ranks share the memory's bandwidth.",
)
LEFT_OUT = (
    "T3E, buffered mode (x-partition twice as fast as z-partition): its extra copies have no rates of their own.",
    "SGI Origin 2000 and IBM SP2: the paper gives bandwidths or gains only, too little for a machine's file.",
    "Contention by hops: the facts at hand have no figures for it.",
)
#: MB/s by stride in words of 8 bytes, synchronous mode: 3 stands for odd strides.
STRIDES = {1: 300, 3: 122, 2: 72, 4: 71, 8: 68}
WORDS = 32 << 10  # of a message: 256 KB
#: At 256 cubed: z-partition over x-partition; the best of a kind over the best, by processors; what overlap gains.
X_BEFORE_Z = 1.6
BEST = {(16, "3-D"): 1.07, (32, "3-D"): 1.05, (32, "linear"): 1.15}
OVERLAP = {16: 1 / 1.05, 32: 1 / 1.073}
STAR = [(0, 0, 0, 0)] + [tuple(r * (k == d) for k in range(4)) for d in (1, 2, 3) for r in (-1, 1)]
STEPS = 6
HERE = (128, 128, 128)


def regenerate(here):
    """(tables, figures), with what was measured here."""
    messages = {one["stride"]: one for one in here.get("messages", [])}
    rates = [
        [f"stride {s}" if s != 3 else "odd strides", theirs, rate(s), _rate_of(messages.get(s))]
        for s, theirs in STRIDES.items()
    ]
    times = {(n, p): {g: step_s(n, g) for g in factorisations(p)} for n in (128, 256) for p in (16, 32)}
    found = {name: t["overlapping"] for name, t in here.get("grids", {}).items()}
    ratios = []
    for (n, p), of in times.items():
        best = {d: min((t, g) for g, t in of.items() if _dims(g) == d) for d in (1, 2, 3)}
        z, x = of[1, 1, p], of[p, 1, 1]
        theirs = X_BEFORE_Z if n == 256 else None
        ratios.append([f"{n}³, {p}: z-partition / x-partition", theirs, z / x, None])
        for d, name in ((3, "3-D"), (1, "linear")):
            grids = " / ".join("x".join(map(str, best[k][1])) for k in (d, 2))
            theirs = BEST.get((p, name)) if n == 256 else None
            ratios.append([f"{n}³, {p}: best {name} / best 2-D, {grids}", theirs, best[d][0] / best[2][0], None])
    if found:
        across = found["1x1x2"] / found["2x1x1"]
        ratios.append([f"{HERE[0]}³, 2 ranks: z-partition / x-partition", None, None, across])
    gains = []
    for p, theirs in OVERLAP.items():
        grid = min(times[256, p], key=times[256, p].get)
        plain = step_s(256, grid, "blocking") / times[256, p][grid]
        gains.append([f"256³, {p} processors, grid {'x'.join(map(str, grid))}", theirs, plain, None])
    for name, t in here.get("grids", {}).items():
        gains.append([f"{HERE[0]}³, 2 ranks, grid {name}", None, None, t["blocking"] / t["overlapping"]])
    tables = [
        table("Messages by stride", "MB/s", rates, f"Strides count words of 8 bytes; {WORDS >> 7} KB a message."),
        table(
            "Partitions",
            "",
            ratios,
            "Ratios of times by cells and processors; theirs of the synchronous mode, at 256³.",
        ),
        table("Overlap", "", gains, "Time of exchange-then-update over that of overlapped messages."),
    ]
    figures = [_partitions(times[256, 32]), _messages(rates)]
    return tables, figures


def _partitions(times):
    """Time of all partitions of 256 cubed over 32 processors; theirs from the best 2-D one, which is as predicted."""
    grids = sorted(times, key=times.get)
    two = min((g for g in grids if _dims(g) == 2), key=times.get)
    of = {d: min((g for g in grids if _dims(g) == d), key=times.get) for d in (1, 3)}
    names = ["x".join(map(str, g)) for g in grids]
    theirs = {two: 1.0, of[3]: BEST[32, "3-D"], of[1]: BEST[32, "linear"]}
    at = [g for g in grids if g in theirs]
    return figure(
        "partitions",
        "256³ cells on 32 processors by partition",
        "processors along x, y, z",
        "time of a step, ms",
        [
            ("time", "predicted", names, [1e3 * times[g] for g in grids]),
            (
                "best of a kind",
                "theirs",
                ["x".join(map(str, g)) for g in at],
                [1e3 * times[two] * theirs[g] for g in at],
            ),
        ],
    )


def _messages(rates):
    cases = [case for case, *_ in rates]
    kinds = enumerate(("theirs", "predicted", "here"), 1)
    lines = [("256 KB", kind, cases, [one[at] for one in rates]) for at, kind in kinds if rates[0][at]]
    return figure("strides", "messages by stride", "stride, words of 8 bytes", "MB/s", lines, "y")


# --- on their machine -----------------------------------------------------------------------------


def rate(stride):
    """MB/s of a message of WORDS words with a stride: packed, sent, unpacked."""
    schedule = tw.Schedule.build(_message, 2, stride)
    return 8e-6 * WORDS / tw.predict(schedule, tw.Machine.load("t3e-torus")).time_s


def _message(b, stride):
    words = b.array("A", (WORDS, stride), separate=True)
    b.pattern("broadcast", words[:, 0:1], number=2, chunk_bytes=8 * WORDS, buffers=2)


def step_s(n, grid, schedule="overlapping"):
    """Seconds of a time step of n cubed cells, simulated with all processors on the torus."""
    shape, low, high = (STEPS, n, n, n), (0, 1, 1, 1), (STEPS, n - 1, n - 1, n - 1)
    accesses = [(0, (1, 0, 0, 0), True, False)] + [(0, offset, False, False) for offset in STAR]
    arrays = [(16, False, (n, n, n), (1, 2, 3), 2, False)]
    problem = _core.SweepProblem(shape, (low, high), arrays, accesses, [], [False] * 4, False)
    plan = _core.Plan()
    plan.generator, plan.grid, plan.factors, plan.schedule = "stencil", (1, *grid), (1, 1, 1, 1), schedule
    # A block is one tile: the border of the box is not computed.
    plan.tile = (1, *(n - 2 if g == 1 else n // 2 - 1 if g == 2 else -(-n // g) for g in grid))
    machine = tw.Machine.load("t3e-torus")
    rate_of_cell = _core.KernelRate(machine.point_s, 0, 0)
    return _core.evaluate(problem, plan, machine._to_core(), rate_of_cell, all_ranks=True).time_s / STEPS


def _dims(grid):
    return sum(g > 1 for g in grid)


# --- here -----------------------------------------------------------------------------------------


def measure():
    """Exchanges by stride, and every partition of a box, on two ranks."""
    given = {"strides": list(STRIDES), "sizes": [8 * WORDS], "extents": [HERE[0]], "steps": 10, "repeats": 5}
    found = here(2).call("bench.partitions", **given)
    plans = {one["name"]: min(one["seconds"]) for one in found["partitions"][0]["plans"]}
    names = [name.removesuffix(" blocking") for name in plans if name.endswith(" blocking")]
    grids = {name: {way: plans[f"{name} {way}"] for way in ("overlapping", "blocking")} for name in names}
    return {"messages": found["messages"], "grids": grids}


def _rate_of(message):
    return message and 1e-6 * message["bytes"] / min(message["times"][OURS])
