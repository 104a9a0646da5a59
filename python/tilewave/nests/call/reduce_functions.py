"""One number out of all values that the points of a nest have, or out of all elements of a field."""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import TYPE_CHECKING, Any, ParamSpec, overload

import numpy as np

from tilewave.context import interrupts
from tilewave.context.collective import collective
from tilewave.errors import ConfigError, shown
from tilewave.field.expression import Expression
from tilewave.field.field import Field
from tilewave.nest.inner_loops import OF_TERMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    P = ParamSpec("P")

#: What the core is asked for: the operation, and of which form of each value.
KINDS = {
    "max": ("max", "value"),
    "min": ("min", "value"),
    "argmax": ("max", "value"),
    "argmin": ("min", "value"),
    "sum": ("sum", "value"),
    "dot": ("sum", "product"),
}
NORMS = {1: ("sum", "magnitude"), 2: ("sum", "square"), np.inf: ("max", "magnitude")}


@dataclasses.dataclass(frozen=True)
class Reduction:
    """What `run` is asked for by ``reduce=``; made by `max`, `min`, `argmax`, `argmin`, `sum`, `dot` and `norm`.

    Attributes
    ----------
    kind : str
        The name of that function.
    array : str
        An array of the nest, a local of its body, or an expression of these.
    other : str
        The second one of `dot`, else empty.
    ord : int or float
        Of `norm`, else 0.
    """

    kind: str
    array: str
    other: str = ""
    ord: float = 0

    def __str__(self) -> str:
        parts = [repr(self.array), *([repr(self.other)] if self.other else [])]
        if self.kind == "norm" and self.ord != 2:
            parts.append(f"ord={self.ord}")
        return f"{self.kind}({', '.join(parts)})"

    @property
    def operation(self) -> tuple[str, str]:
        """The operation of the core, and the form of the values."""
        return NORMS[self.ord] if self.kind == "norm" else KINDS[self.kind]

    @property
    def is_place(self) -> bool:
        """Whether it is where a value is."""
        return self.kind.startswith("arg")

    @property
    def texts(self) -> tuple[str, ...]:
        """Of the expressions."""
        return (self.array, self.other) if self.kind == "dot" else (self.array,)


def _of_names_or_fields(function: Callable[P, Any]) -> Callable[P, Any]:
    """Decorator: a function's docstring becomes that of a call that is local for names, and collective for fields."""
    kind = function.__name__

    def of_fields(*arguments, **keywords):
        given = _bound(function, arguments, keywords)
        order = _checked_ord(given.pop("ord")) if kind == "norm" else 0
        fields = [*given.values()]
        for each in fields:
            if not isinstance(each, Field):
                raise ConfigError(
                    f"{kind}: given {type(each).__name__}; allowed: the name of an array or a local of a nest or an "
                    "expression of them, or a field, or a formula of fields"
                    f"{'; both of one kind' if len(fields) > 1 else ''}"
                )
        storages = [each._whole(kind) for each in fields]
        first = fields[0]
        if any(each.shape != first.shape or each.context is not first.context for each in fields):
            raise ConfigError(
                f"{kind}: given fields of shapes {first.shape} and {fields[1].shape}; allowed: two of one shape and "
                "one context"
            )
        norm_of = f", ord {order}" if kind == "norm" else ""
        yield ", ".join(f"field {each._number}" for each in fields) + norm_of
        r = Reduction(kind, "x", "y" if kind == "dot" else "", order)
        return first.context._ranks.run(
            lambda: _value_of_fields(r, fields, storages),
            lambda calls: (
                calls.place(first.ndim, f"{kind} of a field") if r.is_place else calls.unknown(f"{kind} of a field")
            ),
        )

    of_fields = collective(f"tw.{kind}")(functools.wraps(function)(of_fields))

    @functools.wraps(function)
    @interrupts.keeps
    def call(*arguments, **keywords):
        names = [*arguments, *keywords.values()]
        if kind in OF_TERMS and names and isinstance(names[0], types.GeneratorType):
            return OF_TERMS[kind](*arguments, **keywords)
        if not names or not isinstance(names[0], str):
            return of_fields(*map(_as_field, arguments), **{name: _as_field(each) for name, each in keywords.items()})
        given = _bound(function, arguments, keywords)
        order = _checked_ord(given.pop("ord")) if kind == "norm" else 0
        for text in given.values():
            if not isinstance(text, str):
                raise ConfigError(f"{kind}: given a name and {type(text).__name__}; allowed: two names, or two fields")
        return Reduction(kind, *given.values(), **({"ord": order} if kind == "norm" else {}))

    call.of_terms = kind if kind in OF_TERMS else None
    return call


