"""Which nests have schedules of tasks."""

from tilewave.machine import measure as machine
from tilewave.nest.nest import Nest
from tilewave.nests import gather
from tilewave.nests.prepare import warn_of_short_arrays


def task_call(nest, context, loops, plan, fastmath, arguments, reduce=None, points=None):
    """The call of a nest whose schedule has tasks, agreed on, or None; part of a collective call."""
    if not isinstance(nest, Nest) or not nest.parameters.wholes or nest.rows:
        return None
    yield from machine.looked_up(context)
    call = gather.checked(nest, context, loops, plan, fastmath, arguments, reduce, points)
    if call:
        warn_of_short_arrays(context, call.short_arrays(loops))
    yield call.description if call else f"nest {nest.name!r}, in another way"
    return call
