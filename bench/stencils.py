"""Stencils in time: rates against plain loops by g++ with OpenMP, and against every mode of Devito.

``tilewave bench stencils [--where NAME,...] [--case NAME,...] [--json FILE] [--quick]``; NAME: 1x1, 1x2, 2x1 (ranks x
threads here), or HOSTS@RATE. Cases: heat (7 points) and order8 (25 points), float32, in boxes of n^3. On one rank plain
loops take turns with ours. Devito runs where a folder of TILEWAVE_CONTENDERS has a Python with it: a launch of each of
its modes after each launch of ours, and as many rounds as turns; Girih (diamonds in time, wavefronts in space, tuned by
itself: Malas et al. 2015) likewise, for heat on one rank, where its source is. The ratio of "a step at a time" and of
"tilewave" is to the best of the contenders.
"""

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tilewave as tw

from bench.contenders import VARIABLE, Program, folders, library, skipped
from bench.runner import TIMEOUT_S, Turn, benchmark, compared, error_row, places, race
from bench.stencils_bodies import STENCILS, start

#: By name: which stencil, points along each axis, time steps.
CASES = {f"{name} {n}": (name, n, steps) for name, n, steps in
         (("heat", 232, 24), ("heat", 256, 24), ("heat", 300, 24), ("order8", 256, 24), ("heat", 512, 8))}  # fmt: skip
MODES = ("basic", "diag", "diag2", "overlap", "overlap2", "full")
#: Of the bodies: order of accuracy, and what is before the Laplacian.
DEVITO = {"heat": (2, 0.1), "order8": (8, 0.05)}
SOURCES = "src/driver.c src/*utils.c src/performance.c src/verification.c src/kernels/*.c"
GIRIH = Program("Girih", "girih", SOURCES, "-Isrc -fopenmp -fcommon")
#: Its 7-point stencil with constant coefficients; of its time steppers diamonds, with relaxed wavefronts.
GIRIH_OPTIONS = "--target-kernel 1 --target-ts 2 --mwd-type 2".split()

#: Choices of each name; without temporal tiling a plan takes one time step at a time.
OURS = {"tilewave": {}, "tilewave, a step at a time": {"temporal_block": 1}}
#: Rows of blocks along the outer two loops, of which the fastest counts; 0: all rows.
PLAIN_BLOCKS = ((1, 0), (8, 8), (16, 16), (64, 8))


def worker(name, n, steps, threads, repeats):
    """Times of each contender, and our plans; on rank 0."""
    context = tw.Context(threads=threads)
    nest, reach = STENCILS[name]
    turns = [_ours(context, nest, n, steps, label, choices) for label, choices in OURS.items()]
    turns += _plain(name, n, steps, threads) if context.size == 1 else []
    found = [one.record() for one in race(context, turns, repeats)]
    for one in turns[1:] if context.size == 1 else ():  # the order of operations differs
        if not np.allclose(turns[0].after, one.after, rtol=1e-3, atol=1e-3):
            raise SystemExit(f"bench stencils: {name}: {one.name!r} has other values")
    return {"contenders": found, "points": (n - 2 * reach) ** 3 * steps} if context.rank == 0 else None


def _ours(context, nest, n, steps, label, choices):
    u = tw.field((n, n, n), "f4", init=start, context=context)
    bound = tw.bind(nest, u=u, steps=steps, context=context, plan=choices)
    plan = lambda: (bound.plan._short(), bound.plan.predicted.time_s)
    return Turn(label, bound.run, check=u.gather, plan=plan)


def _plain(name, n, steps, threads):
    """Plain loops with blocks of several shapes; none without g++."""
    loaded = library("stencils_plain.cpp", "-O3 -march=native -ffast-math")
    if loaded is None:
        return
    first = np.fromfunction(start, (n, n, n), dtype="i4").astype("f4")
    buffers = [first.copy(), first.copy()]
    pointers = [ctypes.c_void_p(b.ctypes.data) for b in buffers]

    def ready():
        for buffer in buffers:
            buffer[...] = first

    for height, width in PLAIN_BLOCKS:
        given = *pointers, *(ctypes.c_int64(v or n) for v in (n, steps, height, width)), threads
        run = lambda given=given: getattr(loaded, name)(*given)
        yield Turn(f"g++, blocks of {height} x {width or n} rows", run, ready, buffers[steps % 2].copy, family="g++")


