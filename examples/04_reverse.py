"""Direction of the loops
======================

``reverse=`` turns a loop round. Four sweeps, one from each corner, give the distance to the nearest source.

Run it with ``tilewave run -n 2 examples/04_reverse.py``.
"""
import itertools
from pathlib import Path

import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt


@tw.nest
def distance(D, i, j):
    D[i, j] = min(D[i, j], D[i-1, j] + 1, D[i+1, j] + 1, D[i, j-1] + 1, D[i, j+1] + 1)


n, sources = 60, [(7, 50), (40, 12)]
far = np.full((n, n), 1 << 20)
for i, j in sources:
    far[i, j] = 0
D = tw.field(far)
for corner in itertools.product((False, True), repeat=2):
    tw.run(distance, D=D, reverse=[index for index, down in zip("ij", corner) if down])
whole = D.gather()
if whole is not None:
    i, j = np.indices((n, n))
    plain = np.minimum.reduce([abs(i - a) + abs(j - b) for a, b in sources])
    assert np.array_equal(whole[1:-1, 1:-1], plain[1:-1, 1:-1])  # the border is given, not computed
    figure, axes = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
    figure.colorbar(axes.imshow(whole[1:-1, 1:-1], extent=(0.5, n - 1.5, n - 1.5, 0.5)), label="steps")
    axes.plot(*np.array(sources).T[::-1], "r*", markersize=10, label="source")
    axes.set(title="steps to the nearest source", xlabel="j", ylabel="i")
    axes.legend(loc="lower right")
    Path("demo").mkdir(exist_ok=True)
    figure.savefig("demo/04_reverse.png")
inside = D[1:-1, 1:-1]  # by global index, on every rank
tw.print("largest distance inside:", int(inside.max()))
