"""Operators: each NumPy's or Python's result for the types of its operands, bit for bit."""

import operator

import numpy as np
from llvmlite import ir

from tilewave.kernel.types import complex_numbers
from tilewave.kernel.types.casts import boolean, cast, check_range, exact_double, fits, fold, promote, to_float, truth
from tilewave.kernel.types.division import float_divmod, int_divmod
from tilewave.kernel.types.python_math import (
    BITS,
    power_by_squares,
    python_bits,
    python_divmod_float,
    python_int,
    python_int_pow,
    python_pow,
)
from tilewave.kernel.types.values import I1, INT64_MAX, Typed, Value, constant, ir_type
from tilewave.nest.types import ARRAY0, BOOL, COMPLEX, FLOAT, INT, OPERATORS, Unsupported, infer, scalar

UINT64 = np.dtype("uint64")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def binary(e, symbol, left, right):
    """``left + right`` and the like, on values of possibly several types."""
    return e.dispatch(lambda a, b: Value([_binary(e, symbol, a, b)]), left, right)


def _binary(e, symbol, left, right):
    result = infer(OPERATORS[symbol], left.type, right.type)
    if symbol in COMPARISONS:
        return Typed(result, _compare(e, symbol, left, right), low=0, high=1)
    if result.is_python:
        return _python_binary(e, symbol, left, right)
    if symbol == "**":
        return Typed(result, _power(e, left, right, result.dtype))
    operands = promote(e, left, result.dtype), promote(e, right, result.dtype)
    return Typed(result, numpy_binary(e, symbol, result.dtype, *operands))


def numpy_binary(e, symbol, dtype, left, right):
    """An operator of NumPy on two LLVM values of one dtype."""
    build = e.builder
    if dtype.kind == "c":
        return complex_numbers.binary(e, symbol, dtype, left, right)
    if symbol in BITS:
        return _bits(e, symbol, dtype, left, right)
    if dtype.kind == "b":  # NumPy's + and * of booleans
        return build.or_(left, right) if symbol == "+" else build.and_(left, right)
    if symbol in ("//", "%"):
        divide = float_divmod if dtype.kind == "f" else int_divmod
        return divide(e, dtype, left, right)[0 if symbol == "//" else 1]
    if dtype.kind == "f":
        operation = {"+": build.fadd, "-": build.fsub, "*": build.fmul, "/": build.fdiv}[symbol]
        return operation(left, right, flags=e.flags)
    return {"+": build.add, "-": build.sub, "*": build.mul}[symbol](left, right)


def _bits(e, symbol, dtype, left, right):
    """NumPy's operators on bits. All bits are gone after a shift by their number and more; a negative one counts as
    such.
    """
    build = e.builder
    if symbol in "&|^":
        return {"&": build.and_, "|": build.or_, "^": build.xor}[symbol](left, right)
    width = 8 * dtype.itemsize
    within = build.icmp_unsigned("<", right, constant(dtype, width))
    if symbol == ">>" and dtype.kind == "i":
        return build.ashr(left, build.select(within, right, constant(dtype, width - 1)))
    amount = build.select(within, right, constant(dtype, 0))
    shifted = build.lshr(left, amount) if symbol == ">>" else build.shl(left, amount)
    return build.select(within, shifted, constant(dtype, 0))


def _python_binary(e, symbol, left, right):
    """Arithmetic of Python numbers."""
    if symbol in BITS:
        return python_bits(e, symbol, left, right)
    if left.const is not None and right.const is not None:
        if symbol == "**" and left.type.is_int and abs(right.const) * left.magnitude.bit_length() > 4096:
            raise Unsupported("a power that may have more than 4096 bits")
        return fold(e, OPERATORS[symbol], left, right)
    if COMPLEX in (left.type, right.type):
        complex_numbers.check_python(symbol)
        operands = [promote(e, each, COMPLEX.dtype) for each in (left, right)]
        if symbol == "/":
            return Typed(COMPLEX, complex_numbers.python_quotient(e, COMPLEX.dtype, *operands))
        return Typed(COMPLEX, complex_numbers.binary(e, symbol, COMPLEX.dtype, *operands))
    if symbol == "**":
        if left.type.is_float or right.type.is_float or (right.const or 0) < 0:
            return python_pow(e, to_float(e, left).ir, to_float(e, right).ir)
        return python_int_pow(e, left, right)
    if symbol == "/":
        operands = [
            to_float(e, each).ir if FLOAT in (left.type, right.type) else exact_double(e, each)
            for each in (left, right)
        ]
        zero = e.builder.fcmp_ordered("==", operands[1], constant("float64", 0))
        word = "float division" if FLOAT in (left.type, right.type) else "division"
        e.fail_if(zero, "ZeroDivisionError", f"{word} by zero")
        return Typed(FLOAT, e.builder.fdiv(*operands, flags=e.flags))
    if FLOAT in (left.type, right.type):
        operands = [to_float(e, each).ir for each in (left, right)]
        if symbol in ("//", "%"):
            return python_divmod_float(e, symbol, *operands)
        return Typed(FLOAT, numpy_binary(e, symbol, FLOAT.dtype, *operands))
    return python_int(e, symbol, left, right)


