"""Rows strip by strip: the functions that a body calls are computed by NumPy's own loops for whole strips of points.

A strip goes through the body several times. Each time the arguments of calls that wait for no other are put into memory
in the nearest cache, for all points, and the functions computed of them. In the next rounds their results are there.
The last round is the body. A round is the whole body, of which LLVM drops what it does not need, so that what several
rounds need is computed again.
"""

import ast
import functools
from dataclasses import dataclass, field

from llvmlite import ir

from tilewave.kernel.emit.emitter import Function
from tilewave.kernel.emit.loops import is_uniform
from tilewave.kernel.rows.call_levels import NEVER, Point, carried_places
from tilewave.kernel.rows.strip_functions import compute
from tilewave.kernel.rows.vectors import ParallelAccesses
from tilewave.kernel.types.emitting import CountedLoop, least
from tilewave.kernel.types.values import I1, I8, I64, POINTER, ir_type

#: Points of a strip, at most, and the bytes of all that is in memory for them: a third of a first-level cache.
MOST_POINTS = 512
STRIP_BYTES = 16 << 10
#: A strip is a multiple of this, and has room for as many points more, which functions of vectors may touch.
LEAST_POINTS = 64

#: Calls and rounds of a body, at most: code grows with their product.
MOST_CALLS = 24
MOST_LEVELS = 4


@dataclass
class Call:
    """A call of a body. Those of level 1 wait for none; ``rooms`` are those of its operands, its result and of whether
    points need it, the last one None where all do.
    """

    function: Function
    level: int = NEVER
    conditional: bool = False
    rooms: tuple = field(default=())


