"""The nests and the plain loops of `bench transport`."""

import tilewave as tw

from bench.contenders import compiled, plain


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


def of_all_angles(phi, fx, fy, fz, source, sigma, mu, eta, xi, weight, i, j, k, m, g):
    flux = source[i, j, k, g] + mu[m] * fx[j, k, m, g] + eta[m] * fy[i, k, m, g]
    flux = (flux + xi[m] * fz[i, j, m, g]) / (mu[m] + eta[m] + xi[m] + sigma[i, j, k, g])
    phi[i, j, k, g] += weight[m] * flux
    fx[j, k, m, g] = 2.0 * flux - fx[j, k, m, g]
    fy[i, k, m, g] = 2.0 * flux - fy[i, k, m, g]
    fz[i, j, m, g] = 2.0 * flux - fz[i, j, m, g]


def plain_octant(scalar):
    """The loops of an octant under Numba; `scalar`: those that add up the scalar flux."""
    angles = "m in range(len(mu))", "g in range(phi.shape[3])"
    cell = plain(of_all_angles, *angles) if scalar else plain(octant, "v in range(psi.shape[3])")
    lines = """n = len(arrays[0])
for a in range(n):
    i = n - 1 - a if down[0] else a
    for b in range(n):
        j = n - 1 - b if down[1] else b
        for c in range(n):
            k = n - 1 - c if down[2] else c
            cell(*arrays, i, j, k)"""
    return compiled([lines], ["arrays", "down"], {"cell": cell})
