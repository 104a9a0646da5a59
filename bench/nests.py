"""General nests against compiled plain loops, OpenMP, hand-jammed rows, parasail and the memory.

``tilewave bench nests [--case NAME,...] [--json FILE] [--quick]``; cases: arrays, recurrence, gauss-seidel, alignment,
batches. Results are compared bit for bit before anything is timed; contenders take turns in one process.
"""

import functools
import itertools

import numpy as np
import tilewave as tw

from bench import nests_bodies as bodies
from bench.contenders import compiled, module, plain
from bench.nests_bodies import SCORES
from bench.nests_contenders import parasail, plain_loops, sequences
from bench.runner import Own, Turn, benchmark, compared, lanes, must_equal, own, race, raced

ONE, TWO = "tilewave, 1 lane", "tilewave, 2 lanes"


def _on_lanes(make):
    """What is made for a context of one lane and of two, by the names of contenders."""
    return {name: make(lanes(count)) for count, name in ((1, ONE), (2, TWO))}


def _compared(case, times, unit, points, **limits):
    """Rows in which a contender's ratio is to ours on as many threads."""
    facing = lambda name: TWO if name.startswith("OpenMP 2") else ONE
    return compared(case, times, unit, points, facing=facing, **limits)


def _checked(case, start, contenders, ours):
    """Runs of `contenders`, functions of an array, and of ours on one lane and on two, all of which give the same.

    ``ours(field, context)`` runs a nest over a field, which stays in the storage that the plan wants.
    """
    results, runs = {}, {}
    for name, function in contenders.items():
        array = start.copy()
        runs[name] = functools.partial(function, array)
        runs[name]()
        results[name] = array.copy()
    for name, context in _on_lanes(lambda context: context).items():
        field = tw.field(start.shape, start.dtype, init=start, context=context)
        runs[name] = ours(field, context)
        runs[name]()
        results[name] = field.gather()
    must_equal(case, results)
    return runs


def arrays(options):
    """Four arrays, one lane: Numba's loops; in place, timed from outside with all that a call takes; as fields."""
    shape, rows, nest = (64, 64, 1024 if options.quick else 4096), [], bodies.four
    loops = plain(bodies.plain_four, *(f"{index} in range(1, A.shape[{axis}])" for axis, index in enumerate("ijk")))
    for dtype in ("f4", "f8"):
        case, context, reports = f"4 arrays {'x'.join(map(str, shape))} {dtype}", lanes(1), {}
        start = {name: np.full(shape, 1 if name == "A" else 0.01, dtype) for name in nest.arrays}
        fields = {name: tw.field(shape, dtype, init=array, context=context) for name, array in start.items()}
        given = {"tilewave, in place": {**start, "A": start["A"].copy()}, "tilewave, fields": fields}

        def run(name, given=given, reports=reports, context=context):
            reports[name] = tw.run(nest, **given[name], context=context)
            return Own(reports[name].measured.time_s) if name.endswith("fields") else None

        runs = {name: functools.partial(run, name) for name in given}
        if loops:
            own_arrays = {**start, "A": start["A"].copy()}.values()
            runs["plain loops, Numba"] = functools.partial(loops, np.dtype(dtype).type(0.3), *own_arrays)
        for once in runs.values():
            once()
        results = {name: arguments["A"] for name, arguments in given.items()}
        results |= {"tilewave, fields": fields["A"].gather()}
        results |= {"Numba": next(iter(own_arrays))} if loops else {}
        must_equal(case, results)
        times = raced(context, runs, 2 if options.quick else options.repeats, each=3)
        limits = {name: [report.bound.time_s] * options.repeats for name, report in reports.items() if report.bound}
        rows += compared(case, times, "ns/point", reports["tilewave, fields"].points, limits=limits)
    return rows


def recurrences(options):
    """A[i,j] = A[i-1,j] + A[i,j-1] - A[i-1,j-1] against rows, rows jammed by hand, OpenMP, and memory."""
    n, loops, limits = 512 if options.quick else 8192, plain_loops() or {}, None
    random, start = np.random.default_rng(1), np.zeros((n, n))
    start[0], start[:, 0] = random.random(n), random.random(n)
    names = {
        "recurrence": "plain loops, g++",
        "recurrence_jammed": "4 rows jammed by hand",
        "recurrence_jammed_omp": "OpenMP 2, 4 rows jammed by hand",
    }
    contenders = {label: lambda A, f=loops[name]: f(A, n) for name, label in names.items() if loops}
    # It gives the same however often it goes over one array.
    ours = lambda A, context: own(bodies.recurrence, A=A, context=context)
    runs = _checked(f"recurrence {n}", start, contenders, ours)
    if loops:  # `x *= c` over as many bytes, and which run of ours it bounds
        other = np.ones((n, n))
        runs |= {f"memory, {k}": lambda k=k: loops["update"](other, n, k) for k in (1, 2)}
    times = raced(lanes(1), runs, options.repeats)
    limits = {ONE: times.get("memory, 1"), TWO: times.get("memory, 2")}
    return _compared(f"recurrence {n}x{n} f8", times, "ns/point", (n - 1) ** 2, limits=limits)


