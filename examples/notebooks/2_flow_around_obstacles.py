"""
Flow around obstacles, by over-relaxation
=========================================

Successive over-relaxation updates a grid in place: each point takes the new values of two neighbours and the old values
of the other two. That converges fast, but its loops depend on each other, so that it is mostly replaced by red-black
orderings. Here it runs as it is written, on all cores, until a norm is small.
"""
import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt

# %%
# The problem
# -----------
# Lines of equal ``psi`` are the streamlines of an ideal flow from left to right. Between obstacles psi is the mean of
# its neighbours; in each obstacle, and on the walls, it is a number: the height of its middle.

n, m = 120, 300
i, j = np.indices((n, m))
psi_given, solid = i / (n - 1.0), (i == 0) | (i == n - 1) | (j == 0) | (j == m - 1)
for row, column, radius in ((60, 80, 18), (35, 170, 14), (85, 175, 14), (60, 240, 10)):
    inside = (i - row) ** 2 + (j - column) ** 2 <= radius**2
    solid |= inside
    psi_given[inside] = row / (n - 1)

# %%
# The nest
# --------
# ``change`` is assigned where there is flow, so that its norm is that of these points.


@tw.nest
def relax(psi, solid, i, j, *, w):
    if solid[i, j] == 0:
        change = 0.25 * (psi[i-1, j] + psi[i+1, j] + psi[i, j-1] + psi[i, j+1]) - psi[i, j]
        psi[i, j] = psi[i, j] + w * change


# %%
# Until a norm
# ------------
# A bound nest is planned and compiled once. A chain of bound nests is one schedule, repeated until the norm is small;
# it is looked at after every tenth sweep.

psi = tw.field(psi_given)
w = 2 / (1 + np.sin(np.pi / n))
sweep = tw.bind(relax, psi=psi, solid=solid.astype("u1"), w=w, reduce={"largest": tw.norm("change", ord=np.inf)})
report = tw.chain([sweep]).run(times=5000, until={"largest": 1e-8}, every=10)
print(report.repetitions, "sweeps,", f"{report.points_per_s:.2e} points a second")

# %%
# Check
# -----
# The equations hold, and some sweeps have the bits of the plain loops.

psi = psi.gather()
means = 0.25 * (psi[:-2, 1:-1] + psi[2:, 1:-1] + psi[1:-1, :-2] + psi[1:-1, 2:])
assert report.reached and abs(means - psi[1:-1, 1:-1])[~solid[1:-1, 1:-1]].max() < 1e-7

few, plain = tw.field(psi_given), psi_given.copy()
for _ in range(2):
    tw.run(relax, psi=few, solid=solid.astype("u1"), w=w)
    relax.reference(((1, n - 1), (1, m - 1)), {"psi": plain, "solid": solid.astype("u1")}, {"w": w})
assert np.array_equal(few.gather(), plain)

# %%
# The picture
# -----------

figure, (above, below) = plt.subplots(2, 1, figsize=(8, 7.4), layout="constrained", height_ratios=(3, 2))
above.contour(psi, levels=30, colors="tab:blue", linewidths=0.8)
above.imshow(np.where(solid, 0.6, np.nan), cmap="gray", vmin=0, vmax=1)
above.set(title="streamlines around obstacles", xlabel="j", ylabel="i", aspect="equal")
norms = [values["largest"] for values in report.history]
below.semilogy(10 * np.arange(1, len(norms) + 1), norms)
below.set(title="largest change in a sweep", xlabel="sweeps", ylabel="largest change")
below.grid(alpha=0.3)
plt.show()
