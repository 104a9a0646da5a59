"""Programs with conditions, strides and recurrences against the same plain loops under Numba, which has one core.

``tilewave bench bodies [--case NAME] [--ranks 1,2] [--json FILE] [--quick]``; NAME: sor (over-relaxation where a mask
is 0), red-black (a colour a nest), sn (transport sweeps of eight octants, angles and the scalar flux), "sn in cells",
solves (with incomplete Cholesky factors) or cg (conjugate gradients with these), several with commas. Contenders take
turns on the same ranks; results are compared bit for bit, those of cg but for the order of its sums.
"""

import argparse

from bench.bodies_ranks import CASES, OURS
from bench.dense import ratio
from bench.results import on_ranks, publish, row, warn_of_load

RANKS = "bench.bodies_ranks"
#: Points along each side: of arrays that fit into a second-level cache, and of larger ones.
SIZES = {
    "sor": (400, 1000),
    "red-black": (400, 1000),
    "sn": (32, 64),
    "sn in cells": (32,),
    "solves": (200, 500),
    "cg": (200, 500),
}
QUICK = {"sn": 6, "sn in cells": 6}


def bodies(json_path=None, quick=False, args=()):
    """Programs with conditions, strides and recurrences against plain loops under Numba."""
    parser = argparse.ArgumentParser(prog="tilewave bench bodies", description=__doc__.splitlines()[0])
    parser.add_argument("--case", default=",".join(CASES), help=f"of {', '.join(CASES)}; several with commas")
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks, with commas (default: 1,2)")
    parser.add_argument("--repeat", type=int, default=1 if quick else 7, help="turns (default: 7)")
    options = parser.parse_args(list(args))
    chosen = options.case.split(",")
    if unknown := [name for name in chosen if name not in CASES]:
        raise SystemExit(f"bench bodies: no case {unknown[0]!r}; there are: {', '.join(CASES)}")
    warn_of_load("bodies")
    rows = []
    for name in chosen:
        for n in (QUICK.get(name, 40),) if quick else SIZES[name]:
            for ranks in map(int, options.ranks.split(",")):
                rows += _rows(name, n, ranks, options.repeat)
    publish("bodies", rows, json_path)


def _rows(name, n, ranks, repeats):
    """A row a contender; the ratio of ours is Numba's time to ours."""
    found = on_ranks(RANKS, ranks, {"case": name, "n": n, "repeats": repeats})
    side = "x".join([str(n)] * (3 if name.startswith("sn") else 2))
    label = f"{name} {side} f8, {ranks} rank{'s' * (ranks > 1)}"
    times = found["times"]
    others = [seconds for contender, seconds in times.items() if contender != OURS]
    return [
        row(
            label,
            contender,
            [seconds / found["points"] * 1e9 for seconds in taken],
            "ns/point",
            ratio_to_contender=ratio(others[0], taken) if contender == OURS and others else None,
        )
        for contender, taken in times.items()
    ]
