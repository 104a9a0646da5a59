"""`tilewave.measure`: the numbers of a machine, and on request the rate of a nest."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tilewave.context.collective import collective
from tilewave.errors import ConfigError, shown
from tilewave.machine import known
from tilewave.machine.measure import BUDGET_S, measured
from tilewave.nest.nest import Nest
from tilewave.nests.doors.run import plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewave.annotations import Collective
    from tilewave.context.context import Context
    from tilewave.machine.machine import Machine


@collective("tw.measure")
def measure(
    quick: bool = False, context: Context | None = None, nest: Nest | Sequence[Nest] | None = None, **arguments: Any
) -> Collective[Machine]:
    """Measure what messages, lanes and memory of this launch cost; collective.

    Parameters
    ----------
    quick : bool
        At most 3 s in place of 30, with fewer and smaller sizes.
    context : Context, optional
        Default: all ranks of the launch.
    nest : Nest or tuple of Nest, optional
        Then the rate of this kernel, too, on tiles of its plan: ``kernels[nest.name]``; of several, of each.
    **arguments
        Of the nest, as in `plan`.

    Returns
    -------
    Machine
        The same on every rank. It is stored for later launches of this shape on these hosts, and the context uses it.

    Raises
    ------
    ConfigError
        On every rank, when ``quick`` is no bool on any, or as `plan`.
    """
    if not isinstance(quick, bool):
        raise ConfigError(f"quick: given {shown(quick)}; allowed: True, False")
    several = isinstance(nest, tuple | list) and bool(nest) and all(isinstance(each, Nest) for each in nest)
    if nest is not None and not several and not isinstance(nest, Nest):
        raise ConfigError(
            f"nest: given {type(nest).__name__}; allowed: a function under @tilewave.nest, or a tuple of them"
        )
    nests = tuple(nest) if several else (nest,) if isinstance(nest, Nest) else ()
    with_nest = nest is not None or bool(arguments)
    yield f"quick {quick!r}, nests {', '.join(each.name for each in nests) if with_nest else 'none'}"
    found = measured(context, quick, BUDGET_S[quick])
    if with_nest:
        planned = plan(nest, context=context, **arguments)
        for each, of in zip(nests, planned if several else (planned,), strict=True):
            found.kernels[each.name] = {"tile": list(of.tile), "row": list(of.row), **of.notes["rate"]}
        if context.rank == 0:
            known.store(found)
    return copy.deepcopy(found)  # the context keeps the other
