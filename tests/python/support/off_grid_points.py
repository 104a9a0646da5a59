"""What sources and receivers between the points of the grid mean."""

import itertools

import numpy as np


def neighbours(off_grid, shape, steps, step):
    """Of each point the list of (index, weight): plain loops."""
    first, weights = off_grid._neighbours(shape, steps)
    if first.ndim == 3:
        first, weights = first[step], weights[step]
    for point, factors in zip(first, weights, strict=True):
        around = []
        for at in itertools.product(range(factors.shape[1]), repeat=len(shape)):
            weight = np.float64(1)
            for axis, k in enumerate(at):
                weight = weight * factors[axis, k]
            if weight != 0:
                around.append((tuple(int(a) + k for a, k in zip(point, at, strict=True)), weight))
        yield around


def times(weight, number):
    """Complex numbers by parts: a complex product adds zeros, and a -0 becomes 0."""
    wide = number.astype("c16" if number.dtype.kind == "c" else "f8")
    return weight * wide if wide.dtype.kind == "f" else np.complex128(complex(weight * wide.real, weight * wide.imag))
