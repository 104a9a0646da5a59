"""A chain of nests is one schedule, repeated until a residual is small.    tilewave run -n 2 examples/12_chains.py"""
import numpy as np
import tilewave as tw


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
