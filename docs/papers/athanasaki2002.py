"""athanasaki2002: groups of tiles and their schedules, steps, slices, time against tile height."""

import itertools

import numpy as np
import tilewave as tw
from tilewave import _core

from bench.nests_bodies import roots
from bench.runner import here, lanes
from docs.papers.page import figure, table
from docs.theory import tilings as theory
from docs.theory.tilings import cost

TITLE = "Pipelined schedules of tiled loop nests on clusters of SMPs."
SETTING = (
    "Its machine: `sci-ring`, 8 nodes of 2 Pentium III 800 MHz on a ring of SCI. Theirs are the formulas that their "
    "measurements follow. Here: one rank of two lanes, and two ranks of one."
)
WHY = (
    "Groups, steps and slices are formulas: ours are equal, in exact fractions.",
    "The sizes X = Y = 64, Z = 16384, x = y = 16 are assumed: the facts at hand have the tile height as the only free "
    "parameter. The law is T = P (100 us + x² z 39.6 ns), of overlapping hyperplane groups.",
    "39.6 ns and 100 us are in the machine's file, a third of the 100 us for each of the three faces that a CPU sends "
    "or receives in a step. The form of the curve and the place of its minimum are predictions.",
    "Tall tiles are predicted to be faster than the law: a CPU at the border has fewer faces, and ours waits for a "
    "face, not for the whole step of its neighbour.",
    "Theirs finds overlapping hyperplane groups the fastest, then overlapping vertical ones, then blocking. Predicted "
    "are the two groupings as equal, or vertical ones a little ahead: lanes wait for single tiles by counters, where "
    "the paper's CPUs meet at a barrier after each step, so that slices cost nothing in the steady state.",
    "beta(N) = alpha (N + 1)/N + N t_sync has the CPUs meet at each slice. Ours hands a slice over while the next one "
    "is computed, so that t_sync counts once and more slices never lose: from the best N on, ours is below the "
    "paper's.",
    "Here nodes share memory, a message takes some microseconds, and two lanes share caches: blocking loses little.",
)
LEFT_OUT = (
    "The measured curves of the blocking schedules: the facts at hand have no costs of blocking calls.",
    "Loss at the formula's N against the measured optimum (0.15 %): it needs their measured curve.",
)
X, Z, TILE, POINT_S, START_S = 64, 16384, 16, 39.6e-9, 100e-6
HEIGHTS = (16, 32, 64, 128, 256, 512, 1024)
SLICES = (1, 4, 16, 32, 48, 64, 79, 96, 128, 192, 256)
ALPHA_S, SYNC_S = 69e-3, 11e-6
SCHEMES = list(itertools.product(("overlapping", "blocking"), ("hyperplane", "vertical")))
#: The paper's table of steps in two dimensions, m = 2: node and CPU of each tile.
STEPS = (
    "node 0: (0,0)",
    "node 0: (1,0) (0,1)",
    "node 0: (2,0) (1,1)",
    "node 0: (3,0) (2,1); node 1: (0,2)",
    "node 0: (4,0) (3,1); node 1: (1,2) (0,3)",
)
HERE = (65, 65, 16385)  # of which 64 x 64 x 16384 are computed


