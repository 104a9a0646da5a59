"""What several nests in each time step need, cached for the next call with the same arrays, but not the arrays."""

import dataclasses
import weakref
from typing import Any

from tilewave.kernel.scalars import Slot
from tilewave.nest.bounds import Loops
from tilewave.nests.call.equal_calls import state_of
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
    body : OneSchedule or Separate
    arrays : dict
        Weak references by name, where it is cached.
    """

    number: int
    steps: int
    bounds: list[BoundNest]
    body: Any
    arrays: dict[str, Any] = dataclasses.field(default_factory=dict)

    def may_be_cached(self):
        """Whether all that it has of arrays can be had again from these."""
        return not any(
            ready.on_one_rank or ready.replicated or ready.stored or (self.body.quick and ready.copies_tables)
            for ready in self.bounds
        )

    def without_arrays(self):
        """The same for calls to come, which will hold their arrays themselves."""
        arrays = {name: weakref.ref(array) for ready in self.bounds for name, array in ready.arrays.items()}
        return dataclasses.replace(self, bounds=[ready.without_arrays() for ready in self.bounds], arrays=arrays)

    def with_arguments(self, arguments, steps):
        """The same for a call with these arrays, scalars and steps; local."""
        bounds = [ready.with_arguments(arguments) for ready in self.bounds]
        self.body.take(bounds)
        return dataclasses.replace(self, bounds=bounds, steps=steps)

    def serves(self, arguments, steps):
        """Whether it serves a call with these arrays: a schedule of one time step serves any number of them."""
        same = all(ref() is arguments[name] for name, ref in self.arrays.items())
        return same and (steps > 0 if self.body.quick else steps == self.steps)

    def is_dead(self):
        """Whether no call can have its arrays."""
        return any(ref() is None for ref in self.arrays.values())


def call_key(nests, context, loops, choices, fastmath, arguments, reduce):
    """Equal for calls that what was prepared for one of them serves, where their arrays are the same; None where it
    serves none. Scalars count by type; local.
    """
    arrays = arrays_of(nests, arguments)
    if (state := state_of(arrays.values())) is None:
        return None
    each = []
    for nest, own in loops_of(nests, loops):
        scalars = nest.bind_scalars({name: arguments[name] for name in nest.scalars if name in arguments})
        slots = [Slot.of(name, value) for name, value in scalars.items()]
        each.append((nest.signature(), Loops(own.over, own.reverse, periodic=own.periodic).key(nest), slots))
    fixed = [(name, type(value), value) for name, value in choices.items()]
    facts = each, fixed, fastmath, sorted(arguments), state, context._machine_number, context.threads, reduce
    return nests, tuple(map(id, arrays.values())), repr(facts)


def find(context, key, arguments, steps):
    """The `TimeStep` that this rank has for such a call, without arrays; None: it has none."""
    cached = key and context._steps.get(key)
    return cached if cached and cached.serves(arguments, steps) else None


def store(context, key, step):
    """Cache what was prepared, but not its arrays: they live as long as their owner wants."""
    for old in [key for key, cached in context._steps.items() if cached.is_dead()]:
        context._steps.discard(old)
    if key and step.may_be_cached():
        context._steps[key] = step.without_arrays()


def arrays_of(nests, arguments):
    """By name; None for those that are missing."""
    return {name: arguments.get(name) for nest in nests for name in nest.arrays}
