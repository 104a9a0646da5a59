"""Reductions on the way
=====================

``reduce=`` finds the best score of a local alignment, and where it is, while the scores are computed.

Run it with ``tilewave run -n 2 examples/05_reductions.py``.
"""
from pathlib import Path

import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt


@tw.nest
def align(H, a, b, i, j, *, gap=2):
    H[i, j] = max(0, H[i-1, j-1] + (3 if a[i-1] == b[j-1] else -3), H[i-1, j] - gap, H[i, j-1] - gap)


a, b = (np.frombuffer(text, "u1") for text in (b"TGTTACGG" * 20, b"GGTTGACTA" * 20))
H = tw.field((len(a) + 1, len(b) + 1), "i4")
report = tw.run(align, H=H, a=a, b=b, reduce={"best": tw.argmax("H"), "sum": tw.sum("H")})
i, j = report.results["best"]  # the first place of the largest value
tw.print(f"best score {H[i, j]} at {(i, j)}")
assert H[i, j] == tw.max(H)  # of the field, after the run
whole = H.gather()
if whole is not None:
    assert report.results["sum"] == whole.sum()
    figure, axes = plt.subplots(figsize=(6.4, 5), layout="constrained")
    figure.colorbar(axes.imshow(whole, cmap="viridis"), label="score H")
    axes.plot(j, i, "r+", markersize=12, label=f"best: {whole[i, j]}")
    axes.set(title="scores of local alignments", xlabel="j: base of b", ylabel="i: base of a")
    axes.legend()
    Path("demo").mkdir(exist_ok=True)
    figure.savefig("demo/05_reductions.png")
