"""Transport sweeps of eight octants, angles and groups against Kripke, SNAP and plain loops under Numba.

``tilewave bench transport [--where NAME,...] [--json FILE] [--quick]``; NAME: 1x1, 2x1 (ranks x threads here) or
HOSTS@RATE. An unknown is the flux of one angle and group in one cell, in float64. Two nests:

- the flux of each angle is stored, and a source read for each. Pairs of angle and group are one loop of the nest: it
  reads a cross section for each, where Kripke has one for a group;
- the scalar flux is added up angle by angle, and no other one stored. Kripke stores both, by its sweep and its sum
  over the angles; SNAP, which has no Fortran compiler of the MPI library here, runs on one rank.

Kripke and SNAP are built where a folder of TILEWAVE_CONTENDERS has their source (Kripke's version 1.1, which needs no
other library), SNAP with a gfortran of such a folder or the system; the best of Kripke's loop orders counts, with
direction sets of one octant. Our results and Numba's are compared bit for bit.
"""

import itertools
import re
import statistics
import tempfile
import time

import numpy as np
import tilewave as tw

from bench.cluster import at_place, place_option, places
from bench.from_source import Contender, output_of
from bench.nests_plain import numba
from bench.nests_race import race
from bench.results import compared, on_ranks, parser_of, publish
from bench.transport_bodies import octant, octant_of_flux, plain
from bench.transport_snap import SNAP
from bench.transport_snap import seconds as snap_seconds

PLACES = ("1x1", "2x1", "2@1gbit")
#: Cells along each axis, angles of an octant, groups.
CASES = ((24, 6, 16), (32, 4, 32))
SMALL = ((6, 2, 4),)
KRIPKE = Contender(
    "Kripke 1.1", "Kripke/src", ("kripke.cpp", "Kripke/*.cpp", "Kripke/*/*.cpp"), ("-fopenmp", "-DKRIPKE_USE_OPENMP")
)
ORDERS = ("DGZ", "DZG", "GDZ", "GZD", "ZDG", "ZGD")
SWEEPS = 4
FACES = ("fx", "fy", "fz")

# --- on the ranks ---------------------------------------------------------------------------------


def _arrays(n, angles, groups):
    """Arrays of the nest that stores the flux of each angle, and vectors of its pairs of angle and group."""
    random, pairs = np.random.default_rng(1), angles * groups
    shapes = {"psi": (n, n, n, pairs), **dict.fromkeys(FACES, (n, n, pairs))}
    arrays = {name: np.zeros(shape) for name, shape in shapes.items()}
    arrays |= {"source": random.random(shapes["psi"])}
    arrays |= {"sigma": np.tile(1 + random.random((n, n, n, groups)), angles)}
    return arrays, {name: np.repeat(0.1 + 0.8 * random.random(angles), groups) for name in ("mu", "eta", "xi")}


def _arrays_of_flux(n, angles, groups):
    """Arrays of the nest that adds up the scalar flux, and vectors of its angles."""
    random, faces = np.random.default_rng(1), dict.fromkeys(FACES, (n, n, angles, groups))
    arrays = {name: np.zeros(shape) for name, shape in {"phi": (n, n, n, groups), **faces}.items()}
    arrays |= {"source": random.random((n, n, n, groups)), "sigma": 1 + random.random((n, n, n, groups))}
    return arrays, {name: 0.1 + 0.8 * random.random(angles) for name in ("mu", "eta", "xi", "weight")}


def worker(n, angles, groups, repeats, scalar):
    """Seconds of a sweep of all octants, ours and Numba's in turn; on rank 0. `scalar`: of the scalar flux."""
    context = tw.Context(threads=1)
    octants = list(itertools.product((False, True), repeat=3))
    arrays, cosines = (_arrays_of_flux if scalar else _arrays)(n, angles, groups)
    sweep, result = _sweep(context, arrays, cosines, octants, scalar)
    runs, compiled = {"tilewave": sweep}, None
    if numba() and context.rank == 0:
        compiled = plain(numba(), scalar)

        def loops():
            begin = time.perf_counter()
            for down in octants:
                for name in FACES:
                    arrays[name][:] = 0.0
                compiled((*arrays.values(), *cosines.values()), down)
            return time.perf_counter() - begin

        runs["plain loops, Numba, one core"] = loops
    times = race(runs, repeats)
    found = result.gather()
    if context.rank:
        return None
    if compiled and not np.array_equal(found, arrays["phi" if scalar else "psi"]):
        raise SystemExit("bench transport: the results are not equal bit for bit")
    return times


