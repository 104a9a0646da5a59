"""Neutrons through a shield: discrete-ordinates sweeps
====================================================

Source iteration with 48 angles (S6), energy groups and diamond differences in a cube: Kripke's problem.

``tilewave run -n 2 examples/cases/transport.py [--cells 24] [--groups 16] [--output demo/transport.png]``

A source on the left, an absorbing wall with a duct in it, and a medium around that scatters into the same and into
lower groups. In each cell the flux of one angle and group follows from what flows in from three neighbours, and what
flows out is twice the flux minus what flows in. Only the scalar flux is stored, the sum over all angles. The sweeps of
each corner are a bound nest, which is planned once and run for each angle.

Checks: the flux after some iterations against plain loops in Numba, bit for bit; at the end, what is absorbed must be
less than what the source emits.
On one core (AMD EPYC) 2.5 ns an unknown, 1.6 on two, Numba 2.5. docs/benchmarks.md compares such sweeps with Kripke's.
"""
import argparse
import itertools
import time
from pathlib import Path

import numba
import numpy as np
import tilewave as tw

# Level-symmetric S6: cosines, and for each direction of an octant the numbers of its cosines and its weight.
COSINES = (0.2666355, 0.6815076, 0.9261808)
CORNER, SIDE = 0.1761263 / 8, 0.1572071 / 8  # eight octants: all weights sum to 1
DIRECTIONS = ((0, 0, 2, CORNER), (0, 2, 0, CORNER), (2, 0, 0, CORNER), (0, 1, 1, SIDE), (1, 0, 1, SIDE),
              (1, 1, 0, SIDE))


# shares[g, h]: how much of what is scattered in group h comes out in group g.
@tw.nest
def emit(emission, phi, source, scatter, shares, i, j, k, g, *, groups):
    emission[i, j, k, g] = source[i, j, k, g] + scatter[i, j, k] * sum(
        shares[g, h] * phi[i, j, k, h] for h in range(groups))


@tw.nest
def begin_sweeps(before, phi, i, j, k, g):
    before[i, j, k, g] = phi[i, j, k, g]
    phi[i, j, k, g] = 0.0


# fx, fy, fz: what flows into the next cell along i, j and k; nothing flows in through the faces of the cube.
@tw.nest
def sweep(phi, fx, fy, fz, emission, sigma, i, j, k, g, *, mu, eta, xi, weight, edge_i, edge_j, edge_k):
    in_x = 0.0 if i == edge_i else fx[j, k, g]
    in_y = 0.0 if j == edge_j else fy[i, k, g]
    in_z = 0.0 if k == edge_k else fz[i, j, g]
    flux = (emission[i, j, k, g] + mu * in_x + eta * in_y + xi * in_z) / (mu + eta + xi + sigma[i, j, k, g])
    phi[i, j, k, g] += weight * flux
    fx[j, k, g] = 2.0 * flux - in_x
    fy[i, k, g] = 2.0 * flux - in_y
    fz[i, j, g] = 2.0 * flux - in_z


@tw.nest
def compare(phi, before, i, j, k, g):
    change = phi[i, j, k, g] - before[i, j, k, g]  # noqa: F841, reduced


def problem(n, groups):
    """Source and total cross-section by cell and group, that of scattering by cell, each times half the width of a cell
    of a cube of side 10; and the shares of groups. Lower groups have larger cross-sections."""
    x = (np.arange(n) + 0.5) * 10 / n
    x, y, z = np.meshgrid(x, x, x, indexing="ij")
    total, scatter = np.full((n, n, n, groups), 0.5), np.full((n, n, n), 0.35)
    source = np.zeros((n, n, n, groups))
    source[(x < 1.5) & (abs(y - 5) < 1.5) & (abs(z - 5) < 1.5), 0] = 1.0
    wall = (abs(x - 5) < 0.8) & ((abs(y - 6.5) > 0.8) | (abs(z - 5) > 0.8))
    total[wall], scatter[wall] = 5.0, 0.25
    total *= 1 + 0.5 * np.arange(groups) / groups
    down = np.subtract.outer(np.arange(groups), np.arange(groups))
    shares = np.where(down >= 0, 0.5 ** np.maximum(down, 0), 0.0)
    return source * 5 / n, total * 5 / n, scatter * 5 / n, shares / shares.sum(axis=0)


def angles(n):
    """For each of the 48 angles the loops that run downwards, and the scalars of its sweep."""
    for down in itertools.product((False, True), repeat=3):
        edges = dict(zip(("edge_i", "edge_j", "edge_k"), ((n - 1) * flag for flag in down), strict=True))
        for a, b, c, weight in DIRECTIONS:
            yield down, {"mu": COSINES[a], "eta": COSINES[b], "xi": COSINES[c], "weight": weight, **edges}


