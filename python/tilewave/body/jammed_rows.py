"""Rows whose points depend on each other, several at once: each a few points behind the one before it."""

from llvmlite import ir

from .values import I1, I8, I64, POINTER, constant
from .wide_rows import SPAN

#: Rows that are computed together (also `PreparedSweep::stagger`). A chain of dependent operations leaves most of a core idle,
#: a few chains fill it. Zen 3, ns a point with 3, 4, 6, 8 of them: 1024x1024 doubles 0.8, 0.7, 0.9, 1.0 (alone 2.0).
ROWS_TOGETHER = 4

#: Points of a row beside those at its ends from which it pays.
LEAST_POINTS = 16


def can_jam(frame):
    """Whether a frame's body may be computed in another order of points: it neither raises nor calls, and tells nothing of a row."""
    return not (frame.e.sites or frame.e.calls or frame.nest.tables or frame.nest.numbers or frame.bests.wanted)


def jam_function(frame, stagger):
    """Emit the function of `ROWS_TOGETHER` rows into a frame of its own; the frame's ``ahead`` says how rows follow each other.

    Point q of row r comes together with point q - stagger of row r + 1, which depends on none after it. Where the rows
    begin and end they are computed one after the other, as far as they are ahead of the next.
    """
    build, count, last = frame.build_at, frame.count, ROWS_TOGETHER - 1
    frame.done = frame.row.append_basic_block("done")
    frame.open()
    rows = [{} for _ in range(ROWS_TOGETHER)]
    for k, place in enumerate(frame.nest.places):
        across = build.load(build.gep(frame.ahead, [constant("int64", k)], source_etype=I64), typ=I64)
        for r, places in enumerate(rows):
            places[place.key] = build.gep(frame.places[place.key], [build.mul(across, constant("int64", r))], source_etype=I8)
    frame.places = rows[0]
    carried = _carried(frame)
    follows = frame.follows(carried) if carried else ir.Constant(I1, 1)
    for r in range(last):
        _points(frame, rows[r], constant("int64", 0), constant("int64", stagger * (last - r)))
    kept, loaded, end = (frame.row.append_basic_block(name) for name in ("kept", "loaded", "ends"))
    build.cbranch(follows, kept, loaded)
    for block, values in ((kept, carried), (loaded, {})):
        build.position_at_end(block)
        _together(frame, rows, stagger, values, end)
    build.position_at_end(end)
    for r in range(1, ROWS_TOGETHER):
        _points(frame, rows[r], build.sub(count, constant("int64", stagger * r)), count)
    build.branch(frame.done)
    build.position_at_end(frame.done)
    build.ret(constant("int64", 0))


def _carried(frame):
    """Places whose value stays in a register from point to point, though other rows are computed in between: nobody else writes it."""
    written = [key[0] for key in frame.written()]
    return {key: writer for key, writer in frame.carried_places().items() if written.count(writer[0]) == 1}


def _points(frame, places, begin, end):
    """Points `begin` to `end` of one row, of which there may be none."""
    build, before = frame.build_at, frame.build_at.block
    loop, beyond = (frame.row.append_basic_block(name) for name in ("points", "beyond"))
    build.cbranch(build.icmp_signed("<", begin, end), loop, beyond)
    build.position_at_end(loop)
    point = build.phi(I64)
    point.add_incoming(begin, before)
    _point(frame, places, point, {})
    more = build.add(point, constant("int64", 1))
    point.add_incoming(more, build.block)
    build.cbranch(build.icmp_signed("<", more, end), loop, beyond)
    build.position_at_end(beyond)