def gauss_seidel_sweeps(options):
    """Sweeps over cubes, one of them within the third-level cache, against wavefronts in time written by hand."""
    rows, loops = [], plain_loops()
    for n, sweeps in ((24, 4),) if options.quick else ((120, 16), (300, 8)):
        start, contenders = 1e-3 * (np.arange(n**3) % 1013).reshape(n, n, n), {}
        if loops:
            contenders["plain loops, g++"] = lambda u, size=(n, sweeps): loops["gauss_seidel"](u, *size)
        for together, threads in itertools.product((1, 2, 4), (1, 2)) if loops else ():
            name = f"{'OpenMP 2' if threads == 2 else 'one thread'}, wavefront by hand, {together} sweeps a thread"
            given = n, sweeps, together, threads
            contenders[name] = lambda u, given=given: loops["gauss_seidel_wavefront"](u, *given)
        ours = lambda u, context, sweeps=sweeps: own(bodies.gauss_seidel, u=u, steps=sweeps, context=context)
        times = raced(lanes(1), _checked("Gauss-Seidel", start, contenders, ours), options.repeats)
        rows += _compared(f"Gauss-Seidel {n}^3 f8, {sweeps} sweeps", times, "ns/point", sweeps * (n - 2) ** 3)
    return rows


def _same(case, runs, cells, options):
    """Rows of functions that return what must be equal."""
    turns = [Turn(name, run, check=run) for name, run in runs.items()]
    left = race(lanes(1), turns, options.repeats)
    must_equal(case, {one.name: np.asarray(one.after) for one in left})
    return _compared(case, {one.name: one.seconds for one in left}, "Gcells/s", cells)


def _windows(context, *shape):
    return {name: tw.field(shape, "i2", keep="window", context=context) for name in "HEF"}


def alignment(options):
    """Cells a second, a rolling window of the tables being kept."""
    a, b = (s[: 3000 if options.quick else None] for s in sequences())
    best = {"best": tw.max("H")}

    def ours(context):
        given = {**_windows(context, a.size + 1, b.size + 1), "a": a, "b": b, **SCORES, "context": context}
        return lambda: [np.int32(tw.run(bodies.smith_waterman, **given, reduce=best).results["best"])]

    case = f"alignment {a.size}x{b.size} i2, rolling window"
    return _same(case, parasail(a[None], b[None]) | _on_lanes(ours), a.size * b.size, options)


def _numba(function, pairs, dtype, *arguments):
    """Numba's loops that keep two rows of each table, on one core and on two; empty where it is not installed."""
    if (numba := module("numba")) is None:
        return {}
    space = {"one": numba.njit(function), "prange": numba.prange, "np": np}
    first, second, *numbers = "abcdef"[: len(arguments)]
    lines = [f"found = np.empty({pairs}, np.{dtype})", f"for p in prange({pairs}):"]
    lines += [f" found[p] = one({', '.join([first, second, 'p', *numbers])})", "return found"]

    def run(threads):
        loops = compiled(lines, "abcdef"[: len(arguments)], space, parallel=threads > 1)

        def on_threads():
            numba.set_num_threads(threads)
            return loops(*arguments)

        return on_threads

    return {f"{'OpenMP 2, ' * (threads == 2)}Numba, two rows": run(threads) for threads in (1, 2)}


def warping(options):
    """Distances of all pairs of two sets of series, of which dtaidistance has no other batches; no table is stored."""
    first, second, n = (4, 5, 40) if options.quick else (40, 50, 256)
    series, pairs = np.random.default_rng(1).standard_normal((first + second, n)), first * second
    x, y = np.repeat(series[:first], second, axis=0), np.tile(series[first:], (first, 1))
    runs = _numba(bodies.warping_in_two_rows, pairs, "float64", x, y)
    if dtw := module("dtaidistance.dtw"):
        given = {"block": ((0, first), (first, len(series))), "compact": True, "inner_dist": "euclidean"}
        theirs = lambda parallel: np.array(dtw.distance_matrix_fast(series, **given, parallel=parallel))
        runs |= {"dtaidistance": lambda: theirs(False), "OpenMP 2, dtaidistance": lambda: theirs(True)}

    def ours(context):
        border = lambda p, i, j: np.where((i == 0) & (j == 0), 0.0, np.inf)
        D = tw.field((pairs, n + 1, n + 1), init=border, keep="window", context=context)
        found = np.zeros(pairs)

        def run():
            tw.run(bodies.warping, D=D, S=found, X=x, Y=y, context=context)
            return found.copy()

        return run

    return _same(f"{pairs} distances of {n} f8", runs | _on_lanes(ours), pairs * n * n, options)


def scores(options):
    """Scores of many alignments; no table is stored."""
    pairs, n = (20, 40) if options.quick else (10000, 128)
    random = np.random.default_rng(1)
    a, b = (s[random.integers(0, s.size - n, pairs)[:, None] + np.arange(n)] for s in sequences())
    runs = _numba(bodies.scores_in_two_rows, pairs, "int32", a, b, *SCORES.values())
    for name, function in parasail(a, b).items():
        runs |= {name: function, f"OpenMP 2, {name}": lambda function=function: function(2)}

    def ours(context):
        given, found = _windows(context, pairs, n + 1, n + 1), np.zeros(pairs, "i2")

        def run():
            found[:] = 0
            tw.run(bodies.smith_waterman_scores, **given, S=found, a=a, b=b, **SCORES, context=context)
            return found.astype("i4")

        return run

    return _same(f"{pairs} scores of {n} i2", runs | _on_lanes(ours), pairs * n * n, options)


CASES = {
    "arrays": arrays,
    "recurrence": recurrences,
    "gauss-seidel": gauss_seidel_sweeps,
    "alignment": alignment,
    "batches": lambda options: warping(options) + scores(options),
}


@benchmark("nests", __doc__, cases=CASES)
def nests(options):
    for name in options.case:
        yield from CASES[name](options)
