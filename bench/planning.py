"""Plans against brute force, and predictions against measurements.

``tilewave bench plan [--where NAME,...] [--json FILE] [--quick]``; NAME: 1x1, 1x2, 2x1 (ranks x threads
here), or HOSTS@RATE as in 2@1gbit (hosts in a box; needs root). Brute force goes over mapping dimension, all ranks or
one (or what else was simulated), schedule and look-ahead, grouping and slices, tile heights by factors of two around
the planned one, other tiles and temporal blocking; its best three are timed once more in turn with the plan, the
shorter the run the more often. Regret: the plan's median over the best one's. Error: |predicted - measured| / measured,
of a plan made before the grid and run after it.
"""

import dataclasses
import math
import statistics

import tilewave as tw
from tilewave.allgather import allgather
from tilewave.errors import ConfigError
from tilewave.machine import known

from bench.cluster import at_place, place_option, places
from bench.planning_bodies import PROBLEMS
from bench.results import on_ranks, parser_of, publish, row

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


def worker(cases, threads, repeats, heights):
    """Findings of each case (name, numbers) on this launch's ranks, on rank 0."""
    context = tw.Context(threads=threads)
    if known.look(context, complain=True) is None:
        tw.measure(quick=True, context=context)
    found = [_case(context, name, numbers, repeats, heights) for name, numbers in cases]
    return found if context.rank == 0 else None


def _case(context, name, numbers, repeats, heights):
    """The plan, the best of the grid, and the plans' predictions against what was measured."""
    make = lambda: PROBLEMS[name](context, *numbers)
    nest, arguments = make()
    planned = tw.plan(nest, **arguments, context=context)
    ours = Contender(nest, arguments, planned)
    grid = _grid(context, ours, make, heights)
    times = [_race(context, [one], repeats)[0] for one in [ours, *grid]]
    # The least of many medians is low by luck: the best few once more, in turn with the plan.
    order = sorted(range(len(grid)), key=lambda c: statistics.median(times[c + 1][0]))
    finalists = [ours, *(grid[c] for c in order[:3])]
    turns = 2 * repeats * _more(context, statistics.median(times[0][0]))
    (planned_s, predicted_s), *best = _race(context, finalists, turns)
    return {
        "case": f"{name} {'x'.join(map(str, numbers))}",
        "plan": planned._short(),
        "plans": len(grid),
        "planned_s": planned_s,
        "predicted_s": predicted_s,
        "best": [one.plan._short() for one in finalists[1:]],
        "best_s": [seconds for seconds, _ in best],
        "grid": [
            {"plan": one.plan._short(), "measured_s": statistics.median(seconds), "predicted_s": predicted}
            for one, (seconds, predicted) in zip([ours, *grid], times, strict=True)
        ],
    }


@dataclasses.dataclass
class Contender:
    """A plan, and other fields where those of another plan would have to move between ranks."""

    nest: object
    arguments: dict
    plan: object

    def run(self, context):
        return tw.run(self.nest, **self.arguments, context=context, plan=self.plan)


def _more(context, seconds):
    """How often a short run is repeated where a long one is once: the machine's speed changes within seconds."""
    return max(1, min(8, round(0.06 / max(float(allgather(context, seconds)[0]), 1e-6))))


def _race(context, contenders, repeats):
    """Seconds of each, in turn after one run each that counts not, and its prediction; the same on all ranks.

    Each is run once before every run that counts: it finds its fields in the caches, not what another one has left
    there.
    """
    found = [([], None) for _ in contenders]
    for turn in range(repeats + 1):
        for c, one in enumerate(contenders):
            report = one.run(context)
            if turn:
                report = one.run(context)
            found[c] = (found[c][0] + [report.measured.time_s] * bool(turn), report.predicted.time_s)
    return found


def _grid(context, ours, make, heights):
    """The stated choices: mapping dimension, ranks used and their grid x schedule and look-ahead x grouping and slices
    x height; then other tiles and temporal blocking."""
    found, planned = [], ours.plan
    for dim in range(len(planned.tile)):
        try:
            best = (
                planned
                if dim == planned.mapping_dim
                else tw.plan(
                    ours.nest,
                    **make()[1],
                    context=context,
                    plan={"mapping_dim": dim, "row": planned.row, "storage": planned.storage},
                )
            )
        except ConfigError:  # ranks cannot share the other dimensions, or rows go along this one
            continue
        for base in _by_ranks(best):
            nest, arguments = (
                (ours.nest, ours.arguments) if (dim, base.grid) == (planned.mapping_dim, planned.grid) else make()
            )
            for choices in _schemes(base):
                for height in _heights(base.tile[dim], heights if base is planned else heights // 2):
                    tile = tuple(height if k == dim else t for k, t in enumerate(base.tile))
                    one = Contender(nest, arguments, dataclasses.replace(base, tile=tile, **choices))
                    if one.plan != planned and _runs(context, one):
                        found.append(one)
    for plan in _other_tiles(planned):
        one = Contender(ours.nest, ours.arguments, plan)
        if plan not in [planned, *(other.plan for other in found)] and _runs(context, one):
            found.append(one)
    return found


def _other_tiles(planned):
    """Narrower and wider tiles along each other dimension, and temporal blocking on and off."""
    for k, t in enumerate(planned.tile):
        if k != planned.mapping_dim and t > 1:
            for extent in {max(t // 8, 1), max(t // 2, 1), 2 * t}:
                yield dataclasses.replace(planned, tile=(*planned.tile[:k], extent, *planned.tile[k + 1 :]))
    if planned.tile[0] == 1 and planned.aggregate == 1:
        for steps in {1, 2, 4, 8} - {planned.temporal_block}:
            for height in _heights(planned.tile[planned.mapping_dim], 4)[::2]:
                tile = tuple(height if k == planned.mapping_dim else t for k, t in enumerate(planned.tile))
                yield dataclasses.replace(planned, tile=tile, temporal_block=steps)


def _by_ranks(plan):
    """A plan, and of those that were simulated with it the best for each other number of ranks."""
    found = {math.prod(plan.grid): plan}
    for record in plan.ranked:
        if plan.mapping_dim == record["choices"]["mapping_dim"]:
            found.setdefault(math.prod(record["choices"]["grid"]), dataclasses.replace(plan, **record["choices"]))
    return list(found.values())


def _schemes(base):
    schedules = [{"schedule": "overlapping", "lookahead": 1}]
    if math.prod(base.grid) > 1:
        schedules += [{"schedule": "overlapping", "lookahead": 2}, {"schedule": "blocking", "lookahead": 1}]
    groupings = [{"grouping": "hyperplane", "slices": 1}]
    if math.prod(base.factors) > 1:
        groupings += [{"grouping": "vertical", "slices": n} for n in (4, 16)]
    return [{**s, **g} for s in schedules for g in groupings]


def _heights(planned, count):
    """The planned one, and up and down from it by factors of two."""
    return sorted({max(planned >> k, 1) for k in range(count + 1)} | {planned << k for k in range(count + 1)})


def _runs(context, one):
    """Whether the nest runs under a plan, as was asked: a tile may be larger than a rank's block, or a rolling window
    whole.
    """
    try:
        return not one.run(context).stored
    except ConfigError:
        return False


def planning(json_path=None, quick=False, args=()):
    """Regret of the plans against brute force, and errors of the predictions."""
    parser = parser_of("plan", __doc__)
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


def _run(where, arguments):
    with at_place(where, "plan") as place:
        return on_ranks(__name__, place.ranks, {**arguments, "threads": place.threads}, runner=place.start)


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
