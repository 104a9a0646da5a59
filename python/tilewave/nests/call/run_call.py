"""The arguments of `run`, as they were given."""

import dataclasses
from typing import Any

from tilewave.plan.fixed import USUAL


@dataclasses.dataclass
class RunCall:
    """The arguments of `run`.

    Attributes
    ----------
    nests : Nest or tuple of Nest
    context : Context
    loops : Loops
        For one nest; or for several, with `over`, `reverse` and `periodic` for all, or one for each.
    arguments : dict
        Arrays and scalars by name.
    plan, planning, fastmath, reduce, inject, record, until, every
    """

    nests: Any
    context: Any
    loops: Any
    arguments: dict[str, Any]
    plan: Any = None
    planning: str = USUAL
    fastmath: bool = False
    reduce: Any = None
    inject: Any = None
    record: Any = None
    until: Any = None
    every: int = 1
