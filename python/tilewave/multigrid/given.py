"""This file has what a solver is given, checked."""

import math
import numbers

import numpy as np

from tilewave.errors import ConfigError, shown
from tilewave.field.field import Field
from tilewave.field.values import digest, named, require_no_mask
from tilewave.multigrid.coefficients import OUTSIDE

#: Of what couples cells, so that sums, inverses and squares of these are doubles.
LEAST_COEFFICIENT, MOST_COEFFICIENT = 1e-200, 1e200
#: Where sigma alone fixes the mean: its mean, in terms of what couples cells most.
LEAST_SIGMA = 1e-14


def read_shape(shape):
    """A tuple of 1 to 3 extents."""
    given = sequence(shape, numbers.Integral)
    if not 1 <= len(given) <= 3 or any(not integer(n) or n < 1 for n in given):
        raise ConfigError(f"multigrid: shape: given {shown(shape)}; allowed: 1 to 3 integers >= 1")
    return tuple(int(n) for n in given)


def read_spacing(spacing, shape):
    """A number for each axis."""
    given = [1.0 / n for n in shape] if spacing is None else spacing
    given = [given] * len(shape) if isinstance(given, numbers.Real) else sequence(given)
    if len(given) != len(shape):
        raise ConfigError(f"multigrid: spacing: given {shown(spacing)}; allowed: a number, or one for each axis")
    return [number("spacing", h, 0.0, above=True) for h in given]


def sequence(given, *one):
    """Return a tuple, one of a kind as the only entry; empty where it is neither, which no check allows."""
    if isinstance(given, one):
        return (given,)
    return tuple(given) if isinstance(given, tuple | list) or isinstance(given, np.ndarray) and given.ndim else ()


def integer(value):
    """Return whether it is one."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _kind(side):
    return isinstance(side, str) and side in OUTSIDE


def read_boundary(boundary, dims):
    """A pair for each axis."""
    given = [boundary] * dims if isinstance(boundary, str) else sequence(boundary)
    sides = [(b, b) if isinstance(b, str) else sequence(b) for b in given]
    if len(sides) != dims or any(len(pair) != 2 or not all(_kind(b) for b in pair) for pair in sides):
        raise ConfigError(
            f"multigrid: boundary: given {shown(boundary)}; allowed: {', '.join(OUTSIDE)}, one for all, one for each "
            "axis, or pairs for the sides of an axis"
        )
    for axis, pair in enumerate(sides):
        if "periodic" in pair and pair[0] != pair[1]:
            raise ConfigError(
                f"multigrid: boundary: given {pair} for axis {axis}; allowed: periodic on both sides of an axis or on "
                "none"
            )
    return sides


def read_coefficient(k, shape):
    """A number above 0, or an array of numbers, some of them above 0 and the other ones 0."""
    if isinstance(k, numbers.Real):
        return number("k", k, 0.0, above=True)
    values = _of_cells("k", k, shape, "fiu", "real numbers")
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any() or not values.any():
        wrong = wrong if wrong.any() else ~wrong
        raise ConfigError(
            f"multigrid: k has the value {values[wrong][0]:.3g}; allowed: finite numbers, above 0 where there is "
            "material, which has at least one cell, and 0 elsewhere"
        )
    return values.astype(float)


def read_sigma(sigma, shape):
    """A float or a complex number, or an array of them; real parts below 0 only where all are real."""
    if isinstance(sigma, numbers.Real):
        return number("sigma", sigma, -math.inf)
    allowed = (
        "finite numbers, real ones or such whose real parts are at least 0: minimal residuals, which solve for sigma "
        "below 0, need a Hermitian operator"
    )
    if isinstance(sigma, numbers.Complex):
        if not (np.isfinite(sigma) and (sigma.real >= 0 or sigma.imag == 0)):
            raise ConfigError(f"multigrid: sigma: given {shown(sigma)}; allowed: {allowed}")
        return complex(sigma)
    values = _of_cells("sigma", sigma, shape, "fiuc", "numbers")
    wrong = ~(np.isfinite(values) & ((values.real >= 0) | (not values.imag.any())))
    if wrong.any():
        raise ConfigError(f"multigrid: sigma has the value {values[wrong][0]:.3g}; allowed: {allowed}")
    return values.astype(complex if values.dtype.kind == "c" else float)


def check_range(k, spacings, sigma, free):
    """Refuse what couples cells by numbers that sums and inverses leave.

    Parameters
    ----------
    free : bool
        Whether the boundary fixes no values: sigma then does it alone.
    """
    values = np.array([np.min(k, where=np.greater(k, 0), initial=np.max(k)), np.max(k)])
    with np.errstate(over="ignore", under="ignore"):
        couplings = np.concatenate([values / h / h for h in spacings])
        most = np.max(np.abs(sigma))
    low, high = couplings.min(), couplings.max()
    if not LEAST_COEFFICIENT <= low <= high <= MOST_COEFFICIENT:
        raise ConfigError(
            f"multigrid: k / spacing**2 is {low:.3g} to {high:.3g}; allowed: {LEAST_COEFFICIENT:g} to "
            f"{MOST_COEFFICIENT:g}: scale k, sigma and f, or the lengths"
        )
    if most > MOST_COEFFICIENT:
        raise ConfigError(f"multigrid: sigma is up to {most:.3g}; allowed: up to {MOST_COEFFICIENT:g}")
    if free and 0 < np.mean(np.abs(sigma)) < LEAST_SIGMA * high:
        raise ConfigError(
            f"multigrid: sigma is {np.mean(np.abs(sigma)):.3g} on average, which is lost next to k / spacing**2, "
            f"{high:.3g}, and the boundary fixes no values; allowed: at least {LEAST_SIGMA:g} of that, or 0: then the "
            "solution is the one of mean 0"
        )


def _of_cells(name, given, shape, kinds, what):
    """An array of the shape, or the values of a function of cell indices."""
    values = _called(name, given, shape) if callable(given) else given
    require_no_mask(f"multigrid: {name}", values)
    values = np.asarray(values)
    if callable(given) and values.dtype.kind in kinds and values.ndim == 0:
        values = np.broadcast_to(values, shape)
    if values.shape != shape or values.dtype.kind not in kinds:
        raise ConfigError(f"multigrid: {name}: given {shown(values)}; allowed: {what} of shape {shape}")
    return values


def _called(name, function, shape):
    """Its values at the cells' indices."""
    try:
        return function(*np.indices(shape))
    except Exception as problem:
        error = named(f"multigrid: {name} raised", problem)
        raise ConfigError(f"{error}; allowed: a function of {len(shape)} arrays of cell indices") from problem


