"""The values of a point that are reduced and stored in no array."""

from dataclasses import replace

import numpy as np

from tilewave.kernel.types import complex_numbers
from tilewave.kernel.types.casts import cast, promote
from tilewave.kernel.types.values import I1, I8, Typed, Value, constant, worst
from tilewave.nest.types import BOOL, COMPLEX, scalar

TRUE, FALSE = (Value([Typed(BOOL, const=truth)]) for truth in (True, False))


def watched_names(nest):
    """The locals and elements of which a body has to know whether a point has assigned them."""
    return frozenset(each for value in nest.values for part in value.expressions for each in part.partly)


def joined(e, ends):
    """Return what is known of them after several paths meet: from each to its value, and whether it was assigned."""
    known = {}
    for name in dict.fromkeys(name for _, state in ends for name in state.watched):
        kind = next(state.watched[name][0].options[0].type for _, state in ends if name in state.watched)
        nothing = Value([Typed(kind, constant(kind.dtype, 0))]), FALSE
        parts = [(block, state.watched.get(name, nothing)) for block, state in ends]
        known[name] = tuple(e.merge([(block, part[k]) for block, part in parts]) for k in (0, 1))
    return known


def store_values(body, nest):
    """At the end of a point: its values become cells of the state; those without a dtype only tell their types."""
    state = body.state
    known = {name: value for name, (value, _) in state.watched.items() if isinstance(name, str)}
    inside = replace(state, locals={**state.locals, **known})
    cells = {}
    for value in nest.values:
        counts = _counts(body, value)
        if value.form == "counts":
            result = body.e.builder.zext(_i1(counts), I8)
        elif counts is not None:
            dtype = np.dtype(value.dtype or "u1")
            nothing = Value([Typed(scalar(dtype), constant(dtype, worst(dtype, value.otherwise)))])
            chosen = body.e.branch(_i1(counts), lambda v=value: _computed(body, v, inside), lambda n=nothing: n)
            result = chosen.options[0].ir
        else:
            result = _computed(body, value, inside).only.ir
        if value.dtype is not None:
            key = value.name, (0,) * len(nest.indices), nest.indices, ()
            cells[key] = Typed(scalar(value.dtype), result)
    body.state = replace(state, cells={**state.cells, **cells})


def _counts(body, value):
    """Return whether the point counts, None where every point does."""
    flags = [
        body.state.watched[name][1].only if name in body.state.watched else FALSE.only
        for each in value.expressions
        for name in each.partly
    ]
    flags = [flag for flag in flags if flag.const is not True]
    if not flags:
        return None if value.form != "counts" else TRUE.only
    if any(flag.const is False for flag in flags):
        return FALSE.only
    counts = flags[0].ir
    for flag in flags[1:]:
        counts = body.e.builder.and_(counts, flag.ir)
    return Typed(BOOL, counts)


def _i1(flag):
    return flag.ir if flag.const is None else I1(int(flag.const))


def _computed(body, value, state):
    """The value of a point that counts."""
    e, outer = body.e, (body.state, body.source)
    body.state = state
    parts = []
    for each in value.expressions:
        body.source = each.source
        parts.append(body.expression(each.node))
    body.state, body.source = outer
    if value.dtype is None:
        for each, part in zip(value.expressions, parts, strict=True):
            each.types.update(option.type for option in part.options)
        return Value([Typed(scalar("u1"), constant("u1", 0))])
    if any(option.type.is_complex for part in parts for option in part.options):
        return e.dispatch(lambda *typed: Value([Typed(scalar(value.dtype), _of_complex(e, value, typed))]), *parts)
    numbers = [
        e.dispatch(lambda typed: Value([Typed(scalar(value.dtype), _converted(e, typed, value.dtype))]), part).only.ir
        for part in parts
    ]
    return Value([Typed(scalar(value.dtype), _formed(e, value, numbers))])


def _formed(e, value, numbers):
    if value.form == "magnitude":
        return e.intrinsic("fabs", numbers[0])
    if value.form in ("square", "product"):
        times = e.builder.fmul if value.dtype.kind == "f" else e.builder.mul
        return times(numbers[0], numbers[-1], **({"flags": e.flags} if value.dtype.kind == "f" else {}))
    return numbers[0]


def _of_complex(e, value, typed):
    """A part, a magnitude or a square of complex128 numbers, as float64."""
    build, numbers = e.builder, [promote(e, each, COMPLEX.dtype) for each in typed]
    a, b = complex_numbers.parts(e, numbers[0])
    if value.form in ("magnitude", "square"):
        if value.form == "magnitude":
            return e.call_c("hypot", value.dtype, a, b)
        return build.fadd(build.fmul(a, a, flags=e.flags), build.fmul(b, b, flags=e.flags), flags=e.flags)
    if len(numbers) == 2:
        product = complex_numbers.binary(e, "*", COMPLEX.dtype, *numbers)
        a, b = complex_numbers.parts(e, product)
    return a if value.form.startswith("real") else b


def _converted(e, typed, dtype):
    """Convert as ``astype`` does: whole numbers keep their low bits, which a wider dtype has all of."""
    if dtype.kind == "f":
        return promote(e, typed, dtype)
    if typed.const is not None:
        return constant(dtype, int(typed.const))
    return cast(e, typed.ir, typed.type.dtype, dtype)
