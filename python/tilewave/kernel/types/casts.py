"""Conversions between types: in arithmetic, by constructors, and when an element is assigned.

NumPy has several rules. In arithmetic a Python number takes the dtype of the other operand. A constructor casts a NumPy
scalar as C does but converts a Python number with checks. Assignment to an element of a signed array checks; to an
unsigned array it casts NumPy scalars as C does and checks Python numbers; to a float array it rounds.
"""

import platform

from llvmlite import ir

from tilewave.kernel.types import complex_numbers
from tilewave.kernel.types.values import I1, I32, I64, INT64_MAX, INT64_MIN, Typed, Value, constant, ir_type
from tilewave.nest.types import ARRAY0, BOOL, COMPLEX, FLOAT, INT, Unsupported, int_range

#: Ints up to this bound are doubles exactly.
EXACT_IN_DOUBLE = 2**53

X86 = platform.machine().lower() in ("x86_64", "amd64")


def cast(e, value, source, target):
    """Cast an LLVM value as C does."""
    build = e.builder
    if source == target:
        return value
    if "c" in (source.kind, target.kind):
        return _cast_complex(e, value, source, target)
    if target.kind == "b":
        if source.kind == "f":
            return build.fcmp_unordered("!=", value, constant(source, 0))
        return build.icmp_signed("!=", value, constant(source, 0))
    kind = ir_type(target)
    if source.kind == "b":
        return build.uitofp(value, kind) if target.kind == "f" else build.zext(value, kind)
    if target.kind == "f":
        if source.kind in "iu":
            return (build.uitofp if source.kind == "u" else build.sitofp)(value, kind)
        wider = target.itemsize > source.itemsize
        return e.itself((build.fpext if wider else build.fptrunc)(value, kind))
    if source.kind == "f":
        return _float_to_int(e, value, source, target)
    if target.itemsize > source.itemsize:
        return (build.zext if source.kind == "u" else build.sext)(value, kind)
    return value if target.itemsize == source.itemsize else _trunc(build, value, kind)


def _cast_complex(e, value, source, target):
    if target.kind == "b":
        return complex_numbers.is_true(e, value)
    if target.kind != "c":
        raise Unsupported(f"a complex number as {target.name} (take z.real, z.imag or abs(z))")
    part = complex_numbers.part_dtype(target)
    if source.kind != "c":
        return complex_numbers.joined(e, target, cast(e, value, source, part), constant(part, 0))
    before = complex_numbers.part_dtype(source)
    return complex_numbers.joined(e, target, *(cast(e, each, before, part) for each in complex_numbers.parts(e, value)))


def _trunc(build, value, kind):
    """The low bits of an int; of a choice of two by choosing theirs, for vectors of the narrow type."""
    if isinstance(value, ir.SelectInstr):
        condition, first, second = value.operands
        return build.select(condition, _trunc(build, first, kind), _trunc(build, second, kind))
    if getattr(value, "narrow", None) is None:
        return build.trunc(value, kind)
    if kind not in value.narrow:  # a value merged of two paths: each path's
        here, incoming = build.block, []
        for each, block in value.incomings:
            build.position_before(block.terminator)
            incoming.append((_trunc(build, each, kind), block))
        build.position_before(value)
        value.narrow[kind] = build.phi(kind)
        for each, block in incoming:
            value.narrow[kind].add_incoming(each, block)
        if here.is_terminated:  # between this and another path's value
            build.position_before(here.terminator)
        else:
            build.position_at_end(here)
    return value.narrow[kind]


def _float_to_int(e, value, source, target):
    """Truncate; out of range as this processor's instruction has it.

    Processors have no conversion to 8 and 16 bits: NumPy keeps the low bits of one to 32.
    """
    build = e.builder
    signed = target.kind == "i"
    if target.itemsize < 4:
        return build.trunc(_float_to_word(e, value, source, I32, signed), ir_type(target))
    if signed or not X86:
        return _float_to_word(e, value, source, ir_type(target), signed)
    # Nor has x86 one to unsigned numbers: the low bits of one to 64, and what is beyond without the highest bit.
    word = _float_to_word(e, value, source, I64, signed=True)
    if target.itemsize == 4:
        return build.trunc(word, I32)
    half = constant(source, 2.0**63)
    rest = _float_to_word(e, build.fsub(value, half), source, I64, signed=True)
    return build.select(build.fcmp_ordered(">=", value, half), build.xor(rest, I64(INT64_MIN)), word)