def regenerate(here):
    """(tables, figures), with what was measured here."""
    times = {scheme: [predicted(z, *scheme) for z in HEIGHTS] for scheme in SCHEMES}
    best = min(times[SCHEMES[0]])
    mine = {scheme: min(v for v in _of(here, "1x2", scheme)) for scheme in SCHEMES} if here else {}
    order = [
        [
            " ".join(scheme),
            ("1st", "2nd", "3rd or 4th", "3rd or 4th")[k],
            f"{min(times[scheme]) / best:.3f}",
            f"{mine[scheme] / mine[SCHEMES[0]]:.3f}" if mine else None,
        ]
        for k, scheme in enumerate(SCHEMES)
    ]
    laws = [law(z) for z in HEIGHTS]
    at_best = HEIGHTS[laws.index(min(laws))]
    groups = {s: group_s(s) for s in SLICES}
    formula = cost.best_slices(ALPHA_S, SYNC_S)
    tables = [
        table("Groups of tiles", "", _groups(), "Grouping matrices, 2-D with m = 2 and 3-D with m = (2, 1)."),
        table("Steps of the 2-D example", "", _steps(), "Tiles of each step of overlapping hyperplane groups, m = 2."),
        table("Steps of a run", "steps", _counts(), "Predicted: waves of the linear schedule over all tiles."),
        table(
            "Slices",
            "",
            [
                ["best N, of 69 ms a tile and 11 us a hand-over", 79, round(formula, 1), None],
                *(
                    [
                        f"group of two tiles, {n} slices, ms",
                        1e3 * cost.vertical_group_s(ALPHA_S, SYNC_S, n),
                        1e3 * t,
                        None,
                    ]
                    for n, t in groups.items()
                    if n in (4, 16, 79, 256)
                ),
            ],
            "Predicted: two lanes of a rank, simulated with the machine's file.",
        ),
        table(
            "Time by tile height",
            "ms",
            [[f"z = {z}", 1e3 * a, 1e3 * b, None] for z, a, b in zip(HEIGHTS, laws, times[SCHEMES[0]], strict=True)],
            f"Overlapping hyperplane groups; the law has its minimum at z = {at_best}.",
        ),
        table(
            "Order of the four schedules",
            "",
            order,
            "Theirs: the order found. Ours: the least time over tile heights, to that of the first.",
        ),
    ]
    lines = [("overlapping hyperplane", "theirs", HEIGHTS, [1e3 * t for t in laws])]
    lines += [(" ".join(s), "predicted", HEIGHTS, [1e3 * t for t in times[s]]) for s in SCHEMES]
    counts = list(SLICES)
    figures = [
        figure("height", "time by tile height", "tile height z, points", "time, ms", lines, "x"),
        figure(
            "slices",
            "a vertical group of two tiles by slices",
            "slices N",
            "time, ms",
            [
                ("group", "theirs", counts, [1e3 * cost.vertical_group_s(ALPHA_S, SYNC_S, n) for n in counts]),
                ("group", "predicted", counts, [1e3 * groups[n] for n in counts]),
            ],
            "x",
        ),
    ]
    if here:
        tables.append(
            table(
                "Speed-up of two CPUs over one",
                "",
                [
                    [f"{layout}, {' '.join(s)}", None, None, min(_of(here, "1x1", s)) / min(_of(here, layout, s))]
                    for layout in ("1x2", "2x1")
                    for s in SCHEMES
                ],
                f"Here, {' x '.join(map(str, HERE))} float32, ranks x lanes; the paper measured no single CPU.",
            )
        )
        drawn = []
        for layout, scheme in (("1x2", SCHEMES[0]), ("1x2", SCHEMES[1]), ("2x1", SCHEMES[0]), ("2x1", SCHEMES[2])):
            label = f"{layout} {' '.join(scheme)}"
            drawn.append((label, "here", here["heights"], [1e3 * t for t in _of(here, layout, scheme)]))
            foreseen = here["predicted"][layout][" ".join(scheme)]
            drawn.append((label, "predicted here", here["heights"], [1e3 * t for t in foreseen]))
        figures.append(figure("here", "time by tile height here", "tile height z, points", "time, ms", drawn, "x"))
    return tables, figures


# --- theirs, and on their machine -----------------------------------------------------------------


