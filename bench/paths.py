"""Each fast path on and off, in cases that users have it for: milliseconds, and the median of the paired ratios.

``tilewave bench paths [--case NAME,...] [--where 1x1,2x1] [--json FILE] [--quick]``; NAME: fast paths. With and without
it are two contexts of one process or job, with different arrays, which take turns; results must be equal bit for bit.
"""

import os

import numpy as np
import tilewave as tw
from tilewave import _core, units

from bench.costs_bodies import dependent, functions, logistic, squares
from bench.nests_bodies import SCORES, four, one, recurrence, relax, smith_waterman, smith_waterman_by_table, sor
from bench.planning_bodies import heat2
from bench.programs_bodies import one_colour
from bench.runner import Turn, benchmark, compared, must_equal, places, race, ratio
from bench.stencils_bodies import heat

#: A path that gains less in all its cases is a candidate to go (decision 23).
WORTH = 1.12
WITHOUT = "without it"


@tw.nest
def residual(r, A, i, j):
    r[i, j] = A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1] - 4 * A[i, j]


def small(shape, quick):
    """The same, or a small one."""
    return tuple(min(n, 96) for n in shape) if quick else shape


def maker(function):
    """What makes a case later: of a context, whether it is small, and the arguments. It gives a run, and its arrays."""
    return lambda *args, **more: lambda context, quick: function(context, quick, *args, **more)


@maker
def nest(context, quick, body, shape, dtype="f8", in_place=False, **more):
    """A nest over fields, or over NumPy arrays in place."""
    start = (np.arange(np.prod(extents := small(shape, quick))).reshape(extents) % 1013 * 1e-3).astype(dtype)
    made = lambda: start.copy() if in_place else tw.field(extents, dtype, start, context=context)
    given = {name: made() for name in body.arrays}
    return lambda: tw.run(body, **given, **more, context=context), list(given.values())


@maker
def align(context, quick, n, letters=0, keep="window"):
    """Alignment of random sequences, by a table of so many letters; 0: by comparing them."""
    (n,), rng, best = small((n,), quick), np.random.default_rng(1), {"best": tw.max("H")}
    a, b = rng.integers(0, letters or 4, (2, n), "i1")
    given = {name: tw.field((n + 1,) * 2, "i2", keep=keep, context=context) for name in "HEF"}
    given |= {"a": a, "b": b, **SCORES}
    body = smith_waterman_by_table if letters else smith_waterman
    if letters:
        given["score"] = rng.integers(-4, 6, (letters, letters)).astype("i2")
        del given["match"], given["mismatch"]
    return lambda: tw.run(body, **given, reduce=best, context=context).results["best"], []


@maker
def a_chain(context, quick, n):
    """A sweep and its residual."""
    extents = small((n, n), quick)
    A, r = (tw.field(extents, "f8", lambda i, j: (i + 3 * j) % 17, context=context) for _ in range(2))
    chain = tw.chain([tw.bind(relax, A=A, context=context), tw.bind(residual, r=r, A=A, context=context)])
    return chain.run, [A, r]


