"""Programs with conditions, strides and recurrences against the same plain loops under Numba, which has one core.

``tilewave bench bodies [--case NAME,...] [--where 1x1,2x1] [--json FILE] [--quick]``; cases: sor (over-relaxation where
a mask is 0), red-black (a colour a nest), sn (transport sweeps of eight octants, angles and the scalar flux), "sn in
cells", solves (with incomplete Cholesky factors), cg (conjugate gradients with these). Contenders take turns on the
same ranks; results are compared bit for bit, those of cg but for the order of its sums.
"""

import functools
import itertools

import numpy as np
import tilewave as tw
from tilewave import units

from bench import programs_bodies as nests
from bench.contenders import module, plain
from bench.programs_bodies import loops
from bench.runner import benchmark, compared, must_equal, places, raced

#: Points along each side: of arrays that fit into a second-level cache, and of larger ones.
SIZES = {
    "sor": (400, 1000),
    "red-black": (400, 1000),
    "sn": (32, 64),
    "sn in cells": (32,),
    "solves": (200, 500),
    "cg": (200, 500),
}
OURS, THEIRS = "tilewave", "plain loops, Numba, one core"
#: Sweeps, colours or solves in one run of a program.
SWEEPS, ANGLES, ITERATIONS = 50, 16, 20
OCTANTS = list(itertools.product((False, True), repeat=3))
FACES = ("fx", "fy", "fz")


def worker(case, n, repeats):
    """Times of one case, and its points; on rank 0."""
    world = tw.Context(threads=1)
    make, points = CASES[case]
    programs = {OURS: make(n, world)}
    if module("numba"):
        programs[THEIRS] = make(n, None) if world.rank == 0 else (lambda: None, lambda: None)
    times = raced(world, {name: run for name, (run, _) in programs.items()}, repeats)
    results = {name: result() for name, (_, result) in programs.items()}
    if world.rank:
        return None
    if case != "cg":
        must_equal(f"bench bodies: {case}", results)
    elif not np.allclose(*(list(results.values()) * 2)[:2], rtol=1e-9, atol=1e-9):
        raise SystemExit("bench bodies: cg: the solutions differ")
    return {"times": times, "points": points(n)}


def _random(shape, seed=1):
    return np.random.default_rng(seed).random(shape)


def _fields(context, **arrays):
    return {name: tw.field(array.shape, array.dtype, init=array, context=context) for name, array in arrays.items()}


def _land(n):
    """An island and a spit of land, in a third of the points."""
    x, y = np.arange(n)[:, None] / n, np.arange(n) / n
    return (((x - 0.4) ** 2 + (y - 0.5) ** 2 < 0.09) | ((x > 0.75) & (x < 0.8) & (y > 0.25))).astype("i1")


def _program(context, arrays, steps, times, result, first=()):
    """A chain of nests that is run some times, or their plain loops; where the result is.

    Parameters
    ----------
    steps, first : sequence of tuple
        Nest, its numbers, how it is bound, its plain loops; `first` is run once, before.
    """
    if context is None:
        calls = [
            [
                functools.partial(loops, *map(arrays.get, nest.arrays), *numbers.values())
                for nest, numbers, _, loops in some
            ]
            for some in (first, steps)
        ]
        _ = [call() for call in calls[0]]
        return lambda: [call() for _ in range(times) for call in calls[1]], lambda: arrays[result]
    fields = _fields(context, **arrays)
    chains = [
        tw.chain(
            [
                tw.bind(nest, **{name: fields[name] for name in nest.arrays}, **numbers, **how, context=context)
                for nest, numbers, how, _ in some
            ]
        )
        for some in (first, steps)
        if some
    ]
    if first:
        chains[0].run()
    return lambda: chains[-1].run(times=times), fields[result].gather


def _sor(n, context):
    arrays = {"u": _random((n, n)), "f": 1e-3 * _random((n, n), 2), "land": _land(n)}
    step = nests.sor_over_land, {"w": 1.7}, {}, loops(nests.sor_over_land)
    return _program(context, arrays, [step], SWEEPS, "u")


def _red_black(n, context):
    arrays = {"u": _random((n, n)), "f": 1e-3 * _random((n, n), 2)}
    each_second = "j in range(1 + (i + 1 + colour) % 2, len(u) - 1, 2)"
    points = plain(nests.any_colour, "i in range(1, len(u) - 1)", each_second, more="colour")
    steps = [(nests.one_colour, {"w": 1.7, "colour": colour}, {}, points) for colour in (0, 1)]
    return _program(context, arrays, steps, SWEEPS, "u")


def _directions():
    """Cosines and weights of an octant's angles."""
    mu, eta, xi = 0.1 + 0.8 * _random((3, ANGLES), 5)
    return {"mu": mu, "eta": eta, "xi": xi, "weight": _random(ANGLES, 6) / ANGLES}


def _cells(n):
    return {"phi": np.zeros((n, n, n)), "q": _random((n, n, n), 3), "sigma": 1 + _random((n, n, n), 4)}


def _sn(n, context):
    """Face fluxes lack the direction of their faces, so all octants are one nest."""
    if context is None:
        return _plain_sn(n, OCTANTS)
    faces = _fields(context, **{name: np.zeros((n, n, ANGLES)) for name in FACES})
    fields, bounds = _fields(context, **_cells(n)), []
    for down in OCTANTS:
        bounds += [tw.bind(nests.without_flux, f=face, context=context) for face in faces.values()]
        given = {"reverse": tuple(itertools.compress("ijk", down)), "context": context}
        bounds.append(tw.bind(nests.faces_alone, **fields, **faces, **_directions(), **given))
    return tw.chain(bounds).run, fields["phi"].gather


