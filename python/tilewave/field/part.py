"""Elements of a field that every rank has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewave.annotations import FilePath


class Part(np.ndarray):
    """A NumPy array of elements of a field, as ``u[..., 3]`` gives it: the same on every rank, and it can be saved."""

    _field: Callable[..., Any]  # makes a field; set by `tilewave.field.create`
    _context: Any = None

    def __array_finalize__(self, of: Any) -> None:
        self._context = getattr(of, "_context", None)

    def save(self, path: FilePath, **options: Any) -> None:
        """Write a file, each rank a part; collective, as `Field.save`.

        Parameters
        ----------
        path : str or path
        **options
            As of `Field.save`.
        """
        self._field(np.asarray(self), context=self._context).save(path, **options)

    def __repr__(self) -> str:
        return repr(np.asarray(self))