class Strips:
    """The strips of a row function under construction.

    Parameters
    ----------
    frame
        The row function.
    calls : list of Call
        In the order in which the body is translated.
    reads : frozenset
        Places that calls for strips need.
    """

    def __init__(self, frame, calls, reads):
        self.frame, self.calls, self.reads = frame, calls, reads
        self.strip_calls = [call for call in calls if call.level != NEVER]
        self.rounds = max(call.level for call in self.strip_calls)
        sizes = [self._bytes(call) for call in self.strip_calls]
        points = STRIP_BYTES // sum(sizes) // LEAST_POINTS * LEAST_POINTS
        self.points = min(max(points, LEAST_POINTS), MOST_POINTS)
        #: Loops of ufuncs that must give the same bits anywhere in a strip.
        self.uniform = sorted(
            {(call.function.name, call.function.dtype.str) for call in self.strip_calls if _is_numpy(call.function)}
        )
        self._round, self._next, self._results = 0, 0, {}

    @classmethod
    def of(cls, frame, trial):
        """None where a body calls nothing that strips are for; `trial` makes a frame to translate it in."""
        if frame.width > 1 or not any(
            isinstance(node, ast.Call | ast.Pow) for node in ast.walk(frame.nest.source.tree)
        ):
            return None
        tried, carried = _Trial(trial()), carried_places(frame)
        calls, reads = tried.calls(carried)
        strips = [call for call in calls if call.level != NEVER]
        if len(strips) > MOST_CALLS or all(call.function.kind == "c" for call in strips):
            return None
        return cls(frame, calls, reads)

    @staticmethod
    def _bytes(call):
        function = call.function
        return function.dtype.itemsize * (function.operands + 1) + call.conditional

    # The row.

    def are_allowed(self):
        """Return whether no point of a strip writes what a later one's functions read."""
        frame, build = self.frame, self.frame.build_at
        allowed, zero = I1(1), I64(0)
        for key in sorted(self.reads):
            for writer in frame.written():
                if writer[0] != key[0]:
                    continue
                step, item = frame.steps[key], frame.dtypes[key[0]].itemsize
                step = frame.byte_steps[key] if step is None else I64(step * item)
                ahead = build.sub(*(build.ptrtoint(frame.places[each], I64) for each in (writer, key)))
                down = build.icmp_signed("<", step, zero)
                ahead, size = (build.select(down, build.neg(each), each) for each in (ahead, step))
                beyond = build.icmp_signed(">=", ahead, build.mul(size, I64(self.points)))
                moving = build.or_(build.icmp_signed("<=", ahead, zero), beyond)
                still = build.icmp_signed("!=", ahead, zero)
                allowed = build.and_(allowed, build.select(build.icmp_signed("==", step, zero), still, moving))
        return allowed

    def loop(self, carried):
        """Emit the loop over a row, strip by strip, from here to ``frame.done``."""
        frame, build = self.frame, self.frame.build_at
        self._open()
        before, (strip, after) = build.block, map(frame.row.append_basic_block, ("strip", "computed"))
        build.branch(strip)
        build.position_at_end(strip)
        self.begin = build.phi(I64)
        self.begin.add_incoming(I64(0), before)
        more = build.add(self.begin, I64(self.points))
        end = least(build, more, frame.count)
        count = build.sub(end, self.begin)
        frame.e.strips = self
        for level in range(1, self.rounds + 1):
            self._round = level
            self._gather(end)
            for call in self.strip_calls:
                if call.level == level:
                    compute(frame.e, call.function, call.rooms, count)
        self._round = NEVER
        frame.loop(carried, begin=self.begin, end=end, after=after)
        frame.e.strips = None
        build.position_at_end(after)
        self.begin.add_incoming(end, build.block)
        build.cbranch(build.icmp_signed("<", end, frame.count), strip, frame.done)

    def _open(self):
        """Make the rooms: untyped pointers, as alloca gives them for pointers."""
        build, room = self.frame.build_at, self.points + LEAST_POINTS

        def made(item):
            memory = build.alloca(POINTER, size=room * item // 8)
            memory.align = 64
            return memory

        with build.goto_entry_block():
            for call in self.strip_calls:
                item = call.function.dtype.itemsize
                rooms = [made(item) for _ in range(call.function.operands + 1)]
                call.rooms = (*rooms, made(1) if call.conditional else None)

    def _gather(self, end):
        """Put the operands of a round's calls into their rooms."""
        frame, build = self.frame, self.frame.build_at
        outer = frame.e.leave, frame.parallel
        frame.point = self.begin
        known = {place.key: frame.load(place.key) for place in frame.nest.places if frame.is_invariant(place)}
        frame.parallel = ParallelAccesses(frame.module)
        loop = CountedLoop(build, "gather", self.begin, end)
        with loop as frame.point:
            latch = frame.row.append_basic_block("gathered")
            frame.e.leave = lambda site: build.branch(latch)
            cells = self._cells = self._new_cells()
            frame.translate(known)
            if frame.body.state is not None:
                build.branch(latch)
            build.position_at_end(latch)
            for values in cells.values():
                for cell, kind, room in values:
                    self._put(build.load(cell, typ=kind), room)
            self._cells = {}
        frame.parallel.close(loop.branch)
        frame.e.leave, frame.parallel = outer

    def _new_cells(self):
        """Variables for what calls on some paths only are given, with numbers that do no harm on the others."""
        build, found = self.frame.build_at, {}
        for k, call in enumerate(self.calls):
            if call.level != self._round or not call.conditional:
                continue
            kind = ir_type(call.function.dtype)
            *operands, _, needed = call.rooms
            with build.goto_entry_block():
                cells = [(build.alloca(kind), kind, room) for room in operands] + [(build.alloca(I8), I8, needed)]
            for cell, kind, _ in cells:
                build.store(I8(0) if kind == I8 else _harmless(call.function), cell)
            found[k] = cells
        return found

    def _put(self, value, room):
        self.frame.marked(self.frame.build_at.store(value, self._at(room, value.type)))

    def _at(self, room, kind):
        build = self.frame.build_at
        return build.gep(room, [build.sub(self.frame.point, self.begin)], source_etype=kind)

    # A point.

    def begin_point(self):
        """Before a point is translated: the results that there are, loaded where nothing decides on it."""
        frame, self._next, self._results = self.frame, 0, {}
        for k, call in enumerate(self.calls):
            if call.level < self._round:
                kind = call.function.result
                at = self._at(call.rooms[-2], kind)
                self._results[k] = frame.marked(frame.build_at.load(at, typ=kind))

    def call(self, function, operands):
        """The result of the next call of a point; in rounds before its own a number in place of it."""
        k, self._next = self._next, self._next + 1
        call = self.calls[k]
        assert call.function == function, (call, function)
        if k in self._results:
            return self._results[k]
        if self._round == NEVER:
            return self.frame.e.call_once(function, operands)
        if call.level == self._round:
            if k in self._cells:
                for value, (cell, _, _) in zip([*operands, I8(1)], self._cells[k], strict=True):
                    self.frame.build_at.store(value, cell)
            else:
                for value, room in zip(operands, call.rooms, strict=False):
                    self._put(value, room)
        return _harmless(function)


class _Trial:
    """A body translated once, to see which calls it makes and what they need."""

    def __init__(self, frame):
        self.frame, self.made = frame, []

    def calls(self, carried):
        """(calls, places that those of strips need), where no strip may need the ``carried`` places."""
        frame, build = self.frame, self.frame.build_at
        frame.e.leave = lambda site: build.unreachable()
        frame.open()
        before = len(frame.row.blocks)
        build.branch(start := frame.row.append_basic_block("point"))
        build.position_at_end(start)
        frame.e.strips = self
        frame.translate({})
        frame.e.strips = None
        if frame.body.state is None:
            return [], frozenset()
        build.ret(I64(0))
        calls, needs = [Call(function) for function, _ in self.made], {}

        def level(call, found):
            needs[id(call)] = found
            allowed = _is_for_strips(call.function) and not found.places & carried
            call.level = found.level + 1 if allowed and found.level < MOST_LEVELS else NEVER
            return call.level

        level_of = {id(each): functools.partial(level, call) for call, (_, each) in zip(calls, self.made, strict=True)}
        loads = {id(value): key for key, value in frame.values.items()}
        point = Point(list(frame.row.blocks)[before:], loads, level_of)
        for call, (_, each) in zip(calls, self.made, strict=True):
            call.conditional = id(each) in point.conditional
        reads = [needs[id(call)].places for call in calls if call.level != NEVER]
        return calls, frozenset().union(*reads)

    def begin_point(self):
        """Nothing is there before a point."""

    def call(self, function, operands):
        """Note a call, and stand for its result."""
        kind = ir.FunctionType(function.result, [operand.type for operand in operands])
        stands_in = self.frame.e.outside(f"call_{function.kind}_{function.name}_{function.dtype.name}", kind)
        result = self.frame.build_at.call(stands_in, operands)
        self.made.append((function, result))
        return result


def _is_numpy(function):
    return function.kind == "numpy"


def _is_for_strips(function):
    if function.dtype.kind != "f":
        return False
    return not _is_numpy(function) or is_uniform(function.name, function.dtype)


def _harmless(function):
    """A number of which every function has a finite value."""
    kind = ir_type(function.dtype) if function.dtype.kind == "f" else function.result
    if not isinstance(kind, ir.FloatType | ir.DoubleType):
        return ir.Constant(kind, [1.0, 0.0])
    return ir.Constant(kind, 0.5 if function.name in ("arctanh", "atanh") else 1.0)
