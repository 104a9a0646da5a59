"""The plain loops of `bench bodies` under Numba, on one core, with the bits of Python's loops."""

import functools

from bench.nests_plain import numba


@functools.cache
def loops():
    """Functions by name, compiled when they are called first; empty where Numba is not installed."""
    if numba() is None:
        return {}
    compiled = numba().njit(boundscheck=False, fastmath=False)
    functions = sor, red_black, octant, product, update, pivots, forward, backward, direction
    return {function.__name__: compiled(function) for function in functions}


def sor(u, f, land, w, sweeps):
    for _ in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                if land[i, j] == 0:
                    r = 0.25 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] + f[i, j]) - u[i, j]
                    u[i, j] = u[i, j] + w * r


def red_black(u, f, w, sweeps):
    for _ in range(sweeps):
        for colour in range(2):
            for i in range(1, u.shape[0] - 1):
                for j in range(1 + (i + 1 + colour) % 2, u.shape[1] - 1, 2):
                    u[i, j] = u[i, j] + w * (
                        0.25 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] + f[i, j]) - u[i, j]
                    )


def octant(phi, fx, fy, fz, q, sigma, mu, eta, xi, weight, down_i, down_j, down_k):
    """One octant without flux through its outer faces; cells from the last to the first along what is down."""
    ni, nj, nk = phi.shape
    fx[:] = 0.0
    for a in range(ni):
        i = ni - 1 - a if down_i else a
        fy[:] = 0.0
        for b in range(nj):
            j = nj - 1 - b if down_j else b
            fz[:] = 0.0
            for c in range(nk):
                k = nk - 1 - c if down_k else c
                for m in range(mu.shape[0]):
                    psi = (q[i, j, k] + mu[m] * fx[j, k, m] + eta[m] * fy[k, m] + xi[m] * fz[m]) / (
                        sigma[i, j, k] + mu[m] + eta[m] + xi[m]
                    )
                    fx[j, k, m] = 2.0 * psi - fx[j, k, m]
                    fy[k, m] = 2.0 * psi - fy[k, m]
                    fz[m] = 2.0 * psi - fz[m]
                    phi[i, j, k] += weight[m] * psi


def product(q, p, cx, cy, d):
    """q = A p; returns the dot product of p and q."""
    total = 0.0
    for i in range(1, p.shape[0] - 1):
        for j in range(1, p.shape[1] - 1):
            q[i, j] = d[i, j] * p[i, j] - (
                cx[i, j] * p[i-1, j] + cx[i+1, j] * p[i+1, j] + cy[i, j] * p[i, j-1] + cy[i, j+1] * p[i, j+1]
            )
            total += p[i, j] * q[i, j]
    return total


def update(x, r, p, q, alpha):
    """Returns the sum of the squares of r."""
    total = 0.0
    for i in range(1, p.shape[0] - 1):
        for j in range(1, p.shape[1] - 1):
            x[i, j] = x[i, j] + alpha * p[i, j]
            r[i, j] = r[i, j] - alpha * q[i, j]
            total += r[i, j] * r[i, j]
    return total


def pivots(e, cx, cy, d):
    for i in range(1, e.shape[0] - 1):
        for j in range(1, e.shape[1] - 1):
            e[i, j] = 1.0 / (d[i, j] - cx[i, j] * cx[i, j] * e[i-1, j] - cy[i, j] * cy[i, j] * e[i, j-1])


def forward(y, r, cx, cy, e):
    for i in range(1, y.shape[0] - 1):
        for j in range(1, y.shape[1] - 1):
            y[i, j] = (r[i, j] + cx[i, j] * y[i-1, j] + cy[i, j] * y[i, j-1]) * e[i, j]


def backward(z, y, r, cx, cy, e):
    """Returns the dot product of r and z."""
    total = 0.0
    for i in range(z.shape[0] - 2, 0, -1):
        for j in range(z.shape[1] - 2, 0, -1):
            z[i, j] = y[i, j] + (cx[i+1, j] * z[i+1, j] + cy[i, j+1] * z[i, j+1]) * e[i, j]
            total += r[i, j] * z[i, j]
    return total


def direction(p, z, beta):
    for i in range(1, p.shape[0] - 1):
        for j in range(1, p.shape[1] - 1):
            p[i, j] = z[i, j] + beta * p[i, j]
