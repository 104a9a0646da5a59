"""Computing expressions of fields: one nest for each."""

import functools

import numpy as np

from tilewave.context.collective import agreed
from tilewave.errors import ConfigError, is_integer, shown
from tilewave.field.create import field
from tilewave.field.expression import Arithmetic, Expression
from tilewave.field.field import Field
from tilewave.nest.names import array_power
from tilewave.nest.nest import nest_from
from tilewave.nests.call import reduce_functions
from tilewave.nests.doors.run import run

INDICES = "ijkl"
#: Nests by their texts.
MOST_NESTS = 256


@functools.lru_cache(MOST_NESTS)
def _nest(name, arrays, indices, scalars, lines):
    head = ", ".join([*arrays, *indices, *(["*", *scalars] if scalars else [])])
    return nest_from("\n    ".join([f"def {name}({head}):", *lines]) + "\n", {"array_power": array_power})


class _Body:
    """The body of a nest, as it grows: its statements, and what it is given."""

    def __init__(self, ndim):
        self.ndim, self.lines, self.arrays, self.scalars, self._known = ndim, [], {}, {}, {}

    def array(self, given):
        """The name of an array or field."""
        name = self._known.get(id(given))
        if name is None:
            name = self._known[id(given)] = f"f{len(self.arrays)}"
            self.arrays[name] = given
        return name

    def element(self, given):
        """Its element at a point: its dimensions are the last ones."""
        names = INDICES[self.ndim - given.ndim : self.ndim]
        if isinstance(given, np.ndarray) and 1 in given.shape:
            names = [name for name, extent in zip(names, given.shape, strict=True) if extent != 1]
            if not names:
                return self.scalar(given.reshape(-1)[0])
            given = given.reshape([n for n in given.shape if n != 1])
        return f"{self.array(given)}[{', '.join(names)}]"

    def scalar(self, value):
        name = f"s{len(self.scalars)}"
        self.scalars[name] = value
        return name

    def value(self, given):
        """What a point writes for an operand, after the statements that it needs."""
        if not isinstance(given, Arithmetic | np.ndarray):
            return self.scalar(given)
        if not isinstance(given, Expression):
            return self.element(given)
        name = self._known.get(id(given))
        if name is None:
            given.check()
            texts = [self.value(each) for each in given.operands]
            name = self._known[id(given)] = f"t{len(self.lines)}"
            self.lines.append(f"{name} = {given.text.format(*texts)}")
        return name

    def run(self, name, context, **more):
        made = _nest(name, tuple(self.arrays), tuple(INDICES[: self.ndim]), tuple(self.scalars), tuple(self.lines))
        return run(made, context=context, **self.arrays, **self.scalars, **more)


def assigned(target, value, symbol=""):
    """``target[...] = value``; `symbol`: of NumPy's ``+=`` or its like, which refuses another kind of numbers."""
    body = agreed("tw.Field.__setitem__", target.context, lambda: _assignment(target, value, symbol))
    body.run("assign", target.context)
    target._changes += 1


def _assignment(target, value, symbol):
    whole = target.shape[target.ndim - value.ndim :] if value.ndim <= target.ndim else None
    if value.shape != whole:
        raise ConfigError(
            f"field {symbol or '[...] '}= : an expression of shape {value.shape} was given for a field of shape "
            f"{target.shape}; allowed: of its shape, or of its last dimensions"
        )
    if symbol and not np.can_cast(value.dtype, target.dtype, "same_kind"):
        raise ConfigError(
            f"field {symbol}= : the result has dtype {value.dtype}, the field {target.dtype}; allowed: u = (u {symbol} "
            f"x).copy(), a new field, or u[...] = u {symbol} x, which converts"
        )
    if value.dtype.kind == "c" and target.dtype.kind != "c":
        raise ConfigError(
            f"field[...] = : an expression of {value.dtype} was given for a field of {target.dtype}; allowed: "
            "np.real(x), abs(x)"
        )
    if value.dtype != target.dtype:  # as arrays are converted: elements that are set one by one are checked
        value = Expression(target.dtype.type, (value,))
    body = _Body(target.ndim)
    text = body.value(value)
    body.lines.append(f"{body.element(target)} = {text}")
    return body


def copied(value):
    made = field(value.shape, value.dtype, context=value.context)
    assigned(made, value)
    return made


