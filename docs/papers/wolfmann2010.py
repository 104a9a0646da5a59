"""wolfmann2010: products by broadcast, wavefront and many pending blocks over two networks.

F, the flops a second of a node, is that of the slowest node with blocks of the size, as the broadcast over InfiniBand
shows it; these rows are therefore no predictions. Here: hosts in a box (as many as CPUs, 4 at most; needs root) at
1 Gb/s and without a limit. Their sizes stand to this machine's balance n* as the paper's stand to that of its machine:
n* = 4 F (p - 1) / R for p nodes of F flops a second and links of R bytes a second.
"""

import functools
import os
import sys

import tilewave as tw
from tilewave import _core

from bench import scalapack
from bench.dense import RATES as LINE_RATES
from bench.runner import LINE_BYTES_S, at_place
from docs.papers.page import figure, table

TITLE = "Matrix products by broadcast or by a point-to-point wavefront, over Ethernet and InfiniBand."
SETTING = (
    "Its machines: `ethernet` and `infiniband`, 4 nodes on a switch. Simulated as computed there: a pipelined "
    "broadcast of a whole block; two blocks a node in waves, nothing ahead; with many pending blocks, one ahead. "
    "Here: hosts in a box, whose network is limited to 1 Gb/s or not at all."
)
WHY = (
    "Broadcast over InfiniBand is no prediction: the flops a second of a node are those with which it takes what the "
    "paper measured. All other rows use them.",
    "The paper's broadcast is no slower over Ethernet than over InfiniBand: nearly all of its messages are hidden, "
    "though each node must receive 24 MB at n = 2000, 0.2 s at 1 Gb/s. Simulated broadcasts have nothing ahead and "
    "hide little, so that over Ethernet they come out twice as long, and the order of the two algorithms is another.",
    "In a simulated network the chunks of a broadcast share their link, and the first comes as late as the last; in "
    "one TCP connection they follow one another. Without `network` in the file the factor of 2 is 1.5.",
    "Waves over either network, and many pending blocks, are within 15 %. In the paper pending blocks take whichever "
    "is there by tags; simulated lanes share the node's CPU evenly.",
    "Here sizes are scaled, so that computing and network stand to each other as in the paper. Two hosts share one "
    "computer and its caches, and two blocks are broadcast, not four.",
)
LEFT_OUT = (
    "Sizes above 4000: the paper's figures are not at hand; predictions are in the figure.",
    "The second run of broadcast over InfiniBand (0.625 and 2.001 s) is the first one's within 1 %.",
)
ALGORITHMS = ("broadcast", "wavefront", "pending")
NODES = 4
#: Seconds in the paper's table by (network, algorithm, n).
TABLE = {
    ("Ethernet", "broadcast", 2000): 0.610,
    ("Ethernet", "wavefront", 2000): 0.886,
    ("Ethernet", "broadcast", 4000): 2.310,
    ("Ethernet", "wavefront", 4000): 3.090,
    ("InfiniBand", "broadcast", 2000): 0.628,
    ("InfiniBand", "wavefront", 2000): 0.691,
    ("InfiniBand", "pending", 2000): 0.584,
    ("InfiniBand", "broadcast", 4000): 2.022,
    ("InfiniBand", "wavefront", 4000): 2.483,
    ("InfiniBand", "pending", 4000): 1.993,
}
FITTED = ("InfiniBand", "broadcast")  # of each size
#: The networks here that stand for them.
RATES = {"Ethernet": "1gbit", "InfiniBand": "none"}
SIZES = (1000, 1500, 2000, 3000, 4000, 6000)


def regenerate(here):
    """(tables, figures), with what was measured here."""
    ours = {key: simulated(*key, node_flops_s(key[2])).time_s for key in TABLE}
    rows, over = [], []
    for (network, algorithm, n), seconds in TABLE.items():
        key = network, algorithm, n
        measured = here.get(_name(*key))
        scaled = f" (here {measured['n']})" if measured else ""
        rows.append([f"{network}, n = {n}{scaled}, {algorithm}", seconds, ours[key], measured and measured["seconds"]])
        if algorithm != "broadcast":
            base = network, "broadcast", n
            found = measured and measured["seconds"] / here[_name(*base)]["seconds"]
            over.append([f"{network}, n = {n}, {algorithm}", seconds / TABLE[base], ours[key] / ours[base], found])
    tables = [table("Times", "s", rows), table("Time over that of broadcast", "", over)]
    lines = []
    for network in RATES:
        for algorithm in ALGORITHMS:
            label = f"{network} {algorithm}"
            theirs = {n: s for (where, what, n), s in TABLE.items() if (where, what) == (network, algorithm)}
            if theirs:
                lines.append((label, "theirs", theirs, theirs.values()))
            flops_s = node_flops_s(4000)
            seconds = [simulated(network, algorithm, n, flops_s).time_s for n in SIZES]
            lines.append((label, "predicted", SIZES, seconds))
    times = figure("times", "time by size, nodes as fast as at n = 4000", "rows n", "time, s", lines, "y")
    return tables, [times, figure("timelines", "timelines of n = 2000, predicted", "time", "ranks", [])]


