"""Powers with some literal exponents by products, quotients and roots, with the bits of the C library's pow.

The result is rounded once from a product of twice the precision, say, and what rounding left is known. pow rounds to
the same number unless the exact result is near the middle between two; only there it is asked (docs/theory/rows.md).
"""

import dataclasses
import functools
import platform

import numpy as np
from llvmlite import ir

from tilewave._core import without
from tilewave.kernel.emit.instructions import features
from tilewave.kernel.types.emitting import CountedLoop, least
from tilewave.kernel.types.values import I64, ir_type

EXPONENTS = (2.0, 3.0, 4.0, 0.5, -1.0)

#: Which pow has the error below: that of glibc since this version.
LEAST_GLIBC = (2, 28)

#: By the bytes of a number, the largest error of pow in units of the last place, and k: for results between 2**-k and
#: 2**k. e_pow.c: 0.511 + 1.5 * 2**-15 * k * ln 2 = 0.5151. e_powf.c: 0.5 + 2**-10 * (1.69 + 2 * 1.83 * 0.09 * 4 * ln 2)
#: = 0.5026, as log2 has a relative error below 1.83 * 2**-33 of the part below 0.09 that is no table's.
ERROR_ULP = {8: 0.5155, 4: 0.504}
RANGE = {8: 128, 4: 100}

#: Points whose doubts are collected before pow is called, a bit each; no more than strips have room for behind them.
BLOCK = 64


@functools.cache
def exponents(off):
    """Return the exponents, none where the path is among those that are ``off``, or the C library's pow is unknown."""
    library, version = platform.libc_ver()
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    known = library == "glibc" and numbers >= LEAST_GLIBC and features().get("fma")
    return EXPONENTS if known and not without(off, "powers") else ()


def power_of_one(e, function, x):
    """Emit the power of one number; ``function`` has the exponent as its name."""
    build = e.builder
    result, doubtful = _rounded(e, function, x)
    before = build.block
    with build.if_then(doubtful, likely=False):
        exact, there = _pow(e, function, x), build.block
    chosen = build.phi(x.type)
    chosen.add_incoming(result, before)
    chosen.add_incoming(exact, there)
    return chosen


def powers_of_strip(e, function, numbers, results, count):
    """Emit the powers of a strip of numbers, block by block; up to a vector behind them is written."""
    build, item, kind = e.builder, function.dtype.itemsize, ir_type(function.dtype)
    lanes = (64 if features().get("avx512f") else 32) // item
    vector = ir.VectorType(kind, lanes)
    build.function.attributes.add("noinline")  # it is long, and takes hundreds of points
    at = lambda room, q: build.gep(room, [q], source_etype=kind)
    with CountedLoop(build, "block", I64(0), count, BLOCK) as begin:
        points = least(build, build.sub(count, begin), I64(BLOCK))
        loop = CountedLoop(build, "vector", I64(0), points, lanes)
        with loop as q:
            found = build.phi(I64)
            found.add_incoming(I64(0), loop.before)
            here = build.add(begin, q)
            x = build.load(at(numbers, here), typ=vector, align=item)
            result, doubtful = _rounded(e, function, x)
            build.store(result, at(results, here), align=item)
            bits = build.zext(build.bitcast(doubtful, ir.IntType(lanes)), I64)
            doubts = build.or_(found, build.shl(bits, q))
            found.add_incoming(doubts, build.block)
        doubts = build.and_(doubts, build.lshr(I64(-1), build.sub(I64(BLOCK), points)))
        with build.if_then(build.icmp_unsigned("!=", doubts, I64(0))):
            _repair(e, function, doubts, at, (numbers, results), begin)


def _repair(e, function, doubts, at, rooms, begin):
    """Call pow for the points of a block that have a bit."""
    build, before = e.builder, e.builder.block
    loop, after = build.append_basic_block("doubt"), build.append_basic_block("certain")
    build.branch(loop)
    build.position_at_end(loop)
    left = build.phi(I64)
    left.add_incoming(doubts, before)
    number, result = (at(room, build.add(begin, build.cttz(left, ir.IntType(1)(1)))) for room in rooms)
    build.store(_pow(e, function, build.load(number, typ=ir_type(function.dtype))), result)
    others = build.and_(left, build.sub(left, I64(1)))
    left.add_incoming(others, build.block)
    build.cbranch(build.icmp_unsigned("!=", others, I64(0)), loop, after)
    build.position_at_end(after)


def _pow(e, function, x):
    called = e.c_function(dataclasses.replace(function, kind="c", name="pow", operands=2))
    return e.builder.call(called, [x, x.type(float(function.name))])


def _rounded(e, function, x):
    """(power, whether pow may give another) of a number or a vector of numbers."""
    build, exponent, one = e.builder, float(function.name), _all(x.type, 1.0)
    fma = functools.partial(e.intrinsic, "fma")
    per = None  # what is left is the error times this
    if exponent == 0.5:
        result = e.intrinsic("fabs", e.intrinsic("sqrt", x))  # of -0.0 it is 0.0
        rest, per = fma(build.fneg(result), result, x), build.fadd(result, result)
    elif exponent == -1:
        result = build.fdiv(one, x)
        rest, per = fma(build.fneg(result), x, one), e.intrinsic("fabs", x)
    else:
        result = build.fmul(x, x)
        rest = fma(x, x, build.fneg(result))
    if exponent > 2:  # (square + rest) * x, or squared
        square = result
        factor, doubled = (x, x) if exponent == 3 else (square, build.fadd(square, square))
        high = build.fmul(square, factor)
        low = fma(rest, doubled, fma(square, factor, build.fneg(high)))
        result = build.fadd(high, low)
        rest = build.fsub(low, build.fsub(result, high))
    if exponent == 3:
        result = e.intrinsic("copysign", result, x)  # of -0.0 it is -0.0
    item = function.dtype.itemsize
    unit = _binade(e, result, 8 * item)
    most = build.fmul(unit, _all(x.type, (1 - ERROR_ULP[item]) * float(np.finfo(function.dtype).eps)))
    sure = build.fcmp_ordered("<", e.intrinsic("fabs", rest), build.fmul(most, per) if per else most)
    end = RANGE[item] // (2 if exponent == 0.5 else 1)  # what is left of a root has twice the bits
    sure = build.and_(sure, build.fcmp_ordered(">=", unit, _all(x.type, 2.0**-end)))
    sure = build.and_(sure, build.fcmp_ordered("<", unit, _all(x.type, 2.0**end)))
    if exponent > 0:
        sure = build.or_(sure, build.fcmp_ordered("==", x, _all(x.type, 0.0)))
    return result, build.not_(sure)


def _binade(e, number, bits):
    """The power of 2 at or below a number's magnitude; of a power of 2 the half, where units below it are smaller."""
    build, kind, exponents = e.builder, ir.IntType(bits), 0x7FF0000000000000 if bits == 64 else 0x7F800000
    if isinstance(number.type, ir.VectorType):
        kind = ir.VectorType(kind, number.type.count)
    below = build.sub(build.bitcast(number, kind), _all(kind, 1))
    return build.bitcast(build.and_(below, _all(kind, exponents)), number.type)


def _all(kind, value):
    """A constant: the number, or a vector of it."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)
