"""Ranks that are not equally fast: hosts in a box, of which the last one may use a part of its CPU.

``tilewave bench unequal [--cpus 1,0.5] [--order N] [--repeats N] [--json FILE] [--quick]``; needs root. A sweep, a
stencil, a product and a Cholesky factorization run on one rank a host, each rank on one lane. The limit is the sum of
what the ranks compute alone, all at once.
"""

import argparse
import statistics

from bench.cluster import cluster_tool, on_hosts
from bench.dense import error_percent
from bench.results import on_ranks, publish, row

WORKER = "bench.unequal_ranks"


def unequal(json_path=None, quick=False, args=()):
    """Points a second with even blocks and as planned, as a part of the sum of the ranks' rates."""
    parser = argparse.ArgumentParser(prog="tilewave bench unequal", description=__doc__.splitlines()[0])
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
        found = on_ranks(WORKER, len(cpus), arguments, runner=on_hosts(cluster))
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
