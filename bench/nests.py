"""General nests against compiled plain loops, OpenMP, hand-jammed rows, parasail and the memory.

``tilewave bench nests [--case NAME] [--json FILE] [--quick]``; NAME: arrays, recurrence, gauss-seidel, alignment or
batches, several with commas. Results are compared bit for bit before anything is timed; contenders take turns in one
process.
"""

import argparse
import itertools
import math

import numpy as np
import tilewave as tw

from bench.nests_alignment import alignment
from bench.nests_arrays import arrays
from bench.nests_batches import batches
from bench.nests_bodies import gauss_seidel, recurrence
from bench.nests_plain import plain_loops
from bench.nests_race import compare, lanes, must_equal, race
from bench.results import publish, warn_of_load


def _in_place(case, nest, start, contenders):
    """Runs of a nest that gives the same however often it goes over one array; checked here.

    Ours: over a field, which stays in the storage that the plan wants, timed by its report; and with conversion
    over a NumPy array in place, which is taken there and back in every run, timed from outside.
    """
    results, runs = {}, {}
    for name, function in contenders.items():
        array = start.copy()
        function(array)
        results[name] = array
        runs[name] = lambda function=function, array=array: function(array)
    for count in (1, 2):
        context, name = lanes(count), f"tilewave, {count} lane{'s' * (count > 1)}"
        A = tw.field(start.shape, start.dtype, init=start, context=context)
        runs[name] = lambda A=A, context=context: tw.run(nest, A=A, context=context).measured.time_s
        runs[name]()
        results[name] = A.gather()
        name += ", NumPy array in place"
        B = start.copy()
        runs[name] = lambda B=B, context=context: (tw.run(nest, A=B, context=context), None)[1]
        runs[name]()
        results[name] = B
    must_equal(case, results)
    return runs


# --- cases ----------------------------------------------------------------------------------------


def _memory(plain, start, runs):
    """`x *= c` over as many bytes as an array has, and which run of ours each bounds."""
    side = math.isqrt(start.nbytes // 8)
    other = np.ones((side, side))
    bounds = {f"memory, {k}": lambda k=k: plain["update"](other, k) for k in (1, 2)}
    return bounds, {name: f"memory, {k}" for k in (1, 2) for name in runs if name.startswith(f"tilewave, {k} ")}


def recurrences(quick):
    """A[i,j] = A[i-1,j] + A[i,j-1] - A[i-1,j-1] against rows, OpenMP, rows jammed by hand, and memory."""
    rows, plain = [], plain_loops()
    for n in (256, 512) if quick else (1024, 2048, 8192):
        random = np.random.default_rng(1)
        start = np.zeros((n, n))
        start[0], start[:, 0] = random.random(n), random.random(n)
        names = {
            "plain loops, g++": "recurrence",
            "OpenMP 2, blocks 32x256": "recurrence_omp",
            "OpenMP 2, blocks 64x512": "recurrence_omp_long",
            "4 rows jammed by hand": "recurrence_jammed",
            "OpenMP 2, 4 rows jammed by hand": "recurrence_jammed_omp",
        }
        contenders = {name: plain[function] for name, function in names.items()} if plain else {}
        runs = _in_place(f"recurrence {n}", recurrence, start, contenders)
        limits = None
        if plain:
            bounds, limits = _memory(plain, start, runs)
            runs |= bounds
        times = race(runs, 2 if quick else 5 if n > 4096 else 11, each=1 if n > 4096 else 5)
        rows += compare(f"recurrence {n}x{n} f8", times, (n - 1) ** 2, limits)
    return rows


def gauss_seidel_sweeps(quick):
    """Sweeps over cubes, one of them within the third-level cache, against wavefronts in time written by hand."""
    rows, plain = [], plain_loops()
    for n, sweeps in ((24, 4),) if quick else ((120, 16), (300, 8)):
        start = 1e-3 * (np.arange(n**3) % 1013).reshape(n, n, n)
        results, runs, contenders = {}, {}, {}
        if plain:
            contenders["plain loops, g++"] = lambda u, sweeps=sweeps: plain["gauss_seidel"](u, sweeps)
        for together, threads in itertools.product((1, 2, 4), (1, 2)) if plain else ():
            name = f"{'OpenMP 2' if threads == 2 else 'one thread'}, wavefront by hand, {together} sweeps a thread"
            given = sweeps, together, threads
            contenders[name] = lambda u, given=given: plain["gauss_seidel_wavefront"](u, *given)
        for name, function in contenders.items():
            u = start.copy()
            runs[name] = lambda function=function, u=u: function(u)
            runs[name]()
            results[name] = u.copy()
        for count in (1, 2):
            context, name = lanes(count), f"tilewave, {count} lane{'s' * (count > 1)}"
            u = tw.field(start.shape, init=start, context=context)
            runs[name] = lambda u=u, context=context, sweeps=sweeps: (
                tw.run(gauss_seidel, u=u, steps=sweeps, context=context).measured.time_s
            )
            runs[name]()
            results[name] = u.gather()
        must_equal("Gauss-Seidel", results)
        times = race(runs, 1 if quick else 5)
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
    parser = argparse.ArgumentParser(prog="tilewave bench nests", description=__doc__.splitlines()[0])
    parser.add_argument("--case", default=",".join(CASES), help=f"of {', '.join(CASES)}; several with commas")
    options = parser.parse_args(list(args))
    chosen = options.case.split(",")
    if unknown := [name for name in chosen if name not in CASES]:
        raise SystemExit(f"bench nests: no case {unknown[0]!r}; there are: {', '.join(CASES)}")
    warn_of_load("nests")
    rows = []
    for name in chosen:
        rows += CASES[name](quick)
    publish("nests", rows, json_path)
