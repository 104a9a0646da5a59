"""Several nests that are ready to run one after another in each time step."""

import dataclasses
from typing import Any

from tilewave.errors import InternalError
from tilewave.kernel.scalars import Slot
from tilewave.nest.bounds import Loops
from tilewave.nests.call.known_calls import CallKey, in_every_bit
from tilewave.nests.call.step_members import loops_of
from tilewave.nests.run.bound_nest import BoundNest
from tilewave.nests.run.repetitions import repeated_here
from tilewave.plan.plan import Plan


@dataclasses.dataclass
class TimeStep:
    """Nests that are ready to run one after another in each time step.

    Attributes
    ----------
    number : int
        Stands for it among the ranks, which have prepared it together.
    steps : int
        Of the call.
    bounds : list of BoundNest
    body : OneSchedule, InBlocks or Separate
    moved : int
        Bytes that a call may move, where nests run one after another because these are few; else 0.
    calls : int
        Equal ones so far.
    """

    number: int
    steps: int
    bounds: list[BoundNest]
    body: Any
    moved: int = 0
    calls: int = 1

    def may_be_known(self):
        """Whether all that it has of arrays can be had again from these."""
        return not (self.body.quick and self.body.takes_rows) and not any(
            ready.parts
            or ready.stand_ins
            or ready.stored
            or ready.arrays is not ready.called
            or (self.body.quick and (ready.copies_operands or ready.problem.nest.updates))
            for ready in self.bounds
        )

    def may_run_again(self, request):
        """Whether equal calls may repeat what a request says with nothing looked at."""
        here = self.body.quick and request.agreed is None and self.bounds[0].context.size == 1
        return here and self.may_be_known() and self.body.is_settled

    def without_arrays(self):
        """The same for calls to come, which will hold their arrays themselves."""
        return dataclasses.replace(self, bounds=[ready.without_arrays() for ready in self.bounds])

    def with_arguments(self, arguments, steps):
        """The same for a call with these arrays, scalars and steps; local."""
        bounds = [ready.with_arguments(arguments) for ready in self.bounds]
        self.body.take(bounds)
        return dataclasses.replace(self, bounds=bounds, steps=steps)

    def serves(self, steps):
        """Whether it serves a call of so many steps: a schedule of one time step serves any number of them."""
        return steps > 0 if self.body.quick else steps == self.steps


class KnownSteps:
    """What equal calls on one rank run again, with nothing looked at; it keeps no array alive."""

    def __init__(self, request, context):
        self._request, self._context = request, context

    def run(self, begun):
        """Run it for a call that began at `begun`; local, as there is one rank. Returns the report."""
        try:
            next(repeated_here(self._context, self._request, begun))
        except StopIteration as done:
            return done.value
        raise InternalError("a schedule of several nests agrees on something")


def exact_key(call):
    """The `CallKey` of a call of several nests, whose scalars count in every bit; None where it may be known for no
    other.
    """
    nests, loops, arguments = tuple(call.nests), call.loops, call.arguments
    arrays = {name for nest in nests for name in nest.arrays}
    each = loops_of(nests, loops) if loops.over else [(nests[0], loops)]
    others = in_every_bit({name: value for name, value in arguments.items() if name not in arrays})
    plans = call.plan if isinstance(call.plan, tuple | list) else [call.plan]
    plans = [plan.choices() if isinstance(plan, Plan) else in_every_bit(plan or {}) for plan in plans]
    given = plans, call.planning, call.fastmath, call.reduce and repr(call.reduce)
    return CallKey.of(
        nests, call.context, arguments, loops.steps, [own.key(nest) for nest, own in each], others, *given
    )


def key_of(call, nests, choices, reduce, looks):
    """The `CallKey` of a call, whose scalars count by type; None where it may be known for no other."""
    each, arguments = [], call.arguments
    for nest, own in loops_of(nests, call.loops):
        scalars = nest.bind_scalars({name: arguments[name] for name in nest.scalars if name in arguments})
        slots = tuple(Slot.of(name, value) for name, value in scalars.items())
        steps = own.steps if nest.indices[0] in (own.reverse or ()) else None  # time is counted from the last
        each.append((Loops(own.over, own.reverse, steps, periodic=own.periodic).key(nest), slots))
    given = [*map(in_every_bit, choices)], bool(call.fastmath), sorted(arguments), repr(reduce), looks
    return CallKey.of(nests, call.context, arguments, each, *given)
