"""Calls that were checked before: one that is the same at a glance is not checked again."""

import weakref

import numpy as np

from tilewave.field.field import Field
from tilewave.field.views import is_stale_view
from tilewave.nest.nest import Nest
from tilewave.nests.call.operands import tables_of


class Call:
    """The arguments of a call, to be compared with those of the last one of its nest: the same arrays, and all else
    equal. Their checks took 30 of 55 us."""

    def __init__(self, nest, arrays, facts):
        self.nest, self.arrays, self.facts = nest, arrays, facts

    @classmethod
    def of(cls, nest, context, loops, plan, choices, fastmath, arguments, reduce):
        """None where the call is none of these."""
        if not isinstance(nest, Nest) or plan is not None or reduce is not None:
            return None
        arrays = {name: arguments.get(name) for name in nest.arrays}
        if (state := state_of(arrays.values())) is None:
            return None
        # Scalars count by type and every bit.
        others = []
        if len(arguments) > len(arrays):
            others = [(name, type(value), repr(value)) for name, value in arguments.items() if name not in arrays]
        fixed = [(name, type(value), repr(value)) for name, value in choices.items()]
        return cls(
            nest,
            arrays,
            (
                nest.signature(),
                loops.key(nest),
                bool(fastmath),
                others,
                fixed,
                context._machine_number,
                context.threads,
                state,
            ),
        )

    def known(self, calls):
        """What the check of the last call found, with this one's arrays; None where they differ."""
        facts, arrays, given = calls.get(self.nest, (None, None, None))
        if facts != self.facts:
            return None
        for ref, array in zip(arrays, self.arrays.values(), strict=True):
            if ref() is not array:
                return None
        return given.with_arrays(self.arrays, tables_of(given.nest, self.arrays) if given.nest.tables else {})

    def keep(self, calls, given):
        """Remember what the check of this call found, but not its arrays: they live as long as their owner wants."""
        if not given.replicated and not given.loops.inner:
            arrays = [weakref.ref(array) for array in self.arrays.values()]
            calls[self.nest] = self.facts, arrays, given.with_arrays(None, None)


def state_of(arrays):
    """What may change of arrays: one may have been given another shape since, or be read-only now; a field may keep
    more of its history. None where something is neither a field nor a NumPy array, or no longer what it was.
    """
    state = []
    for array in arrays:
        if array.__class__ is np.ndarray:
            if array.base is not None and is_stale_view(array):
                return None
            state.append(array.__array_interface__)
        elif array.__class__ is Field and not array.closed:
            state.append(array.history)
        else:
            return None
    return state
