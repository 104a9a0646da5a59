"""The scalars of a nest as the kernel receives them: one 8-byte slot each."""

import sys
from dataclasses import dataclass

import numpy as np
from llvmlite import ir

from tilewave.errors import ConfigError
from tilewave.kernel.types.values import I1, I8, I16, I32, I64, INT64_MAX, INT64_MIN, Typed, ir_type
from tilewave.nest.types import INT, Type, type_of

#: Ranges of Python ints that kernels are compiled for: within one, no point has to check again
#: whether the scalar fits an array's dtype. From narrow to wide.
RANGES = ((0, 127), (-128, 127), (0, 255), (-(2**15), 2**15 - 1), (-(2**31), 2**31 - 1), (INT64_MIN, INT64_MAX))


@dataclass(frozen=True)
class Slot:
    """One scalar: its name, type, and as a Python int the range that it is in."""

    name: str
    type: Type
    low: int = INT64_MIN
    high: int = INT64_MAX

    @classmethod
    def of(cls, name, value, ranges=RANGES):
        """The slot of the narrowest kind for a value; ConfigError for an int beyond 64 bits."""
        kind = type_of(value)
        if kind != INT:
            return cls(name, kind)
        for low, high in ranges:
            if low <= value <= high:
                return cls(name, kind, low, high)
        raise ConfigError(f"scalar {name!r}: {value} is beyond 64 bits; allowed: ints of at most 64 bits")

    @property
    def size(self):
        """In units of 8 bytes."""
        return 2 if self.type.is_complex else 1

    def load(self, build, scalars, position):
        """The scalar's value in a kernel, from its slot."""
        if self.type.is_complex:
            return self._load_complex(build, scalars, position)
        kind = ir_type("float64") if self.type.is_float else I64
        place = build.gep(scalars, [I64(position)], source_etype=I64)
        value = build.load(place, typ=kind)
        wanted = ir_type(self.type.dtype)
        if wanted is I1:
            value = build.icmp_signed("!=", value, I64(0))
        elif wanted is not kind and wanted != kind:
            value = build.fptrunc(value, wanted) if self.type.is_float else build.trunc(value, wanted)
        elif self.type == INT and sys.byteorder == "little":
            # The low bits where they lie: choices between scalars then are vectors of the narrow type.
            value.narrow = {narrow: build.load(place, typ=narrow) for narrow in (I8, I16, I32)}
        return Typed(self.type, value, low=self.low, high=self.high)

    def _load_complex(self, build, scalars, position):
        wanted, value = ir_type(self.type.dtype), None
        for k, kind in enumerate(wanted.elements):
            place = build.gep(scalars, [I64(position + k)], source_etype=I64)
            part = build.load(place, typ=ir_type("float64"))
            part = part if kind == part.type else build.fptrunc(part, kind)
            value = build.insert_value(ir.Constant(wanted, ir.Undefined) if value is None else value, part, k)
        return Typed(self.type, value)

    def store(self, packed, position, value):
        """Put the scalar into an int64 array."""
        if self.type.is_complex:
            packed.view(np.float64)[position : position + 2] = value.real, value.imag
        else:
            kind = np.float64 if self.type.is_float else np.uint64 if self.type.dtype.kind == "u" else np.int64
            packed.view(kind)[position] = value

    def __str__(self):
        return f"{self.type}{f' in {self.low}..{self.high}' if self.type == INT else ''}"


def positions(slots):
    """(position, slot) of each scalar, in units of 8 bytes."""
    at = 0
    for slot in slots:
        yield at, slot
        at += slot.size


def room_of(slots):
    """Units of 8 bytes of all scalars."""
    return sum(slot.size for slot in slots)


def pack(nest, slots, values):
    """An int64 array with one slot a scalar, two for a complex one, at least one."""
    captured = {slot.name: values[slot.name] for slot in slots if slot.name not in nest.scalars}
    bound = {**nest.bind_scalars({name: value for name, value in values.items() if name not in captured}), **captured}
    packed = np.zeros(max(1, room_of(slots)), np.int64)
    for position, slot in positions(slots):
        given = Slot.of(slot.name, bound[slot.name])
        if given.type != slot.type or given.type == INT and not slot.low <= bound[slot.name] <= slot.high:
            raise ConfigError(
                f"scalar {slot.name!r} of nest {nest.name!r}: the kernel was compiled for a "
                f"{slot}, given a {given} ({bound[slot.name]!r}); compile again for this type"
            )
        slot.store(packed, position, bound[slot.name])
    return packed
