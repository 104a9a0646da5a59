"""Rows whose lookups are computed before their points, by vectors.

Elements that a row looks up go to rooms on the stack, `BLOCK_BYTES` at a time, from which the body then loads as from
an array. `LANES` points of them are computed at once, the last ones so that they end with the row. Subscripts are
checked meanwhile: where one is outside its table or negative, nothing of these points is stored yet, and the usual
loop goes on from there, with its checks.
"""

import ast

from llvmlite import ir

from tilewave.kernel.tables.permuted import LANES, NARROW, UNFIT, joined, look_up, number_of, widened
from tilewave.kernel.tables.precomputed_lookups import PrecomputedLookups
from tilewave.kernel.types.emitting import CountedLoop, element, least
from tilewave.kernel.types.values import I8, I32, I64, POINTER, Typed, Value, ir_type
from tilewave.nest.types import scalar

#: Bytes of the rooms for what a lookup gives: few, as they share the nearest cache with the row's arrays.
BLOCK_BYTES = 4096


class LookedUpRows:
    """Hold what the lookups of a row give, ready before its points.

    Parameters
    ----------
    frame
        The row function under construction.
    lookups : PrecomputedLookups
    layouts : dict
        Of each table, its `Layout`.
    permutation : Permutation

    Attributes
    ----------
    usual : ir.Block
        Where the loop with checks is, which begins at the point in ``resume``.
    """

    def __init__(self, frame, lookups, layouts, permutation):
        self.frame, self.lookups, self.permutation = frame, lookups, permutation
        self.layouts = {
            table: layout
            for table, layout in layouts.items()
            if permutation and permutation.suits(layout, frame.dtypes[table])
        }  # of those permuted
        self.tables = {text: node.value.id for text, node in lookups.lookups.items()}
        largest = max(frame.dtypes[table].itemsize for table in self.tables.values())
        self.block = BLOCK_BYTES // largest
        self.base = None  # the point whose elements are `LANES` after the rooms' beginning; None: no loop uses them

    @classmethod
    def of(cls, frame, trial, layouts, permutation):
        """None where subscripts cannot be computed ahead; `trial` makes a frame to try them in."""
        lookups = PrecomputedLookups.of(frame.nest)
        return cls(frame, lookups, layouts, permutation) if lookups and lookups.is_plain(trial()) else None

    def open(self, usual):
        """Make the rooms, and find the byte tables; whether a row may be computed so."""
        frame, build = self.frame, self.frame.build_at
        self.usual = usual
        with build.goto_entry_block():
            self.resume, self._base, self._ready = (build.alloca(I64) for _ in range(3))
            points = self.block + 2 * LANES
            self.rooms = {
                text: self._bytes(points * frame.dtypes[table].itemsize) for text, table in self.tables.items()
            }
        build.store(I64(0), self.resume)
        build.store(I64(0), self._ready)
        usable = build.icmp_signed(">=", frame.count, I64(LANES))
        self.kinds = {}
        for table in dict.fromkeys(self.tables.values()):
            if table not in self.layouts:
                for extent in frame.tables.known[table][1]:
                    usable = build.and_(usable, build.icmp_signed(">", extent, I64(0)))
                continue
            kind = element(build, frame.env, frame.byte_tables.kinds[table])
            usable = build.and_(usable, build.icmp_signed("!=", kind, I64(UNFIT)))
            self.kinds[table] = kind
        return usable

    def _bytes(self, size):
        """Memory; a pointer without a type, as alloca gives it for pointers."""
        room = self.frame.build_at.alloca(POINTER, size=size // 8)
        room.align = LANES
        return room

    # Loops over points.

    def loop(self):
        """Emit the loop over a row, block by block, from here to ``frame.done``."""
        frame, build = self.frame, self.frame.build_at
        before = build.block
        block, spoilt, after = (frame.row.append_basic_block(name) for name in ("lookups", "spoilt", "looked_up"))
        build.branch(block)
        build.position_at_end(block)
        begin = build.phi(I64)
        begin.add_incoming(I64(0), before)
        end = self._end(begin)
        self._fill(begin, end, spoilt)
        self.base = begin
        frame.loop({}, begin=begin, end=end, after=after)
        self.base = None
        build.position_at_end(after)
        begin.add_incoming(end, build.block)
        build.cbranch(build.icmp_signed("<", end, frame.count), block, frame.done)
        build.position_at_end(spoilt)
        self._resume(begin)

    def provide(self, start, width, stored):
        """In a loop over chunks of points: see that those of a chunk are ready. All before ``stored`` are stored."""
        frame, build = self.frame, self.frame.build_at
        fill, spoilt, ready = (frame.row.append_basic_block(name) for name in ("fill", "spoilt", "ready"))
        enough = build.icmp_signed("<=", build.add(start, I64(width)), build.load(self._ready, typ=I64))
        build.cbranch(enough, ready, fill)
        build.position_at_end(fill)
        end = self._end(start)
        self._fill(start, end, spoilt)
        build.store(start, self._base)
        build.store(end, self._ready)
        build.branch(ready)
        build.position_at_end(spoilt)
        frame.bests.close_vectors(width)
        self._resume(stored)
        build.position_at_end(ready)
        self.base = build.load(self._base, typ=I64)

    def closed(self):
        """After such a loop."""
        self.base = None

    def value(self, node):
        """Return what a lookup gives in the point of a loop."""
        frame, build = self.frame, self.frame.build_at
        text = ast.unparse(node)
        dtype = frame.dtypes[self.tables[text]]
        slot = build.add(build.sub(frame.point, self.base), I64(LANES))
        at = build.gep(self.rooms[text], [slot], source_etype=ir_type(dtype))
        return Value([Typed(scalar(dtype), frame.marked(build.load(at, typ=ir_type(dtype))))])

    def _resume(self, point):
        build = self.frame.build_at
        build.store(point, self.resume)
        build.branch(self.usual)

    def _end(self, begin):
        build = self.frame.build_at
        end = build.add(begin, I64(self.block))
        return least(build, end, self.frame.count)

    # Lookups.

    def _fill(self, begin, end, spoilt):
        """The lookups of some points, and of a few before them at times; to `spoilt` where a subscript is outside."""
        frame, build = self.frame, self.frame.build_at
        last = build.sub(frame.count, I64(LANES))
        with CountedLoop(build, "group", begin, end, LANES) as first:
            point = least(build, first, last)
            vectors = self._subscripts(point)
            outside = None
            for text, table in self.tables.items():
                for axis, (dtype, vector) in enumerate(vectors[text]):
                    wrong = self._outside(table, axis, dtype, vector)
                    outside = wrong if outside is None else build.or_(outside, wrong)
            inside = frame.row.append_basic_block("inside")
            any_outside = build.icmp_unsigned("!=", build.bitcast(outside, I64), I64(0))
            build.cbranch(any_outside, spoilt, inside)
            build.position_at_end(inside)
            slot = build.add(build.sub(point, begin), I64(LANES))
            for text, table in self.tables.items():
                subscripts = [vector for _, vector in vectors[text]]
                look_up_all = self._permute if table in self.layouts else self._load
                look_up_all(text, table, subscripts, slot)

    def _subscripts(self, point):
        """(dtype, vector) of each subscript of each lookup, for `LANES` points."""
        frame, build = self.frame, self.frame.build_at
        loop, rooms, found = CountedLoop(build, "subscripts", I64(0), I64(LANES)), {}, {}
        with loop as lane:
            frame.point = build.add(point, lane)
            for text, values in self.lookups.subscripts(frame).items():
                found[text] = []
                for value in values:
                    typed = value.only
                    if id(typed.ir) not in rooms:
                        with build.goto_entry_block():
                            room = self._bytes(LANES * typed.type.dtype.itemsize)
                        build.store(typed.ir, build.gep(room, [lane], source_etype=typed.ir.type))
                        rooms[id(typed.ir)] = typed, room
                    found[text].append(id(typed.ir))
        frame.parallel.close(loop.branch, LANES)
        vectors = {
            key: (typed.type.dtype, build.load(room, typ=ir.VectorType(typed.ir.type, LANES)))
            for key, (typed, room) in rooms.items()
        }
        return {text: [vectors[key] for key in keys] for text, keys in found.items()}

    def _outside(self, table, axis, dtype, vector):
        """Lanes whose subscript is negative, or beyond its axis."""
        build, kind = self.frame.build_at, vector.type.element
        extent = self.frame.tables.known[table][1][axis]
        most = I64((1 << (kind.width - (dtype.kind == "i"))) - 1)
        last = build.sub(extent, I64(1))
        last = least(build, last, most)
        last = last if kind == I64 else build.trunc(last, kind)
        single = build.insert_element(ir.Constant(vector.type, ir.Undefined), last, I32(0))
        every = build.shuffle_vector(single, single, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))
        return build.icmp_unsigned(">", vector, every)

    def _load(self, text, table, subscripts, slot):
        """Put what a lookup gives into its room, loaded element by element."""
        frame, build = self.frame, self.frame.build_at
        kind = ir_type(frame.dtypes[table])
        base, _, strides = frame.tables.known[table]
        with build.goto_entry_block():
            rooms = [self._bytes(LANES * vector.type.element.width // 8) for vector in subscripts]
        for room, vector in zip(rooms, subscripts, strict=True):
            build.store(vector, room)
        loop, at = CountedLoop(build, "load", I64(0), I64(LANES)), base
        with loop as lane:
            for room, vector, stride in zip(rooms, subscripts, strides, strict=True):
                number = build.load(build.gep(room, [lane], source_etype=vector.type.element), typ=vector.type.element)
                number = number if number.type == I64 else build.zext(number, I64)
                at = build.gep(at, [build.mul(number, stride)], source_etype=I8)
            to = build.gep(self.rooms[text], [build.add(slot, lane)], source_etype=kind)
            build.store(build.load(at, typ=kind), to)
        frame.parallel.close(loop.branch)

    def _permute(self, text, table, subscripts, slot):
        """Put what a lookup gives into its room, byte by byte."""
        frame, build, layout = self.frame, self.frame.build_at, self.layouts[table]
        dtype = frame.dtypes[table]
        first = build.gep(frame.env, [I64(frame.byte_tables.first[table])], source_etype=I64)
        byte_tables = [
            build.gep(first, [I64(k * layout.byte_table_bytes)], source_etype=I8) for k in range(dtype.itemsize)
        ]
        number = number_of(build, self.permutation, layout, subscripts)
        at = build.gep(self.rooms[text], [slot], source_etype=ir_type(dtype))

        def put(vector):
            build.store(vector, at).align = dtype.itemsize

        if dtype.kind != "i" or dtype.itemsize == 1:
            put(
                joined(
                    build, [look_up(build, self.permutation, layout, byte_table, number) for byte_table in byte_tables]
                )
            )
            return
        narrow = build.icmp_signed("==", self.kinds[table], I64(NARROW))
        with build.if_else(narrow) as (one, all_):
            with one:
                put(widened(build, dtype, look_up(build, self.permutation, layout, byte_tables[0], number)))
            with all_:
                put(
                    joined(
                        build,
                        [look_up(build, self.permutation, layout, byte_table, number) for byte_table in byte_tables],
                    )
                )
