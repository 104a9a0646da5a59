"""The table of wolfmann2010: broadcast, wavefront and many pending blocks over two networks, measured and predicted.

``tilewave bench wolfmann [--hosts N] [--json FILE] [--png FILE] [--quick]``. Here: N hosts in a box (as many as CPUs, 4
at most; needs root) at 1 Gb/s and without a limit. The sizes stand to this machine's balance n* as the paper's stand to
that of its machine: n* = 4 F (p - 1) / R for p nodes of F flops a second and links of R bytes a second.

The paper's rows are simulated as it computed them: a pipelined broadcast of a whole block, two blocks a node in waves,
nothing ahead; with many pending blocks, one ahead. Its constants: links of 1 Gb/s Ethernet (119.7 MB/s under TCP, 50
us) and InfiniBand DDR (20 Gb/s signals, 16 Gb/s of data, 5 us). F is that of its slowest node with blocks of the size,
as the broadcast over InfiniBand shows it; these two rows are therefore no predictions.
"""

import argparse
import functools
import os
import statistics

from tilewave import _core

from bench.cluster import LINE_BYTES_S
from bench.dense import case_of, error_percent, limit_s, run_at
from bench.matmul import WORKER
from bench.results import picture_file, picture_option, publish, row, save_picture

ALGORITHMS = ("broadcast", "wavefront", "pending")
NODES = 4
#: Seconds in the paper's table by (network, algorithm, n); its second run of broadcast is left out.
TABLE = {
    ("Ethernet", "wavefront", 2000): 0.886,
    ("Ethernet", "broadcast", 2000): 0.610,
    ("InfiniBand", "wavefront", 2000): 0.691,
    ("InfiniBand", "broadcast", 2000): 0.628,
    ("InfiniBand", "pending", 2000): 0.584,
    ("Ethernet", "wavefront", 4000): 3.090,
    ("Ethernet", "broadcast", 4000): 2.310,
    ("InfiniBand", "wavefront", 4000): 2.483,
    ("InfiniBand", "broadcast", 4000): 2.022,
    ("InfiniBand", "pending", 4000): 1.993,
}
FITTED = ("InfiniBand", "broadcast")  # of each size
#: Seconds of latency, bytes a second.
NETWORKS = {"Ethernet": (50e-6, LINE_BYTES_S), "InfiniBand": (5e-6, 2e9)}
#: The networks here that stand for them.
RATES = {"Ethernet": "1gbit", "InfiniBand": "none"}


def wolfmann(json_path=None, quick=False, args=()):
    """The paper's table, scaled to this machine, and the paper's rows predicted."""
    parser = argparse.ArgumentParser(prog="tilewave bench wolfmann", description=__doc__.splitlines()[0])
    cpus = len(os.sched_getaffinity(0))
    parser.add_argument("--hosts", type=int, default=max(2, min(NODES, cpus)), help="default: as many as CPUs, 2 to 4")
    parser.add_argument("--repeats", type=int, default=5, help="turns (default 5)")
    picture_option(parser, "wolfmann")
    options = parser.parse_args(list(args))
    theirs = paper_rows()
    found = _here(options, quick)
    rows = _paper_table(theirs)
    for network, data in found.items():
        for size in data["sizes"]:
            rows += _here_table(options.hosts, network, data, size)
    publish("wolfmann", rows, json_path)
    _picture(theirs, found, picture_file("wolfmann", options.png, json_path))


# --- the paper's machine --------------------------------------------------------------------------


def paper_seconds(network, algorithm, n, flops_s):
    """A row of the table, simulated on the paper's machine."""
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
    rates = [copy, copy, product, product, copy]
    return _core.predict_works(parts, _paper_machine(network), [_core.KernelRate()], rates).time_s


def _paper_machine(network):
    made, link = _core.Machine(), _core.Link()
    link.latency_s, rate = NETWORKS[network]
    link.byte_s = 1 / rate
    made.other_host = link
    made.host_of, made.set_of, made.set_cpus = list(range(NODES)), list(range(NODES)), [1.0] * NODES
    return made


@functools.cache
def paper_flops_s(n):
    """Flops a second of a node: those with which FITTED takes what the paper measured."""
    low, high = 1e9, 1e11
    for _ in range(50):
        middle = (low * high) ** 0.5
        slow = paper_seconds(*FITTED, n, middle) > TABLE[(*FITTED, n)]
        low, high = (middle, high) if slow else (low, middle)
    return low


