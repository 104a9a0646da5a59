"""Rows of independent points as whole vectors, and several rows in one call."""

from llvmlite import ir

from tilewave.kernel.types.emitting import CountedLoop, element, least
from tilewave.kernel.types.values import I8, I32, I64, POINTER, ir_type

#: The type of a function of several rows; `rows_function` names its arguments.
ROWS_TYPE = ir.FunctionType(I64, [POINTER, POINTER, I64, *[POINTER] * 6])

#: Numbers that say where a row of a call of several is: its number, first point and points.
SPAN = 3

#: With three loops and more: rows whose memory is asked for ahead, at most, and the bytes of these and of the rows of
#: other planes that come between, at most: a third of a first-level cache. Zen 5, fields of 64x64x4096, ns a point with
#: 0, 2, 4, 8 rows: floats, one array 0.46, 0.18, 0.15, 0.15, four 0.77, 0.59, 0.63, 0.68; doubles 0.53, 0.33, 0.30,
#: 0.32 and 1.86, 1.33, 1.51, 1.67.
ROWS_AHEAD = 4
AHEAD_BYTES = 16 << 10
PLANES_BETWEEN = 4


def vector_points(dtypes, vector_bytes):
    """How many points fill a vector of the widest of some dtypes."""
    return vector_bytes // max(dtype.itemsize for dtype in dtypes)


