"""How much of the communication is hidden: two hosts at 1 Gb/s, large contiguous faces."""

import statistics

import numpy as np
import tilewave as tw
from tilewave import _core
from tilewave.context.collective import collective
from tilewave.nest.bounds import Loops
from tilewave.nests.prepare import prepare
from tilewave.nests.report import Report

from bench.cluster import LINE_BYTES_S, cluster_tool, on_hosts
from bench.planning_bodies import decay
from bench.results import on_ranks, publish, row

MODES = {  # schedule, seconds between polls inside compute (0: none)
    "blocking (synchronous)": ("blocking", 50e-6),
    "overlapping, polled": ("overlapping", 50e-6),
}


def worker(face_bytes, tile_s, steps, repeats):
    """Times of each mode, interleaved; one column of tiles a rank, one face a tile."""
    context = tw.Context(threads=1)
    width = 2048 if face_bytes >= 1 << 20 else 512
    height = face_bytes // (8 * width)
    shape = (context.size + 1, steps * height + 1, width)
    A = tw.field(shape, "f8", init=lambda i, j, k: 1.0, context=context)
    rows = {name: [] for name in MODES}
    for turn in range(repeats + 1):  # the first warms up
        for name, (schedule, poll) in MODES.items():
            report = _run(context, A, (1, height, width), schedule, poll, tile_s)
            if turn and context.rank == 0:
                rows[name].append(
                    {
                        "time_s": report.measured.time_s,
                        "ratio": report.overlap_ratio,
                        "compute_s": max(x.compute_s for x in report.lanes),
                    }
                )
    return {"rows": rows} if context.rank == 0 else None


def _run(context, A, tile, schedule, poll, tile_s):
    choices = {
        "mapping_dim": 1,
        "grid": (context.size, 1, 1),
        "tile": tile,
        "schedule": schedule,
        "synchronous": schedule == "blocking",
        "poll_period_s": poll,
    }
    # The sweep of this nest with a body that lasts exactly tile_s a tile.
    ready = collective("bench hiding")(prepare)(decay, context, Loops(None, (), None), choices, False, {"A": A}, None)
    ns = np.array([tile_s * 1e9 / np.prod(tile)])
    return Report(ready.sweep.run(ready.operands, _core.Kernel(_core.spin_row(), ns.ctypes.data)), ready.plan)


def hiding(json_path=None, quick=False, args=()):
    """Overlap ratio, against blocking."""
    tool = cluster_tool("hiding")
    cases = [("2 MB, 20 ms", 2 << 20, 20e-3), ("200 KB, 2 ms", 200 << 10, 2e-3)]
    steps, repeats = (10, 1) if quick else (100, 5)
    rows = []
    with tool.Cluster(hosts=2, rate="1gbit", name="twbench") as cluster:
        for case, face, tile in cases:
            arguments = {"face_bytes": face, "tile_s": tile, "steps": steps, "repeats": repeats}
            found = on_ranks("bench.hiding", 2, arguments, runner=on_hosts(cluster, "ucx"))
            rows += _rows(f"ucx, spin, {case}, {steps} steps", found["rows"], steps, face)
    publish("hiding", rows, json_path)


def _rows(case, found, steps, face_bytes):
    """Times, and the overlap ratio (blocking - time) / (blocking - ideal) turn by turn."""
    names = list(found)
    blocking = found[names[0]]
    # The last rank computes all its tiles after rank 0's first; or the line carries all faces.
    ideal = [max(b["compute_s"] * (steps + 1) / steps, steps * face_bytes / LINE_BYTES_S) for b in blocking]
    rows = []
    for name in names:
        times = [r["time_s"] for r in found[name]]
        rows.append(
            row(
                case,
                name,
                [1e3 * t for t in times],
                "ms",
                ratio_to_contender=statistics.median(b["time_s"] / t for b, t in zip(blocking, times, strict=True)),
                fraction_of_limit=statistics.median(i / t for i, t in zip(ideal, times, strict=True)),
            )
        )
        rows.append(row(case, f"{name}: overlap ratio in its report", [r["ratio"] for r in found[name]], "of hideable"))
        if name != names[0]:
            rows.append(
                row(
                    case,
                    f"{name}: (blocking - time) / (blocking - ideal)",
                    [(b["time_s"] - t) / (b["time_s"] - i) for b, t, i in zip(blocking, times, ideal, strict=True)],
                    "of hideable",
                )
            )
    rows.append(row(case, "ideal", [1e3 * i for i in ideal], "ms"))
    return rows
