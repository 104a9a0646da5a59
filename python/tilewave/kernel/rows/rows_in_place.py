"""Rows that follow each other in one place: steps of one row, whose written elements stay in registers meanwhile."""

import functools

from llvmlite import ir

from tilewave.kernel.rows.vectors import leave_as_it_is
from tilewave.kernel.types.emitting import CountedLoop, element
from tilewave.kernel.types.values import I8, I64, POINTER, ir_type

#: Vectors of a written row that are computed at once: of two arrays half as many each. They hide the latency of a step,
#: which each next step waits for (docs/theory/matrices.md, Pivots).
VECTORS = 8


def can_stay(frame):
    """Return whether a frame's rows may be computed together: points that neither raise nor call, rows next to each
    other."""
    nest, steps = frame.nest, frame.steps
    plain = not (frame.e.sites or frame.e.calls or nest.tables or nest.numbers or frame.strips)
    return plain and all(steps[p.key] == 1 if p.written else steps[p.key] in (0, 1) for p in nest.places)


def in_place_function(frame, vector_bytes):
    """Emit the function of rows of which each computes the same elements anew, into a new frame; it returns 1.

    ``live`` is the number of rows, ``ahead`` has the bytes by which each place moves from row to row. Where those
    written move, too, rows are computed one by one.
    """
    build = frame.build_at
    frame.open()
    width = vector_bytes // max(dtype.itemsize for dtype in frame.dtypes.values())
    vectors = max(1, VECTORS // len(frame.written()))
    first = dict(frame.places)
    across = {place.key: element(build, frame.ahead, k) for k, place in enumerate(frame.nest.places)}
    rooms = [{key: _room(frame, key, width) for key in frame.written()} for _ in range(vectors)]
    stays = [build.icmp_signed("==", across[key], I64(0)) for key in frame.written()]
    count = build.select(functools.reduce(build.and_, stays), frame.count, I64(0))
    begin = I64(0)
    for some in dict.fromkeys((vectors, 1)):
        begin = _chunks(frame, first, across, rooms[:some], width, (begin, count))
    left = build.icmp_signed("<", begin, frame.count)
    with build.if_then(left), CountedLoop(build, "row", I64(0), frame.live) as row:
        frame.places = _moved(frame, first, across, row)
        after = frame.row.append_basic_block("row_done")
        frame.loop({}, begin=begin, after=after)
        build.position_at_end(after)
    build.ret(I64(1))


def _room(frame, key, width):
    """Memory of a vector, whose elements are stored one by one, too."""
    room = frame.build_at.alloca(ir.VectorType(ir_type(frame.dtypes[key[0]]), width))
    room.type = POINTER  # of no type, which llvmlite would compare
    return room


def _moved(frame, first, across, row):
    build = frame.build_at
    return {key: build.gep(at, [build.mul(across[key], row)], source_etype=I8) for key, at in first.items()}


def _chunks(frame, first, across, rooms, width, ends):
    """All steps of as many chunks of some vectors as there are between two points; the first point that is left."""
    build, points, (begin, count) = frame.build_at, width * len(rooms), ends
    before, chunk, end = build.block, *map(frame.row.append_basic_block, ("chunk", "chunks_done"))
    last = build.sub(count, I64(points))
    build.cbranch(build.icmp_signed("<=", begin, last), chunk, end)
    build.position_at_end(chunk)
    start = build.phi(I64)
    start.add_incoming(begin, before)
    starts = [build.add(start, I64(width * n)) for n in range(len(rooms))]
    loaded = [
        {key: build.load(at, typ=kind, align=size) for key, at, kind, size in _memory(frame, first, width, s)}
        for s in starts
    ]
    steps = CountedLoop(build, "steps", I64(0), frame.live)
    with steps as row:
        states = [{key: build.phi(value.type) for key, value in each.items()} for each in loaded]
        frame.places = _moved(frame, first, across, row)
        once = {p.key: frame.load(p.key) for p in frame.nest.places if frame.is_invariant(p)}
        results = [
            _vector(frame, once, room, state, width, s) for room, state, s in zip(rooms, states, starts, strict=True)
        ]
        latch = build.block
    for phis, entering, following in zip(states, loaded, results, strict=True):
        for key, phi in phis.items():
            phi.add_incoming(entering[key], steps.before)
            phi.add_incoming(following[key], latch)
    leave_as_it_is(frame.module, steps.branch)
    for s, each in zip(starts, results, strict=True):
        for key, at, _, size in _memory(frame, first, width, s):
            build.store(each[key], at, align=size)
    following = build.add(start, I64(points))
    start.add_incoming(following, build.block)
    gone = build.block
    build.cbranch(build.icmp_signed("<=", following, last), chunk, end)
    build.position_at_end(end)
    left = build.phi(I64)
    left.add_incoming(begin, before)
    left.add_incoming(following, gone)
    return left


def _memory(frame, first, width, start):
    """(place, address, vector, alignment) of each written vector."""
    for key in frame.written():
        kind = ir_type(frame.dtypes[key[0]])
        at = frame.build_at.gep(first[key], [start], source_etype=kind)
        yield key, at, ir.VectorType(kind, width), frame.dtypes[key[0]].itemsize


def _vector(frame, once, room, state, width, start):
    """One step of a vector: LLVM makes it of a loop over its points."""
    build, zero = frame.build_at, I64(0)
    for key, value in state.items():
        build.store(value, room[key])
    inner = CountedLoop(build, "points", zero, I64(width))
    with inner as q:
        frame.point = build.add(start, q)
        cells = {key: build.gep(at, [q], source_etype=ir_type(frame.dtypes[key[0]])) for key, at in room.items()}
        old = {key: build.load(at, typ=ir_type(frame.dtypes[key[0]])) for key, at in cells.items()}
        frame.translate({**once, **{key: frame.parallel.mark(value) for key, value in old.items()}})
        for key, at in cells.items():
            frame.parallel.mark(build.store(frame.body.state.cells[key].ir, at))
    frame.parallel.close(inner.branch, width)
    return {key: build.load(room[key], typ=value.type) for key, value in state.items()}
