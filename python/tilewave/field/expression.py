"""Expressions of fields, element by element: formulas that one nest computes where they are assigned or reduced."""

from __future__ import annotations

import functools
import numbers
import operator
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from tilewave.dtypes import ALL
from tilewave.errors import ConfigError
from tilewave.field.values import dtype_of
from tilewave.nest.names import FUNCTIONS
from tilewave.not_numpy import NotNumPy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tilewave.context.context import Context
    from tilewave.field.field import Field

    Operator: TypeAlias = Callable[[Any, Any], "Expression"]
    InPlace: TypeAlias = Callable[[Any, Any], Any]

#: What a body writes for NumPy's functions; ``np.name(...)`` for others.
TEXTS = {
    np.add: "{} + {}",
    np.subtract: "{} - {}",
    np.multiply: "{} * {}",
    np.divide: "{} / {}",
    np.floor_divide: "{} // {}",
    np.remainder: "{} % {}",
    np.bitwise_and: "{} & {}",
    np.bitwise_or: "{} | {}",
    np.bitwise_xor: "{} ^ {}",
    np.left_shift: "{} << {}",
    np.right_shift: "{} >> {}",
    np.invert: "~{}",
    np.negative: "-{}",
    np.positive: "+{}",
    np.absolute: "abs({})",
    np.less: "{} < {}",
    np.less_equal: "{} <= {}",
    np.greater: "{} > {}",
    np.greater_equal: "{} >= {}",
    np.equal: "{} == {}",
    np.not_equal: "{} != {}",
    np.where: "np.where({}, {}, {})",
}
#: Complex numbers have no order.
EXTREMES = (np.minimum, np.maximum, np.fmin, np.fmax)
ORDER = (np.less, np.less_equal, np.greater, np.greater_equal, np.sign, *EXTREMES)
#: Of bools.
OF_BOOLS = dict(zip(EXTREMES, ("{} & {}", "{} | {}") * 2)) | dict.fromkeys((np.floor, np.ceil, np.trunc), "{}")
#: What there is in place of NumPy's functions.
WAYS = {
    "dot": "tilewave.dot(u, v)",
    "vdot": "tilewave.dot(np.conj(u), v)",
    "inner": "tilewave.dot(u, v)",
    "norm": "tilewave.norm(u)",
    "pickle": "u.save(path) and tilewave.load, or tilewave.checkpoint",
    "matmul": "tilewave.dot(u, v), and tilewave.linalg.matrix(u) @ tilewave.linalg.matrix(v)",
    "reciprocal": "1 / u",
    **{f"logical_{name}": f"(u != 0) {symbol} (v != 0)" for name, symbol in (("and", "&"), ("or", "|"), ("xor", "^"))},
    "logical_not": "u == 0",
    **dict.fromkeys(("int", "float", "complex"), "u[i, j], u.sum(), u.max() and the like, which are numbers"),
    "where": "tilewave.where(condition, u, v)",
    "var": "(abs(u - u.mean()) ** 2).mean()",
    "std": "np.sqrt((abs(u - u.mean()) ** 2).mean())",
    "clip": "np.clip(u, low, high)",
    "round": "np.round(u * 10) / 10 for one decimal",
    "T": "a nest that writes v[j, i] = u[i, j]",
    "transpose": "a nest that writes v[j, i] = u[i, j]",
    "cumsum": "a nest that writes s[i] = s[i-1] + u[i]",
    "allclose": "(abs(u - v) <= tolerance).all()",
    "array_equal": "(u == v).all()",
    "zeros_like": "tilewave.field(u.shape, u.dtype)",
    "diff": "a nest that reads u[i+1] and u[i]",
    "pad": "tilewave.exchange(u, boundary=...), of a field with halo= and boundary=",
    "roll": "a nest that reads u[i-1, j], with periodic=",
    "gradient": "a nest that reads u[i+1, j] and u[i-1, j]",
}

#: NumPy's functions that are methods here, too.
METHODS = {np.sum: "sum", np.mean: "mean", np.any: "any", np.all: "all"}
METHODS |= {each: name for name in ("min", "max") for each in (getattr(np, name), getattr(np, f"a{name}"))}


def _operator(ufunc: Callable[..., Any], swapped: bool = False) -> Operator:
    if swapped:
        return lambda self, other: Expression(ufunc, (other, self))
    return lambda self, other: Expression(ufunc, (self, other))


def _in_place(symbol: str, function: Callable[[Any, Any], Any]) -> InPlace:
    return lambda self, other: self._become(symbol, lambda: function(self, other))


