"""The frame of a row function: its loop over the points, around the translated body."""

import ast
from dataclasses import dataclass

from llvmlite import ir

from .statements import Body
from .emitter import SITES, Emitter
from .typing import INT, scalar
from .values import I1, I64, POINTER, Typed, Value, constant, ir_type

#: Bound of a loop index that a body uses as a number; it keeps index arithmetic within 64 bits.
INDEX_LIMIT = 2**30

#: LLVM checks this many pairs of pointers for overlap by itself before it vectorises a loop.
LLVM_POINTER_CHECKS = 8


@dataclass
class Row:
    """A row function under construction or done."""

    module: ir.Module
    name: str
    sites: list


def build_row(nest, dtypes, slots, constants, fastmath):
    """The LLVM module of a nest's row function."""
    return _Frame(nest, dtypes, slots, constants, fastmath).build()


class _Frame:
    def __init__(self, nest, dtypes, slots, constants, fastmath):
        self.nest = nest
        self.dtypes = dtypes
        self.slots = slots
        self.constants = constants
        self.module = ir.Module("tilewave")
        kind = ir.FunctionType(I64, [POINTER, I64, POINTER, POINTER])
        self.row = ir.Function(self.module, kind, "tilewave_row")
        self.pointers, self.count, self.index, self.scalars = self.row.args
        self.build_at = ir.IRBuilder(self.row.append_basic_block("entry"))
        self.e = Emitter(self.build_at, fastmath)
        self.point = constant("int64", 0)
        self.body = None

    def build(self):
        build = self.build_at
        self.e.leave = self._leave
        self.e.line = self.nest.line
        places = self._places()
        first = self._first_point()
        numbers = {slot.name: Value([slot.load(build, self.scalars, k)])
                   for k, slot in enumerate(self.slots)}
        self.entry_sites = len(self.e.sites)
        start, loop, done = map(self.row.append_basic_block, ("start", "loop", "done"))
        some = build.icmp_signed(">", self.count, constant("int64", 0))
        build.cbranch(some, start, done)
        build.position_at_end(done)
        build.ret(constant("int64", 0))

        build.position_at_end(start)
        carried = self._carried_access()
        before = self._load(places, carried, constant("int64", 0)) if carried else None
        build.branch(loop)

        build.position_at_end(loop)
        self.point = build.phi(I64)
        self.point.add_incoming(constant("int64", 0), start)
        reads = {}
        if carried:
            previous = build.phi(before.type)
            previous.add_incoming(before, start)
            reads[carried] = self._element(carried, previous)
        self._translate(places, reads, {**numbers, **self._index_values(first)})
        if self.body.state is not None:
            latch = self._close_loop(loop, done)
            if carried:
                previous.add_incoming(self.body.state.cell.ir, latch)
        return Row(self.module, self.row.name, self.e.sites)

    def _places(self):
        """Pointers of the written array and of each access at the first point."""
        build = self.build_at
        count = 1 + len(self.nest.accesses)
        loaded = [
            build.load(build.gep(self.pointers, [constant("int64", k)], source_etype=POINTER),
                       typ=POINTER)
            for k in range(count)
        ]
        return dict(zip([self._own(), *self.nest.accesses], loaded, strict=True))

    def _own(self):
        """The written element as a key that equals no access."""
        return self.nest.written, "the written element"

    def _carried_access(self):
        """The read of the written array one point back in the row: it stays in a register."""
        back = (self.nest.written, (0,) * (self.nest.rank - 1) + (-1,))
        return back if back in self.nest.accesses else None

    def _first_point(self):
        """First point of the row for the indices that the body uses as numbers."""
        build, first = self.build_at, {}
        for axis, name in enumerate(self.nest.indices):
            if name not in self._index_names():
                continue
            place = build.gep(self.index, [constant("int64", axis)], source_etype=I64)
            first[name] = build.load(place, typ=I64)
            last = build.add(first[name], self.count)
            outside = build.or_(
                build.icmp_signed("<", first[name], constant("int64", 0)),
                build.icmp_signed(">", last, constant("int64", INDEX_LIMIT)),
            )
            self.e.fail_if(outside, "OverflowError",
                           f"index {name} used as a number beyond {INDEX_LIMIT}")
        return first

    def _index_names(self):
        """Indices that appear outside subscripts."""
        used, waiting = set(), [*self.nest.source.tree.body]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Name):
                used.add(node.id)
            if not isinstance(node, ast.Subscript):
                waiting.extend(ast.iter_child_nodes(node))
        return used

    def _index_values(self, first):
        values = {}
        for name, value in first.items():
            if name == self.nest.indices[-1]:
                value = self.build_at.add(value, self.point)
            values[name] = Value([Typed(INT, value, low=0, high=INDEX_LIMIT)])
        return values

    def _load(self, places, access, point):
        kind = ir_type(self.dtypes[access[0]])
        place = self.build_at.gep(places[access], [point], source_etype=kind)
        return self.build_at.load(place, typ=kind)

    def _element(self, access, value):
        return Value([Typed(scalar(self.dtypes[access[0]]), value)])

    def _translate(self, places, reads, names):
        """Load every element that the body may read, then compute the point.

        All accesses of a point are inside their arrays and none but the written element changes
        while it is computed, so loads stand before the branches: that lets the loop vectorise.
        """
        for access in self.nest.accesses:
            if access not in reads:
                reads[access] = self._element(access, self._load(places, access, self.point))
        self.places = places
        cell = self._element(self._own(), self._load(places, self._own(), self.point)).only
        self.body = Body(self.e, self.nest, self.constants, names, reads, cell)
        self.body.translate()

    def _write_back(self):
        kind = ir_type(self.dtypes[self.nest.written])
        place = self.build_at.gep(self.places[self._own()], [self.point], source_etype=kind)
        self.build_at.store(self.body.state.cell.ir, place)

    def _leave(self, site):
        """What a raising point does: keep what it stored, return where and why."""
        if self.body is not None and self.body.state.stored:
            self._write_back()
        code = self.build_at.mul(self.point, constant("int64", SITES))
        self.build_at.ret(self.build_at.add(code, constant("int64", site)))

    def _close_loop(self, loop, done):
        build = self.build_at
        self._write_back()
        after = build.add(self.point, constant("int64", 1))
        latch = build.block
        self.point.add_incoming(after, latch)
        more = build.icmp_signed("<", after, self.count)
        branch = build.cbranch(more, loop, done)
        if len(self.nest.accesses) >= LLVM_POINTER_CHECKS and self._vectorises():
            branch.set_metadata("llvm.loop", self._vectorise())
        return latch

    def _vectorises(self):
        """Whether nothing stands against computing several points at once."""
        inside = len(self.e.sites) - self.entry_sites
        return not (inside or self.e.calls or self._carried_access())

    def _vectorise(self):
        """Ask LLVM for vectors even where that takes many checks for overlap."""
        yes = ir.Constant(I1, 1)
        wish = self.module.add_metadata(["llvm.loop.vectorize.enable", yes])
        loop = self.module.add_metadata([wish, wish])
        loop.operands = (loop, wish)  # LLVM wants a node that names itself first
        return loop
