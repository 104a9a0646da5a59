"""Translations of the functions that a body may call, by the keys of ``names.FUNCTIONS``."""

import functools
import math
import operator

import numpy as np
from llvmlite import ir

from tilewave.kernel.emit.loops import TIES, zero_tie
from tilewave.kernel.types import complex_numbers
from tilewave.kernel.types.arithmetic import absolute, binary, int_compare, int_power, is_true, numpy_binary
from tilewave.kernel.types.casts import boolean, cast, check_range, construct, fold, promote, to_float, to_int
from tilewave.kernel.types.python_math import finite, infinite, math_call, math_pow, modular_power, python_round
from tilewave.kernel.types.values import I1, INT64_MAX, Typed, Value, constant, ir_type
from tilewave.nest import names
from tilewave.nest.types import BOOL, COMPLEX, FLOAT, INT, Unsupported, infer, int_range, scalar

#: NumPy functions that are one instruction or exactly rounded, so LLVM's are the same.
EXACT = {name: name for name in ("sqrt", "floor", "ceil", "trunc", "rint", "fabs", "copysign")} | {"absolute": "fabs"}

#: Names of C functions for NumPy functions, for ``fastmath``.
FAST_NAMES = {
    "power": "pow",
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
}

#: Functions of the math module that give ints.
ROUNDINGS = ("floor", "ceil", "trunc")

#: Functions of the math module that raise OverflowError for an infinite result.
OVERFLOWING = ("exp", "expm1", "sinh", "cosh")


def call(e, key, values):
    """A call of a supported function on values of possibly several types."""
    if key in ("min", "max"):
        return _min_max(e, key, values)
    if key == "np.where":
        return _where(e, *values)
    if key == "pow" and len(values) == 2:
        return binary(e, "**", *values)
    if key in (".real", ".imag", "np.real", "np.imag"):
        return e.dispatch(lambda typed: Value([_part(e, key, typed)]), *values)
    module, _, name = key.rpartition(".")
    translate = {"np": _numpy, "math": _math, "": _builtin}[module]
    return e.dispatch(lambda *typed: Value([translate(e, name, *typed)]), *values)


def _builtin(e, name, *operands):
    translate = {
        "abs": absolute,
        "int": to_int,
        "float": to_float,
        "complex": _complex,
        "round": _round,
        "pow": modular_power,
    }
    return translate[name](e, *operands)


def _complex(e, real, imaginary=None):
    """``complex(x)`` and ``complex(x, y)``: Python's."""
    if imaginary is None:
        return Typed(COMPLEX, promote(e, real, COMPLEX.dtype))
    return Typed(
        COMPLEX, complex_numbers.joined(e, COMPLEX.dtype, *(to_float(e, each).ir for each in (real, imaginary)))
    )


def _part(e, key, typed):
    """``z.real`` and ``np.imag(z)``, also of real numbers."""
    module, _, name = key.rpartition(".")
    result = infer(getattr(np, name) if module else operator.attrgetter(name), typed.type)
    if typed.const is not None:
        return fold(e, operator.attrgetter(name), typed)
    if typed.type.is_complex:
        return Typed(result, complex_numbers.parts(e, typed.ir)[0 if name == "real" else 1])
    value = cast(e, typed.ir, typed.type.dtype, result.dtype) if name == "real" else constant(result.dtype, 0)
    if result == INT:
        low, high = (typed.low, typed.high) if name == "real" else (0, 0)
        return Typed(INT, value, low=low, high=high)
    return Typed(result, value)


def _round(e, typed, digits=None):
    """``round(x)`` and ``round(x, digits)``: to the nearest, of two to the even one."""
    if digits is None:
        infer(round, typed.type)  # not defined for all
        if typed.const is not None:
            return fold(e, round, typed)
        if not typed.type.is_float:
            return to_int(e, typed)
        return to_int(e, Typed(typed.type, e.intrinsic("rint", typed.ir)), "round(x)")
    count = _digits(digits)
    result = infer(_rounded, typed.type)
    if typed.const is not None:
        return fold(e, round, typed, digits)
    if typed.type == FLOAT:
        return python_round(e, typed.ir, count)
    if typed.type.is_float:
        return Typed(result, _decimals(e, typed.type.dtype, typed.ir, count))
    if count < 0:
        raise Unsupported(f"round of an int to {count} digits")
    return to_int(e, typed) if result == INT else Typed(result, typed.ir)