def _power(e, left, right, dtype):
    """NumPy's ``**``."""
    if ARRAY0 in (left.type.kind, right.type.kind):
        raise Unsupported("** of the result of np.where (use np.power)")
    if dtype.kind == "c":
        raise Unsupported("** of complex numbers (use np.power, or z * z)")
    if dtype.kind in "iu":
        return int_power(e, dtype, left, right)
    operands = promote(e, left, dtype), promote(e, right, dtype)
    # A NumPy scalar that has the dtype of the result computes by itself, with the C library;
    # other pairs go through np.power.
    if scalar(dtype) in (left.type, right.type):
        return power_of_c(e, dtype, *operands)
    return e.call_loop("power", dtype, *operands)


def power_of_c(e, dtype, base, exponent):
    """The C library's pow; with fastmath LLVM's for constant exponents, of which it knows small ones."""
    if e.fastmath and isinstance(exponent, ir.Constant):
        return e.intrinsic("pow", base, exponent)
    if e.fastmath:
        return e.call_fast("pow", dtype, base, exponent)
    if isinstance(exponent, ir.Constant) and exponent.constant in e.powers:
        return e.call_power(dtype, base, exponent.constant)
    return e.call_c("pow", dtype, base, exponent)


def int_power(e, dtype, left, right):
    """A wrapping integer power."""
    exponent = right.const
    if exponent is None or right.type != INT:
        return _any_int_power(e, dtype, promote(e, left, dtype), promote(e, right, dtype))
    if exponent < 0:
        raise Unsupported("an integer to a negative power (NumPy refuses it too)")
    check_range(e, right, dtype)
    square, result = promote(e, left, dtype), constant(dtype, 1)
    while exponent:
        if exponent & 1:
            result = e.builder.mul(result, square)
        square = e.builder.mul(square, square)
        exponent >>= 1
    return result


def _any_int_power(e, dtype, base, exponent):
    """The same with an exponent that is known when the body runs."""
    if dtype.kind == "i":
        below = e.builder.icmp_signed("<", exponent, constant(dtype, 0))
        e.fail_if(below, "ValueError", "Integers to negative integer powers are not allowed.")
    return power_by_squares(e, base, exponent, constant(dtype, 1), e.builder.mul)


# Comparisons.


def _compare(e, symbol, left, right):
    """A comparison of two typed operands as an LLVM i1."""
    if left.type.is_python and right.type.is_python:
        if left.const is not None and right.const is not None:
            return I1(int(OPERATORS[symbol](left.const, right.const)))
        if COMPLEX in (left.type, right.type):
            return _compare_ir(e, symbol, COMPLEX.dtype, *(promote(e, each, COMPLEX.dtype) for each in (left, right)))
        if FLOAT in (left.type, right.type):
            return _compare_ir(e, symbol, FLOAT.dtype, exact_double(e, left), exact_double(e, right))
        dtype = INT.dtype
    else:
        dtype = infer(OPERATORS["+"], left.type, right.type).dtype
        beyond = (
            any(each.type == INT and not fits(each, dtype) for each in (left, right))
            if dtype.kind in "iu"
            else dtype.kind == "b"
        )
        signed = [each for each in (left, right) if each.type.dtype.kind == "i"]
        if len(signed) == 1 and UINT64 in (left.type.dtype, right.type.dtype) and (beyond or signed[0].type != INT):
            return _compare_signs(e, symbol, left, right)
        if beyond:
            dtype = INT.dtype  # NumPy compares with any Python int, also out of bounds
    return _compare_ir(e, symbol, dtype, promote(e, left, dtype), promote(e, right, dtype))


