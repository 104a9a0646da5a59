"""A check before a row's loop that all its lookups are inside their tables.

A check in every point would leave the loop in its middle, which keeps LLVM from computing several
points at once. Subscripts that are elements of arrays that are only read, indices, scalars and
constants are therefore looked at ahead: the greatest element of a row, as an unsigned number, tells
whether all are in range, and the ends of a row do for what is linear in its points, and for a quotient
of that by a positive constant. Where a negative
or wrong subscript is found, or a subscript is of another kind, the loop with its checks runs.
"""

import ast

from llvmlite import ir

from tilewave.kernel.types.casts import cast
from tilewave.kernel.types.emitting import CountedLoop
from tilewave.kernel.types.values import I1, I8, I64, ir_type
from tilewave.nest.inner_loops import is_element
from tilewave.nest.subscript import MOST_SCALE, linear_form, subscripts_of
from tilewave.nest.types import INT

#: Distances within tables of fewer bytes are computed with 32 bits.
NEAR = 2**31


def lookups_to_check(nest, dtypes, slots):
    """(table, axis, subscript) of every lookup; None where one cannot be computed before the loop."""
    found = []
    if nest.inner:
        return None
    for node in nest.source.nodes:
        if not is_element(node) or node.value.id not in nest.tables:
            continue
        for axis, part in enumerate(subscripts_of(node)):
            if _kind(nest, dtypes, slots, part) is None:
                return None
            found.append((node.value.id, axis, part))
    return found


def _kind(nest, dtypes, slots, part):
    if is_element(part):
        name = part.value.id
        known = name not in nest.tables and name not in nest.written and dtypes[name].kind in "iu"
        return "element" if known else None
    if isinstance(part, ast.Name) and part.id in nest.scalars:
        kind = next(slot.type for slot in slots if slot.name == part.id)
        return "scalar" if kind.is_int else None
    form = linear_form(_divided(part)[0])
    small = {slot.name for slot in slots if slot.type == INT and -NEAR <= slot.low and slot.high < NEAR}
    known = {*nest.indices, *small.intersection(nest.scalars)}
    return "linear" if form is not None and form[0].keys() <= known else None


def _divided(part):
    """(dividend, operator, divisor) of a quotient or remainder by a positive constant; else (itself, None, 1).

    As unsigned numbers, quotients of negative ones by so small a divisor are greater than any extent.
    """
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.FloorDiv | ast.Mod):
        divisor = linear_form(part.right)
        if divisor and not divisor[0] and 1 <= divisor[1] <= MOST_SCALE:
            return part.left, part.op, divisor[1]
    return part, None, 1


def unchecked_loops(frame, lookups, emit):
    """Emit loops without checks, by `emit`, for where all lookups are inside their tables; what is emitted next is for
    where they are not. Where those of indices read elements one behind the other LLVM need not gather them.
    """
    inside = _lookups_are_inside(frame, lookups)
    straight, addresses = _straight_lookups(frame)

    def unchecked(addresses):
        frame.tables.checked, frame.tables.straight = False, addresses
        emit()
        frame.tables.checked, frame.tables.straight = True, {}

    if addresses:
        frame.split(frame.e.builder.and_(inside, straight), lambda: unchecked(addresses))
    frame.split(inside, lambda: unchecked({}))


def _straight_lookups(frame):
    """Return whether the lookups by indices and scalars read elements one behind the other, as an LLVM i1; and what
    gives the address of each in a point.
    """
    build, nest, straight, addresses = frame.e.builder, frame.nest, I1(1), {}
    for node in nest.source.nodes:
        if not is_element(node) or node.value.id not in nest.tables:
            continue
        table, kinds = node.value.id, [_kind(nest, frame.dtypes, frame.slots, part) for part in subscripts_of(node)]
        if "element" in kinds or "linear" not in kinds:
            continue
        (base, _, strides), distance, change = frame.tables.known[table], I64(0), I64(0)
        for part, kind, stride in zip(subscripts_of(node), kinds, strides, strict=True):
            first, by = (_extremes(frame, part, {})[0], I64(0)) if kind == "scalar" else _begin(frame, part)
            if kind == "linear" and _divided(part)[1]:
                straight = build.and_(straight, build.icmp_signed("==", by, I64(0)))
            distance = build.add(distance, build.mul(first, stride))
            change = build.add(change, build.mul(by, stride))
        bytes_ = I64(frame.dtypes[table].itemsize)
        straight = build.and_(straight, build.icmp_signed("==", change, bytes_))
        pointer = build.gep(base, [distance], source_etype=I8)
        addresses[node] = lambda pointer=pointer, bytes_=bytes_: build.gep(
            pointer, [build.mul(frame.point, bytes_)], source_etype=I8
        )
    return straight, addresses


