"""Time steps of `bench several` by Devito, run by the Python that has it: ``python several_devito.py ARGUMENTS OUT``.

As its examples of staggered acoustic and of elastic waves; with our coefficients, without sources and damping.
"""

import json
import sys

import numpy as np
from stencils_devito import communicator, timed


def acoustic(devito, grid):
    """Pressure, then velocities: the shallow water of our nests."""
    p = devito.TimeFunction(name="p", grid=grid, space_order=2, time_order=1, staggered=devito.NODE)
    v = devito.VectorTimeFunction(name="v", grid=grid, space_order=2, time_order=1)
    pressure = devito.Eq(p.forward, p - 0.1 * devito.div(v))
    return [pressure, devito.Eq(v.forward, v - 0.1 * devito.grad(p.forward))]


def elastic(devito, grid):
    v = devito.VectorTimeFunction(name="v", grid=grid, space_order=2, time_order=1)
    tau = devito.TensorTimeFunction(name="t", grid=grid, space_order=2, time_order=1)
    strain = devito.grad(v.forward) + devito.grad(v.forward).transpose(inner=False)
    velocity = devito.Eq(v.forward, v + 0.2 * devito.div(tau))
    return [velocity, devito.Eq(tau.forward, tau + 0.1 * devito.diag(devito.div(v.forward)) + 0.1 * strain)]


#: By the names of our bodies.
BODIES = {"shallow water": acoustic, "elastic waves": elastic}


def main():
    arguments, out = json.loads(sys.argv[1]), sys.argv[2]
    import devito

    n, steps = arguments["n"], arguments["steps"]
    grid = devito.Grid(shape=(n, n), extent=(n - 1, n - 1), dtype=np.float64)
    equations = BODIES[arguments["name"]](devito, grid)
    operator = devito.Operator(equations, subs={d.spacing: 1.0 for d in grid.dimensions})
    comm = communicator(devito)
    seconds = timed(comm, lambda: operator.apply(time_M=steps - 1), arguments["repeats"])
    if comm is None or comm.rank == 0:
        with open(out, "w") as file:
            json.dump({"seconds": seconds}, file)


if __name__ == "__main__":
    main()
