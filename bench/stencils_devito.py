"""A stencil of `bench stencils` by Devito, run by the Python that has it: ``python stencils_devito.py ARGUMENTS OUT``.

Imports nothing of Tilewave. The mode of its messages is that of DEVITO_MPI; rank 0 writes seconds.
"""

import contextlib
import json
import sys
import time

import numpy as np
from devito import Eq, Grid, Operator, TimeFunction, configuration


def main():
    arguments, comm, seconds, tuned = json.loads(sys.argv[1]), None, [], {}
    if configuration["mpi"]:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    n, steps = arguments["n"], arguments["steps"]
    grid = Grid(shape=(n, n, n), extent=(n - 1, n - 1, n - 1), dtype=np.float32)
    u = TimeFunction(name="u", grid=grid, space_order=arguments["order"])
    # Spacings as numbers, so that the compiler sees constant coefficients.
    update = Eq(u.forward, u + arguments["factor"] * u.laplace)
    operator = Operator([update], subs={d.spacing: 1.0 for d in grid.dimensions})
    u.data[:] = 0.5
    operator.apply(time_M=min(steps, 4) - 1)
    with contextlib.suppress(KeyError, IndexError, TypeError):
        operator.apply(time_M=steps - 1, autotune="aggressive" if arguments["tune"] else "off")
        tuned = dict(operator._state["autotuning"][-1]["tuned"])
    for turn in range(arguments["repeats"] + 1):
        if comm:
            comm.Barrier()
        begin = time.perf_counter()
        operator.apply(time_M=steps - 1, **tuned)
        if comm:
            comm.Barrier()
        seconds += [time.perf_counter() - begin] * bool(turn)
    if comm is None or comm.rank == 0:
        with open(sys.argv[2], "w") as file:
            json.dump(seconds, file)


if __name__ == "__main__":
    main()
