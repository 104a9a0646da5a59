"""Nests of multigrid in 2 dimensions; indices from 1 are cells, what is around them is 0."""

from tilewave.nest.nest import nest


@nest
def relax_constant(u, f, ax, ay, i, j, *, sigma=0.0):
    around = ax[i] * u[i - 1, j] + ax[i + 1] * u[i + 1, j] + ay[j] * u[i, j - 1] + ay[j + 1] * u[i, j + 1]
    diagonal = ax[i] + ax[i + 1] + ay[j] + ay[j + 1] + sigma
    u[i, j] = (f[i, j] + around) / diagonal


@nest
def relax_colour_constant(u, f, ax, ay, i, j, *, sigma=0.0, colour=0):
    if (i + j) % 2 == colour:
        around = ax[i] * u[i - 1, j] + ax[i + 1] * u[i + 1, j] + ay[j] * u[i, j - 1] + ay[j + 1] * u[i, j + 1]
        diagonal = ax[i] + ax[i + 1] + ay[j] + ay[j + 1] + sigma
        u[i, j] = (f[i, j] + around) / diagonal


@nest
def residual_constant(r, u, f, ax, ay, i, j, *, sigma=0.0):
    around = ax[i] * u[i - 1, j] + ax[i + 1] * u[i + 1, j] + ay[j] * u[i, j - 1] + ay[j + 1] * u[i, j + 1]
    diagonal = ax[i] + ax[i + 1] + ay[j] + ay[j + 1] + sigma
    r[i, j] = f[i, j] + around - diagonal * u[i, j]


@nest
def jacobi_constant(u, r, ax, ay, i, j, *, sigma=0.0, weight=0.8):
    diagonal = ax[i] + ax[i + 1] + ay[j] + ay[j + 1] + sigma
    u[i, j] += weight * r[i, j] / diagonal


@nest
def relax_variable(u, f, kx, ky, d, i, j):
    around = kx[i, j] * u[i - 1, j] + kx[i + 1, j] * u[i + 1, j] + ky[i, j] * u[i, j - 1] + ky[i, j + 1] * u[i, j + 1]
    u[i, j] = (f[i, j] + around) / d[i, j]


@nest
def relax_colour_variable(u, f, kx, ky, d, i, j, *, colour=0):
    if (i + j) % 2 == colour:
        around = (
            kx[i, j] * u[i - 1, j] + kx[i + 1, j] * u[i + 1, j] + ky[i, j] * u[i, j - 1] + ky[i, j + 1] * u[i, j + 1]
        )
        u[i, j] = (f[i, j] + around) / d[i, j]


@nest
def residual_variable(r, u, f, kx, ky, d, i, j):
    around = kx[i, j] * u[i - 1, j] + kx[i + 1, j] * u[i + 1, j] + ky[i, j] * u[i, j - 1] + ky[i, j + 1] * u[i, j + 1]
    r[i, j] = f[i, j] + around - d[i, j] * u[i, j]


@nest
def jacobi_variable(u, r, d, i, j, *, weight=0.8):
    u[i, j] += weight * r[i, j] / d[i, j]


@nest
def restrict(f, u, r, i, j):
    f[i, j] = 0.25 * (r[2 * i - 1, 2 * j - 1] + r[2 * i - 1, 2 * j] + r[2 * i, 2 * j - 1] + r[2 * i, 2 * j])
    u[i, j] = 0.0


@nest
def correct(u, e, lx, ly, hx, hy, i, j):
    u[2 * i - 1, 2 * j - 1] += (0.5 + lx[i] + ly[j]) * e[i, j] + 0.25 * (e[i - 1, j] + e[i, j - 1])
    u[2 * i - 1, 2 * j] += (0.5 + lx[i] + hy[j]) * e[i, j] + 0.25 * (e[i - 1, j] + e[i, j + 1])
    u[2 * i, 2 * j - 1] += (0.5 + hx[i] + ly[j]) * e[i, j] + 0.25 * (e[i + 1, j] + e[i, j - 1])
    u[2 * i, 2 * j] += (0.5 + hx[i] + hy[j]) * e[i, j] + 0.25 * (e[i + 1, j] + e[i, j + 1])


@nest
def take(f, given, i, j):
    f[i + 1, j + 1] = given[i, j]


@nest
def hand_over(x, u, i, j, *, shift=0.0):
    x[i, j] = u[i + 1, j + 1] - shift


@nest
def clear(u, i, j):
    u[i, j] = 0.0