def _rounded(x):
    return round(x, 1)


def _digits(typed):
    if typed.type != INT or typed.const is None or abs(typed.const) > 22:
        raise Unsupported("round to a number of digits that is no int constant from -22 to 22")
    return typed.const


def _decimals(e, dtype, value, count):
    """Rounded to some decimals as NumPy does: a product or quotient, the nearest whole number, and back."""
    build = e.builder
    if count == 0:
        return e.intrinsic("rint", value)
    power = constant(dtype, 10.0 ** abs(count))
    there, back = (build.fmul, build.fdiv) if count > 0 else (build.fdiv, build.fmul)
    return back(e.intrinsic("rint", there(value, power)), power)


def _numpy_round(e, typed, digits=None):
    """``np.round(x)`` and ``np.round(x, digits)``."""
    count = 0 if digits is None else _digits(digits)
    result = infer(np.round if digits is None else _numpy_rounded, typed.type)
    if result.is_bool:
        raise Unsupported("np.round of bools")
    value = promote(e, typed, result.dtype)
    if result.is_float:
        return Typed(result, _decimals(e, result.dtype, value, count))
    if result.is_complex:
        part = complex_numbers.part_dtype(result.dtype)
        rounded = (_decimals(e, part, each, count) for each in complex_numbers.parts(e, value))
        return Typed(result, complex_numbers.joined(e, result.dtype, *rounded))
    if count < 0:
        raise Unsupported(f"np.round of ints to {count} digits")
    return Typed(result, value)


def _numpy_rounded(x):
    return np.round(x, 1)


def _clip(e, typed, low, high):
    """``np.clip(x, low, high)``; NumPy drops a bound that is a Python int beyond what an integer x can be."""
    result = infer(np.clip, typed.type, low.type, high.type)
    if result.is_bool or result.is_complex:
        raise Unsupported(f"np.clip of {'bools' if result.is_bool else 'complex numbers'}")
    dtype, build = result.dtype, e.builder
    element = typed.type.dtype if typed.type.is_int else None
    if element is not None and result.is_float and INT in (low.type, high.type):
        raise Unsupported("np.clip of an integer between a Python int and a float")
    value = promote(e, typed, dtype)
    bounds = []
    for bound, side in ((low, 0), (high, 1)):
        if element is not None and bound.type == INT:
            bounds.append(_dropped_where_useless(e, bound, side, element, dtype))
        else:
            bounds.append(promote(e, bound, dtype))
    if dtype.kind != "f":
        value = build.select(int_compare(e, "<", dtype, value, bounds[0]), bounds[0], value)
        return Typed(result, build.select(int_compare(e, ">", dtype, value, bounds[1]), bounds[1], value))
    if not _clip_keeps_ties(dtype):
        raise Unsupported(f"np.clip of {dtype.name} (NumPy {np.__version__} decides otherwise between zeros)")
    value = build.select(build.fcmp_ordered("<", value, bounds[0]), bounds[0], value)
    value = build.select(build.fcmp_ordered(">", value, bounds[1]), bounds[1], value)
    none = build.fcmp_unordered("uno", *bounds)
    return Typed(result, build.select(none, constant(dtype, float("nan")), value))


def _dropped_where_useless(e, bound, side, element, dtype):
    """A Python int as a bound of elements: the least or greatest number of the result's dtype where no element is
    beyond it.
    """
    limit, widest = int_range(element)[side], int_range(dtype)[side]
    beyond = (lambda x: x >= limit) if side else (lambda x: x <= limit)
    if bound.const is not None:
        return constant(dtype, widest) if beyond(bound.const) else check_range(e, bound, dtype)
    if limit > INT64_MAX:  # beyond every Python int of a kernel
        return check_range(e, bound, dtype)
    build, kind = e.builder, ir_type("int64")
    useless = build.icmp_signed(">=" if side else "<=", bound.ir, ir.Constant(kind, limit))
    used = build.select(useless, ir.Constant(kind, widest), bound.ir)
    low, high = (bound.low, min(bound.high, widest)) if side else (max(bound.low, widest), bound.high)
    return check_range(e, Typed(INT, used, low=min(low, widest), high=max(high, widest)), dtype)


