"""Rows whose points depend on each other, several at once: each a few points behind the one before it."""

from llvmlite import ir

from tilewave.kernel.rows.vectors import leave_as_it_is
from tilewave.kernel.rows.wide_rows import ROWS_TYPE, SPAN
from tilewave.kernel.types.emitting import CountedLoop, element, least
from tilewave.kernel.types.values import I1, I8, I64, POINTER

#: Rows that are computed together (also `PreparedSweep::stagger`). A chain of dependent operations leaves most of a
#: core idle, a few chains fill it. Zen 3, ns a point with 3, 4, 6, 8 of them: 1024x1024 doubles 0.8, 0.7, 0.9, 1.0
#: (alone 2.0).
ROWS_TOGETHER = 4

#: Points of a row, without those at its ends, from which it pays.
LEAST_POINTS = 16


def can_jam(frame):
    """Whether a frame's body may be computed in another order of points: it neither raises nor calls, and tells nothing
    of a row.
    """
    return not (frame.e.sites or frame.e.calls or frame.nest.tables or frame.nest.numbers or frame.bests.wanted)


def stagger_of(staggered):
    """Points that each row is behind the one before it: 2 are faster than 1, and rows that meet in a page keep
    a distance.
    """
    return max(8 if staggered.meet else 2, staggered.points)


def jam_points(staggered):
    """Points of a row from which four together pay."""
    return stagger_of(staggered) * (ROWS_TOGETHER - 1) + LEAST_POINTS


def jam_function(frame, staggered):
    """Emit the function of `ROWS_TOGETHER` rows into a new frame, which returns 1; ``ahead`` says how they
    follow each other.

    Point q of row r comes together with point q - stagger of row r + 1, which depends on none after it. Where the rows
    begin and end they are computed one after the other, as far as they are ahead of the next.
    """
    stagger = stagger_of(staggered)
    build, count, last = frame.build_at, frame.count, ROWS_TOGETHER - 1
    frame.open()
    first = frame.places
    across = {place.key: element(build, frame.ahead, k) for k, place in enumerate(frame.nest.places)}

    def row(r):
        return {key: build.gep(at, [build.mul(across[key], r)], source_etype=I8) for key, at in first.items()}

    rows = [row(I64(r)) for r in range(ROWS_TOGETHER)]
    carried = _carried(frame)
    follows = frame.follows(carried) if carried else I1(1)
    with CountedLoop(build, "row", I64(0), I64(last)) as r:
        _points(frame, row(r), I64(0), build.mul(build.sub(I64(last), r), I64(stagger)))
    registers, memory, end = (frame.row.append_basic_block(name) for name in ("registers", "memory", "ends"))
    build.cbranch(follows, registers, memory)
    for block, values in ((registers, carried), (memory, {})):
        build.position_at_end(block)
        _together(frame, rows, stagger, values, end)
    build.position_at_end(end)
    with CountedLoop(build, "row", I64(1), I64(ROWS_TOGETHER)) as r:
        _points(frame, row(r), build.sub(count, build.mul(r, I64(stagger))), count)
    build.ret(I64(1))


def _carried(frame):
    """Places whose value stays in a register from point to point, though other rows are computed in between: nobody
    else writes it.
    """
    written = [key[0] for key in frame.written()]
    return {key: writer for key, writer in frame.carried_places().items() if written.count(writer[0]) == 1}


def _points(frame, places, begin, end):
    """Points `begin` to `end` of one row, of which there may be none."""
    build = frame.build_at
    with build.if_then(build.icmp_signed("<", begin, end)):
        loop = CountedLoop(build, "points", begin, end)
        with loop as point:
            _point(frame, places, point, {})
        leave_as_it_is(frame.module, loop.branch)


def _together(frame, rows, stagger, carried, end):
    """The points at which all rows are computed together."""
    build, first = frame.build_at, stagger * (len(rows) - 1)
    points = [I64(first - stagger * r) for r in range(len(rows))]
    ahead = []
    for places, point in zip(rows, points, strict=True):
        frame.places, frame.point = places, point
        ahead.append({key: frame.load(key) for key in carried})
    loop = CountedLoop(build, "together", I64(first), frame.count)
    with loop as now:
        previous = [{key: build.phi(value.type) for key, value in values.items()} for values in ahead]
        results = []
        for r, places in enumerate(rows):
            _point(frame, places, build.sub(now, I64(stagger * r)), previous[r])
            results.append({key: frame.body.state.cells[writer].ir for key, writer in carried.items()})
        for values, phis, following in zip(ahead, previous, results, strict=True):
            for key, phi in phis.items():
                phi.add_incoming(values[key], loop.before)
                phi.add_incoming(following[key], build.block)
    build.branch(end)


