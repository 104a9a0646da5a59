"""Norms of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave import _core
from tilewave.context.collective import collective
from tilewave.errors import ConfigError, shown
from tilewave.linalg.arrays import entered
from tilewave.linalg.matrix import Matrix, as_matrix

if TYPE_CHECKING:
    from tilewave.annotations import Collective
    from tilewave.context.context import Context

#: What `norm` is given, by the name of LAPACK's lange.
ORDERS = {"fro": "F", None: "F", 1: "1", np.inf: "I", "max": "M"}


@collective("tw.linalg.norm")
def norm(a: Matrix, ord: str | float | None = "fro", *, context: Context | None = None) -> Collective[Any]:
    """A norm of a matrix, on every rank; collective.

    Parameters
    ----------
    a : Matrix or numpy.ndarray
    ord : "fro", 1, numpy.inf, "max" or None
        "fro" or None: the root of the sum of squares; 1: the largest sum of magnitudes of a column; inf: of a row;
        "max": the largest magnitude.
    context : Context, optional
        Default: the one of `a`.

    Returns
    -------
    NumPy scalar
        Real, of a's precision. Squares are of elements relative to the largest one, so that none overflows. NaN if any
        element is.
    """
    try:
        kind = None if isinstance(ord, bool) else ORDERS.get(ord)
    except TypeError:
        kind = None
    if kind is None:
        raise ConfigError(
            f"norm: ord: given {shown(ord)}; allowed: 'fro', 1, numpy.inf, 'max'; singular values are not computed"
        )
    a = entered("norm", "a", (yield from as_matrix(a)), context)
    yield f"{a._identity()}, {kind}"
    with np.errstate(over="ignore"):
        return np.finfo(a.dtype).dtype.type(a.context._together(_core.linalg.norm_of, a._storage, kind))
