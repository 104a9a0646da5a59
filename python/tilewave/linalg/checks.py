"""Checks of arguments that calls of `tilewave.linalg` have in common."""

import numpy as np

from tilewave.errors import ConfigError, shown
from tilewave.linalg.matrix import Matrix

#: What BLAS and SciPy call them.
TRANSPOSES = {"N": "N", "T": "T", "C": "C", 0: "N", 1: "T", 2: "C"}


def require_matrix(call, name, given, context):
    """A matrix of this context."""
    if not isinstance(given, Matrix):
        raise ConfigError(f"{call}: {name}: given {type(given).__name__}; allowed: a tilewave.linalg.Matrix")
    if given.context is not context:
        raise ConfigError(f"{call}: {name} lives on another context; allowed: matrices of one context")


def require_square(call, a):
    if a.shape[0] != a.shape[1]:
        raise ConfigError(f"{call}: a of shape {a.shape} was given; allowed: square matrices")


def require_sides(call, factor, b, rows):
    """Right-hand sides for a matrix: of its context and dtype, of so many rows."""
    require_matrix(call, "b", b, factor.context)
    if b.dtype != factor.dtype or b.shape[0] != rows:
        raise ConfigError(
            f"{call}: b of {b.shape} {b.dtype} was given for a matrix of {factor.shape} {factor.dtype}; allowed: "
            f"{rows} rows, the same dtype"
        )


def require_integer(call, name, given, least, most=2**63 - 1):
    """An integer from `least` to `most`, or None."""
    if given is None:
        return
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < least:
        raise ConfigError(f"{call}: {name}: given {shown(given)}; allowed: an integer >= {least}")
    if given > most:
        raise ConfigError(f"{call}: {name}: given {shown(given)}; allowed: an integer from {least} to {most}")


def require_bool(call, name, given):
    if not isinstance(given, bool | np.bool_):
        raise ConfigError(f"{call}: {name}: given {given!r}; allowed: True, False")


def require_one_of(call, name, given, allowed):
    """One of some texts, or None."""
    if given is not None and not (isinstance(given, str) and given in allowed):
        raise ConfigError(f"{call}: {name}: given {given!r}; allowed: {', '.join(allowed)}")


def transpose_of(call, name, given, allowed="NTC"):
    """ "N", "T" or "C" of an argument."""
    try:
        found = None if isinstance(given, bool) else TRANSPOSES.get(given)
    except TypeError:
        found = None
    if found is None or found not in allowed:
        numbers = [str(number) for number in range(3) if TRANSPOSES[number] in allowed]
        names = ", ".join([*map(repr, allowed), *numbers])
        raise ConfigError(f"{call}: {name}: given {given!r}; allowed: {names}")
    return found
