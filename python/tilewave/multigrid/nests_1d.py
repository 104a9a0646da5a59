"""Nests of multigrid in 1 dimension; indices from 1 are cells, what is around them is 0."""

from tilewave.nest.nest import nest


@nest
def relax_constant(u, f, ax, i, *, sigma=0.0):
    around = ax[i] * u[i - 1] + ax[i + 1] * u[i + 1]
    diagonal = ax[i] + ax[i + 1] + sigma
    u[i] = (f[i] + around) / diagonal


@nest
def relax_colour_constant(u, f, ax, i, *, sigma=0.0, colour=0):
    if (i) % 2 == colour:
        around = ax[i] * u[i - 1] + ax[i + 1] * u[i + 1]
        diagonal = ax[i] + ax[i + 1] + sigma
        u[i] = (f[i] + around) / diagonal


@nest
def residual_constant(r, u, f, ax, i, *, sigma=0.0):
    around = ax[i] * u[i - 1] + ax[i + 1] * u[i + 1]
    diagonal = ax[i] + ax[i + 1] + sigma
    r[i] = f[i] + around - diagonal * u[i]


@nest
def jacobi_constant(u, r, ax, i, *, sigma=0.0, weight=0.8):
    diagonal = ax[i] + ax[i + 1] + sigma
    u[i] += weight * r[i] / diagonal


@nest
def relax_variable(u, f, kx, d, i):
    around = kx[i] * u[i - 1] + kx[i + 1] * u[i + 1]
    u[i] = (f[i] + around) / d[i]


@nest
def relax_colour_variable(u, f, kx, d, i, *, colour=0):
    if (i) % 2 == colour:
        around = kx[i] * u[i - 1] + kx[i + 1] * u[i + 1]
        u[i] = (f[i] + around) / d[i]


@nest
def residual_variable(r, u, f, kx, d, i):
    around = kx[i] * u[i - 1] + kx[i + 1] * u[i + 1]
    r[i] = f[i] + around - d[i] * u[i]


@nest
def jacobi_variable(u, r, d, i, *, weight=0.8):
    u[i] += weight * r[i] / d[i]


@nest
def restrict(f, u, r, i):
    f[i] = 0.5 * (r[2 * i - 1] + r[2 * i])
    u[i] = 0.0


@nest
def correct(u, e, lx, hx, i):
    u[2 * i - 1] += (0.75 + lx[i]) * e[i] + 0.25 * e[i - 1]
    u[2 * i] += (0.75 + hx[i]) * e[i] + 0.25 * e[i + 1]


@nest
def take(f, given, i):
    f[i + 1] = given[i]


@nest
def hand_over(x, u, i, *, shift=0.0):
    x[i] = u[i + 1] - shift


@nest
def clear(u, i):
    u[i] = 0.0
