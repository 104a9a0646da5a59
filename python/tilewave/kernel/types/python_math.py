"""Arithmetic of Python numbers, with the exceptions that they raise.

Python ints have no bounds; here they have 64 bits. Where bounds known at compile time do not show
that a result fits, the kernel checks and raises OverflowError rather than wrap.
"""

from llvmlite import ir

from tilewave.kernel.types.casts import cast, fold
from tilewave.kernel.types.division import float_divmod, floor_divmod
from tilewave.kernel.types.values import I1, I64, INT64_MAX, INT64_MIN, Typed, constant
from tilewave.nest.types import BOOL, FLOAT, INT, OPERATORS, Unsupported

BEYOND = "an intermediate Python int beyond 64 bits"

#: Operators on bits.
BITS = ("&", "|", "^", "<<", ">>")

#: Bits up to which a constant is shifted while a body is compiled.
MOST_CONSTANT_SHIFT = 4096

#: Largest modulus of ``pow(x, y, m)``: products of two remainders have 64 bits.
MOST_MODULUS = 2**31


def _integer(e, typed):
    """A Python bool or int as an int."""
    if typed.type == INT:
        return typed
    if typed.const is not None:
        return fold(e, int, typed)
    return Typed(INT, cast(e, typed.ir, BOOL.dtype, INT.dtype), low=0, high=1)


def python_int(e, symbol, left, right):
    """``+ - * // %`` of two Python ints."""
    left, right = _integer(e, left), _integer(e, right)
    if symbol in ("//", "%"):
        return _int_divmod(e, symbol, left, right)
    a, b, c, d = left.low, left.high, right.low, right.high
    if symbol == "+":
        low, high = a + c, b + d
    elif symbol == "-":
        low, high = a - d, b - c
    else:
        corners = a * c, a * d, b * c, b * d
        low, high = min(corners), max(corners)
    build = e.builder
    if INT64_MIN <= low and high <= INT64_MAX:
        operation = {"+": build.add, "-": build.sub, "*": build.mul}[symbol]
        return Typed(INT, operation(left.ir, right.ir), low=low, high=high)
    operation = {"+": build.sadd_with_overflow, "-": build.ssub_with_overflow, "*": build.smul_with_overflow}[symbol]
    pair = operation(left.ir, right.ir)
    e.fail_if(build.extract_value(pair, 1), "OverflowError", BEYOND)
    return Typed(INT, build.extract_value(pair, 0), low=max(low, INT64_MIN), high=min(high, INT64_MAX))


def _int_divmod(e, symbol, left, right):
    build = e.builder
    if right.low <= 0 <= right.high:
        message = "integer division or modulo by zero" if symbol == "//" else "integer modulo by zero"
        zero = build.icmp_signed("==", right.ir, I64(0))
        e.fail_if(zero, "ZeroDivisionError", message)
    if left.low == INT64_MIN and right.low <= -1 <= right.high:
        overflow = build.and_(
            build.icmp_signed("==", left.ir, I64(INT64_MIN)),
            build.icmp_signed("==", right.ir, I64(-1)),
        )
        e.fail_if(overflow, "OverflowError", BEYOND)
    quotient, remainder = floor_divmod(e, left.ir, right.ir)
    if symbol == "//":
        bound = left.magnitude
        return Typed(INT, quotient, low=max(-bound, INT64_MIN), high=min(bound, INT64_MAX))
    bound = right.magnitude - 1
    low = 0 if right.low >= 0 else max(-bound, INT64_MIN)
    return Typed(INT, remainder, low=low, high=0 if right.high <= 0 else bound)


def python_bits(e, symbol, left, right):
    """``& | ^ << >>`` of Python bools and ints."""
    if left.const is not None and right.const is not None:
        if symbol == "<<" and right.const > MOST_CONSTANT_SHIFT:
            raise Unsupported(f"a shift by more than {MOST_CONSTANT_SHIFT} bits")
        return fold(e, OPERATORS[symbol], left, right)
    build = e.builder
    if symbol in ("<<", ">>"):
        return _shift(e, symbol, _integer(e, left), _integer(e, right))
    operation = {"&": build.and_, "|": build.or_, "^": build.xor}[symbol]
    if left.type == right.type == BOOL:
        return Typed(BOOL, operation(left.ir, right.ir), low=0, high=1)
    left, right = _integer(e, left), _integer(e, right)
    bits = max(bound.bit_length() for each in (left, right) for bound in (each.low, each.high))
    low, high = -(2**bits), 2**bits - 1
    if left.low >= 0 and right.low >= 0:
        low = 0
    if symbol == "&":
        highs = [each.high for each in (left, right) if each.low >= 0]
        low, high = (0, min(highs)) if highs else (low, high)
    return Typed(INT, operation(left.ir, right.ir), low=max(low, INT64_MIN), high=min(high, INT64_MAX))


