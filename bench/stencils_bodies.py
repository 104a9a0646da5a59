"""The nests of `bench stencils` and `bench partitions`, and what they begin with."""

import numpy as np
import tilewave as tw


@tw.nest
def heat(u, t, i, j, k):
    u[t+1, i, j, k] = u[t, i, j, k] + 0.1 * (
        u[t, i-1, j, k] + u[t, i+1, j, k] + u[t, i, j-1, k] + u[t, i, j+1, k] + u[t, i, j, k-1] + u[t, i, j, k+1]
        - 6.0 * u[t, i, j, k])


@tw.nest
def order8(u, t, i, j, k):
    u[t+1, i, j, k] = u[t, i, j, k] + 0.05 * (
        -8.541666667 * u[t, i, j, k]
        + 1.6 * (u[t, i-1, j, k] + u[t, i+1, j, k] + u[t, i, j-1, k] + u[t, i, j+1, k] + u[t, i, j, k-1]
                 + u[t, i, j, k+1])
        - 0.2 * (u[t, i-2, j, k] + u[t, i+2, j, k] + u[t, i, j-2, k] + u[t, i, j+2, k] + u[t, i, j, k-2]
                 + u[t, i, j, k+2])
        + 0.025396825 * (u[t, i-3, j, k] + u[t, i+3, j, k] + u[t, i, j-3, k] + u[t, i, j+3, k] + u[t, i, j, k-3]
                         + u[t, i, j, k+3])
        - 0.001785714 * (u[t, i-4, j, k] + u[t, i+4, j, k] + u[t, i, j-4, k] + u[t, i, j+4, k] + u[t, i, j, k-4]
                         + u[t, i, j, k+4]))


#: Name: nest, and how far it reads.
STENCILS = {"heat": (heat, 1), "order8": (order8, 4)}


def start(i, j, k):
    """Values between 0 and 1 that differ from point to point."""
    return ((7 * i + 13 * j + 29 * k) % 101) / np.float32(101)
