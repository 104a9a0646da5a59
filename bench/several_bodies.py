"""The bodies of `bench several`: shallow water, Yee's scheme, elastic waves."""

import numpy as np
import tilewave as tw


@tw.nest
def height(h, u, v, i, j):
    h[i, j] = h[i, j] - 0.1 * (u[i + 1, j] - u[i, j] + v[i, j + 1] - v[i, j])


@tw.nest
def zonal(u, h, i, j):
    u[i, j] = u[i, j] - 0.1 * (h[i, j] - h[i - 1, j])


@tw.nest
def meridional(v, h, i, j):
    v[i, j] = v[i, j] - 0.1 * (h[i, j] - h[i, j - 1])


@tw.nest
def electric(E, X, Y, i, j):
    E[i, j] = E[i, j] + 0.5 * (Y[i, j] - Y[i - 1, j] - X[i, j] + X[i, j - 1])


@tw.nest
def magnetic_x(X, E, i, j):
    X[i, j] = X[i, j] - 0.5 * (E[i, j + 1] - E[i, j])


@tw.nest
def magnetic_y(Y, E, i, j):
    Y[i, j] = Y[i, j] + 0.5 * (E[i + 1, j] - E[i, j])


@tw.nest
def velocity(p, q, x, y, s, i, j):
    p[i, j] = p[i, j] + 0.2 * (x[i + 1, j] - x[i, j] + s[i, j] - s[i, j - 1])
    q[i, j] = q[i, j] + 0.2 * (s[i, j] - s[i - 1, j] + y[i, j + 1] - y[i, j])


@tw.nest
def stress(x, y, s, p, q, i, j):
    a = p[i, j] - p[i - 1, j]
    b = q[i, j] - q[i, j - 1]
    x[i, j] = x[i, j] + 0.3 * a + 0.1 * b
    y[i, j] = y[i, j] + 0.1 * a + 0.3 * b
    s[i, j] = s[i, j] + 0.1 * (p[i, j + 1] - p[i, j] + q[i + 1, j] - q[i, j])


#: By name: arrays, loops that are periodic, and the nests of a time step, each with its first and last rows and columns
#: (last ones from the end; row -1 is the last one) and how many rows it follows the others behind where all are fused.
BODIES = {
    "shallow water": (
        "huv", (), ((height, 0, -1, 0, -1, 0), (zonal, 1, 0, 0, 0, 0), (meridional, 0, 0, 1, 0, 0))
    ),
    "shallow water, periodic": (
        "huv", ("i",), ((height, -1, -1, 0, -1, 0), (zonal, 0, 0, 0, 0, 0), (meridional, 0, 0, 1, 0, 0))
    ),
    "Yee": ("EXY", (), ((electric, 1, 0, 1, 0, 0), (magnetic_x, 0, 0, 0, -1, 0), (magnetic_y, 0, -1, 0, 0, 1))),
    "elastic waves": ("pqxys", (), ((velocity, 1, -1, 1, -1, 0), (stress, 1, -1, 1, -1, 1))),
}


def start(name, n):
    """The first values of the arrays."""
    i, j = np.indices((n, n))
    return [np.sin(0.1 * i + k) * np.cos(0.07 * j - k) for k in range(len(BODIES[name][0]))]
