"""This file has what couples cells: by axis and grid, the conductance of the faces between them over the square of the
spacing.

Arrays count cells from 1. Element i of an axis is the face below cell i, the last one is above all cells. On grids with
cells of several lengths, equations are multiplied by the volume of the cell in terms of the largest: so they are
symmetric.
"""

import numpy as np

#: The conductance of outer faces in terms of one between two cells.
OUTSIDE = {"dirichlet": 2.0, "neumann": 0.0, "periodic": 1.0}


def constant_faces(cells, spacing, boundary):
    """Along one axis, where all cells are equal."""
    faces = np.full(cells + 2, 1.0 / spacing**2)
    faces[1] *= OUTSIDE[boundary[0]]
    faces[cells + 1] *= OUTSIDE[boundary[1]]
    return faces


def variable_faces(k, spacing, boundary, axis):
    """The same of a coefficient that varies: harmonic means of the cells on both sides."""
    faces = np.zeros([extent + 2 for extent in k.shape])

    def at(face):
        return tuple(face if d == axis else slice(1, -1) for d in range(k.ndim))

    cells = np.moveaxis(k, axis, 0)
    inner = _harmonic(cells[:-1], cells[1:])
    faces[at(slice(2, -1))] = np.moveaxis(inner, 0, axis)
    for face, cell, side in ((1, 0, boundary[0]), (len(cells) + 1, -1, boundary[1])):
        if side == "dirichlet":
            faces[at(face)] = 2 * cells[cell]
        elif side == "periodic":
            faces[at(face)] = _harmonic(cells[0], cells[-1])
    return faces / spacing**2


def _harmonic(a, b):
    """The harmonic mean, also of numbers whose product is no double; 0 beside a cell of 0."""
    return 2 * a * (b / np.where(b > 0, a + b, 1.0))


def everywhere(along, axis, shape):
    """Faces that vary along their axis alone as an array of all cells."""
    faces = np.zeros([extent + 2 for extent in shape])
    cells = tuple(slice(1, None) if d == axis else slice(1, -1) for d in range(len(shape)))
    faces[cells] = along[1:].reshape([-1 if d == axis else 1 for d in range(len(shape))])
    return faces


def coarser_line(along, fine, coarse):
    """Faces that vary along their axis alone, of equal cells, on the coarser grid."""
    if coarse is fine:
        return along
    faces = np.zeros(coarse.cells + 2)
    faces[1:] = along[1::2] * (fine.distances[::2] / coarse.distances) / 2
    return faces


def coarser_faces(faces, axis, fine, coarse):
    """Return each coarse face: the finer faces in it, in parallel, and in series what lies between the centres.

    Parameters
    ----------
    faces : numpy.ndarray
    axis : int
        The one that the faces are normal to.
    fine, coarse : list of Axis
    """
    along = np.moveaxis(faces, axis, 0)
    if coarse[axis] is not fine[axis]:
        along = _in_series(along, fine[axis], coarse[axis])
    return coarser_cells(np.moveaxis(along, 0, axis), fine, coarse, axis)


def _in_series(faces, fine, coarse):
    """Faces along the first axis: between one coarse centre and the next lie the face between the two coarse cells
    and parts of those that are inside them. At least what the face between them alone says: where it is
    much less, `k` jumps inside a coarse cell, and a correction that is equal in all of it would be too large.
    """
    shape = [-1] + [1] * (faces.ndim - 1)
    with np.errstate(divide="ignore"):
        resistance = 1 / faces
    pairs, cells = fine.cells // 2, coarse.cells
    lower, upper = fine.lengths[0 : 2 * pairs : 2], fine.lengths[1::2]
    inside = resistance[2 : 2 * pairs + 1 : 2]
    below, above = (np.zeros((cells + 2, *faces.shape[1:])) for _ in range(2))  # from a face to the centre beyond it
    above[1 : 1 + pairs] = inside * (upper / (lower + upper)).reshape(shape)
    below[1 : 1 + pairs] = inside * (lower / (lower + upper)).reshape(shape)
    if fine.periodic:
        below[0], above[-1] = below[cells], above[1]
    taken = np.minimum(1 + 2 * np.arange(cells + 1), fine.cells + 1)
    wider = (fine.distances[taken - 1] / coarse.distances).reshape(shape)
    found = np.zeros_like(below)
    found[1:] = np.maximum(1 / (resistance[taken] + below[:-1] + above[1:]), faces[taken] * wider)
    return found


def coarser_cells(values, fine, coarse, but=None):
    """Sums over the cells of each coarser one, over the number that it has where it is whole; not along axis `but`."""
    for d, (a, b) in enumerate(zip(fine, coarse, strict=True)):
        if b is a:
            continue
        if d != but:
            low = np.take(values, range(1, a.cells + 1, 2), d)
            high = np.take(values, range(2, 2 * b.cells + 1, 2), d)  # beyond an odd number of cells there is 0
            values = np.pad(low + high, [(1, 1) if e == d else (0, 0) for e in range(len(fine))])
        values = values / 2
    return values


def coupled(faces, sigma):
    """Return the sum of each cell's faces and sigma, 0 around the cells: 0 without material, or for one cell alone."""
    total = np.zeros(sigma.shape, sigma.dtype)
    inside = tuple(slice(1, -1) for _ in sigma.shape)
    total[inside] = sigma[inside]
    for axis, along in enumerate(faces):
        above = tuple(slice(2, None) if d == axis else slice(1, -1) for d in range(sigma.ndim))
        total[inside] += along[inside] + along[above]
    return total


def diagonal(faces, sigma):
    """Return what each cell's value is multiplied by: its faces and sigma.

    Where that is 0, some other number leaves 0 what is 0.
    """
    total = coupled(faces, sigma)
    return np.where(total == 0, np.abs(total).max() or 1.0, total)


def operator_of(faces, sigma, axes):
    """Return by offset of a neighbour what its value is multiplied by: of upper ones, and of the cell itself; see
    `galerkin`.

    Parameters
    ----------
    faces : list of numpy.ndarray
        By axis those normal to it, in arrays of all dimensions.
    sigma : numpy.ndarray
        Of the cells.
    axes : list of Axis
    """
    dims = len(axes)
    inside = (slice(1, -1),) * dims
    operator, diagonal = {}, sigma.copy()
    for d, (along, axis) in enumerate(zip(faces, axes, strict=True)):
        above = along[tuple(slice(2, None) if e == d else slice(1, -1) for e in range(dims))]
        diagonal = diagonal + (along[inside] + above)
        last = np.indices(sigma.shape, sparse=True)[d] == axis.cells - 1
        offset = tuple(int(e == d) for e in range(dims))
        operator[offset] = -above if axis.periodic and axis.cells > 1 else np.where(last, 0.0, -above)
        if axis.periodic and axis.cells == 1:  # it has nothing to exchange with itself
            diagonal = diagonal - 2 * above
    return {(0,) * dims: diagonal, **operator}


def dense_matrix(operator):
    """Such an operator of a small grid as a matrix; the other half is its transpose."""
    shape = next(iter(operator.values())).shape
    numbers = np.arange(np.prod(shape)).reshape(shape)
    matrix = np.zeros((numbers.size, numbers.size), np.result_type(*operator.values()))
    for o, a in operator.items():
        others = shifted(numbers, o)
        np.add.at(matrix, (numbers, others), a)
        if any(o):
            np.add.at(matrix, (others, numbers), a)
    return matrix


def shifted(values, steps, sign=1):
    """Return the cells so many steps above; beyond the last ones are the first."""
    for d, step in enumerate(steps):
        if step:
            values = np.roll(values, -sign * step, d)
    return values
