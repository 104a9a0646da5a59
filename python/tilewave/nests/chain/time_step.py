"""Several nests that are ready to run one after another in each time step."""

import dataclasses
from typing import Any

from tilewave.kernel.scalars import Slot
from tilewave.nest.bounds import Loops
from tilewave.nests.call.known_calls import CallKey, in_every_bit
from tilewave.nests.call.step_members import loops_of
from tilewave.nests.run.bound_nest import BoundNest


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
    """

    number: int
    steps: int
    bounds: list[BoundNest]
    body: Any

    def may_be_known(self):
        """Whether all that it has of arrays can be had again from these."""
        return not any(
            ready.parts
            or ready.stand_ins
            or ready.stored
            or ready.arrays is not ready.called
            or (self.body.quick and (ready.copies_operands or ready.problem.nest.updates))
            for ready in self.bounds
        )

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


def key_of(call, nests, choices, reduce, looks):
    """The `CallKey` of a call, whose scalars count by type; None where it may be known for no other."""
    each, arguments = [], call.arguments
    for nest, own in loops_of(nests, call.loops):
        scalars = nest.bind_scalars({name: arguments[name] for name in nest.scalars if name in arguments})
        slots = tuple(Slot.of(name, value) for name, value in scalars.items())
        each.append((Loops(own.over, own.reverse, periodic=own.periodic).key(nest), slots))
    given = in_every_bit(choices), bool(call.fastmath), sorted(arguments), repr(reduce), looks
    return CallKey.of(nests, call.context, arguments, each, *given)