def _as_field(value):
    """Return a field with the values of a formula; another value as it is."""
    return value.copy() if isinstance(value, Expression) else value


def _value_of_fields(r, fields, storages):
    """A reduction of one field, or of two; collective."""
    if any(each.dtype.kind == "c" for each in fields):
        return _of_complex_fields(r, fields, storages)
    first = fields[0]
    if r.kind == "dot":
        found = first.context._moves(storages[0].dot, storages[1], first.dtype.name, fields[1].dtype.name)
    else:
        found = storages[0].reduce(r.operation[0], first.dtype.name, r.operation[1])
    dtype = result_dtype(r, [each.dtype for each in fields])
    return value_of(r, dtype, (found.any, found.at, found.bytes), f"{r.kind}: a field of shape {first.shape}")


def _of_complex_fields(r, fields, storages):
    """Sums of complex elements part by part, norms of magnitudes."""
    op, form = r.operation
    names = [f"float{4 * d.itemsize}" if (d := each.dtype).kind == "c" else d.name for each in fields]
    if r.kind == "norm":
        found = storages[0].reduce(op, names[0], form, "both")
        return value_of(r, np.dtype("f8"), (found.any, found.at, found.bytes), "norm: a field")
    if op != "sum":
        raise ConfigError(f"{r.kind}: given a field of complex numbers, which have no order; allowed: sum, dot, norm")
    parts = []
    for part in ("real", "imag"):
        if r.kind == "dot":
            found = fields[0].context._moves(storages[0].dot, storages[1], *names, part)
        else:
            found = storages[0].reduce(op, names[0], form, part)
        parts.append(value_of(r, np.dtype("f8"), (found.any, found.at, found.bytes)))
    return np.complex128(complex(*parts))


def _bound(function, arguments, keywords):
    """The arguments of a call by name."""
    try:
        return function(*arguments, **keywords)
    except TypeError as error:
        raise ConfigError(f"{error}; see help(tilewave.{function.__name__})") from None


def _checked_ord(order):
    if isinstance(order, bool | np.bool_) or not isinstance(order, int | float | np.number) or order not in NORMS:
        raise ConfigError(f"norm: ord={shown(order)} was given; allowed: 1, 2, numpy.inf")
    return next(each for each in NORMS if each == order)


@overload
def max(array: Field | Expression | Iterator[Any]) -> Any: ...
@overload
def max(array: str) -> Reduction: ...
@_of_names_or_fields
def max(array: str | Field | Expression | Iterator[Any]) -> Any:
    """The largest value: ``tw.run(..., reduce={"best": tw.max("H")})``, or at once for a field.

    Parameters
    ----------
    array : str, Field, Expression or generator
        A str: an array of the nest that `run` is given, a local of its body, or an expression of these, ``"abs(d)"``;
        of all points, while they are computed. An array stands for the element that a point writes, or else reads at
        the point. Where some paths through the body do not assign the local or element, points that took another path
        do not count. A field, or a formula of fields (``u - v``): of its elements now. A generator, in a body: of its
        terms, as Python's `max`.

    Returns
    -------
    Reduction or NumPy scalar
        Of the value's dtype. NaN if any is. None where no point counts.

    Raises
    ------
    ConfigError
        For a field that keeps a rolling window only, or has no elements.

    Notes
    -----
    Collective for a field: messages of 1 KB up and down a tree of ranks. In a run the largest value of independent
    points is found while they are computed, and stored nowhere for it. Where a place is wanted as well, a row of
    integers is searched only if it has a better one than those before; other values are read once more while they are
    in the nearest cache. A largest value that is zero is 0.0, not -0.0.
    """
    return {"array": array}


@overload
def min(array: Field | Expression | Iterator[Any]) -> Any: ...
@overload
def min(array: str) -> Reduction: ...
@_of_names_or_fields
def min(array: str | Field | Expression | Iterator[Any]) -> Any:
    """The smallest value; as `max`."""
    return {"array": array}


