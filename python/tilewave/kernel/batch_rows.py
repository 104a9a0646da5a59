"""Rows of a batch: the loops within its points, with a point in each lane of the vectors."""

import contextlib
import functools

from llvmlite import ir

from tilewave.kernel.batch_memory import allocated, rooms_of
from tilewave.kernel.emit import literal_powers
from tilewave.kernel.emit.emitter import SITES, Emitter
from tilewave.kernel.emit.loops import c_function
from tilewave.kernel.emit.statements import Body
from tilewave.kernel.rows.vectors import ParallelAccesses
from tilewave.kernel.scalars import positions, room_of
from tilewave.kernel.tables.row_check import is_near
from tilewave.kernel.tables.tables import Tables
from tilewave.kernel.types.division import floor_divmod
from tilewave.kernel.types.emitting import CountedLoop, element, greatest, least
from tilewave.kernel.types.python_math import BEYOND
from tilewave.kernel.types.values import I8, I64, POINTER, Typed, Value, bools_of, in_memory, ir_type
from tilewave.nest.batch import BOUNDS, WHERE, before
from tilewave.nest.types import INT, scalar

#: Bounds of a loop index that a body uses as a number.
INDEX_LIMIT = 2**30

#: What messages say of integers that an element cannot hold.
OUT_OF_BOUNDS = "Python integer out of bounds"


