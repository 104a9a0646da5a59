"""Nests of multigrid in 3 dimensions; indices from 1 are cells, what is around them is 0."""

from tilewave.nest.nest import nest


@nest
def relax_constant(u, f, ax, ay, az, i, j, k, *, sigma=0.0):
    around = (
        ax[i] * u[i - 1, j, k]
        + ax[i + 1] * u[i + 1, j, k]
        + ay[j] * u[i, j - 1, k]
        + ay[j + 1] * u[i, j + 1, k]
        + az[k] * u[i, j, k - 1]
        + az[k + 1] * u[i, j, k + 1]
    )
    diagonal = ax[i] + ax[i + 1] + ay[j] + ay[j + 1] + az[k] + az[k + 1] + sigma
    u[i, j, k] = (f[i, j, k] + around) / diagonal


@nest
def relax_colour_constant(u, f, ax, ay, az, i, j, k, *, sigma=0.0, colour=0):
    if (i + j + k) % 2 == colour:
        around = (
            ax[i] * u[i - 1, j, k]
            + ax[i + 1] * u[i + 1, j, k]
            + ay[j] * u[i, j - 1, k]
            + ay[j + 1] * u[i, j + 1, k]
            + az[k] * u[i, j, k - 1]
            + az[k + 1] * u[i, j, k + 1]
        )
        diagonal = ax[i] + ax[i + 1] + ay[j] + ay[j + 1] + az[k] + az[k + 1] + sigma
        u[i, j, k] = (f[i, j, k] + around) / diagonal


@nest
def residual_constant(r, u, f, ax, ay, az, i, j, k, *, sigma=0.0):
    around = (
        ax[i] * u[i - 1, j, k]
        + ax[i + 1] * u[i + 1, j, k]
        + ay[j] * u[i, j - 1, k]
        + ay[j + 1] * u[i, j + 1, k]
        + az[k] * u[i, j, k - 1]
        + az[k + 1] * u[i, j, k + 1]
    )
    diagonal = ax[i] + ax[i + 1] + ay[j] + ay[j + 1] + az[k] + az[k + 1] + sigma
    r[i, j, k] = f[i, j, k] + around - diagonal * u[i, j, k]


@nest
def jacobi_constant(u, r, ax, ay, az, i, j, k, *, sigma=0.0, weight=0.8):
    diagonal = ax[i] + ax[i + 1] + ay[j] + ay[j + 1] + az[k] + az[k + 1] + sigma
    u[i, j, k] += weight * r[i, j, k] / diagonal


@nest
def relax_variable(u, f, kx, ky, kz, d, i, j, k):
    around = (
        kx[i, j, k] * u[i - 1, j, k]
        + kx[i + 1, j, k] * u[i + 1, j, k]
        + ky[i, j, k] * u[i, j - 1, k]
        + ky[i, j + 1, k] * u[i, j + 1, k]
        + kz[i, j, k] * u[i, j, k - 1]
        + kz[i, j, k + 1] * u[i, j, k + 1]
    )
    u[i, j, k] = (f[i, j, k] + around) / d[i, j, k]


@nest
def relax_colour_variable(u, f, kx, ky, kz, d, i, j, k, *, colour=0):
    if (i + j + k) % 2 == colour:
        around = (
            kx[i, j, k] * u[i - 1, j, k]
            + kx[i + 1, j, k] * u[i + 1, j, k]
            + ky[i, j, k] * u[i, j - 1, k]
            + ky[i, j + 1, k] * u[i, j + 1, k]
            + kz[i, j, k] * u[i, j, k - 1]
            + kz[i, j, k + 1] * u[i, j, k + 1]
        )
        u[i, j, k] = (f[i, j, k] + around) / d[i, j, k]


