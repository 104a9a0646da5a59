"""Neutrons through a shield: discrete-ordinates sweeps
====================================================

Source iteration with S6 angles and diamond differences on a square: each angle is a sweep from one corner.

``tilewave run -n 2 examples/cases/transport.py [--small] [--output demo/transport.png]``

A source on the left, an absorbing wall with a duct in it, and a scattering medium around. In each cell the flux of one
angle follows from what flows in from two neighbours, and what flows out is twice the flux minus what flows in. The
sweeps of each corner are a bound nest, which is planned once and run for each angle.

Checks: the flux after some iterations against plain loops in Numba, bit for bit; at the end, what is absorbed must be
less than what the source emits. About 8 s on one core, most of it Numba and the picture.
"""
import argparse
import itertools
import time
from pathlib import Path

import numba
import numpy as np
import tilewave as tw

# Level-symmetric S6: cosines, and for each direction of a quadrant the numbers of its two cosines and its weight.
COSINES = (0.2666355, 0.6815076, 0.9261808)
CORNER, SIDE = 0.1761263 / 4, 0.1572071 / 4  # four quadrants: all weights sum to 1
DIRECTIONS = ((0, 0, CORNER), (0, 2, CORNER), (2, 0, CORNER), (0, 1, SIDE), (1, 0, SIDE), (1, 1, SIDE))


@tw.nest
def emit(emission, before, phi, source, scatter, i, j):
    emission[i, j] = source[i, j] + scatter[i, j] * phi[i, j]
    before[i, j] = phi[i, j]
    phi[i, j] = 0.0


# fx, fy: what flows into the next cell along i and j; nothing flows in at the edges.
@tw.nest
def sweep(phi, fx, fy, emission, sigma, i, j, *, mu, eta, weight, edge_i, edge_j):
    in_x = 0.0 if i == edge_i else fx[j]
    in_y = 0.0 if j == edge_j else fy[i]
    flux = (emission[i, j] + mu * in_x + eta * in_y) / (mu + eta + sigma[i, j])
    phi[i, j] = phi[i, j] + weight * flux
    fx[j] = 2.0 * flux - in_x
    fy[i] = 2.0 * flux - in_y


@tw.nest
def compare(phi, before, i, j):
    change = phi[i, j] - before[i, j]  # noqa: F841, reduced


def problem(n):
    """Source, scattering and total cross-section, each times half the width of a cell of a square of 10 x 10."""
    x = (np.arange(n) + 0.5) * 10 / n
    x, y = x[:, None], x[None, :]
    total, scatter, source = np.full((n, n), 0.5), np.full((n, n), 0.35), np.zeros((n, n))
    source[(x < 1.5) & (abs(y - 5) < 1.5)] = 1.0
    wall = (abs(x - 5) < 0.8) & (abs(y - 6.5) > 0.6)
    total[wall], scatter[wall] = 5.0, 0.25
    return [array * 5 / n for array in (source, scatter, total)]


def angles(n):
    """For each of the 24 angles the loops that run downwards, and the scalars of its sweep."""
    for down in itertools.product((False, True), repeat=2):
        for a, b, weight in DIRECTIONS:
            edge_i, edge_j = ((n - 1) * flag for flag in down)
            yield down, {"mu": COSINES[a], "eta": COSINES[b], "weight": weight, "edge_i": edge_i, "edge_j": edge_j}


def iteration(n, source, scatter, total):
    """A function that makes one source iteration and returns the largest change of the flux; and phi."""
    phi, before, emission = (tw.field((n, n), "f8") for _ in range(3))
    fx, fy = tw.field((n,), "f8"), tw.field((n,), "f8")
    begin = tw.bind(emit, emission=emission, before=before, phi=phi, source=source, scatter=scatter)
    corners = {}
    for down, scalars in angles(n):
        reverse = tuple(itertools.compress("ij", down))
        if down not in corners:
            corners[down] = tw.bind(sweep, phi=phi, fx=fx, fy=fy, emission=emission, sigma=total, reverse=reverse,
                                    **scalars)
    end = tw.bind(compare, phi=phi, before=before, reduce={"change": tw.norm("change", ord=np.inf)})

    def step():
        begin.run()
        for down, scalars in angles(n):
            corners[down].run(**scalars)
        return end.run().results["change"]

    return step, phi


@numba.njit
def plain_sweep(phi, emission, sigma, mu, eta, weight, down_i, down_j):
    n = len(phi)
    fx, fy = np.zeros(n), np.zeros(n)
    for a in range(n):
        i = n - 1 - a if down_i else a
        for b in range(n):
            j = n - 1 - b if down_j else b
            flux = (emission[i, j] + mu * fx[j] + eta * fy[i]) / (mu + eta + sigma[i, j])
            phi[i, j] = phi[i, j] + weight * flux
            fx[j] = 2.0 * flux - fx[j]
            fy[i] = 2.0 * flux - fy[i]


def plain(n, source, scatter, total, iterations):
    phi = np.zeros((n, n))
    for _ in range(iterations):
        emission, phi = source + scatter * phi, np.zeros((n, n))
        for down, scalars in angles(n):
            plain_sweep(phi, emission, total, scalars["mu"], scalars["eta"], scalars["weight"], *down)
    return phi


def draw(phi, total, changes, path):
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    box = {"origin": "lower", "extent": (0, 10, 0, 10)}
    least = phi.max() * 1e-4
    shown = left.imshow(np.maximum(phi, least).T, norm=LogNorm(least, phi.max()), cmap="inferno", **box)
    left.contour(total.T, levels=1, colors="white", linewidths=0.7, **box)
    figure.colorbar(shown, ax=left, label="scalar flux")
    left.set(title="flux through a duct in a shield (white)", xlabel="x", ylabel="y")
    right.semilogy(range(1, len(changes) + 1), changes, "o-", markersize=3)
    right.set(title="source iteration", xlabel="iterations", ylabel="largest change of the flux")
    right.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--small", action="store_true", help="a grid of 40 x 40 cells")
    options.add_argument("--output", type=Path, default=Path("demo/transport.png"))
    given = options.parse_args()
    n, few = (40, 2) if given.small else (200, 5)
    source, scatter, total = problem(n)
    step, phi = iteration(n, source, scatter, total)
    changes = [step() for _ in range(few)]
    some = phi.gather()
    begin = time.perf_counter()
    while changes[-1] > 1e-6 and len(changes) < 200:
        changes.append(step())
    seconds = time.perf_counter() - begin
    whole = phi.gather()
    if whole is None:
        return
    same = np.array_equal(some, plain(n, source, scatter, total, few))
    absorbed = ((total - scatter) * whole).sum() / source.sum()
    points = (len(changes) - few) * 24 * n**2
    print(f"{len(changes) - few} iterations of 24 sweeps over {n} x {n} cells in {seconds:.3g} s, "
          f"{points / seconds:.3g} points a second")
    print(f"{absorbed:.1%} of what the source emits is absorbed, the rest leaves the square")
    print(f"{'plain loops':16} {'equal, bit for bit' if same else 'DIFFERENT'}")
    draw(whole, total, changes, given.output)
    print(f"picture: {given.output}")
    if not same or changes[-1] > 1e-6 or not 0 < absorbed < 1:
        raise SystemExit("the flux is not that of the plain loops, or does not converge")


if __name__ == "__main__":
    main()
