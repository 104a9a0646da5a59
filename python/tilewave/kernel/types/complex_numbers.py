"""Complex numbers in a kernel: two floats, with NumPy's operations on them, bit for bit."""

import sys

import numpy as np
from llvmlite import ir

from tilewave.kernel.types.values import constant, ir_type
from tilewave.nest.types import Unsupported

#: NumPy's functions of one complex argument that kernels call; `absolute` has a real result.
CALLED = (
    "exp sqrt log log10 sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh expm1 log1p exp2 log2 "
    "square reciprocal rint"
).split()


def part_dtype(dtype):
    """The dtype of the real and of the imaginary part."""
    return np.dtype("f4" if dtype.itemsize == 8 else "f8")


def parts(e, value):
    """(real, imaginary) part of an LLVM complex number."""
    return tuple(e.builder.extract_value(value, k) for k in (0, 1))


def joined(e, dtype, real, imaginary):
    """An LLVM complex number from its parts."""
    value = ir.Constant(ir_type(dtype), ir.Undefined)
    return e.builder.insert_value(e.builder.insert_value(value, real, 0), imaginary, 1)


def binary(e, symbol, dtype, left, right):
    """``left + right`` and the like of two LLVM complex numbers of one dtype, as NumPy's scalars have it."""
    build, flags = e.builder, e.flags
    (a, b), (c, d) = parts(e, left), parts(e, right)
    if symbol in "+-":
        operation = build.fadd if symbol == "+" else build.fsub
        return joined(e, dtype, operation(a, c, flags=flags), operation(b, d, flags=flags))
    if symbol == "*":
        real = build.fsub(build.fmul(a, c, flags=flags), build.fmul(b, d, flags=flags), flags=flags)
        imaginary = build.fadd(build.fmul(a, d, flags=flags), build.fmul(b, c, flags=flags), flags=flags)
        return joined(e, dtype, real, imaginary)
    if symbol == "/":
        return _quotient(e, dtype, (a, b), (c, d))
    raise Unsupported(f"{symbol} of complex numbers{' (use np.power, or z * z)' if symbol == '**' else ''}")


def _quotient(e, dtype, left, right):
    """Smith's algorithm, as NumPy has it, with a reciprocal."""
    build, flags, part = e.builder, e.flags, part_dtype(dtype)
    *terms, divisor = _terms(e, left, right)
    scale = build.fdiv(constant(part, 1), divisor, flags=flags)
    # By zero: each part divided by zero.
    zero, size = _is_zero(e, part, right), e.intrinsic("fabs", right[0])
    found = [
        build.select(zero, build.fdiv(each, size, flags=flags), build.fmul(term, scale, flags=flags))
        for each, term in zip(left, terms, strict=True)
    ]
    return joined(e, dtype, *found)


def python_quotient(e, dtype, left, right):
    """``left / right`` of two LLVM complex numbers, as Python has it: Smith's algorithm, with divisions."""
    (a, b), (c, d) = parts(e, left), parts(e, right)
    e.fail_if(_is_zero(e, part_dtype(dtype), (c, d)), "ZeroDivisionError", "complex division by zero")
    *terms, divisor = _terms(e, (a, b), (c, d))
    unknown, nan = e.builder.fcmp_unordered("uno", c, d), constant(part_dtype(dtype), float("nan"))
    found = (e.builder.fdiv(each, divisor, flags=e.flags) for each in terms)
    return joined(e, dtype, *(e.builder.select(unknown, nan, each) for each in found))


def _terms(e, left, right):
    """What is divided for the real and the imaginary part, and by what: by the larger part of the divisor."""
    build, flags = e.builder, e.flags
    first = build.fcmp_ordered(">=", *(e.intrinsic("fabs", each) for each in right))
    large, small = (build.select(first, right[k], right[1 - k]) for k in (0, 1))
    ratio = build.fdiv(small, large, flags=flags)
    divisor = build.fadd(large, build.fmul(small, ratio, flags=flags), flags=flags)
    # a + b r and b - a r, or a r + b and b r - a.
    near, far = (build.select(first, left[k], left[1 - k]) for k in (0, 1))
    scaled = [build.fmul(each, ratio, flags=flags) for each in left]
    difference = build.select(
        first, build.fsub(left[1], scaled[0], flags=flags), build.fsub(scaled[1], left[0], flags=flags)
    )
    return build.fadd(near, build.fmul(far, ratio, flags=flags), flags=flags), difference, divisor


def _is_zero(e, part, value):
    return e.builder.and_(*(e.builder.fcmp_ordered("==", each, constant(part, 0)) for each in value))


def equal(e, symbol, left, right):
    """``==`` and ``!=`` as an LLVM i1."""
    if symbol not in ("==", "!="):
        raise Unsupported(f"{symbol} of complex numbers (compare abs(z), z.real or z.imag)")
    compare = e.builder.fcmp_unordered if symbol == "!=" else e.builder.fcmp_ordered
    sides = [compare(symbol, a, b) for a, b in zip(parts(e, left), parts(e, right), strict=True)]
    return (e.builder.or_ if symbol == "!=" else e.builder.and_)(*sides)


def is_true(e, value):
    """Return whether a part is not zero."""
    tests = [e.builder.fcmp_unordered("!=", each, ir.Constant(each.type, 0.0)) for each in parts(e, value)]
    return e.builder.or_(*tests)


def negative(e, dtype, value):
    return joined(e, dtype, *(e.builder.fneg(each, flags=e.flags) for each in parts(e, value)))


def magnitude(e, dtype, value):
    """``abs(z)`` of a NumPy scalar: the C library's."""
    return e.call_c("hypot", part_dtype(dtype), *parts(e, value))


def python_magnitude(e, dtype, value):
    """``abs(z)`` of a Python complex."""
    found, build = magnitude(e, dtype, value), e.builder
    infinite = ir.Constant(found.type, float("inf"))
    ends = [
        build.fcmp_ordered("==", each, infinite)
        for each in (found, *(e.intrinsic("fabs", part) for part in parts(e, value)))
    ]
    e.fail_if(build.and_(ends[0], build.not_(build.or_(*ends[1:]))), "OverflowError", "absolute value too large")
    return found


def function(e, name, dtype, *values):
    """A NumPy function of complex numbers of one dtype, whose result is of the dtype, or real for `absolute`."""
    if name == "conjugate":
        real, imaginary = parts(e, values[0])
        return joined(e, dtype, real, e.builder.fneg(imaginary, flags=e.flags))
    if name == "absolute":
        return e.call_loop("absolute.real", dtype, *values)
    if name in CALLED or name == "power":
        return e.call_loop(name, dtype, *values)
    raise Unsupported(f"np.{name} of complex numbers")


def test(e, name, value, of_part):
    """``np.isnan``, ``isinf``, ``isfinite``; `of_part` tests a float."""
    tests = [of_part(e, name, each) for each in parts(e, value)]
    return (e.builder.and_ if name == "isfinite" else e.builder.or_)(*tests)


def check_python(symbol):
    """Refuse what CPython computes otherwise than NumPy does, or than other versions of it."""
    if symbol not in ("+", "-", "*", "/") or sys.version_info >= (3, 14):
        raise Unsupported(f"{symbol} of two Python numbers, one of them complex (np.complex128(z) is NumPy's)")
