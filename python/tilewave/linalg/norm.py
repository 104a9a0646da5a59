"""Norms of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewave.context.collective import collective
from tilewave.errors import ConfigError, shown
from tilewave.linalg.arrays import entered
from tilewave.linalg.matrix import Matrix, as_matrix
from tilewave.patterns.allreduces import allreduce

if TYPE_CHECKING:
    from typing import Any

    from tilewave.annotations import Collective
    from tilewave.context.context import Context

#: What `norm` is given, by the name of LAPACK's lange.
ORDERS = {"fro": "F", None: "F", 1: "1", np.inf: "I", "max": "M"}
#: Elements whose magnitudes are taken at once.
MOST_AT_ONCE = 1 << 18


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
    context, local = a.context, a.local
    real = np.finfo(a.dtype).dtype
    sums = np.zeros({"1": a.shape[1], "I": a.shape[0]}.get(kind, 1), real)
    yield f"{a._identity()}, {kind}"
    if kind in "MF":
        for part in _magnitudes(local):
            sums[0] = np.maximum(sums[0], part.max(initial=0))
        largest = _all(sums, "max", context)[0]
        if kind == "M" or not 0 < largest < np.inf:
            return largest
        total = np.array([sum(float(np.sum((part / largest) ** 2, dtype="f8")) for part in _magnitudes(local))], "f8")
        return largest * real.type(np.sqrt(_all(total, "sum", context)[0]))
    at = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for part in _magnitudes(local):
            if kind == "1":
                sums[a.columns[at : at + part.shape[1]]] = part.sum(axis=0)
            else:
                sums[a.rows] += part.sum(axis=1)
            at += part.shape[1]
    return _all(sums, "sum", context).max(initial=0)


def _magnitudes(local):
    """The magnitudes of a rank's elements, some columns at once."""
    step = max(1, MOST_AT_ONCE // max(1, local.shape[0]))
    for at in range(0, local.shape[1], step):
        yield np.abs(local[:, at : at + step])


def _all(values, op, context):
    if context.size > 1 and values.size:
        allreduce(values, op, out=values, context=context)
    return values
