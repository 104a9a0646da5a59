"""Relaxation until a norm is small: heat around obstacles
=======================================================

``tilewave run -n 2 examples/18_relaxation.py``

A plate is hot on its left side and cold on its right one. Obstacles on it keep their temperatures. Each point becomes
the mean of its four neighbours, over and over, until the residual is small (successive over-relaxation): each point
needs the new values of the points before it, so no compiler makes these loops parallel.
"""
import numpy as np
import tilewave as tw


@tw.nest
def relax(u, fixed, i, j, *, w):
    if not fixed[i, j]:
        d = 0.25 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) - u[i, j]
        u[i, j] = u[i, j] + w * d


def plate(n):
    """Where the temperature is fixed, and the temperatures to begin with."""
    y, x = np.mgrid[0:1:n * 1j, 0:1:n * 1j]
    u, fixed = np.broadcast_to(1 - x, (n, n)).copy(), np.zeros((n, n), "u1")
    for at_y, at_x, radius, value in ((0.3, 0.35, 0.12, 0.0), (0.7, 0.45, 0.15, 1.0), (0.45, 0.75, 0.1, 1.0)):
        inside = (y - at_y) ** 2 + (x - at_x) ** 2 < radius**2
        u[inside], fixed[inside] = value, 1
    return u, fixed


def draw(u, norms, path):
    """The temperatures, and how the residual falls."""
    from pathlib import Path

    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    rows, columns = u.shape
    figure.suptitle(f"Over-relaxation around three obstacles: {rows} x {columns} points, until the residual is 1e-6")
    left, right = figure.subplots(1, 2)
    figure.colorbar(left.imshow(u, cmap="inferno"), ax=left)
    left.contour(u, levels=np.linspace(0.1, 0.9, 9), colors="white", linewidths=0.6)
    left.set(title="temperature", xlabel="j", ylabel="i")
    right.semilogy(20 * np.arange(1, len(norms) + 1), norms)
    right.set(title="largest residual", xlabel="sweeps")
    right.grid(alpha=0.3)
    Path(path).parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)


n = 200
start, fixed = plate(n)
u = tw.field(start)
sweep = tw.bind(relax, u=u, fixed=tw.field(fixed), w=1.97, reduce={"residual": tw.norm("d", ord=np.inf)})
report = tw.chain([sweep]).run(times=10_000, until={"residual": 1e-6}, every=20)
tw.print(report)
assert report.reached
whole = u.gather()  # a NumPy array on rank 0, None elsewhere
if whole is not None:
    draw(whole, [values["residual"] for values in report.history], "demo/18_relaxation.png")
    assert abs(np.where(fixed, whole - start, 0)).max() == 0
    tw.print("picture: demo/18_relaxation.png")
