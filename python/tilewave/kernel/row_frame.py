"""The frame of a row function: its loop over the points, around the translated body."""

from dataclasses import dataclass

from llvmlite import ir

from tilewave._core import without
from tilewave.kernel import processor
from tilewave.kernel.emit import literal_powers
from tilewave.kernel.emit.emitter import SITES, Emitter
from tilewave.kernel.emit.statements import Body
from tilewave.kernel.environment import ByteTables
from tilewave.kernel.rows.atomic_updates import Updates
from tilewave.kernel.rows.extremes import Bests
from tilewave.kernel.rows.inner_rows import InnerRows
from tilewave.kernel.rows.strips import Strips
from tilewave.kernel.rows.vectors import ParallelAccesses, SeparateArrays
from tilewave.kernel.rows.wide_rows import chunk_loop, row_function, rows_function, vector_points
from tilewave.kernel.scalars import positions, room_of
from tilewave.kernel.tables.looked_up_rows import LookedUpRows
from tilewave.kernel.tables.row_check import lookups_to_check, unchecked_loops
from tilewave.kernel.tables.tables import Tables
from tilewave.kernel.types.emitting import element
from tilewave.kernel.types.values import I1, I8, I64, POINTER, Typed, Value, bools_of, in_memory, ir_type
from tilewave.nest.inner_loops import extent_name
from tilewave.nest.types import INT, scalar

#: Bound of a loop index that a body uses as a number; it keeps index arithmetic within 64 bits.
INDEX_LIMIT = 2**30

#: Names of the functions of one row and of several.
ROW, ROWS = "tilewave_row", "tilewave_rows"


@dataclass
class Row:
    """A row function, done."""

    module: ir.Module
    sites: list
    vectors: bool  # nothing in a point stands against computing several at once
    several: bool  # there is a function of several rows
    frame: object  # what it was made in
    simd_rows_from: int = 0  # points from which dependent rows are lanes of vectors; 0: never
    permuted: bool = False  # it looks into byte tables of the tables
    uniform: list = ()  # (name, dtype) of NumPy's loops that are called for strips


