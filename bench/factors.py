"""Factors of distributed matrices against other libraries and against what the machine allows.

``tilewave bench lu | cholesky | qr [--where NAME,...] [--size N] [--json FILE] [--quick]``; places and sizes as in
`bench matmul`. Our matrix lies by block columns, as many as are predicted best. The limit is max(compute, wire): the
flops over all ranks' rate of products, or the bytes of the panels that each rank must receive: half the matrix, but for
the part that it has. Contenders, where they are installed: MKL's and Debian's pdgetrf, pdpotrf or pdgeqrf, the best of
three block sizes and of the grids in trials beforehand (what takes more than --limit seconds there is left out, with a
row that says so); of LU also HPL, the best of twelve settings, after the turns of the others (it is a program, and its
time has the solution of one system in it).

``--predict RANKS,...`` runs nothing: it predicts factors of --size (default 20,000) rows on so many ranks of the
fat-tree machine, on the best grid beside one row of ranks.
"""

import functools
import itertools
import os
import threading
import time

import numpy as np
import tilewave as tw
from tilewave import _core
from tilewave.allgather import allgather
from tilewave.linalg.blas import blas

from bench import dense, hpl, scalapack
from bench.runner import Turn, benchmark, missing, places, race, row, timed

#: By kind: flops over n^3, and ScaLAPACK's routine.
KINDS = {"lu": (2 / 3, "pdgetrf"), "cholesky": (1 / 3, "pdpotrf"), "qr": (4 / 3, "pdgeqrf")}
OPTIONS = {
    **dense.OPTIONS,
    "--limit": {"type": float, "default": 10.0, "help": "seconds that a contender may take (default 10)"},
    "--predict": {"metavar": "RANKS,...", "help": "predict for so many ranks of the fat tree, run nothing"},
}


def worker(kind, trial=None, **given):
    """A trial of a contender, or a race at each size."""
    return _trial(kind, *trial) if trial else _races(kind, **given)


def _races(kind, sizes, around, best, repeats, rate, quick):
    """Limits and, by size, times of each contender; on rank 0. `best`: by size and library, block size and grid.

    Where `best` is None, the sizes alone.
    """
    setting, found = dense.Setting(rate, quick), {}
    if best is None:
        return setting.sizes(around) if setting.context.rank == 0 else None
    for n in sizes:
        logs = []  # of |det A| or its root, by each contender: all must agree
        turns = [_ours(setting.context, kind, n, logs)]
        for name, chosen in best.get(str(n), {}).items():
            turns.append(_theirs(setting.context, kind, n, name, setting.libraries[name], *chosen, logs))
        found[n] = [one.record() for one in race(setting.context, turns, repeats)]
        dense.refuse(setting.context, f"bench {kind}: n = {n}", np.allclose(logs, logs[0], rtol=1e-8))
    return setting.found(found)


def _log_of_diagonal(context, matrix):
    """Sum of the logarithms of a distributed matrix's diagonal, the same on every rank."""
    _, i, j = np.intersect1d(matrix.rows, matrix.columns, assume_unique=True, return_indices=True)
    return sum(allgather(context, float(np.log(np.abs(matrix.local[i, j])).sum())))


def _values(kind, n):
    """The elements of the matrix that is factored, by their indices."""
    return dense.positive_definite(n) if kind == "cholesky" else dense.uniform


def _ours(context, kind, n, logs):
    """On the grid and in the blocks that a first call takes, free to choose: the user's matrix lies so, too."""
    call, made, values = getattr(tw.linalg, kind), [], _values(kind, n)
    first = call(tw.linalg.matrix((n, n), init=values, layout="columns", context=context), context=context)
    grid, a = first.report.plan.grid, tw.linalg.matrix((n, n), init=values, layout=first.layout, context=context)
    before = a.local.copy()

    def run():
        made[:] = [call(a, grid=grid, overwrite_a=True, context=context)]

    return Turn(
        "tilewave",
        run,
        ready=lambda: np.copyto(a.local, before),
        check=lambda: logs.append(_log_of_diagonal(context, made[0])),
        grid=grid,
        plan=lambda: dense.planned(made[0].report.plan),
    )


def _theirs(context, kind, n, name, library, block, grid, logs):
    """ScaLAPACK's routine."""
    a = dense.cyclic(context, n, block, tuple(grid), _values(kind, n))
    before, (descriptor, local) = a.local.copy(order="F"), a.to_scalapack(library.grid(*grid))
    run = functools.partial(getattr(library, KINDS[kind][1]), n, (descriptor, local))
    check = lambda: logs.append(_log_of_diagonal(context, a))
    label, ready = f"{name}, block {block}, grid {grid[0]}x{grid[1]}", lambda: np.copyto(local, before)
    return Turn(label, run, ready=ready, check=check, grid=tuple(grid), family=name)