@overload
def argmax(array: Field | Expression) -> tuple[int, ...]: ...
@overload
def argmax(array: Iterator[Any]) -> int: ...
@overload
def argmax(array: str) -> Reduction: ...
@_of_names_or_fields
def argmax(array: str | Field | Expression | Iterator[Any]) -> Any:
    """The subscripts of the largest value, a tuple; of equals the lexicographically first; as `max`.

    Those of the array's element; the loop indices of the point for a local and for an expression. Of a generator, in a
    body, the number of the first largest term, from 0.
    """
    return {"array": array}


@overload
def argmin(array: Field | Expression) -> tuple[int, ...]: ...
@overload
def argmin(array: Iterator[Any]) -> int: ...
@overload
def argmin(array: str) -> Reduction: ...
@_of_names_or_fields
def argmin(array: str | Field | Expression | Iterator[Any]) -> Any:
    """The subscripts of the smallest value, a tuple; of equals the lexicographically first; as `argmax`."""
    return {"array": array}


@overload
def sum(array: Field | Expression | Iterator[Any]) -> Any: ...
@overload
def sum(array: str) -> Reduction: ...
@_of_names_or_fields
def sum(array: str | Field | Expression | Iterator[Any]) -> Any:
    """The sum; as `max`. That of nothing is 0.

    Of integers and booleans as int64, modulo 2**64. Of floats as float64: the exact sum, rounded once, as `math.fsum`
    gives; so it is the same for any plan and number of ranks. Of a generator, in a body, the terms are added one after
    another. Of complex values as complex128, each part exact and
    rounded once.
    """
    return {"array": array}


@overload
def dot(array: Field | Expression, other: Field | Expression) -> Any: ...
@overload
def dot(array: str, other: str) -> Reduction: ...
@_of_names_or_fields
def dot(array: str | Field | Expression, other: str | Field | Expression) -> Any:
    """The sum of products: ``tw.run(..., reduce={"uv": tw.dot("u", "v")})``, or at once for two fields of one shape.

    Parameters
    ----------
    array, other : str, Field or Expression
        As for `max`; a point counts where both have a value.

    Returns
    -------
    Reduction or NumPy scalar
        Of integers int64, modulo 2**64. Else float64: the exact sum, rounded once, of the products as float64 has them
        (exact ones for float32). That of nothing is 0. Where one is complex, complex128 by parts; nothing is
        conjugated.

    Notes
    -----
    Collective for fields. Where the second one is divided otherwise among the ranks, a copy of it is moved.
    """
    return {"array": array, "other": other}


@overload
def norm(array: Field | Expression, ord: float = 2) -> np.float64: ...
@overload
def norm(array: str, ord: float = 2) -> Reduction: ...
@_of_names_or_fields
def norm(array: str | Field | Expression, ord: float = 2) -> Any:
    """The norm of all values as one vector; as `max`. That of nothing is 0.

    Parameters
    ----------
    array : str, Field or Expression
    ord : 1, 2 or numpy.inf
        The sum of magnitudes, the root of the sum of squares, or the largest magnitude.

    Returns
    -------
    Reduction or NumPy scalar
        float64, also of complex values. Sums are exact and rounded once; the squares and the root are those of float64.
        As in NumPy, squares beyond 1.8e308 make it infinite.
    """
    return {"array": array, "ord": ord}


def result_dtype(r, dtypes):
    """Of a reduction of values of these dtypes."""
    if r.kind in ("sum", "dot") and any(dtype.kind == "c" for dtype in dtypes):
        return np.dtype("c16")
    if r.kind in ("sum", "dot", "norm"):
        if r.kind == "norm" or any(dtype.kind == "f" for dtype in dtypes):
            return np.dtype("f8")
        return np.dtype("u8" if np.dtype("u8") in dtypes else "i8")
    return dtypes[0]


def value_of(r, dtype, found, field=None):
    """The result as a NumPy scalar or a tuple; `field`: what has no elements where there are none, for a message."""
    has, at, data = found
    op = r.operation[0]
    if not has:
        if op == "sum" or r.kind == "norm":
            return dtype.type(0)
        if field is None:
            return None  # no point counts
        raise ConfigError(f"{field} has no elements")
    if r.is_place:
        return tuple(at)
    if op == "sum":
        value = np.frombuffer(data, dtype)[0]
        return np.sqrt(value) if r.kind == "norm" and r.ord == 2 else value
    if dtype.kind == "b":
        return np.bool_(data[0])
    return np.frombuffer(data, dtype)[0]
