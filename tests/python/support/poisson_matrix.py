"""-div(k grad u) + sigma u on a small box of cells as a dense matrix, from the definition."""

import numpy as np


def poisson_matrix(shape, spacing=None, boundary="dirichlet", k=1.0, sigma=0.0):
    """The matrix; arguments as those of `tilewave.multigrid.Poisson`."""
    dims = len(shape)
    h = [1 / n for n in shape] if spacing is None else np.broadcast_to(spacing, dims)
    sides = [boundary] * dims if isinstance(boundary, str) else boundary
    pairs = [(b, b) if isinstance(b, str) else b for b in sides]
    k, sigma = (np.broadcast_to(v(*np.indices(shape)) if callable(v) else v, shape) for v in (k, sigma))
    numbers = np.arange(np.prod(shape)).reshape(shape)
    matrix = np.zeros((numbers.size, numbers.size), np.result_type(float, sigma.dtype))
    for cell in np.ndindex(*shape):
        here = numbers[cell]
        matrix[here, here] += sigma[cell]
        for axis in range(dims):
            for side, step in enumerate((-1, 1)):
                other = list(cell)
                other[axis] += step
                if not 0 <= other[axis] < shape[axis]:
                    if pairs[axis][side] != "periodic":
                        matrix[here, here] += 2 * k[cell] / h[axis] ** 2 * (pairs[axis][side] == "dirichlet")
                        continue
                    other[axis] %= shape[axis]
                there = tuple(other)
                mean = 2 * k[cell] * k[there] / (k[cell] + k[there]) if k[cell] and k[there] else 0.0
                flow = mean / h[axis] ** 2
                matrix[here, here] += flow
                matrix[here, numbers[there]] -= flow
    return matrix