def paper_rows():
    """{row of the table: (measured, predicted)}."""
    return {key: (seconds, paper_seconds(*key, paper_flops_s(key[2]))) for key, seconds in TABLE.items()}


def paper_balance():
    """Rows of the product at which the paper's nodes compute as long as they receive over Ethernet."""
    return 4 * paper_flops_s(4000) * (NODES - 1) / LINE_BYTES_S


# --- here -----------------------------------------------------------------------------------------


def _here(options, quick):
    """Findings by network; {} where there are no hosts."""
    if os.geteuid() != 0:
        print("bench wolfmann: the table here is skipped: making hosts needs root")
        return {}
    factors = [n * (options.hosts - 1) / paper_balance() for n in (2000, 4000)]
    sizes, found = [96, 128] if quick else [], {}
    for network, rate in RATES.items():
        arguments = {
            "algorithms": list(ALGORITHMS),
            "sizes": sizes,
            "factors": factors,
            "least": 0,
            "most": 0,
            "repeats": 1 if quick else options.repeats,
            "others": False,
            "quick": quick,
        }
        found[network] = run_at(f"{options.hosts}@{rate}", WORKER, arguments, "wolfmann")
        sizes = [size["n"] for size in found[network]["sizes"]]  # the same over both networks, as in the paper
    return found


def _paper_table(theirs):
    rows, errors = [], []
    for (network, algorithm, n), (measured, predicted) in theirs.items():
        case = f"the paper's, {network}, n = {n}"
        rows.append(row(case, f"{algorithm}, in the paper", [measured], "s"))
        rows.append(row(case, f"{algorithm}, predicted", [predicted], "s", ratio_to_contender=measured / predicted))
        errors += [error_percent(predicted, [measured])] * ((network, algorithm) != FITTED)
    rates = " and ".join(f"{paper_flops_s(n) / 1e9:.1f}" for n in (2000, 4000))
    what = f"the paper's table, nodes of {rates} GFlop/s"
    return [*rows, row(what, "prediction error, median", [statistics.median(errors)], "%")]


def _here_table(hosts, network, data, size):
    """Seconds of the algorithms; the ratio is to the plain wavefront, as in the paper."""
    case = case_of(f"{hosts} hosts, {network.replace('InfiniBand', 'no limit')}", data, size["n"])
    contenders = {w["name"].removeprefix("tilewave, "): w for w in size["contenders"]}
    plain, rows = statistics.median(contenders["wavefront"]["seconds"]), []
    for name, one in contenders.items():
        seconds, limit = one["seconds"], max(limit_s(data, size["n"], one["grid"], 2.0 * size["n"] ** 3))
        median = statistics.median(seconds)
        rows.append(row(case, name, seconds, "s", ratio_to_contender=plain / median, fraction_of_limit=limit / median))
        rows.append(row(case, f"{name}: prediction error", [error_percent(one["predicted_s"], seconds)], "%"))
    return rows


def _picture(theirs, found, png):
    """Bars of seconds: measured, and predicted below it; the paper's on the left."""
    from matplotlib.figure import Figure

    panels = [("wolfmann2010: 4 nodes", theirs)]
    for network, data in found.items():
        bars = {}
        for size in data["sizes"]:
            for one in size["contenders"]:
                key = network, one["name"].removeprefix("tilewave, "), size["n"]
                bars[key] = statistics.median(one["seconds"]), one["predicted_s"]
        rate = RATES[network].replace("none", "no limit")
        panels.append((f"here: {data['ranks']} hosts, {rate}", bars))
    figure = Figure(figsize=(5 + 4 * len(panels), 5), layout="constrained")
    for axis, (title, bars) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        keys = sorted(bars, key=lambda key: (key[0], key[2], ALGORITHMS.index(key[1])))
        called = "{} {}\n{}" if bars is theirs else "n = {1}\n{2}"  # of one network the title says which
        names = [called.format(network, n, algorithm) for network, algorithm, n in keys]
        at = range(len(keys))
        axis.barh([a - 0.2 for a in at], [bars[k][0] for k in keys], 0.4, color="#3060a0", label="measured")
        axis.barh([a + 0.2 for a in at], [bars[k][1] for k in keys], 0.4, color="#e0a030", label="predicted")
        axis.set_yticks(list(at), names, fontsize=7)
        axis.invert_yaxis()
        axis.set_xlabel("seconds")
        axis.set_title(title, fontsize=9)
        axis.legend(fontsize=8)
    save_picture(figure, "C = A B", png)
