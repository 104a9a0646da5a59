"""General nests against compiled plain loops, OpenMP, hand-jammed rows, parasail and the memory.

``tilewave bench nests [--case NAME] [--json FILE] [--quick]``; NAME: arrays, recurrence, gauss-seidel, alignment or
batches, several with commas. Results are compared bit for bit before anything is timed; contenders take turns in one
process.
"""

import itertools

import numpy as np
import tilewave as tw

from bench import nests_parasail
from bench.nests_arrays import arrays
from bench.nests_batches import batches
from bench.nests_bodies import SCORES, gauss_seidel, recurrence, smith_waterman
from bench.nests_plain import plain_loops, sequences
from bench.nests_race import ONE, TWO, compare, must_equal, on_lanes, race, skipped
from bench.results import parser_of, publish, warn_of_load


def _checked(case, start, contenders, ours):
    """Runs of `contenders`, functions of an array, and of ours on one lane and on two, all of which give the same.

    ``ours(field, context)`` runs a nest over a field, which stays in the storage that the plan wants; its report has
    the time.
    """
    results, runs = {}, {}
    for name, function in contenders.items():
        array = start.copy()
        function(array)
        results[name] = array.copy()
        runs[name] = lambda function=function, array=array: function(array)
    for name, context in on_lanes(lambda context: context).items():
        field = tw.field(start.shape, start.dtype, init=start, context=context)
        runs[name] = lambda field=field, context=context: ours(field, context).measured.time_s
        runs[name]()
        results[name] = field.gather()
    must_equal(case, results)
    return runs


# --- cases ----------------------------------------------------------------------------------------


def recurrences(quick):
    """A[i,j] = A[i-1,j] + A[i,j-1] - A[i-1,j-1] against rows, rows jammed by hand, OpenMP, and memory."""
    n, plain, limits = 512 if quick else 8192, plain_loops(), None
    random, start = np.random.default_rng(1), np.zeros((n, n))
    start[0], start[:, 0] = random.random(n), random.random(n)
    names = {
        "plain loops, g++": "recurrence",
        "4 rows jammed by hand": "recurrence_jammed",
        "OpenMP 2, 4 rows jammed by hand": "recurrence_jammed_omp",
    }
    contenders = {name: plain[function] for name, function in names.items()} if plain else {}
    # It gives the same however often it goes over one array.
    runs = _checked(f"recurrence {n}", start, contenders, lambda A, context: tw.run(recurrence, A=A, context=context))
    if plain:  # `x *= c` over as many bytes, and which run of ours it bounds
        other = np.ones((n, n))
        runs |= {f"memory, {k}": lambda k=k: plain["update"](other, k) for k in (1, 2)}
        limits = {ONE: "memory, 1", TWO: "memory, 2"}
    return compare(f"recurrence {n}x{n} f8", race(runs, 2 if quick else 5), (n - 1) ** 2, limits)


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


def gauss_seidel_sweeps(quick):
    """Sweeps over cubes, one of them within the third-level cache, against wavefronts in time written by hand."""
    rows, plain = [], plain_loops()
    for n, sweeps in ((24, 4),) if quick else ((120, 16), (300, 8)):
        start, contenders = 1e-3 * (np.arange(n**3) % 1013).reshape(n, n, n), {}
        if plain:
            contenders["plain loops, g++"] = lambda u, sweeps=sweeps: plain["gauss_seidel"](u, sweeps)
        for together, threads in itertools.product((1, 2, 4), (1, 2)) if plain else ():
            name = f"{'OpenMP 2' if threads == 2 else 'one thread'}, wavefront by hand, {together} sweeps a thread"
            given = sweeps, together, threads
            contenders[name] = lambda u, given=given: plain["gauss_seidel_wavefront"](u, *given)
        ours = lambda u, context, sweeps=sweeps: tw.run(gauss_seidel, u=u, steps=sweeps, context=context)
        times = race(_checked("Gauss-Seidel", start, contenders, ours), 1 if quick else 5)
        rows += compare(f"Gauss-Seidel {n}^3 f8, {sweeps} sweeps", times, sweeps * (n - 2) ** 3)
    return rows


CASES = {
    "arrays": arrays,
    "recurrence": recurrences,
    "gauss-seidel": gauss_seidel_sweeps,
    "alignment": alignment,
    "batches": batches,
}


def nests(json_path=None, quick=False, args=()):
    """General nests against compiled plain loops, OpenMP, parasail and the memory."""
    options = parser_of("nests", __doc__, CASES).parse_args(list(args))
    warn_of_load("nests")
    rows = []
    for name in options.case:
        rows += CASES[name](quick)
    publish("nests", rows, json_path)
