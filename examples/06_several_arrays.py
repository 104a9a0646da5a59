"""Several arrays, several nests in a time step
============================================

Sound in a tube: the pressure reads the velocity of the same time step. Arrays have different shapes and offsets.

Run it with ``tilewave run -n 2 examples/06_several_arrays.py``.
"""
from pathlib import Path

import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt


@tw.nest
def velocity(v, p, t, i, j, *, c):
    v[t+1, i, j] = v[t, i, j] - c * (p[t, i, j] - p[t, i-1, j])


@tw.nest
def pressure(p, v, k, t, i, j, *, c):
    p[t+1, i, j] = p[t, i, j] - c * k[i] * (v[t+1, i+1, j] - v[t+1, i, j])


n, m, steps, c = 80, 30, 40, 0.5
k = 1 + 0.5 * np.sin(np.arange(n))  # one number a row: an array with fewer dimensions
start = np.exp(-0.02 * (np.arange(n)[:, None] - 40.0) ** 2) * np.ones(m)
p, v = tw.field(start), tw.field((n, m), "f8")
tw.run((velocity, pressure), steps=steps, p=p, v=v, k=k, c=c)  # pressure reads the velocity of the same step
whole = p.gather()
if whole is not None:
    P, V = start.copy(), np.zeros((n, m))
    for _ in range(steps):
        V[1:] = V[1:] - c * (P[1:] - P[:-1])
        P[:-1] = P[:-1] - c * k[:-1, None] * (V[1:] - V[:-1])
    assert np.allclose(whole, P)
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for label, shown in (("at the beginning", start), (f"after {steps} steps", whole)):
        axes.plot(shown[:, 0], label=label)
    axes.set(title="pressure along the tube", xlabel="i", ylabel="p")
    axes.legend()
    Path("demo").mkdir(exist_ok=True)
    figure.savefig("demo/06_several_arrays.png")
tw.print(f"largest pressure {tw.max(p):.4f}")
