"""Poisson on a cube to 1e-8: time to solution, cycles and factors, against hypre's PFMG and PETSc's multigrid.

Full multigrid, one F cycle to the discretisation error: unknowns a second, against HPGMG-FV, with V(2,2) cycles, one at
each level: of its operators the one of second order, with constant coefficients, and Gauss-Seidel sweeps by colour.
"""

import itertools
import math
import re
import tempfile

import numpy as np
import tilewave as tw
from tilewave import units

from bench import multigrid_contenders
from bench.contenders import Program
from bench.runner import benchmark, compared, here, row, timed

#: By name: options of the solver, and how it solves.
OURS = {
    "V(2,2), Gauss-Seidel": ({}, "cycles"),
    "V(1,1), red-black": ({"smoother": "red-black", "pre": 1, "post": 1}, "cycles"),
    "conjugate gradients, V(1,1)": ({"pre": 1, "post": 1}, "cg"),
}
FULL = {"V(2,2), Gauss-Seidel": {}, "V(2,2), red-black": {"smoother": "red-black"}}
HPGMG = Program(
    "HPGMG-FV, F cycle",
    "hpgmg/finite-volume/source",
    "level.c operators.7pt.c mg.c solvers.c hpgmg-fv.c timers.c",
    "-DUSE_MPI -DUSE_SUBCOMM -DUSE_FCYCLES -DUSE_GSRB -DUSE_BICGSTAB",
    # A minute for each size would be too long; coefficients vary where nothing else is chosen.
    {
        "hpgmg-fv.c": (r"minTime   = 60\.0", "minTime   = 1.0"),
        "operators.7pt.c": (r"(?m)^#define STENCIL_VARIABLE_COEFFICIENT.*", ""),
    },
)


def worker(n, repeats):
    """By solver: seconds of the set-up, seconds of each solution, cycles and the factor; seconds of each F cycle."""
    context, found, full = tw.Context(threads=1), {}, {}
    i, j, k = np.ogrid[:n, :n, :n]
    f = (i * 7919 + j * 104729 + k * 1299709) % 1000 / 1000 - 0.4995  # as in the contenders' sources
    for name, (options, method) in OURS.items():
        made = []

        def set_up(options=options, method=method, made=made):
            made[:] = tw.multigrid.Poisson((n, n, n), context=context, **options), tw.field(f, context=context)
            made[0].solve(made[1], tol=1e-8, max_cycles=1, method=method)  # nests are bound and compiled

        set_up_s = timed(context, set_up)
        solver, field = made
        solve = lambda solver=solver, field=field, method=method: solver.solve(field, tol=1e-8, method=method)
        times = [timed(context, solve) for _ in range(repeats)]
        if not solver.history.converged:
            raise SystemExit(f"multigrid: {name} has not converged: {solver.history}")
        found[name] = [set_up_s, times, solver.history.cycles, solver.history.factor]
    for name, options in FULL.items():
        solver, field = tw.multigrid.Poisson(f.shape, context=context, **options), tw.field(f, context=context)
        full[name] = []
        for turn in range(1 + 2 * repeats):  # in the first nests are bound and compiled
            solver.solve(field, method="fmg")
            full[name] += [solver.history.time_s] * bool(turn)
    return {"solutions": found, "full": full} if context.rank == 0 else None


@benchmark(
    "multigrid",
    __doc__,
    places=("1x1", "2x1"),
    options={"--extent": {"type": int, "action": "append", "help": "cells along each axis (default 64, 128)"}},
)
def multigrid(options):
    with tempfile.TemporaryDirectory() as folder:
        programs, hpgmg = multigrid_contenders.built(folder), HPGMG.built(folder)
        extents = options.extent or ([32] if options.quick else [64, 128])
        for n, ranks in itertools.product(extents, [int(where.partition("x")[0]) for where in options.where]):
            found = here(ranks).call(__name__, n=n, repeats=options.repeats)
            case = f"{n}^3, {units.count(ranks, 'rank')}"
            times = {f"full multigrid, {name}": seconds for name, seconds in found["full"].items()}
            full_s = hpgmg and _hpgmg(hpgmg, n, ranks)
            theirs = {HPGMG.name: [full_s]} if full_s else {}
            yield from compared(case, times | theirs, "M dof/s", n**3, theirs=list(theirs))
            theirs = multigrid_contenders.found(programs, n, ranks, options.repeats)
            solutions = {}
            for name, (set_up_s, seconds, cycles, factor) in (found["solutions"] | theirs).items():
                solutions[f"{name}: {cycles} cycles of {factor:.3f}"] = seconds
                yield row(case, f"{name}: set-up", [set_up_s], "s")
            yield from compared(case, solutions, "s", theirs=list(solutions)[len(OURS) :])


def _hpgmg(program, n, ranks):
    """Seconds of one F cycle on n^3 cells, the mean of its repetitions; None where it cannot cut the cube so."""
    log_n = int(math.log2(n))
    boxes = 1 if ranks == 1 else 8  # cubes of cells, as many for each rank
    if 2**log_n != n or boxes % ranks:
        return None
    text = here(ranks).output(program, log_n - (boxes == 8), boxes // ranks)
    return next(float(time) for cells, time in re.findall(r"DOF=(\S+)\s+time=(\S+)", text) if float(cells) == n**3)
