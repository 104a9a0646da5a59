"""What the ranks of `bench plan` do: brute force over a grid of choices, and the plan."""

import dataclasses
import math
import statistics

import tilewave as tw
from tilewave.allgather import allgather
from tilewave.errors import ConfigError
from tilewave.machine import known

from bench.planning_bodies import PROBLEMS


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
