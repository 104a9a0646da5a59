"""Stencils in time: rates against plain loops by g++ with OpenMP, and against every mode of Devito.

``tilewave bench stencils [--where NAME,...] [--case NAME,...] [--json FILE] [--quick]``; NAME: 1x1, 1x2, 2x1 (ranks x
threads here), or HOSTS@RATE. Cases: heat (7 points) and order8 (25 points), float32, in boxes of n^3. On one rank plain
loops take turns with ours. Devito runs where a folder of TILEWAVE_CONTENDERS has a Python with it: a launch of each of
its modes after each launch of ours, and as many rounds as turns; Girih likewise, for heat on one rank, where its source
is. The ratio of "a step at a time" and of "tilewave" is to the best of the contenders.
"""

import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tilewave as tw

from bench.cluster import at_place, place_option, places
from bench.dense import Turn, error_percent, race
from bench.nests_plain import compiled
from bench.results import on_ranks, parser_of, publish, row
from bench.scalapack import VARIABLE, folders
from bench.stencils_bodies import STENCILS, start
from bench.stencils_girih import GIRIH
from bench.stencils_girih import rates as girih_rates

PLACES = ("1x1", "1x2", "2x1", "2@1gbit", "2@100mbit")
#: Name, points along each axis, time steps.
CASES = (("heat", 232, 24), ("heat", 256, 24), ("heat", 300, 24), ("order8", 256, 24), ("heat", 512, 8))
SMALL = (("heat", 24, 4), ("order8", 24, 4))
MODES = ("basic", "diag", "diag2", "overlap", "overlap2", "full")
#: Of the bodies: order of accuracy, and what is before the Laplacian.
DEVITO = {"heat": (2, 0.1), "order8": (8, 0.05)}
TIMEOUT_S = 600

#: Choices of each name; without temporal tiling a plan takes one time step at a time.
OURS = {"tilewave": {}, "tilewave, a step at a time": {"temporal_block": 1}}
FLAGS = "-std=c++17 -O3 -march=native -ffast-math -fopenmp -shared -fPIC".split()
#: Rows of blocks along the outer two loops, of which the fastest counts; 0: all rows.
PLAIN_BLOCKS = ((1, 0), (8, 8), (16, 16), (64, 8))
#: Relative to the values: the order of operations differs.
TOLERANCE = 1e-3


def worker(name, n, steps, threads, repeats, plain):
    """Times of each contender, and our plans; on rank 0."""
    context = tw.Context(threads=threads)
    nest, reach = STENCILS[name]
    turns = [_ours(context, nest, n, steps, label, choices) for label, choices in OURS.items()]
    if plain:
        turns += _plain(name, n, steps, threads)
    found = [one.record() for one in race(context, turns, repeats)]
    if plain:
        _compare(name, turns)
    return {"contenders": found, "points": (n - 2 * reach) ** 3 * steps} if context.rank == 0 else None


def _ours(context, nest, n, steps, label, choices):
    u = tw.field((n, n, n), "f4", init=start, context=context)
    bound = tw.bind(nest, u=u, steps=steps, context=context, plan=choices)
    plan = lambda: (bound.plan._short(), bound.plan.predicted.time_s)
    return Turn(label, bound.run, bound.plan.grid, check=u.gather, plan=plan)


def _plain(name, n, steps, threads):
    """Plain loops with blocks of several shapes; none without g++."""
    library = compiled("stencils_plain.cpp", FLAGS)
    if library is None:
        return []
    function = getattr(library, name)
    function.restype = None
    first = np.fromfunction(start, (n, n, n), dtype="i4").astype("f4")
    buffers = [first.copy(), first.copy()]
    turns = []
    for height, width in PLAIN_BLOCKS:
        shape = [ctypes.c_int64(v or n) for v in (n, steps, height, width)]

        def run(shape=shape):
            function(*(ctypes.c_void_p(b.ctypes.data) for b in buffers), *shape, ctypes.c_int(threads))

        def ready():
            for buffer in buffers:
                buffer[...] = first

        check = buffers[steps % 2].copy
        turns.append(Turn(f"g++, blocks of {height} x {width or n} rows", run, (1,), ready, check, family="g++"))
    return turns


def _compare(name, turns):
    """All must have computed the same, but for the order of operations."""
    for one in turns[1:]:
        if one.after is not None and not np.allclose(turns[0].after, one.after, rtol=TOLERANCE, atol=TOLERANCE):
            raise SystemExit(f"bench stencils: {name}: {one.name!r} has other values")


def stencils(json_path=None, quick=False, args=()):
    """Rates of stencils on one core, two threads, two ranks and two hosts, against plain loops and Devito."""
    parser = parser_of("stencils", __doc__)
    place_option(parser, PLACES)
    parser.add_argument("--case", default="", help="only cases that begin so, as in heat 256; several with commas")
    parser.add_argument("--rounds", type=int, default=3, help="launches of each contender (default 3)")
    options = parser.parse_args(list(args))
    with tempfile.TemporaryDirectory() as folder:
        rows = _rows_of_places(options, quick, GIRIH.built(folder))
    publish("stencils", rows, json_path)


