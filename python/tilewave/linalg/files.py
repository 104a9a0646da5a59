"""Files of matrices: those of fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewave import _core
from tilewave.context.collective import collective
from tilewave.field import create
from tilewave.linalg.matrix import Matrix, as_matrix, matrix
from tilewave.linalg.moves import Move
from tilewave.linalg.operators import Operators

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tilewave.annotations import FilePath
    from tilewave.context.context import Context
    from tilewave.linalg.layout import Layout


@collective("tw.linalg.Matrix.save", whole=True)
def saved(a, path, options):
    """Write a file of a matrix: of a field that has its elements for a moment."""
    if isinstance(a, Matrix):
        made = create.make(a.context, a.shape, a.dtype)
        layout = made._storage.layout
        axes = (_core.linalg.Axis(n, parts, 0) for n, parts in zip(layout.shape, layout.grid, strict=True))
        move = Move(a.context, a._blocks, _core.linalg.BlockCyclic(*axes, False), a.dtype)
    yield f"{a._identity()}, path {path!r}"
    if not isinstance(a, Matrix):
        return saved((yield from as_matrix(a)), path, options)
    made._count()
    move(a.local, made._view(0))
    made.save(path, **options)


def load(
    path: FilePath,
    dtype: npt.DTypeLike = None,
    *,
    layout: str | Layout = "rows",
    block: int | Sequence[int] | None = None,
    grid: Sequence[int] | None = None,
    weights: Sequence[int] | None = None,
    context: Context | None = None,
) -> Matrix:
    """Make a distributed matrix of a .npy file or a Zarr folder of two dimensions; collective.

    Parameters
    ----------
    path : str or path
        As of `tilewave.load`; `Matrix.save` writes such files.
    dtype, layout, block, grid, weights, context
        As in `matrix`.

    Returns
    -------
    Matrix

    Raises
    ------
    ConfigError
        On every rank: as `tilewave.load` and `matrix`.

    Notes
    -----
    Collective: each rank reads a part, then each element moves once. Until then there is memory for it twice.
    """
    field = create.load(path, context=context)
    try:
        return matrix(field, dtype, layout=layout, block=block, grid=grid, weights=weights, context=context)
    finally:
        field.close()


def set_files() -> None:
    """Set what `Matrix.save` does: it needs matrices."""
    Operators._saved = staticmethod(saved)
