"""Plans against brute force, and predictions against measurements.

``tilewave bench plan [--where NAME,...] [--case NAME,...] [--json FILE] [--quick]``; places: 1x1, 1x2, 2x1 (ranks x
threads here), or HOSTS@RATE as in 2@1gbit (hosts in a box; needs root). Brute force goes over mapping dimension, all
ranks or one (or what else was simulated), schedule and look-ahead, grouping and slices, tile heights by factors of two
around the planned one, other tiles and temporal blocking; its best three are timed once more in turn with the plan, the
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

from bench.planning_bodies import PROBLEMS
from bench.runner import Own, Turn, benchmark, error_percent, places, race, row

#: Of each problem the numbers that it is made of; thin, long, tiny and uneven shapes, too.
HERE = {
    "linear": ((64, 64, 256), (64, 64, 8192)),
    "roots": ((64, 64, 4096), (7, 31, 20011)),
    "decay": ((48, 64, 64),),
    "recurrence": ((1024, 1024), (4096, 4096)),
    "hyper": ((24, 24, 24, 24),),
    "sor": ((1024, 20),),
    "alignment": ((12000,),),
    "longest": ((64, 400000), (100000, 50), (33, 47)),
    "damped": ((200, 20000),),
    "heat2": ((2000, 1500, 20), (97, 30011, 11)),
    "heat3": ((256, 256, 256, 20), (17, 300, 411, 9)),
    "wave2": ((1500, 2200, 15),),
    "wave3": ((160, 170, 180, 10),),
    "scored": ((6000, 4), (6000, 24)),
    "two arrays": ((64, 64, 256), (150, 210, 190)),
    "four arrays": ((1500, 1700),),
}
FOUR_HOSTS = {"roots": ((64, 64, 4096),), "decay": ((64, 128, 128),)}
HOSTS = {"linear": ((8, 8, 64),), **FOUR_HOSTS, "recurrence": ((4096, 4096),), "sor": ((1024, 20),)}
# ranks x threads, hosts and rate: cases
WHERE = {"1x1": HERE, "1x2": HERE, "2x1": {**HERE, "linear": ((8, 8, 64), *HERE["linear"])}}
WHERE |= {f"2@{rate}": HOSTS for rate in ("100mbit", "1gbit", "none")}
WHERE |= {f"4@{rate}": FOUR_HOSTS for rate in ("100mbit", "1gbit", "none")}
SMALL = {"linear": ((16, 16, 64),), "sor": ((64, 4),), "alignment": ((300,),)}


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
    ours = Contender(context, *(made := make()), tw.plan(made[0], **made[1], context=context))
    grid = _grid(ours, make, heights)
    measured = {one: one.measured_s(repeats) for one in [ours, *grid]}
    plans = [{"measured_s": seconds, "predicted_s": one.predicted_s} for one, seconds in measured.items()]
    # The least of many medians is low by luck: the best few once more, in turn with the plan. A short run is repeated
    # more often than a long one: the machine's speed changes within seconds.
    finalists = [ours, *sorted(grid, key=measured.get)[:3]]
    more = round(0.06 / max(float(allgather(context, measured[ours])[0]), 1e-6))
    turns = [Turn(str(k), one.own, one.run) for k, one in enumerate(finalists)]
    planned_s, *best_s = [one.seconds for one in race(context, turns, 2 * repeats * max(1, min(8, more)))]
    return {
        "case": f"{name} {'x'.join(map(str, numbers))}",
        "plan": ours.plan._short(),
        "plans": len(grid),
        "planned_s": planned_s,
        "predicted_s": ours.predicted_s,
        "best": [one.plan._short() for one in finalists[1:]],
        "best_s": best_s,
        "grid": plans,
    }


@dataclasses.dataclass(eq=False)
class Contender:
    """A plan, and other fields where those of another plan would have to move between ranks."""

    context: object
    nest: object
    arguments: dict
    plan: object
    predicted_s: float = 0.0

    def run(self):
        report = tw.run(self.nest, **self.arguments, context=self.context, plan=self.plan)
        self.predicted_s = report.predicted.time_s
        return report

    def own(self):
        return Own(self.run().measured.time_s)

    def measured_s(self, repeats):
        """Seconds, the same on all ranks; it is run once before: its fields are in the caches."""
        return statistics.median((self.run(), self.own())[1] for _ in range(repeats))

    def runs(self):
        """Whether the nest runs under the plan, as was asked.

        A tile may be larger than a rank's block, or a rolling window whole.
        """
        try:
            return not self.run().stored
        except ConfigError:
            return False


def _grid(ours, make, heights):
    """The stated choices: mapping dimension, ranks used and their grid x schedule and look-ahead x grouping and slices
    x height; then other tiles and temporal blocking."""
    found, planned = [], ours.plan
    for dim in range(len(planned.tile)):
        best, given = planned, {"mapping_dim": dim, "row": planned.row, "storage": planned.storage}
        if dim != planned.mapping_dim:
            try:
                best = tw.plan(ours.nest, **make()[1], context=ours.context, plan=given)
            except ConfigError:  # ranks cannot share the other dimensions, or rows go along this one
                continue
        for base in _by_ranks(best):
            same = (dim, base.grid) == (planned.mapping_dim, planned.grid)
            made = (ours.nest, ours.arguments) if same else make()
            for choices in _schemes(base):
                for height in _heights(base.tile[dim], heights if base is planned else heights // 2):
                    tile = _with(base.tile, dim, height)
                    one = Contender(ours.context, *made, dataclasses.replace(base, tile=tile, **choices))
                    if one.plan != planned and one.runs():
                        found.append(one)
    for plan in _other_tiles(planned):
        one = Contender(ours.context, ours.nest, ours.arguments, plan)
        if plan not in [planned, *(other.plan for other in found)] and one.runs():
            found.append(one)
    return found


def _with(tile, dim, extent):
    return (*tile[:dim], extent, *tile[dim + 1 :])


def _other_tiles(planned):
    """Narrower and wider tiles along each other dimension, and temporal blocking on and off."""
    dim, tile = planned.mapping_dim, planned.tile
    for k, t in enumerate(tile):
        if k != dim and t > 1:
            for extent in {max(t // 8, 1), max(t // 2, 1), 2 * t}:
                yield dataclasses.replace(planned, tile=_with(tile, k, extent))
    if tile[0] == 1 and planned.aggregate == 1:
        for steps in {1, 2, 4, 8} - {planned.temporal_block}:
            for height in _heights(tile[dim], 4)[::2]:
                yield dataclasses.replace(planned, tile=_with(tile, dim, height), temporal_block=steps)


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


@benchmark("plan", __doc__, cases=PROBLEMS, places=WHERE, repeats=3)
def planning(options):
    found = []
    for place in places(options):
        cases = SMALL if options.quick else WHERE[place.name]
        chosen = [(name, numbers) for name in cases if name in options.case for numbers in cases[name]]
        given = {"threads": place.threads, "repeats": options.repeats, "heights": 2 if options.quick else 4}
        for case in place.call(__name__, cases=chosen, **given) if chosen else ():
            # The plan's median over the least median of the grid's best, both from one race.
            planned_s = statistics.median(case["planned_s"])
            best = min(case["best_s"], key=statistics.median, default=case["planned_s"])
            case["regret"] = planned_s / min([planned_s, *map(statistics.median, case["best_s"])])
            case["error"] = error_percent(case["predicted_s"], case["planned_s"])
            found.append(case)
            name, ms = f"{place.name}, {case['case']}", lambda seconds: [1e3 * s for s in seconds]
            against = {"ratio_to_contender": 1 / case["regret"]}
            yield row(name, f"planned: {case['plan']}", ms(case["planned_s"]), "ms", **against)
            yield row(name, f"predicted (error {case['error']:.1f} %)", ms([case["predicted_s"]]), "ms")
            label = f"best of {case['plans']}: {(case['best'] or ['none'])[0]}"
            yield row(name, label, ms(best), "ms")
    if found:
        yield from _summary(found)


def _summary(found):
    within = lambda values: sorted(values)[math.ceil(0.95 * len(values)) - 1]  # what 95 % of them do not exceed
    regrets, errors = [case["regret"] for case in found], [case["error"] for case in found]
    for label, value, unit in (
        ("regret, median (target 1.03)", statistics.median(regrets), "x"),
        ("regret, worst", max(regrets), "x"),
        ("regret, 95 % of cases within (target 1.15)", within(regrets), "x"),
        ("prediction error, median (target 8)", statistics.median(errors), "%"),
        ("prediction error, 95 % of cases within (target 25)", within(errors), "%"),
        ("prediction error, worst", max(errors), "%"),
    ):
        yield row(f"{len(found)} cases", label, [value], unit)
    every = [error_percent(plan["predicted_s"], [plan["measured_s"]]) for case in found for plan in case["grid"]]
    yield row(f"{len(every)} plans of the grids", "prediction error, median", [statistics.median(every)], "%")
