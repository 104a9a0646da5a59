"""The largest or smallest value that a row writes, found while it is computed."""

import numpy as np
from llvmlite import ir

from tilewave.kernel.types.emitting import element
from tilewave.kernel.types.values import POINTER, ir_type


class Bests:
    """What a row function tells of the integers that it writes: the row's largest or smallest at some places.

    They are in rooms on the stack, which LLVM turns into registers and the comparisons into vectors. Where the row ends
    they go to where the pointers after those of places and tables say.

    Parameters
    ----------
    frame
        The row function under construction.
    wanted : tuple of (int, str)
        Number of a written place, "max" or "min".
    """

    def __init__(self, frame, wanted):
        self.frame = frame
        self.wanted = [(frame.nest.places[k].key, op) for k, op in wanted]
        self.rooms, self.wide = [], None

    def open(self):
        """Before the row: nothing yet."""
        for key, op in self.wanted:
            self.rooms.append(self._room(ir_type(self.dtype(key)), self._nothing(key, op)))

    def open_vectors(self, width):
        """Before chunks of `width` points."""
        self.wide = []
        for key, op in self.wanted:
            kind = ir.VectorType(ir_type(self.dtype(key)), width)
            self.wide.append(self._room(kind, ir.Constant(kind, [self._nothing(key, op)] * width)))

    def take(self, values):
        """One more point; `values` by place."""
        self._join(self.rooms, values)

    def take_vectors(self, values):
        """One more chunk."""
        self._join(self.wide, values)

    def close_vectors(self, width):
        """After the chunks."""
        build = self.frame.build_at
        for (key, op), wide, room in zip(self.wanted, self.wide, self.rooms, strict=True):
            kind = ir_type(self.dtype(key))
            shape = ir.VectorType(kind, width)
            name = f"llvm.vector.reduce.{self._sign(key)}{op}.v{width}{kind}"
            module = self.frame.module
            reduce = module.globals.get(name) or ir.Function(module, ir.FunctionType(kind, [shape]), name)
            best = build.call(reduce, [build.load(wide, typ=shape)])
            build.store(self._better(key, op, best, build.load(room, typ=kind)), room)

    def tell(self):
        """After the row."""
        build, nest = self.frame.build_at, self.frame.nest
        for k, ((key, _), room) in enumerate(zip(self.wanted, self.rooms, strict=True)):
            to = element(build, self.frame.pointers, len(nest.places) + len(nest.tables) + k, POINTER)
            build.store(build.load(room, typ=ir_type(self.dtype(key))), to)

    def dtype(self, key):
        """Of the values at a place."""
        return self.frame.dtypes[key[0]]

    def _room(self, kind, nothing):
        build = self.frame.build_at
        with build.goto_entry_block():
            room = build.alloca(kind)
        build.store(nothing, room)
        return room

    def _nothing(self, key, op):
        limits = np.iinfo(self.dtype(key))
        return ir.Constant(ir_type(self.dtype(key)), int(limits.min if op == "max" else limits.max))

    def _join(self, rooms, values):
        build = self.frame.build_at
        for (key, op), room in zip(self.wanted, rooms, strict=True):
            value = values[key]
            build.store(self._better(key, op, value, build.load(room, typ=value.type)), room)

    def _better(self, key, op, value, best):
        build = self.frame.build_at
        compare = build.icmp_signed if self._sign(key) == "s" else build.icmp_unsigned
        return build.select(compare(">" if op == "max" else "<", value, best), value, best)

    def _sign(self, key):
        return "s" if self.dtype(key).kind == "i" else "u"
