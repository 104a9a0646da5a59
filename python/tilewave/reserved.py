"""Names that a nest's arrays and scalars cannot have, as `run` and `plan` take keywords of these names."""

import functools
import inspect

#: Keywords that coming versions of `run` take.
LATER = ("periodic", "times", "until")


@functools.lru_cache(maxsize=None)
def reserved_names():
    """From each such name to what it means, in the order of `run`'s parameters.

    Returns
    -------
    dict
    """
    from .plan import CHOICES  # these use nests themselves
    from .run import plan, run

    taken = {}
    for function in (run, plan):
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is not parameter.VAR_KEYWORD:
                taken.setdefault(parameter.name, "an argument of tilewave.run")
    taken |= dict.fromkeys([*CHOICES, "threads"], "a choice of the plan")
    return taken | dict.fromkeys(LATER, "kept for a coming argument of tilewave.run")
