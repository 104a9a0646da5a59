"""Rates of products, as plans have them."""

from tilewave import _core
from tilewave.linalg.blas import blas


def product_rate(dtype, rows, columns, depth, whole=None, by_rows=False, adds=False):
    """Of products of this shape on one lane, pieces of a product of `whole` rows and columns."""
    whole = (rows, columns) if whole is None else whole
    return _core.linalg.product_rate(blas(), dtype.name, (rows, columns, depth), whole, by_rows, adds)
