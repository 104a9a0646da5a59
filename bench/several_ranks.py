"""What the ranks of `bench several` do: ours on all ranks, plain loops on the first one, in turn."""

import numpy as np
import tilewave as tw

from bench.dense import Turn, race
from bench.several_bodies import BODIES, start
from bench.several_plain import by_numba


def worker(name, n, steps, threads, repeats):
    """Times of each contender, and our plans; on rank 0."""
    context = tw.Context(threads=threads)
    turns = [*_ours(context, name, n, steps), *_plain(context, name, n, steps)]
    found = [one.record() for one in race(context, turns, repeats)]
    _compare(name, [one for one in turns if one.results])
    return {"contenders": found} if context.rank == 0 else None


def _ours(context, name, n, steps):
    nests, names, periodic = BODIES[name]

    def fields():
        values = start(name, n)
        return {key: tw.field(value, context=context) for key, value in zip(names, values, strict=True)}

    def bound(arrays):
        return [
            tw.bind(nest, **{key: arrays[key] for key in nest.arrays}, periodic=periodic, context=context)
            for nest in nests
        ]

    chained, turned = fields(), fields()
    chain, in_turn = tw.chain(bound(chained)), bound(turned)
    yield _turn("tilewave, chain", lambda: chain.run(times=steps), chained, lambda: (chain.explain().split("\n")[0], 0))
    yield _turn("tilewave, in turn", lambda: [nest.run() for _ in range(steps) for nest in in_turn], turned)


def _turn(label, run, arrays, plan=None):
    """A contender of ours; what it has computed after the first run is compared."""
    results = {}
    one = Turn(label, run, (1,), check=lambda: results.update(after=[a.gather() for a in arrays.values()]), plan=plan)
    one.results = results
    return one


def _plain(context, name, n, steps):
    periodic = BODIES[name][2]
    for label, run in by_numba(name).items():
        arrays, results = start(name, n), {}

        def once(run=run, arrays=arrays):
            if context.rank == 0:
                run(arrays, steps, periodic)

        def check(arrays=arrays, results=results):
            results.update(after=[a.copy() for a in arrays])

        one = Turn(label, once, (1,), check=check, family=label.partition(",")[0])
        one.results = results
        yield one


def _compare(name, turns):
    """All must have computed the same, bit for bit."""
    first = turns[0].results["after"]
    for one in turns[1:]:
        for a, b in zip(first, one.results["after"], strict=True):
            if a is not None and not np.array_equal(a, b):
                raise SystemExit(f"bench several: {name}: {one.name!r} has other values")
