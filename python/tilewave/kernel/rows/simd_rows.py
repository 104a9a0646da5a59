"""Rows whose points depend on each other as the lanes of vectors: each a few points behind the one before it."""

from llvmlite import ir

from tilewave import _core
from tilewave.kernel.rows.transpose import shuffle, transpose
from tilewave.kernel.rows.vectors import ParallelAccesses, leave_as_it_is
from tilewave.kernel.rows.wide_rows import prefetch
from tilewave.kernel.types.emitting import CountedLoop, element, greatest, least
from tilewave.kernel.types.values import I1, I8, I32, I64, POINTER, ir_type

#: Bytes of the elements of which a vector has one for each row.
ITEM_BYTES = 4

#: How far ahead memory is asked for that is only read. Zen 5, 64x64x4096 doubles, ns a point with 0, 256, 768: two
#: arrays 0.76, 0.69, 0.65; four 1.77, 1.66, 1.75.
READ_AHEAD_BYTES = 512
LINE_BYTES = 64
#: Streams from memory whose next block waits in registers, at most. AMD EPYC, 64x64x4096 in place, ns a point with 0
#: and 1: floats 0.50, 0.45; doubles 1.02, 0.67. Two streams and more have too few registers.
MOST_STREAMS_IN_REGISTERS = 1

#: The most rows, a SIMD lane each (include/tilewave/engine/limits.hpp).
MOST_ROWS = _core.limits["simd_rows"]