def _begin(frame, part):
    """A linear subscript, or a quotient or remainder, in the first point; and by what a point changes it, or the
    dividend.
    """
    part, operator, divisor = _divided(part)
    build, (factors, offset) = frame.e.builder, linear_form(part)
    first, by = I64(offset), I64(0)
    for name, factor in factors.items():
        start, change = frame.first[name] if name in frame.first else (frame.names[name].only.ir, I64(0))
        first = build.add(first, build.mul(start, I64(factor)))
        by = build.add(by, build.mul(change, I64(factor)))
    if isinstance(operator, ast.FloorDiv):  # of what is inside, at least 0
        first = build.udiv(first, I64(divisor))
    elif operator:
        rest = build.srem(first, I64(divisor))
        first = build.select(build.icmp_signed("<", rest, I64(0)), build.add(rest, I64(divisor)), rest)
    return first, by


def _lookups_are_inside(frame, lookups):
    """Emit the check before the loop; the result is an LLVM i1."""
    build = frame.e.builder
    greatest = _greatest_elements(frame, {frame.nest.place_of(part) for _, _, part in lookups if is_element(part)})
    inside = I1(1)
    for table, axis, part in lookups:
        extent = frame.tables.known[table][1][axis]
        for value in _extremes(frame, part, greatest):
            inside = build.and_(inside, build.icmp_unsigned("<", value, extent))
    for _, extents, strides in (frame.tables.known[name] for name in frame.nest.tables):
        inside = build.and_(inside, is_near(build, extents, strides))
    return inside


def is_near(build, extents, strides):
    """Return whether every element of a table is less than 2**31 bytes from its first."""
    near, span = I1(1), I64(0)
    for extent, stride in zip(extents, strides, strict=True):
        size = build.select(build.icmp_signed("<", stride, I64(0)), build.neg(stride), stride)
        for number in (extent, size):
            near = build.and_(near, build.icmp_unsigned("<", number, I64(NEAR)))
        span = build.add(span, build.mul(extent, size))
        near = build.and_(near, build.icmp_unsigned("<", span, I64(NEAR)))
    return near


def _extremes(frame, part, greatest):
    """64-bit numbers that are within an extent, as unsigned ones, if a subscript is in every point."""
    if is_element(part):
        return [greatest[frame.nest.place_of(part)]]
    if isinstance(part, ast.Name) and part.id in frame.nest.scalars:
        typed = frame.names[part.id].only
        return [cast(frame.e, typed.ir, typed.type.dtype, INT.dtype)]
    part, operator, divisor = _divided(part)
    if isinstance(operator, ast.Mod):
        return [I64(divisor - 1)]
    build, (factors, offset) = frame.e.builder, linear_form(part)
    last = build.sub(frame.count, I64(1))
    ends = [I64(offset)] * 2
    for name, factor in factors.items():
        start, change = frame.first[name] if name in frame.first else (frame.names[name].only.ir, I64(0))
        for k, value in enumerate((start, build.add(start, build.mul(last, change)))):
            ends[k] = build.add(ends[k], build.mul(value, I64(factor)))
    return [build.udiv(end, I64(divisor)) for end in ends] if operator else ends


def _greatest_elements(frame, places):
    """The greatest element of each place in the row, as an unsigned number of 64 bits.

    A negative one is greater than any extent.
    """
    if not places:
        return {}
    build, places = frame.e.builder, sorted(places)
    loop, greatest = CountedLoop(build, "look", I64(0), frame.count), {}
    with loop as frame.point:
        best = {place: build.phi(ir_type(frame.dtypes[place[0]])) for place in places}
        for place, phi in best.items():
            phi.add_incoming(ir.Constant(phi.type, 0), loop.before)
            value = frame.marked(frame.load(place))
            greatest[place] = build.select(build.icmp_unsigned(">", value, phi), value, phi)
            phi.add_incoming(greatest[place], build.block)
    frame.parallel.close(loop.branch)
    return {place: cast(frame.e, value, frame.dtypes[place[0]], INT.dtype) for place, value in greatest.items()}