def iteration(source, total, scatter, shares):
    """A function that makes one source iteration and returns the largest change of the flux and the seconds of the
    sweeps; and phi."""
    n, groups = len(source), len(shares)
    phi, before, emission = (tw.field(source.shape) for _ in range(3))
    faces = {name: tw.field((n, n, groups)) for name in ("fx", "fy", "fz")}
    source, total, scatter = tw.field(source), tw.field(total), tw.field(scatter)
    begin = tw.chain([tw.bind(emit, emission=emission, phi=phi, source=source, scatter=scatter, shares=shares,
                              groups=groups), tw.bind(begin_sweeps, before=before, phi=phi)])
    corners = {}
    for down, scalars in angles(n):
        reverse = tuple(itertools.compress("ijk", down))
        if down not in corners:
            corners[down] = tw.bind(sweep, phi=phi, **faces, emission=emission, sigma=total, reverse=reverse, **scalars)
    end = tw.bind(compare, phi=phi, before=before, reduce={"change": tw.norm("change", ord=np.inf)})

    def step():
        begin.run()
        seconds = sum(corners[down].run(**scalars).measured.time_s for down, scalars in angles(n))
        return end.run().results["change"], seconds

    return step, phi


@numba.njit
def plain_sweep(phi, emission, sigma, mu, eta, xi, weight, down):
    n, groups = len(phi), phi.shape[3]
    fx, fy, fz = np.zeros((n, n, groups)), np.zeros((n, n, groups)), np.zeros((n, n, groups))
    for a in range(n):
        i = n - 1 - a if down[0] else a
        for b in range(n):
            j = n - 1 - b if down[1] else b
            for c in range(n):
                k = n - 1 - c if down[2] else c
                for g in range(groups):
                    flux = (emission[i, j, k, g] + mu * fx[j, k, g] + eta * fy[i, k, g] + xi * fz[i, j, g]) / (
                        mu + eta + xi + sigma[i, j, k, g])
                    phi[i, j, k, g] += weight * flux
                    fx[j, k, g] = 2.0 * flux - fx[j, k, g]
                    fy[i, k, g] = 2.0 * flux - fy[i, k, g]
                    fz[i, j, g] = 2.0 * flux - fz[i, j, g]


def plain(source, total, scatter, shares, iterations):
    """The flux, and the seconds of the sweeps."""
    phi, seconds = np.zeros_like(source), 0.0
    for _ in range(iterations):
        emission = np.zeros_like(phi)
        for h in range(len(shares)):
            emission += shares[:, h] * phi[..., h, None]
        emission, phi = source + scatter[..., None] * emission, np.zeros_like(phi)
        begin = time.perf_counter()
        for down, scalars in angles(len(phi)):
            plain_sweep(phi, emission, total, scalars["mu"], scalars["eta"], scalars["xi"], scalars["weight"], down)
        seconds += time.perf_counter() - begin
    return phi, seconds


def draw(phi, total, changes, path):
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    box, n, groups = {"origin": "lower", "extent": (0, 10, 0, 10)}, len(phi), phi.shape[3]
    for axes, g in ((left, 0), (middle, groups - 1)):
        flux = phi[:, :, n // 2, g].T
        least = flux.max() * 1e-4
        shown = axes.imshow(np.maximum(flux, least), norm=LogNorm(least, flux.max()), cmap="inferno", **box)
        axes.contour(total[:, :, n // 2, g].T, levels=1, colors="white", linewidths=0.7, **box)
        axes.set(title=f"scalar flux of group {g}, z = 5", xlabel="x", ylabel="y")
        figure.colorbar(shown, ax=axes)
    right.semilogy(range(1, len(changes) + 1), changes, "o-", markersize=3)
    right.set(title="source iteration", xlabel="iterations", ylabel="largest change of the flux")
    right.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--cells", type=int, default=24, help="along each side")
    options.add_argument("--groups", type=int, default=16)
    options.add_argument("--small", action="store_true", help="10 x 10 x 10 cells, 3 groups")
    options.add_argument("--output", type=Path, default=Path("demo/transport.png"))
    given = options.parse_args()
    (n, groups), few = ((10, 3), 2) if given.small else ((given.cells, given.groups), 3)
    source, total, scatter, _ = case = problem(n, groups)
    step, phi = iteration(*case)
    steps = [step() for _ in range(few)]
    some = phi.gather()
    while steps[-1][0] > 1e-6 and len(steps) < 200:
        steps.append(step())
    whole = phi.gather()
    if whole is None:
        return
    changes, seconds = zip(*steps, strict=True)
    plain(*case, 1)
    expected, theirs = plain(*case, few)
    same = np.array_equal(some, expected)
    unknowns = 48 * n**3 * groups
    absorbed = ((total - scatter[..., None]) * whole).sum() / source.sum()
    print(f"{len(steps)} iterations of 48 sweeps over {n}^3 cells and {groups} groups: "
          f"{np.median(seconds) / unknowns * 1e9:.3g} ns an unknown; Numba {theirs / few / unknowns * 1e9:.3g}")
    print(f"{absorbed:.1%} of what the source emits is absorbed, the rest leaves the cube")
    print(f"{'plain loops':16} {'equal, bit for bit' if same else 'DIFFERENT'}")
    draw(whole, total, changes, given.output)
    print(f"picture: {given.output}")
    if not same or changes[-1] > 1e-6 or not 0 < absorbed < 1:
        raise SystemExit("the flux is not that of the plain loops, or does not converge")


if __name__ == "__main__":
    main()