class Arithmetic(NotNumPy):
    """Hold what fields and expressions of fields have in common with NumPy's arrays."""

    context: Context
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    _what = "a field"
    _otherwise = (
        "a nest; field.local, this rank's part without a copy; field.gather(), the whole array on rank 0; "
        "field[...], on every rank"
    )
    # Set by `tilewave.nests.doors.expressions`, which makes nests.
    _assigned: Callable[[Any, Any], None]
    _copied: Callable[[Any], Field]
    _reduced: Callable[[str, Any, Any], Any]

    __add__: ClassVar[Operator] = _operator(np.add)
    __radd__: ClassVar[Operator] = _operator(np.add, True)
    __sub__: ClassVar[Operator] = _operator(np.subtract)
    __rsub__: ClassVar[Operator] = _operator(np.subtract, True)
    __mul__: ClassVar[Operator] = _operator(np.multiply)
    __rmul__: ClassVar[Operator] = _operator(np.multiply, True)
    __truediv__: ClassVar[Operator] = _operator(np.divide)
    __rtruediv__: ClassVar[Operator] = _operator(np.divide, True)
    __floordiv__: ClassVar[Operator] = _operator(np.floor_divide)
    __rfloordiv__: ClassVar[Operator] = _operator(np.floor_divide, True)
    __mod__: ClassVar[Operator] = _operator(np.remainder)
    __rmod__: ClassVar[Operator] = _operator(np.remainder, True)
    __pow__: ClassVar[Operator] = lambda self, other: power(operator.pow, self, other)
    __rpow__: ClassVar[Operator] = lambda self, other: power(operator.pow, other, self)
    __lshift__: ClassVar[Operator] = _operator(np.left_shift)
    __rlshift__: ClassVar[Operator] = _operator(np.left_shift, True)
    __rshift__: ClassVar[Operator] = _operator(np.right_shift)
    __rrshift__: ClassVar[Operator] = _operator(np.right_shift, True)
    __and__: ClassVar[Operator] = _operator(np.bitwise_and)
    __rand__: ClassVar[Operator] = _operator(np.bitwise_and, True)
    __or__: ClassVar[Operator] = _operator(np.bitwise_or)
    __ror__: ClassVar[Operator] = _operator(np.bitwise_or, True)
    __xor__: ClassVar[Operator] = _operator(np.bitwise_xor)
    __rxor__: ClassVar[Operator] = _operator(np.bitwise_xor, True)
    __lt__: ClassVar[Operator] = _operator(np.less)
    __le__: ClassVar[Operator] = _operator(np.less_equal)
    __gt__: ClassVar[Operator] = _operator(np.greater)
    __ge__: ClassVar[Operator] = _operator(np.greater_equal)
    __eq__: ClassVar[Operator] = _operator(np.equal)  # type: ignore[assignment]
    __ne__: ClassVar[Operator] = _operator(np.not_equal)  # type: ignore[assignment]

    __iadd__: ClassVar[InPlace] = _in_place("+", operator.add)
    __isub__: ClassVar[InPlace] = _in_place("-", operator.sub)
    __imul__: ClassVar[InPlace] = _in_place("*", operator.mul)
    __itruediv__: ClassVar[InPlace] = _in_place("/", operator.truediv)
    __ifloordiv__: ClassVar[InPlace] = _in_place("//", operator.floordiv)
    __imod__: ClassVar[InPlace] = _in_place("%", operator.mod)
    __ipow__: ClassVar[InPlace] = _in_place("**", operator.pow)  # type: ignore[misc]
    __iand__: ClassVar[InPlace] = _in_place("&", operator.and_)
    __ior__: ClassVar[InPlace] = _in_place("|", operator.or_)
    __ixor__: ClassVar[InPlace] = _in_place("^", operator.xor)
    __ilshift__: ClassVar[InPlace] = _in_place("<<", operator.lshift)
    __irshift__: ClassVar[InPlace] = _in_place(">>", operator.rshift)

    def _become(self, symbol: str, make: Callable[[], Expression]) -> Any:
        """Return what the operator in place gives the name: of an expression another one."""
        return make()

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __divmod__(self, other: Any) -> tuple[Expression, Expression]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Expression, Expression]:
        return other // self, other % self

    def __pos__(self) -> Expression:
        return Expression(np.positive, (self,))

    def __matmul__(self, other: Any) -> Any:
        raise self._refused("numpy.matmul")

    __rmatmul__: ClassVar[InPlace] = __matmul__
    __imatmul__: ClassVar[InPlace] = __matmul__

    def __neg__(self) -> Expression:
        return Expression(np.negative, (self,))

    def __abs__(self) -> Expression:
        return Expression(np.absolute, (self,))

    def __invert__(self) -> Expression:
        return Expression(np.invert, (self,))

    @classmethod
    def _ways(cls) -> dict[str, str]:
        return WAYS

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method == "__call__" and not keywords and ufunc is np.divmod:
            return inputs[0] // inputs[1], inputs[0] % inputs[1]
        if method == "__call__" and not keywords and ufunc is np.power:
            return power(np.power, *inputs)
        if method == "__call__" and not keywords and ufunc.nout == 1 and (ufunc in TEXTS or ufunc in FUNCTIONS):
            return Expression(ufunc, inputs)
        return super().__array_ufunc__(ufunc, method, *inputs, **keywords)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        if function in METHODS and arguments and not keywords.keys() - {"axis"}:
            return getattr(arguments[0], METHODS[function])(*arguments[1:], **keywords)
        if function in FUNCTIONS and not keywords and len(arguments) == FUNCTIONS[function][1]:
            return Expression(function, arguments)
        return super().__array_function__(function, types, arguments, keywords)

    def __bool__(self) -> bool:
        raise TypeError(
            "the truth value of a field is not defined; allowed: `field is not None`, or (u > 0).any(), .all()"
        )

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __iter__(self) -> Any:
        raise TypeError(
            "a field cannot be iterated over: each element would be a message; allowed: field.local, this rank's "
            "part, or field.gather()"
        )

    def astype(self, dtype: Any) -> Expression:
        """The elements as another dtype, converted as NumPy converts: an expression, as ``2 * u`` is."""
        return Expression(dtype_of(dtype).type, (self,))

    def sum(self, axis: int | Sequence[int] | None = None) -> Any:
        """The sum of all elements, or along axes; collective.

        Parameters
        ----------
        axis : int or tuple of int, optional
            Default: all.

        Returns
        -------
        NumPy scalar or Field
            Without `axis` a number on every rank, as `tilewave.sum` gives it: exact, rounded once. With it a field of
            the other dimensions, of int64, float64 or complex128: sums of floats have twice the precision and are
            rounded once, the same bits on any ranks.
        """
        return self._reduced("sum", self, axis)

    def mean(self, axis: int | Sequence[int] | None = None) -> Any:
        """The mean, float64 or complex128: as `sum`, divided by the number of elements; collective."""
        return self._reduced("mean", self, axis)

    def min(self, axis: int | Sequence[int] | None = None) -> Any:
        """The smallest element, NaN if any is; or along axes, as `sum`; collective."""
        return self._reduced("min", self, axis)

    def max(self, axis: int | Sequence[int] | None = None) -> Any:
        """The largest element, as `min`; collective."""
        return self._reduced("max", self, axis)

    def argmin(self, axis: int | None = None) -> Any:
        """Where the smallest element is, the first of equals; collective.

        Parameters
        ----------
        axis : int, optional
            Default: of all.

        Returns
        -------
        tuple of int, or Field
            Subscripts, ``u[u.argmin()]``; with `axis` a field of int64 of the other dimensions, as NumPy's.
        """
        return self._reduced("argmin", self, axis)

    def argmax(self, axis: int | None = None) -> Any:
        """Where the largest element is, as `argmin`; collective."""
        return self._reduced("argmax", self, axis)

    def any(self, axis: int | Sequence[int] | None = None) -> Any:
        """Return whether any element is not 0; with `axis` a field of bools; collective."""
        return self._reduced("any", self, axis)

    def all(self, axis: int | Sequence[int] | None = None) -> Any:
        """Return whether no element is 0, as `any`; collective."""
        return self._reduced("all", self, axis)


