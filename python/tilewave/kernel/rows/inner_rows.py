"""Rows of points with loops inside the body: some vectors of points at a time, with one pass of the loop for all.

Each point takes its terms in the order of the loop; neighbouring points take theirs together. What would raise, and
what a term computes from locals, is left to the usual loop over the points.
"""

import ast
from dataclasses import dataclass

from llvmlite import ir

from tilewave.kernel.emit.inner_loop import ENDING, LIMIT, first_sum, sum_type
from tilewave.kernel.emit.statements import Body
from tilewave.kernel.rows.vectors import ParallelAccesses
from tilewave.kernel.types import arithmetic
from tilewave.kernel.types.casts import cast
from tilewave.kernel.types.emitting import CountedLoop, element, least
from tilewave.kernel.types.values import I1, I8, I64, Typed, Value, ir_type
from tilewave.nest.affine import NotAffine
from tilewave.nest.inner_loops import extent_name, extent_of, is_element, is_inner, kind_of
from tilewave.nest.subscript import subscripts_of
from tilewave.nest.types import INT, Unsupported, scalar

#: Vectors of points that take a term together: enough to hide how long a maximum or a sum takes. Elements that are not
#: neighbours are gathered, which takes longer. Twice as many compile 1.3 times as long, and save less than a tenth.
VECTORS, STRIDED = 4, 2


class _Loads(dict):
    """Elements that are loaded where they are asked for."""

    def __init__(self, frame):
        self.frame, self.written = frame, frame.written()

    def __missing__(self, key):
        if key in self.written:
            raise NotAffine("an element that the body writes")
        frame = self.frame
        return Value([Typed(scalar(frame.dtypes[key[0]]), frame.marked(frame.load(key), key[0]))])


@dataclass
class _Loop:
    """One generator, or equal ones whose largest terms, say, and their places are found together: the type of their
    terms' result, and where that is for the points at hand.
    """

    kind: str  # "sum", "max" or "min"
    nodes: list  # (node, whether it wants the place)
    placed: bool = False
    type: object = None
    begin: object = None
    end: object = None
    rooms: tuple = ()  # arrays on the stack, (values, places) of each vector of points; LLVM makes registers of them
    results: tuple = ()  # and of all points

    @property
    def generator(self):
        return self.nodes[0][0].args[0]


