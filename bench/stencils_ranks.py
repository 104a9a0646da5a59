"""What the ranks of `bench stencils` do: ours, and on one rank plain loops by g++ in turn."""

import ctypes

import numpy as np
import tilewave as tw

from bench.dense import Turn, race
from bench.nests_plain import compiled
from bench.stencils_bodies import STENCILS, start

#: Choices of each name; without temporal tiling a plan takes one time step at a time.
OURS = {"tilewave": {}, "tilewave, a step at a time": {"temporal_block": 1}}
FLAGS = "-std=c++17 -O3 -march=native -ffast-math -fopenmp -shared -fPIC".split()
#: Rows of blocks along the outer two loops, of which the fastest counts; 0: all rows.
PLAIN_BLOCKS = ((1, 0), (8, 8), (16, 16), (64, 8))
#: Relative to the values: the order of operations differs.
TOLERANCE = 1e-3


def worker(name, n, steps, threads, repeats, plain):
    """Times of each contender, and our plans; on rank 0."""
    context = tw.Context(threads=threads)
    nest, reach = STENCILS[name]
    turns = [_ours(context, nest, n, steps, label, choices) for label, choices in OURS.items()]
    if plain:
        turns += _plain(name, n, steps, threads)
    found = [one.record() for one in race(context, turns, repeats)]
    if plain:
        _compare(name, turns)
    return {"contenders": found, "points": (n - 2 * reach) ** 3 * steps} if context.rank == 0 else None


def _ours(context, nest, n, steps, label, choices):
    u = tw.field((n, n, n), "f4", init=start, context=context)
    bound = tw.bind(nest, u=u, steps=steps, context=context, plan=choices)
    results = {}

    def run():
        results["report"] = bound.run()

    def check():
        results["after"] = u.gather()

    one = Turn(
        label, run, bound.plan.grid, check=check, plan=lambda: (bound.plan._short(), bound.plan.predicted.time_s)
    )
    one.results = results
    return one


def _plain(name, n, steps, threads):
    """Plain loops with blocks of several shapes; none without g++."""
    library = compiled("stencils_plain.cpp", FLAGS)
    if library is None:
        return []
    function = getattr(library, name)
    function.restype = None
    first = np.fromfunction(start, (n, n, n), dtype="i4").astype("f4")
    buffers = [first.copy(), first.copy()]
    turns = []
    for height, width in PLAIN_BLOCKS:
        shape = [ctypes.c_int64(v or n) for v in (n, steps, height, width)]
        results = {}

        def run(shape=shape):
            function(*(ctypes.c_void_p(b.ctypes.data) for b in buffers), *shape, ctypes.c_int(threads))

        def check(results=results):
            results["after"] = buffers[steps % 2].copy()

        def ready():
            for buffer in buffers:
                buffer[...] = first

        one = Turn(f"g++, blocks of {height} x {width or n} rows", run, (1,), ready, check, family="g++")
        one.results = results
        turns.append(one)
    return turns


def _compare(name, turns):
    """All must have computed the same, but for the order of operations."""
    first, *others = (one.results.pop("after") for one in turns)
    for one, values in zip(turns[1:], others, strict=True):
        if first is not None and not np.allclose(first, values, rtol=TOLERANCE, atol=TOLERANCE):
            raise SystemExit(f"bench stencils: {name}: {one.name!r} has other values")
