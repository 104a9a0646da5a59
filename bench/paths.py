"""Each fast path on and off, in cases that users have it for: milliseconds, and the median of the paired ratios.

``tilewave bench paths [--path NAME] [--where 1x1,2x1] [--json FILE] [--quick]``; NAME: fast paths, with commas. On and
off are two contexts of one process or job, with different arrays, which take turns; results must be equal bit for bit.
"""

import argparse
import statistics
import sys

import numpy as np
from tilewave import _core

from bench.paths_ranks import CASES
from bench.results import on_ranks, row, warn_of_load, write

RANKS = "bench.paths_ranks"
#: A path that gains less in all its cases is a candidate to go (decision 23).
WORTH = 1.12


def paths(json_path=None, quick=False, args=()):
    """Each fast path on and off."""
    parser = argparse.ArgumentParser(prog="tilewave bench paths", description=__doc__.splitlines()[0])
    parser.add_argument("--path", default=",".join(_core.fast_paths), help="fast paths, with commas")
    parser.add_argument("--where", default="1x1,2x1", help="ranks x lanes, with commas: of 1x1, 2x1")
    options = parser.parse_args(list(args))
    names = _core.names_of(_core.paths_off(options.path)).split(", ")
    warn_of_load("paths")
    found = []
    for ranks in (int(where.partition("x")[0]) for where in options.where.split(",")):
        wanted = [name for name in names if any(case[1] == ranks for case in CASES.get(name, ()))]
        if wanted:
            found += on_ranks(RANKS, ranks, {"names": wanted, "quick": quick})
    _show(found)
    rows = []
    for name, case, on, off in sorted(found, key=lambda one: names.index(one[0])):
        ratio = statistics.median(slow / fast for fast, slow in zip(on, off, strict=True))
        rows.append(row(f"{name}: {case}", "on", [1e3 * s for s in on], "ms", ratio_to_contender=ratio))
        rows.append(row(f"{name}: {case}", "off", [1e3 * s for s in off], "ms"))
    write("paths", rows, json_path)


def _show(found):
    from rich.console import Console
    from rich.table import Table

    table = Table(title="tilewave bench paths", title_justify="left", caption="medians, in ms; off / on")
    for head in ("path", "case", "on", "off", "ratio"):
        table.add_column(head, justify="left" if head in ("path", "case") else "right")
    gains = {}
    for name, case, on, off in found:
        gains.setdefault(name, []).append(statistics.median(np.divide(off, on)))
        times = [f"{1e3 * statistics.median(each):.4g}" for each in (on, off)]
        table.add_row(name, case, *times, f"{gains[name][-1]:.2f}")
    Console(width=None if sys.stdout.isatty() else 130).print(table)
    if low := [name for name, ratios in gains.items() if max(ratios) < WORTH]:
        print(f"gain less than {WORTH - 1:.0%} in every case here: {', '.join(low)}")
