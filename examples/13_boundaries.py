"""Boundaries
==========

Dirichlet, periodic, Neumann and reflecting boundaries cost no more than their points.

Run it with ``tilewave run -n 2 examples/13_boundaries.py``.
"""
from pathlib import Path

import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt


@tw.nest
def heat(u, t, i, j, *, c=0.2):
    u[t+1, i, j] = u[t, i, j] + c * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])


@tw.nest
def step(new, old, i, j, *, c=0.2):
    new[i, j] = old[i, j] + c * (old[i-1, j] + old[i+1, j] + old[i, j-1] + old[i, j+1] - 4 * old[i, j])


@tw.nest
def below(u, i, j, *, sign):
    u[i, j] = sign * u[i+1, j]  # the ghost row mirrors the row inside


@tw.nest
def above(u, i, j, *, sign):
    u[i, j] = sign * u[i-1, j]


n, steps = 48, 40
random = np.random.default_rng(1).random((n, n))

# Dirichlet: elements outside the loops keep their values. Periodic: subscripts wrap.
fixed = tw.field((n, n), "f8", init=random)
tw.run(heat, u=fixed, steps=steps)
around = tw.field((n, n), "f8", init=random)
tw.run(heat, u=around, steps=steps, periodic=("i", "j"))


def mirrored(sign):
    """Rows 0 and n-1 are ghosts: +1 is Neumann (no flux), -1 reflects with the sign turned (zero between two rows)."""
    a, b = tw.field((n, n), "f8", init=random), tw.field((n, n), "f8", init=random)
    nests = []
    for new, old in ((b, a), (a, b)):
        nests += [
            tw.bind(below, u=old, over={"i": (0, 1)}, sign=sign),
            tw.bind(above, u=old, over={"i": (n - 1, n)}, sign=sign),
            tw.bind(step, new=new, old=old),
        ]
    tw.chain(nests).run(times=steps // 2)  # one schedule: nothing is agreed on between the nests
    return a


def plain(sides, fill):
    """The same with NumPy: what each step puts into the ghosts."""
    u = random.copy()
    for _ in range(steps):
        v = np.pad(u, 1, mode="wrap") if sides == "wrap" else u
        if fill is not None:
            v[0], v[-1] = fill * v[1], fill * v[-2]
        new = v[1:-1, 1:-1] + 0.2 * (v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - 4 * v[1:-1, 1:-1])
        if sides == "wrap":
            u = new
        else:
            u[1:-1, 1:-1] = new
    return u


figure, panels = plt.subplots(1, 4, figsize=(12, 3.4), sharey=True, layout="constrained")
for axes, (name, field, sides, fill) in zip(panels, (
    ("Dirichlet", fixed, "", None),
    ("periodic", around, "wrap", None),
    ("Neumann", mirrored(1.0), "", 1.0),
    ("reflecting", mirrored(-1.0), "", -1.0),
)):
    whole = field.gather()
    if whole is not None:
        assert np.array_equal(whole[1:-1], plain(sides, fill)[1:-1]), name
        image = axes.imshow(whole, vmin=0.2, vmax=0.8, cmap="inferno")
        axes.set(title=name, xlabel="j", ylabel="i")
    tw.print(f"{name:10} mean {tw.sum(field) / n**2:.6f}")
if tw.rank == 0:
    figure.suptitle(f"heat after {steps} steps from random values")
    figure.colorbar(image, ax=panels, label="u")
    Path("demo").mkdir(exist_ok=True)
    figure.savefig("demo/13_boundaries.png")
