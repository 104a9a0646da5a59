"""General nests against compiled plain loops, OpenMP, hand-jammed rows, parasail and the memory.

``tilewave bench nests [--case NAME] [--json FILE] [--quick]``; NAME: block, array, arrays, recurrence, sor,
gauss-seidel, alignment, batches, chain, hosts (needs root) or compile, several with commas. Results are compared bit
for bit before anything is timed; contenders take turns in one process.
"""

import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tilewave as tw

from bench.cluster import cluster_tool, on_hosts
from bench.nests_alignment import alignment
from bench.nests_arrays import arrays
from bench.nests_batches import batches
from bench.nests_bodies import gauss_seidel, linear, recurrence, roots, sor
from bench.nests_chain import chains
from bench.nests_plain import numba_loops, plain_loops
from bench.nests_race import chart, compare, lanes, must_equal, race, rank_rows, skipped
from bench.results import on_ranks, publish, row, warn_of_load

RANKS = "bench.nests_ranks"


def _in_place(case, nest, start, contenders, counts, with_conversion):
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
    for count in counts:
        context, name = lanes(count), f"tilewave, {count} lane{'s' * (count > 1)}"
        A = tw.field(start.shape, start.dtype, init=start, context=context)
        runs[name] = lambda A=A, context=context: tw.run(nest, A=A, context=context).measured.time_s
        runs[name]()
        results[name] = A.gather()
        if with_conversion:
            name += ", NumPy array in place"
            B = start.copy()
            runs[name] = lambda B=B, context=context: (tw.run(nest, A=B, context=context), None)[1]
            runs[name]()
            results[name] = B
    must_equal(case, results)
    return runs


# --- cases ----------------------------------------------------------------------------------------


