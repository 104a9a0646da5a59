"""Translates loops as they stand: ``for`` over ranges and ``while``, with elements stored where they are assigned.

A name has one cell of memory for each type that it may have at the head of a loop, and LLVM makes registers of them.
Which types come round is known when the body is translated: `Types` keeps them from one translation to the next, until
none is new.
"""

import ast
import functools
from dataclasses import replace

import numpy as np

from tilewave.dtypes import ALL
from tilewave.kernel.emit.inner_loop import LIMIT
from tilewave.kernel.emit.signals import SHORT
from tilewave.kernel.emit.statements import Body, State
from tilewave.kernel.types import arithmetic
from tilewave.kernel.types.casts import assign, to_int, truth
from tilewave.kernel.types.values import I1, I8, I64, Typed, Value, ir_type
from tilewave.nest.inner_loops import extent_name
from tilewave.nest.subscript import subscripts_of
from tilewave.nest.types import ARRAY0, BOOL, COMPLEX, FLOAT, INT, Type, Unsupported, scalar

#: The type of a name that no statement has assigned.
UNSET = Type("unset", np.dtype("bool"))

#: Types that a name may have when loops end: their numbers are stored with its value.
TYPES = [UNSET, BOOL, INT, FLOAT, COMPLEX, *map(scalar, ALL), *(Type(ARRAY0, dtype) for dtype in ALL)]

#: Words of 8 bytes of the record of a name: the number of its type, and the value.
RECORD = 3


class Types(dict):
    """From (number of a loop, name) to the types that the name may have at the head of the loop.

    Attributes
    ----------
    new : bool
        Whether some types came round that the head of their loop did not know.
    """

    new = False


class _Cells:
    """The cells of the names that a loop assigns."""

    def __init__(self, body, number, names):
        self.body, self.build, self.number = body, body.e.builder, number
        self.rooms = {name: {} for name in names}
        self.tags = {name: self._room(I8) for name in names}
        self.known = {}  # by name, what the head knew
        for name in names:
            for kind in body.types.setdefault((number, name), []):
                self._add(name, kind)

    def _room(self, kind):
        with self.build.goto_entry_block():
            return self.build.alloca(kind)

    def _add(self, name, kind):
        self.rooms[name][kind] = self._room(ir_type(kind.dtype))

    def _types(self, name):
        return self.body.types[self.number, name]

    def store(self, state):
        """Store what a path knows of the names, before it goes to the head or the end of the loop."""
        for name in self.rooms:
            value, types = state.locals[name], self._types(name)
            for option in value.options:
                if option.type not in types:
                    types.append(option.type)
                    self._add(name, option.type)
                    self.body.types.new |= bool(self.known)
                self.build.store(option.ir, self.rooms[name][option.type])
            tag = I8(types.index(value.only.type)) if value.single else self.body.e._renumbered(value, types)
            self.build.store(tag, self.tags[name])

    def load(self, state):
        """The state with the names as they are in their cells."""
        values = {}
        for name, rooms in self.rooms.items():
            options = [Typed(kind, self.build.load(rooms[kind], typ=ir_type(kind.dtype))) for kind in rooms]
            tag = self.build.load(self.tags[name], typ=I8) if len(options) > 1 else None
            values[name] = Value(options, tag)
        return replace(state, locals={**state.locals, **values})

    def at_head(self, state):
        """The same at the head, where later stores are not known."""
        self.known = {name: len(self._types(name)) for name in self.rooms}
        return self.load(state)