@functools.cache
def _clip_keeps_ties(dtype):
    """Return whether np.clip keeps a zero that equals a bound of the other sign."""
    zero, minus, one = (dtype.type(x) for x in (0.0, -0.0, 1.0))
    results = [
        np.clip(zero, minus, one),
        np.clip(zero, -one, minus),
        np.clip(minus, zero, one),
        np.clip(minus, -one, zero),
    ]
    return [bool(np.signbit(x)) for x in results] == [False, False, True, True]


def _min_max(e, name, values):
    """Python's min and max: a later value wins only when the comparison holds."""
    symbol = "<" if name == "min" else ">"
    best = values[0]
    for value in values[1:]:
        best = e.select(is_true(e, binary(e, symbol, value, best)), value, best)
    return best


def _where(e, condition, first, second):
    """np.where: all operands are computed, the result is a 0-d array."""
    chosen = is_true(e, condition)

    def choose(left, right):
        result = infer(np.where, BOOL, left.type, right.type)
        operands = [_where_operand(e, each, result.dtype) for each in (left, right)]
        return Value([Typed(result, e.builder.select(chosen, *operands))])

    return e.dispatch(choose, first, second)


def _where_operand(e, typed, dtype):
    """np.where casts Python ints as C does, where arithmetic checks or goes by a double."""
    if typed.type == INT:
        return cast(e, typed.ir, INT.dtype, dtype)
    return promote(e, typed, dtype)


# The math module: doubles in, Python numbers out.


def _math(e, name, *operands):
    if name in ROUNDINGS:
        return _whole(e, name, *operands)
    values = [to_float(e, each).ir for each in operands]
    if name in ("isnan", "isinf", "isfinite"):
        return boolean(_float_test(e, name, values[0])).only
    if name == "pow":
        return math_pow(e, *values)
    return math_call(e, name, name in OVERFLOWING, *values)


def _whole(e, name, operand):
    """``math.floor``, ``ceil`` and ``trunc``: a Python int."""
    infer(getattr(math, name), operand.type)  # trunc is not defined for all
    if not operand.type.is_float and (operand.type.bits < 64 or operand.type.is_python or _keeps_ints(name)):
        return to_int(e, operand)
    value = to_float(e, operand)
    return to_int(e, Typed(FLOAT, e.intrinsic(name, value.ir)), f"math.{name}(x)")


@functools.cache
def _keeps_ints(name):
    """Return whether a function of `math` takes NumPy's ints as they are; in NumPy 2 they go through a double."""
    return getattr(math, name)(np.int64(2**53 + 1)) == 2**53 + 1


def _float_test(e, name, value):
    if name == "isnan":
        return e.builder.fcmp_unordered("uno", value, value)
    return infinite(e, value) if name == "isinf" else finite(e, value)


# NumPy.


def _numpy(e, name, *operands):
    if name in names.NUMPY_TYPES:
        dtype = np.dtype(name)
        return Typed(scalar(dtype), construct(e, operands[0], dtype))
    if name in ("clip", "round"):
        return {"clip": _clip, "round": _numpy_round}[name](e, *operands)
    every, name = name == "array_power", "power" if name == "array_power" else name
    function = getattr(np, name)
    result = infer(function, *(each.type for each in operands))
    if name in ("isnan", "isinf", "isfinite"):
        return Typed(result, _numpy_test(e, name, operands[0]))
    if any(each.type.is_complex for each in operands):
        dtype = np.result_type(result.dtype, *(each.type.dtype for each in operands if not each.type.is_python))
        if name == "absolute":
            dtype = operands[0].type.dtype
        return Typed(result, complex_numbers.function(e, name, dtype, *(promote(e, each, dtype) for each in operands)))
    if name == "conjugate":
        return Typed(result, promote(e, operands[0], result.dtype))
    if result.is_bool:
        raise Unsupported(f"np.{name} of bools")
    if name == "power" and result.is_int:
        return Typed(result, int_power(e, result.dtype, *operands))
    values = [promote(e, each, result.dtype) for each in operands]
    if every:
        return Typed(result, e.call_loop("power.each", result.dtype, *values))
    translate = _integer_function if result.is_int else _float_function
    return Typed(result, translate(e, name, result.dtype, *values))