def law(z):
    """Seconds by the paper's law."""
    grid = cost.TileGrid(tiles=(2, 1, Z // z), nodes=(X // TILE // 2, X // TILE, 1), factors=(2, 1, 1), mapping_dim=2)
    return cost.pipeline_steps("overlapping", "hyperplane", grid) * (START_S + TILE * TILE * z * POINT_S)


def predicted(z, schedule, grouping):
    """Seconds of the paper's nest with tiles of height z, simulated on its machine."""
    alpha_s = TILE * TILE * z * POINT_S
    slices = 1 if grouping == "hyperplane" else max(1, min(z, round(cost.best_slices(alpha_s, SYNC_S))))
    return _simulated((X, X, Z), (TILE, TILE, z), (X // TILE // 2, X // TILE, 1), schedule, grouping, slices)


def group_s(slices):
    """Seconds of a vertical group of two tiles of ALPHA_S in slices, simulated on one node."""
    height = round(ALPHA_S / POINT_S / TILE / TILE)
    shape = (2 * TILE, TILE, height)
    return _simulated(shape, (TILE, TILE, height), (1, 1, 1), "overlapping", "vertical", slices)


def _simulated(points, tile, grid, schedule, grouping, slices):
    shape = [n + 1 for n in points]
    unit = [(0, tuple(-(k == l) for k in range(3))) for l in range(3)]
    problem = _core.SweepProblem(shape, ((1, 1, 1), shape), [(4, False)], unit)
    plan = _core.Plan()
    # Slices of a tile are shorter tiles, of which a lane has so many in a turn.
    plan.grid, plan.tile, plan.factors, plan.mapping_dim = grid, tile, (2, 1, 1), 2
    plan.schedule, plan.grouping, plan.slices = schedule, grouping, slices
    plan.synchronous = schedule == "blocking"
    schedules = [_core.nest_schedule(problem, plan, rank) for rank in range(plan.ranks)]
    core, rate = tw.Machine.load("sci-ring")._to_core(), _core.KernelRate(POINT_S, 0, 0)
    return _core.predict(schedules, core, rate, plan.poll_period_s, record=False).time_s


def _groups():
    of = {"2-D": theory.Grouping("hyperplane", 0, [1, 2]), "3-D": theory.Grouping("hyperplane", 2, [2, 1, 1])}
    theirs = {
        ("2-D", "p"): "1 -2; 0 2",
        ("2-D", "h"): "1 1; 0 1/2",
        ("3-D", "p"): "2 0 0; 0 1 0; -2 -1 1",
        ("3-D", "h"): "1/2 0 0; 0 1 0; 1 1 1",
    }
    for (dims, name), text in theirs.items():
        ours = "; ".join(" ".join(map(str, line)) for line in getattr(of[dims], name))
        yield [f"{name.upper()}^G, {dims}", text, ours, None]


def _steps():
    grouping = theory.Grouping("hyperplane", 0, [1, 2])
    schedule = theory.LinearSchedule.for_groups("overlapping", grouping)
    for wave, text in enumerate(STEPS):
        nodes = {}
        for tile in sorted(itertools.product(range(8), range(4)), key=grouping.cpu_of):
            if schedule.wave_of(grouping, tile) == wave:
                nodes.setdefault(grouping.node_of(tile)[0], []).append("({},{})".format(*tile))
        ours = "; ".join(f"node {node}: {' '.join(tiles)}" for node, tiles in sorted(nodes.items()))
        yield [f"t = {wave}", text, ours, None]


def _counts():
    """P of the paper's forms in two and three dimensions, beside waves that are counted."""
    x, y = 100, 8
    forms = {
        ("blocking", "vertical"): x + y // 2 - 1,
        ("overlapping", "vertical"): x + y - 2,
        ("overlapping", "hyperplane"): x + 3 * y // 2 - 2,
    }
    for (schedule, kind), steps in forms.items():
        yield [f"2-D, {x} x {y} tiles, {schedule} {kind}", steps, _waves(schedule, kind, 0, (1, 2), (x, y)), None]
    for tiles in ((4, 4, 64), (8, 8, 32)):
        steps = 3 * tiles[0] // 2 + 2 * tiles[1] + tiles[2] - 4
        found = _waves("overlapping", "hyperplane", 2, (2, 1, 1), tiles)
        yield [f"3-D, {' x '.join(map(str, tiles))} tiles, overlapping hyperplane", steps, found, None]


def _waves(schedule, kind, mapping_dim, factors, tiles):
    grouping = theory.Grouping(kind, mapping_dim, factors)
    return theory.LinearSchedule.for_groups(schedule, grouping).waves(itertools.product(*map(range, tiles)), grouping)


# --- here -----------------------------------------------------------------------------------------


def measure():
    """Times by tile height, on one lane, two lanes and two ranks."""
    return here(2).call("docs.papers.athanasaki2002", heights=[64, 256, 1024, 4096], repeats=7)


def worker(heights, repeats):
    """Least times of each layout and scheme by tile height, interleaved, and predictions; of one rank on rank 0."""
    world = tw.Context(threads=1)
    layouts = {"2x1": world}
    layouts |= {"1x1": lanes(1), "1x2": lanes(2)} if world.rank == 0 else {"1x1": None, "1x2": None}
    fields = {
        name: context and tw.field(HERE, "f4", init=lambda i, j, k: 1.0, context=context)
        for name, context in layouts.items()
    }
    times, predictions = {}, {}
    for turn, (schedule, grouping), (at, z) in itertools.product(range(repeats + 1), SCHEMES, enumerate(heights)):
        for name, context in layouts.items():
            world._core.barrier()
            if context is None:
                continue
            # Tiles of half a block, so that two lanes have one each.
            tile = (HERE[0] // 2, HERE[1] - 1, z)
            choices = {"grouping": grouping, "schedule": schedule, "tile": tile, "mapping_dim": 2}
            if name == "2x1":
                choices["grid"] = (2, 1, 1)
            report = tw.run(roots, A=fields[name], context=context, plan=choices)
            if turn:  # the first warms up
                key = f"{schedule} {grouping}"
                times.setdefault(name, {}).setdefault(key, [[] for _ in heights])[at].append(report.measured.time_s)
                predictions.setdefault(name, {}).setdefault(key, [0.0 for _ in heights])[at] = report.predicted.time_s
    whole = {name: field.gather() for name, field in fields.items() if field is not None}
    if world.rank:
        return None
    if not all(np.array_equal(w.view("u4"), whole["1x1"].view("u4")) for w in whole.values()):
        raise SystemExit("bench papers: the layouts' results differ")
    least = {n: {k: [min(t) for t in each] for k, each in of.items()} for n, of in times.items()}
    return {"heights": heights, "times": least, "predicted": predictions}


def _of(here, layout, scheme):
    return here["times"][layout][" ".join(scheme)]
