"""The paper's sweep on 1 rank x 1 thread, 1 x 2 and 2 x 1, in its four schemes."""
import itertools

import numpy as np
import tilewave as tw

from bench.nests_bodies import roots
from bench.nests_race import lanes
from bench.results import on_ranks, publish, row

SCHEMES = list(itertools.product(("hyperplane", "vertical"), ("overlapping", "blocking")))


def worker(shape, repeats):
    """Seconds of each layout and scheme, interleaved. The alone layouts run on rank 0."""
    world = tw.Context(threads=1)
    layouts = {"2 x 1": world}
    if world.rank == 0:
        layouts = {"1 x 1": lanes(1), "1 x 2": lanes(2), **layouts}
    else:
        layouts = {"1 x 1": None, "1 x 2": None, **layouts}
    fields = {name: context and tw.field(shape, "f4", init=lambda i, j, k: 1.0, context=context)
              for name, context in layouts.items()}
    times = {}
    for turn in range(repeats + 1):  # the first warms up
        for grouping, schedule in SCHEMES:
            for name, context in layouts.items():
                world._core.barrier()
                if context is None:
                    continue
                report = tw.run(
                    roots, A=fields[name], context=context, plan={"grouping": grouping, "schedule": schedule}
                )
                if turn:
                    times.setdefault(f"{grouping} {schedule}", {}).setdefault(name, []).append(report.measured.time_s)
    whole = {name: f.gather() for name, f in fields.items() if f is not None}
    if world.rank == 0:
        same = all(np.array_equal(w.view("u4"), whole["1 x 1"].view("u4")) for w in whole.values())
        return {"times": times, "same": bool(same)}
    return None


def sweep(json_path=None, quick=False, args=()):
    """Speed-up of two lanes and of two ranks over one, 64 x 64 x 16384 float32."""
    shape = (64, 64, 1024 if quick else 16384)
    found = on_ranks("bench.sweep", 2, {"shape": shape, "repeats": 2 if quick else 7})
    if not found["same"]:
        raise SystemExit("the layouts' results differ")
    rows = []
    for scheme, times in found["times"].items():
        one = np.array(times["1 x 1"])
        for name, values in times.items():
            rows.append(row(f"{shape[0]}x{shape[1]}x{shape[2]} f4, {scheme}", f"{name} (against 1 x 1)", values, "s",
                            ratio_to_contender=float(np.median(one / np.array(values))),
                            fraction_of_limit=float(np.median(one / np.array(values))) / (1 if name == "1 x 1" else 2)))
    publish("sweep", rows, json_path)