def _trial(kind, n, name, block, grid, limit_s):
    """Seconds of the second run of a routine, which cannot be stopped: a rank ends itself when a run takes too long."""
    context, libraries = tw.Context(threads=1), scalapack.load(quiet=True)
    if name not in libraries:
        return {"seconds": None} if context.rank == 0 else None
    turn = _theirs(context, kind, n, name, libraries[name], block, grid, [])
    for _ in range(2):
        turn.ready()
        # The routine holds no lock of the interpreter, so that a timer ends the rank in its midst.
        timer = threading.Timer(limit_s, os._exit, (0,))
        timer.daemon = True
        timer.start()
        seconds = timed(context, turn.run)
        timer.cancel()
    return {"seconds": seconds} if context.rank == 0 else None


def _best_of_trials(place, kind, sizes, limit_s):
    """{n: {library: (block, grid)}} of the fastest, and (n, library, grid) of trials that took longer than `limit_s`.

    Each is on ranks of its own. A grid whose trial was ended is tried at no other block or larger size.
    """
    best, over = {n: {} for n in sizes}, []
    libraries = scalapack.here()
    for n, name, grid, block in itertools.product(sorted(sizes), libraries, dense.grids(place.ranks), dense.BLOCKS):
        if (n, name, grid) in over:
            continue
        found = place.call(__name__, optional=True, kind=kind, trial=(n, name, block, grid, limit_s))
        if found is None:
            over += [(size, name, grid) for size in sizes if size >= n]
        elif found["seconds"] is not None:
            best[n][name] = min(best[n].get(name, (np.inf,)), (found["seconds"], block, grid))
    return {n: {name: chosen[1:] for name, chosen in some.items()} for n, some in best.items()}, over


def factors(kind, options):
    """Rows of one kind of factors."""
    if options.predict:
        for n, ranks in itertools.product(options.size or [20000], map(int, options.predict.split(","))):
            yield from _predictions(kind, n, ranks)
        return
    sizes = []
    for place in places(options):
        with scalapack.environment():
            given = dense.arguments(options, place)
            given["sizes"] = given["sizes"] or place.call(__name__, kind=kind, best=None, **given)
            best, over = _best_of_trials(place, kind, given["sizes"], options.limit)
            found = place.call(__name__, kind=kind, best=best, **given)
            others = hpl.contenders(place, given["sizes"], options.repeats) if kind == "lu" else {}
        for size in found["sizes"]:
            n, case = size["n"], dense.case_of(place, found, size["n"])
            size["contenders"] += others.get(n, [])
            # Panels of L go along the rows of the grid, those of U (or of the mirrored triangle) along its columns.
            yield from dense.rows_of(case, found, size, KINDS[kind][0] * n**3, "tilewave", part=0.5)
            for name, grid in [each[1:] for each in over if each[0] == n]:
                yield missing(case, f"{name}, grid {grid[0]}x{grid[1]}: did not finish in {options.limit:g} s")
            sizes.append(size)
    yield from dense.summary(sizes)


def _predictions(kind, n, ranks):
    """Rows of the best grid by prediction and of one row of ranks, on the fat tree."""
    matrix = _core.linalg.BlockCyclic(_core.linalg.Axis(n, ranks, -(-n // ranks)), _core.linalg.Axis(n, 1, n))
    problem = _core.linalg.PanelProblem(kind, matrix, 8, ranks, 1)
    machine = tw.Machine.load("fat-tree")._to_core()
    machine.host_of = list(range(ranks))
    rows = []
    for grid in (None, (1, ranks)):
        options = _core.linalg.FactorOptions()
        options.grid = grid
        begin = time.perf_counter()
        plan = problem.played(blas(), "float64", problem.plans(kind, options), machine)[0]
        name = (
            f"grid {'x'.join(map(str, plan.grid))}, block {plan.block}, planned in {time.perf_counter() - begin:.1f} s"
        )
        rows.append(row(f"predicted, n = {n}, {ranks} ranks", name, [plan.predicted_s], "s"))
    rows[0].ratio_to_contender = rows[1].value / rows[0].value
    return rows


for each in KINDS:
    benchmark(each, __doc__, places=dense.PLACES, options=OPTIONS)(functools.partial(factors, each))