class LoopsBody(Body):
    """One translation of statements with loops.

    Parameters
    ----------
    emitter : Emitter
    region : Region
        Like a nest, with ``assigned``: for each loop and for "all" the names that it assigns.
    constants, names : dict
        As for `Body`; the names that statements assign are among them.
    elements : Elements
    types : Types
    foreign : dict
        From names whose values are no numbers to what these are.
    signals : Signals
    """

    def __init__(self, emitter, region, constants, names, elements, types, foreign, signals):
        super().__init__(emitter, region, constants, names, {}, {}, None)
        self.signals = signals
        self.elements, self.types, self.foreign = elements, types, foreign
        local = {*region.assigned["all"], *region.reads} - names.keys()
        unset = {name: Value([Typed(UNSET, const=False)]) for name in sorted(local)}
        self.state = State({**unset, **{name: names[name] for name in region.assigned["all"] if name in names}}, {})
        self._loops, self._region = [], region

    # Statements.

    def _statement(self, node):
        if isinstance(node, ast.For):
            self._for(node)
        elif isinstance(node, ast.While):
            self._while(node)
        elif isinstance(node, ast.Break | ast.Continue):
            cells, latch, end = self._loops[-1]
            cells.store(self.state)
            self.e.builder.branch(end if isinstance(node, ast.Break) else latch)
            self.state = None
        else:
            super()._statement(node)

    def _for(self, node):
        build = self.e.builder
        begin, end, step = self._range(node.iter)
        count = self._count(begin.ir, end.ir, step)
        cells = self._open(node)
        round_ = cells._room(I64)
        build.store(I64(0), round_)
        head, inside, latch, after = (build.append_basic_block(name) for name in ("for", "in", "next", "after"))
        build.branch(head)
        build.position_at_end(head)
        number = build.load(round_, typ=I64)
        build.cbranch(build.icmp_signed("<", number, count), inside, after)
        build.position_at_end(inside)
        self.state = cells.at_head(self.state)
        value = build.add(begin.ir, build.mul(number, step.ir))
        self._store(node.target, Value([Typed(INT, value, **_within(begin, end, step))]))
        self._inside(node, cells, latch, after)
        build.position_at_end(latch)
        if any(self._is_long(each) for statement in node.body for each in ast.walk(statement)):
            self.signals.check()
        build.store(build.add(number, I64(1)), round_)
        build.branch(head)
        self._close(cells, after)
        if self._is_long(node):
            self.signals.count(build.select(build.icmp_signed(">", count, I64(0)), count, I64(1)))

    @staticmethod
    def _is_long(node):
        """Return whether a loop may have many turns."""
        ends = (
            [each.value for each in node.iter.args if isinstance(each, ast.Constant)] if hasattr(node, "iter") else []
        )
        short = ends and len(ends) == len(node.iter.args) and all(type(n) is int and abs(n) <= SHORT for n in ends)
        return isinstance(node, ast.For | ast.While) and not short

    def _while(self, node):
        build, cells = self.e.builder, self._open(node)
        head, inside, after = (build.append_basic_block(name) for name in ("while", "in", "after"))
        build.branch(head)
        build.position_at_end(head)
        self.state = cells.at_head(self.state)
        self.signals.count(I64(1))
        self.signals.check()
        condition = arithmetic.is_true(self.e, self.expression(node.test))
        build.cbranch(condition, inside, after)
        build.position_at_end(inside)
        self._inside(node, cells, head, after)
        self._close(cells, after)

    def _open(self, node):
        cells = _Cells(self, self._region.loops.index(node), self._region.assigned[node])
        cells.store(self.state)
        return cells

    def _inside(self, node, cells, latch, after):
        outer = self.state
        self._loops.append((cells, latch, after))
        self._block(node.body)
        self._loops.pop()
        if self.state is not None:
            cells.store(self.state)
            self.e.builder.branch(latch)
        self.state = outer

    def _close(self, cells, after):
        self.e.builder.position_at_end(after)
        self.state = cells.load(self.state)

    def _range(self, node):
        """First number, end and step of a range, as whole numbers."""
        given = [self.e.dispatch(self._whole, self.expression(each)).only for each in node.args]
        begin, end = (Typed(INT, const=0), given[0]) if len(given) == 1 else given[:2]
        step = given[2] if len(given) == 3 else Typed(INT, const=1)
        for bound in (begin, end, step):
            if not -LIMIT <= bound.low <= bound.high <= LIMIT:
                far = self.e.builder.icmp_unsigned(">", self.e.builder.add(bound.ir, I64(LIMIT)), I64(2 * LIMIT))
                self.e.fail_if(far, "OverflowError", f"a range beyond {LIMIT}")
        return begin, end, step

    def _whole(self, typed):
        kind = typed.type
        if kind.is_float or kind.is_complex or kind.is_bool and not kind.is_python:
            raise Unsupported(f"a {kind} as a bound of a range (allowed: integers)")
        return Value([to_int(self.e, typed)])

    def _count(self, begin, end, step):
        """How many numbers a range has; less than 1 where it has none."""
        build = self.e.builder

        def upwards(low, high, by):
            distance = build.add(build.sub(high, low), build.sub(by, I64(1)))
            return build.select(build.icmp_signed(">", high, low), build.sdiv(distance, by), I64(0))

        if step.const is not None:
            if step.const == 0:
                raise Unsupported("a range with step 0")
            size = I64(abs(step.const))
            return upwards(begin, end, size) if step.const > 0 else upwards(end, begin, size)
        self.e.fail_if(build.icmp_signed("==", step.ir, I64(0)), "ValueError", "range() arg 3 must not be zero")
        up = build.icmp_signed(">", step.ir, I64(0))
        size = build.select(up, step.ir, build.sub(I64(0), step.ir))
        return build.select(up, upwards(begin, end, size), upwards(end, begin, size))

    # Elements and names.

    def _store(self, target, value):
        if isinstance(target, ast.Name):
            super()._store(target, value)
            return
        table = target.value.id
        subscripts = [self.expression(part) for part in subscripts_of(target)]
        kind = scalar(self.elements.dtypes[table])

        def element(typed):
            if table in self._bools:
                return Value([Typed(kind, self.e.builder.zext(truth(self.e, typed), I8))])
            return Value([Typed(kind, assign(self.e, typed, kind.dtype))])

        stored = self._guarded(target, lambda: self.e.dispatch(element, value))
        self.elements.store(table, subscripts, stored.only.ir)

    def _read(self, node):
        table = node.value.id
        subscripts = [self.expression(part) for part in subscripts_of(node)]
        return self._element(table, self._guarded(node, lambda: self.elements.load(table, subscripts)))

    def _name(self, node):
        return self._assigned(node, super()._name(node))

    def _augmented(self, node):
        if isinstance(node.target, ast.Name):
            value = self._assigned(node.target, self.state.locals[node.target.id])
            self.state = replace(self.state, locals={**self.state.locals, node.target.id: value})
        super()._augmented(node)

    def _assigned(self, node, value):
        """A value without the case that nothing was assigned, which raises."""
        position = next((k for k, option in enumerate(value.options) if option.type == UNSET), None)
        if position is None:
            return value
        name = ast.unparse(node)
        if name in self.foreign:
            raise self.source.error(node, f"{name!r} is a {self.foreign[name]} before the loops", "numbers")
        rest = [option for option in value.options if option.type != UNSET]
        message = f"cannot access local variable '{name}' where it is not associated with a value"
        unset = I1(1) if value.single else self.e.builder.icmp_unsigned("==", value.tag, I8(position))
        self.e.fail_if(unset, "UnboundLocalError", message)
        if not rest:  # of the types that come round none is known yet, or none ever is
            return Value([Typed(INT, const=0)])
        types = [*(option.type for option in rest), UNSET]
        return Value(rest, self.e._renumbered(value, types) if len(rest) > 1 else None)

    def keep(self, names, record):
        """Store the values of names, and which types they have."""
        build = self.e.builder
        for k, name in enumerate(names):
            places = [build.gep(record, [I64(RECORD * k + part)], source_etype=I64) for part in (0, 1)]

            def kept(typed, places=places):
                build.store(I64(TYPES.index(typed.type)), places[0])
                build.store(build.zext(typed.ir, I8) if typed.ir.type == I1 else typed.ir, places[1])
                return Value([Typed(BOOL, const=True)])

            self.e.dispatch(kept, self.state.locals[name])