def _shift(e, symbol, left, right):
    build = e.builder
    if right.low < 0:
        negative = build.icmp_signed("<", right.ir, I64(0))
        e.fail_if(negative, "ValueError", "negative shift count")
    least, most = max(right.low, 0), max(right.high, 0)
    within = build.icmp_unsigned("<", right.ir, I64(64))
    amount = right.ir if most < 64 else build.select(within, right.ir, I64(63))
    if symbol == ">>":  # from 63 bits on only the sign is left
        return Typed(INT, build.ashr(left.ir, amount), low=min(left.low, 0), high=max(left.high, -1))
    shifted = build.shl(left.ir, amount)
    if most < 64:
        low, high = min(left.low << least, left.low << most), max(left.high << least, left.high << most)
        if INT64_MIN <= low and high <= INT64_MAX:
            return Typed(INT, shifted, low=low, high=high)
    whole_bits = build.icmp_signed("==", build.ashr(shifted, amount), left.ir)
    nothing = build.icmp_signed("==", left.ir, I64(0))
    fits = build.or_(nothing, whole_bits if most < 64 else build.and_(whole_bits, within))
    e.fail_if(build.not_(fits), "OverflowError", BEYOND)
    return Typed(INT, shifted)


def modular_power(e, *operands):
    """``pow(x, y, m)`` of Python ints."""
    if not all(each.type.is_python and not each.type.is_float for each in operands):
        raise Unsupported(
            f"pow with three arguments of {', '.join(str(each.type) for each in operands)} (Python takes Python ints)"
        )
    if all(each.const is not None for each in operands):
        return fold(e, pow, *operands)
    base, exponent, modulus = (_integer(e, each) for each in operands)
    build, zero, one = e.builder, I64(0), I64(1)
    e.fail_if(build.icmp_signed("==", modulus.ir, zero), "ValueError", "pow() 3rd argument cannot be 0")
    e.fail_if(build.icmp_signed("<", exponent.ir, zero), "ValueError", "pow(x, y, m) of a negative y: not supported")
    below = build.icmp_signed("<", modulus.ir, zero)
    size = build.select(below, build.neg(modulus.ir), modulus.ir)
    e.fail_if(
        build.icmp_unsigned(">", size, I64(MOST_MODULUS)),
        "OverflowError",
        "pow(x, y, m) of a modulus above 2**31: products beyond 64 bits",
    )
    start = floor_divmod(e, base.ir, size)[1]
    product = power_by_squares(
        e, start, exponent.ir, build.urem(one, size), lambda a, b: build.urem(build.mul(a, b), size)
    )
    turned = build.and_(below, build.icmp_signed("!=", product, zero))
    return Typed(
        INT, build.select(turned, build.add(product, modulus.ir), product), low=-MOST_MODULUS, high=MOST_MODULUS
    )


