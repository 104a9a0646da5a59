"""
Waves with a source and receivers
=================================

A wave in layers of rock, as a seismic survey sends it: one source, a line of receivers, absorbing borders. The nest
reads two time steps, and the library adds the source's values and records those at the receivers after each step.
"""
import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt

# %%
# The nest
# --------
# ``c`` is the square of the speed in cells a time step, ``damping`` grows towards the borders.


@tw.nest
def wave(u, c, damping, t, i, j):
    new = (2 * u[t, i, j] - u[t-1, i, j] * (1 - damping[i, j])
           + c[i, j] * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j]))
    u[t+1, i, j] = new * (1 - damping[i, j])


# %%
# The rock
# --------
# Three layers and a lens. Depth is down.

n, m, steps = 180, 240, 420
i, j = np.indices((n, m))
speed = np.select([i < 70, i < 120 + 0.1 * j], [0.35, 0.45], 0.6)
speed[((i - 100) / 12.0) ** 2 + ((j - 150) / 35.0) ** 2 < 1] = 0.3
c = speed**2
depth = np.minimum(np.minimum(i, n - 1 - i), np.minimum(j, m - 1 - j))
damping = 0.02 * np.clip(1 - depth / 25, 0, 1) ** 2

# %%
# Source and receivers
# --------------------
# A Ricker wavelet, and receivers in every second column of one row. ``inject=`` takes points and values, ``record=``
# points.

when = np.arange(steps) - 45
wavelet = (1 - 2 * (np.pi * when / 40) ** 2) * np.exp(-(np.pi * when / 40) ** 2)
source, receivers = (30, 80), [(30, column) for column in range(26, m - 26, 2)]


def shot(source, receivers):
    u = tw.field((n, m), "f8")
    report = tw.run(wave, u=u, c=c, damping=damping, steps=steps, inject={"u": ([source], wavelet[:, None])},
                    record={"u": receivers})
    return u.gather(), report.recorded["u"], report


field, traces, report = shot(source, receivers)
print(f"{steps} time steps, {report.points_per_s:.2e} points a second")

# %%
# Check
# -----
# Source and receiver may change places where both are in the same rock: the trace stays the same.

there, back = shot(source, [(40, 180)])[1], shot((40, 180), [source])[1]
assert np.allclose(there, back, atol=1e-10 * abs(there).max())

# %%
# The pictures
# ------------

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
left.imshow(speed, cmap="gray", alpha=0.6)
most = 0.3 * abs(field).max()
image = left.imshow(field, cmap="RdBu_r", vmin=-most, vmax=most, alpha=0.7)
figure.colorbar(image, ax=left, label="u", shrink=0.8)
left.plot(*np.array(receivers).T[::-1], "k.", markersize=2, label="receivers")
left.plot(*source[::-1], "r*", markersize=10, label="source")
left.set(title=f"the wave after {steps} time steps", xlabel="column", ylabel="depth (row)")
left.legend(loc="lower left", fontsize=8)
most = 0.05 * abs(traces).max()
right.imshow(traces, cmap="gray", aspect="auto", vmin=-most, vmax=most, extent=(26, m - 26, steps, 0))
right.set(title="what the receivers record", xlabel="column of the receiver", ylabel="time step")
plt.show()
