"""Functions of several rows whose points depend on each other."""

from llvmlite import ir

from tilewave.kernel.rows.wide_rows import ROWS_TYPE, SPAN
from tilewave.kernel.types.emitting import element, least
from tilewave.kernel.types.values import I8, I64, POINTER


def takes_any_order(frame):
    """Return whether a frame's body may be computed in another order of points: it neither raises nor calls."""
    return not (frame.e.sites or frame.e.calls or frame.nest.tables or frame.nest.numbers)


def several_rows_function(module, name, pointed, row, several, fewest, most, least_points):
    """Add the function of several rows, as `wide_rows.rows_function` says it: equal rows that follow each other
    together, others one by one.

    `pointed`: how many places there are, and how many bests, whose pointers follow. `several`: the function of
    `fewest` to `most` rows of at least so many points; it returns whether it has computed the rows."""
    places, bests = pointed
    rows = ir.Function(module, ROWS_TYPE, name)
    pointers, step, count, spans, following, index, direction, _, env = rows.args
    build = ir.IRBuilder(rows.append_basic_block("entry"))
    zero, one = I64(0), I64(1)
    here = build.alloca(ir.ArrayType(POINTER, places + bests))
    for k in range(places, places + bests):
        build.store(element(build, pointers, k, POINTER), build.gep(here, [I64(0), I64(k)]))
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
    enough, call, other = map(rows.append_basic_block, ("enough", "several", "other"))
    build.cbranch(build.icmp_signed(">=", points, I64(least_points)), enough, other)
    build.position_at_end(enough)
    equal = _equal_spans(build, of_row, build.sub(count, span), most)
    build.cbranch(build.icmp_signed(">=", equal, I64(fewest)), call, other)
    build.position_at_end(call)
    computed = build.call(several, [here, step, points, index, direction, env, following, equal])
    build.cbranch(build.icmp_signed("!=", computed, zero), on, other)
    build.position_at_end(other)
    build.call(row, [here, step, points, index, direction, env])
    build.branch(on)
    build.position_at_end(on)
    by = build.phi(I64)
    by.add_incoming(equal, call)
    by.add_incoming(one, other)
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
