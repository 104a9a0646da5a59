"""Bounds of the loops
===================

``over=`` narrows the loops; bounds may depend on outer indices. Here it keeps the points on and below the diagonal.

Run it with ``tilewave run -n 2 examples/03_bounds.py``.
"""
from pathlib import Path

import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt


@tw.nest
def paths(P, i, j):
    P[i, j] = P[i-1, j] + P[i, j-1]


n = 12
P = tw.field((n, n), "i8", init=lambda i, j: ((i == 0) | (j == 0)) * 1)
tw.run(paths, P=P, over={"j": (1, "i+1")})  # j < i + 1: paths that stay below the diagonal, and touch it
whole = P.gather()
if whole is not None:
    plain = ((np.arange(n)[:, None] == 0) | (np.arange(n) == 0)).astype("i8")
    for i in range(1, n):
        for j in range(1, i + 1):
            plain[i, j] = plain[i-1, j] + plain[i, j-1]
    assert np.array_equal(whole, plain)
    print(whole[:6, :6])
    figure, axes = plt.subplots(figsize=(5.4, 5), layout="constrained")
    axes.imshow(np.where(np.tri(n), np.log(np.maximum(whole, 1)), np.nan), cmap="YlGn")
    for i, j in zip(*np.nonzero(np.tri(n))):
        axes.text(j, i, whole[i, j], ha="center", va="center", fontsize=6)
    axes.set(title="paths to each point that stay below the diagonal", xlabel="j", ylabel="i")
    Path("demo").mkdir(exist_ok=True)
    figure.savefig("demo/03_bounds.png")