def rows_of(vector_bytes):
    """How many rows there are at most: doubles are two vectors, whose operations overlap, where one is too short."""
    return min(vector_bytes // ITEM_BYTES, MOST_ROWS)


def simd_rows_function(frame, streams, vector_bytes, ahead_bytes=0):
    """Emit the function of some rows, at least two, into a new frame; the frame's ``ahead`` says how they follow
    each other, ``live`` how many.

    Point q of row r comes together with point q - lag of row r + 1. What a row reads of its results and of those
    of rows before it stays in registers; all other elements are loaded by blocks of as many points as there are
    lanes, and blocks of rows become blocks of points. Results go back in the same manner. Where the rows begin and end
    their points are computed one by one. Memory to write is asked for so many bytes ahead, where these are not 0.
    Returns whether the addresses say what `Streams.checks` expects, else nothing is done."""
    frame.open()
    frame.bests.open()
    build = frame.build_at
    _prefer_vectors(frame.row, vector_bytes)
    lanes = _Lanes(frame, streams, vector_bytes, ahead_bytes)
    begin, refuse = (frame.row.append_basic_block(name) for name in ("begin", "refuse"))
    build.cbranch(lanes.as_expected(), begin, refuse)
    build.position_at_end(refuse)
    build.ret(I64(0))
    build.position_at_end(begin)
    frame.bests.open_vectors(lanes.rows)
    lanes.emit()
    frame.bests.close_lanes(lanes.rows, frame.live)
    frame.bests.tell()
    build.ret(I64(1))


def _prefer_vectors(function, vector_bytes):
    """Tell LLVM the size of a function's vectors, where the processor has longer ones as well.

    It would make one vector of 8 doubles, which has no second one to overlap with: 0.30 in place of 0.23 ns a point.
    """
    for name, value in (("min-legal-vector-width", 0), ("prefer-vector-width", 8 * vector_bytes)):
        set.add(function.attributes, f'"{name}"="{value}"')  # llvmlite's `add` knows no attributes of a target


def least_points(streams, vector_bytes):
    """Points of a row from which a block of all lanes fits in."""
    rows = rows_of(vector_bytes)
    return streams.lag * (rows - 1) + rows


class _Lanes:
    def __init__(self, frame, streams, vector_bytes, ahead_bytes):
        self.frame, self.streams, self.vector_bytes, self.ahead_bytes = frame, streams, vector_bytes, ahead_bytes
        self.build, self.rows = frame.build_at, rows_of(vector_bytes)
        self.first_row = frame.places
        self.across = {place.key: element(self.build, frame.ahead, k) for k, place in enumerate(frame.nest.places)}
        self.written, self.stored_places = frame.written(), frame.stored()
        self.parallel = ParallelAccesses(frame.module)

    def kind(self, key):
        return ir_type(self.frame.dtypes[key[0]])

    def vector(self, key):
        return ir.VectorType(self.kind(key), self.rows)

    def as_expected(self):
        """Return whether each element that is taken from registers is where its writer has put it."""
        build, frame, good = self.build, self.frame, I1(1)
        for key, writer, rows, points in self.streams.checks:
            moved = build.add(
                build.mul(self.across[writer], I64(rows)),
                I64(points * frame.steps[key] * frame.dtypes[key[0]].itemsize),
            )
            there = build.gep(frame.places[writer], [moved], source_etype=I8)
            good = build.and_(good, build.icmp_unsigned("==", there, frame.places[key]))
            good = build.and_(good, build.icmp_unsigned("==", self.across[writer], self.across[key]))
        return good

    def emit(self):
        """The steps: at first and at last some lanes have no point, in between all have one and go block by block."""
        build, frame = self.build, self.frame
        self._open()
        ends, blocks, done = (frame.row.append_basic_block(name) for name in ("ends", "blocks", "done"))
        before = build.block
        self.ahead = build.mul(build.sub(frame.live, I64(1)), I64(self.streams.lag))  # of the last row
        last = build.add(frame.count, self.ahead)
        build.branch(ends)
        build.position_at_end(ends)
        begin, end, again = build.phi(I64), build.phi(I64), build.phi(I1)
        self._one_by_one(begin, end)
        build.cbranch(again, done, blocks)
        build.position_at_end(blocks)
        reached = self._blocks(self.ahead)
        for phi, first, then in (
            (begin, I64(0), reached),
            (end, self.ahead, last),
            (again, I1(0), I1(1)),
        ):
            phi.add_incoming(first, before)
            phi.add_incoming(then, build.block)
        build.branch(ends)
        build.position_at_end(done)

    def _open(self):
        """Where the lanes' rows are in step 0. Lanes beyond the last row do as its lane does, and what they store it
        replaces.
        """
        build, frame = self.build, self.frame
        last = build.sub(frame.live, I64(1))
        rows = [I64(r) for r in range(2)]  # there are two at least
        rows += [build.select(build.icmp_signed("<", I64(r), frame.live), I64(r), last) for r in range(2, self.rows)]
        self.start = [build.mul(row, I64(self.streams.lag)) for row in rows]  # steps in which rows begin
        self.at = {}
        for key, place in self.first_row.items():
            step = frame.steps[key] * frame.dtypes[key[0]].itemsize
            from_row = build.sub(self.across[key], I64(self.streams.lag * step))
            self.at[key] = [build.gep(place, [build.mul(from_row, row)], source_etype=I8) for row in rows]

        self.same = {key: self._gather(key, [I64(0)] * self.rows) for key in self.streams.same}
        with build.goto_entry_block():
            self.cells, self.results = (
                {key: self._room(key) for key in keys}
                for keys in ([place.key for place in frame.nest.places], self.written)
            )

    def _address(self, key, lane, step):
        """Where a lane's element is, of the place that is at it in some step."""
        distance = self.build.mul(step, I64(self.frame.steps[key]))
        return self.build.gep(self.at[key][lane], [distance], source_etype=self.kind(key))

    def _less(self, step, by):
        return self.build.sub(step, I64(by)) if by else step

    def _from_begin(self, step, lane):
        """The step, or that in which the lane's row begins."""
        first = self.start[lane]
        return greatest(self.build, step, first)

    def _to_end(self, step, lane):
        """The step, or that in which the lane's row ends."""
        last = self.build.add(self.start[lane], self.build.sub(self.frame.count, I64(1)))
        return least(self.build, step, last)

    def _gather(self, key, steps):
        """The vector of a place's elements, each lane's in another step."""
        build = self.build
        value = ir.Constant(self.vector(key), ir.Undefined)
        for lane, step in enumerate(steps):
            element = build.load(self._address(key, lane, step), typ=self.kind(key))
            value = build.insert_element(value, element, I32(lane))
        return value

    # Steps in which some lanes have no point.

    def _one_by_one(self, begin, end):
        """The points of some steps, row by row and point by point."""
        build, frame, zero = self.build, self.frame, I64(0)
        with CountedLoop(build, "edge", zero, frame.live) as row:
            frame.places = {
                key: build.gep(place, [build.mul(self.across[key], row)], source_etype=I8)
                for key, place in self.first_row.items()
            }
            start = build.mul(row, I64(self.streams.lag))
            first, after = build.sub(begin, start), build.sub(end, start)
            self._points(
                greatest(build, first, zero),
                least(build, after, frame.count),
            )

    def _points(self, begin, end):
        """Points `begin` to `end` of a row, of which there may be none."""
        build, frame = self.build, self.frame
        writers = {
            key: writer
            for writer, stream in self.streams.results.items()
            for key, age in stream.ages.items()
            if age == 1
        }
        with build.if_then(build.icmp_signed("<", begin, end)):
            frame.point = begin
            ahead = {key: frame.load(key) for key in writers}
            loop = CountedLoop(build, "points", begin, end)
            with loop as frame.point:
                known = {key: build.phi(value.type) for key, value in ahead.items()}
                frame.translate(known)
                frame.write_back(self.stored_places)
                frame.bests.take({key: cell.ir for key, cell in frame.body.state.cells.items()})
                for key, phi in known.items():
                    phi.add_incoming(ahead[key], loop.before)
                    phi.add_incoming(frame.body.state.cells[writers[key]].ir, build.block)
            leave_as_it_is(frame.module, loop.branch)

    # Steps of all lanes.

    def _room(self, key, vectors=1):
        """Memory for some vectors of a place's elements; a pointer without a type, as alloca gives it for pointers."""
        size = vectors * self.rows * self.frame.dtypes[key[0]].itemsize
        room = self.build.alloca(POINTER, size=max(size // 8, 1))
        room.align = self.rows * self.frame.dtypes[key[0]].itemsize  # as LLVM takes vectors to be
        return room

    def _vector_at(self, room, key, t):
        return self.build.gep(room, [t], source_etype=self.vector(key))

    def _before(self, stream, depth, step):
        """A stream's values in the steps before one, the last one first."""
        values = []
        for age in range(1, depth + 1):
            if age <= stream.depth:
                steps = [self._less(step, age - stream.depth)] * self.rows
                values.append(self._gather(stream.last, steps))
            else:
                steps = [self._from_begin(self._less(step, age), lane) for lane in range(self.rows)]
                values.append(self._gather(stream.key, steps))
        return values

    def _blocks(self, first):
        """All steps that the lanes take together, from step `first`; the step after the last."""
        build, frame, streams = self.build, self.frame, self.streams
        size = I64(self.rows)
        # The next block is loaded while this one is computed. Of few streams it waits in registers; of more it is
        # transposed at once, into the second of two blocks in memory.
        registers = len(streams.memory) <= MOST_STREAMS_IN_REGISTERS
        room = self.rows if registers else 2 * self.rows
        with build.goto_entry_block():
            self.loaded = {stream.key: self._room(stream.key, room) for stream in streams.memory}
            self.stored = {key: self._room(key, self.rows) for key in self.stored_places}
        held = [
            *((stream, streams.depth(key)) for key, stream in streams.results.items()),
            *((stream, stream.depth) for stream in [*streams.above, *streams.memory]),
        ]
        fits = build.icmp_signed("<=", build.add(first, size), frame.count)
        look, block, step, after, end = (
            frame.row.append_basic_block(name) for name in ("look", "block", "step", "stepped", "stop")
        )
        none = build.block
        build.cbranch(fits, look, end)
        build.position_at_end(look)
        loaded = {stream.key: self._load(stream.key, first) for stream in streams.memory}
        zero = I64(0)
        for key, rows in loaded.items() if not registers else ():
            self._fill(key, rows, zero)
        start = [self._before(stream, depth, first) for stream, depth in held]
        before = build.block
        build.branch(block)
        build.position_at_end(block)
        begin = build.phi(I64)
        begin.add_incoming(first, before)
        between = [[build.phi(value.type) for value in values] for values in start]
        waiting = {key: [build.phi(row.type) for row in rows] for key, rows in loaded.items()} if registers else {}
        half = zero if registers else build.phi(I64)  # of the loaded blocks: where this one begins
        other = zero if registers else build.sub(size, half)
        for key, rows in waiting.items():
            self._fill(key, rows, zero)
        # Before this block is stored: a load that follows a store to its place in a page would wait for it.
        following, last = build.add(begin, size), build.sub(frame.count, size)
        ahead = least(build, following, last)
        coming = {key: self._load(key, ahead) for key in loaded}
        for key, rows in coming.items() if not registers else ():
            self._fill(key, rows, other)
        for key in self.stored_places if self.ahead_bytes else ():
            beyond = build.add(begin, I64(self.ahead_bytes // frame.dtypes[key[0]].itemsize))
            # No further than a row goes: what is there may be another processor's.
            for at in self._rows_at(key, least(build, beyond, last)):
                prefetch(frame, at)
        for stream in streams.memory:
            self._ask_ahead(stream.key, begin)
        blocks = build.block
        build.branch(step)
        build.position_at_end(step)
        t = build.phi(I64)
        t.add_incoming(I64(0), blocks)
        past = [[build.phi(value.type) for value in values] for values in start]
        fresh = self._step(held, past, begin, t, build.add(half, t))
        more = build.add(t, I64(1))
        now = build.block
        t.add_incoming(more, now)
        shifted = [[value, *phis][: len(phis)] for value, phis in zip(fresh, past, strict=True)]
        build.cbranch(build.icmp_signed("<", more, size), step, after)
        build.position_at_end(after)
        for key in self.stored_places:
            self._store_block(key, begin)
        begin.add_incoming(following, build.block)
        if not registers:
            half.add_incoming(zero, before)
            half.add_incoming(other, build.block)
        for key, phis in waiting.items():
            for phi, one, then in zip(phis, loaded[key], coming[key], strict=True):
                phi.add_incoming(one, before)
                phi.add_incoming(then, build.block)
        for at_first, phis, inner, values in zip(start, between, past, shifted, strict=True):
            for one, phi, within, value in zip(at_first, phis, inner, values, strict=True):
                phi.add_incoming(one, before)
                phi.add_incoming(value, build.block)
                within.add_incoming(phi, blocks)
                within.add_incoming(value, now)
        build.cbranch(build.icmp_signed("<=", build.add(following, size), frame.count), block, end)
        stored = build.block
        build.position_at_end(end)
        reached = build.phi(I64)
        reached.add_incoming(first, none)
        reached.add_incoming(following, stored)
        return reached

    def _step(self, held, past, begin, t, loaded):
        """One step of all lanes; the newest value of each stream."""
        build, streams = self.build, self.streams
        past_results = {
            stream.key: phis
            for (stream, _), phis in zip(held, past, strict=True)
            if stream.key in self.written and stream is streams.results.get(stream.key)
        }
        fresh, inputs = [], dict(self.same)
        for (stream, _), phis in zip(held, past, strict=True):
            if stream is streams.results.get(stream.key):
                value = None
            elif stream.rows:
                value = self._from_above(stream, past_results, build.add(begin, t))
            else:
                at = self._vector_at(self.loaded[stream.key], stream.key, loaded)
                value = build.load(at, typ=self.vector(stream.key))
            fresh.append(value)
            for key, age in stream.ages.items():
                inputs[key] = value if age == 0 else phis[age - 1]
        results = self._compute(inputs)
        for key in self.stored_places:
            build.store(results[key], self._vector_at(self.stored[key], key, t))
        self.frame.bests.take_vectors(results)
        return [results[stream.key] if value is None else value for (stream, _), value in zip(held, fresh, strict=True)]

    def _from_above(self, stream, past_results, point):
        """Return what the rows above have computed: their lanes moved, the first ones from memory."""
        build, rows = self.build, self.rows
        writer = next(key for key in self.written if key[0] == stream.key[0])
        above = ir.Constant(self.vector(writer), ir.Undefined)
        for lane in range(stream.rows):
            step = point if not stream.ahead else self._to_end(build.add(point, I64(stream.ahead)), lane)
            element = build.load(self._address(stream.key, lane, step), typ=self.kind(writer))
            above = build.insert_element(above, element, I32(rows - stream.rows + lane))
        return shuffle(
            build, above, past_results[writer][stream.behind - 1], range(rows - stream.rows, 2 * rows - stream.rows)
        )

    def _compute(self, inputs):
        """The body, lane by lane in a loop of which LLVM makes vectors; the written places' values."""
        build, frame = self.build, self.frame
        for key, value in inputs.items():
            self._whole(build.store(value, self.cells[key]), key)
        loop, known = CountedLoop(build, "lane", I64(0), I64(self.rows)), {}
        with loop as lane:
            for place in frame.nest.places:
                key, kind = place.key, self.kind(place.key)
                known[key] = ir.Constant(kind, 0.0 if isinstance(kind, ir.FloatType | ir.DoubleType) else 0)
                if key in inputs:
                    at = build.gep(self.cells[key], [lane], source_etype=kind)
                    known[key] = self.parallel.mark(build.load(at, typ=kind))
            frame.translate(known)
            for key in self.written:
                at = build.gep(self.results[key], [lane], source_etype=self.kind(key))
                self.parallel.mark(build.store(frame.body.state.cells[key].ir, at))
        self.parallel.close(loop.branch, self.rows)
        return {key: self._whole(build.load(self.results[key], typ=self.vector(key)), key) for key in self.written}

    def _whole(self, access, key):
        access.align = self.frame.dtypes[key[0]].itemsize
        return access

    # Blocks.

    def _rows_at(self, key, begin):
        """Where each row's part of a block is, its least address."""
        back = self.rows - 1 if self.frame.steps[key] < 0 else 0
        begin = self.build.add(begin, I64(back))
        return [self._address(key, lane, begin) for lane in range(self.rows)]

    def _columns(self, key, vectors):
        columns = transpose(self.build, vectors, self.vector_bytes, self.frame.dtypes[key[0]].itemsize)
        return columns if self.frame.steps[key] > 0 else columns[::-1]

    def _load(self, key, begin):
        """A block of each row, from a step on."""
        return [self._whole(self.build.load(at, typ=self.vector(key)), key) for at in self._rows_at(key, begin)]

    def _fill(self, key, rows, room):
        """Keep a block of each row from `room` on as what all lanes have in each step."""
        build = self.build
        for t, column in enumerate(self._columns(key, rows)):
            build.store(column, self._vector_at(self.loaded[key], key, build.add(room, I64(t))))

    def _ask_ahead(self, key, begin):
        """Ask for memory that is only read, some points ahead and from the end of these rows on in the next ones.

        Only where a block of a row is a line: of floats each line would be asked for twice, which costs what it brings.
        """
        build, size = self.build, self.frame.dtypes[key[0]].itemsize
        if key[0] in {each[0] for each in self.written} or self.rows * size < LINE_BYTES:
            return
        ahead = build.add(begin, I64(READ_AHEAD_BYTES // size))
        beyond = build.icmp_signed(">=", ahead, self.frame.count)
        point = build.select(beyond, build.sub(ahead, self.frame.count), ahead)
        rows = build.select(beyond, build.mul(self.across[key], I64(self.rows)), I64(0))
        for at in self._rows_at(key, point):
            prefetch(self.frame, build.gep(at, [rows], source_etype=I8), False)

    def _store_block(self, key, begin):
        build = self.build
        columns = [
            build.load(self._vector_at(self.stored[key], key, I64(t)), typ=self.vector(key)) for t in range(self.rows)
        ]
        if self.frame.steps[key] < 0:
            columns.reverse()
        rows = transpose(build, columns, self.vector_bytes, self.frame.dtypes[key[0]].itemsize)
        for at, row in reversed(list(zip(self._rows_at(key, begin), rows, strict=True))):  # lanes without a row first
            self._whole(build.store(row, at), key)
