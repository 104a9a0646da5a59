"""Numbers for people: three digits, and one unit for all that stand in a column.

A kind of unit is a tuple of (name, size), the largest first. ``text(0.032, TIMES)`` is ``"32 ms"``; a column is
``unit, cells = column(values, TIMES)``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    Units = tuple[tuple[str, float], ...]

TIMES: Units = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))  # of seconds
BYTES: Units = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("bytes", 1))  # as chunks and limits are counted
RATES: Units = (("GB/s", 1e9), ("MB/s", 1e6), ("KB/s", 1e3), ("bytes/s", 1))  # of bytes a second, as networks are
POINTS: Units = (("Gpoints/s", 1e9), ("Mpoints/s", 1e6), ("kpoints/s", 1e3), ("points/s", 1))
FLOPS: Units = (("Tflop/s", 1e12), ("Gflop/s", 1e9), ("Mflop/s", 1e6), ("flop/s", 1))

DIGITS = 3
DECIMALS = 3  # at most: what is less than a thousandth of the unit is 0
ROUNDED_UP = 1 - 0.5 * 10**-DIGITS  # of a unit, from which on three digits are the unit's 1


def unit_of(values: Iterable[float], units: Units) -> tuple[str, float]:
    """The unit (name, size) in which all of `values` are written: the one that suits the largest.

    Parameters
    ----------
    values : iterable of float
        In the base unit; what is not finite does not count.
    units : tuple of (name, size)
        One of this module's.
    """
    most = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return next((unit for unit in units if most >= ROUNDED_UP * unit[1]), units[-1])


def number(value: float) -> str:
    """Three digits without an exponent, at most three of them decimals: 912, 12.3, 0.16, 0.001."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 10**DIGITS * ROUNDED_UP:
        return f"{value:.0f}"
    text = f"{float(f'{value:.{DIGITS}g}'):.{DECIMALS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def text(value: float, units: Units) -> str:
    """One value with the unit that suits it."""
    name, size = unit_of([value], units)
    return f"{number(value / size)} {name}"


def count(number: int, name: str) -> str:
    """So many of what has a name in the singular: "1 rank", "3 ranks"."""
    return f"{number} {name}{'s' * (number != 1)}"


def seconds(value: float) -> str:
    """A time."""
    return text(value, TIMES)


def size(value: float) -> str:
    """Bytes."""
    return text(value, BYTES)


def rate(byte_s: float) -> str:
    """Seconds a byte, as bytes a second."""
    return text(1 / byte_s, RATES) if byte_s > 0 else "unlimited"


def column(values: Iterable[float], units: Units) -> tuple[str, list[str]]:
    """The unit of a column and its cells, whose decimal points stand below each other."""
    listed = list(values)
    name, size = unit_of(listed, units)
    return name, aligned(number(value / size) for value in listed)


def cells(values: Iterable[float], units: Units) -> list[str]:
    """A column of values with their unit: one for all, or, where the least is less than a hundredth of it, each with
    what suits it, as of curves over many sizes.
    """
    listed = list(values)
    name, size = unit_of(listed, units)
    least = min((abs(value) for value in listed if value), default=size)
    if least < 0.01 * size:
        return [text(value, units) for value in listed]
    return [f"{cell} {name}" for cell in column(listed, units)[1]]


def aligned(numbers: Iterable[str]) -> list[str]:
    """Numbers as text, padded so that their decimal points stand below each other."""
    halves = [text.partition(".") for text in numbers]
    before = max((len(whole) for whole, _, _ in halves), default=0)
    after = max((len(point + rest) for _, point, rest in halves), default=0)
    return [f"{whole:>{before}}{point + rest:<{after}}" for whole, point, rest in halves]


def shares(parts: Iterable[float], total: float) -> list[str]:
    """Parts of a total in per cent with one decimal, and behind them what is left of 100 %: they add up to 100.0."""
    tenths = [round(1000 * max(part, 0.0) / total) if total > 0 else 0 for part in parts]
    while sum(tenths) > 1000:  # by rounding, or by clocks that differ: of the largest
        tenths[tenths.index(max(tenths))] -= 1
    return [f"{tenth / 10:.1f}" for tenth in [*tenths, 1000 - sum(tenths)]]


def total(parts: Iterable[float], units: Units) -> tuple[str, list[str], str]:
    """(unit, parts, their sum): as many decimals as the sum has in four digits, and what is shown adds up."""
    listed = list(parts)
    name, size = unit_of([sum(listed)], units)
    whole = sum(listed) / size
    decimals = max(DIGITS - math.floor(math.log10(whole)), 0) if whole > 0 else 0
    step = 10**decimals
    rounded = [round(part / size * step) for part in listed]
    return name, [f"{part / step:.{decimals}f}" for part in rounded], f"{sum(rounded) / step:.{decimals}f}"