def _numpy_test(e, name, typed):
    if typed.type.is_complex:
        return complex_numbers.test(e, name, typed.ir, _float_test)
    if typed.type.is_float:
        return _float_test(e, name, typed.ir)
    return I1(int(name == "isfinite"))


def _float_function(e, name, dtype, *values):
    """A NumPy function on LLVM floats of one dtype."""
    build = e.builder
    if name in EXACT:
        return e.intrinsic(EXACT[name], *values)
    if name == "square":
        return build.fmul(values[0], values[0], flags=e.flags)
    if name == "reciprocal":
        return build.fdiv(constant(dtype, 1), values[0], flags=e.flags)
    if name == "sign":
        return _float_sign(e, dtype, values[0])
    if name in TIES:
        return _float_extremum(e, name, dtype, *values)
    if name == "remainder":
        return numpy_binary(e, "%", dtype, *values)
    if name == "fmod":
        return e.call_c("fmod", dtype, *values)
    if e.fastmath:
        return e.call_fast(FAST_NAMES.get(name, name), dtype, *values)
    return e.call_loop(name, dtype, *values)


def _float_sign(e, dtype, value):
    """1, 0 or -1; NaN stays, the sign of a zero does not."""
    build = e.builder
    zero, one, minus = (constant(dtype, number) for number in (0, 1, -1))
    equal = build.fcmp_ordered("==", value, zero)
    sign = build.select(
        build.fcmp_ordered(">", value, zero), one, build.select(build.fcmp_ordered("<", value, zero), minus, value)
    )
    return build.select(equal, zero, sign)


def _float_extremum(e, name, dtype, left, right):
    """minimum and maximum keep NaNs, fmin and fmax drop them; a tie of zeros as NumPy has it."""
    build = e.builder
    tie = zero_tie(name, dtype)
    if tie is None:
        return e.call_loop(name, dtype, left, right)
    symbol = ("<" if name in ("minimum", "fmin") else ">") + ("=" if tie == 0 else "")
    keeper = left if name in ("minimum", "maximum") else right
    first = build.or_(build.fcmp_ordered(symbol, left, right), build.fcmp_unordered("uno", keeper, keeper))
    return build.select(first, left, right)


def _integer_function(e, name, dtype, *values):
    """A NumPy function on LLVM ints of one dtype."""
    build = e.builder
    if name in ("floor", "ceil", "trunc"):
        return values[0]
    if name == "square":
        return build.mul(values[0], values[0])
    if name == "remainder":
        return numpy_binary(e, "%", dtype, *values)
    if name == "fmod":
        return _integer_fmod(e, dtype, *values)
    zero = constant(dtype, 0)
    if name == "absolute":
        below = int_compare(e, "<", dtype, values[0], zero)
        return build.select(below, build.neg(values[0]), values[0])
    if name == "sign":
        kind = ir_type(dtype)
        above, below = (int_compare(e, symbol, dtype, values[0], zero) for symbol in "><")
        return build.sub(build.zext(above, kind), build.zext(below, kind))
    if name in ("minimum", "maximum", "fmin", "fmax"):
        symbol = "<" if name in ("minimum", "fmin") else ">"
        return build.select(int_compare(e, symbol, dtype, *values), *values)
    raise Unsupported(f"np.{name} of {dtype.name}")


def _integer_fmod(e, dtype, left, right):
    """Remainder with the sign of the dividend; 0 for a zero divisor."""
    build = e.builder
    by_zero = build.icmp_signed("==", right, constant(dtype, 0))
    if dtype.kind == "u":
        return build.urem(left, build.select(by_zero, constant(dtype, 1), right))
    by_minus = build.icmp_signed("==", right, constant(dtype, -1))
    divisor = build.select(build.or_(by_zero, by_minus), constant(dtype, 1), right)
    return build.srem(left, divisor)
