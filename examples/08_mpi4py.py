"""In a program of mpi4py: any communicator, its messages beside ours.    tilewave run -n 2 examples/08_mpi4py.py"""
import numpy as np
import tilewave as tw
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
if MPI.COMM_WORLD.rank == 0:
    print("paths through a grid of 20 x 20 points:", int(largest[0]))