def _sweep(context, arrays, cosines, octants, scalar):
    """A function that sweeps over all octants and returns the seconds of its nests; the field of its results.

    The scalar flux is added up angle by angle, as a nest has up to four loops.
    """
    given, calls = cosines, [{}]
    if scalar:
        calls = [dict(zip(cosines, values, strict=True)) for values in zip(*map(np.ndarray.tolist, cosines.values()))]
        given = calls[0]
        arrays = {name: array[:, :, 0] if name in FACES else array for name, array in arrays.items()}
    fields = {name: tw.field(array.shape, init=array, context=context) for name, array in arrays.items()}
    nest = octant_of_flux if scalar else octant
    reverse = [tuple(itertools.compress("ijk", down)) for down in octants]
    bounds = [tw.bind(nest, **fields, **given, reverse=order, context=context) for order in reverse]

    def run():
        seconds = 0.0
        for bound, numbers in itertools.product(bounds, calls):
            for name in FACES:
                fields[name].fill(0.0)
            seconds += bound.run(**numbers).measured.time_s
        return seconds

    return run, fields["phi" if scalar else "psi"]


# --- what to run, and what came out ---------------------------------------------------------------


def transport(json_path=None, quick=False, args=()):
    """Transport sweeps of angles and groups against Kripke and plain loops under Numba."""
    parser = parser_of("transport", __doc__)
    place_option(parser, PLACES, ("1x1", "2x1"))
    parser.add_argument("--repeat", type=int, default=2 if quick else 7, help="turns (default: 7)")
    options = parser.parse_args(list(args))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        programs = {one.name: None if quick else one.built(folder) for one in (KRIPKE, SNAP)}
        for where in places(options.where, PLACES, "transport"):
            with at_place(where, "transport") as place:
                for case in SMALL if quick else CASES:
                    rows += _rows(where, place, case, options.repeat, programs)
    publish("transport", rows, json_path)


def _rows(where, place, case, repeats, programs):
    """A row a contender and nest; the ratio of ours is the best of the others' times to ours."""
    n, angles, groups = case
    kripke = {order: _kripke(place, programs[KRIPKE.name], case, order) for order in ORDERS if programs[KRIPKE.name]}
    rows = []
    for scalar in (False, True):
        arguments = {"n": n, "angles": angles, "groups": groups, "repeats": repeats, "scalar": scalar}
        times = on_ranks("bench.transport", place.ranks, arguments, runner=place.start)
        if kripke:
            name = f"{KRIPKE.name}, sweep and sum over angles" if scalar else KRIPKE.name
            times[name] = min((found[scalar] for found in kripke.values()), key=statistics.median)
        if scalar and programs[SNAP.name] and place.ranks == 1:
            times[SNAP.name] = snap_seconds(programs[SNAP.name], *case)
        title = f"{where}, {n}^3 cells, {8 * angles} angles, {groups} groups{', scalar flux' * scalar}"
        unknowns = n**3 * 8 * angles * groups
        rows += compared(title, times, lambda s, unknowns=unknowns: s / unknowns * 1e9, "ns/unknown")
    return rows


def _kripke(place, program, case, order):
    """Seconds of a sweep in each of some runs; the same with its sum over the angles."""
    n, angles, groups = case
    arguments = ["--groups", groups, "--quad", 8 * angles, "--zones", f"{n},{n},{n}", "--legendre", 0, "--nest", order]
    arguments += ["--dset", 8, "--gset", 1, "--niter", SWEEPS, "--procs", f"{place.ranks},1,1"]
    texts = [output_of(program, arguments, place.ranks, cluster=place.cluster) for _ in range(2)]

    def taken(text, part):
        return float(re.search(rf"^ *{part} +\d+ +(\S+)", text, re.MULTILINE).group(1)) / SWEEPS

    sweeps = [taken(text, "Sweep") for text in texts]
    return sweeps, [swept + taken(text, "LTimes") for swept, text in zip(sweeps, texts, strict=True)]