class InnerRows:
    """The loops of a frame's body over several points together."""

    @classmethod
    def of(cls, frame):
        """None where the body or its types do not allow it."""
        nest = frame.nest
        apart = frame.choices.independent or frame.choices.apart
        if not nest.inner or not apart or frame.updates or frame.bests.wanted or nest.values:
            return None
        if any(n.kind == "c" for n in frame.dtypes.values()):
            return None
        try:
            trial = frame._trial()
            trial.e.leave = lambda site: trial.build_at.unreachable()
            trial.open()
            rows = cls(trial)
            sites, calls = len(trial.e.sites), trial.e.calls
            rows.look(trial.row.append_basic_block("look"))
            if len(trial.e.sites) > sites or trial.e.calls > calls:
                return None
        except (NotAffine, Unsupported):
            return None
        made = cls(frame)
        for loop, known in zip(made.loops, rows.loops, strict=True):
            loop.type = known.type
        return made

    def __init__(self, frame):
        self.frame, self.nest, self.build = frame, frame.nest, frame.build_at
        self.given = self.nest.captured().nodes
        self.unit, self.inside = False, None
        known = {}
        for node in self.nest.inner:
            kind, generator = kind_of(frame.scope, node.func), node.args[0]
            nested = any(is_inner(each) for each in ast.walk(generator))
            if nested or len(generator.generators) > 1 or generator.generators[0].ifs or kind in ENDING:
                raise NotAffine("loops within each other, a condition, or a loop that may end early")
            key = kind.removeprefix("arg"), ast.dump(generator)
            loop = known.setdefault(key, _Loop(key[0], []))
            loop.nodes.append((node, kind != loop.kind))
            loop.placed = loop.placed or kind != loop.kind
        self.loops = list(known.values())

    def look(self, block):
        """Translate each term once, to know its type and whether it may raise."""
        self.build.branch(block)
        self.build.position_at_end(block)
        self.condition()
        self.has_unit_steps()
        for loop in self.loops:
            term = self._term(loop, loop.begin)
            loop.type = sum_type(term.type) if loop.kind == "sum" else term.type
            if term.type.is_bool or loop.type.is_complex:
                raise NotAffine("a type without vectors")
            self._joined(loop, term, Typed(loop.type, ir.Constant(ir_type(loop.type.dtype), ir.Undefined)))

    # What holds for a row.

    def condition(self):
        """Return whether all ranges have numbers and all lookups are inside their arrays, at the beginning of a row
        along the last index.
        """
        self.inside = I1(1)
        for axis in range(self.nest.rank - 1):
            change = element(self.build, self.frame.direction, axis)
            self._holds(self.build.icmp_signed("==", change, I64(0)))
        for loop in self.loops:
            self._bounds(loop)
            self._holds(self.build.icmp_signed("<", loop.begin, loop.end))
            numbers = {loop.generator.generators[0].target.id: (loop.begin, self.build.sub(loop.end, I64(1)))}
            for node in self._lookups(loop.generator.elt):
                for _, part, extent in self._subscripts(node):
                    low, high = self._range(part, numbers)
                    self._holds(self.build.icmp_signed(">=", low, I64(0)))
                    self._holds(self.build.icmp_signed("<", high, extent))
        inside, self.inside = self.inside, None  # subscripts of terms are not checked again
        return inside

    def has_unit_steps(self):
        """Return whether neighbouring points look up neighbouring elements."""
        unit = I1(1)
        for loop in self.loops:
            for node in self._lookups(loop.generator.elt):
                for d, part, _ in self._subscripts(node):
                    if self._uses_row(part) and node in self.nest.parameters.wholes:
                        unit = I1(0)
                    elif self._uses_row(part):
                        step = self.build.mul(self._stride(node, d), self._change())
                        size = I64(self.frame.dtypes[node.value.id].itemsize)
                        unit = self.build.and_(unit, self.build.icmp_signed("==", step, size))
        return unit

    def _holds(self, condition):
        self.inside = self.build.and_(self.inside, condition)

    def _bounds(self, loop):
        bounds = [self._range(each, {}) for each in loop.generator.generators[0].iter.args]
        if any(low is not high for low, high in bounds):
            raise NotAffine("a bound that depends on the point")
        loop.begin, loop.end = (I64(0), bounds[0][0]) if len(bounds) == 1 else (bounds[0][0], bounds[1][0])

    def _lookups(self, term):
        wholes, tables = self.nest.parameters.wholes, self.nest.tables
        return [node for node in ast.walk(term) if is_element(node) and (node in wholes or node.value.id in tables)]

    def _subscripts(self, node):
        """(dimension, subscript, extent) of those that are computed."""
        along, name = self.nest.parameters.wholes.get(node), node.value.id
        for d, part in enumerate(subscripts_of(node)):
            if along is None:
                yield d, part, self.frame.tables.known[name][1][d]
            elif d in along:
                yield d, part, self.frame.names[extent_name(name, d)].only.ir

    def _stride(self, node, d):
        return self.frame.tables.known[node.value.id][2][d]

    def _uses_row(self, part):
        return any(isinstance(each, ast.Name) and each.id == self.nest.indices[-1] for each in ast.walk(part))

    def _change(self):
        return self.frame.first[self.nest.indices[-1]][1]

    def _range(self, node, numbers):
        """(least, greatest) of a linear expression in a row; one value twice where it is the same in each point."""
        build = self.build
        if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < LIMIT:
            return (I64(node.value),) * 2
        if (given := self.given.get(id(node))) in self.frame.names:
            return self._limited(self.frame.names[given])
        if extent := extent_of(node):
            return self._limited(self.frame.names[extent_name(*extent)])
        if isinstance(node, ast.Name) and node.id in numbers:
            return numbers[node.id]
        if isinstance(node, ast.Name) and node.id in self.frame.first:
            start, change = self.frame.first[node.id]
            if node.id != self.nest.indices[-1]:
                return start, start
            end = build.add(start, build.mul(change, build.sub(self.frame.count, I64(1))))
            return least(build, start, end), build.select(build.icmp_signed("<", start, end), end, start)
        if isinstance(node, ast.Name) and node.id in self.frame.constants:
            return self._range(ast.Constant(self.frame.constants[node.id]), numbers)
        if isinstance(node, ast.Name) and node.id in self.frame.names:
            return self._limited(self.frame.names[node.id])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            left, right = self._range(node.left, numbers), self._range(node.right, numbers)
            operation = build.add if isinstance(node.op, ast.Add) else build.sub
            if left[0] is left[1] and right[0] is right[1]:
                return (operation(left[0], right[0]),) * 2
            return tuple(map(operation, left, right if isinstance(node.op, ast.Add) else right[::-1]))
        raise NotAffine(ast.unparse(node))

    def _limited(self, value):
        """A scalar, which the usual loop takes where it is large."""
        if not value.single or not value.only.type.is_int:
            raise NotAffine("a scalar that is no integer")
        number = cast(self.frame.e, value.only.ir, value.only.type.dtype, INT.dtype)
        if self.inside is not None:
            self._holds(self.build.icmp_unsigned("<", self.build.add(number, I64(LIMIT)), I64(2 * LIMIT)))
        return number, number

    # Points together.

    def emit_all(self, vector):
        """Emit rows by the steps of their lookups and their lengths, of `vector` points or more; shorter rows go on to
        the usual loop.
        """
        usual = self.frame.row.append_basic_block("few_points")
        steps, many, others = map(self.frame.row.append_basic_block, ("steps", "unit", "other_steps"))
        self.build.cbranch(self.condition(), steps, usual)
        self.build.position_at_end(steps)
        self.build.cbranch(self.has_unit_steps(), many, others)
        for block, widths, unit in ((many, (VECTORS * vector, vector), True), (others, (STRIDED * vector,), False)):
            self.build.position_at_end(block)
            for width in widths:
                self.emit(width, vector, unit)
            self.build.branch(usual)
        self.build.position_at_end(usual)

    def emit(self, width, vector, unit):
        """Emit the row, `width` points at a time, from here to ``frame.done``.

        Terms of the last ones are those of the points that end with the row, some for a second time; a point is
        computed once, since it may change what it reads. Of rows with fewer points: from here on is the next code.
        """
        frame, build = self.frame, self.build
        enough, fewer = map(frame.row.append_basic_block, ("enough", "fewer"))
        build.cbranch(build.icmp_signed("<", frame.count, I64(width)), fewer, enough)
        build.position_at_end(enough)
        self.unit, self.vector, frame.body, before = unit, vector, None, frame.parallel
        frame.parallel = ParallelAccesses(frame.module)
        last = build.sub(frame.count, I64(width))
        for loop in self.loops:
            kinds = [ir_type(loop.type.dtype), *[I64] * loop.placed]
            with build.goto_entry_block():
                loop.results = [build.alloca(ir.ArrayType(kind, width)) for kind in kinds]
                loop.rooms = [
                    [build.alloca(ir.ArrayType(kind, vector)) for kind in kinds] for _ in range(0, width, vector)
                ]
        chunks = CountedLoop(build, "chunk", I64(0), frame.count, width)
        with chunks as chunk:
            start = least(build, chunk, last)
            for loop in self.loops:
                self._points(loop, start, width, None, loop.results)
                self._copy(loop, to_rooms=True)
                following = build.add(loop.begin, I64(1))
                with (
                    build.if_then(build.icmp_signed("<", following, loop.end)),
                    CountedLoop(build, "term", following, loop.end) as q,
                ):
                    for k, rooms in enumerate(loop.rooms):
                        self._points(loop, build.add(start, I64(k * vector)), vector, q, rooms)
                self._copy(loop, to_rooms=False)
            points = CountedLoop(build, "point", build.sub(chunk, start), I64(width))
            with points as w:
                frame.point = build.add(start, w)
                leaves, frame.leaves = frame.leaves, 0
                frame.translate({}, dict(self._results(w)))
                frame.write_back(frame.stored())
            frame.parallel.close(points.branch, None if frame.leaves else self.vector)
            frame.leaves += leaves
        build.branch(frame.done)
        frame.parallel, frame.body = before, None
        build.position_at_end(fewer)

    def _copy(self, loop, to_rooms):
        """Copy what is known of the points, from `results` to the rooms or back."""
        build = self.build
        for k, rooms in enumerate(loop.rooms):
            for room, result in zip(rooms, loop.results, strict=True):
                shape = ir.VectorType(room.allocated_type.element, self.vector)
                part = build.gep(result, [I64(0), I64(k * self.vector)])
                source, to = (part, room) if to_rooms else (room, part)
                value = self._aligned(build.load(source, typ=shape))
                self._aligned(build.store(value, build.bitcast(to, shape.as_pointer())))

    def _points(self, loop, start, count, q, rooms):
        """Term `q` of some points, None for the first one."""
        points = CountedLoop(self.build, "together", I64(0), I64(count))
        with points as w:
            self.frame.point = self.build.add(start, w)
            self._take(loop, q, [self.build.gep(room, [I64(0), w]) for room in rooms])
        self.frame.parallel.close(points.branch, self.vector)

    def _take(self, loop, q, cells):
        """One term of a point."""
        build, marked = self.build, self.frame.marked
        term = self._term(loop, loop.begin if q is None else q)
        if q is None:
            value, better = first_sum(self.frame.e, loop.type, term) if loop.kind == "sum" else term, None
        else:
            old = Typed(loop.type, marked(build.load(cells[0], typ=ir_type(loop.type.dtype))))
            value, better = self._joined(loop, term, old)
        marked(build.store(value.ir, cells[0]))
        for cell in cells[1:]:
            if better is None:
                place = I64(0)
            else:
                place = build.select(better, build.sub(q, loop.begin), marked(build.load(cell, typ=I64)))
            marked(build.store(place, cell))

    def _aligned(self, access):
        access.align = 1
        return access

    def _joined(self, loop, term, old):
        """(the value with one more term, whether the term is better)."""
        e = self.frame.e
        if loop.kind == "sum":
            return arithmetic.binary(e, "+", Value([old]), Value([term])).only, None
        sign = ">" if loop.kind == "max" else "<"
        better = arithmetic.is_true(e, arithmetic.binary(e, sign, Value([term]), Value([old])))
        return Typed(term.type, self.build.select(better, term.ir, old.ir)), better

    def _results(self, w):
        """(id of a generator's node, its value for a point) of all."""

        def load(room, kind):
            return self.frame.marked(self.build.load(self.build.gep(room, [I64(0), w]), typ=kind))

        for loop in self.loops:
            for node, wants_place in loop.nodes:
                if wants_place:
                    yield id(node), Value([Typed(INT, load(loop.results[1], I64), low=0, high=2 * LIMIT - 1)])
                else:
                    yield id(node), Value([Typed(loop.type, load(loop.results[0], ir_type(loop.type.dtype)))])

    def _term(self, loop, q):
        """A term for the frame's point, as a `Typed`."""
        frame, generator = self.frame, loop.generator
        body = Body(frame.e, self.nest, frame.constants, frame.point_names(), _Loads(frame), {}, None)
        self.numbers = {generator.generators[0].target.id: q}
        body.state.locals.update({name: Value([Typed(INT, q, low=-LIMIT, high=LIMIT)]) for name in self.numbers})
        body.look_up = self._element
        try:
            value = body._expression(generator.elt)
        except KeyError as name:
            raise NotAffine(f"a local, {name}") from None
        if not value.single:
            raise NotAffine("terms of several types")
        return value.only

    def _element(self, node):
        """The element of a lookup, which is inside."""
        build, frame, key = self.build, self.frame, None
        name = node.value.id
        if node in self.nest.parameters.wholes:
            key = self.nest.place_of(node)
            base = frame.places[key]
        else:
            base = frame.tables.known[name][0]
        distance = I64(0)
        for d, part, _ in self._subscripts(node):
            index = self._value(part)
            if key:
                distance = build.mul(build.sub(index, frame.whole_first(key)), frame.whole_stride(key))
            elif self.unit and self._uses_row(part):  # points are elements: the row's first one, and the point
                here = build.sub(index, build.mul(self.frame.point, self._change()))
                base = build.gep(base, [build.mul(here, self._stride(node, d))], source_etype=I8)
                base = build.gep(base, [self.frame.point], source_etype=ir_type(frame.dtypes[name]))
            else:
                distance = build.add(distance, build.mul(index, self._stride(node, d)))
        place = build.gep(base, [distance], source_etype=I8)
        return Value(
            [Typed(scalar(frame.dtypes[name]), frame.marked(build.load(place, typ=ir_type(frame.dtypes[name]))))]
        )

    def _value(self, node):
        """A linear subscript in the frame's point."""
        build, last = self.build, self.nest.indices[-1]
        if isinstance(node, ast.Name) and node.id == last:
            start, change = self.frame.first[last]
            return build.add(start, build.mul(self.frame.point, change))
        if isinstance(node, ast.BinOp):
            operation = build.add if isinstance(node.op, ast.Add) else build.sub
            return operation(self._value(node.left), self._value(node.right))
        return self._range(node, {name: (q, q) for name, q in self.numbers.items()})[0]
