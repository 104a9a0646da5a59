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
    from tilewave.annotations import Collective
    from tilewave.context.context import Context
    from tilewave.machine.machine import Machine


@collective("tw.measure")
def measure(
    quick: bool = False, context: Context | None = None, nest: Nest | None = None, **arguments: Any
) -> Collective[Machine]:
    """Measure what messages, lanes and memory of this launch cost; collective.

    Parameters
    ----------
    quick : bool
        At most 3 s in place of 30, with fewer and smaller sizes.
    context : Context, optional
        Default: all ranks of the launch.
    nest : Nest, optional
        Then the rate of this kernel, too, on tiles of its plan: ``kernels[nest.name]``.
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
    if nest is not None and not isinstance(nest, Nest):
        raise ConfigError(f"nest: given {type(nest).__name__}; allowed: a function under @tilewave.nest")
    with_nest = nest is not None or bool(arguments)
    yield f"quick {quick!r}, {f'nest {nest and nest.name!r}' if with_nest else 'no nest'}"
    found = measured(context, quick, BUDGET_S[quick])
    if with_nest:
        planned = plan(nest, context=context, **arguments)
        found.kernels[nest.name] = {"tile": list(planned.tile), "row": list(planned.row), **planned.notes["rate"]}
        if context.rank == 0:
            known.store(found)
    return copy.deepcopy(found)  # the context keeps the other
