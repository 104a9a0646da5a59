"""Several nests in each time step: shallow water, Yee's scheme, elastic waves, against plain loops fused by hand.

``tilewave bench several [--where NAME,...] [--case NAME,...] [--json FILE] [--quick]``; NAME: 1x1, 1x2, 2x1 (ranks x
threads here). Plain loops by Numba run on one core: of in turn and fused by rows the faster one counts. Ratios are
Numba's time over ours. All values are compared bit for bit.
"""

import tilewave as tw

from bench.contenders import compiled, plain
from bench.runner import Turn, benchmark, compared, must_equal, places, race
from bench.several_bodies import BODIES, start

SIZES = ((500, 100), (1000, 40))


def worker(name, n, steps, threads, repeats):
    """Times of each contender; on rank 0."""
    context = tw.Context(threads=threads)
    turns = [*_ours(context, name, n, steps), *_plain(context, name, n, steps)]
    left = race(context, turns, repeats)
    for part in range(len(BODIES[name][0])):
        must_equal(
            f"bench several: {name}", {one.name: one.after[part] for one in turns} if context.rank == 0 else {0: 0}
        )
    return {one.name: one.seconds for one in left} if context.rank == 0 else None


def _ours(context, name, n, steps):
    names, periodic, nests = BODIES[name]

    def bound(check):
        arrays = {key: tw.field(value, context=context) for key, value in zip(names, start(name, n), strict=True)}
        check += [lambda: [a.gather() for a in arrays.values()]]
        return [
            tw.bind(nest, **{key: arrays[key] for key in nest.arrays}, periodic=periodic, context=context)
            for nest, *_ in nests
        ]

    checks = []
    chain, in_turn = tw.chain(bound(checks)), bound(checks)
    yield Turn("tilewave, chain", lambda: chain.run(times=steps), check=checks[0])
    yield Turn("tilewave, in turn", lambda: [nest.run() for _ in range(steps) for nest in in_turn], check=checks[1])


def _plain(context, name, n, steps):
    """Loops of each nest in turn, and of all by rows, one after the other; none without Numba."""
    names, _, nests = BODIES[name]
    rows = {f"row{k}": plain(nest, f"j in range({j0}, {nest.arrays[0]}.shape[1] + {j1})")
            for k, (nest, _, _, j0, j1, _) in enumerate(nests)}  # fmt: skip
    if None in rows.values():
        return
    in_turn, fused = [], [f"  for i in range(-1, len({names[0]}) + 1):"]
    for row, (nest, first, end, _, _, behind) in zip(rows, nests, strict=True):
        call, n_rows = f"{row}({', '.join(nest.arrays)}", f"len({names[0]})"
        in_turn += [f"  for i in range({first}, {n_rows} + {end}):", f"   {call}, i)"]
        fused += [f"   if {first} <= i - {behind} < {n_rows} + {end}:", f"    {call}, i - {behind})"]
    for label, lines in (("Numba, in turn", in_turn), ("Numba, fused", fused)):
        run, arrays = compiled(["for _ in range(steps):", *lines], [*names, "steps"], rows), start(name, n)
        once = lambda run=run, arrays=arrays: run(*arrays, steps) if context.rank == 0 else None
        yield Turn(label, once, check=lambda arrays=arrays: [a.copy() for a in arrays], family="Numba")


@benchmark("several", __doc__, cases=BODIES, places=("1x1", "1x2", "2x1"), repeats=7)
def several(options):
    for place in places(options):
        for n, steps in ((40, 3),) if options.quick else SIZES:
            for name in options.case:
                given = {"name": name, "n": n, "steps": steps, "threads": place.threads}
                times = place.call(__name__, **given, repeats=options.repeats)
                yield from compared(f"{name} {n}^2, {place.name}", times, "ms", steps)