@nest
def residual_variable(r, u, f, kx, ky, kz, d, i, j, k):
    around = (
        kx[i, j, k] * u[i - 1, j, k]
        + kx[i + 1, j, k] * u[i + 1, j, k]
        + ky[i, j, k] * u[i, j - 1, k]
        + ky[i, j + 1, k] * u[i, j + 1, k]
        + kz[i, j, k] * u[i, j, k - 1]
        + kz[i, j, k + 1] * u[i, j, k + 1]
    )
    r[i, j, k] = f[i, j, k] + around - d[i, j, k] * u[i, j, k]


@nest
def jacobi_variable(u, r, d, i, j, k, *, weight=0.8):
    u[i, j, k] += weight * r[i, j, k] / d[i, j, k]


@nest
def restrict(f, u, r, i, j, k):
    f[i, j, k] = 0.125 * (
        r[2 * i - 1, 2 * j - 1, 2 * k - 1]
        + r[2 * i - 1, 2 * j - 1, 2 * k]
        + r[2 * i - 1, 2 * j, 2 * k - 1]
        + r[2 * i - 1, 2 * j, 2 * k]
        + r[2 * i, 2 * j - 1, 2 * k - 1]
        + r[2 * i, 2 * j - 1, 2 * k]
        + r[2 * i, 2 * j, 2 * k - 1]
        + r[2 * i, 2 * j, 2 * k]
    )
    u[i, j, k] = 0.0


@nest
def correct(u, e, lx, ly, lz, hx, hy, hz, i, j, k):
    u[2 * i - 1, 2 * j - 1, 2 * k - 1] += (0.25 + lx[i] + ly[j] + lz[k]) * e[i, j, k] + 0.25 * (
        e[i - 1, j, k] + e[i, j - 1, k] + e[i, j, k - 1]
    )
    u[2 * i - 1, 2 * j - 1, 2 * k] += (0.25 + lx[i] + ly[j] + hz[k]) * e[i, j, k] + 0.25 * (
        e[i - 1, j, k] + e[i, j - 1, k] + e[i, j, k + 1]
    )
    u[2 * i - 1, 2 * j, 2 * k - 1] += (0.25 + lx[i] + hy[j] + lz[k]) * e[i, j, k] + 0.25 * (
        e[i - 1, j, k] + e[i, j + 1, k] + e[i, j, k - 1]
    )
    u[2 * i - 1, 2 * j, 2 * k] += (0.25 + lx[i] + hy[j] + hz[k]) * e[i, j, k] + 0.25 * (
        e[i - 1, j, k] + e[i, j + 1, k] + e[i, j, k + 1]
    )
    u[2 * i, 2 * j - 1, 2 * k - 1] += (0.25 + hx[i] + ly[j] + lz[k]) * e[i, j, k] + 0.25 * (
        e[i + 1, j, k] + e[i, j - 1, k] + e[i, j, k - 1]
    )
    u[2 * i, 2 * j - 1, 2 * k] += (0.25 + hx[i] + ly[j] + hz[k]) * e[i, j, k] + 0.25 * (
        e[i + 1, j, k] + e[i, j - 1, k] + e[i, j, k + 1]
    )
    u[2 * i, 2 * j, 2 * k - 1] += (0.25 + hx[i] + hy[j] + lz[k]) * e[i, j, k] + 0.25 * (
        e[i + 1, j, k] + e[i, j + 1, k] + e[i, j, k - 1]
    )
    u[2 * i, 2 * j, 2 * k] += (0.25 + hx[i] + hy[j] + hz[k]) * e[i, j, k] + 0.25 * (
        e[i + 1, j, k] + e[i, j + 1, k] + e[i, j, k + 1]
    )


@nest
def take(f, given, i, j, k):
    f[i + 1, j + 1, k + 1] = given[i, j, k]


@nest
def hand_over(x, u, i, j, k, *, shift=0.0):
    x[i, j, k] = u[i + 1, j + 1, k + 1] - shift


@nest
def clear(u, i, j, k):
    u[i, j, k] = 0.0
