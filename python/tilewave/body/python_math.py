"""Arithmetic of Python's own numbers, with the exceptions that they raise.

Python ints have no bounds; here they have 64 bits. Where bounds known at compile time do not show
that a result fits, the kernel checks and raises OverflowError rather than wrap.
"""

from llvmlite import ir

from .casts import cast, fold
from .division import float_divmod, floor_divmod
from .typing import BOOL, FLOAT, INT, Unsupported
from .values import I64, INT64_MAX, INT64_MIN, Typed, constant

BEYOND = "an intermediate Python int beyond 64 bits"


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
    operation = {"+": build.sadd_with_overflow, "-": build.ssub_with_overflow,
                 "*": build.smul_with_overflow}[symbol]
    pair = operation(left.ir, right.ir)
    e.fail_if(build.extract_value(pair, 1), "OverflowError", BEYOND)
    return Typed(INT, build.extract_value(pair, 0),
                 low=max(low, INT64_MIN), high=min(high, INT64_MAX))


def _int_divmod(e, symbol, left, right):
    build = e.builder
    if right.low <= 0 <= right.high:
        message = "integer division or modulo by zero" if symbol == "//" else \
            "integer modulo by zero"
        zero = build.icmp_signed("==", right.ir, ir.Constant(I64, 0))
        e.fail_if(zero, "ZeroDivisionError", message)
    if left.low == INT64_MIN and right.low <= -1 <= right.high:
        overflow = build.and_(build.icmp_signed("==", left.ir, ir.Constant(I64, INT64_MIN)),
                              build.icmp_signed("==", right.ir, ir.Constant(I64, -1)))
        e.fail_if(overflow, "OverflowError", BEYOND)
    quotient, remainder = floor_divmod(e, left.ir, right.ir)
    if symbol == "//":
        bound = left.magnitude
        return Typed(INT, quotient, low=max(-bound, INT64_MIN), high=min(bound, INT64_MAX))
    bound = right.magnitude - 1
    low = 0 if right.low >= 0 else max(-bound, INT64_MIN)
    return Typed(INT, remainder, low=low, high=0 if right.high <= 0 else bound)


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
    """Whether a float is neither infinite nor NaN."""
    size = e.intrinsic("fabs", value)
    return e.builder.fcmp_ordered("<", size, ir.Constant(value.type, float("inf")))


def infinite(e, value):
    """Whether a float is infinite."""
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
    e.fail_if(build.and_(rooted, ends), "ValueError",
              "a negative number to a fractional power is complex: not supported")
    result = e.call_c("pow", FLOAT.dtype, base, exponent)
    e.fail_if(build.and_(infinite(e, result), ends), "OverflowError",
              "Numerical result out of range")
    return Typed(FLOAT, result)


def math_pow(e, base, exponent):
    """``math.pow``."""
    build = e.builder
    ends = build.and_(finite(e, base), finite(e, exponent))
    result = e.call_c("pow", FLOAT.dtype, base, exponent)
    nan = build.fcmp_unordered("uno", result, result)
    at_zero = build.and_(infinite(e, result),
                         build.fcmp_ordered("==", base, constant("float64", 0)))
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
