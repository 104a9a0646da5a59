"""`bench nests`: Smith-Waterman with affine gaps, against parasail."""

import tilewave as tw

from bench import nests_parasail
from bench.nests_bodies import SCORES, smith_waterman
from bench.nests_plain import plain_loops, sequences
from bench.nests_race import compare, on_lanes, race, skipped


def aligning(a, b, context):
    """A function that aligns, keeping a rolling window only; its report has the best score."""
    fields = {name: tw.field((a.size + 1, b.size + 1), "i2", keep="window", context=context) for name in "HEF"}
    return lambda: tw.run(smith_waterman, **fields, a=a, b=b, **SCORES, context=context, reduce={"best": tw.max("H")})


def alignment(quick):
    """Cells a second, a rolling window of the tables being kept."""
    a, b = sequences()
    if a is None:
        return skipped("alignment")
    length = 3000 if quick else int(a.size)
    a, b, case = a[:length], b[:length], f"alignment {length}x{length} i2, rolling window"
    runs, scores = {}, {}
    name, call = nests_parasail.best(a[None], b[None]) if plain_loops() else (None, None)
    if name:
        scores[name], runs[name] = int(call()[0]), lambda: (call(), None)[1]
    for name, run in on_lanes(lambda context: aligning(a, b, context)).items():
        scores[name], runs[name] = int(run().results["best"]), lambda run=run: run().measured.time_s
    if len(set(scores.values())) > 1:
        raise SystemExit(f"{case}: the scores differ: {scores}")
    return compare(case, race(runs, 2 if quick else 5), length * length, cells=True)