@maker
def pattern(context, quick, call, columns):
    """A pattern on a row of numbers."""
    M, size = np.arange(columns) % 1013 + float(context.rank), context.size
    out = None if call == "broadcast" else np.zeros(columns * size if call == "spread" else columns // size)
    given = {} if out is None else {"out": out}
    return lambda: getattr(tw.patterns, call)(M, **given, context=context), [M if out is None else out]


@maker
def halos(context, quick, shape, grid):
    """An exchange of a field's halos."""
    u = tw.field(small(shape, quick), halo=1, periodic=tuple(range(len(shape))), grid=grid, context=context)
    u.local[...] = context.rank
    return lambda: tw.exchange(u), [u.local]


#: Path, case, ranks, what makes it.
CASES = [
    ("windows", "alignment 2000² int16", 1, align(2000)),
    ("windows", "alignment 8000² int16", 1, align(8000)),
    ("windows", "alignment 8000² int16", 2, align(8000)),
    ("rows_together", "linear 64×64×4096 float32", 1, nest(one, (64, 64, 4096), "f4")),
    ("rows_together", "heat 1000×64 float32, 50 steps", 1, nest(heat2, (1000, 64), "f4", steps=50)),
    ("layers", "linear 100³ float32", 1, nest(one, (100, 100, 100), "f4")),
    ("layers", "linear 64×64×256 float32", 1, nest(one, (64, 64, 256), "f4")),
    ("simd_rows", "recurrence 1024² in place", 1, nest(recurrence, (1024, 1024), in_place=True)),
    ("simd_rows", "linear 64×64×1024 float32 in place", 1, nest(one, (64, 64, 1024), "f4", in_place=True)),
    ("wide_rows", "four arrays 64×64×256 float32", 1, nest(four, (64, 64, 256), "f4")),
    ("wide_rows", "four arrays 64×64×4096 float64", 1, nest(four, (64, 64, 4096))),
    ("wide_rows", "heat 300² float32, 200 steps", 1, nest(heat2, (300, 300), "f4", steps=200)),
    ("wide_rows", "linear 31×31×2048 float32", 1, nest(one, (31, 31, 2048), "f4")),
    ("wide_rows", "heat 256³ float32, 6 steps", 1, nest(heat, (256, 256, 256), "f4", steps=6)),
    ("residues", "one colour 1000² float64", 1, nest(one_colour, (1000, 1000), w=1.5, colour=0)),
    (
        "residues",
        "one colour 1000² float64 in place",
        1,
        nest(one_colour, (1000, 1000), in_place=True, w=1.5, colour=0),
    ),
    ("strips", "exp and sin, 1500² float64", 1, nest(functions, (1500, 1500))),
    ("strips", "exp and sin, 1500² float32", 1, nest(functions, (1500, 1500), "f4")),
    ("strips", "recurrence with exp, 1500² float64", 1, nest(dependent, (1500, 1500))),
    ("powers", "sum of squares, 500² float64", 1, nest(squares, (500, 500))),
    ("powers", "sum of squares, 2000² float32", 1, nest(squares, (2000, 2000), "f4")),
    ("powers", "logistic recurrence, 1000² float64", 1, nest(logistic, (1000, 1000), in_place=True)),
    ("permuted", "alignment 4000² int16, table 4×4", 1, align(4000, 4)),
    ("permuted", "alignment 4000² int16, table 24×24", 1, align(4000, 24)),
    ("row_check", "alignment 2000² int16, table 4×4", 1, align(2000, 4)),
    ("row_check", "alignment 2000² int16, table 24×24", 1, align(2000, 24)),
    ("row_check", "alignment 2000² int16, table 100×100", 1, align(2000, 100)),
    ("bests", "alignment 6000² int16", 1, align(6000)),
    ("bests", "alignment 2000² int16, all stored", 1, align(2000, keep="all")),
    ("skewed", "SOR 500² float64, 20 steps", 1, nest(sor, (500, 500), w=1.5, steps=20)),
    ("skewed", "linear 100³ float32", 1, nest(one, (100, 100, 100), "f4")),
    ("skewed", "linear 100³ float32", 2, nest(one, (100, 100, 100), "f4")),
    ("temporal_blocks", "SOR 4096² float64, 16 steps", 1, nest(sor, (4096, 4096), w=1.5, steps=16)),
    ("temporal_blocks", "heat 2000² float32, 40 steps", 1, nest(heat2, (2000, 2000), "f4", steps=40)),
    ("temporal_blocks", "SOR 2000² float64, 16 steps", 2, nest(sor, (2000, 2000), w=1.5, steps=16)),
    ("temporal_blocks", "heat 200² float32, 100 steps", 2, nest(heat2, (200, 200), "f4", steps=100)),
    ("aggregate", "SOR 4096² float64, 16 steps", 2, nest(sor, (4096, 4096), w=1.5, steps=16)),
    ("piggyback", "broadcast of 1 KB", 2, pattern("broadcast", 128)),
    ("piggyback", "spread of 64 bytes a rank", 2, pattern("spread", 8)),
    ("shared", "spread of 64 KB a rank", 2, pattern("spread", 1 << 13)),
    ("shared", "broadcast of 4 MB", 2, pattern("broadcast", 1 << 19)),
    ("shared", "halos of 128³, along the last axis", 2, halos((128, 128, 128), (1, 1, 2))),
    ("shared", "linear 64×64×1024 float32", 2, nest(one, (64, 64, 1024), "f4")),
    ("chain_layouts", "Gauss–Seidel and residual 1000²", 1, a_chain(1000)),
    ("chain_layouts", "Gauss–Seidel and residual 1000²", 2, a_chain(1000)),
    ("straight_combines", "multi-reduce of 64 KB", 2, pattern("multi_reduce", 1 << 13)),
    ("straight_combines", "multi-reduce of 4 MB", 2, pattern("multi_reduce", 1 << 19)),
    ("in_transport", "halos of 128³, along the last axis", 2, halos((128, 128, 128), (1, 1, 2))),
    ("in_transport", "halos of 1024², along the last axis", 2, halos((1024, 1024), (1, 2))),
]


def worker(names, quick):
    """[path, case, seconds by contender], on rank 0."""
    found = []
    for name, case, ranks, make in CASES:
        if ranks == tw.size and name in names:
            label = f"{case}, {units.count(ranks, 'rank')}"
            found.append([name, label, _raced(label, [_context(off) for off in ("", name)], make, quick)])
    return found if tw.rank == 0 else None


def _context(off):
    os.environ["TILEWAVE_WITHOUT"] = off
    try:
        return tw.Context(threads=1)
    finally:
        del os.environ["TILEWAVE_WITHOUT"]


def _raced(label, contexts, make, quick):
    """Seconds of each on the slowest rank, in turn."""
    runs, arrays = zip(*(make(context, quick) for context in contexts), strict=True)
    for _ in range(4):  # plans are final, and memory is there
        results = [run() for run in runs]
    for pair in zip(*arrays, strict=True):
        whole = [each.gather() if isinstance(each, tw.Field) else each for each in pair]
        if whole[0] is not None:
            must_equal(f"bench paths: {label}", dict(zip(("with", "without"), whole, strict=True)))
    if np.isscalar(results[0]):
        must_equal(f"bench paths: {label}", dict(zip(("with", "without"), results, strict=True)))
    turns = [Turn(name, run) for name, run in zip(("tilewave", WITHOUT), runs, strict=True)]
    left = race(contexts[0], turns, 2, **({} if quick else {"batch_s": 5e-3, "budget_s": 3.0}))
    return {one.name: one.seconds for one in left}


@benchmark("paths", __doc__, cases=_core.fast_paths, places=("1x1", "2x1"))
def paths(options):
    gains = {}
    for place in places(options):
        names = [name for name, _, ranks, _ in CASES if ranks == place.ranks and name in options.case]
        for name, case, times in place.call(__name__, names=names, quick=options.quick) if names else ():
            gains.setdefault(name, []).append(ratio(times[WITHOUT], times["tilewave"]))
            yield from compared(f"{name}: {case}", times, "ms")
    if low := [name for name, ratios in gains.items() if max(ratios) < WORTH]:
        print(f"gain less than {WORTH - 1:.0%} in every case here: {', '.join(low)}")
