"""The largest or smallest value of rows, found while they are computed."""

from typing import NamedTuple

from llvmlite import ir

from tilewave.kernel.types.emitting import element
from tilewave.kernel.types.values import I32, I64, POINTER, constant, ir_type, worst


class Best(NamedTuple):
    """Hold what is wanted: the largest ("max") or smallest ("min") value at a written place, by its number.

    ``alone``: nothing else is wanted of the place, a row value, so that it need not be stored.
    """

    place: int
    op: str
    alone: bool = False


class Bests:
    """Hold what a row function tells of the values that it computes: the largest or smallest at some places.

    They are in rooms on the stack, which LLVM turns into registers and the comparisons into vectors. A row begins with
    what is where the pointers after those of places and tables say, and leaves there the better one. NaN is better than
    any number.

    Parameters
    ----------
    frame
        The row function under construction.
    wanted : tuple of Best
    """

    def __init__(self, frame, wanted):
        self.frame = frame
        self.wanted = [(frame.nest.places[best.place].key, best.op) for best in wanted]
        self.unstored = {frame.nest.places[best.place].key for best in wanted if best.alone}
        self.rooms, self.wide = [], None

    def open(self):
        """Before the row."""
        for k, (key, _) in enumerate(self.wanted):
            kind = ir_type(self.dtype(key))
            self.rooms.append(self._room(kind, self.frame.build_at.load(self._pointer(k), typ=kind)))

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

    def close_lanes(self, width, live):
        """After steps of lanes, of which the first `live` ones count."""
        build = self.frame.build_at
        for (key, op), wide, room in zip(self.wanted, self.wide, self.rooms, strict=True):
            kind = ir_type(self.dtype(key))
            lanes, best = build.load(wide, typ=ir.VectorType(kind, width)), build.load(room, typ=kind)
            for lane in range(width):
                value = self._better(key, op, build.extract_element(lanes, I32(lane)), best)
                best = build.select(build.icmp_signed("<", I64(lane), live), value, best)
            build.store(best, room)

    def close_vectors(self, width):
        """After the chunks."""
        build = self.frame.build_at
        for (key, op), wide, room in zip(self.wanted, self.wide, self.rooms, strict=True):
            kind = ir_type(self.dtype(key))
            shape = ir.VectorType(kind, width)
            best = self._call(
                f"llvm.vector.reduce.{self._name(key, op)}.v{width}", key, kind, build.load(wide, typ=shape)
            )
            build.store(self._better(key, op, best, build.load(room, typ=kind)), room)

    def tell(self):
        """After the row."""
        build = self.frame.build_at
        for k, ((key, _), room) in enumerate(zip(self.wanted, self.rooms, strict=True)):
            build.store(build.load(room, typ=ir_type(self.dtype(key))), self._pointer(k))

    def dtype(self, key):
        """Return the dtype of the values at a place."""
        return self.frame.dtypes[key[0]]

    def _pointer(self, k):
        nest = self.frame.nest
        return element(self.frame.build_at, self.frame.pointers, len(nest.places) + len(nest.tables) + k, POINTER)

    def _room(self, kind, first):
        build = self.frame.build_at
        with build.goto_entry_block():
            room = build.alloca(kind)
        build.store(first, room)
        return room

    def _nothing(self, key, op):
        return constant(self.dtype(key), worst(self.dtype(key), op))

    def _join(self, rooms, values):
        build = self.frame.build_at
        for (key, op), room in zip(self.wanted, rooms, strict=True):
            value = values[key]
            build.store(self._better(key, op, value, build.load(room, typ=value.type)), room)

    def _better(self, key, op, value, best):
        width = f"v{value.type.count}" if isinstance(value.type, ir.VectorType) else ""
        name = f"{op}imum" if self.dtype(key).kind == "f" else self._name(key, op)
        return self._call(f"llvm.{name}.{width}", key, value.type, value, best)

    def _call(self, name, key, kind, *values):
        """Call an intrinsic function; of floats that are two zeros it may give either."""
        module, dtype = self.frame.module, self.dtype(key)
        name += f"{'f' if dtype.kind == 'f' else 'i'}{8 * dtype.itemsize}"
        function = module.globals.get(name) or ir.Function(
            module, ir.FunctionType(kind, [value.type for value in values]), name
        )
        return self.frame.build_at.call(function, values, fastmath=("nsz",) if dtype.kind == "f" else ())

    def _name(self, key, op):
        return {"f": f"f{op}imum", "i": f"s{op}", "u": f"u{op}"}[self.dtype(key).kind]
