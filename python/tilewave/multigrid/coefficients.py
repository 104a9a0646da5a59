"""What couples cells: by axis and level, the conductance of the faces between them over the square of the spacing."""

import numpy as np

#: Weights of a correction at a cell beside a boundary: a mirrored value (Dirichlet), or the same value (Neumann).
BESIDE_BOUNDARY = {"dirichlet": -0.25, "neumann": 0.25}


def constant_faces(cells, spacing, boundary):
    """Along one axis: element i is the face below cell i, which counts from 1; the last one is above all cells."""
    faces = np.full(cells + 2, 1.0 / spacing**2)
    outside = {"dirichlet": 2.0, "neumann": 0.0}
    faces[1] *= outside[boundary[0]]
    faces[cells + 1] *= outside[boundary[1]]
    return faces


def variable_faces(k, spacing, boundary, axis):
    """The same of a coefficient that varies: harmonic means of the cells on both sides; indices of cells from 1."""
    faces = np.zeros([extent + 2 for extent in k.shape])
    inside = tuple(slice(1, -1) for _ in k.shape)

    def at(first, last):
        return tuple(slice(first, last) if d == axis else cut for d, cut in enumerate(inside))

    below, above = (np.take(k, range(*ends), axis) for ends in ((0, k.shape[axis] - 1), (1, k.shape[axis])))
    faces[at(2, -1)] = 2 * below * above / (below + above)
    for side, (face, cell) in enumerate(((1, 0), (k.shape[axis] + 1, -1))):
        if boundary[side] == "dirichlet":
            faces[at(face, face + 1)] = 2 * np.take(k, [cell], axis)
    return faces / spacing**2


def coarser_faces(faces, axis):
    """Of cells twice as long: the mean of the finer faces in each face."""
    coarse = np.zeros([extent // 2 + 1 for extent in faces.shape])
    pairs = [np.arange(1, extent // 2) for extent in faces.shape]
    pairs[axis] = np.arange(1, faces.shape[axis] // 2 + 1)
    total = 0.0
    for corner in np.ndindex(*(1 if d == axis else 2 for d in range(faces.ndim))):
        total = total + faces[np.ix_(*(2 * p - 1 + c for p, c in zip(pairs, corner, strict=True)))]
    coarse[np.ix_(*pairs)] = total / (4 * 2 ** (faces.ndim - 1))
    return coarse


def dense_matrix(shape, faces, sigma):
    """The operator of a small grid as a matrix; `faces` by axis, of cells with indices from 1."""
    numbers = np.arange(np.prod(shape)).reshape(shape)
    matrix = np.zeros((numbers.size, numbers.size), np.result_type(float, type(sigma)))
    for cell in np.ndindex(*shape):
        here = numbers[cell]
        matrix[here, here] += sigma
        for axis, along in enumerate(faces):
            for step in (0, 1):
                at = tuple(c + 1 + (step if d == axis else 0) for d, c in enumerate(cell))
                conductance = along[at[axis]] if along.ndim == 1 else along[at]
                matrix[here, here] += conductance
                other = tuple(c + (2 * step - 1 if d == axis else 0) for d, c in enumerate(cell))
                if 0 <= other[axis] < shape[axis]:
                    matrix[here, numbers[other]] -= conductance
    return matrix


def sweeps_for(matrix, factor, most):
    """Gauss-Seidel sweeps, forth and back in turn, after which the error of a small system is `factor` times less."""
    lower = np.tril(matrix)
    forth = np.eye(len(matrix)) - np.linalg.solve(lower, matrix)
    back = np.eye(len(matrix)) - np.linalg.solve(np.triu(matrix), matrix)
    sizes = np.sort(np.abs(np.linalg.eigvals(back @ forth)))
    slowest = sizes[sizes < 1 - 1e-9][-1:]  # constants stay in a problem without fixed values
    if not slowest.size or slowest[0] <= 0:
        return 2
    return 2 * int(np.clip(np.ceil(np.log(factor) / np.log(slowest[0])), 1, most // 2))
