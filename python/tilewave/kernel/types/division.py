"""Floor division and remainder, step by step as NumPy and Python compute them."""

from llvmlite import ir

from tilewave.kernel.types.values import constant
from tilewave.nest.types import int_range


def int_divmod(e, dtype, left, right):
    """Floor quotient and remainder; 0 for a zero divisor; the least int by -1 wraps."""
    build = e.builder
    zero, one = constant(dtype, 0), constant(dtype, 1)
    by_zero = build.icmp_signed("==", right, zero)
    if dtype.kind == "u":
        divisor = build.select(by_zero, one, right)
        quotient = build.select(by_zero, zero, build.udiv(left, divisor))
        return quotient, build.urem(left, divisor)
    minus, least = constant(dtype, -1), constant(dtype, int_range(dtype)[0])
    overflow = build.and_(build.icmp_signed("==", left, least), build.icmp_signed("==", right, minus))
    divisor = build.select(build.or_(by_zero, overflow), one, right)
    quotient, remainder = floor_divmod(e, left, divisor)
    return build.select(by_zero, zero, quotient), remainder


def floor_divmod(e, left, right):
    """Floor quotient and remainder of ints for a divisor that is safe."""
    build = e.builder
    zero = ir.Constant(left.type, 0)
    quotient, remainder = build.sdiv(left, right), build.srem(left, right)
    signs = build.icmp_signed("<", build.xor(remainder, right), zero)
    down = build.and_(build.icmp_signed("!=", remainder, zero), signs)
    return (
        build.select(down, build.sub(quotient, ir.Constant(left.type, 1)), quotient),
        build.select(down, build.add(remainder, right), remainder),
    )


def float_divmod(e, dtype, left, right):
    """Floor quotient and remainder of floats, step by step as NumPy's npy_divmod."""
    build = e.builder
    zero, one, half = (constant(dtype, number) for number in (0, 1, 0.5))
    mod = e.call_c("fmod", dtype, left, right)
    quotient = build.fdiv(build.fsub(left, mod), right)
    signs = build.xor(build.fcmp_ordered("<", right, zero), build.fcmp_ordered("<", mod, zero))
    exact = build.fcmp_ordered("==", mod, zero)
    down = build.and_(build.not_(exact), signs)
    quotient = build.select(down, build.fsub(quotient, one), quotient)
    remainder = build.select(
        exact, e.intrinsic("copysign", zero, right), build.select(down, build.fadd(mod, right), mod)
    )
    floor = e.intrinsic("floor", quotient)
    floor = build.select(build.fcmp_ordered(">", build.fsub(quotient, floor), half), build.fadd(floor, one), floor)
    ratio = build.fdiv(left, right)
    none = build.fcmp_ordered("==", quotient, zero)
    floor = build.select(none, e.intrinsic("copysign", zero, ratio), floor)
    by_zero = build.fcmp_ordered("==", right, zero)
    return build.select(by_zero, ratio, floor), build.select(by_zero, mod, remainder)
