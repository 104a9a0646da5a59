"""Making schedules by functions that write the steps of one rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewave.errors import ConfigError, is_integer, shown
from tilewave.schedule.builder import ScheduleBuilder
from tilewave.schedule.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def build_schedule(generator: Callable[..., object], ranks: int, *arguments: Any, rank: int | None = None) -> Schedule:
    """Make a schedule by a function that writes the steps of one rank.

    Parameters
    ----------
    generator : function
        Called as ``generator(b, *arguments)`` with a `ScheduleBuilder` for each rank. It communicates nothing, and
        what it writes follows from its arguments, ``b.rank`` and ``b.ranks``.
    ranks : int
    *arguments
        Handed to the generator.
    rank : int, optional
        Only the part of this rank: for many ranks, where no process should make the parts of all. Such a part can be
        run, but neither proved nor predicted.

    Returns
    -------
    Schedule

    Raises
    ------
    ConfigError
        For regions outside their arrays, messages to ranks that there are none of, numbers that are given twice.
    """
    if not is_integer(ranks, 1):
        raise ConfigError(f"build_schedule: ranks: given {shown(ranks)}; allowed: an integer >= 1")
    if rank is not None and rank not in range(ranks):
        raise ConfigError(f"build_schedule: rank: given {shown(rank)}; allowed: 0 to {ranks - 1}")
    if not callable(generator):
        raise ConfigError(f"build_schedule: generator: given {shown(generator)}; allowed: a function of a builder")
    functions, kernels, builders = [], [], []
    for number in range(ranks) if rank is None else [rank]:
        builders.append(ScheduleBuilder(number, int(ranks), functions, kernels))
        generator(builders[-1], *arguments)
    arrays = [[(a.name, a.shape, a.dtype) for a in b._arrays] for b in builders]
    combined = [{a.name: a.combine for a in b._arrays if a.combine} for b in builders]
    for b, *declared in zip(builders, arrays, combined, strict=True):
        if declared != [arrays[0], combined[0]]:
            raise ConfigError(
                f"build_schedule: rank {b.rank} declares other arrays than rank {builders[0].rank}: "
                f"{declared}, {[arrays[0], combined[0]]}"
            )
    cores = {b.rank: b._made() for b in builders}
    return Schedule(cores, arrays[0], _names(functions), tuple(functions), combine=combined[0], kernels=kernels)


def _names(functions):
    """A different name for each function."""
    names = []
    for function in functions:
        name = getattr(function, "__name__", type(function).__name__)
        same = sum(other.split("#")[0] == name for other in names)
        names.append(f"{name}#{same + 1}" if same else name)
    return names