def _memory(plain, start, counts, runs):
    """`x *= c` over as many bytes as an array has, and which run of ours each bounds."""
    side = math.isqrt(start.nbytes // 8)
    other = np.ones((side, side))
    bounds = {f"memory, {k}": lambda k=k: plain["update"](other, k) for k in counts}
    return bounds, {name: f"memory, {k}" for k in counts for name in runs if name.startswith(f"tilewave, {k} ")}


def _sweeps(shape, counts, with_conversion, repeats, each=1):
    """The two 3-D bodies in float32 against plain loops by g++ and Numba, and the memory."""
    rows, plain, numba = [], plain_loops(), numba_loops()
    for nest in (linear, roots):
        label = f"{nest.name} {'x'.join(map(str, shape))} f4"
        contenders = {
            f"plain loops, {which}": found[nest.name] for which, found in (("g++", plain), ("Numba", numba)) if found
        }
        start, limits = np.ones(shape, "f4"), None
        runs = _in_place(label, nest, start, contenders, counts, with_conversion)
        if plain:
            bounds, limits = _memory(plain, start, counts, runs)
            runs |= bounds
        rows += compare(label, race(runs, repeats, each), np.prod(np.array(shape) - 1), limits)
    return rows


def block(quick):
    """One tile of 4 MB, the field stored skewed."""
    return _sweeps((64, 64, 256), (1,), False, 3 if quick else 21, each=2 if quick else 10)


def array(quick):
    """A whole array, conversion included and not, on one and two lanes."""
    return _sweeps((64, 64, 1024 if quick else 16384), (1, 2), True, 2 if quick else 7)


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
        runs = _in_place(f"recurrence {n}", recurrence, start, contenders, (1, 2), True)
        limits = None
        if plain:
            bounds, limits = _memory(plain, start, (1, 2), runs)
            runs |= bounds
        times = race(runs, 2 if quick else 5 if n > 4096 else 11, each=1 if n > 4096 else 5)
        rows += compare(f"recurrence {n}x{n} f8", times, (n - 1) ** 2, limits)
    return rows


def over_relaxation(quick):
    """Sweeps of SOR as one nest in time, against plain sweeps, and sweeps that follow each other by OpenMP."""
    n, steps, plain = *((256, 8) if quick else (2048, 20)), plain_loops()
    start, f = 1e-3 * (np.arange(n * n) % 1013).reshape(n, n), np.full((n, n), 1e-6)
    results, runs = {}, {}
    for name, function in {"plain loops, g++": "sor", "OpenMP 2, sweeps pipelined": "sor_omp"}.items():
        if plain:
            u = start.copy()
            runs[name] = lambda function=function, u=u: plain[function](u, f, steps, 1.9)
            runs[name]()
            results[name] = u.copy()
    for count in (1, 2):
        context, name = lanes(count), f"tilewave, {count} lane{'s' * (count > 1)}"
        u, g = (tw.field((n, n), "f8", init=init, context=context) for init in (start, f))
        runs[name] = lambda u=u, g=g, context=context: (
            tw.run(sor, u=u, f=g, w=1.9, steps=steps, context=context).measured.time_s
        )
        runs[name]()
        results[name] = u.gather()
    must_equal("SOR", results)
    return compare(f"SOR {n}x{n} f8, {steps} sweeps", race(runs, 1 if quick else 5), steps * (n - 2) ** 2)


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


def hosts(quick):
    """SOR on two hosts at 1 Gb/s: pipelined sweeps, and one exchange a sweep."""
    if os.geteuid() != 0:
        return skipped("hosts", "making two hosts needs root")
    n, steps = (256, 8) if quick else (4096, 100)
    with cluster_tool("nests").Cluster(hosts=2, rate="1gbit", name="twnests") as cluster:
        arguments = {"what": "sor", "n": n, "steps": steps, "repeats": 1 if quick else 5}
        found = on_ranks(RANKS, 2, arguments, runner=on_hosts(cluster))
    return rank_rows(f"SOR {n}x{n} f8, {steps} sweeps, hosts at 1 Gb/s", found["times"], steps * (n - 2) ** 2)


COMPILE = """
import json, time, numpy as np, tilewave as tw
from bench import nests_bodies as bodies
seconds = {}
def planned(nest, **arguments):
    begin = time.perf_counter()
    tw.plan(nest, **arguments)
    return time.perf_counter() - begin
planned(bodies.recurrence, A=np.ones((9, 9)))  # the compiler is loaded, the context made
seconds["roots"] = planned(bodies.roots, A=np.ones((9, 9, 9), "f4"))
seconds["sor"] = planned(bodies.sor, u=np.ones((9, 9)), f=np.ones((9, 9)), w=1.9, steps=9)
a = np.ones(8, "i1")
seconds["smith_waterman"] = planned(bodies.smith_waterman, a=a, b=a, **{n: np.zeros((9, 9), "i2") for n in "HEF"},
                                    **bodies.SCORES)
print(json.dumps(seconds))
"""


def compiling(quick):
    """Seconds of the first plan of a body, which compiles it, in new processes: the cache empty, and used."""
    rows, found = [], {"cold": [], "cached": []}
    for _ in range(1 if quick else 5):
        with tempfile.TemporaryDirectory() as folder:
            for turns in found.values():
                done = subprocess.run(
                    [sys.executable, "-c", COMPILE],
                    env={**os.environ, "TILEWAVE_CACHE_DIR": folder},
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=300,
                )
                if done.returncode:
                    raise SystemExit(f"bench nests: compile: {done.stderr}")
                turns.append(json.loads(done.stdout))
    for kind, limit in (("cold", 2.0), ("cached", 0.05)):
        for name in found[kind][0]:
            seconds = [turn[name] for turn in found[kind]]
            rows.append(
                row(
                    f"compile {name}",
                    f"{kind}, limit {limit} s",
                    seconds,
                    "s",
                    fraction_of_limit=statistics.median(seconds) / limit,
                )
            )
    return rows


CASES = {
    "block": block,
    "array": array,
    "arrays": arrays,
    "recurrence": recurrences,
    "sor": over_relaxation,
    "gauss-seidel": gauss_seidel_sweeps,
    "alignment": alignment,
    "batches": batches,
    "chain": chains,
    "hosts": hosts,
    "compile": compiling,
}


def nests(json_path=None, quick=False, args=()):
    """General nests against compiled plain loops, OpenMP, parasail and the memory."""
    parser = argparse.ArgumentParser(prog="tilewave bench nests", description=__doc__.splitlines()[0])
    parser.add_argument("--case", default=",".join(CASES), help=f"of {', '.join(CASES)}; several with commas")
    parser.add_argument("--png", help="file of the chart (default: as the JSON's, or nests.png)")
    options = parser.parse_args(list(args))
    chosen = options.case.split(",")
    if unknown := [name for name in chosen if name not in CASES]:
        raise SystemExit(f"bench nests: no case {unknown[0]!r}; there are: {', '.join(CASES)}")
    warn_of_load("nests")
    rows = []
    for name in chosen:
        rows += CASES[name](quick)
    publish("nests", rows, json_path)
    png = options.png or (Path(json_path).with_suffix(".png") if json_path else "nests.png")
    if chart(rows, png):
        print(f"chart: {png}")
