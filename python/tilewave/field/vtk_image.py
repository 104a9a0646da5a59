"""Fields as images of VTK, for ParaView: a .pvti file, and in a folder next to it one .vti file for each rank.

https://docs.vtk.org/en/latest/vtk_file_formats/vtkxml_file_format.html has the format. An element is a cell: blocks
then lie next to each other without gaps, and no rank needs points of its neighbours, as points of an image would.
"""

import html
import os

import numpy as np

from tilewave import files
from tilewave.errors import ConfigError
from tilewave.field.npy import named_path
from tilewave.field.values import problem_of

ENDING = ".pvti"
_HEAD = '<?xml version="1.0"?>\n<VTKFile type="{}" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'


class Writer:
    """Writes a field's blocks as cells of an image; as `tilewave.field.saving` asks for it.

    Parameters
    ----------
    spacing, origin : tuple of float
        For each axis of the field: from element to element, and where the first element is.
    """

    def __init__(self, path, field, back, spacing, origin):
        if field.ndim > 3:
            raise ConfigError(f"save: {path!r}: a field of shape {field.shape} was given; allowed: up to 3 dimensions")
        self._path, self._field, self._back = path, field, back
        self._pieces = path.removesuffix(ENDING) + ".pieces"
        # x is the last index of the field, whose elements lie together.
        spacing, origin = spacing or (1.0,) * field.ndim, origin or (0.0,) * field.ndim
        origin = [at - step / 2 for at, step in zip(origin, spacing)]  # elements are in the middle of cells
        self._place = f'Origin="{_numbers(origin, 0.0)}" Spacing="{_numbers(spacing, 1.0)}"'
        part = np.dtype(f"f{field.dtype.itemsize // 2}") if field.dtype.kind == "c" else field.dtype
        kind = {"b": "UInt", "i": "Int", "u": "UInt", "f": "Float"}[part.kind] + str(8 * part.itemsize)
        name = f'"{html.escape(os.path.basename(path).removesuffix(ENDING))}"'
        self._scalars = f"Scalars={name}"
        self._array = f'type="{kind}" Name={name}'
        if field.dtype.kind == "c":
            self._array += ' NumberOfComponents="2" ComponentName0="real" ComponentName1="imag"'

    def begin(self):
        with named_path("save", self._path):
            if os.path.isdir(self._path):
                raise OSError("it is a folder")
            if os.path.lexists(self._pieces) and not (
                os.path.isdir(self._pieces) and all(name.endswith(".vti") for name in os.listdir(self._pieces))
            ):
                raise OSError(f"{self._pieces!r} is no folder of .vti files, whose place it would take")
            return files.begin_folder(self._pieces)

    def write(self, made):
        return problem_of(lambda: self._write_piece(made))

    def _write_piece(self, made):
        field = self._field
        values = np.ascontiguousarray(field._view(self._back), field.dtype.newbyteorder("<"))
        if not values.size:
            return
        extent = _extent(field.owned)
        head = (
            _HEAD.format("ImageData")
            + f'<ImageData WholeExtent="{extent}" {self._place}>\n<Piece Extent="{extent}">\n'
            + f'<CellData {self._scalars}>\n<DataArray {self._array} format="appended" offset="0"/>\n</CellData>\n'
            + '</Piece>\n</ImageData>\n<AppendedData encoding="raw">\n_'
        ).encode()
        size = values.nbytes.to_bytes(8, "little")
        with named_path("save", self._path):
            files.write_new(
                os.path.join(made, f"{field.context.rank}.vti"),
                head + size,
                values.reshape(-1).view(np.uint8),
                b"\n</AppendedData>\n</VTKFile>\n",
            )

    def finish(self, made):
        field, layout = self._field, self._field._storage.layout
        boxes = [[slice(*ends) for ends in zip(*layout.owned(rank))] for rank in range(layout.ranks)]
        folder = os.path.basename(self._pieces)
        lines = [
            f'<Piece Extent="{_extent(box)}" Source="{html.escape(f"{folder}/{rank}.vti")}"/>\n'
            for rank, box in enumerate(boxes)
            if all(part.stop > part.start for part in box)
        ]
        whole = _extent([slice(0, n) for n in field.shape])
        with named_path("save", self._path):
            files.sync_folder(made)
            files.rename_folder(made, self._pieces)
            files.write(
                self._path,
                _HEAD.format("PImageData")
                + f'<PImageData WholeExtent="{whole}" GhostLevel="0" {self._place}>\n'
                + f"<PCellData {self._scalars}>\n<PDataArray {self._array}/>\n</PCellData>\n"
                + "".join(lines)
                + "</PImageData>\n</VTKFile>\n",
            )


def _numbers(of_axes, other):
    """For x, y and z, of numbers by axis of the field."""
    return " ".join(map(repr, [float(each) for each in reversed(of_axes)] + [other] * (3 - len(of_axes))))


def _extent(box):
    """The points around a box of cells, which an image of less than three dimensions has, too."""
    ends = [(part.start, part.stop) for part in reversed(box)] + [(0, 1)] * (3 - len(box))
    return " ".join(f"{low} {high}" for low, high in ends)
