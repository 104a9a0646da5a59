"""Making schedules by functions that write the steps of one rank."""

from tilewave.errors import ConfigError, is_integer, shown
from tilewave.schedule.builder import ScheduleBuilder


def built(generator, ranks, arguments, rank):
    """Return what a `Schedule` is made of, by name."""
    if not is_integer(ranks, 1):
        raise ConfigError(f"Schedule.build: ranks: given {shown(ranks)}; allowed: an integer >= 1")
    if rank is not None and rank not in range(ranks):
        raise ConfigError(f"Schedule.build: rank: given {shown(rank)}; allowed: 0 to {ranks - 1}")
    if not callable(generator):
        raise ConfigError(f"Schedule.build: generator: given {shown(generator)}; allowed: a function of a builder")
    functions, kernels, builders = [], [], []
    for number in range(ranks) if rank is None else [rank]:
        builders.append(ScheduleBuilder(number, int(ranks), functions, kernels))
        generator(builders[-1], *arguments)
    arrays = [[(a.name, a.shape, a.dtype) for a in b._arrays] for b in builders]
    combined = [{a.name: a.combine for a in b._arrays if a.combine} for b in builders]
    for b, *declared in zip(builders, arrays, combined, strict=True):
        if declared != [arrays[0], combined[0]]:
            raise ConfigError(
                f"Schedule.build: rank {b.rank} declares other arrays than rank {builders[0].rank}: "
                f"{declared}, {[arrays[0], combined[0]]}"
            )
    return {
        "cores": {b.rank: b._made() for b in builders},
        "arrays": arrays[0],
        "functions": _names(functions),
        "calls": tuple(functions),
        "combine": combined[0],
        "kernels": kernels,
    }


def _names(functions):
    """A different name for each function."""
    names = []
    for function in functions:
        name = getattr(function, "__name__", type(function).__name__)
        same = sum(other.split("#")[0] == name for other in names)
        names.append(f"{name}#{same + 1}" if same else name)
    return names
