"""The curves of athanasaki2002: time against tile height in its four schemes, and against the number of slices.

``tilewave bench paper [--json FILE] [--png FILE] [--quick]``. From the paper's constants (39.6 ns a point, 100 us to
start and to synchronise, t_sync_in 11 us; 8 nodes of 2 CPUs) by its closed forms; and the same sweep here, on 1 rank
x 2 lanes and 2 ranks x 1 lane, measured and predicted. The slices: two lanes, vertical groups, by the number of
slices."""

import argparse
import itertools
import statistics

import tilewave as tw
from tilewave.theory import cost

from bench.nests_bodies import roots
from bench.results import on_ranks, picture_file, picture_option, publish, row, save_picture

SCHEMES = list(itertools.product(("overlapping", "blocking"), ("hyperplane", "vertical")))
COLOURS = dict(zip(SCHEMES, ("#2f7f5f", "#3060a0", "#e0a030", "#c8504b")))
# athanasaki2002: seconds of a point, of starting and synchronising, of a hand-over; columns of tiles on 8 nodes x 2
# CPUs.
POINT_S, STEP_S, SYNC_IN_S = 39.6e-9, 100e-6, 11e-6
WIDTH, DEPTH, COLUMNS = 64, 1 << 16, 4  # points, and columns of tiles, across


def paper(json_path=None, quick=False, args=()):
    """Time against tile height and against slices: the paper's constants, and this machine."""
    parser = argparse.ArgumentParser(prog="tilewave bench paper", description=__doc__.splitlines()[0])
    picture_option(parser, "paper")
    options = parser.parse_args(list(args))
    shape = (32, 32, 512) if quick else (65, 65, 16385)
    arguments = {"shape": shape, "repeats": 1 if quick else 5}
    found = {
        "1 rank x 2 lanes": on_ranks("bench.paper", 1, {**arguments, "threads": 2}),
        "2 ranks x 1 lane": on_ranks("bench.paper", 2, {**arguments, "threads": 1}),
    }
    rows = [r for where, curves in found.items() for r in _rows(where, curves)]
    publish("paper", rows, json_path)
    _picture(found, picture_file("paper", options.png, json_path))


# --- on the ranks ---------------------------------------------------------------------------------


def worker(shape, threads, repeats):
    """Medians and predictions by scheme and height, and by number of slices; on rank 0."""
    context = tw.Context(threads=threads)
    A = tw.field(shape, "f4", init=lambda i, j, k: 1.0, context=context)
    found = {"heights": _heights(context, A, repeats)}
    if threads > 1:
        found["slices"] = _slices(context, A, repeats)
    return found if context.rank == 0 else None


def _curve(context, A, choices, repeats):
    """[(median seconds, predicted seconds)] of each choice, measured in turn."""
    plans = [tw.plan(roots, A=A, context=context, plan={"mapping_dim": 2, **c}) for c in choices]
    times, predicted = [[] for _ in plans], [None] * len(plans)
    for turn in range(repeats + 1):  # the first warms up
        for c, plan in enumerate(plans):
            report = tw.run(roots, A=A, context=context, plan=plan)
            times[c] += [report.measured.time_s] * bool(turn)
            predicted[c] = report.predicted.time_s
    return [(statistics.median(t), p) for t, p in zip(times, predicted, strict=True)]


def _tile(context, A, height):
    base = tw.plan(roots, A=A, context=context, plan={"mapping_dim": 2})
    return (*base.tile[:2], height)


def _heights(context, A, repeats):
    heights = [h for h in (1 << k for k in range(4, 20)) if h < A.shape[2]]
    schemes = SCHEMES if context.threads > 1 else [s for s in SCHEMES if s[1] == "hyperplane"]
    choices = [{"schedule": s, "grouping": g, "tile": _tile(context, A, h)} for s, g in schemes for h in heights]
    values = iter(_curve(context, A, choices, repeats))
    return [
        {"schedule": s, "grouping": g, "heights": heights, "times": [next(values) for _ in heights]} for s, g in schemes
    ]


