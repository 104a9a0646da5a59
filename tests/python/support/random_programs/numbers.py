"""What `reduce` gives for the values of all points, in plain Python; and whether two values have the same bits."""

import math

import numpy as np


def reduced(function, values):
    """One number, or a position, of pairs (position, value)."""
    if function in ("sum", "norm", "dot"):
        return _sum([value for _, value in values])
    best = None
    for at, value in values:
        worse = best is not None and _better(function, best[1], value)
        if best is None or _better(function, value, best[1]) or (not worse and at < best[0]):
            best = at, value
    if best is None:
        return None
    return best[0] if function.startswith("arg") else best[1]


def _better(function, a, b):
    """NaN is better than any number."""
    if a != a or b != b:
        return bool(a != a and b == b)
    return bool(a > b if function.endswith("max") else a < b)


def _sum(values):
    """Exact, rounded once, of floats; of integers modulo 2**64."""
    if not values:
        return 0
    if np.result_type(*values).kind in "biu":
        total = sum(int(value) for value in values) % 2**64
        return total - 2**64 if total >= 2**63 and np.result_type(*values).kind != "u" else total
    values = [float(value) for value in values]
    special = {value if value == value else "NaN" for value in values if not math.isfinite(value)}
    if special:
        return special.pop() if special in ({math.inf}, {-math.inf}) else math.nan
    return math.fsum(values)


def same_number(found, expected):
    """Whether a result of a run has the value of the definition."""
    if isinstance(expected, np.ndarray) and expected.ndim:
        return found is not None and not differing(np.asarray(found), expected).any()
    if expected is None or isinstance(expected, tuple):
        return found == expected
    if found is None or isinstance(found, tuple):
        return False
    return bool(found == expected or found != found and expected != expected)


def differing(found, expected):
    """Where two arrays have other bits, NaNs being equal: an array of bool."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return np.ones(expected.shape, bool)
    if found.dtype.kind == "c":
        half = f"f{found.dtype.itemsize // 2}"
        parts = [np.ascontiguousarray(a).view(half).reshape(*a.shape, 2) for a in (found, expected)]
        return differing(*parts).any(axis=-1)
    bits = [np.ascontiguousarray(a).view(f"u{a.itemsize}").reshape(a.shape) for a in (found, expected)]
    different = bits[0] != bits[1]
    if found.dtype.kind == "f":
        different &= ~(np.isnan(found) & np.isnan(expected))
    return different
