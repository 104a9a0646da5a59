"""The scalars of a nest as the kernel receives them: one 8-byte slot each."""

from dataclasses import dataclass

import numpy as np

from .typing import INT, Type, type_of
from .values import I1, I64, INT64_MAX, INT64_MIN, Typed, constant, ir_type
from ..errors import ConfigError


@dataclass(frozen=True)
class Slot:
    """One scalar: its name, type, and whether as a Python int it is known to fit in 32 bits."""

    name: str
    type: Type
    narrow: bool

    @classmethod
    def of(cls, name, value):
        kind = type_of(value)
        if kind == INT and not INT64_MIN <= value <= INT64_MAX:
            raise ConfigError(f"scalar {name!r}: {value} is beyond 64 bits; "
                              "allowed: ints of at most 64 bits")
        return cls(name, kind, kind == INT and -(2**31) <= value < 2**31)

    def load(self, build, scalars, position):
        """The scalar's value in a kernel, from its slot."""
        kind = ir_type("float64") if self.type.is_float else I64
        place = build.gep(scalars, [constant("int64", position)], source_etype=I64)
        value = build.load(place, typ=kind)
        wanted = ir_type(self.type.dtype)
        if wanted is I1:
            value = build.icmp_signed("!=", value, constant("int64", 0))
        elif wanted is not kind and wanted != kind:
            value = build.fptrunc(value, wanted) if self.type.is_float else \
                build.trunc(value, wanted)
        bound = 2**31 if self.narrow else 2**63
        return Typed(self.type, value, low=-bound, high=bound - 1)

    def __str__(self):
        return f"{self.type}{' of 32 bits' if self.narrow else ''}"


def pack(nest, slots, values):
    """An int64 array with one slot a scalar, at least one."""
    bound = nest.bind_scalars(values)
    packed = np.zeros(max(1, len(slots)), np.int64)
    for position, slot in enumerate(slots):
        given = Slot.of(slot.name, bound[slot.name])
        if given != slot and (given.type != slot.type or slot.narrow):
            raise ConfigError(
                f"scalar {slot.name!r} of nest {nest.name!r}: the kernel was compiled for a "
                f"{slot}, given a {given} ({bound[slot.name]!r}); compile again for this type"
            )
        view = packed.view(np.float64) if slot.type.is_float else packed
        view[position] = bound[slot.name]
    return packed
