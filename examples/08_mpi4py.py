"""In a program of mpi4py
======================

A context may be made of any communicator, and messages of both sides never mix. Here two groups of ranks compute the
same.

Run it with ``tilewave run -n 2 examples/08_mpi4py.py``.
"""
from pathlib import Path

import numpy as np
import tilewave as tw
from matplotlib import pyplot as plt
from mpi4py import MPI

half = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)  # two groups of ranks, each with a context of its own
context = tw.Context(half, threads=1)


@tw.nest
def count(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


A = tw.field((20, 20), "i8", init=lambda i, j: 1 + 0 * i, context=context)
tw.run(count, A=A)  # the context is that of the field
last = np.array([A[-1, -1]])
largest = np.zeros_like(last)
MPI.COMM_WORLD.Allreduce(last, largest, MPI.MAX)
assert last == largest  # both groups have computed the same
whole = A.gather()
if MPI.COMM_WORLD.rank == 0:
    print("paths through a grid of 20 x 20 points:", int(largest[0]))
    figure, axes = plt.subplots(figsize=(5.8, 4.6), layout="constrained")
    figure.colorbar(axes.imshow(np.log10(whole), cmap="YlGn"), label="log10 of paths")
    axes.set(title="paths from the corner, computed by each group", xlabel="j", ylabel="i")
    Path("demo").mkdir(exist_ok=True)
    figure.savefig("demo/08_mpi4py.png")
