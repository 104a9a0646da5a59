"""Transport sweeps of eight octants, angles and groups against Kripke, SNAP and plain loops under Numba.

``tilewave bench transport [--where NAME,...] [--json FILE] [--quick]``; NAME: 1x1, 2x1 (ranks x threads here) or
HOSTS@RATE. An unknown is the flux of one angle and group in one cell, in float64. Two nests:

- the flux of each angle is stored, and a source read for each. Pairs of angle and group are one loop of the nest: it
  reads a cross section for each, where Kripke has one for a group;
- the scalar flux is added up angle by angle, and no other one stored. Kripke stores both, by its sweep and its sum
  over the angles; SNAP, which has no Fortran compiler of the MPI library here, runs on one rank and stores none.

Kripke and SNAP are built where a folder of TILEWAVE_CONTENDERS has their source (Kripke's version 1.1, which needs no
other library), SNAP with a gfortran of such a folder or the system; the best of Kripke's loop orders counts, with
direction sets of one octant. Our results and Numba's are compared bit for bit.
"""

import itertools
import re
import statistics
import tempfile
from pathlib import Path

import numpy as np
import tilewave as tw

from bench.contenders import Program, module
from bench.runner import Own, benchmark, compared, must_equal, places, raced
from bench.transport_bodies import octant, octant_of_flux, plain_octant

#: Cells along each axis, angles of an octant, groups.
CASES = ((24, 6, 16), (32, 4, 32))
KRIPKE = Program("Kripke 1.1", "Kripke/src", "kripke.cpp Kripke/*.cpp Kripke/*/*.cpp", "-fopenmp -DKRIPKE_USE_OPENMP")
ORDERS = ("DGZ", "DZG", "GDZ", "GZD", "ZDG", "ZGD")
SWEEPS = 4
FACES = ("fx", "fy", "fz")
#: In the order in which its modules need each other.
MODULES = (
    "global geom time plib sn data control solvar analyze mms dealloc dim1_sweep thrd_comm dim3_sweep expxs mkba_sweep "
    "octsweep sweep inner utils input outer output setup version snap_main translv"
)
SNAP = Program("SNAP", "SNAP/src", " ".join(f"{name}.[fF]90" for name in MODULES.split()), "-cpp -fopenmp")
#: Of its input what is not the default.
INPUT = """&invar
nthreads=1 npey=1 npez=1 ndimen=3 ichunk={n} nx={n} ny={n} nz={n} lx={n} ly={n} lz={n}
nmom=1 nang={angles} ng={groups} fixup=0 swp_typ=0 iitm=4 oitm=1 epsi=1.0E-10
/
"""


def _arrays(n, angles, groups, scalar):
    """Arrays of the nest that stores the flux of each angle or, `scalar`, adds it up; vectors of pairs or of angles."""
    random, result = np.random.default_rng(1), "phi" if scalar else "psi"
    last = (angles, groups) if scalar else (angles * groups,)
    shapes = {result: (n, n, n, groups if scalar else angles * groups), **dict.fromkeys(FACES, (n, n, *last))}
    arrays = {name: np.zeros(shape) for name, shape in shapes.items()}
    arrays |= {"source": random.random(shapes[result])}
    arrays |= {"sigma": np.tile(1 + random.random((n, n, n, groups)), 1 if scalar else angles)}
    names = ("mu", "eta", "xi", "weight") if scalar else ("mu", "eta", "xi")
    return arrays, {name: np.repeat(0.1 + 0.8 * random.random(angles), 1 if scalar else groups) for name in names}


def worker(n, angles, groups, repeats, scalar):
    """Seconds of a sweep of all octants, ours and Numba's in turn; on rank 0. `scalar`: of the scalar flux."""
    context = tw.Context(threads=1)
    octants = list(itertools.product((False, True), repeat=3))
    arrays, cosines = _arrays(n, angles, groups, scalar)
    sweep, result = _sweep(context, arrays, cosines, octants, scalar)
    runs = {"tilewave": sweep}
    if module("numba"):
        compiled = plain_octant(scalar)

        def loops():
            for down in octants if context.rank == 0 else ():
                for name in FACES:
                    arrays[name][:] = 0.0
                compiled((*arrays.values(), *cosines.values()), down)

        runs["plain loops, Numba, one core"] = loops
    times = raced(context, runs, repeats)
    found = result.gather()
    if context.rank:
        return None
    must_equal("bench transport", {"tilewave": found, "Numba": next(iter(arrays.values())) if len(runs) > 1 else None})
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
        return Own(seconds)

    return run, next(iter(fields.values()))


@benchmark("transport", __doc__, places=("1x1", "2x1", "2@1gbit"), usual=("1x1", "2x1"), repeats=7)
def transport(options):
    with tempfile.TemporaryDirectory() as folder:
        kripke, snap = (None if options.quick else one.built(folder) for one in (KRIPKE, SNAP))
        for place in places(options):
            for n, angles, groups in ((6, 2, 4),) if options.quick else CASES:
                found = [_kripke(place, kripke, n, angles, groups, order) for order in ORDERS if kripke]
                for scalar in (False, True):
                    given = {"n": n, "angles": angles, "groups": groups}
                    times = place.call(__name__, **given, repeats=options.repeats, scalar=scalar)
                    if kripke:
                        name = f"{KRIPKE.name}, sweep and sum over angles" if scalar else KRIPKE.name
                        times[name] = min((seconds[scalar] for seconds in found), key=statistics.median)
                    if scalar and snap and place.ranks == 1:
                        times[SNAP.name] = _snap(place, snap, **given)
                    title = f"{place.name}, {n}^3 cells, {8 * angles} angles, {groups} groups{', scalar flux' * scalar}"
                    yield from compared(title, times, "ns/unknown", n**3 * 8 * angles * groups)


def _kripke(place, program, n, angles, groups, order):
    """Seconds of a sweep in each of some runs; the same with its sum over the angles."""
    arguments = ["--groups", groups, "--quad", 8 * angles, "--zones", f"{n},{n},{n}", "--legendre", 0, "--nest", order]
    arguments += ["--dset", 8, "--gset", 1, "--niter", SWEEPS, "--procs", f"{place.ranks},1,1"]
    texts = [place.output(program, *arguments) for _ in range(2)]

    def taken(part):
        pattern = rf"^ *{part} +\d+ +(\S+)"
        return np.array([float(re.search(pattern, text, re.MULTILINE).group(1)) / SWEEPS for text in texts])

    return taken("Sweep").tolist(), (taken("Sweep") + taken("LTimes")).tolist()


def _snap(place, program, n, angles, groups):
    """Of a sweep of all octants and groups, in each of some runs: it sweeps over a group as often as that needs."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "input", Path(folder) / "output"
        source.write_text(INPUT.format(n=n, angles=angles, groups=groups))
        for _ in range(3):
            place.output(program, source, out)
            text = out.read_text()
            swept_s = float(re.search(r"Transport Sweeps +(\S+)", text).group(1))
            sweeps = sum(map(int, re.findall(r"^ +\d+ +Dfmxo=.*No. Inners= *(\d+)", text, re.MULTILINE)))
            found.append(swept_s * groups / sweeps)
    return found