def text_of(value):
    """Equal for equal coefficients."""
    return f"array {digest(value)}" if isinstance(value, np.ndarray) else repr(value)


def number(name, value, least, above=False):
    """A finite number, at least or above `least`."""
    allowed = "a finite number" + (f" {'>' if above else '>='} {least:g}" if least > -math.inf else "")
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ConfigError(f"multigrid: {name}: given {shown(value)}; allowed: {allowed}")
    if value < least or above and value == least:
        raise ConfigError(f"multigrid: {name}: given {shown(value)}; allowed: {allowed}")
    return float(value)


def count(name, value, most=math.inf):
    """An integer >= 0."""
    if not integer(value) or not 0 <= value <= most:
        allowed = "an integer >= 0" if most == math.inf else f"an integer, 0 to {most}"
        raise ConfigError(f"multigrid: {name}: given {shown(value)}; allowed: {allowed}")
    return int(value)


def one_of(name, value, allowed):
    """One of some words."""
    if not isinstance(value, str) or value not in allowed:
        raise ConfigError(f"multigrid: {name}: given {shown(value)}; allowed: {', '.join(allowed)}")
    return value


def of_shape(name, given, shape, dtype):
    """A field, or an array of the solver's type.

    Raises
    ------
    ConfigError
        For another shape; for complex numbers where the solver is real.
    """
    if isinstance(given, Field):
        fits = given.shape == shape and not given.closed and given.dtype in {np.dtype("f8"), dtype}
        if fits:
            return given
    else:
        require_no_mask("multigrid: f", given)
        given = np.asarray(given)
        if given.shape == shape and given.dtype.kind in "fiu" + "c" * (dtype.kind == "c"):
            return np.ascontiguousarray(given, dtype)
    what = f"{'' if dtype.kind == 'c' else 'real '}numbers, a field or an array of shape {shape}, {dtype}"
    if dtype.kind != "c" and getattr(given, "dtype", dtype).kind == "c":
        what += "; complex ones where sigma is complex, sigma=0j"
    raise ConfigError(f"multigrid: {name}: given {shown(given)}; allowed: {what}")