def _slices(context, A, repeats):
    """One pair of tiles of the whole height, so that slices alone fill the pipeline."""
    tile = _tile(context, A, A.shape[2] - 1)
    formula = tw.plan(roots, A=A, context=context, plan={"mapping_dim": 2, "grouping": "vertical", "tile": tile}).slices
    counts = sorted({1 << k for k in range(12)} | {max(formula, 1)})
    choices = [{"grouping": "vertical", "tile": tile, "slices": n} for n in counts]
    return {"counts": counts, "formula": formula, "times": _curve(context, A, choices, repeats)}


# --- what they found ------------------------------------------------------------------------------


def _rows(where, found):
    rows = []
    for curve in found["heights"]:
        best = min(range(len(curve["heights"])), key=lambda c: curve["times"][c][0])
        measured, predicted = curve["times"][best]
        rows.append(
            row(
                f"{where}, {curve['schedule']} {curve['grouping']}",
                f"best height {curve['heights'][best]}",
                [1e3 * measured],
                "ms",
            )
        )
        rows.append(
            row(rows[-1].case, "predicted there", [1e3 * predicted], "ms", ratio_to_contender=measured / predicted)
        )
    if slices := found.get("slices"):
        best = min(t for t, _ in slices["times"])
        at = slices["times"][slices["counts"].index(slices["formula"])][0]
        rows.append(
            row(
                f"{where}, slices",
                f"the formula's N = {slices['formula']}: loss against the best N",
                [100 * (at / best - 1)],
                "%",
            )
        )
    return rows


def paper_times(heights):
    """Seconds by scheme and height from the paper's constants and closed forms: 2 x 4 nodes of 2 x 1 CPUs, a column of
    tiles each. The paper does not say how long its messages take alone: blocking is drawn with their start only.
    """
    found = {}
    for schedule, grouping in SCHEMES:
        found[schedule, grouping] = []
        for z in heights:
            grid = cost.TileGrid(tiles=(2, 1, DEPTH // z), nodes=(2, 4, 1), factors=(2, 1, 1), mapping_dim=2)
            costs = cost.StepCosts(
                alpha_s=(WIDTH // COLUMNS) ** 2 * z * POINT_S,
                t_sync_in_s=SYNC_IN_S,
                t_comm_s=STEP_S,
                t_start_dma_s=STEP_S,
            )
            found[schedule, grouping].append(cost.run_s(schedule, grouping, grid, costs))
    return found


def _picture(found, png):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 5), layout="constrained")
    panels = figure.subplots(1, 4)
    heights = [1 << k for k in range(3, 15)]
    for scheme, times in paper_times(heights).items():
        panels[0].loglog(heights, times, color=COLOURS[scheme], label=" ".join(scheme))
    panels[0].set_title("the paper's constants, closed forms", fontsize=9)
    for panel, (where, curves) in zip(panels[1:3], found.items(), strict=True):
        for curve in curves["heights"]:
            colour = COLOURS[curve["schedule"], curve["grouping"]]
            panel.loglog(
                curve["heights"],
                [m for m, _ in curve["times"]],
                "o",
                color=colour,
                markersize=4,
                label=f"{curve['schedule']} {curve['grouping']}",
            )
            panel.loglog(curve["heights"], [p for _, p in curve["times"]], "-", color=colour, linewidth=1)
        panel.set_title(f"here, {where}: points measured, lines predicted", fontsize=9)
    for panel in panels[:3]:
        panel.set_xlabel("tile height")
        panel.set_ylabel("time (s)")
        panel.legend(fontsize=7)
    slices = found["1 rank x 2 lanes"]["slices"]
    panels[3].semilogx(slices["counts"], [1e3 * m for m, _ in slices["times"]], "o", color="#3060a0", label="measured")
    panels[3].semilogx(slices["counts"], [1e3 * p for _, p in slices["times"]], "-", color="#3060a0", label="predicted")
    panels[3].axvline(slices["formula"], color="black", linewidth=0.8, label="N of the formula")
    panels[3].set_title("vertical pair of tiles", fontsize=9)
    panels[3].set_xlabel("slices N")
    panels[3].set_ylabel("time (ms)")
    panels[3].legend(fontsize=7)
    save_picture(figure, "athanasaki2002", png)
