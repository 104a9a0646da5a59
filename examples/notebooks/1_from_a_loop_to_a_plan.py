"""
From a loop to a plan
=====================

This notebook takes a loop that NumPy cannot vectorise and Numba cannot run in parallel: each point needs the points
before it. Tilewave reads its dependences, plans it, runs it on all cores, and gives the bits of the plain loops.
"""
import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt

# %%
# A nest is the body of plain loops
# ---------------------------------
# The edit distance of two words: how many letters are changed, put in or left out. The parameter list says how the
# loops are nested; what is subscripted is an array.


@tw.nest
def distance(D, a, b, i, j):
    change = 0 if a[i-1] == b[j-1] else 1
    D[i, j] = min(D[i-1, j] + 1, D[i, j-1] + 1, D[i-1, j-1] + change)


print(*distance.dependences, sep="\n")

# %%
# Run it
# ------
# A field is an array that is distributed over the ranks of a program. A notebook is one rank, whose threads share the
# work. The report says what was chosen and why, and what was predicted and measured.

random = np.random.default_rng(1)
a = random.integers(0, 4, 1500, "i1")
b = np.where(random.random(1500) < 0.2, random.integers(0, 4, 1500), a).astype("i1")
D = tw.field((a.size + 1, b.size + 1), "i4", init=lambda i, j: np.maximum(i, j))
report = tw.run(distance, D=D, a=a, b=b)
whole = D.gather()
print("distance:", whole[-1, -1])
report

# %%
# The same bits
# -------------
# ``reference`` runs the plain loops in Python. They take a while, so here they get a corner of the table.

plain = np.maximum(*np.indices((201, 201))).astype("i4")
distance.reference(((1, 201), (1, 201)), {"D": plain, "a": a, "b": b}, {})
assert np.array_equal(plain, whole[:201, :201])

figure, axes = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
figure.colorbar(axes.imshow(whole, cmap="viridis"), label="distance")
axes.set(title="edit distances of all beginnings", xlabel="letters of b", ylabel="letters of a")
plt.show()

# %%
# A plan is a value
# -----------------
# It is chosen by measuring and predicting. It can be printed, edited, saved, and handed back.

plan = tw.plan(distance, D=D, a=a, b=b)
print(plan.explain())

# %%
# Choices may be fixed; the others are then chosen to suit them.

small = tw.run(distance, D=D, a=a, b=b, plan={"tile": (50, 50)})
print(f"{report.measured.time_s:.1e} s as planned, {small.measured.time_s:.1e} s with tiles of 50 x 50")

# %%
# Numbers on the way
# ------------------
# Where only some numbers of a table are wanted, a reduction finds them while the points are computed, and the field
# keeps a rolling window: memory for the rows that are still needed.

D = tw.field((a.size + 1, b.size + 1), "i4", init=lambda i, j: np.maximum(i, j), keep="window")
found = tw.run(distance, D=D, a=a, b=b, reduce={"largest": tw.max("D"), "at": tw.argmax("D")})
print(found.results)

# %%
# On many nodes
# -------------
# The same lines in a script run on ranks: ``tilewave run -n 4 script.py`` on one machine, and on the hosts of a batch
# job without further options. ``D.gather()`` then is the array on rank 0, and None on the others.