def power_by_squares(e, base, exponent, one, multiply):
    """An LLVM int to the power of one that is not negative, a loop over the exponent's bits."""
    build, kind = e.builder, base.type
    e.calls += 1  # a loop in each point keeps points from being computed together
    before, loop, after = build.block, build.append_basic_block("power"), build.append_basic_block("powered")
    build.branch(loop)
    build.position_at_end(loop)
    result, square, left = build.phi(kind), build.phi(kind), build.phi(kind)
    odd = build.trunc(left, I1)
    product = build.select(odd, multiply(result, square), result)
    half = build.lshr(left, ir.Constant(kind, 1))
    for phi, first, then in (
        (result, one, product),
        (square, base, multiply(square, square)),
        (left, exponent, half),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(then, loop)
    build.cbranch(build.icmp_signed("==", half, ir.Constant(kind, 0)), after, loop)
    build.position_at_end(after)
    return product


def python_round(e, value, digits):
    """``round(x, digits)`` of a Python float: the double that is nearest to the rounded decimal number.

    The product with a power of ten is exact as a sum of two doubles; the quotient of two whole doubles is the nearest
    one.
    """
    if not 0 <= digits <= 22:
        raise Unsupported(f"round to {digits} digits; 0 to 22 are")
    build = e.builder
    if digits == 0:
        return Typed(FLOAT, e.intrinsic("rint", value))
    power, half = constant("float64", 10.0**digits), constant("float64", 0.5)
    zero, one = constant("float64", 0.0), constant("float64", 1.0)
    product = build.fmul(value, power)
    rest = e.intrinsic("fma", value, power, build.fneg(product))
    whole = e.intrinsic("rint", product)
    fraction = build.fsub(product, whole)
    up = build.and_(build.fcmp_ordered("==", fraction, half), build.fcmp_ordered(">", rest, zero))
    down = build.and_(build.fcmp_ordered("==", fraction, build.fneg(half)), build.fcmp_ordered("<", rest, zero))
    whole = build.select(up, build.fadd(whole, one), build.select(down, build.fsub(whole, one), whole))
    is_whole = build.fcmp_unordered(">=", e.intrinsic("fabs", value), constant("float64", 2.0**52))
    fits = build.fcmp_ordered("<", e.intrinsic("fabs", product), constant("float64", 2.0**53))
    e.fail_if(
        build.not_(build.or_(fits, is_whole)),
        "OverflowError",
        f"round(x, {digits}) of a number whose digits are beyond 2**53",
    )
    return Typed(FLOAT, build.select(is_whole, value, build.fdiv(whole, power)))


def python_int_pow(e, left, right):
    """A Python int to a constant power that is not negative."""
    if right.const is None:
        raise Unsupported("an integer power whose exponent is not a constant")
    base, result = _integer(e, left), Typed(INT, const=1)
    if int(right.const) > 64:
        raise Unsupported("an integer power above 64")
    for _ in range(int(right.const)):
        result = python_int(e, "*", result, base)
    return result


def python_divmod_float(e, symbol, left, right):
    """``//`` and ``%`` of Python floats; the same steps as NumPy's, but zero divisors raise."""
    zero = e.builder.fcmp_ordered("==", right, constant("float64", 0))
    message = "float floor division by zero" if symbol == "//" else "float modulo by zero"
    e.fail_if(zero, "ZeroDivisionError", message)
    return Typed(FLOAT, float_divmod(e, FLOAT.dtype, left, right)[0 if symbol == "//" else 1])


def finite(e, value):
    """Return whether a float is neither infinite nor NaN."""
    size = e.intrinsic("fabs", value)
    return e.builder.fcmp_ordered("<", size, ir.Constant(value.type, float("inf")))


def infinite(e, value):
    """Return whether a float is infinite."""
    size = e.intrinsic("fabs", value)
    return e.builder.fcmp_ordered("==", size, ir.Constant(value.type, float("inf")))


def python_pow(e, base, exponent):
    """``**`` of Python floats."""
    build = e.builder
    zero = constant("float64", 0)
    ends = build.and_(finite(e, base), finite(e, exponent))
    below = build.fcmp_ordered("<", exponent, zero)
    by_zero = build.and_(build.fcmp_ordered("==", base, zero), build.and_(below, ends))
    e.fail_if(by_zero, "ZeroDivisionError", "0.0 cannot be raised to a negative power")
    whole = build.fcmp_ordered("==", e.intrinsic("floor", exponent), exponent)
    rooted = build.and_(build.fcmp_ordered("<", base, zero), build.not_(whole))
    e.fail_if(
        build.and_(rooted, ends), "ValueError", "a negative number to a fractional power is complex: not supported"
    )
    result = e.call_c("pow", FLOAT.dtype, base, exponent)
    e.fail_if(build.and_(infinite(e, result), ends), "OverflowError", "Numerical result out of range")
    return Typed(FLOAT, result)


def math_pow(e, base, exponent):
    """``math.pow``."""
    build = e.builder
    ends = build.and_(finite(e, base), finite(e, exponent))
    result = e.call_c("pow", FLOAT.dtype, base, exponent)
    nan = build.fcmp_unordered("uno", result, result)
    at_zero = build.and_(infinite(e, result), build.fcmp_ordered("==", base, constant("float64", 0)))
    e.fail_if(build.and_(build.or_(nan, at_zero), ends), "ValueError", "math domain error")
    e.fail_if(build.and_(infinite(e, result), ends), "OverflowError", "math range error")
    return Typed(FLOAT, result)


def math_call(e, name, overflows, *operands):
    """A function of the math module on doubles: NaN and infinity out of nothing raise."""
    build = e.builder
    if name in ("sqrt", "fabs", "copysign"):
        result = e.intrinsic(name, *operands)
    else:
        result = e.call_c(name, FLOAT.dtype, *operands)
    if name in ("fabs", "copysign", "atan2"):
        return Typed(FLOAT, result)
    nan_in = build.fcmp_unordered("uno", operands[0], operands[-1])
    nan = build.and_(build.fcmp_unordered("uno", result, result), build.not_(nan_in))
    e.fail_if(nan, "ValueError", "math domain error")
    if name not in ("sqrt", "fmod", "sin", "cos", "tan", "asin", "acos", "atan", "tanh"):
        pole = build.and_(infinite(e, result), finite(e, operands[0]))
        if overflows:
            e.fail_if(pole, "OverflowError", "math range error")
        else:
            e.fail_if(pole, "ValueError", "math domain error")
    return Typed(FLOAT, result)
