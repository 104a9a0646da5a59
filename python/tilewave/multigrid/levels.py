"""The grids of a solver: their cells, what couples these, and their fields."""

from dataclasses import dataclass

import numpy as np

from tilewave.field.create import field
from tilewave.field.field import Field
from tilewave.multigrid import bodies
from tilewave.multigrid.axes import Axis, coarser
from tilewave.multigrid.coefficients import (
    coarser_cells,
    coarser_faces,
    coarser_line,
    constant_faces,
    coupled,
    dense_matrix,
    diagonal,
    everywhere,
    operator_of,
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
        As sigma: 1 for cells that a face or sigma couples, 0 for others and those without material. None: all are.
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
        """Return whether faces are arrays of all dimensions."""
        return isinstance(self.sigma, np.ndarray)

    @property
    def links(self):
        """Offsets of the upper neighbours; None where faces vary along their axis alone."""
        return bodies.units(len(self.axes)) if self.varies else None

    def arrays(self):
        """Return what couples cells, as `galerkin.Following.arrays`."""
        return dict(zip(self.links, self.faces, strict=True)), diagonal(self.faces, self.sigma)

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
        cells = self.as_varying()
        return dense_matrix(operator_of(cells.faces, cells.sigma[(slice(1, -1),) * len(self.axes)], self.axes))


def finest(shape, spacings, boundary, k, sigma):
    """The grid that is solved for."""
    axes = [Axis(np.full(n, h), sides) for n, h, sides in zip(shape, spacings, boundary, strict=True)]
    if not isinstance(k, np.ndarray) and not isinstance(sigma, np.ndarray):
        faces = [k * constant_faces(n, h, sides) for n, h, sides in zip(shape, spacings, boundary, strict=True)]
        return Cells(axes, faces, sigma)
    k = np.broadcast_to(k, shape)
    faces = [variable_faces(k, h, sides, d) for d, (h, sides) in enumerate(zip(spacings, boundary, strict=True))]
    cells = Cells(axes, faces, np.pad(np.where(k > 0, sigma, 0.0), 1))
    if not k.all():
        # A cell alone, which nothing couples, stays 0 as those without material do.
        cells.material = (coupled(cells.faces, cells.sigma) != 0).astype(float)
    return cells


def all_grids(cells, follows=None):
    """From a grid down to the coarsest; `follows`: its form of which coarser ones are made, if it is another."""
    grids = [cells]
    while max(grids[-1].shape) > MOST_COARSEST:
        grids.append((follows or grids[-1]).coarser())
        follows = None
    return grids


@dataclass
class Level:
    """One grid with its fields, which have one element around the cells; `arrays` couple the cells, by name.

    `material` has the array m of nests that leave cells without material alone, if there are any. `weights` has, by
    parity and step, those of the finer grid's interpolation where it follows k.
    """

    cells: Cells
    arrays: dict
    u: Field
    f: Field
    r: Field
    blocks: object
    material: dict
    weights: dict

    @property
    def shape(self):
        """Cells by axis."""
        return self.cells.shape


def make_field(shape, dtype, blocks, context):
    """A field with an element around the cells."""
    return field([n + 2 for n in shape], dtype, blocks=blocks, context=context)


def make_level(cells, dtype, blocks, context):
    """The fields of a grid, cut into `blocks` (`sharing.blocks_of`); collective."""
    if cells.varies:
        links, d = cells.arrays()
        arrays = {"d": d} | {bodies.link_name(offset): values for offset, values in links.items()}
        arrays = {name: field(values, blocks=blocks, context=context) for name, values in arrays.items()}
    else:
        arrays = dict(zip(("ax", "ay", "az"), cells.faces, strict=False))
    around = {at: np.pad(w, 1, mode="wrap") for at, w in getattr(cells, "weights", {}).items() if any(at[0])}
    weights = {at: field(values, blocks=blocks, context=context) for at, values in around.items()}
    material = {} if cells.material is None else {"m": field(cells.material, blocks=blocks, context=context)}
    fields = (make_field(cells.shape, dtype, blocks, context) for _ in range(3))
    return Level(cells, arrays, *fields, blocks, material, weights)
