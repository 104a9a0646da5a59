"""This file has what a field was at time steps before the current one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewave.context.collective import collective, holds_context
from tilewave.field.saving import save

if TYPE_CHECKING:
    import numpy as np

    from tilewave.annotations import Array, Collective, FilePath
    from tilewave.context.context import Context
    from tilewave.field.field import Field


@holds_context
class TimeBuffer:
    """A field's values so many time steps before the current ones: what a nest reads at ``u[t-1]``; made by
    `Field.buffer`.

    Attributes
    ----------
    field : Field
    back : int
        So many steps; 0: the current values.
    shape, dtype, ndim, context, owned
        Those of the field.
    """

    field: Field

    back: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    ndim: int
    context: Context

    def __init__(self, field: Field, back: int) -> None:
        self.field, self.back = field, back
        self.shape, self.dtype, self.ndim, self.context = field.shape, field.dtype, field.ndim, field.context

    @property
    def owned(self) -> tuple[slice, ...]:
        """The global index ranges of this rank's points, as a tuple of slices."""
        return self.field.owned

    @property
    def local(self) -> Array:
        """This rank's points as a NumPy array: a view, as `Field.local` is."""
        return self._view(0)

    def _view(self, back):
        """Return the view that `Field._view` gives, so many steps further back: what gives a field its first values
        gives them to this, too."""
        return self.field._view(self.back + back)

    @collective("tw.TimeBuffer.gather")
    def gather(self) -> Collective[Array | None]:
        """The whole array on rank 0, None elsewhere.

        Returns
        -------
        numpy.ndarray or None

        Notes
        -----
        Collective, as `Field.gather`.
        """
        return (yield from self.field._gathered(self.back))

    def save(self, path: FilePath, **options: Any) -> None:
        """Write a file, each rank its part; collective, as `Field.save`.

        Parameters
        ----------
        path : str or path
            On a disk that all ranks share, the same on every rank. `tilewave.load` reads it, and
            ``history=`` of `tilewave.field` takes what that gives.
        **options
            As of `Field.save`.
        """
        save(self.field, path, self.back, **options)

    def _scatter(self, whole):
        self.field.context._moves(self.field._storage.scatter, whole, self.back)

    def __repr__(self) -> str:
        return f"<tilewave.TimeBuffer {-self.back} of {self.field!r}>"
