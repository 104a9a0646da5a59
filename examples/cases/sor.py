"""Successive over-relaxation in time
==================================

All sweeps are one nest: sweep t + 1 starts before sweep t ends.

``tilewave run -n 2 examples/cases/sor.py [--small] [--output demo/sor.png]``

-(u_xx + u_yy) = f on the unit square, u = 0 on its edge, with f such that u = sin(pi x) sin(2 pi y). The
solution of the discrete equations is known as well (the same function times a number), so what the
iteration leaves and what the grid costs are seen apart. About 20 s on one core: three relaxations, 3072 sweeps each.
"""
import argparse
from pathlib import Path

import numpy as np
import tilewave as tw


# h2f: f times the square of the grid's spacing; w: the relaxation.
@tw.nest
def sor(u, h2f, t, i, j, *, w):
    mean = 0.25 * (u[t+1, i-1, j] + u[t+1, i, j-1] + u[t, i+1, j] + u[t, i, j+1] + h2f[i, j])
    u[t+1, i, j] = u[t, i, j] + w * (mean - u[t, i, j])


def problem(intervals):
    """h2f, the discrete and the exact solution on a grid of so many intervals each way."""
    h = 1 / intervals
    x = np.linspace(0, 1, intervals + 1)
    exact = np.outer(np.sin(np.pi * x), np.sin(2 * np.pi * x))
    # The five-point formula multiplies this function by 4 (sin^2(pi h/2) + sin^2(pi h)) / h^2.
    eigenvalue = 4 * (np.sin(np.pi * h / 2) ** 2 + np.sin(np.pi * h) ** 2) / h**2
    return 5 * np.pi**2 * h**2 * exact, 5 * np.pi**2 / eigenvalue * exact, exact


def iterate(h2f, discrete, w, sweeps, batch):
    """The largest errors against the discrete solution after each batch, the last u, seconds.

    Errors and u are None but on rank 0.
    """
    u = tw.field(h2f.shape, "f8")
    errors, seconds = [abs(discrete).max()], 0.0
    for _ in range(sweeps // batch):
        seconds += tw.run(sor, u=u, h2f=h2f, w=w, steps=batch).measured.time_s
        whole = u.gather()
        if whole is not None:
            errors.append(abs(whole - discrete).max())
    return errors, whole, seconds


def draw(curves, batch, whole, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for label, errors in curves.items():
        left.semilogy(batch * np.arange(len(errors)), errors, label=label)
    left.set(title="largest error against the discrete solution", xlabel="sweeps")
    left.grid(alpha=0.3)
    left.legend()
    figure.colorbar(right.imshow(whole.T, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu_r"), ax=right)
    right.set(title="u", xlabel="x", ylabel="y")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--small", action="store_true", help="a grid of 24 x 24 intervals")
    options.add_argument("--output", type=Path, default=Path("demo/sor.png"))
    given = options.parse_args()
    intervals, batch = (24, 4) if given.small else (512, 64)
    h2f, discrete, exact = problem(intervals)
    best = 2 / (1 + np.sin(np.pi / intervals))  # Young's relaxation
    sweeps = 6 * intervals
    curves = {}
    for label, w in (("Gauss-Seidel, w = 1", 1.0), ("w = 1.9", 1.9), (f"w = {best:.4f}, Young's", best)):
        curves[label], whole, seconds = iterate(h2f, discrete, w, sweeps, batch)
    if whole is None:
        return
    left_over, grid, bound = curves[label][-1], abs(whole - exact).max(), 17 * np.pi**2 / (60 * intervals**2)
    print(f"{intervals} x {intervals} intervals, {sweeps} sweeps in {seconds:.3g} s, "
          f"{sweeps * (intervals - 1) ** 2 / seconds:.3g} points a second")
    print(f"largest error against the discrete solution: {left_over:.1e}")
    print(f"largest error against the exact solution: {grid:.2e}; the grid's own, by Taylor: {bound:.2e}")
    draw(curves, batch, whole, given.output)
    print(f"picture: {given.output}")
    if left_over > 1e-9 or not 0.9 * bound < grid < 1.1 * bound:
        raise SystemExit("the solution is not the known one")


if __name__ == "__main__":
    main()
