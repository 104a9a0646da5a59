"""Several nests in each time step: shallow water, Yee's scheme, elastic waves, against plain loops fused by hand.

``tilewave bench several [--where NAME,...] [--case NAME,...] [--json FILE] [--quick]``; NAME: 1x1, 1x2, 2x1 (ranks x
threads here), or HOSTS@RATE. Plain loops by Numba run on one core: of in turn and fused by hand the faster one counts.
Ratios are Numba's time over ours. All values are compared bit for bit.
"""

import numpy as np
import tilewave as tw

from bench.cluster import at_place, place_option, places
from bench.dense import Turn, race
from bench.results import compared, on_ranks, parser_of, publish
from bench.several_bodies import BODIES, start
from bench.several_plain import by_numba

PLACES = ("1x1", "1x2", "2x1")
NAMES = ("shallow water", "shallow water, periodic", "Yee", "elastic waves")
SIZES = ((500, 100), (1000, 40))


def worker(name, n, steps, threads, repeats):
    """Times of each contender, and our plans; on rank 0."""
    context = tw.Context(threads=threads)
    turns = [*_ours(context, name, n, steps), *_plain(context, name, n, steps)]
    found = [one.record() for one in race(context, turns, repeats)]
    _compare(name, turns)
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
    return Turn(label, run, (1,), check=lambda: [a.gather() for a in arrays.values()], plan=plan)


def _plain(context, name, n, steps):
    periodic = BODIES[name][2]
    for label, run in by_numba(name).items():
        arrays = start(name, n)

        def once(run=run, arrays=arrays):
            if context.rank == 0:
                run(arrays, steps, periodic)

        check = lambda arrays=arrays: [a.copy() for a in arrays]
        yield Turn(label, once, (1,), check=check, family=label.partition(",")[0])


def _compare(name, turns):
    """All must have computed the same, bit for bit."""
    for one in turns[1:]:
        for a, b in zip(turns[0].after, one.after, strict=True):
            if a is not None and not np.array_equal(a, b):
                raise SystemExit(f"bench several: {name}: {one.name!r} has other values")


def several(json_path=None, quick=False, args=()):
    """Time steps of several nests on one lane, two lanes and two ranks, against plain loops."""
    parser = parser_of("several", __doc__)
    place_option(parser, PLACES)
    parser.add_argument("--case", default="", help="only cases that begin so, as in Yee; several with semicolons")
    parser.add_argument("--repeats", type=int, default=7, help="turns (default 7)")
    options = parser.parse_args(list(args))
    rows = []
    for where in places(options.where, PLACES, "several"):
        with at_place(where, "several") as place:
            for n, steps in ((40, 3),) if quick else SIZES:
                for name in NAMES:
                    if not name.startswith(tuple(options.case.split(";"))):
                        continue
                    arguments = {"name": name, "n": n, "steps": steps, "threads": place.threads}
                    arguments["repeats"] = 1 if quick else options.repeats
                    found = on_ranks(__name__, place.ranks, arguments, runner=place.start)
                    times = {one["name"]: one["seconds"] for one in found["contenders"]}
                    rows += compared(f"{name} {n}^2, {where}", times, lambda s, steps=steps: 1e3 * s / steps, "ms")
    publish("several", rows, json_path)
