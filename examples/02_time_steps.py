"""Time is a loop whose index writes at t+1
========================================

Heat spreads on a plate for 50 time steps; the field has no dimension for time.

Run it with ``tilewave run -n 2 examples/02_time_steps.py``.
"""
from pathlib import Path

import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt


@tw.nest
def heat(u, t, i, j, *, c):
    u[t+1, i, j] = u[t, i, j] + c * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])


n, steps = 100, 50
u = tw.field((n, n), "f8", init=lambda i, j: np.sin(np.pi * i / (n - 1)) * np.sin(np.pi * j / (n - 1)))
start = u.gather()
tw.run(heat, u=u, c=0.2, steps=steps)  # u has no dimension for time: it ends as time step 50
whole = u.gather()
if whole is not None:  # this wave is an eigenvector of the step
    factor = 1 - 4 * 0.2 * (1 - np.cos(np.pi / (n - 1)))
    assert np.allclose(whole, factor**steps * start)
    figure, panels = plt.subplots(1, 2, figsize=(8.5, 3.8), sharey=True, layout="constrained")
    for axes, shown, title in zip(panels, (start, whole), ("at the beginning", f"after {steps} steps")):
        image = axes.imshow(shown, vmin=0, vmax=1, cmap="inferno")
        axes.set(title=f"temperature {title}", xlabel="j", ylabel="i")
    figure.colorbar(image, ax=panels, label="u")
    Path("demo").mkdir(exist_ok=True)
    figure.savefig("demo/02_time_steps.png")
tw.print(f"after {steps} steps the largest value is {tw.max(u):.4f}")
