"""The nests and the plain loops of `bench transport`."""

import tilewave as tw


@tw.nest
def octant_of_flux(phi, fx, fy, fz, source, sigma, i, j, k, g, *, mu, eta, xi, weight):
    flux = (source[i, j, k, g] + mu * fx[j, k, g] + eta * fy[i, k, g] + xi * fz[i, j, g]) / (
        mu + eta + xi + sigma[i, j, k, g]
    )
    phi[i, j, k, g] += weight * flux
    fx[j, k, g] = 2.0 * flux - fx[j, k, g]
    fy[i, k, g] = 2.0 * flux - fy[i, k, g]
    fz[i, j, g] = 2.0 * flux - fz[i, j, g]


@tw.nest
def octant(psi, fx, fy, fz, source, sigma, mu, eta, xi, i, j, k, v):
    flux = (source[i, j, k, v] + mu[v] * fx[j, k, v] + eta[v] * fy[i, k, v] + xi[v] * fz[i, j, v]) / (
        mu[v] + eta[v] + xi[v] + sigma[i, j, k, v]
    )
    psi[i, j, k, v] = flux
    fx[j, k, v] = 2.0 * flux - fx[j, k, v]
    fy[i, k, v] = 2.0 * flux - fy[i, k, v]
    fz[i, j, v] = 2.0 * flux - fz[i, j, v]


def plain(numba, scalar):
    """The loops of an octant under Numba; `scalar`: those that add up the scalar flux."""
    point = numba.njit(octant.function)

    def all_pairs(arrays, i, j, k):
        for v in range(arrays[0].shape[3]):
            point(*arrays, i, j, k, v)

    def all_angles(arrays, i, j, k):
        phi, fx, fy, fz, source, sigma, mu, eta, xi, weight = arrays
        for m in range(len(mu)):
            for g in range(phi.shape[3]):
                flux = source[i, j, k, g] + mu[m] * fx[j, k, m, g] + eta[m] * fy[i, k, m, g]
                flux = (flux + xi[m] * fz[i, j, m, g]) / (mu[m] + eta[m] + xi[m] + sigma[i, j, k, g])
                phi[i, j, k, g] += weight[m] * flux
                fx[j, k, m, g] = 2.0 * flux - fx[j, k, m, g]
                fy[i, k, m, g] = 2.0 * flux - fy[i, k, m, g]
                fz[i, j, m, g] = 2.0 * flux - fz[i, j, m, g]

    cell = numba.njit(all_angles if scalar else all_pairs)

    @numba.njit
    def loops(arrays, down):
        n = len(arrays[0])
        for a in range(n):
            i = n - 1 - a if down[0] else a
            for b in range(n):
                j = n - 1 - b if down[1] else b
                for c in range(n):
                    cell(arrays, i, j, n - 1 - c if down[2] else c)

    return loops
