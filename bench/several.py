"""Several nests in each time step: shallow water, Yee's scheme, elastic waves, against plain loops fused by hand.

``tilewave bench several [--where NAME,...] [--case NAME,...] [--json FILE] [--quick]``; NAME: 1x1, 1x2, 2x1 (ranks x
threads here), or HOSTS@RATE. Plain loops by Numba run on one core: of in turn and fused by hand the faster one counts.
Ratios are Numba's time over ours. All values are compared bit for bit.
"""

import argparse
import statistics

from bench.cluster import at_place, place_option, places
from bench.results import on_ranks, publish, row

WORKER = "bench.several_ranks"
PLACES = ("1x1", "1x2", "2x1")
NAMES = ("shallow water", "shallow water, periodic", "Yee", "elastic waves")
SIZES = ((500, 100), (1000, 40))


def several(json_path=None, quick=False, args=()):
    """Time steps of several nests on one lane, two lanes and two ranks, against plain loops."""
    parser = argparse.ArgumentParser(prog="tilewave bench several", description=__doc__.splitlines()[0])
    place_option(parser, PLACES)
    parser.add_argument("--case", default="", help="only cases that begin so, as in Yee; several with semicolons")
    parser.add_argument("--repeats", type=int, default=7, help="turns (default 7)")
    options = parser.parse_args(list(args))
    rows = []
    for where in places(options.where, PLACES, "several"):
        with at_place(where, "several") as place:
            for n, steps in ((40, 3),) if quick else SIZES:
                for name in NAMES:
                    if not name.startswith(tuple(options.case.split(";"))):
                        continue
                    arguments = {"name": name, "n": n, "steps": steps, "threads": place.threads}
                    arguments["repeats"] = 1 if quick else options.repeats
                    found = on_ranks(WORKER, place.ranks, arguments, runner=place.start)
                    rows += _rows(f"{name} {n}^2, {where}", steps, found["contenders"])
    publish("several", rows, json_path)


def _rows(case, steps, contenders):
    """A step's time of each, and Numba's over ours."""
    medians = {one["name"]: statistics.median(one["seconds"]) for one in contenders}
    numba = next((s for name, s in medians.items() if name.startswith("Numba")), None)
    for one in contenders:
        ratio = numba / medians[one["name"]] if numba and one["name"].startswith("tilewave") else None
        yield row(case, one["name"], [1e3 * s / steps for s in one["seconds"]], "ms", ratio_to_contender=ratio)