def _float_to_word(e, value, source, kind, signed):
    """A float as an int of 32 or 64 bits."""
    build = e.builder
    if not X86:  # saturates, NaN to 0
        name = f"llvm.fpto{'s' if signed else 'u'}i.sat.{kind.intrinsic_name}.{ir_type(source).intrinsic_name}"
        known = build.module.globals.get(name)
        function = known or ir.Function(build.module, ir.FunctionType(kind, [ir_type(source)]), name)
        return build.call(function, [value])
    least = -(2 ** (kind.width - 1))
    inside = build.and_(
        build.fcmp_ordered(">=", value, constant(source, least)),
        build.fcmp_ordered("<", value, constant(source, -least)),
    )
    return build.select(inside, build.fptosi(value, kind), ir.Constant(kind, least))


def fits(typed, dtype):
    """Return whether a Python int is within an integer dtype in every point."""
    low, high = int_range(dtype)
    return low <= typed.low and typed.high <= high


def check_range(e, typed, dtype):
    """A Python int as an integer dtype; OverflowError where it is out of bounds."""
    if typed.const is not None and not fits(typed, dtype):
        e.fail("OverflowError", f"Python integer {typed.const} out of bounds for {dtype.name}")
        return constant(dtype, 0)
    if typed.const is not None:
        return constant(dtype, typed.const)
    if not fits(typed, dtype):
        low, high = int_range(dtype)
        outside = e.builder.icmp_signed("<", typed.ir, I64(low))
        if high < INT64_MAX:
            outside = e.builder.or_(outside, e.builder.icmp_signed(">", typed.ir, I64(high)))
        e.fail_if(outside, "OverflowError", f"Python integer out of bounds for {dtype.name}")
    return typed.ir if dtype.itemsize == 8 else _trunc(e.builder, typed.ir, ir_type(dtype))


def promote(e, typed, dtype):
    """An operand of NumPy arithmetic in the dtype of the operation."""
    kind = typed.type
    if dtype.kind == "c" and kind.is_python and not kind.is_complex:
        part = complex_numbers.part_dtype(dtype)
        return complex_numbers.joined(e, dtype, promote(e, typed, part), constant(part, 0))
    if kind == COMPLEX and typed.const is not None and dtype.kind == "c":
        return constant(dtype, typed.const)
    if kind == INT and dtype.kind in "iu":
        return check_range(e, typed, dtype)
    if kind == INT and dtype.kind == "f":  # through a double, as NumPy does
        if typed.const is not None:
            return constant(dtype, _as_double(typed.const))
        return cast(e, e.builder.sitofp(typed.ir, ir_type("float64")), FLOAT.dtype, dtype)
    if kind == FLOAT and typed.const is not None and dtype.kind == "f":
        return constant(dtype, typed.const)
    return cast(e, typed.ir, kind.dtype, dtype)


def _as_double(value):
    try:
        return float(value)
    except OverflowError:
        raise Unsupported(f"integer {value} in float arithmetic") from None


def truth(e, typed):
    """``bool(x)`` as an LLVM i1."""
    if typed.const is not None:
        return I1(int(bool(typed.const)))
    return cast(e, typed.ir, typed.type.dtype, BOOL.dtype)


