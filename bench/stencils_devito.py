"""A stencil of `bench stencils` by Devito, run by the Python that has it: ``python stencils_devito.py ARGUMENTS OUT``.

Imports nothing of Tilewave. The mode of its messages is that of DEVITO_MPI; rank 0 writes seconds and points.
"""

import json
import sys
import time

import numpy as np


def communicator(devito):
    """MPI's, where Devito uses it; else None."""
    if not devito.configuration["mpi"]:
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD


def timed(comm, run, repeats):
    """Seconds of some runs, the first one not counted."""
    seconds = []
    for turn in range(repeats + 1):
        _barrier(comm)
        begin = time.perf_counter()
        run()
        _barrier(comm)
        seconds += [time.perf_counter() - begin] * bool(turn)
    return seconds


def _barrier(comm):
    if comm is not None:
        comm.Barrier()


def main():
    arguments, out = json.loads(sys.argv[1]), sys.argv[2]
    import devito
    from devito import Eq, Grid, Operator, TimeFunction

    n, steps, order = arguments["n"], arguments["steps"], arguments["order"]
    comm = communicator(devito)
    grid = Grid(shape=(n, n, n), extent=(n - 1, n - 1, n - 1), dtype=np.float32)
    u = TimeFunction(name="u", grid=grid, space_order=order)
    # Spacings as numbers, so that the compiler sees constant coefficients.
    update = Eq(u.forward, u + arguments["factor"] * u.laplace)
    operator = Operator([update], subs={d.spacing: 1.0 for d in grid.dimensions})
    u.data[:] = 0.5
    tuned = {}
    operator.apply(time_M=min(steps, 4) - 1)
    try:
        operator.apply(time_M=steps - 1, autotune="aggressive" if arguments["tune"] else "off")
        tuned = dict(operator._state["autotuning"][-1]["tuned"])
    except (KeyError, IndexError, TypeError):
        pass
    seconds = timed(comm, lambda: operator.apply(time_M=steps - 1, **tuned), arguments["repeats"])
    if comm is None or comm.rank == 0:
        with open(out, "w") as file:
            json.dump(
                {"seconds": seconds, "points": n**3 * steps, "tuned": {k: int(v) for k, v in tuned.items()}}, file
            )


if __name__ == "__main__":
    main()
