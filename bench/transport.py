"""Transport sweeps of eight octants, angles and groups against Kripke's sweep and plain loops under Numba.

``tilewave bench transport [--where NAME,...] [--json FILE] [--quick]``; NAME: 1x1, 2x1 (ranks x threads here) or
HOSTS@RATE. An unknown is the flux of one angle and group in one cell, in float64; each sweep reads a source for each.
Pairs of angle and group are one loop of the nest: it reads a cross section for each, where Kripke has one for a group.
Kripke is built where a folder of TILEWAVE_CONTENDERS has its source (version 1.1, which needs no other library); the
best of its loop orders counts, with direction sets of one octant. Our results and Numba's are compared bit for bit.
"""

import argparse
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
from bench.results import on_ranks, publish, row
from bench.transport_bodies import octant, plain

PLACES = ("1x1", "2x1", "2@1gbit")
#: Cells along each axis, angles of an octant, groups.
CASES = ((24, 6, 16), (32, 4, 32))
SMALL = ((6, 2, 4),)
KRIPKE = Contender(
    "Kripke 1.1", "Kripke/src", ("kripke.cpp", "Kripke/*.cpp", "Kripke/*/*.cpp"), ("-fopenmp", "-DKRIPKE_USE_OPENMP")
)
ORDERS = ("DGZ", "DZG", "GDZ", "GZD", "ZDG", "ZGD")
SWEEPS = 4

# --- on the ranks ---------------------------------------------------------------------------------


def _arrays(n, angles, groups):
    random, pairs = np.random.default_rng(1), angles * groups
    shapes = {"psi": (n, n, n, pairs), **dict.fromkeys(("fx", "fy", "fz"), (n, n, pairs))}
    arrays = {name: np.zeros(shape) for name, shape in shapes.items()}
    arrays |= {"source": random.random(shapes["psi"])}
    arrays |= {"sigma": np.tile(1 + random.random((n, n, n, groups)), angles)}
    return arrays, {name: np.repeat(0.1 + 0.8 * random.random(angles), groups) for name in ("mu", "eta", "xi")}


def worker(n, angles, groups, repeats):
    """Seconds of a sweep of all octants, ours and Numba's in turn; on rank 0."""
    context = tw.Context(threads=1)
    arrays, cosines = _arrays(n, angles, groups)
    fields = {name: tw.field(array.shape, init=array, context=context) for name, array in arrays.items()}
    octants = list(itertools.product((False, True), repeat=3))
    reverse = [tuple(itertools.compress("ijk", down)) for down in octants]
    bounds = [tw.bind(octant, **fields, **cosines, reverse=order, context=context) for order in reverse]
    times = {"tilewave": [], "plain loops, Numba, one core": []}
    compiled = numba().njit(plain) if numba() and context.rank == 0 else None
    faces = [fields["fx"], fields["fy"], fields["fz"]]
    for turn in range(repeats + 1):
        seconds = 0.0
        for bound in bounds:
            for face in faces:
                face.fill(0.0)
            seconds += bound.run().measured.time_s
        times["tilewave"] += [seconds] * bool(turn)
        if compiled:
            begin = time.perf_counter()
            for down in octants:
                for name in ("fx", "fy", "fz"):
                    arrays[name][:] = 0.0
                compiled(*arrays.values(), *cosines.values(), down)
            times["plain loops, Numba, one core"] += [time.perf_counter() - begin] * bool(turn)
    found = fields["psi"].gather()
    if context.rank:
        return None
    if compiled and not np.array_equal(found, arrays["psi"]):
        raise SystemExit("bench transport: the results are not equal bit for bit")
    return {name: seconds for name, seconds in times.items() if seconds}


# --- what to run, and what came out ---------------------------------------------------------------


def transport(json_path=None, quick=False, args=()):
    """Transport sweeps of angles and groups against Kripke and plain loops under Numba."""
    parser = argparse.ArgumentParser(prog="tilewave bench transport", description=__doc__.splitlines()[0])
    place_option(parser, PLACES, ("1x1", "2x1"))
    parser.add_argument("--repeat", type=int, default=2 if quick else 7, help="turns (default: 7)")
    options = parser.parse_args(list(args))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = None if quick else KRIPKE.built(folder)
        for where in places(options.where, PLACES, "transport"):
            with at_place(where, "transport") as place:
                for case in SMALL if quick else CASES:
                    rows += _rows(where, place, case, options.repeat, program)
    publish("transport", rows, json_path)


def _rows(where, place, case, repeats, program):
    """A row a contender; the ratio of ours is the best of the others' times to ours."""
    n, angles, groups = case
    arguments = dict(zip(("n", "angles", "groups"), case, strict=True)) | {"repeats": repeats}
    times = on_ranks("bench.transport", place.ranks, arguments, runner=place.start)
    if program:
        times[KRIPKE.name] = min((_kripke(place, program, case, order) for order in ORDERS), key=statistics.median)
    unknowns = n**3 * 8 * angles * groups
    others = [statistics.median(taken) for name, taken in times.items() if name != "tilewave"]
    best = min(others, default=None)
    return [
        row(
            f"{where}, {n}^3 cells, {8 * angles} angles, {groups} groups",
            name,
            [seconds / unknowns * 1e9 for seconds in taken],
            "ns/unknown",
            ratio_to_contender=best / statistics.median(taken) if best and name == "tilewave" else None,
        )
        for name, taken in times.items()
    ]


def _kripke(place, program, case, order):
    """Seconds of a sweep in each of some runs."""
    n, angles, groups = case
    arguments = ["--groups", groups, "--quad", 8 * angles, "--zones", f"{n},{n},{n}", "--legendre", 0, "--nest", order]
    arguments += ["--dset", 8, "--gset", 1, "--niter", SWEEPS, "--procs", f"{place.ranks},1,1"]
    texts = [output_of(program, arguments, place.ranks, cluster=place.cluster) for _ in range(2)]
    return [float(re.search(r"^ *Sweep +\d+ +(\S+)", text, re.MULTILINE).group(1)) / SWEEPS for text in texts]
