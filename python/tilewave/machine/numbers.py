"""Which numbers links and machines have, as include/tilewave/machine.hpp declares them."""

from tilewave import _core

#: Of the files that machines are kept in.
FORMAT = 2
FAR = 1 << 50  # bytes beyond any working set
NUMBERS = tuple(name for name, *_ in _core.machine_numbers)
#: Of these, what files of earlier versions do not have.
LATER = ("shared_cache_bytes",)
LINK_NUMBERS = tuple(name for name, *_ in _core.link_numbers)
_RANGES = {name: kind for name, _, kind, _ in (*_core.machine_numbers, *_core.link_numbers)}
#: Numbers that may be 0; all others are greater.
MAY_BE_ZERO = {name for name, kind in _RANGES.items() if kind != "positive"} | {"poll_period_s", "hidden"}
#: Numbers between 0 and 1.
FRACTIONS = {name for name, kind in _RANGES.items() if kind == "fraction"} | {"hidden"}


def with_numbers(declared, **other):
    """Class decorator, below `dataclasses.dataclass`: an attribute for each number, with its default and documentation.

    Parameters
    ----------
    declared : sequence of (name, default, range, documentation)
    **other
        Other defaults.
    """

    def decorate(cls):
        own = dict(cls.__annotations__)
        needed = {name: kind for name, kind in own.items() if name not in vars(cls)}
        cls.__annotations__ = needed | {name: type(default) for name, default, *_ in declared} | own
        for name, default, *_ in declared:
            setattr(cls, name, other.get(name, default))
        lines = (f"{name} : {type(default).__name__}\n        {text}" for name, default, _, text in declared)
        cls.__doc__ = cls.__doc__.replace("NUMBERS", "\n    ".join(lines))
        return cls

    return decorate
