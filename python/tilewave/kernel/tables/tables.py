"""Tables: read-only arrays that a body looks up by integers that it computes."""

import functools

from tilewave.kernel.types.casts import to_int
from tilewave.kernel.types.emitting import element
from tilewave.kernel.types.values import I8, I32, I64, POINTER, Typed, Value, ir_type
from tilewave.nest.types import Unsupported, scalar


class Tables:
    """The tables of a kernel under construction.

    Parameters
    ----------
    emitter : Emitter
    nest : Nest
    dtypes : dict
    loaded : callable
        Given an LLVM load, marks it as one of the loop's and returns it.

    Attributes
    ----------
    known : dict
        Address, extents and byte strides of each table, as LLVM values.
    checked : bool
        Whether lookups check their subscripts; if not, they are known to be within the extents,
        and the tables to be smaller than 2**31 bytes.
    straight : dict
        From lookups that read elements one behind the other, point after point, to functions that give the address.
    rows : LookedUpRows or None
        Where a loop has its lookups ready before its points, they come from there.
    """

    def __init__(self, emitter, nest, dtypes, loaded):
        self.e = emitter
        self.nest = nest
        self.dtypes = dtypes
        self.loaded = loaded
        self.known = {}
        self.checked, self.straight = True, {}
        self.rows = None

    def strides_of(self, table, env, first_slot):
        """The byte strides of a table, loaded here."""
        before = self.nest.tables[: self.nest.tables.index(table)]
        rank = self.nest.table_rank(table)
        slot = first_slot + 2 * sum(map(self.nest.table_rank, before)) + rank
        return [element(self.e.builder, env, slot + n) for n in range(rank)]

    def open(self, pointers, first_pointer, env, first_slot):
        """Load address, extents and byte strides of each table, before the loop."""
        build, slot = self.e.builder, first_slot
        for k, table in enumerate(self.nest.tables):
            rank = self.nest.table_rank(table)
            numbers = [element(build, env, slot + n) for n in range(2 * rank)]
            slot += 2 * rank
            self.known[table] = element(build, pointers, first_pointer + k, POINTER), numbers[:rank], numbers[rank:]

    def lookup(self, node, subscripts):
        """The element that NumPy gives for these values: negative ones count from the end."""
        if self.rows and self.rows.base is not None:
            return self.rows.value(node)
        build, table = self.e.builder, node.value.id
        base, extents, strides = self.known[table]
        if self.e.deferred:
            return self._lookup_near(table, subscripts)
        if node in self.straight:
            return self._loaded(table, self.straight[node]())
        if self.checked:
            inside = [self.inside(table, axis, value, extents[axis]) for axis, value in enumerate(subscripts)]
        else:
            inside = [build.trunc(self._integer(table, value).ir, I32) for value in subscripts]
            strides = [build.trunc(stride, I32) for stride in strides]
        products = [build.mul(*pair) for pair in zip(inside, strides, strict=True)]
        distance = functools.reduce(build.add, products)
        if not self.checked:
            distance = build.sext(distance, I64)
        return self._loaded(table, build.gep(base, [distance], source_etype=I8))

    def _loaded(self, table, place):
        dtype = self.dtypes[table]
        return Value([Typed(scalar(dtype), self.loaded(self.e.builder.load(place, typ=ir_type(dtype))))])

    def _lookup_near(self, table, subscripts):
        """The same of a table of less than 2**31 bytes, with 32 bits, where points with wrong subscripts go on."""
        build, distance = self.e.builder, I32(0)
        base, extents, strides = self.known[table]
        for axis, (value, extent, stride) in enumerate(zip(subscripts, extents, strides, strict=True)):
            extent, stride = build.trunc(extent, I32), build.trunc(stride, I32)
            index = self.e.dispatch(self._as_near(table), value).only.ir
            index = build.select(build.icmp_signed("<", index, I32(0)), build.add(index, extent), index)
            outside = build.icmp_unsigned(">=", index, extent)
            self.e.fail_if(outside, "IndexError", f"index out of bounds for axis {axis} of {table}")
            inside = build.select(outside, I32(0), index)
            distance = build.add(distance, build.mul(inside, stride))
        return self._loaded(table, build.gep(base, [build.sext(distance, I64)], source_etype=I8))

    def _as_near(self, table):
        """A function of a subscript that gives it with 32 bits, as a number that is outside where it has more."""
        build = self.e.builder

        def convert(typed):
            if not typed.type.is_python and typed.type.dtype.kind in "iu" and typed.type.dtype.itemsize < 4:
                widen = build.sext if typed.type.dtype.kind == "i" else build.zext
                return Value([Typed(scalar("int32"), widen(typed.ir, I32))])
            whole = self._integer(table, Value([typed])).ir
            near = build.trunc(whole, I32)
            same = build.icmp_signed("==", build.sext(near, I64), whole)
            return Value([Typed(scalar("int32"), build.select(same, near, I32(-(2**31))))])

        return convert

    def _integer(self, table, value):
        def convert(typed):
            if typed.type.is_float or typed.type.is_bool:
                raise Unsupported(f"a {typed.type} as a subscript of table {table!r} (allowed: integers)")
            return Value([to_int(self.e, typed)])

        return self.e.dispatch(convert, value).only

    def inside(self, table, axis, value, extent):
        """A subscript as a number of 64 bits within an extent; IndexError where it is outside."""
        build, index = self.e.builder, self._integer(table, value)
        value = index.ir
        if index.low < 0:
            negative = build.icmp_signed("<", value, I64(0))
            value = build.select(negative, build.add(value, extent), value)
        outside = build.icmp_unsigned(">=", value, extent)
        self.e.fail_if(outside, "IndexError", f"index out of bounds for axis {axis} of {table}")
        return value