def _compare_signs(e, symbol, left, right):
    """A comparison of a uint64 with a signed integer, exact as NumPy's."""
    build, compare = e.builder, OPERATORS[symbol]
    first, second = (cast(e, each.ir, each.type.dtype, INT.dtype) for each in (left, right))
    sign, result = (first, compare(-1, 0)) if left.type.dtype.kind == "i" else (second, compare(0, -1))
    negative = build.icmp_signed("<", sign, constant(INT.dtype, 0))
    return build.select(negative, I1(int(result)), build.icmp_unsigned(symbol, first, second))


def _compare_ir(e, symbol, dtype, left, right):
    if dtype.kind == "c":
        return complex_numbers.equal(e, symbol, left, right)
    if dtype.kind == "f":
        compare = e.builder.fcmp_unordered if symbol == "!=" else e.builder.fcmp_ordered
        return compare(symbol, left, right)
    return int_compare(e, symbol, dtype, left, right)


def int_compare(e, symbol, dtype, left, right):
    """A comparison of two LLVM ints of one dtype."""
    compare = e.builder.icmp_unsigned if dtype.kind == "u" else e.builder.icmp_signed
    return compare(symbol, left, right)


def is_true(e, value):
    """Truth of a value as an LLVM i1."""
    return e.dispatch(lambda typed: boolean(truth(e, typed)), value).only.ir


# Unary operators.


def unary(e, symbol, value):
    """``-x``, ``+x``, ``not x``, ``~x``."""
    if symbol == "not":
        return boolean(e.builder.not_(is_true(e, value)))
    if symbol == "~":
        return e.dispatch(lambda typed: Value([_inverted(e, typed)]), value)
    return e.dispatch(lambda typed: Value([_signed(e, symbol, typed)]), value)


def _signed(e, symbol, typed):
    if typed.type.is_bool and not typed.type.is_python:
        raise Unsupported(f"{symbol} of a NumPy bool (NumPy refuses it too)")
    if typed.const is not None:
        return fold(e, (lambda x: -x) if symbol == "-" else (lambda x: +x), typed)
    if typed.type == BOOL:
        typed = Typed(INT, cast(e, typed.ir, BOOL.dtype, INT.dtype), low=0, high=1)
    if symbol == "+":
        return _as_scalar(typed)
    return negative(e, typed)


def _inverted(e, typed):
    result = infer(operator.invert, typed.type)
    if typed.const is not None:
        return fold(e, operator.invert, typed)
    value = cast(e, typed.ir, typed.type.dtype, result.dtype)
    if result != INT:
        return Typed(result, e.builder.not_(value))
    low, high = (0, 1) if typed.type == BOOL else (typed.low, typed.high)
    return Typed(INT, e.builder.not_(value), low=~high, high=~low)


def _as_scalar(typed):
    """NumPy's operators give scalars, also for 0-d arrays."""
    if typed.type.kind == ARRAY0:
        return Typed(scalar(typed.type.dtype), typed.ir)
    return typed


def negative(e, typed):
    """``-x`` of a number."""
    typed = _as_scalar(typed)
    if typed.type.is_complex:
        return Typed(typed.type, complex_numbers.negative(e, typed.type.dtype, typed.ir))
    if typed.type.is_float:
        return Typed(typed.type, e.builder.fneg(typed.ir, flags=e.flags))
    if typed.type == INT:
        return python_int(e, "-", Typed(INT, const=0), typed)
    return Typed(typed.type, e.builder.neg(typed.ir))


def absolute(e, typed):
    """``abs(x)``, Python's."""
    if typed.const is not None:
        return fold(e, abs, typed)
    result = infer(abs, typed.type)
    if typed.type.is_complex:
        if typed.type.is_python:
            return Typed(result, complex_numbers.python_magnitude(e, typed.type.dtype, typed.ir))
        if typed.type.kind == ARRAY0:  # a ufunc
            return Typed(result, complex_numbers.function(e, "absolute", typed.type.dtype, typed.ir))
        return Typed(result, complex_numbers.magnitude(e, typed.type.dtype, typed.ir))
    if result.is_bool:
        return Typed(result, typed.ir)
    if result.is_float:
        return Typed(result, e.intrinsic("fabs", typed.ir))
    value = cast(e, typed.ir, typed.type.dtype, result.dtype)
    if result != INT:
        below = int_compare(e, "<", result.dtype, value, constant(result.dtype, 0))
        return Typed(result, e.builder.select(below, e.builder.neg(value), value))
    operand = Typed(INT, value, low=typed.low, high=typed.high)
    minus = negative(e, operand)
    below = e.builder.icmp_signed("<", value, ir.Constant(ir_type("int64"), 0))
    return Typed(INT, e.builder.select(below, minus.ir, value), low=0, high=min(operand.magnitude, INT64_MAX))
