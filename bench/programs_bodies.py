"""The nests of `bench bodies`, as a user writes them, and plain loops under Numba, with the bits of Python's."""

import tilewave as tw

from bench.contenders import plain


@tw.nest
def sor_over_land(u, f, land, i, j, *, w):
    if land[i, j] == 0:
        r = 0.25 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] + f[i, j]) - u[i, j]
        u[i, j] = u[i, j] + w * r


@tw.nest
def one_colour(u, f, i, j, *, w, colour):
    if (i + j) % 2 == colour:
        u[i, j] = u[i, j] + w * (0.25 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] + f[i, j]) - u[i, j])


def any_colour(u, f, i, j, w):
    u[i, j] = u[i, j] + w * (0.25 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] + f[i, j]) - u[i, j])


@tw.nest
def faces_in_cells(phi, fx, fy, fz, q, sigma, mu, eta, xi, weight, i, j, k, m):
    psi = (q[i, j, k] + mu[m] * fx[i-1, j, k, m] + eta[m] * fy[i, j-1, k, m] + xi[m] * fz[i, j, k-1, m]) / (
        sigma[i, j, k] + mu[m] + eta[m] + xi[m]
    )
    fx[i, j, k, m] = 2.0 * psi - fx[i-1, j, k, m]
    fy[i, j, k, m] = 2.0 * psi - fy[i, j-1, k, m]
    fz[i, j, k, m] = 2.0 * psi - fz[i, j, k-1, m]
    phi[i, j, k] += weight[m] * psi


@tw.nest
def faces_alone(phi, fx, fy, fz, q, sigma, mu, eta, xi, weight, i, j, k, m):
    psi = (q[i, j, k] + mu[m] * fx[j, k, m] + eta[m] * fy[i, k, m] + xi[m] * fz[i, j, m]) / (
        sigma[i, j, k] + mu[m] + eta[m] + xi[m]
    )
    fx[j, k, m] = 2.0 * psi - fx[j, k, m]
    fy[i, k, m] = 2.0 * psi - fy[i, k, m]
    fz[i, j, m] = 2.0 * psi - fz[i, j, m]
    phi[i, j, k] += weight[m] * psi


def octant(phi, fx, fy, fz, q, sigma, directions, down):
    """One octant without flux through its outer faces; cells from the last to the first along what is down."""
    (ni, nj, nk), (mu, eta, xi, weight) = phi.shape, directions
    fx[:] = 0.0
    for a in range(ni):
        i = ni - 1 - a if down[0] else a
        fy[:] = 0.0
        for b in range(nj):
            j = nj - 1 - b if down[1] else b
            fz[:] = 0.0
            for c in range(nk):
                k = nk - 1 - c if down[2] else c
                for m in range(mu.shape[0]):
                    psi = (q[i, j, k] + mu[m] * fx[j, k, m] + eta[m] * fy[k, m] + xi[m] * fz[m]) / (
                        sigma[i, j, k] + mu[m] + eta[m] + xi[m]
                    )
                    fx[j, k, m] = 2.0 * psi - fx[j, k, m]
                    fy[k, m] = 2.0 * psi - fy[k, m]
                    fz[m] = 2.0 * psi - fz[m]
                    phi[i, j, k] += weight[m] * psi


@tw.nest
def without_flux(f, a, b, m):
    f[a, b, m] = 0.0


@tw.nest
def product(q, p, cx, cy, d, i, j):
    q[i, j] = d[i, j] * p[i, j] - (
        cx[i, j] * p[i-1, j] + cx[i+1, j] * p[i+1, j] + cy[i, j] * p[i, j-1] + cy[i, j+1] * p[i, j+1]
    )


@tw.nest
def begin(x, p, r, b, i, j):
    x[i, j] = 0.0
    p[i, j] = 0.0
    r[i, j] = b[i, j]


@tw.nest
def update(x, r, p, q, i, j, *, alpha):
    x[i, j] = x[i, j] + alpha * p[i, j]
    r[i, j] = r[i, j] - alpha * q[i, j]


@tw.nest
def pivots(e, cx, cy, d, i, j):
    e[i, j] = 1.0 / (d[i, j] - cx[i, j] * cx[i, j] * e[i-1, j] - cy[i, j] * cy[i, j] * e[i, j-1])


@tw.nest
def forward(y, r, cx, cy, e, i, j):
    y[i, j] = (r[i, j] + cx[i, j] * y[i-1, j] + cy[i, j] * y[i, j-1]) * e[i, j]


@tw.nest
def backward(z, y, cx, cy, e, i, j):
    z[i, j] = y[i, j] + (cx[i+1, j] * z[i+1, j] + cy[i, j+1] * z[i, j+1]) * e[i, j]


@tw.nest
def direction(p, z, i, j, *, beta):
    p[i, j] = z[i, j] + beta * p[i, j]


def loops(nest, total="", more=""):
    """Plain loops over the points of a square that are not on its rim; `total` is summed up on the way."""
    side, way = f"len({nest.arrays[0]})", ", 0, -1" if nest is backward else ""
    inside = f"range({side} - 2{way})" if way else f"range(1, {side} - 1)"
    return plain(nest, f"i in {inside}", f"j in {inside}", total=total, more=more)