def _point(frame, places, point, known):
    frame.places, frame.point = places, point
    frame.translate(known)
    frame.write_back(frame.written())


def rows_function(module, name, places, row, variants):
    """Add the function of several rows, as `wide_rows.rows_function` says it: equal rows that follow each other
    together, others one by one.

    `variants`: functions of several rows in the order in which they are tried, each with the least and the most rows
    and the points from which it pays. Each returns whether it has computed the rows."""
    rows = ir.Function(module, ROWS_TYPE, name)
    pointers, step, count, spans, following, index, direction, _, env = rows.args
    build = ir.IRBuilder(rows.append_basic_block("entry"))
    zero, one = I64(0), I64(1)
    here = build.alloca(ir.ArrayType(POINTER, places))
    first = [element(build, pointers, k, POINTER) for k in range(places)]
    moves = [(element(build, following, k), element(build, step, k)) for k in range(places)]
    entry = build.block
    loop, on, done = map(rows.append_basic_block, ("row", "on", "done"))
    build.cbranch(build.icmp_signed(">", count, zero), loop, done)
    build.position_at_end(loop)
    span = build.phi(I64)
    span.add_incoming(zero, entry)
    of_row = build.gep(spans, [build.mul(span, I64(SPAN))], source_etype=I64)
    row_number, begin, points = (element(build, of_row, k) for k in range(SPAN))
    for k, (across, along) in enumerate(moves):
        moved = build.add(build.mul(row_number, across), build.mul(begin, along))
        build.store(build.gep(first[k], [moved], source_etype=I8), build.gep(here, [zero, I64(k)]))
    gone = []
    for function, fewest, most, least_points in variants:
        enough, call, did, other = map(rows.append_basic_block, ("enough", "several", "did", "other"))
        build.cbranch(build.icmp_signed(">=", points, I64(least_points)), enough, other)
        build.position_at_end(enough)
        equal = _equal_spans(build, of_row, build.sub(count, span), most)
        build.cbranch(build.icmp_signed(">=", equal, I64(fewest)), call, other)
        build.position_at_end(call)
        computed = build.call(function, [here, step, points, index, direction, env, following, equal])
        build.cbranch(build.icmp_signed("!=", computed, zero), did, other)
        build.position_at_end(did)
        build.branch(on)
        gone.append((equal, did))
        build.position_at_end(other)
    build.call(row, [here, step, points, index, direction, env])
    gone.append((one, build.block))
    build.branch(on)
    build.position_at_end(on)
    by = build.phi(I64)
    for computed, block in gone:
        by.add_incoming(computed, block)
    after = build.add(span, by)
    span.add_incoming(after, on)
    build.cbranch(build.icmp_signed("<", after, count), loop, done)
    build.position_at_end(done)
    build.ret(zero)


def _equal_spans(build, spans, left, most):
    """How many of the first spans, of those that are left and `most`, say the same points of rows that follow each
    other.
    """
    one, before = I64(1), build.block
    most = least(build, left, I64(most))
    loop, look, found = map(build.function.append_basic_block, ("equal", "look", "found"))
    build.branch(loop)
    build.position_at_end(loop)
    rows = build.phi(I64)
    rows.add_incoming(one, before)
    build.cbranch(build.icmp_signed("<", rows, most), look, found)
    build.position_at_end(look)
    span = build.gep(spans, [build.mul(rows, I64(SPAN))], source_etype=I64)
    expected = build.add(element(build, spans, 0), rows), element(build, spans, 1), element(build, spans, 2)
    same = [build.icmp_signed("==", element(build, span, k), value) for k, value in enumerate(expected)]
    rows.add_incoming(build.add(rows, one), look)
    build.cbranch(build.and_(build.and_(*same[:2]), same[2]), loop, found)
    build.position_at_end(found)
    return rows
