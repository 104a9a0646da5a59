"""Updates whose order does not matter: a row's are combined in a register, and rows of all lanes in memory."""

import functools

from tilewave.kernel.types.emitting import element
from tilewave.kernel.types.values import I1, I8, I64, POINTER, Typed, constant, ir_type
from tilewave.nest.order_free import last_name, nothing
from tilewave.nest.types import scalar


class Updates:
    """Hold what a row function does for the updates of an `OrderFreeNest`.

    The body computes with a value that changes nothing in place of the old one. Where all points of a row update one
    element, what they give is combined in a room on the stack, which LLVM turns into a register or a vector. Other rows
    update point by point. Memory is updated by atomic operations: several lanes may do it at once. The last value is
    stored by the one point that comes last in the loops.

    Parameters
    ----------
    frame
        The row function under construction.
    """

    def __init__(self, frame):
        self.frame, self.updates = frame, [*frame.nest.updates.values()]
        self.combined = [update for update in self.updates if update.op != "last"]
        self.rooms, self.point_by_point = [], False

    def __bool__(self):
        return bool(self.updates)

    def open(self):
        """Before the row: nothing yet."""
        build = self.frame.build_at
        for update in self.combined:
            with build.goto_entry_block():
                room = build.alloca(ir_type(self._dtype(update)))
            build.store(self._nothing(update).ir, room)
            self.rooms.append(room)

    def cells(self):
        """Return what the points' elements are while the body is computed, by place."""
        return {update.key: self._nothing(update) for update in self.updates}

    def apart(self):
        """Return whether points of the row update different elements, or one of them may be the last."""
        build, frame = self.frame.build_at, self.frame
        found = I1(0)
        for update in self.updates:
            if update.op == "last":
                ends = [self._index(axis, build.sub(frame.count, I64(1))) for axis in update.lacking]
                starts = [self._index(axis, I64(0)) for axis in update.lacking]
                here = I1(1)
                for axis, start, end in zip(update.lacking, starts, ends, strict=True):
                    last = self._last(axis)
                    below = build.and_(build.icmp_signed("<=", start, last), build.icmp_signed("<=", last, end))
                    above = build.and_(build.icmp_signed(">=", start, last), build.icmp_signed(">=", last, end))
                    here = build.and_(here, build.or_(below, above))
            else:
                here = build.icmp_signed("!=", self._distance(update, frame.direction), I64(0))
            found = build.or_(found, here)
        return found

    def take(self, cells):
        """One more point; `cells` by place."""
        build, frame, rooms = self.frame.build_at, self.frame, iter(self.rooms)
        for update in self.updates:
            value = cells[update.key].ir
            if update.op == "last":
                if self.point_by_point:
                    places = [
                        build.icmp_signed("==", self._index(axis, frame.point), self._last(axis))
                        for axis in update.lacking
                    ]
                    with build.if_then(functools.reduce(build.and_, places)):
                        build.store(value, self._address(update, frame.point))
            elif self.point_by_point:
                self._update(update, value, frame.point)
            else:
                room = next(rooms)
                build.store(self._combined(update, build.load(room, typ=value.type), value), room)

    def tell(self):
        """After the row; of no points there is no element."""
        build = self.frame.build_at
        if self.combined:
            with build.if_then(build.icmp_signed(">", self.frame.count, I64(0))):
                for update, room in zip(self.combined, self.rooms, strict=True):
                    self._update(update, build.load(room, typ=ir_type(self._dtype(update))), I64(0))

    def _dtype(self, update):
        return self.frame.dtypes[update.array]

    def _signed(self, update):
        return self._dtype(update).kind == "i"

    def _nothing(self, update):
        dtype = self._dtype(update)
        return Typed(scalar(dtype), constant(dtype, nothing(update.op, dtype)))

    def _index(self, axis, point):
        """A loop index at a point of the row."""
        frame, build = self.frame, self.frame.build_at
        start, change = (element(build, at, frame.nest.indices.index(axis)) for at in (frame.index, frame.direction))
        return build.add(start, build.mul(point, change))

    def _last(self, axis):
        return self.frame.names[last_name(axis)].only.ir

    def _distance(self, update, indices, offsets=None):
        """The bytes to an element whose subscripts are some loop indices and offsets."""
        frame, build, nest = self.frame, self.frame.build_at, self.frame.nest
        strides, total = frame.tables.strides_of(update.array, frame.env, frame.first_table_slot), I64(0)
        for axis, offset, stride in zip(update.axes, offsets or (0,) * len(update.axes), strides, strict=True):
            subscript = build.add(element(build, indices, nest.indices.index(axis)), I64(offset))
            total = build.add(total, build.mul(subscript, stride))
        return total

    def _combined(self, update, one, other):
        build = self.frame.build_at
        if update.op in ("max", "min"):
            return build.select(self._better(update, other, one), other, one)
        return {"add": build.add, "and": build.and_, "or": build.or_, "xor": build.xor}[update.op](one, other)

    def _better(self, update, value, other):
        build = self.frame.build_at
        compare = build.icmp_signed if self._signed(update) else build.icmp_unsigned
        return compare(">" if update.op == "max" else "<", value, other)

    def _address(self, update, point):
        """Where the element of a point of the row is."""
        frame, build = self.frame, self.frame.build_at
        pointer = frame.nest.tables.index(update.array) + len(frame.nest.places)
        base = element(build, frame.pointers, pointer, POINTER)
        further = build.mul(self._distance(update, frame.direction), point)
        return build.gep(
            base, [build.add(self._distance(update, frame.index, update.offsets), further)], source_etype=I8
        )

    def _update(self, update, value, point):
        """Combine a value with the element of a point of the row."""
        build = self.frame.build_at
        address = self._address(update, point)
        old = build.load_atomic(address, "monotonic", self._dtype(update).itemsize, typ=value.type)
        if update.op in ("max", "min"):  # most rows change nothing
            changes = self._better(update, value, old)
        else:
            changes = build.icmp_signed("!=", self._combined(update, old, value), old)
        operation = update.op
        if operation in ("max", "min") and not self._signed(update):
            operation = f"u{operation}"
        with build.if_then(changes):
            build.atomic_rmw(operation, address, value, "monotonic")