def reduced(kind, value, axis):
    """The result of `Field.sum` and its kin."""
    axes = agreed(f"tw.Field.{kind}", value.context, lambda: _axes(kind, axis, value))
    if kind in ("any", "all"):
        value = value if value.dtype.kind == "b" else Expression(np.not_equal, (value, 0))
    if len(axes) < value.ndim:
        return _along(kind, value, axes)
    if kind == "mean":
        size = int(np.prod(value.shape, dtype=object))
        return reduced("sum", value, None) / np.float64(size) if size else np.float64(np.nan)
    if axis is not None and kind.startswith("arg"):
        return reduced(kind, value, None)[0]  # of one dimension
    wanted = {"any": "max", "all": "min"}.get(kind, kind)
    if isinstance(value, Field) and (value.size or kind == wanted):
        return getattr(reduce_functions, wanted)(value)
    body = _Body(value.ndim)
    text = agreed(f"tw.Field.{kind}", value.context, lambda: body.value(value))
    found = body.run(kind, value.context, reduce={"found": getattr(reduce_functions, wanted)(text)}).results["found"]
    if found is None and kind not in ("any", "all"):
        raise ConfigError(f"{kind}: an expression of shape {value.shape} has no elements")
    return np.bool_(kind == "all") if found is None else found


def _axes(kind, axis, value):
    """The axes along which is reduced, in order."""
    ndim = value.ndim
    given = range(ndim) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    several = isinstance(axis, tuple | list) and (not axis or kind.startswith("arg"))
    if several or any(not is_integer(each, -ndim, ndim - 1) for each in given):
        raise ConfigError(f"{kind}: axis={shown(axis)} was given for {ndim} dimensions; allowed: {-ndim} to {ndim - 1}")
    axes = sorted({int(each) % ndim for each in given})
    if len(axes) != len(given):
        raise ConfigError(f"{kind}: axis={shown(axis)} was given; allowed: each axis once")
    if 0 in (value.shape[k] for k in axes) and len(axes) < ndim and kind not in ("sum", "any", "all"):
        raise ConfigError(f"{kind}: there are no elements along axis {axes}; allowed: extents above 0")
    return axes


def _along(kind, value, axes):
    """A field of the other dimensions: the nest goes along `axes` in order, whatever the ranks are."""
    rest = [k for k in range(value.ndim) if k not in axes]
    shape = tuple(value.shape[k] for k in rest)
    count = int(np.prod([value.shape[k] for k in axes]))
    if kind in ("sum", "mean") and value.dtype.kind == "c":
        real, imaginary = (_along(kind, Expression(part, (value,)), axes) for part in (np.real, np.imag))
        return Expression(np.add, (real, Expression(np.multiply, (imaginary, 1j)))).copy()
    exact = kind == "mean" or kind == "sum" and value.dtype.kind == "f"
    place, flags = kind.startswith("arg"), kind in ("any", "all")
    if kind == "sum":
        dtype = reduce_functions.result_dtype(reduce_functions.sum("x"), [value.dtype])
    else:
        dtype = "f8" if exact else "i8" if place else value.dtype
    body = _Body(value.ndim)
    x = agreed(f"tw.Field.{kind}", value.context, lambda: body.value(value))
    names = ", ".join(INDICES[k] for k in rest)
    at = lambda of: f"{body.array(of)}[{names}]"
    made = field(shape, dtype, 1 if kind == "all" else None, context=value.context)
    more = [field(shape, "f8" if exact else value.dtype, context=value.context)] if exact or place else []
    out, other = at(made), at(more[0]) if more else ""
    first = " and ".join(f"{INDICES[k]} == 0" for k in axes)
    if exact:  # Ogita's, Rump's and Oishi's Sum2: `other` has what rounding takes away
        last = " and ".join(f"{INDICES[k]} == {body.scalar(value.shape[k] - 1)}" for k in axes)
        body.lines += [
            f"x = np.float64({x})",
            f"s = {out} + x",
            f"z = s - {out}",
            f"e = {other} + (({out} - (s - z)) + (x - z))",
            f"{other} = e",
            f"if {last}:",
            f"    {out} = (s + e if np.isfinite(s) else s) / {body.scalar(float(count) if kind == 'mean' else 1.0)}",
            "else:",
            f"    {out} = s",
        ]
    elif kind == "sum":
        body.lines += [f"{out} = {out} + np.{dtype}({x})"]
    elif place:
        better = f"x {'>' if kind == 'argmax' else '<'} {other}"
        body.lines += [
            f"x = {x}",
            f"if {first} or {better} or (x != x and {other} == {other}):",
            f"    {other} = x",
            f"    {out} = {INDICES[axes[0]]}",
        ]
    elif flags:
        body.lines += [f"{out} = {out} {'|' if kind == 'any' else '&'} {x}"]
    else:
        body.lines += [f"x = {x}", f"if {first}:", f"    {out} = x", "else:", f"    {out} = np.{kind}imum({out}, x)"]
    body.run(kind, value.context)
    return made


def set_operators():
    """What operators and methods of fields do: it needs nests."""
    for function in (assigned, copied, reduced):
        setattr(Arithmetic, f"_{function.__name__}", staticmethod(function))
