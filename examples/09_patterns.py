"""Communication patterns
======================

Broadcast, allgather and reduce-scatter on matrices with any row stride.

Run it with ``tilewave run -n 3 examples/09_patterns.py``.
"""
from pathlib import Path

import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt
from tilewave import patterns

whole = np.arange(200.0).reshape(10, 20) if tw.rank == 0 else np.zeros((10, 20))
part = whole[:, 3:9]  # six columns of a larger matrix: nothing is packed by hand
patterns.broadcast(part, root=0)
assert np.array_equal(part, np.arange(200.0).reshape(10, 20)[:, 3:9])

panel = np.full((4, 2), float(tw.rank))  # two columns a rank
rows = patterns.spread(panel)  # MPI_Allgatherv: all columns on every rank
assert np.array_equal(rows[0], np.repeat(np.arange(tw.size), 2))
part = patterns.multi_reduce(rows)  # MPI_Reduce_scatter: the sum, each rank its columns
assert np.array_equal(part, panel * tw.size)

handle = patterns.broadcast(whole, root=0, wait=False)  # in flight while we compute
residual = patterns.allreduce(float(tw.rank), "max")
handle.wait()
tw.print("the largest rank is", int(residual))
if tw.rank == 0:
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    axes.imshow(rows, cmap="Set2", vmin=0, vmax=7)
    for column in range(rows.shape[1]):
        axes.text(column, 1.5, f"rank {column // 2}", ha="center", rotation=90)
    axes.set(title="what every rank has after spread", xlabel="column", ylabel="row")
    Path("demo").mkdir(exist_ok=True)
    figure.savefig("demo/09_patterns.png")