def to_int(e, typed, what="int(x)"):
    """``int(x)``: truncation, with Python's errors."""
    if typed.type.is_python and typed.const is not None:
        return fold(e, int, typed)
    if typed.type.is_complex:
        raise Unsupported(f"{what} of a complex number (take z.real, z.imag or abs(z))")
    if typed.type.is_float:
        value = cast(e, typed.ir, typed.type.dtype, FLOAT.dtype)
        nan = e.builder.fcmp_unordered("uno", value, value)
        e.fail_if(nan, "ValueError", "cannot convert float NaN to integer")
        bound = constant("float64", 2.0**63)
        inside = e.builder.and_(
            e.builder.fcmp_ordered(">=", value, constant("float64", -(2.0**63))),
            e.builder.fcmp_ordered("<", value, bound),
        )
        e.fail_if(e.builder.not_(inside), "OverflowError", f"{what} of a number beyond 64 bits")
        return Typed(INT, e.builder.fptosi(value, I64))
    if typed.type == INT:
        return typed
    low, high = (0, 1) if typed.type.is_bool else int_range(typed.type.dtype)
    if high > INT64_MAX:
        high = INT64_MAX
        e.fail_if(e.builder.icmp_signed("<", typed.ir, I64(0)), "OverflowError", f"{what} of a number beyond 64 bits")
    return Typed(INT, cast(e, typed.ir, typed.type.dtype, INT.dtype), low=low, high=high)


def to_float(e, typed):
    """``float(x)``."""
    if typed.type.is_complex:
        raise Unsupported("a complex number as a float (take z.real, z.imag or abs(z))")
    if typed.type == FLOAT:
        return typed
    if typed.type.is_python and typed.const is not None:
        return fold(e, float, typed)
    return Typed(FLOAT, cast(e, typed.ir, typed.type.dtype, FLOAT.dtype))


def exact_double(e, typed):
    """A Python number as a double that equals it; an error where none does."""
    if typed.type.is_int and typed.magnitude > EXACT_IN_DOUBLE:
        if typed.const is not None:
            raise Unsupported(f"integer {typed.const}, beyond 2**53, with floats")
        outside = e.builder.or_(
            e.builder.icmp_signed("<", typed.ir, I64(-EXACT_IN_DOUBLE)),
            e.builder.icmp_signed(">", typed.ir, I64(EXACT_IN_DOUBLE)),
        )
        e.fail_if(outside, "OverflowError", "a Python int beyond 2**53 with floats")
    return to_float(e, typed).ir


def construct(e, typed, dtype):
    """``np.float32(x)`` and its kin, as an LLVM value."""
    if typed.type.is_python and dtype.kind in "iu":
        return _whole(e, typed, dtype, f"np.{dtype.name}(x)")
    return promote(e, typed, dtype)


def assign(e, typed, dtype):
    """Return what ``A[i, j] = x`` stores in an array of a dtype, as an LLVM value."""
    if dtype.kind in "fc" or typed.type.kind == ARRAY0:
        return promote(e, typed, dtype)
    if dtype.kind == "u" and not typed.type.is_python:
        return cast(e, typed.ir, typed.type.dtype, dtype)
    if typed.type.dtype == dtype and not typed.type.is_python:
        return typed.ir
    return _whole(e, typed, dtype, "assignment to an integer array")


def _whole(e, typed, dtype, what):
    """A number as one of an integer dtype, with Python's errors."""
    if typed.type != FLOAT or typed.const is not None or int_range(dtype)[1] <= INT64_MAX:
        return check_range(e, to_int(e, typed, what), dtype)
    e.fail_if(e.builder.fcmp_unordered("uno", typed.ir, typed.ir), "ValueError", "cannot convert float NaN to integer")
    inside = e.builder.and_(
        e.builder.fcmp_ordered(">", typed.ir, constant("float64", -1)),
        e.builder.fcmp_ordered("<", typed.ir, constant("float64", 2.0**64)),
    )
    e.fail_if(e.builder.not_(inside), "OverflowError", f"{what} of a number out of bounds for {dtype.name}")
    return _float_to_int(e, typed.ir, FLOAT.dtype, dtype)


def fold(e, function, *operands):
    """A Python operation on constants; its exception where it raises one."""
    try:
        value = function(*(each.const for each in operands))
    except (ArithmeticError, ValueError) as error:
        e.fail(type(error).__name__, str(error))
        value = 1.0 if any(each.type.is_float or each.type.is_complex for each in operands) else 1
    if type(value) not in (bool, int, float, complex):
        raise Unsupported(f"a {type(value).__name__} result")
    kind = {bool: BOOL, int: INT, float: FLOAT, complex: COMPLEX}[type(value)]
    return Typed(kind, const=value)


def boolean(value):
    """A Python bool from an LLVM i1."""
    return Value([Typed(BOOL, value, low=0, high=1)])
