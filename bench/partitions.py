"""The experiment of prieto1999: how long every partition of a box takes; `bench papers` has its strided faces.

``tilewave bench partitions [--where NAME,...] [--extent N] [--json FILE] [--png FILE] [--quick]``; NAME: 2x1 (ranks x
threads here), or HOSTS@RATE as in 4@1gbit (hosts in a box; needs root). An explicit 7-point scheme on double-precision
complex cells, in C order, runs on every factorisation of the ranks, with the border first and the messages behind the
inner part (overlapped), or computed whole and then sent (plain); so does the plan that is taken when nothing is asked
for. The ratio of a partition is to the best one, and of "plain / overlapped" what overlapping gains.
"""

import argparse
from pathlib import Path

from bench.cluster import at_place, place_option, places
from bench.dense import error_percent
from bench.results import machine, on_ranks, publish, row

WORKER = "bench.partitions_ranks"
PLACES = ("2x1", "2@1gbit", "2@none", "4@1gbit", "4@none", "8@1gbit")


def partitions(json_path=None, quick=False, args=()):
    """The time of every partition, and overlapped against plain."""
    parser = argparse.ArgumentParser(prog="tilewave bench partitions", description=__doc__.splitlines()[0])
    place_option(parser, PLACES, ("2x1", "2@1gbit", "4@1gbit"))
    parser.add_argument("--extent", type=int, action="append", help="cells along each axis (default 64 and 128)")
    parser.add_argument("--steps", type=int, default=10, help="time steps (default 10)")
    parser.add_argument("--repeats", type=int, default=5, help="turns (default 5)")
    parser.add_argument("--png", help="file of the picture (default: as the JSON's, or partitions.png)")
    options = parser.parse_args(list(args))
    arguments = {
        "strides": [],
        "sizes": [],
        "extents": [[n] * 3 for n in options.extent or ([12] if quick else [64, 128])],
        "steps": 2 if quick else options.steps,
        "repeats": 1 if quick else options.repeats,
    }
    found = {}
    for where in places(options.where, PLACES, "partitions"):
        with at_place(where, "partitions") as place:
            found[where] = on_ranks(WORKER, place.ranks, arguments, runner=place.start)
    rows = [r for where, data in found.items() for one in data["partitions"] for r in partition_rows(where, one)]
    publish("partitions", rows, json_path)
    if found:
        _picture(found, options.png or Path(json_path or "partitions").with_suffix(".png"))


def partition_rows(where, one):
    """Seconds of every partition, what overlapping gains in each, and the plan against the best."""
    n = one["extent"]
    case = f"{where}, {'x'.join(map(str, n))} c16, {one['steps']} steps"
    plans = {each["name"]: each for each in one["plans"]}
    fixed = {name: each for name, each in plans.items() if name != "planned"}
    best = min(each["median_s"] for each in fixed.values()) if fixed else None
    rows = []
    for name, each in plans.items():
        label = f"planned: {one['plan']}" if name == "planned" else name
        against = best / each["median_s"] if best else None
        rows.append(row(case, label, [1e3 * s for s in each["seconds"]], "ms", ratio_to_contender=against))
        rows.append(row(case, f"{name}: prediction error", [error_percent(each["predicted_s"], each["seconds"])], "%"))
    for name, each in fixed.items():
        grid, _, schedule = name.partition(" ")
        if schedule == "overlapping" and (plain := fixed.get(f"{grid} blocking")):
            gains = [p / o for p, o in zip(plain["seconds"], each["seconds"], strict=True)]
            rows.append(row(case, f"{grid}: plain / overlapped", gains, "x"))
    if best:
        regret = plans["planned"]["median_s"] / best
        rows.append(row(case, "the plan against the best partition (target 1.05)", [regret], "x"))
    return rows


def _picture(found, png):
    """As the paper's figures: time by partition; plain over overlapped."""
    from matplotlib.figure import Figure

    bars = [sum(len(one["plans"]) for one in data["partitions"]) for data in found.values()]
    heights = [max(4.2, 0.16 * count) for count in bars]  # inches
    figure = Figure(figsize=(11, sum(heights)), layout="constrained")
    panels_of = figure.subplots(len(found), 2, squeeze=False, height_ratios=heights)
    for panels, (where, data) in zip(panels_of, found.items(), strict=True):
        _draw_partitions(*panels, where, data["partitions"])
    info = machine()
    figure.suptitle(f"prieto1999, {info['processor']}, commit {info['commit']}", fontsize=9)
    figure.savefig(png, dpi=120)
    print(f"picture: {png}")


def _draw_partitions(times, gains, where, partitions):
    times.set_title(f"{where}: ms, measured (bars) and predicted (points)", fontsize=9)
    gains.set_title(f"{where}: plain / overlapped", fontsize=9)
    names, at = [], 0
    for one in partitions:
        plans = {each["name"]: each for each in one["plans"]}
        for name, each in plans.items():
            colour = "#c8504b" if name == "planned" else "#2f7f5f" if name.endswith("overlapping") else "#3060a0"
            times.barh(at, 1e3 * each["median_s"], color=colour)
            times.plot([1e3 * each["predicted_s"]], [at], "k.", markersize=5)
            names.append(f"{one['extent'][0]}³ {name}")
            at += 1
        pairs = [(n[: -len(" overlapping")], w) for n, w in plans.items() if n.endswith("overlapping")]
        shown = [
            (f"{one['extent'][0]}³ {g}", plans[f"{g} blocking"]["median_s"] / w["median_s"])
            for g, w in pairs
            if f"{g} blocking" in plans
        ]
        gains.barh([label for label, _ in shown], [gain for _, gain in shown], color="#e0a030")
    times.set_yticks(range(at), names, fontsize=7)
    times.invert_yaxis()
    gains.axvline(1.0, color="black", linewidth=0.8)
    gains.tick_params(axis="y", labelsize=7)
    gains.invert_yaxis()