class BatchRows:
    """The row function of a `BatchNest` under construction.

    Parameters
    ----------
    recipe
        As for other row functions.
    """

    def __init__(self, recipe, name):
        nest, dtypes, slots = recipe.nest, recipe.dtypes, recipe.slots
        self.nest, self.dtypes, self.slots, self.constants = nest, in_memory(dtypes), slots, recipe.constants
        self.module = ir.Module("tilewave")
        kind = ir.FunctionType(I64, [POINTER, POINTER, I64, POINTER, POINTER, POINTER])
        self.row = ir.Function(self.module, kind, name)
        self.pointers, self.step, self.count, self.index, self.direction, self.env = self.row.args
        self.build = ir.IRBuilder(self.row.append_basic_block("entry"))
        bools = bools_of({name.removeprefix("before "): dtype for name, dtype in dtypes.items()})
        self.e = Emitter(self.build, recipe.choices.fastmath, bools)
        self.e.line, self.e.leave = nest.line, self._leave
        self.e.powers = literal_powers.exponents(recipe.choices.off)
        self.parallel = ParallelAccesses(self.module)
        self.tables = Tables(self.e, nest, self.dtypes, self.parallel.mark)
        self.lanes = nest.lanes
        self.memory = self.only = self.place = None
        #: Places of the body that leave the loops at once.
        self.hard_exits = 0

    def emit(self):
        """The whole function."""
        build = self.build
        self.tables.open(self.pointers, len(self.nest.places), self.env, room_of(self.slots))
        self.names = {slot.name: Value([slot.load(build, self.env, k)]) for k, slot in positions(self.slots)}
        self.index_of, self.direction_of = (
            [element(build, at, k) for k in range(len(self.nest.indices))] for at in (self.index, self.direction)
        )
        self.place_of = {
            place.key: (element(build, self.pointers, k, POINTER), element(build, self.step, k))
            for k, place in enumerate(self.nest.places)
        }
        self._read_bounds()
        self.rooms = rooms_of(build, self.nest, self.dtypes, self.box)
        points = functools.reduce(build.and_, [build.icmp_signed("<", low, high) for low, high in self.box])
        with build.if_then(build.and_(points, build.icmp_signed(">", self.count, I64(0)))):
            self.memory = allocated(self.e, self.rooms, self.lanes)
            blocks = CountedLoop(build, "block", I64(0), self.count, step=self.lanes)
            with blocks as self.first:
                self.live = least(build, build.sub(self.count, self.first), I64(self.lanes))
                self._block()
            self._free()
        build.ret(I64(0))

    def _block(self):
        """The points of all lanes. Where one has raised they begin anew, one after the other: nothing but elements that
        every point writes has been stored yet.
        """
        build = self.build
        slow, done = (build.append_basic_block(name) for name in ("slow", "computed"))
        with build.goto_entry_block():
            self.raised = build.alloca(I8)
        build.store(I8(0), self.raised)
        for room in self.rooms:
            self._pack(room)
        if self.nest.whole.tables:
            near = [self.tables.known[name][1:] for name in self.nest.whole.tables]
            fast = build.append_basic_block("fast")
            build.cbranch(functools.reduce(build.and_, [is_near(build, *each) for each in near]), fast, slow)
            build.position_at_end(fast)
        self._begin_rings()
        self.e.leave, self.e.deferred = functools.partial(self._give_up, slow), self._note
        self._loop([])
        self.e.leave, self.e.deferred = self._leave, None
        build.cbranch(build.icmp_unsigned("!=", build.load(self.raised, typ=I8), I8(0)), slow, done)
        build.position_at_end(slow)
        if self.e.sites:
            for room in self.rooms:
                self._pack(room)
            with self._counted(I64(0), self.live) as self.only:
                self._begin_rings()
                self._loop([])
            self.only = None
        build.branch(done)
        build.position_at_end(done)
        for room in self.rooms:
            self._unpack(room)

    def _note(self, condition, exception, message):
        """Go on after some errors, and note that there was one: what follows can do no harm."""
        if exception != "IndexError" and message != BEYOND and OUT_OF_BOUNDS not in message:
            return False
        build = self.build
        before = build.load(self.raised, typ=I8)
        build.store(build.or_(before, build.zext(condition, I8)), self.raised)
        return True

    def _give_up(self, slow, _):
        self.hard_exits += 1
        self.build.branch(slow)

    def _leave(self, site):
        """Return the site and the point of the batch; the other loops' indices go to a table."""
        build, number = self.build, I64(0)
        if self.place is not None:
            number, xs = self.place
            for k, x in enumerate(xs):
                build.store(x, build.gep(self.tables.known[WHERE][0], [I64(k)], source_etype=I64))
            self._free()
        build.ret(build.add(build.mul(number, I64(SITES)), I64(site)))

    def _free(self):
        free = self.e.outside(c_function("free"), ir.FunctionType(ir.VoidType(), [POINTER]))
        self.build.call(free, [self.memory])

    # Before the loops.

    def _read_bounds(self):
        """The box of the inner loops, and the constants of their bounds."""
        table, at = self.tables.known[BOUNDS][0], 0

        def number():
            nonlocal at
            at += 1
            return element(self.build, table, at - 1)

        self.box = [(number(), number()) for _ in self.nest.inner]
        self.forms = [tuple([(*form, number()) for form in side] for side in sides) for sides in self.nest.ranges]

    # Elements.

    def _lane(self, lane):
        """The point of the row that a lane has; lanes that are left over do as the last one."""
        build = self.build
        return least(build, build.add(self.first, lane), build.sub(self.count, I64(1)))

    def _outer_bytes(self, array, axes, offsets, lane):
        """Bytes from an array's first element, by the outer indices of a point of the row."""
        build, total = self.build, I64(0)
        for axis, offset, stride in zip(axes, offsets, self.tables.known[array][2], strict=True):
            if axis not in self.nest.indices:
                continue
            k = self.nest.indices.index(axis)
            here = build.mul(lane, self.direction_of[k])
            subscript = build.add(build.add(self.index_of[k], here), I64(offset))
            total = build.add(total, build.mul(subscript, stride))
        return total

    def _in_array(self, room, place, xs, lane):
        """The element of an array for inner subscripts, and a point of the row."""
        build, buffer = self.build, room.buffer
        if buffer.kind == "outer":
            first, step = self.place_of[place.key]
            return build.gep(first, [build.mul(lane, step)], source_etype=I8)
        base, _, strides = self.tables.known[buffer.array]
        total = self._outer_bytes(buffer.array, place.axes, place.offsets, lane)
        for axis, stride in zip(place.axes, strides, strict=True):
            if axis in self.nest.inner:
                total = build.add(total, build.mul(xs[self.nest.inner.index(axis)], stride))
        return build.gep(base, [total], source_etype=I8)

    def _in_room(self, room, xs, plane=None):
        """The first lane's element in a buffer for inner subscripts; `plane`: number of the plane, from 0 on."""
        build, at = self.build, I64(0)
        for n, k in enumerate(room.axes):
            if n == 0 and room.planes:
                at = build.srem(build.add(plane, I64(room.planes)), I64(room.planes))
                continue
            at = build.add(build.mul(at, room.extents[n]), build.sub(xs[k], room.starts[n]))
        return build.gep(room.data, [build.mul(at, I64(self.lanes))], source_etype=ir_type(room.dtype))

    @contextlib.contextmanager
    def _all_lanes(self, end=None):
        loop = CountedLoop(self.build, "lane", I64(0), I64(self.lanes) if end is None else end)
        with loop as lane:
            yield lane
        self.parallel.close(loop.branch)

    @contextlib.contextmanager
    def _points(self, end):
        """A loop over the lanes whose points are computed."""
        if self.only is not None:
            yield self.only
            return
        with self._all_lanes(end) as lane:
            yield lane

    @contextlib.contextmanager
    def _counted(self, begin, end):
        """A loop that may have no round."""
        some = self.build.if_then(self.build.icmp_signed("<", begin, end))
        with some, CountedLoop(self.build, "inner", begin, end) as number:
            yield number

    def _load(self, at, dtype):
        return self.parallel.mark(self.build.load(at, typ=ir_type(dtype)))

    def _store(self, value, at):
        self.parallel.mark(self.build.store(value, at))

    def _lane_of(self, room, at, lane):
        return self.build.gep(at, [lane], source_etype=ir_type(room.dtype))

    # From arrays to buffers and back.

    def _over(self, room, axes, xs, do):
        """Do something for all subscripts along some axes that a buffer has."""
        if not axes:
            do(xs)
            return
        n, *rest = axes
        with self._counted(room.starts[n], self.build.add(room.starts[n], room.extents[n])) as x:
            self._over(room, rest, {**xs, room.axes[n]: x}, do)

    def _pack(self, room):
        """Pack what is there before the points of a block."""
        if room.buffer.kind not in ("outer", "packed"):
            return
        place = self._writer(room)

        def take(xs):
            to = self._in_room(room, xs)
            with self._all_lanes() as lane:
                value = self._load(self._in_array(room, place, xs, self._lane(lane)), room.dtype)
                self._store(value, self._lane_of(room, to, lane))

        self._over(room, range(len(room.axes)), {}, take)

    def _unpack(self, room):
        if room.buffer.kind not in ("outer", "packed") or not room.buffer.written:
            return
        place = self._writer(room)

        def give(xs):
            at = self._in_room(room, xs)
            with self._all_lanes(self.live) as lane:
                value = self._load(self._lane_of(room, at, lane), room.dtype)
                self._store(value, self._in_array(room, place, xs, self._lane(lane)))

        self._over(room, range(len(room.axes)), {}, give)

    def _writer(self, room):
        return next((place for place in room.buffer.places if place.written), room.buffer.places[0])

    def _rings(self):
        return [room for room in self.rooms if room.buffer.kind == "ring"]

    def _begin_rings(self):
        """Planes before the first that is computed; of one loop what its points read and none computes."""
        for room in self._rings():
            if not room.planes:
                self._fill(room, {}, None)
                continue
            for back in range(1, room.planes):
                number = I64(-back)
                self._fill(room, self._subscripts(room, [self._value(0, *self.box[0], number)]), number)

    def _value(self, level, low, high, number):
        """The loop index in a round."""
        build = self.build
        if self.nest.downwards[level]:
            return build.sub(build.sub(high, I64(1)), number)
        return build.add(low, number)

    def _fill(self, room, xs, plane, first=None):
        """Elements of a plane as they are before the run: those that some point reads and none computes, or more.

        `first`: the first loop's index there, of a plane that is computed.
        """
        build = self.build
        axes = [n for n in range(len(room.axes)) if n or not room.planes]
        place = self._writer(room)

        def put(xs):
            to = self._in_room(room, xs, plane)
            value = None
            if not room.buffer.stored:
                base, _, strides = self.tables.known[before(room.buffer.array)]
                products = [build.mul(xs[k], stride) for k, stride in enumerate(strides)]
                value = build.load(
                    build.gep(base, [functools.reduce(build.add, products)], source_etype=I8), typ=ir_type(room.dtype)
                )
            with self._all_lanes() as lane:
                if room.buffer.stored:
                    here = self._load(self._in_array(room, place, xs, self._lane(lane)), room.dtype)
                else:
                    here = value
                self._store(here, self._lane_of(room, to, lane))

        if len(axes) != 1 or room.planes and first is None:
            self._over(room, axes, xs, put)
            return
        for begin, end in self._margins(room, axes[0], first):
            with self._counted(begin, end) as x:
                put({**xs, room.axes[axes[0]]: x})

    def _margins(self, room, n, first):
        """Along the last axis of a plane, what is before its points and behind them and read by points of this plane or
        the next ones, which may be further on where bounds depend on the first loop.
        """
        build, back = self.build, self.nest.downwards[0]
        index = self.nest.inner[room.axes[n]]
        offsets = [place.along[index] for place in room.buffer.places]
        outer = [[build.add(first, I64(-m if back else m))] for m in range(room.planes)] if room.planes else [[]]
        lows, highs = zip(*(self._bounds(xs) for xs in outer), strict=True)
        least_low, most_high = (
            functools.reduce(functools.partial(better, build), ends)
            for better, ends in ((least, lows), (greatest, highs))
        )
        end = build.add(room.starts[n], room.extents[n])
        begin = greatest(build, room.starts[n], build.add(least_low, I64(min(offsets))))
        end = least(build, end, build.add(most_high, I64(max(offsets))))
        ahead = I64(self._writer(room).along[index])
        low, high = build.add(lows[0], ahead), build.add(highs[0], ahead)
        return (begin, least(build, low, end)), (greatest(build, greatest(build, low, high), begin), end)

    def _subscripts(self, room, xs):
        """Return the subscripts of what a point of the inner loops writes."""
        writer = self._writer(room)
        return {k: self.build.add(x, I64(writer.along[self.nest.inner[k]])) for k, x in enumerate(xs)}

    def _give_plane(self, room, xs, plane):
        """Store what was computed of a plane."""
        place = self._writer(room)

        def give(xs):
            here = self._subscripts(room, xs)
            at = self._in_room(room, here, plane)
            with self._points(self.live) as lane:
                value = self._load(self._lane_of(room, at, lane), room.dtype)
                self._store(value, self._in_array(room, place, here, self._lane(lane)))

        self._computed(xs, give)

    # The loops.

    def _bounds(self, xs):
        """The range of the next inner loop."""
        build, ends = self.build, []
        for side, better in zip(self.forms[len(xs)], (greatest, least), strict=True):
            values = []
            for factors, divisor, constant in side:
                value = constant
                for factor, x in zip(factors, xs):
                    if factor:
                        value = build.add(value, build.mul(x, I64(factor)))
                values.append(value if divisor == 1 else floor_divmod(self.e, value, I64(divisor))[0])
            ends.append(functools.reduce(functools.partial(better, build), values))
        return ends

    def _computed(self, xs, do):
        """Do something for the points of the loops that are left."""
        level = len(xs)
        if level == len(self.nest.inner):
            do(xs)
            return
        low, high = self._bounds(xs)
        with self._counted(I64(0), self.build.sub(high, low)) as number:
            self._computed([*xs, self._value(level, low, high, number)], do)

    def _loop(self, xs):
        """All inner loops, in their order; rings turn with the first."""
        rings, build = self._rings(), self.build
        if len(self.nest.inner) == 1:
            self.plane = None
            self._computed([], self._point)
            for room in rings:
                if room.buffer.stored:
                    self._give_plane(room, [], None)
            return
        low, high = self._bounds([])
        with self._counted(I64(0), build.sub(high, low)) as self.plane:
            x = self._value(0, low, high, self.plane)
            for room in rings:
                self._fill(room, self._subscripts(room, [x]), self.plane, x)
            self._computed([x], self._point)
            for room in rings:
                if room.buffer.stored:
                    self._give_plane(room, [x], self.plane)

    def _point(self, xs):
        """One point of each lane."""
        build, nest, at = self.build, self.nest, {}
        for room in self.rooms:
            for place in room.buffer.places:
                if room.buffer.kind == "direct":
                    continue
                here = {k: build.add(xs[k], I64(place.along[nest.inner[k]])) for k in room.axes}
                plane = None
                if room.planes:
                    behind = place.along[nest.inner[0]] - self._writer(room).along[nest.inner[0]]
                    plane = build.add(self.plane, I64(-behind if nest.downwards[0] else behind))
                at[place.key] = room, self._in_room(room, here, plane)
        with self._points(I64(self.lanes)) as lane:
            number = self._lane(lane)
            self.place = number, xs
            reads, cells = {}, {}
            for room in self.rooms:
                for place in room.buffer.places:
                    value = self._old_value(room, place, xs, at, lane, number)
                    (cells if place.written else reads)[place.key] = value
            names = {**self.names, **self._indices(xs, number)}
            reads = {key: Value([value]) for key, value in reads.items()}
            body = Body(self.e, nest.whole, self.constants, names, reads, cells, self.tables.lookup)
            body.translate()
            if body.state is None:  # every point raises
                return
            for key, cell in body.state.cells.items():
                room, first = at[key]
                self._store(cell.ir, self._lane_of(room, first, lane))

    def _old_value(self, room, place, xs, at, lane, number):
        kind = scalar(room.dtype)
        if place.written and place.always and not place.read:
            return Typed(kind, ir.Constant(ir_type(room.dtype), ir.Undefined))
        if room.buffer.kind == "direct":
            inner = self.nest.inner
            here = {
                k: self.build.add(xs[k], I64(place.along[index]))
                for k, index in enumerate(inner)
                if index in place.axes
            }
            return Typed(kind, self._load(self._in_array(room, place, here, number), room.dtype))
        first = at[place.key][1]
        return Typed(kind, self._load(self._lane_of(room, first, lane), room.dtype))

    def _indices(self, xs, number):
        """The loop indices that the body computes with."""
        build, nest, found = self.build, self.nest, {}
        for k, index in enumerate(nest.indices):
            found[index] = build.add(self.index_of[k], build.mul(number, self.direction_of[k]))
        found.update(zip(nest.inner, xs, strict=True))
        return {
            index: Value([Typed(INT, value, low=-INDEX_LIMIT, high=INDEX_LIMIT)])
            for index, value in found.items()
            if index in nest.whole.numbers
        }
