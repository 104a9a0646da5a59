"""`bench nests`: Smith-Waterman with affine gaps, against parasail; lanes, ranks, memory."""

import time

import tilewave as tw

from bench import nests_parasail
from bench.nests_bodies import SCORES, smith_waterman
from bench.nests_plain import plain_loops, sequences
from bench.nests_race import compare, lanes, race, rank_rows, skipped
from bench.results import on_ranks, row

RANKS = "bench.nests_ranks"


def aligning(a, b, context):
    """A function that aligns, keeping a rolling window only; its report has the best score."""
    fields = {name: tw.field((a.size + 1, b.size + 1), "i2", keep="window", context=context) for name in "HEF"}
    return lambda: tw.run(smith_waterman, **fields, a=a, b=b, **SCORES, context=context, reduce={"best": tw.max("H")})


def alignment(quick):
    """Cells a second, a rolling window of the tables being kept; ranks and memory."""
    a, b = sequences()
    if a is None:
        return skipped("alignment")
    length = 3000 if quick else int(a.size)
    case = f"alignment {length}x{length} i2, rolling window"
    rows = _window(case, a[:length], b[:length], 2 if quick else 5)
    found = on_ranks(RANKS, 2, {"what": "alignment", "length": length, "repeats": 2 if quick else 5})
    rows += rank_rows(case, found["times"], length * length)
    found = on_ranks(RANKS, 1, {"what": "memory", "length": length})
    rows.append(
        row(
            case,
            "memory of fields and run, limit 64",
            [found["bytes"] / 2**20],
            "MiB",
            fraction_of_limit=found["bytes"] / 2**26,
        )
    )
    return rows


def _window(case, a, b, repeats):
    plain, runs, scores = plain_loops(), {}, {}
    name, call = nests_parasail.best(a[None], b[None]) if plain else (None, None)
    if name:
        scores[name], runs[name] = int(call()[0]), lambda: (call(), None)[1]
    for count in (1, 2):
        name, run = f"tilewave, {count} lane{'s' * (count > 1)}", aligning(a, b, lanes(count))
        scores[name], runs[name] = int(run().results["best"]), lambda run=run: run().measured.time_s
    rows = compare(case, race(runs, repeats), a.size * b.size, cells=True)
    if plain:  # it takes long: once
        begin = time.perf_counter()
        scores["plain loops"] = plain["smith_waterman"](a, b)
        rate = a.size * b.size * 1e-9 / (time.perf_counter() - begin)
        rows.append(row(case, "plain loops, g++ (once)", [rate], "Gcells/s"))
    if len(set(scores.values())) > 1:
        raise SystemExit(f"{case}: the scores differ: {scores}")
    return rows