def draw(folder):
    """The picture of timelines: light is computing, dark inside MPI, lines are messages."""
    runs = {
        f"{network}, {algorithm}": tw.Timeline(simulated(network, algorithm, 2000, node_flops_s(2000), True).timeline)
        for network in RATES
        for algorithm in ("broadcast", "wavefront")
    }
    tw.save_timelines(folder / "wolfmann2010-timelines.png", runs)


# --- on their machines ----------------------------------------------------------------------------


def simulated(network, algorithm, n, flops_s, record=False):
    """A row of the table, predicted by the file of its machine."""
    axis, grid = _core.linalg.Axis, _core.linalg.BlockCyclic
    rows = grid(axis(n, NODES, -(-n // NODES)), axis(n, 1, 0), False)
    half = -(-n // (2 * NODES))
    by_waves = algorithm != "broadcast"
    width = half if by_waves else -(-n // NODES)
    columns = grid(axis(n, 1, 0), axis(n, NODES, width), False)
    problem = _core.linalg.MatmulProblem(rows, columns, rows, 8, False, [False] * 3)
    choices = _core.linalg.MatmulChoices(
        wavefront=by_waves,
        least_rounds=False,
        lookahead=1 if algorithm == "pending" else 0,
        panel=width,
        pending=algorithm == "pending",
    )
    parts = [_core.linalg.matmul(problem, choices, rank, NODES) for rank in range(NODES)]
    product, copy = _core.OperationRate(1e-6, 1 / flops_s), _core.OperationRate(1e-6, 1 / 1e9)
    machine = tw.Machine.load(network.lower())._to_core()
    machine.set_of, machine.set_cpus = list(range(NODES)), [1.0] * NODES  # the lanes of pending blocks share a node
    return _core.predict_works(parts, machine, [_core.KernelRate()], [copy, copy, product, product, copy])


@functools.cache
def node_flops_s(n):
    """Flops a second of a node: those with which FITTED takes what the paper measured."""
    flop_s = 1e-10  # the time grows almost in proportion to what is added to it
    for _ in range(8):
        time_s, more_s = (simulated(*FITTED, n, 1 / x).time_s for x in (flop_s, 1.01 * flop_s))
        flop_s += (TABLE[(*FITTED, n)] - time_s) * 0.01 * flop_s / (more_s - time_s)
    return 1 / flop_s


def _name(network, algorithm, n):
    return f"{network} {algorithm} {n}"


# --- here -----------------------------------------------------------------------------------------


def measure():
    """{name of a row: its scaled size and seconds}; {} where there can be no hosts."""
    if os.geteuid() != 0:
        print("bench papers: wolfmann2010 is not measured here: making hosts needs root", file=sys.stderr)
        return {}
    hosts = max(2, min(NODES, len(os.sched_getaffinity(0))))
    # Rows of the product at which the paper's nodes compute as long as they receive over Ethernet.
    balance = 4 * node_flops_s(4000) * (NODES - 1) / LINE_BYTES_S
    originals, sizes, found = (2000, 4000), [], {}
    for network, rate in RATES.items():
        given = {"algorithms": list(ALGORITHMS), "sizes": sizes, "repeats": 5, "rate": LINE_RATES.get(rate)}
        given |= {"factors": [n * (hosts - 1) / balance for n in originals], "others": False}
        with scalapack.environment(), at_place(f"{hosts}@{rate}", "papers") as place:
            data = place.call("bench.matmul", **given)
        sizes = [size["n"] for size in data["sizes"]]  # the same over both networks, as in the paper
        for n, size in zip(originals, data["sizes"], strict=True):
            for one in size["contenders"]:
                algorithm = one["name"].removeprefix("tilewave, ")
                found[_name(network, algorithm, n)] = {"n": size["n"], "seconds": min(one["seconds"])}
    return found
