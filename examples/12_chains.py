"""A chain of nests is one schedule
================================

It is repeated until a residual is small; no rank waits at a barrier between its nests.

Run it with ``tilewave run -n 2 examples/12_chains.py``.
"""
from pathlib import Path

import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt


@tw.nest
def smooth(u, f, i, j, *, omega):
    u[i, j] = (1 - omega) * u[i, j] + omega * 0.25 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] + f[i, j])


@tw.nest
def residual(r, u, f, i, j):
    r[i, j] = abs(f[i, j] - 4 * u[i, j] + u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1])


n = 49
h = 1 / (n - 1)
u, r = tw.field((n, n), "f8"), tw.field((n, n), "f8")
f = tw.field((n, n), "f8", init=lambda i, j: 2 * np.pi**2 * h * h * np.sin(np.pi * i * h) * np.sin(np.pi * j * h))
cycle = tw.chain([
    tw.bind(smooth, u=u, f=f, omega=1.0),
    tw.bind(smooth, u=u, f=f, omega=1.0, reverse=("i", "j")),  # back: together they are symmetric
    tw.bind(residual, r=r, u=u, f=f, reduce={"r": tw.max("r")}),
])
tw.print(cycle)
first = cycle.run(times=5)  # as a smoother
report = cycle.run(times=1000, until={"r": 1e-9}, every=5, omega=1.8)
assert report.reached and report.results["r"] <= 1e-9 < first.results["r"]
tw.print(f"{report.repetitions} cycles with omega = 1.8 left a residual of {report.results['r']:.1e}")
whole = u.gather()
if whole is not None:
    x = np.sin(np.pi * h * np.arange(n))
    assert np.abs(whole - np.outer(x, x)).max() < h * h  # the discretisation's error
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    axes.semilogy(5 * np.arange(1, len(report.history) + 1), [values["r"] for values in report.history], "o-")
    axes.set(title="symmetric over-relaxation, omega = 1.8", xlabel="cycles", ylabel="largest residual")
    axes.grid(alpha=0.3)
    Path("demo").mkdir(exist_ok=True)
    figure.savefig("demo/12_chains.png")
