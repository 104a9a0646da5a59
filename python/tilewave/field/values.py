"""Values of fields at some elements, and what is given for them."""

import hashlib
import itertools
import operator
from collections.abc import Iterator, Sequence

import numpy as np

from tilewave import _core
from tilewave.context.collective import text_of
from tilewave.dtypes import ALL, is_masked
from tilewave.errors import ConfigError, shown
from tilewave.field.index import SubscriptError, is_of_subscript
from tilewave.foreign import array_of


def values_at(field, subscripts):
    """Return what elements of a rolling-window field are before a run.

    Parameters
    ----------
    field : Field
    subscripts : numpy.ndarray
        (count, ndim), int64.

    Returns
    -------
    numpy.ndarray
        Of the field's dtype: one value for all, or `count` values.

    Raises
    ------
    ConfigError
        For an init that raises.
    """
    try:
        return _values_at(field, subscripts)
    except Exception as problem:
        raise named("field: init raised", problem) from problem


def _values_at(field, subscripts):
    init = field._init
    if init is None:
        return np.zeros(1, field.dtype)
    if not callable(init):
        if not any(init.strides):
            return init.reshape(-1)[:1].copy() if init.size else np.zeros(1, field.dtype)
        return np.ascontiguousarray(init[tuple(subscripts.T)])
    values = np.empty(len(subscripts), field.dtype)
    if len(subscripts):
        _evaluate(values, init, subscripts.T, ((k, tuple(point)) for k, point in enumerate(subscripts.tolist())))
    return values


def _evaluate(values, init, index, points):
    """Set values to a function of the global indices: of index arrays where it takes them, else point by point, given
    (where it is in `values`, the point) of each.
    """
    try:
        found = np.asarray(init(*index))
        if found.dtype == object:
            raise TypeError("init made objects of index arrays")
        values[...] = found
    except Exception:
        # Not a function of arrays (an `if`, math.sin). What still raises is its error.
        for at, point in points:
            value = init(*point)
            if value is None:  # NumPy would store NaN
                raise TypeError(f"it returned None at {point}; allowed: a number") from None
            values[at] = value


def problem_of(step):
    """Return what a local step raises, for a later agreement; None where all is well."""
    try:
        step()
    except Exception as problem:
        return problem
    return None


def as_index_error(call):
    """Return an error of all ranks as the kind that says which it is: a wrong subscript is an IndexError, too."""
    try:
        return call()
    except ConfigError as error:
        if isinstance(error, SubscriptError) or not is_of_subscript(str(error)):
            raise
        found = SubscriptError(str(error))
        found.agreed, found.quiet, found.partial = (
            error.agreed,
            getattr(error, "quiet", False),
            getattr(error, "partial", False),
        )
        raise found from None


def as_elements(value, dtype):
    """A value to be stored, converted as NumPy's assignment does."""
    if hasattr(value, "_storage"):
        raise ConfigError(
            "field: a field was given as the value; allowed: a number or a NumPy array that every rank has; "
            "other.copy() makes another field"
        )
    require_no_mask("field", value)
    value = array_for_shape(value)
    given = np.asarray(value)
    elements = np.empty(given.shape, dtype)
    try:
        elements[...] = given if isinstance(value, np.ndarray | np.generic) else value
    except (TypeError, ValueError, OverflowError) as problem:
        raise ConfigError(
            f"field: {type(value).__name__} of shape {given.shape} was given for {dtype}: {problem}"
        ) from None
    return elements


def fits(given, wanted):
    extra = len(given) - len(wanted)
    if any(n != 1 for n in given[: max(extra, 0)]) or any(n not in (1, m) for n, m in zip(given[::-1], wanted[::-1])):
        raise ConfigError(
            f"field: a value of shape {given} was given for elements of shape {wanted}; they must be equal, or "
            "broadcast to it"
        )


def digest(values):
    """Stands for the bits of an array when ranks compare."""
    return hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=8).hexdigest()


def named(what, problem):
    error = ConfigError(f"{what} {type(problem).__name__}: {text_of(problem)}")
    error.__cause__ = problem
    return error


def shape_of(shape):
    result = whole_numbers(shape)
    if result is None:
        raise ConfigError(
            f"field: shape {shown(shape)} was given; allowed: one to six integers, or an array, as numpy.asarray(x)"
        )
    if not 1 <= len(result) <= _core.limits["dims"] or any(n < 0 for n in result):
        raise ConfigError(f"field: shape {result} was given; allowed: one to six extents >= 0")
    return result


def whole_numbers(given):
    """A tuple of ints; None where any is no integer, or there is no sequence of them."""
    if not isinstance(given, Sequence | Iterator | np.ndarray) or isinstance(given, str | bytes):
        return None
    try:
        return tuple(map(_whole_number, given))
    except TypeError:
        return None


def _whole_number(given):
    if isinstance(given, bool | np.bool_):
        raise TypeError
    return operator.index(given)


def array_for_shape(given):
    """An array that was given in place of a shape, also one of another library; else what was given."""
    if isinstance(given, np.generic):
        return np.asarray(given)
    return given if isinstance(given, list | tuple) else array_of("field", given, False)


def dtype_of(dtype):
    try:
        result = np.dtype(dtype)
    except TypeError:
        result = None
    if result is None or result not in ALL:  # NumPy finds None equal to float64
        raise ConfigError(f"field: dtype {shown(dtype)} was given; allowed: {', '.join(d.name for d in ALL)}")
    return result


def fill(local, owned, init):
    """Set a block's points to init(global indices)."""
    if local.size == 0:
        return
    points = itertools.product(*(range(s.start, s.stop) for s in owned))
    places = ((tuple(p - s.start for p, s in zip(point, owned, strict=True)), point) for point in points)
    _evaluate(local, init, np.ogrid[owned], places)


def require_no_mask(what, given):
    """Fields, matrices and solvers have a value everywhere; NumPy would give what lies under the mask."""
    if is_masked(given):
        raise ConfigError(f"{what}: given a masked array; allowed: arrays without a mask, as array.filled(0)")