@benchmark("stencils", __doc__, cases=CASES, places=("1x1", "1x2", "2x1", "2@1gbit", "2@100mbit"), repeats=3)
def stencils(options):
    with tempfile.TemporaryDirectory() as folder:
        girih = GIRIH.built(folder)
        for place in places(options):
            cases = [CASES[name] for name in options.case]
            for case in {(name, 24, 4): 0 for name, *_ in cases} if options.quick else cases:
                yield from _rows(place, *case, options.repeats, None if options.quick else girih)


def _rows(place, name, n, steps, rounds, girih):
    """Rows of all contenders of one case, of a launch of each in each round."""
    times, plans, points = {}, {}, 0
    given = {"n": n, "steps": steps, "repeats": rounds}
    for _ in range(rounds):
        found = place.call(__name__, name=name, threads=place.threads, **given)
        points = found["points"]
        for one in found["contenders"]:
            plans[one["name"]] = one["plan"], one["predicted_s"]
            times.setdefault(one["name"], []).extend(one["seconds"])
        for label, seconds in _devito(place, dict(zip(("order", "factor"), DEVITO[name], strict=True), **given)):
            times.setdefault(label, []).extend(seconds)
        if girih and name == "heat" and place.ranks == 1:
            sizes = ["--nx", n, "--ny", n, "--nz", n, "--nt", steps]
            text = place.output(girih, *sizes, *GIRIH_OPTIONS)
            rates = re.findall(r"Total RANK0 MStencil/s (?:MIN|MAX): +(\S+)", text)  # of its repetitions
            times.setdefault(GIRIH.name, []).extend(1e-6 * points / float(rate) for rate in rates)
    case, rows = f"{place.name}, {name} {n}^3 f4", []
    for one in compared(case, times, "GPts/s", points):
        plan, predicted_s = plans[one.contender]
        rows += [one, *error_row(case, one.contender, predicted_s, times[one.contender])]
        one.contender += f" ({plan})" if plan else ""
    return rows


def _devito(place, wanted):
    """(name, seconds) of each mode of Devito, or of one process; none where no folder has a Python with it."""
    for root in [*folders(), Path(sys.prefix)]:
        if list(root.glob("lib/python3*/site-packages/devito/__init__.py")):
            break
    else:
        return skipped("Devito", f"pip install devito mpi4py mpich, and {VARIABLE}=FOLDER")
    argv = [str(root / "bin" / "python"), str(Path(__file__).with_name("stencils_devito.py"))]
    for mode in MODES if place.ranks > 1 else ("",):
        env = {
            "DEVITO_LANGUAGE": "openmp" if place.threads > 1 else "C",
            "DEVITO_MPI": mode or "0",
            "DEVITO_ARCH": "gcc",
            "DEVITO_LOGGING": "ERROR",
            "OMP_NUM_THREADS": str(place.threads),
            "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
        }
        label, tuned = f"Devito, {mode}" if mode else "Devito", {**wanted, "tune": place.ranks == 1}
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "found.json"
            command = [*argv, json.dumps(tuned), str(out)]
            try:
                if place.cluster:
                    place.cluster.run(command, ranks=place.ranks, env=env, timeout=TIMEOUT_S).check_returncode()
                else:
                    launcher = [str(root / "bin" / "mpiexec"), "-n", str(place.ranks)] if place.ranks > 1 else []
                    told = {"timeout": TIMEOUT_S, "capture_output": True, "text": True}
                    subprocess.run([*launcher, *command], check=True, env={**os.environ, **env}, **told)
                yield label, json.loads(out.read_text())
            except (OSError, subprocess.SubprocessError) as error:
                skipped(label, ((getattr(error, "stderr", None) or "").strip().splitlines() or [error])[-1])
    return None