class Frame:
    """The row function of a nest under construction.

    Parameters
    ----------
    recipe : Recipe
    width : int
        Points of a chunk of explicit vectors; 1: LLVM makes vectors, or none.
    into : ir.Module, optional
        The module of another row function, to which one of several rows is added.
    name : str
    permutation : Permutation
        Of the processor, for tables in bytes.
    """

    def __init__(self, recipe, width=1, into=None, name="tilewave_points", permutation=None):
        nest, dtypes, slots, choices = recipe.nest, recipe.dtypes, recipe.slots, recipe.choices
        self.nest, self.dtypes, self.slots, self.constants = nest, in_memory(dtypes), slots, recipe.constants
        self.recipe, self.choices, self.permutation = recipe, choices, permutation
        self.independent, self.width, self.same_row = choices.independent, width, choices.same_row
        self.module = ir.Module("tilewave") if into is None else into
        # After the arguments of a row function: the bytes from each place to its element in the next row, and how many
        # rows of the call follow; of a function of several rows, their number.
        kind = ir.FunctionType(
            I64, [POINTER, POINTER, I64, POINTER, POINTER, POINTER, POINTER] + [I64] * (into is not None)
        )
        self.row = ir.Function(self.module, kind, name)
        self.pointers, self.step, self.count, self.index, self.direction, self.env, self.ahead = self.row.args[:7]
        self.live = self.row.args[7] if into is not None else None
        self.build_at = ir.IRBuilder(self.row.append_basic_block("entry"))
        self.e = Emitter(self.build_at, choices.fastmath, bools_of(dtypes))
        self.e.powers = literal_powers.exponents(choices.off)
        self.parallel = ParallelAccesses(self.module) if choices.independent else None
        self.tables = Tables(self.e, nest, self.dtypes, self.marked)
        self.steps = dict(zip((place.key for place in nest.places), choices.steps, strict=True))
        self.bests, self.updates = Bests(self, choices.bests), Updates(self)
        self.first_table_slot = room_of(slots)
        arrays = sorted({place.array for place in nest.places})
        marked = choices.separate and not choices.independent and len(arrays) > 1
        self.separate = SeparateArrays(self.module, arrays) if marked else None
        self.point, self.scope = I64(0), nest.scope
        self.leaves = 0  # places where points may raise
        self.body = self.strips = None

    def build(self):
        build = self.build_at
        self.e.leave = self._leave
        self.e.line = self.nest.line
        self.bests.open()
        self.updates.open()
        start, self.done = map(self.row.append_basic_block, ("start", "done"))
        build.cbranch(build.icmp_signed(">", self.count, I64(0)), start, self.done)
        build.position_at_end(self.done)
        self.bests.tell()
        self.updates.tell()
        build.ret(I64(0))
        build.position_at_end(start)
        self.open()
        ready = self.independent and not self.updates and not self.nest.inner
        lookups = lookups_to_check(self.nest, self.dtypes, self.slots) if ready else None
        if not without(self.choices.off, "strips") and not self.updates and not self.nest.inner:
            self.strips = Strips.of(self, self._trial)
        rows = self._looked_up_rows(lookups) if ready and not self.strips else None
        if without(self.choices.off, "row_check"):
            lookups = None
        before = inside = len(self.e.sites)
        if rows:
            usual = self.row.append_basic_block("checked")
            self.tables.rows = rows
            self.split(rows.open(usual), lambda: chunk_loop(self, self.width, rows) if self.width > 1 else rows.loop())
            inside = len(self.e.sites)
        if lookups:
            unchecked_loops(self, lookups, lambda: chunk_loop(self, self.width) if self.width > 1 else self._points({}))
            inside = len(self.e.sites)
        if rows:
            build.branch(usual)
            build.position_at_end(usual)
        if self.updates:
            self.split(self.updates.apart(), self._updating_loop)
        if inner := None if without(self.choices.off, "wide_rows") else InnerRows.of(self):
            inner.emit_all(vector_points(self.dtypes.values(), processor.vector_bytes()))
        carried = self.carried_places()
        certain = {key: writer for key, writer in carried.items() if self.steps[key] == 0}
        if len(certain) < len(carried):
            self.split(self.follows(carried), lambda: self._points(carried))
        if rows:
            self.loop(certain, begin=build.load(rows.resume, typ=I64))
        elif self.width > 1 and not lookups:
            chunk_loop(self, self.width)
        else:
            self._points(certain)
        inside = inside if lookups or rows else len(self.e.sites)
        row_function(self, ROW)
        if self.independent and not self.choices.in_place:
            rows_function(self, ROWS)
        return Row(
            self.module,
            self.e.sites,
            inside == before and not self.e.calls,
            self.independent,
            self,
            permuted=bool(rows and rows.layouts),
            uniform=self.strips.uniform if self.strips else [],
        )

    def _trial(self):
        """A frame to try something in."""
        return Frame(self.recipe)

    def _looked_up_rows(self, checked):
        """Lookups before the points, where some are permutations, or none are checked before the row; else None.

        Loaded one by one they take as long before the points as in them.
        """
        if any(self.dtypes[table].kind == "c" for table in self.nest.tables):
            return None
        layouts = dict(zip(self.nest.tables, self.choices.layouts, strict=False))
        self.byte_tables = ByteTables(self.nest, self.slots, self.dtypes, layouts)

        rows = LookedUpRows.of(self, self._trial, layouts, self.permutation)
        return rows if rows and (rows.layouts or checked is None) else None

    def open(self):
        """Emit what comes before all loops."""
        self._open_places()
        self.tables.open(self.pointers, len(self.nest.places), self.env, room_of(self.slots))
        self.names = {slot.name: Value([slot.load(self.build_at, self.env, k)]) for k, slot in positions(self.slots)}
        self.first = self._first_point()

    def split(self, condition, emit):
        """Emit a loop for where a condition holds; what is emitted next is for where it fails."""
        special, usual = map(self.row.append_basic_block, ("special", "usual"))
        self.build_at.cbranch(condition, special, usual)
        self.build_at.position_at_end(special)
        emit()
        self.build_at.position_at_end(usual)

    def _updating_loop(self):
        self.updates.point_by_point = True
        self.loop({})
        self.updates.point_by_point = False

    def _points(self, carried):
        """The usual loop; functions of strips are called before it, where the points of a strip allow that."""
        if self.strips and self.independent:
            self.strips.loop(carried)
            return
        if self.strips:
            self.split(self.strips.are_allowed(), lambda: self.strips.loop(carried))
        self.loop(carried)

    # Before the loop.

    def _open_places(self):
        """Pointers of the places at the first point, and the byte steps known at run time only."""
        self.places, self.byte_steps = {}, {}
        for k, place in enumerate(self.nest.places):
            if k < len(self.same_row) and self.same_row[k]:  # one pointer for both: registers are few
                other, elements = self.same_row[k]
                self.places[place.key] = self.build_at.gep(
                    self.places[self.nest.places[other].key],
                    [I64(elements)],
                    source_etype=ir_type(self.dtypes[place.array]),
                )
            else:
                self.places[place.key] = element(self.build_at, self.pointers, k, POINTER)
            if self.steps[place.key] is None:
                self.byte_steps[place.key] = element(self.build_at, self.step, k)

    def _first_point(self):
        """First value and change of the indices that the body uses as numbers."""
        build, first, used = self.build_at, {}, self.nest.numbers
        limit = I64(INDEX_LIMIT)
        for axis, name in enumerate(self.nest.indices):
            if name not in used:
                continue
            start, change = element(self.build_at, self.index, axis), element(self.build_at, self.direction, axis)
            steps = build.sub(self.count, I64(1))
            last = build.add(start, build.mul(steps, change))
            far = [build.icmp_unsigned(">=", build.add(end, limit), I64(2 * INDEX_LIMIT)) for end in (start, last)]
            self.e.fail_if(build.or_(*far), "OverflowError", f"index {name} used as a number beyond {INDEX_LIMIT}")
            first[name] = start, change
        return first

    def carried_places(self):
        """The places whose value the point before has just written: {place: its writer there}.

        Their values stay in registers. With a step of 0 that is sure; with one of an element it
        holds where the row goes along the last subscript, which its pointers tell.
        """
        carried = {}
        for place in () if self.independent else self.nest.places:
            step = self.steps[place.key]
            if step not in (-1, 0, 1) or step and place.axes[-1] != self.nest.indices[-1]:
                continue
            before = place.array, (*place.offsets[:-1], place.offsets[-1] + step), place.axes, place.phases
            if self.steps.get(before) == step and before in self.written():
                carried[place.key] = before
        return carried

    def written(self):
        return [place.key for place in self.nest.places if place.written]

    def stored(self):
        """The written places but row values of which only the best is wanted."""
        return [key for key in self.written() if key not in self.bests.unstored]

    def follows(self, carried):
        """Return whether each carried place is one step behind its writer in memory."""
        build, follows = self.build_at, I1(1)
        for key, writer in carried.items():
            kind = ir_type(self.dtypes[key[0]])
            behind = build.gep(self.places[key], [I64(self.steps[key])], source_etype=kind)
            here = build.icmp_unsigned("==", behind, self.places[writer])
            follows = build.and_(follows, here)
        return follows

    # The loop.

    def loop(self, carried, width=None, begin=None, end=None, after=None):
        """Emit the loop from here to ``done``; ``carried`` places stay in registers.

        ``width`` is the points that are computed at once; LLVM's choice where it is None. ``begin``, ``end``,
        ``after``: the first point, that behind the last, and the block that follows, where they are not the row's.
        """
        build = self.build_at
        self.point, self.body = I64(0) if begin is None else begin, None
        ahead = {
            place.key: self.load(place.key)
            for place in self.nest.places
            if place.key in carried or self.is_invariant(place)
        }
        before, loop = build.block, self.row.append_basic_block("loop")
        build.branch(loop)
        build.position_at_end(loop)
        self.point = build.phi(I64)
        self.point.add_incoming(I64(0) if begin is None else begin, before)
        previous = {key: build.phi(ahead[key].type) for key in carried}
        for key, phi in previous.items():
            phi.add_incoming(ahead[key], before)
        self.translate({**ahead, **previous})
        if self.body.state is None:
            return
        latch = self._close_loop(loop, width, self.count if end is None else end, self.done if after is None else after)
        for key, phi in previous.items():
            phi.add_incoming(self.body.state.cells[carried[key]].ir, latch)

    def is_invariant(self, place):
        """Return whether all points of a row read one element that none of them writes."""
        return self.independent and not place.written and self.steps[place.key] == 0

    def translate(self, known, inner=None):
        """Load every element that the body may read, then compute the point.

        All places of a point are inside their arrays and distinct elements, so loads stand before
        the branches: that lets the loop vectorise. Tables are read where their subscripts are known.
        """
        values = {}
        for place in self.nest.places:
            if place.key in known:
                value = known[place.key]
            elif place.key in self.bests.unstored:
                value = ir.Constant(ir_type(self.dtypes[place.array]), ir.Undefined)
            else:
                value = self.marked(self.load(place.key), place.array)
            values[place.key] = Typed(scalar(self.dtypes[place.array]), value)
        self.values = {key: value.ir for key, value in values.items()}
        cells = {**{key: values[key] for key in self.written()}, **self.updates.cells()}
        reads = {key: Value([value]) for key, value in values.items() if key not in cells}
        if self.e.strips:
            self.e.strips.begin_point()
        self.body = Body(self.e, self.nest, self.constants, self.point_names(), reads, cells, self.lookup)
        self.body.known, self.body.store = inner or {}, lambda key: self.write_back([key])
        self.body.translate()

    def lookup(self, node, subscripts):
        """The element of a table, or of a written array along a loop inside the body."""
        along = self.nest.parameters.wholes.get(node)
        if along is None:
            return self.tables.lookup(node, subscripts)
        key, build = self.nest.place_of(node), self.build_at
        (d,) = along  # the dimension that rows go along
        index = self.tables.inside(key[0], d, subscripts[d], self.names[extent_name(key[0], d)].only.ir)
        distance = build.mul(build.sub(index, self.whole_first(key)), self.whole_stride(key))
        place = build.gep(self.places[key], [distance], source_etype=I8)
        return Value([Typed(scalar(self.dtypes[key[0]]), build.load(place, typ=ir_type(self.dtypes[key[0]])))])

    def whole_first(self, key):
        """Return the element along the rows that a place read along a loop inside the body has at the first point."""
        last = self.nest.indices[-1]
        return self.build_at.add(self.first[last][0], I64(key[1][key[2].index(last)]))

    def whole_stride(self, key):
        """Bytes from element to element along the rows, of a place that is read along a loop inside the body."""
        step, (_, change) = self.steps[key], self.first[self.nest.indices[-1]]
        stride = self.byte_steps[key] if step is None else I64(step * self.dtypes[key[0]].itemsize)
        return self.build_at.mul(stride, change)

    def unused(self):
        """Places whose value nothing in the function uses."""
        instructions = [instruction for block in self.row.blocks for instruction in block.instructions]
        operands = {id(operand) for instruction in instructions for operand in instruction.operands}
        operands |= {id(value) for each in instructions if isinstance(each, ir.PhiInstr) for value, _ in each.incomings}
        return {key for key, value in self.values.items() if id(value) not in operands}

    def point_names(self):
        """The scalars, and the indices of the point."""
        values = {**self.names}
        for name, (start, change) in self.first.items():
            value = self.build_at.add(start, self.build_at.mul(self.point, change))
            values[name] = Value([Typed(INT, value, low=-INDEX_LIMIT, high=INDEX_LIMIT)])
        return values

    def address(self, key):
        """Where a place is in the point of the loop."""
        build, base, step = self.build_at, self.places[key], self.steps[key]
        if step == 0:
            return base
        if step is None:
            return build.gep(base, [build.mul(self.point, self.byte_steps[key])], source_etype=I8)
        distance = self.point if step == 1 else build.mul(self.point, I64(step))
        return build.gep(base, [distance], source_etype=ir_type(self.dtypes[key[0]]))

    def load(self, key):
        return self.build_at.load(self.address(key), typ=ir_type(self.dtypes[key[0]]))

    def marked(self, access, array=None):
        """A load or store of the loop, with what is known of it: it touches no other point's memory, or no other
        array's.
        """
        if self.separate and array:
            self.separate.mark(access, array)
        return self.parallel.mark(access) if self.parallel else access

    def write_back(self, keys):
        for key in keys:
            store = self.build_at.store(self.body.state.cells[key].ir, self.address(key))
            self.marked(store, key[0])

    def _leave(self, site):
        """Emit what a raising point does: keep what it stored, return where and why."""
        self.leaves += 1
        if self.body is not None:
            self.write_back(key for key in self.stored() if key in self.body.state.stored)
        code = self.build_at.mul(self.point, I64(SITES))
        self.build_at.ret(self.build_at.add(code, I64(site)))

    def _close_loop(self, loop, width, end, then):
        build = self.build_at
        self.write_back(self.stored())
        self.bests.take({key: cell.ir for key, cell in self.body.state.cells.items()})
        self.updates.take(self.body.state.cells)
        after = build.add(self.point, I64(1))
        latch = build.block
        self.point.add_incoming(after, latch)
        branch = build.cbranch(build.icmp_signed("<", after, end), loop, then)
        if self.parallel:
            self.parallel.close(branch, width)
        return latch
