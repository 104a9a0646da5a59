"""How much of the communication is hidden: two hosts at 1 Gb/s, large contiguous faces."""

import numpy as np
import tilewave as tw
from tilewave import _core
from tilewave.context.collective import collective
from tilewave.nest.bounds import Loops
from tilewave.nests.plan.prepare import prepare
from tilewave.nests.run.report import Report

from bench.planning_bodies import decay
from bench.runner import LINE_BYTES_S, benchmark, compared, places, row

#: By mode: schedule.
MODES = {"blocking (synchronous)": "blocking", "overlapping, polled": "overlapping"}
CASES = {"2 MB, 20 ms": (2 << 20, 20e-3), "200 KB, 2 ms": (200 << 10, 2e-3)}


def worker(face_bytes, tile_s, steps, repeats):
    """Times of each mode, interleaved; one column of tiles a rank, one face a tile."""
    context = tw.Context(threads=1)
    width = 2048 if face_bytes >= 1 << 20 else 512
    tile = (1, face_bytes // (8 * width), width)
    A = tw.field((context.size + 1, steps * tile[1] + 1, width), "f8", init=lambda i, j, k: 1.0, context=context)
    found = {name: [] for name in MODES}
    for turn in range(repeats + 1):  # the first warms up
        for name, schedule in MODES.items():
            report = _run(context, A, tile, schedule, tile_s)
            if turn and context.rank == 0:
                longest_s = max(x.compute_s for x in report.lanes)
                found[name].append((report.measured.time_s, report.overlap_ratio, longest_s))
    return found if context.rank == 0 else None


def _run(context, A, tile, schedule, tile_s):
    choices = {
        "mapping_dim": 1,
        "grid": (context.size, 1, 1),
        "tile": tile,
        "schedule": schedule,
        "synchronous": schedule == "blocking",
        "poll_period_s": 50e-6,
    }
    # The sweep of this nest with a body that lasts exactly tile_s a tile.
    ready = collective("bench hiding")(prepare)(decay, context, Loops(None, (), None), choices, False, {"A": A}, None)
    ns = np.array([tile_s * 1e9 / np.prod(tile)])
    return Report(ready.sweep.run(ready.operands, _core.Kernel(_core.spin_row(), ns.ctypes.data)), ready.plan)


@benchmark("hiding", __doc__, cases=CASES, places=("2@1gbit",))
def hiding(options):
    steps = 10 if options.quick else 100
    for place in places(options):
        place.netmod = "ucx"
        for name in options.case:
            face_bytes, tile_s = CASES[name]
            given = {"face_bytes": face_bytes, "tile_s": tile_s, "steps": steps, "repeats": options.repeats}
            yield from _rows(f"ucx, spin, {name}, {steps} steps", place.call(__name__, **given), steps, face_bytes)


def _rows(case, found, steps, face_bytes):
    """Times, and the overlap ratio (blocking - time) / (blocking - ideal) turn by turn."""
    (blocking, _, compute), *_ = columns = [np.array(each).T for each in found.values()]
    # The last rank computes all its tiles after rank 0's first; or the line carries all faces.
    ideal = np.maximum(compute * (steps + 1) / steps, steps * face_bytes / LINE_BYTES_S)
    times = {name: each[0].tolist() for name, each in zip(found, columns, strict=True)}
    against, limits = next(iter(times)), {name: ideal.tolist() for name in times}
    rows = compared(case, times, "ms", theirs=[], against=against, limits=limits)
    for name, (seconds, ratios, _) in zip(found, columns, strict=True):
        rows.append(row(case, f"{name}: overlap ratio in its report", ratios.tolist(), "of hideable"))
        if name != against:
            hidden = (blocking - seconds) / (blocking - ideal)
            rows.append(row(case, f"{name}: (blocking - time) / (blocking - ideal)", hidden.tolist(), "of hideable"))
    return [*rows, row(case, "ideal", (1e3 * ideal).tolist(), "ms")]
