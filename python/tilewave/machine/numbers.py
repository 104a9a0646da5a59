"""Which numbers links and machines have, as include/tilewave/machine.hpp declares them."""

from tilewave import _core

#: Of the files of machines.
FORMAT = 3
FAR = 1 << 50  # bytes beyond any working set
NUMBERS = tuple(name for name, *_ in _core.machine_numbers)
LINK_NUMBERS = tuple(name for name, *_ in _core.link_numbers)
_RANGES = {name: kind for name, _, kind, _ in (*_core.machine_numbers, *_core.link_numbers)}
#: Numbers that may be 0; all others are greater.
MAY_BE_ZERO = {name for name, kind in _RANGES.items() if kind != "positive"} | {"poll_period_s", "hidden"}
#: Numbers between 0 and 1.
FRACTIONS = {name for name, kind in _RANGES.items() if kind == "fraction"} | {"hidden"}