def _together(frame, rows, stagger, carried, end):
    """The points at which all rows are under way."""
    build, first = frame.build_at, stagger * (len(rows) - 1)
    points = [constant("int64", first - stagger * r) for r in range(len(rows))]
    ahead = []
    for places, point in zip(rows, points, strict=True):
        frame.places, frame.point = places, point
        ahead.append({key: frame.load(key) for key in carried})
    before, loop = build.block, frame.row.append_basic_block("together")
    build.branch(loop)
    build.position_at_end(loop)
    now = build.phi(I64)
    now.add_incoming(constant("int64", first), before)
    previous = [{key: build.phi(value.type) for key, value in values.items()} for values in ahead]
    results = []
    for r, places in enumerate(rows):
        _point(frame, places, build.sub(now, constant("int64", stagger * r)), previous[r])
        results.append({key: frame.body.state.cells[writer].ir for key, writer in carried.items()})
    for values, phis, following in zip(ahead, previous, results, strict=True):
        for key, phi in phis.items():
            phi.add_incoming(values[key], before)
            phi.add_incoming(following[key], build.block)
    more = build.add(now, constant("int64", 1))
    now.add_incoming(more, build.block)
    build.cbranch(build.icmp_signed("<", more, frame.count), loop, end)


def _point(frame, places, point, known):
    frame.places, frame.point = places, point
    frame.translate(known)
    frame.write_back(frame.written())


def rows_function(module, jam, row, name, places, stagger):
    """Add the function of several rows, as `wide_rows.rows_function` says it: equal rows that follow each other together, others alone."""
    kind = ir.FunctionType(I64, [POINTER, POINTER, I64, POINTER, POINTER, POINTER, POINTER, POINTER, POINTER])
    rows = ir.Function(module, kind, name)
    pointers, step, count, spans, following, index, direction, _, env = rows.args
    build = ir.IRBuilder(rows.append_basic_block("entry"))
    zero, one, together = constant("int64", 0), constant("int64", 1), constant("int64", ROWS_TOGETHER)

    def number(array, k, of=I64):
        return build.load(build.gep(array, [constant("int64", k)], source_etype=of), typ=of)

    here = build.alloca(ir.ArrayType(POINTER, places))
    first = [number(pointers, k, POINTER) for k in range(places)]
    ways = [(number(following, k), number(step, k)) for k in range(places)]
    entry = build.block
    loop, look, several, alone, on, done = map(rows.append_basic_block, ("row", "look", "several", "alone", "on", "done"))
    build.cbranch(build.icmp_signed(">", count, zero), loop, done)
    build.position_at_end(loop)
    span = build.phi(I64)
    span.add_incoming(zero, entry)
    of_row = build.gep(spans, [build.mul(span, constant("int64", SPAN))], source_etype=I64)
    row_number, begin, points = (number(of_row, k) for k in range(SPAN))
    for k, (across, along) in enumerate(ways):
        moved = build.add(build.mul(row_number, across), build.mul(begin, along))
        build.store(build.gep(first[k], [moved], source_etype=I8), build.gep(here, [zero, constant("int64", k)]))
    least = constant("int64", stagger * (ROWS_TOGETHER - 1) + LEAST_POINTS)
    enough = build.and_(build.icmp_signed("<=", build.add(span, together), count), build.icmp_signed(">=", points, least))
    build.cbranch(enough, look, alone)
    build.position_at_end(look)
    alike = ir.Constant(I1, 1)
    for r in range(1, ROWS_TOGETHER):
        expected = build.add(row_number, constant("int64", r)), begin, points
        for k, value in enumerate(expected):
            alike = build.and_(alike, build.icmp_signed("==", number(of_row, r * SPAN + k), value))
    build.cbranch(alike, several, alone)
    build.position_at_end(several)
    build.call(jam, [here, step, points, index, direction, env, following])
    build.branch(on)
    build.position_at_end(alone)
    build.call(row, [here, step, points, index, direction, env])
    build.branch(on)
    build.position_at_end(on)
    gone = build.phi(I64)
    gone.add_incoming(together, several)
    gone.add_incoming(one, alone)
    after = build.add(span, gone)
    span.add_incoming(after, on)
    build.cbranch(build.icmp_signed("<", after, count), loop, done)
    build.position_at_end(done)
    build.ret(zero)
