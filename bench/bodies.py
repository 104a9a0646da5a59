"""Programs with conditions, strides and recurrences against the same plain loops under Numba, which has one core.

``tilewave bench bodies [--case NAME] [--ranks 1,2] [--json FILE] [--quick]``; NAME: sor (over-relaxation where a mask
is 0), red-black (a colour a nest), sn (transport sweeps of eight octants, angles and the scalar flux), "sn in cells",
solves (with incomplete Cholesky factors) or cg (conjugate gradients with these), several with commas. Contenders take
turns on the same ranks; results are compared bit for bit, those of cg but for the order of its sums.
"""

import functools
import itertools

import numpy as np
import tilewave as tw

from bench import programs_bodies as nests
from bench.dense import timed
from bench.nests_race import race
from bench.numba_bodies import loops
from bench.results import compared, on_ranks, parser_of, publish, warn_of_load

#: Points along each side: of arrays that fit into a second-level cache, and of larger ones.
SIZES = {
    "sor": (400, 1000),
    "red-black": (400, 1000),
    "sn": (32, 64),
    "sn in cells": (32,),
    "solves": (200, 500),
    "cg": (200, 500),
}
QUICK = {"sn": 6, "sn in cells": 6}

OURS, THEIRS = "tilewave", "plain loops, Numba, one core"
#: Sweeps, colours or solves in one run of a program.
SWEEPS, ANGLES, ITERATIONS = 50, 16, 20
#: Relative difference of results that are sums in another order.
TOLERANCE = 1e-9


def worker(case, n, repeats):
    """Times of one case, the first turn not counted; on rank 0."""
    world = tw.Context(threads=1)
    make, points = CASES[case]
    programs = {OURS: make(n, world)}
    if loops():
        programs[THEIRS] = make(n, None) if world.rank == 0 else (lambda: None, lambda: None)
    times = race({name: functools.partial(timed, world, run) for name, (run, _) in programs.items()}, repeats)
    results = {name: result() for name, (_, result) in programs.items()}
    if world.rank:
        return None
    if len(results) == 2:
        _compare(case, *results.values())
    return {"times": times, "points": points(n)}


def _compare(case, ours, theirs):
    if case == "cg" and not np.allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE):
        raise SystemExit("bench bodies: cg: the solutions differ")
    if case != "cg" and not np.array_equal(ours, theirs):
        raise SystemExit(f"bench bodies: {case}: the results are not equal bit for bit")


def _random(shape, seed=1):
    return np.random.default_rng(seed).random(shape)


def _fields(context, **arrays):
    return {name: tw.field(array.shape, array.dtype, init=array, context=context) for name, array in arrays.items()}


def _land(n):
    """An island and a spit of land, in a third of the points."""
    x, y = np.arange(n)[:, None] / n, np.arange(n) / n
    return (((x - 0.4) ** 2 + (y - 0.5) ** 2 < 0.09) | ((x > 0.75) & (x < 0.8) & (y > 0.25))).astype("i1")


def _sor(n, context):
    arrays = {"u": _random((n, n)), "f": 1e-3 * _random((n, n), 2), "land": _land(n)}
    if context is None:
        return lambda: loops()["sor"](*arrays.values(), 1.7, SWEEPS), lambda: arrays["u"]
    fields = _fields(context, **arrays)
    chain = tw.chain([tw.bind(nests.sor_over_land, **fields, w=1.7, context=context)])
    return lambda: chain.run(times=SWEEPS), fields["u"].gather


def _red_black(n, context):
    arrays = {"u": _random((n, n)), "f": 1e-3 * _random((n, n), 2)}
    if context is None:
        return lambda: loops()["red_black"](*arrays.values(), 1.7, SWEEPS), lambda: arrays["u"]
    fields = _fields(context, **arrays)
    chain = tw.chain([tw.bind(nests.one_colour, **fields, w=1.7, colour=c, context=context) for c in (0, 1)])
    return lambda: chain.run(times=SWEEPS), fields["u"].gather


def _directions():
    """Cosines and weights of an octant's angles."""
    mu, eta, xi = 0.1 + 0.8 * _random((3, ANGLES), 5)
    return {"mu": mu, "eta": eta, "xi": xi, "weight": _random(ANGLES, 6) / ANGLES}


def _sn(n, context):
    """Face fluxes lack the direction of their faces, so all octants are one nest."""
    cells, octants = _cells(n), list(itertools.product((False, True), repeat=3))
    if context is None:
        return _plain_sn(cells, octants)
    faces = _fields(context, **{name: np.zeros((n, n, ANGLES)) for name in ("fx", "fy", "fz")})
    fields, bounds = _fields(context, **cells), []
    for down in octants:
        bounds += [tw.bind(nests.without_flux, f=face, context=context) for face in faces.values()]
        given = {"reverse": tuple(itertools.compress("ijk", down)), "context": context}
        bounds.append(tw.bind(nests.faces_alone, **fields, **faces, **_directions(), **given))
    return tw.chain(bounds).run, fields["phi"].gather