def _within(begin, end, step):
    """Bounds of the numbers of a range."""
    if step.low > 0:
        return {"low": max(begin.low, -LIMIT), "high": min(end.high - 1, LIMIT)}
    if step.high < 0:
        return {"low": max(end.low + 1, -LIMIT), "high": min(begin.high, LIMIT)}
    return {"low": -2 * LIMIT, "high": 2 * LIMIT}


class Elements:
    """Loads and stores of elements, at the subscripts that Python gives them: negative ones count from the end.

    Parameters
    ----------
    tables : Tables
    marked : callable
        Given an LLVM load or store and its array, notes that it touches no other array's memory.
    unit : frozenset of str
        Arrays whose last subscript goes from element to element.
    known : Known
    """

    def __init__(self, tables, marked, unit, known):
        self.tables, self.dtypes, self.marked, self.unit = tables, tables.dtypes, marked, unit
        self.inside, self.listed = known.inside, known.listed

    def load(self, table, subscripts):
        """The value of an element."""
        dtype = self.dtypes[table]
        found = self.tables.e.builder.load(self._address(table, subscripts), typ=ir_type(dtype))
        kind = {"f": FLOAT, "i": INT}[dtype.kind] if table in self.listed else scalar(dtype)
        return Value([Typed(kind, self.marked(found, table))])

    def store(self, table, subscripts, value):
        """Store a number of the array's dtype."""
        self.marked(self.tables.e.builder.store(value, self._address(table, subscripts)), table)

    def extents(self):
        """The values of extents, by `extent_name`."""
        return {
            extent_name(table, d): Value([Typed(INT, value, low=0, high=2**47)])
            for table, (_, extents, _) in self.tables.known.items()
            for d, value in enumerate(extents)
        }

    def _address(self, table, subscripts):
        build, (base, extents, strides) = self.tables.e.builder, self.tables.known[table]
        if table in self.unit:
            strides = [*strides[:-1], I64(self.dtypes[table].itemsize)]
        within = self._known if self.inside else self.tables.inside
        parts = enumerate(zip(subscripts, extents, strides, strict=True))
        products = [build.mul(within(table, axis, value, extent), stride) for axis, (value, extent, stride) in parts]
        return build.gep(base, [functools.reduce(build.add, products)], source_etype=I8)

    def _known(self, table, axis, value, extent):
        """A subscript of which it is known that it is inside."""
        return self.tables._integer(table, value).ir