def chunk_loop(frame, width, rows=None):
    """Emit the loop over a row, `width` points at a time, from here to ``frame.done``.

    The last chunk ends with the row, so that no points are left over, and the second is where the
    stores are aligned: they overlap the ones before. A chunk is stored after the next one is computed, so
    that both compute the points that they share from the values before the row. LLVM makes vectors of the
    inner loop, whose results stay in registers. The memory of rows to come is asked for ahead. `rows`: has the
    lookups of the points ready (`LookedUpRows`), in rows that are no shorter than a chunk.
    """
    build, row = frame.build_at, frame.row
    if rows is None:
        frame.split(build.icmp_signed("<", frame.count, I64(width)), lambda: frame.loop({}, 1))
    with build.goto_entry_block():
        rooms = {key: build.alloca(ir.ArrayType(ir_type(frame.dtypes[key[0]]), width)) for key in frame.written()}
    shapes = {key: ir.VectorType(ir_type(frame.dtypes[key[0]]), width) for key in rooms}
    zero = I64(0)
    frame.bests.open_vectors(width)
    frame.point, frame.body = zero, None
    ahead = {place.key: frame.load(place.key) for place in frame.nest.places if frame.is_invariant(place)}
    last = build.sub(frame.count, I64(width))
    ahead_of = _ahead(frame)
    second = _second_chunk(frame, width, last)
    # What the first chunk finds to be stored: the values that are there.
    old = {key: _load(frame, shapes[key], frame.places[key], key) for key in frame.stored()}
    before, chunk, end = build.block, *map(row.append_basic_block, ("chunk", "end"))
    build.branch(chunk)
    build.position_at_end(chunk)
    start, stored, following = build.phi(I64), build.phi(I64), build.phi(I64)
    previous = {key: build.phi(shapes[key]) for key in old}
    if rows:
        rows.provide(start, width, stored)
    inner = CountedLoop(build, "points", zero, I64(width))
    with inner as q:
        frame.point = build.add(start, q)
        frame.translate(ahead)
        for key, room in rooms.items():
            build.store(frame.body.state.cells[key].ir, build.gep(room, [zero, q]))
    frame.parallel.close(inner.branch, width)
    results = {key: _load(frame, shape, rooms[key], key) for key, shape in shapes.items()}
    frame.bests.take_vectors(results)
    _store(frame, previous, stored)
    for key, distance in ahead_of.items():
        prefetch(frame, build.gep(frame.address(key), [distance], source_etype=I8), key in old)
    to = least(build, following, last)
    advance = build.add(following, I64(width))
    for phi, first, then in (
        (start, zero, to),
        (stored, zero, start),
        (following, second, advance),
        *((previous[key], old[key], results[key]) for key in previous),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(then, build.block)
    build.cbranch(build.icmp_signed("==", start, last), end, chunk)
    build.position_at_end(end)
    _store(frame, {key: results[key] for key in old}, last)
    frame.bests.close_vectors(width)
    build.branch(frame.done)
    if rows:
        rows.closed()


def _ahead(frame):
    """From places to the bytes by which memory is asked for ahead of them, in this row function.

    With two loops rows are as long as a side of the array, and the next one begins pages on: what is written is asked
    for a row ahead, since a store that waits for its line holds up those behind it. With more loops rows are too short
    for the processor to see where they go: all that no row before has touched is asked for some rows ahead. Of an array
    in time that is a row of each time step, as each step has other memory. 7-point heat, 256³ floats, a step at a
    time on an AMD EPYC: 1.50 GPts/s where only the step that is written was asked for, 1.91 with both.

    No row beyond those of the call is asked for: another lane may be writing it. Of two lanes of heat on 232³ floats
    the one whose first rows the other asked for took 10 % longer, now 6 %.
    """
    build, nest = frame.build_at, frame.nest
    next_row = {place.key: element(build, frame.ahead, k) for k, place in enumerate(nest.places)}
    left = element(build, frame.ahead, len(nest.places))  # rows of the call after this one
    if nest.rank == 2:
        one = least(build, left, I64(1))
        return {key: build.mul(one, next_row[key]) for key in frame.stored()}
    in_order = sorted(
        (place for place in nest.places if place.key not in frame.bests.unstored), key=lambda place: place.offsets
    )
    fresh = {(place.array, _time_step(nest, place)): place.key for place in in_order if frame.steps[place.key] != 0}
    point_bytes = sum(frame.dtypes[array].itemsize for array, _ in fresh)
    row_bytes = build.mul(frame.count, I64(point_bytes * PLANES_BETWEEN))
    rows = I64(0)
    for count in range(1, ROWS_AHEAD + 1):
        few = build.icmp_signed("<=", build.mul(row_bytes, I64(count)), I64(AHEAD_BYTES))
        rows = build.select(few, I64(count), rows)
    rows = least(build, rows, left)
    return {key: build.mul(rows, next_row[key]) for key in fresh.values()}


def _time_step(nest, place):
    """The time step of a place, relative to the point's; 0 where its array does not change in time."""
    return place.offsets[0] if nest.time is not None and place.axes[:1] == (nest.time,) else 0


def _second_chunk(frame, width, last):
    """The point, 1 to `width`, from which chunks of the first written place are aligned in memory.

    `width` in rows of less than two chunks: the last one must not overlap two.
    """
    build, whole = frame.build_at, I64(width)
    if not frame.stored():
        return whole
    key = frame.stored()[0]
    elements = build.udiv(build.ptrtoint(frame.places[key], I64), I64(frame.dtypes[key[0]].itemsize))
    beyond = build.and_(elements, I64(width - 1))
    return build.select(build.icmp_signed("<", last, whole), whole, build.sub(whole, beyond))


def _load(frame, shape, address, key):
    load = frame.build_at.load(address, typ=shape)
    load.align = frame.dtypes[key[0]].itemsize
    return load


def _store(frame, vectors, point):
    frame.point = point
    for key, vector in vectors.items():
        store = frame.build_at.store(vector, frame.address(key))
        store.align = frame.dtypes[key[0]].itemsize


def prefetch(frame, address, written=True):
    """Ask for memory that is about to be written, or else read."""
    kind = ir.FunctionType(ir.VoidType(), [POINTER, I32, I32, I32])
    function = frame.module.declare_intrinsic("llvm.prefetch", (POINTER,), kind)
    to_write, near, data = (I32(value) for value in (int(written), 3, 1))
    frame.build_at.call(function, [address, to_write, near, data])


def row_function(frame, name):
    """Add a function to the module that calls the frame's for one row that no other follows."""
    frame.row.attributes.add("alwaysinline")
    frame.row.linkage = "internal"
    row = ir.Function(frame.module, ir.FunctionType(I64, [*frame.row.function_type.args[:-1]]), name)
    nothing = ir.GlobalVariable(frame.module, ir.ArrayType(I64, len(frame.nest.places) + 1), f"{name}_nothing")
    nothing.initializer = ir.Constant(nothing.value_type, None)
    nothing.global_constant = True
    build = ir.IRBuilder(row.append_basic_block("entry"))
    build.ret(build.call(frame.row, [*row.args, nothing]))


def rows_function(frame, name):
    """Add a function to the module that calls the row function for several rows, made one with it.

    ``int64 rows(char* const* pointers, const int64* step, int64 count, const int64* spans, const int64* next, const
    int64* index, const int64* direction, const int64* turn, const void* env)``"""
    rows = ir.Function(frame.module, ROWS_TYPE, name)
    pointers, step, count, spans, following, index, direction, turn, env = rows.args
    build = ir.IRBuilder(rows.append_basic_block("entry"))

    nest, places = frame.nest, len(frame.nest.places)
    fixed = places + len(nest.tables) + len(frame.bests.wanted)
    here = build.alloca(ir.ArrayType(POINTER, fixed))
    at = build.alloca(ir.ArrayType(I64, max(len(nest.indices), 1)))
    ahead = build.alloca(ir.ArrayType(I64, places + 1))
    zero = I64(0)

    def put(room, k, value):
        build.store(value, build.gep(room, [zero, I64(k)]))

    first = [element(build, pointers, k, POINTER) for k in range(fixed)]
    moves = []  # bytes from row to row and from point to point
    for k, place in enumerate(nest.places):
        elements, size = frame.steps[place.key], frame.dtypes[place.array].itemsize
        along = element(build, step, k) if elements is None else I64(elements * size)
        moves.append((element(build, following, k), along))
        put(ahead, k, moves[k][0])
    for k in range(places, fixed):
        put(here, k, first[k])
    used = [axis for axis, name in enumerate(nest.indices) if name in nest.numbers]
    turns = {
        axis: (element(build, index, axis), element(build, turn, axis), element(build, direction, axis))
        for axis in used
    }
    loop = CountedLoop(build, "row", zero, count)
    with build.if_then(build.icmp_signed(">", count, zero)), loop as span:
        of_row = build.gep(spans, [build.mul(span, I64(SPAN))], source_etype=I64)
        row, begin, points = (element(build, of_row, k) for k in range(SPAN))
        for k, (across, along) in enumerate(moves):
            moved = build.add(build.mul(row, across), build.mul(begin, along))
            put(here, k, build.gep(first[k], [moved], source_etype=I8))
        for axis, (start, across, along) in turns.items():
            put(at, axis, build.add(start, build.add(build.mul(row, across), build.mul(begin, along))))
        put(ahead, places, build.sub(count, build.add(span, I64(1))))
        code = build.call(frame.row, [here, step, points, at, direction, env, ahead])
        with build.if_then(build.icmp_signed("!=", code, zero)):
            build.ret(build.or_(code, build.shl(span, I64(32))))
    build.ret(zero)
