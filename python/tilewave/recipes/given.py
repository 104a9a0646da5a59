"""Checks of what recipes are given, and results as their callers want them."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tilewave.errors import ConfigError, shown
from tilewave.field.create import field
from tilewave.field.field import Field
from tilewave.field.values import require_no_mask

if TYPE_CHECKING:
    import numpy.typing as npt

#: What recipes take: what NumPy takes for an array, the same on every rank, or a field.
Given: TypeAlias = "npt.ArrayLike | Field"

_ALLOWED = "a field, or a NumPy array that is the same on every rank"


def values(call, name, given, kinds="biuf", ndim=None):
    """Return a field, or an array of what NumPy takes for one; ConfigError for other element types and dimensions.

    Parameters
    ----------
    kinds : str
        The kinds of its dtype that are allowed, as NumPy has them.
    ndim : int or tuple of int, optional
        How many dimensions are allowed. Default: at least one.
    """
    if isinstance(given, Field):
        if given.keep != "all":
            raise ConfigError(f"{call}: {name}: given a field with keep={given.keep!r}; allowed: keep='all'")
        found = given
    else:
        require_no_mask(f"{call}: {name}", given)
        try:
            found = np.asarray(given)
        except ValueError:  # rows of several lengths
            found = np.empty(0, object)
    if found.dtype.kind not in kinds or found.dtype.itemsize == 2 and found.dtype.kind == "f":
        what = f"elements of {found.dtype}" if found.dtype.kind != "O" else shown(given)
        raise ConfigError(f"{call}: {name}: given {what}; allowed: {_ALLOWED}, of {_named(kinds)}")
    dims = (ndim,) if isinstance(ndim, int) else ndim
    if not len(found.shape) or dims and len(found.shape) not in dims:
        wanted = " or ".join(map(str, dims)) if dims else "at least 1"
        raise ConfigError(f"{call}: {name}: given shape {found.shape}; allowed: {wanted} dimensions")
    return found


def _named(kinds):
    names = {"b": "bool", "i": "integers", "f": "float32 or float64", "c": "complex numbers"}
    return ", ".join(name for kind, name in names.items() if kind in kinds)


def numbers_of(call, name, values_, ndim):
    """Return an array of finite real numbers, no field."""
    found = values(call, name, values_, ndim=ndim)
    if isinstance(found, Field) or not np.isfinite(found).all():
        raise ConfigError(f"{call}: {name}: given {shown(values_)}; allowed: a NumPy array of finite numbers")
    return found


def number(call, name, given, least=None, most=None):
    """Return a float of a finite number within bounds."""
    if isinstance(given, bool) or not isinstance(given, numbers.Real) or not math.isfinite(given):
        raise ConfigError(f"{call}: {name}: given {shown(given)}; allowed: a finite number")
    if least is not None and not given >= least or most is not None and not given <= most:
        ends = f">= {least}" if most is None else f"from {least} to {most}"
        raise ConfigError(f"{call}: {name}: given {shown(given)}; allowed: a number {ends}")
    return float(given)


def one_of(call, name, given, allowed):
    """Refuse what is none of some texts."""
    if not (isinstance(given, str) and given in allowed):
        raise ConfigError(f"{call}: {name}: given {shown(given)}; allowed: {', '.join(map(repr, allowed))}")


def floats(*arrays):
    """Return the dtype of results: float32 where all arrays are float32, else float64."""
    return np.dtype("f4") if all(each.dtype == np.float32 for each in arrays) else np.dtype("f8")


def text_of(given):
    """Return what ranks compare of an argument: its shape and dtype; runs of nests compare the values."""
    return f"{'field' if isinstance(given, Field) else 'array'} {tuple(given.shape)} {given.dtype}"


def whole(given, dtype=None):
    """Return the array of a field, on every rank, or the array itself, in C order; collective."""
    return np.ascontiguousarray(given[...] if isinstance(given, Field) else given, dtype)


def as_given(made, *given):
    """Return a result as its caller wants it: a field where an argument is one, else an array; collective."""
    return made if any(isinstance(each, Field) for each in given) else np.asarray(made[...])


def from_array(found, context, *given):
    """Return an array that every rank has as its caller wants it: a field where an argument is one; collective."""
    return field(found, context=context) if any(isinstance(each, Field) for each in given) else found


def copied(given, dtype, context):
    """Return a new field with the values of an array or a field; collective."""
    return field(given.shape, dtype, init=given if given.dtype == dtype else whole(given, dtype), context=context)
