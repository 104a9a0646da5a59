"""Plans against brute force, and predictions against measurements.

``tilewave bench plan [--where NAME,...] [--json FILE] [--quick]``; NAME: 1x1, 1x2, 2x1 (ranks x threads
here), or HOSTS@RATE as in 2@1gbit (hosts in a box; needs root). Brute force goes over mapping dimension, all ranks or
one (or what else was simulated), schedule and look-ahead, grouping and slices, tile heights by factors of two around
the planned one, other tiles and temporal blocking; its best three are timed once more in turn with the plan, the
shorter the run the more often. Regret: the plan's median over the best one's. Error: |predicted - measured| / measured,
of a plan made before the grid and run after it.
"""

import argparse
import json
import math
import statistics
from pathlib import Path

from bench.cluster import at_place, place_option, places
from bench.results import on_ranks, publish, row

WORKER = "bench.planning_ranks"

HERE = [
    ("linear", (64, 64, 256)),
    ("linear", (64, 64, 8192)),
    ("roots", (64, 64, 4096)),
    ("decay", (48, 64, 64)),
    ("recurrence", (1024, 1024)),
    ("recurrence", (4096, 4096)),
    ("hyper", (24, 24, 24, 24)),
    ("sor", (1024, 20)),
    ("alignment", (12000,)),
]
# Thin, long, tiny and uneven shapes, stencils in time, tables, several arrays.
MORE = [
    ("longest", (64, 400000)),
    ("longest", (100000, 50)),
    ("longest", (33, 47)),
    ("damped", (200, 20000)),
    ("roots", (7, 31, 20011)),
    ("heat2", (2000, 1500, 20)),
    ("heat2", (97, 30011, 11)),
    ("heat3", (256, 256, 256, 20)),
    ("heat3", (17, 300, 411, 9)),
    ("wave2", (1500, 2200, 15)),
    ("wave3", (160, 170, 180, 10)),
    ("scored", (6000, 4)),
    ("scored", (6000, 24)),
    ("two arrays", (64, 64, 256)),
    ("two arrays", (150, 210, 190)),
    ("four arrays", (1500, 1700)),
]
TINY = ("linear", (8, 8, 64))
ON_HOSTS = [
    TINY,
    ("roots", (64, 64, 4096)),
    ("decay", (64, 128, 128)),
    ("recurrence", (4096, 4096)),
    ("sor", (1024, 20)),
]
# ranks x threads, hosts and rate: cases
WHERE = {
    "1x1": [*HERE, *MORE],
    "1x2": [*HERE, *MORE],
    "2x1": [TINY, *HERE, *MORE],
    "2@100mbit": ON_HOSTS,
    "2@1gbit": ON_HOSTS,
    "2@none": ON_HOSTS,
    "4@100mbit": ON_HOSTS[1:3],
    "4@1gbit": ON_HOSTS[1:3],
    "4@none": ON_HOSTS[1:3],
}
SMALL = [("linear", (16, 16, 64)), ("sor", (64, 4)), ("alignment", (300,))]


def planning(json_path=None, quick=False, args=()):
    """Regret of the plans against brute force, and errors of the predictions."""
    parser = argparse.ArgumentParser(prog="tilewave bench plan", description=__doc__.splitlines()[0])
    place_option(parser, WHERE)
    parser.add_argument("--case", default="", help="only cases whose name begins so; several with commas")
    options = parser.parse_args(list(args))
    found = []
    for where in places(options.where, WHERE, "plan"):
        cases = [
            case for case in (SMALL if quick else WHERE[where]) if case[0].startswith(tuple(options.case.split(",")))
        ]
        if not cases:
            continue
        arguments = {"cases": cases, "repeats": 1 if quick else 3, "heights": 2 if quick else 4}
        found += [{**case, "where": where} for case in _run(where, arguments)]
    rows = [r for case in found for r in _rows(case)]
    if found:
        rows += _summary(found)
    publish("plan", rows, json_path)
    if json_path and found:
        data = json.loads(Path(json_path).read_text())
        Path(json_path).write_text(json.dumps({**data, "cases": found}, indent=1) + "\n")


def _run(where, arguments):
    with at_place(where, "plan") as place:
        return on_ranks(WORKER, place.ranks, {**arguments, "threads": place.threads}, runner=place.start)


def regret(case):
    """The plan's median over the least median of the grid's best, both from one interleaved race."""
    planned = statistics.median(case["planned_s"])
    return planned / min([planned, *(statistics.median(seconds) for seconds in case["best_s"])])


def error(case):
    """|predicted - measured| / measured of the plan."""
    measured = statistics.median(case["planned_s"])
    return abs(case["predicted_s"] - measured) / measured


def _rows(case):
    name = f"{case['where']}, {case['case']}"
    return [
        row(
            name,
            f"planned: {case['plan']}",
            [1e3 * s for s in case["planned_s"]],
            "ms",
            ratio_to_contender=1 / regret(case),
        ),
        row(name, f"predicted (error {100 * error(case):.1f} %)", [1e3 * case["predicted_s"]], "ms"),
        row(
            name,
            f"best of {case['plans']}: {case['best'][0] if case['best'] else 'none'}",
            [1e3 * s for s in (min(case["best_s"], key=statistics.median) if case["best_s"] else case["planned_s"])],
            "ms",
        ),
    ]


def _most_of(values):
    """The least value that 95 % of them do not exceed."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def _summary(found):
    regrets, errors = [regret(c) for c in found], [100 * error(c) for c in found]
    figures = (
        ("regret, median (target 1.03)", statistics.median(regrets), "x"),
        ("regret, worst", max(regrets), "x"),
        ("regret, 95 % of cases within (target 1.15)", _most_of(regrets), "x"),
        ("prediction error, median (target 8)", statistics.median(errors), "%"),
        ("prediction error, 95 % of cases within (target 25)", _most_of(errors), "%"),
        ("prediction error, worst", max(errors), "%"),
    )
    every = [abs(p["predicted_s"] - p["measured_s"]) / p["measured_s"] for c in found for p in c["grid"]]
    return [
        *(row(f"{len(found)} cases", label, [value], unit) for label, value, unit in figures),
        row(f"{len(every)} plans of the grids", "prediction error, median", [100 * statistics.median(every)], "%"),
    ]
