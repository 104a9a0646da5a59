"""The grids of a solver: their cells, what couples these, and their fields."""

from dataclasses import dataclass

import numpy as np

from tilewave.field.create import field
from tilewave.field.field import Field
from tilewave.multigrid.axes import Axis, coarser
from tilewave.multigrid.coefficients import (
    coarser_cells,
    coarser_faces,
    coarser_line,
    constant_faces,
    dense_matrix,
    diagonal,
    everywhere,
    variable_faces,
)

#: Cells along each axis of the coarsest grid, at most: it is solved directly, as a stencil of 3 points a dimension.
MOST_COARSEST = 2


@dataclass
class Cells:
    """One grid as values.

    Attributes
    ----------
    axes : list of Axis
    faces : list of numpy.ndarray
        By axis the conductance of faces: along the axis alone, or where it varies of all faces normal to it.
    sigma : float, complex or numpy.ndarray
        An array where the faces are, with an element around the cells.
    material : numpy.ndarray, optional
        As sigma: 1 for cells with material, 0 for others. None: all have.
    """

    axes: list
    faces: list
    sigma: object
    material: object = None

    def __post_init__(self):
        # The only cell of a periodic axis has nothing to exchange with itself: a sweep would bind it to its old value.
        axes = zip(self.axes, self.faces, strict=True)
        self.faces = [0 * faces if axis.periodic and axis.cells == 1 else faces for axis, faces in axes]

    @property
    def shape(self):
        """Cells by axis."""
        return tuple(axis.cells for axis in self.axes)

    @property
    def varies(self):
        """Whether faces are arrays of all dimensions."""
        return isinstance(self.sigma, np.ndarray)

    def coupling(self, axis):
        """The mean conductance between two cells along an axis."""
        if not self.varies:
            return float(self.faces[axis][2 : self.shape[axis] + 1].mean()) if self.shape[axis] > 1 else 0.0
        inner = tuple(slice(2 if d == axis else 1, -1) for d in range(len(self.axes)))
        return float(self.faces[axis][inner].mean()) if self.shape[axis] > 1 else 0.0

    def as_varying(self):
        """The same with arrays of all dimensions."""
        if self.varies:
            return self
        sigma = np.pad(np.full(self.shape, self.sigma), 1)
        return Cells(self.axes, [everywhere(along, d, self.shape) for d, along in enumerate(self.faces)], sigma)

    def coarser(self):
        """The next grid."""
        axes = coarser(self.axes, [self.coupling(d) for d in range(len(self.axes))])
        if not self.varies and all(axis.uniform for axis in axes):
            lines = zip(self.faces, self.axes, axes, strict=True)
            return Cells(axes, [coarser_line(*each) for each in lines], self.sigma)
        here = self.as_varying()
        faces = [coarser_faces(along, d, here.axes, axes) for d, along in enumerate(here.faces)]
        material = self.material
        if material is not None:
            material = (coarser_cells(material, here.axes, axes) > 0).astype(float)
        return Cells(axes, faces, coarser_cells(here.sigma, here.axes, axes), material)

    def matrix(self):
        """The operator."""
        cells = tuple(slice(1, -1) for _ in self.axes)
        sigma = self.sigma[cells] if self.varies else self.sigma
        return dense_matrix(self.shape, self.faces, sigma, [d for d, axis in enumerate(self.axes) if axis.periodic])


def finest(shape, spacings, boundary, k, sigma):
    """The grid that is solved for."""
    axes = [Axis(np.full(n, h), sides) for n, h, sides in zip(shape, spacings, boundary, strict=True)]
    if not isinstance(k, np.ndarray) and not isinstance(sigma, np.ndarray):
        faces = [k * constant_faces(n, h, sides) for n, h, sides in zip(shape, spacings, boundary, strict=True)]
        return Cells(axes, faces, sigma)
    k = np.broadcast_to(k, shape)
    faces = [variable_faces(k, h, sides, d) for d, (h, sides) in enumerate(zip(spacings, boundary, strict=True))]
    material = None if k.all() else np.pad((k > 0).astype(float), 1)
    return Cells(axes, faces, np.pad(np.where(k > 0, sigma, 0.0), 1), material)


def all_grids(cells):
    """From a grid down to the coarsest."""
    grids = [cells]
    while max(grids[-1].shape) > MOST_COARSEST:
        grids.append(grids[-1].coarser())
    return grids


@dataclass
class Level:
    """One grid with its fields, which have one element around the cells; `arrays` couple the cells, by name.

    `material` has the array m of nests that leave cells without material alone, if there are any.
    """

    cells: Cells
    arrays: dict
    u: Field
    f: Field
    r: Field
    blocks: object
    material: dict

    @property
    def shape(self):
        """Cells by axis."""
        return self.cells.shape


def make_field(shape, dtype, blocks, context):
    """A field with an element around the cells."""
    return field([n + 2 for n in shape], dtype, blocks=blocks, context=context)


def make_level(cells, dtype, blocks, context):
    """The fields of a grid, cut into `blocks` (`sharing.blocks_of`); collective."""
    names = [("k" if cells.varies else "a") + axis for axis in "xyz"[: len(cells.axes)]]
    arrays = dict(zip(names, cells.faces, strict=True))
    if cells.varies:
        arrays["d"] = diagonal(cells.faces, cells.sigma)
        arrays = {name: field(values, blocks=blocks, context=context) for name, values in arrays.items()}
    material = {} if cells.material is None else {"m": field(cells.material, blocks=blocks, context=context)}
    fields = (make_field(cells.shape, dtype, blocks, context) for _ in range(3))
    return Level(cells, arrays, *fields, blocks, material)
