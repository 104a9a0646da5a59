"""Halos for a kernel of one's own
===============================

Heat diffusion in Numba; halos are three calls. It is the first program of ImplicitGlobalGrid.jl: two Gaussian
anomalies of the temperature, and of the heat capacity.

Run it with ``tilewave run -n 2 examples/14_halos.py``.
"""
from pathlib import Path

import numba
import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt


@numba.njit
def step(T2, T, Cp, lam, dt, h):
    for i in range(1, T.shape[0] - 1):
        for j in range(1, T.shape[1] - 1):
            for k in range(1, T.shape[2] - 1):
                flow = (T[i+1, j, k] + T[i-1, j, k] + T[i, j+1, k] + T[i, j-1, k] + T[i, j, k+1] + T[i, j, k-1]
                        - 6 * T[i, j, k])
                T2[i, j, k] = T[i, j, k] + dt * lam / Cp[i, j, k] * flow / h**2


def anomalies(base, height, width, *centers):
    return lambda i, j, k: base + height * sum(
        np.exp(-((i*h - x) / width)**2 - ((j*h - y) / width)**2 - ((k*h - z) / width)**2) for x, y, z in centers)


n, length, lam = 48, 10.0, 1.0
h = length / (n - 1)
dt = h**2 / lam / 8.1
Cp = tw.field((n, n, n), init=anomalies(1, 5, 1, (6.7, 5, 6.7), (3.3, 5, 6.7)), halo=1)  # 1
T = tw.field((n, n, n), init=anomalies(0, 100, 2, (5, 5, 3.3), (5, 5, 6.7)), halo=1)
T2 = T.copy()
start = T.gather(), Cp.gather()
tw.exchange(Cp, T, T2)
for _ in range(50):
    step(T2.local, T.local, Cp.local, lam, dt, h)  # 2
    tw.exchange(T2)  # 3
    T, T2 = T2, T
tw.print(f"ranks: {tw.size}; hottest {tw.max(T):.3f} after 50 steps")

whole = T.gather()
if whole is not None:  # the same on one array
    a, b = start[0], start[0].copy()
    for _ in range(50):
        step(b, a, start[1], lam, dt, h)
        a, b = b, a
    assert np.allclose(a, whole, rtol=1e-13, atol=0)
    figure, panels = plt.subplots(1, 2, figsize=(8.5, 3.8), sharey=True, layout="constrained")
    for axes, shown, title in zip(panels, (start[0], whole), ("at the beginning", "after 50 steps")):
        image = axes.imshow(shown[:, n // 2].T, origin="lower", extent=(0, length, 0, length), vmin=0,
                            vmax=start[0].max(), cmap="inferno")
        axes.set(title=f"temperature {title}", xlabel="x", ylabel="z")
    figure.colorbar(image, ax=panels, label="T at y = 5")
    Path("demo").mkdir(exist_ok=True)
    figure.savefig("demo/14_halos.png")
