"""Poisson on a cube to 1e-8: time to solution, cycles and factors, against hypre's PFMG and PETSc's multigrid."""

import argparse
import math
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tilewave as tw

from tilewave_bench.results import on_ranks, publish, row

OURS = {"V(2,2), Gauss-Seidel": {}, "V(1,1), red-black": {"smoother": "red-black", "pre": 1, "post": 1}}
BY_CG = "conjugate gradients, V(1,1)"
HERE = Path(__file__).parent
#: Of contenders: their source, and the arguments of each variant in place of N, REPETITIONS and GRID.
CONTENDERS = {
    "hypre PFMG": ("multigrid_hypre.c", {"Jacobi": "N R 1 GRID", "red-black": "N R 2 GRID"}),
    "PETSc PCMG": (
        "multigrid_petsc.c",
        {
            "cg, Chebyshev": "N R -ksp_type cg",
            "V(2,2), SOR": "N R -ksp_type richardson -mg_levels_ksp_type richardson -mg_levels_pc_type sor "
            "-mg_levels_ksp_max_it 2",
        },
    ),
}
#: Where Debian's packages libhypre-dev and petsc-dev put them.
FLAGS = {
    "hypre PFMG": "-I/usr/include/hypre -lHYPRE -lm",
    "PETSc PCMG": "-I/usr/lib/petsc/include -L/usr/lib/petsc/lib -lpetsc -lm",
}


# --- on the ranks ---------------------------------------------------------------------------------


def worker(n, repetitions):
    """By solver: seconds of the set-up, seconds of each solution, cycles and the factor."""
    context = tw.Context(threads=1)
    f = right_side(n)
    found = {}
    for name, options in {**OURS, BY_CG: {"pre": 1, "post": 1}}.items():
        method = "cg" if name == BY_CG else "cycles"
        begin = _now(context)
        solver = tw.multigrid.Poisson((n, n, n), context=context, **options)
        field = tw.field(f, context=context)
        solver.solve(field, tol=1e-8, max_cycles=1, method=method)  # nests are bound and compiled
        set_up = _now(context) - begin
        times = []
        for _ in range(repetitions):
            begin = _now(context)
            solver.solve(field, tol=1e-8, method=method)
            times.append(_now(context) - begin)
        if not solver.history.converged:
            raise SystemExit(f"multigrid: {name} has not converged: {solver.history}")
        found[name] = [set_up, times, solver.history.cycles, solver.history.factor]
    return found if context.rank == 0 else None


def _now(context):
    context._core.barrier()
    return time.perf_counter()


def right_side(n):
    """The same numbers as in the contenders' sources."""
    i, j, k = np.ogrid[:n, :n, :n]
    return (i * 7919 + j * 104729 + k * 1299709) % 1000 / 1000 - 0.4995


# --- contenders -----------------------------------------------------------------------------------


def _built(name, flags, folder):
    """The contender's program, or None where it cannot be built here."""
    source = HERE / CONTENDERS[name][0]
    compiler = os.environ.get("MPICC", "mpicc")
    if shutil.which(compiler) is None:
        print(f"{name}: skipped, as there is no {compiler}; allowed: MPICC=, Debian's libopenmpi-dev", file=sys.stderr)
        return None
    program = Path(folder) / source.stem
    done = subprocess.run(
        [compiler, "-O2", str(source), "-o", str(program), *shlex.split(flags)], capture_output=True, text=True
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        print(f"{name}: skipped, as it does not compile: {lines[0] if lines else '?'}", file=sys.stderr)
        return None
    return program


def _run_contender(program, arguments, ranks):
    """What a contender's program prints, as (set-up, solve, iterations, residual) of each repetition."""
    command = [*shlex.split(os.environ.get("MPIRUN", "mpirun --allow-run-as-root")), "-n", str(ranks), str(program)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command + arguments, capture_output=True, text=True, timeout=900, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    lines = [line.split() for line in done.stdout.splitlines() if len(line.split()) == 4]
    return [(float(a), float(b), int(c), float(d)) for a, b, c, d in lines]


def _contenders(programs, n, ranks, repetitions):
    """By name and variant what `worker` gives of ours."""
    found = {}
    grid = ["1", "1", str(ranks)]
    for name, program in programs.items():
        for variant, pattern in CONTENDERS[name][1].items():
            arguments = []
            for word in pattern.split():
                arguments += grid if word == "GRID" else [{"N": str(n), "R": str(repetitions)}.get(word, word)]
            runs = _run_contender(program, arguments, ranks)
            cycles, residual = runs[-1][2:]
            if residual > 1.01e-8:
                print(f"{name}, {variant}: residual {residual:.2g} after {cycles} iterations", file=sys.stderr)
            factor = residual ** (1 / cycles) if residual > 0 else math.nan
            found[f"{name}, {variant}"] = [
                statistics.median(r[0] for r in runs),
                [r[1] for r in runs],
                cycles,
                factor,
            ]
    return found


# --- what to run, and what came out ---------------------------------------------------------------


def multigrid(json_path=None, quick=False, args=()):
    """Poisson on a cube to 1e-8 on 1 and 2 ranks, against hypre's PFMG and PETSc's PCMG where these are installed."""
    parser = argparse.ArgumentParser(prog="tilewave bench multigrid", description=__doc__)
    parser.add_argument("--extent", type=int, action="append", help="cells along each axis (default 64, 128)")
    parser.add_argument("--ranks", type=int, action="append", help="(default 1, 2)")
    parser.add_argument("--repeat", type=int, default=5, help="solutions of each solver (default 5)")
    parser.add_argument("--hypre", default=FLAGS["hypre PFMG"], help="compiler flags for hypre")
    parser.add_argument("--petsc", default=FLAGS["PETSc PCMG"], help="compiler flags for PETSc")
    options = parser.parse_args(list(args))
    repeat = 2 if quick else options.repeat
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        flags = {"hypre PFMG": options.hypre, "PETSc PCMG": options.petsc}
        built = {name: _built(name, flags[name], folder) for name in CONTENDERS}
        programs = {name: program for name, program in built.items() if program is not None}
        for n in options.extent or ([32] if quick else [64, 128]):
            for ranks in options.ranks or [1, 2]:
                found = _contenders(programs, n, ranks, repeat)
                best = min((statistics.median(times) for _, times, _, _ in found.values()), default=None)
                found = on_ranks("tilewave_bench.multigrid", ranks, {"n": n, "repetitions": repeat}) | found
                for name, (set_up, times, cycles, factor) in found.items():
                    case = f"{n}^3, {ranks} rank(s)"
                    ratio = {"ratio_to_contender": best / statistics.median(times)} if best else {}
                    rows.append(row(f"{case}: solution in {cycles} cycles of {factor:.3f}", name, times, "s", **ratio))
                    rows.append(row(f"{case}: set-up", name, [set_up], "s"))
    publish("multigrid", rows, json_path)