def _sn_in_cells(n, context):
    """Every cell has face fluxes, with a layer around them that has none; one octant, as often as there are octants."""
    cells, octants = _cells(n), [(False, False, False)] * 8
    if context is None:
        return _plain_sn(cells, octants)
    cells = {name: np.pad(array, ((1, 0),) * 3) for name, array in cells.items()}
    faces = {name: np.zeros((n + 1, n + 1, n + 1, ANGLES)) for name in ("fx", "fy", "fz")}
    fields = _fields(context, **cells, **faces)
    chain = tw.chain([tw.bind(nests.faces_in_cells, **fields, **_directions(), context=context)])

    def result():
        phi = fields["phi"].gather()
        return None if phi is None else phi[1:, 1:, 1:]

    return lambda: chain.run(times=len(octants)), result


def _cells(n):
    return {"phi": np.zeros((n, n, n)), "q": _random((n, n, n), 3), "sigma": 1 + _random((n, n, n), 4)}


def _plain_sn(cells, octants):
    n = len(cells["phi"])
    flux = [np.zeros(shape) for shape in ((n, n, ANGLES), (n, ANGLES), (ANGLES,))]
    given = cells["phi"], *flux, cells["q"], cells["sigma"], *_directions().values()

    def run():
        for down in octants:
            loops()["octant"](*given, *down)

    return run, lambda: cells["phi"]


def _grid(n):
    """The coefficients of a 5-point operator that vary, and a right-hand side; 0 on the rim."""
    cx, cy, rim = (0.5 + _random((n, n), seed) for seed in (7, 8, 9))
    right = np.zeros((n, n))
    right[1:-1, 1:-1] = rim[1:-1, 1:-1]
    d = np.ones((n, n))
    d[:-1, :-1] = cx[:-1, :-1] + cx[1:, :-1] + cy[:-1, :-1] + cy[:-1, 1:] + 1e-3
    return {"cx": cx, "cy": cy, "d": d}, right


def _solves(n, context):
    coefficients, right = _grid(n)
    c = {**coefficients, "r": right, **{name: np.zeros((n, n)) for name in ("e", "y", "z")}}
    of = lambda names: {name: c[name] for name in names.split()}
    if context is None:
        f = loops()
        f["pivots"](**of("e cx cy d"))

        def run():
            for _ in range(ITERATIONS):
                f["forward"](**of("y r cx cy e"))
                f["backward"](**of("z y r cx cy e"))

        return run, lambda: c["z"]
    c = _fields(context, **c)
    given = {"over": _inside(n), "context": context}
    tw.run(nests.pivots, **of("e cx cy d"), **given)
    down = tw.bind(nests.forward, **of("y r cx cy e"), **given)
    up = tw.bind(nests.backward, **of("z y cx cy e"), reverse=("i", "j"), **given)
    chain = tw.chain([down, up])
    return lambda: chain.run(times=ITERATIONS), c["z"].gather


def _inside(n):
    return dict.fromkeys("ij", (1, n - 1))


def _cg(n, context):
    coefficients, right = _grid(n)
    c = {**coefficients, "b": right, **{name: np.zeros((n, n)) for name in ("e", "x", "r", "p", "q", "y", "z")}}
    if context is None:
        return _plain_cg(c)
    c = _fields(context, **c)
    given = {"over": _inside(n), "context": context, "plan": {"grid": (context.size, 1), "storage": "plain"}}

    def bound(nest, names, **more):
        return tw.bind(nest, **{name: c[name] for name in names.split()}, **given, **more)

    bound(nests.pivots, "e cx cy d").run()
    start = bound(nests.begin, "x p r b")
    product = bound(nests.product, "q p cx cy d", reduce={"pq": tw.dot("p", "q")})
    update = bound(nests.update, "x r p q", alpha=0.0, reduce={"r": tw.norm("r")})
    solve = tw.chain([bound(nests.forward, "y r cx cy e"), bound(nests.backward, "z y cx cy e", reverse=("i", "j"))])
    direction = bound(nests.direction, "p z", beta=0.0)

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
    f, of = loops(), lambda names: [c[name] for name in names.split()]
    f["pivots"](*of("e cx cy d"))

    def run():
        c["x"][:], c["p"][:], c["r"][:] = 0.0, 0.0, c["b"]
        before = np.inf
        for _ in range(ITERATIONS):
            f["forward"](*of("y r cx cy e"))
            rz = f["backward"](*of("z y r cx cy e"))
            f["direction"](*of("p z"), rz / before)
            f["update"](*of("x r p q"), rz / f["product"](*of("q p cx cy d")))
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


def bodies(json_path=None, quick=False, args=()):
    """Programs with conditions, strides and recurrences against plain loops under Numba."""
    parser = parser_of("bodies", __doc__, CASES)
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks, with commas (default: 1,2)")
    parser.add_argument("--repeat", type=int, default=1 if quick else 7, help="turns (default: 7)")
    options = parser.parse_args(list(args))
    warn_of_load("bodies")
    rows = []
    for name in options.case:
        for n in (QUICK.get(name, 40),) if quick else SIZES[name]:
            for ranks in map(int, options.ranks.split(",")):
                rows += _rows(name, n, ranks, options.repeat)
    publish("bodies", rows, json_path)


def _rows(name, n, ranks, repeats):
    """A row a contender; the ratio of ours is Numba's time to ours."""
    found = on_ranks(__name__, ranks, {"case": name, "n": n, "repeats": repeats})
    side = "x".join([str(n)] * (3 if name.startswith("sn") else 2))
    label = f"{name} {side} f8, {ranks} rank{'s' * (ranks > 1)}"
    return compared(label, found["times"], lambda s: s / found["points"] * 1e9, "ns/point")