class Expression(Arithmetic):
    """A formula of fields, numbers and arrays, element by element, such as ``2 * u + v``; it has no values.

    One nest computes it where it is assigned (``w[...] = 2 * u + v``, ``w += u * v``), reduced (``(u * v).sum()``) or
    copied into a new field. Operands that have changed since it was written are refused then.

    Attributes
    ----------
    function : callable
        NumPy's.
    operands : tuple
    shape, dtype, ndim, context
    """

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    ndim: int
    context: Context

    def __init__(self, function: Callable[..., Any], operands: Sequence[Any]) -> None:
        self.function, self.operands = function, tuple(map(_operand, operands))
        shaped = [x for x in self.operands if not isinstance(x, numbers.Number | np.generic)]
        name = getattr(function, "__name__", str(function))
        try:
            self.shape = np.broadcast_shapes(*(x.shape for x in shaped))
            samples = [np.ones(1, x.dtype) if hasattr(x, "shape") and x.shape else x for x in self.operands]
            with np.errstate(all="ignore"):
                self.dtype = function(*samples).dtype
        except (TypeError, ValueError, OverflowError) as problem:
            raise ConfigError(f"{name} of fields: {type(problem).__name__}: {problem}") from None
        for x in shaped:
            if isinstance(x, Arithmetic) and x.shape != self.shape[len(self.shape) - len(x.shape) :]:
                raise ConfigError(
                    f"{name}: a field of shape {x.shape} was given with shape {self.shape}; allowed: fields of one "
                    "shape, of its last dimensions, and arrays that broadcast to it"
                )
        if function in ORDER and any(np.dtype(getattr(x, "dtype", type(x))).kind == "c" for x in self.operands):
            raise ConfigError(f"{name}: complex numbers were given; allowed: abs(u), np.real(u) and np.imag(u) of them")
        if function is np.reciprocal and self.dtype.kind not in "fc":
            raise ConfigError(f"{name}: a field of {self.dtype} was given; allowed: 1 / u, 1 // u")
        if self.dtype not in ALL:
            kinds = ", ".join(str(x.dtype) for x in shaped)
            raise ConfigError(
                f"{name}: NumPy's result of {kinds} has dtype {self.dtype}; allowed: {name}(u.astype('f4'))"
            )
        self.ndim = len(self.shape)
        fields = [x for x in self.operands if isinstance(x, Arithmetic)]
        self.context = fields[0].context
        self._seen = [(x, x._changes) for x in fields if not isinstance(x, Expression)]

    def check(self) -> None:
        """Refuse operands that have changed."""
        for field, changes in self._seen:
            if field._changes != changes:
                raise ConfigError(
                    f"an expression reads a field of shape {field.shape} that has been changed since it was written: "
                    "it has no values; allowed: e = (...).copy(), a field, or writing the expression again"
                )

    def copy(self) -> Field:
        """A new field with the values of the expression; collective.

        Returns
        -------
        Field
            Of the expression's shape and dtype.
        """
        return self._copied(self)

    def gather(self) -> Any:
        """The values of the expression on rank 0, None elsewhere: `copy`, and `Field.gather` of it; collective."""
        return self.copy().gather()

    def __getitem__(self, given: Any) -> Any:
        raise TypeError("an expression of fields has no values; allowed: (...).copy()[...], or its operands' elements")

    @property
    def text(self) -> str:
        """Return what a body writes for the function, with ``{}`` for each operand."""
        last = self.operands[-1]
        if self.function is np.absolute and last.dtype.kind == "c":
            return "np.abs({})"
        if self.function is np.power and getattr(last, "shape", ()):
            return "array_power({}, {})"
        if self.dtype.kind == "b" and self.function in OF_BOOLS:
            return OF_BOOLS[self.function]
        return TEXTS.get(self.function) or f"np.{self.function.__name__}({', '.join('{}' for _ in self.operands)})"

    def __repr__(self) -> str:
        return f"<tilewave expression {self.shape} {self.dtype}>"


