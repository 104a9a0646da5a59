"""What the ranks of trials do: ScaLAPACK's routines one after another, each no longer than it may."""

import functools
import json
import os
import threading

import tilewave as tw

from bench import scalapack
from bench.dense import Limits, cyclic, positive_definite, sizes_around, timed, uniform

#: ScaLAPACK's name of each factorization.
ROUTINES = {"lu": "pdgetrf", "cholesky": "pdpotrf", "qr": "pdgeqrf"}
#: Runs of a trial: the first one sets the library up.
RUNS = 2


def worker(kind="", trials=(), limit_s=0.0, path="", around=None):
    """Notes in `path` when a trial begins and ends; rank 0 returns sizes `around` the balance if it is asked for them.

    A rank ends itself, as if all were well, when a run has taken longer than `limit_s`.
    """
    context = tw.Context(threads=1)
    if around:
        balance = context._core.allreduce_min([int(Limits(context, around["rate"], around["quick"]).balance)])[0]
        return sizes_around(balance, around["least"], around["most"]) if context.rank == 0 else None
    libraries = scalapack.load(lambda text: None)
    with open(path, "a") as out:

        def note(word, seconds=None):
            if context.rank == 0:
                out.write(json.dumps([word, seconds]) + "\n")
                out.flush()

        for n, name, grid, block in trials:
            note("begin")
            seconds = None
            if name in libraries:
                run, ready, _ = routine_of(libraries[name], context, kind, n, block, tuple(grid))
                for _ in range(RUNS):
                    ready()
                    # The routine holds no lock of the interpreter, so that a timer ends the rank in its midst.
                    timer = threading.Timer(limit_s, os._exit, (0,))
                    timer.daemon = True
                    timer.start()
                    seconds = timed(context, run)
                    timer.cancel()
            note("end", seconds)
    return None


def values_of(kind, n):
    """The elements of the matrix that is factored, by their indices."""
    return positive_definite(n) if kind == "cholesky" else uniform


def routine_of(library, context, kind, n, block, grid):
    """What is called, what renews its matrix, and that matrix."""
    a = cyclic(context, n, block, grid, values_of(kind, n))
    before, (descriptor, local) = a.local.copy(order="F"), a.to_scalapack(library.grid(*grid))

    def ready():
        local[...] = before

    return functools.partial(getattr(library, ROUTINES[kind]), n, (descriptor, local)), ready, a