def _sn_in_cells(n, context):
    """Every cell has face fluxes, with a layer around them that has none; one octant, as often as there are octants."""
    if context is None:
        return _plain_sn(n, OCTANTS[:1] * 8)
    cells = {name: np.pad(array, ((1, 0),) * 3) for name, array in _cells(n).items()}
    faces = {name: np.zeros((n + 1, n + 1, n + 1, ANGLES)) for name in FACES}
    fields = _fields(context, **cells, **faces)
    chain = tw.chain([tw.bind(nests.faces_in_cells, **fields, **_directions(), context=context)])

    def result():
        phi = fields["phi"].gather()
        return None if phi is None else phi[1:, 1:, 1:]

    return lambda: chain.run(times=8), result


def _plain_sn(n, octants):
    cells, sweep = _cells(n), module("numba").njit(nests.octant)
    flux = [np.zeros(shape) for shape in ((n, n, ANGLES), (n, ANGLES), (ANGLES,))]
    given = cells["phi"], *flux, cells["q"], cells["sigma"], tuple(_directions().values())
    return lambda: [sweep(*given, down) for down in octants], lambda: cells["phi"]


def _grid(n, names):
    """The coefficients of a 5-point operator that vary, a right-hand side, which are 0 on the rim; further arrays."""
    cx, cy, rim = (0.5 + _random((n, n), seed) for seed in (7, 8, 9))
    right, d = np.zeros((n, n)), np.ones((n, n))
    right[1:-1, 1:-1] = rim[1:-1, 1:-1]
    d[:-1, :-1] = cx[:-1, :-1] + cx[1:, :-1] + cy[:-1, :-1] + cy[:-1, 1:] + 1e-3
    return {"cx": cx, "cy": cy, "d": d, "b": right, **{name: np.zeros((n, n)) for name in names}}


def _solves(n, context):
    arrays, over = _grid(n, "eyz"), {"over": dict.fromkeys("ij", (1, n - 1))}
    arrays["r"] = arrays.pop("b")
    pivots, down, up = (
        (nest, {}, over | how, loops(nest))
        for nest, how in ((nests.pivots, {}), (nests.forward, {}), (nests.backward, {"reverse": ("i", "j")}))
    )
    return _program(context, arrays, [down, up], ITERATIONS, "z", first=[pivots])


def _cg(n, context):
    c = _grid(n, "exrpqyz")
    if context is None:
        return _plain_cg(c)
    c = _fields(context, **c)
    given = {"over": dict.fromkeys("ij", (1, n - 1)), "plan": {"grid": (context.size, 1), "storage": "plain"}}

    def bound(nest, **more):
        return tw.bind(nest, **{name: c[name] for name in nest.arrays}, **given, **more, context=context)

    bound(nests.pivots).run()
    start = bound(nests.begin)
    product = bound(nests.product, reduce={"pq": tw.dot("p", "q")})
    update = bound(nests.update, alpha=0.0, reduce={"r": tw.norm("r")})
    solve = tw.chain([bound(nests.forward), bound(nests.backward, reverse=("i", "j"))])
    direction = bound(nests.direction, beta=0.0)

    def run():
        start.run()
        before = np.inf
        for _ in range(ITERATIONS):
            solve.run()
            rz = tw.dot(c["r"], c["z"])
            direction.run(beta=rz / before)
            update.run(alpha=rz / product.run().results["pq"])
            before = rz

    return run, c["x"].gather


def _plain_cg(c):
    def bound(nest, **sums):
        function, arrays = loops(nest, **sums), [c[name] for name in nest.arrays]
        return lambda *more: function(*arrays, *more)

    bound(nests.pivots)()
    forward, direction = bound(nests.forward), bound(nests.direction)
    product = bound(nests.product, total="p[i, j] * q[i, j]")
    update = bound(nests.update, total="r[i, j] * r[i, j]")
    up = loops(nests.backward, total="r[i, j] * z[i, j]", more="r")

    def run():
        c["x"][:], c["p"][:], c["r"][:] = 0.0, 0.0, c["b"]
        before = np.inf
        for _ in range(ITERATIONS):
            forward()
            rz = up(c["z"], c["y"], c["cx"], c["cy"], c["e"], c["r"])
            direction(rz / before)
            update(rz / product())
            before = rz

    return run, lambda: c["x"]


#: By case: the program, and what it computes in one run: points, of colours those of a sweep.
CASES = {
    "sor": (_sor, lambda n: SWEEPS * (n - 2) ** 2),
    "red-black": (_red_black, lambda n: SWEEPS * (n - 2) ** 2),
    "sn": (_sn, lambda n: 8 * ANGLES * n**3),
    "sn in cells": (_sn_in_cells, lambda n: 8 * ANGLES * n**3),
    "solves": (_solves, lambda n: 2 * ITERATIONS * (n - 2) ** 2),
    "cg": (_cg, lambda n: ITERATIONS * (n - 2) ** 2),
}


@benchmark("bodies", __doc__, cases=SIZES, places=("1x1", "2x1"), repeats=7)
def bodies(options):
    for name in options.case:
        solid = name.startswith("sn")
        for n in ((6 if solid else 40),) if options.quick else SIZES[name]:
            for place in places(options):
                found = place.call(__name__, case=name, n=n, repeats=options.repeats)
                label = f"{name} {'x'.join([str(n)] * (3 if solid else 2))} f8, {units.count(place.ranks, 'rank')}"
                yield from compared(label, found["times"], "ns/point", found["points"])