def power(function: Callable[..., Any], base: Any, exponent: Any) -> Expression:
    """``function(base, exponent)``, an operator or `numpy.power`: with one exponent for all elements NumPy computes
    squares, roots and reciprocals in another way.
    """
    base, exponent = _operand(base), _operand(exponent)
    made = Expression(np.power, (base, exponent))
    if isinstance(exponent, numbers.Number | np.generic) and made.dtype.kind in "fc":
        special = special_power(function, base.dtype, type(exponent), exponent)
        if special is not None:
            return Expression(special, (base if base.dtype == made.dtype else base.astype(made.dtype),))
    return made


@functools.lru_cache(256)
def special_power(function: Any, dtype: np.dtype[Any], kind: type, exponent: Any) -> Any:
    """The function that NumPy takes for all elements of an array with this exponent, None for that of powers; tried."""
    special = {2: np.square, 0.5: np.sqrt, -1: np.reciprocal}.get(exponent)
    if special is None:
        return None
    sample = np.random.default_rng(1).uniform(1, 9, (2, 500))
    sample = (sample[0] + 1j * sample[1] if dtype.kind == "c" else sample[0]).astype(dtype)
    found = function(sample, exponent)
    return special if np.array_equal(found, special(sample.astype(found.dtype))) else None


def _operand(given: Any) -> Any:
    if isinstance(given, Arithmetic):
        return given
    if isinstance(given, list | tuple):
        given = np.asarray(given)
    if isinstance(given, np.ndarray):
        return given if given.ndim else given[()]
    if isinstance(given, numbers.Number | np.generic):
        return given
    raise ConfigError(
        f"{type(given).__name__} was given with a field; allowed: fields, expressions of them, numbers, NumPy arrays "
        "that are the same on every rank"
    )


def where(condition: Any, x: Any, y: Any) -> Expression:
    """``x`` where the condition holds, else ``y``, element by element: an expression, as ``2 * u`` is.

    Parameters
    ----------
    condition, x, y : Field, expression of fields, number or array
        At least one of them of fields.

    Returns
    -------
    Expression
        To be assigned, ``u[...] = tw.where(v > 0, v, 0)``, reduced or copied.
    """
    if not any(isinstance(each, Arithmetic) for each in (condition, x, y)):
        raise ConfigError("where: no field was given; allowed: at least one, or numpy.where")
    return Expression(np.where, (condition, x, y))
