"""Poisson on a cube to 1e-8: time to solution, cycles and factors, against hypre's PFMG and PETSc's multigrid.

Full multigrid, one F cycle to the discretisation error: unknowns a second, against HPGMG-FV.
"""

import statistics
import tempfile
import time

import numpy as np
import tilewave as tw
from tilewave import units

from bench import multigrid_contenders, multigrid_hpgmg
from bench.results import on_ranks, parser_of, publish, row

OURS = {"V(2,2), Gauss-Seidel": {}, "V(1,1), red-black": {"smoother": "red-black", "pre": 1, "post": 1}}
BY_CG = "conjugate gradients, V(1,1)"
FULL = {"V(2,2), Gauss-Seidel": {}, "V(2,2), red-black": {"smoother": "red-black"}}


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
    full = _full(context, f, repetitions)
    return {"solutions": found, "full": full} if context.rank == 0 else None


def _full(context, f, repetitions):
    """By solver: seconds of each F cycle from nothing."""
    field, found = tw.field(f, context=context), {}
    for name, options in FULL.items():
        solver = tw.multigrid.Poisson(f.shape, context=context, **options)
        found[name] = []
        for _ in range(1 + 2 * repetitions):
            solver.solve(field, method="fmg")
            found[name].append(solver.history.time_s)
        del found[name][0]  # nests are bound and compiled
    return found


def _now(context):
    context._core.barrier()
    return time.perf_counter()


def right_side(n):
    """The same numbers as in the contenders' sources."""
    i, j, k = np.ogrid[:n, :n, :n]
    return (i * 7919 + j * 104729 + k * 1299709) % 1000 / 1000 - 0.4995


# --- what to run, and what came out ---------------------------------------------------------------


def multigrid(json_path=None, quick=False, args=()):
    """Poisson on a cube to 1e-8 on 1 and 2 ranks, against hypre's PFMG and PETSc's PCMG where these are installed."""
    parser = parser_of("multigrid", __doc__)
    parser.add_argument("--extent", type=int, action="append", help="cells along each axis (default 64, 128)")
    parser.add_argument("--ranks", type=int, action="append", help="(default 1, 2)")
    parser.add_argument("--repeat", type=int, default=5, help="solutions of each solver (default 5)")
    options = parser.parse_args(list(args))
    repeat = 2 if quick else options.repeat
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        programs, hpgmg = multigrid_contenders.built(folder), multigrid_hpgmg.HPGMG.built(folder)
        for n in options.extent or ([32] if quick else [64, 128]):
            for ranks in options.ranks or [1, 2]:
                found = multigrid_contenders.found(programs, n, ranks, repeat)
                best = min((statistics.median(times) for _, times, _, _ in found.values()), default=None)
                ours = on_ranks("bench.multigrid", ranks, {"n": n, "repetitions": repeat})
                case = f"{n}^3, {units.count(ranks, 'rank')}"
                rows += _full_rows(case, n**3, ours["full"], hpgmg and multigrid_hpgmg.seconds(hpgmg, n, ranks))
                for name, (set_up, times, cycles, factor) in (ours["solutions"] | found).items():
                    ratio = {"ratio_to_contender": best / statistics.median(times)} if best else {}
                    rows.append(row(case, f"{name}: {cycles} cycles of {factor:.3f}", times, "s", **ratio))
                    rows.append(row(case, f"{name}: set-up", [set_up], "s"))
    publish("multigrid", rows, json_path)


def _full_rows(case, cells, full, theirs):
    """Unknowns a second of full multigrid; `theirs`: seconds of HPGMG-FV, or None."""
    rows = []
    for name, times in full.items():
        ratio = {"ratio_to_contender": theirs / statistics.median(times)} if theirs else {}
        rows.append(row(case, f"full multigrid, {name}", [cells / t / 1e6 for t in times], "M dof/s", **ratio))
    return rows + ([row(case, multigrid_hpgmg.HPGMG.name, [cells / theirs / 1e6], "M dof/s")] if theirs else [])