def _rows_of_places(options, quick, girih):
    """Rows of all cases everywhere; `girih`: its program, or None."""
    rows = []
    for where in places(options.where, PLACES, "stencils"):
        cases = [c for c in (SMALL if quick else CASES) if f"{c[0]} {c[1]}".startswith(tuple(options.case.split(",")))]
        with at_place(where, "stencils") as place:
            for case in cases:
                rows += _case(where, place, *case, 1 if quick else options.rounds, quick, girih)
    return rows


def _case(where, place, name, n, steps, rounds, quick, girih):
    """Rows of all contenders of one case."""
    arguments = {"name": name, "n": n, "steps": steps, "threads": place.threads, "repeats": 1 if quick else 3}
    arguments["plain"] = place.ranks == 1
    rates, plans, predicted = {}, {}, {}
    for _ in range(rounds):
        found = on_ranks(__name__, place.ranks, arguments, runner=place.start)
        for one in found["contenders"]:
            rates.setdefault(one["name"], []).extend(found["points"] / s * 1e-9 for s in one["seconds"])
            plans[one["name"]] = one["plan"]
            if one["predicted_s"]:
                predicted[one["name"]] = found["points"] / one["predicted_s"] * 1e-9
        order, factor = DEVITO[name]
        wanted = {key: arguments[key] for key in ("n", "steps", "repeats")} | {"order": order, "factor": factor}
        for label, found in _devito_runs(place, {**wanted, "tune": place.ranks == 1}):
            rates.setdefault(label, []).extend(found["points"] / s * 1e-9 for s in found["seconds"])
        if girih and name == "heat" and place.ranks == 1 and not quick:
            rates.setdefault(GIRIH.name, []).extend(girih_rates(girih, n, steps, place.threads))
    return _rows(f"{where}, {name} {n}^3 f4", rates, plans, predicted)


def _rows(case, rates, plans, predicted):
    theirs = {name: statistics.median(values) for name, values in rates.items() if not name.startswith("tilewave")}
    best = max(theirs.values(), default=None)
    rows = []
    for name, values in rates.items():
        ours = name in plans and plans[name]
        against = statistics.median(values) / best if ours and best else None
        label = f"{name} ({plans[name]})" if ours else name
        rows.append(row(case, label, values, "GPts/s", ratio_to_contender=against))
        if name in predicted:
            error = error_percent(1 / predicted[name], [1 / v for v in values])
            rows.append(row(case, f"{name}: prediction error", [error], "%"))
    return rows


# --- Devito ---------------------------------------------------------------------------------------


def _devito_python():
    """A Python that has Devito; None where there is none."""
    for folder in [*folders(), Path(sys.prefix)]:
        if list(folder.glob("lib/python3*/site-packages/devito/__init__.py")):
            return folder / "bin" / "python"
    return None


def _devito_runs(place, wanted):
    """(name, what it finds) of each mode of Devito, or of one process."""
    python, program = _devito_python(), Path(__file__).with_name("stencils_devito.py")
    if python is None:
        print(f"bench: Devito is skipped: pip install devito mpi4py mpich, and {VARIABLE}=FOLDER", file=sys.stderr)
        return
    for mode in MODES if place.ranks > 1 else ("",):
        env = {
            "DEVITO_LANGUAGE": "openmp" if place.threads > 1 else "C",
            "DEVITO_MPI": mode or "0",
            "DEVITO_ARCH": "gcc",
            "DEVITO_LOGGING": "ERROR",
            "OMP_NUM_THREADS": str(place.threads),
            "PATH": f"{python.parent}:{os.environ['PATH']}",
        }
        label = f"Devito, {mode}" if mode else "Devito"
        if found := _launch(place, [str(python), str(program)], wanted, env, label):
            yield label, found


def _launch(place, command, wanted, env, label):
    """What one launch of Devito finds; None, and a sentence, where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        argv = [*command, json.dumps(wanted), str(out)]
        if place.cluster is None and place.ranks > 1:
            argv = [str(Path(command[0]).parent / "mpiexec"), "-n", str(place.ranks), *argv]
        try:
            if place.cluster:
                done = place.cluster.run(argv, ranks=place.ranks, env=env, timeout=TIMEOUT_S)
                done.check_returncode()
            else:
                subprocess.run(argv, env={**os.environ, **env}, check=True, timeout=TIMEOUT_S, capture_output=True)
            return json.loads(out.read_text())
        except (OSError, subprocess.SubprocessError) as error:
            text = getattr(error, "stderr", None) or ""
            text = (text if isinstance(text, str) else text.decode(errors="replace")).strip().splitlines()
            print(f"bench: {label} is skipped: {text[-1] if text else error}", file=sys.stderr)
            return None
