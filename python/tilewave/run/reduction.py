"""One number out of all values that the points of a nest have, or out of all elements of a field."""

import dataclasses
import functools

import numpy as np

from tilewave.errors import ConfigError
from tilewave.field.field import Field
from tilewave.kernel.compile import find_types
from tilewave.kernel.scalars import Slot
from tilewave.nest.reduced import Expression, ReducedNest, RowValue
from tilewave.runtime.collective import collective

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

#: Calls with different reductions of one nest that are remembered: to read an expression takes 0.3 ms.
MOST_KNOWN = 16


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

    def __str__(self):
        parts = [repr(self.array), *([repr(self.other)] if self.other else [])]
        if self.kind == "norm" and self.ord != 2:
            parts.append(f"ord={self.ord}")
        return f"{self.kind}({', '.join(parts)})"

    @property
    def way(self):
        """The operation of the core, and the form of the values."""
        return NORMS[self.ord] if self.kind == "norm" else KINDS[self.kind]

    @property
    def texts(self):
        """Of the expressions."""
        return (self.array, self.other) if self.kind == "dot" else (self.array,)


def _of_names_or_fields(function):
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
                    f"expression of them, or a field{'; both of one kind' if len(fields) > 1 else ''}"
                )
        storages = [each._whole(kind) for each in fields]
        first = fields[0]
        if any(each.shape != first.shape or each.context is not first.context for each in fields):
            raise ConfigError(
                f"{kind}: given fields of shapes {first.shape} and {fields[1].shape}; allowed: two of one shape and "
                "one context"
            )
        yield f"{', '.join(f'field {each._number}' for each in fields)}, ord {order}"
        r = Reduction(kind, "x", "y" if kind == "dot" else "", order)
        if kind == "dot":
            found = storages[0].dot(storages[1], fields[0].dtype.name, fields[1].dtype.name)
        else:
            found = storages[0].reduce(r.way[0], first.dtype.name, r.way[1])
        dtype = _result_dtype(r, [each.dtype for each in fields])
        return _value(r, dtype, (found.any, found.at, found.bytes), f"{kind}: a field of shape {first.shape}")

    of_fields = collective(f"tw.{kind}")(functools.wraps(function)(of_fields))

    @functools.wraps(function)
    def call(*arguments, **keywords):
        names = [*arguments, *keywords.values()]
        if not names or not isinstance(names[0], str):
            return of_fields(*arguments, **keywords)
        given = _bound(function, arguments, keywords)
        order = _checked_ord(given.pop("ord")) if kind == "norm" else 0
        for text in given.values():
            if not isinstance(text, str):
                raise ConfigError(f"{kind}: given a name and {type(text).__name__}; allowed: two names, or two fields")
        return Reduction(kind, *given.values(), **({"ord": order} if kind == "norm" else {}))

    return call


def _bound(function, arguments, keywords):
    """The arguments of a call by name."""
    try:
        return function(*arguments, **keywords)
    except TypeError as error:
        raise ConfigError(f"{error}; see help(tilewave.{function.__name__})") from None


def _checked_ord(order):
    if isinstance(order, bool | np.bool_) or not isinstance(order, int | float | np.number) or order not in NORMS:
        raise ConfigError(f"norm: ord={order!r} was given; allowed: 1, 2, numpy.inf")
    return next(each for each in NORMS if each == order)


@_of_names_or_fields
def max(array):  # noqa: A001
    """The largest value: ``tw.run(..., reduce={"best": tw.max("H")})``, or at once for a field.

    Parameters
    ----------
    array : str or Field
        A str: an array of the nest that `run` is given, a local of its body, or an expression of these, ``"abs(d)"``;
        of all points, while they are computed. An array stands for the element that a point writes, or else reads at
        the point. Where some paths through the body do not assign the local or element, points that took another path
        do not count. A field: of its elements now.

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
    Collective for a field: messages of 600 bytes up and down a tree of ranks. In a run the best of a row of integers
    that an array gets is found while it is computed, and only a row that has a better one than those before is
    searched; other values are read once more while they are in the nearest cache.
    """
    return {"array": array}


@_of_names_or_fields
def min(array):  # noqa: A001
    """The smallest value; as `max`."""
    return {"array": array}


@_of_names_or_fields
def argmax(array):
    """The subscripts of the largest value, a tuple; of equals the lexicographically first; as `max`.

    Those of the array's element; the loop indices of the point for a local and for an expression.
    """
    return {"array": array}


@_of_names_or_fields
def argmin(array):
    """The subscripts of the smallest value, a tuple; of equals the lexicographically first; as `argmax`."""
    return {"array": array}


@_of_names_or_fields
def sum(array):  # noqa: A001
    """The sum; as `max`. That of nothing is 0.

    Of integers and booleans as int64, modulo 2**64. Of floats as float64: the exact sum, rounded once, as `math.fsum`
    gives; so it is the same for any plan and number of ranks.
    """
    return {"array": array}


@_of_names_or_fields
def dot(array, other):
    """The sum of products: ``tw.run(..., reduce={"uv": tw.dot("u", "v")})``, or at once for two fields of one shape.

    Parameters
    ----------
    array, other : str, or Field
        As for `max`; a point counts where both have a value.

    Returns
    -------
    Reduction or NumPy scalar
        Of integers int64, modulo 2**64. Else float64: the exact sum, rounded once, of the products as float64 has them
        (exact ones for float32). That of nothing is 0.

    Notes
    -----
    Collective for fields. Where the second one is divided among the ranks in another way, a copy of it is moved.
    """
    return {"array": array, "other": other}


@_of_names_or_fields
def norm(array, ord=2):  # noqa: A002
    """The norm of all values as one vector; as `max`. That of nothing is 0.

    Parameters
    ----------
    array : str or Field
    ord : 1, 2 or numpy.inf
        The sum of magnitudes, the root of the sum of squares, or the largest magnitude.

    Returns
    -------
    Reduction or NumPy scalar
        float64. Sums are exact and rounded once; the squares and the root are those of float64. As in NumPy, squares
        beyond 1.8e308 make it infinite.
    """
    return {"array": array, "ord": ord}


class Reductions:
    """What a run reduces.

    Attributes
    ----------
    asked : dict
        From the names of the results to (Reduction, dtype of the result, what the core is told).
    core : list
        What the core is told, each once: (operation, dtype, place, loop index of each subscript, its offset, the place
        that says which points count).
    values : tuple of RowValue
    nest : Nest
        The one that is compiled.
    item_bytes : list of int
        Of the values.
    """

    def __init__(self, nest, asked=None, values=()):
        self.asked = asked or {}
        self.core = list(dict.fromkeys(told for _, _, told in self.asked.values()))  # max and argmax are found together
        self.values = tuple(values)
        self.nest = ReducedNest(nest, values) if values else nest
        self.item_bytes = [value.dtype.itemsize for value in values]

    def __bool__(self):
        return bool(self.core)

    def bests(self):
        """Of which places a row's largest or smallest value is wanted: (place, "max" or "min") of each."""
        return tuple(
            dict.fromkeys(
                (place, op)
                for op, _, place, _, _, counts in self.core
                if op != "sum" and counts < 0 and self.nest.places[place].written
            )
        )

    def told(self, bests):
        """What the core is told, each with its number among the bests that the kernel tells, or -1."""
        return [(*told, bests.index((told[2], told[0])) if (told[2], told[0]) in bests else -1) for told in self.core]

    def results(self, reduced):
        """Names to values; `reduced` has (any, at, bytes) of each of `core`."""
        found = dict(zip(self.core, reduced, strict=True))
        return {name: _value(r, dtype, found[told]) for name, (r, dtype, told) in self.asked.items()}


def check(nest, reduce, dtypes, scalars, captured):
    """What a run reduces, as `Reductions`.

    Parameters
    ----------
    nest : Nest
    reduce
        As `run` was given it.
    dtypes : dict
        Of the arrays by name.
    scalars, captured : dict
        Values by name, whose types count.

    Raises
    ------
    ConfigError
        For what is no dict of reductions, or has not one number a point.
    """
    if not reduce:
        if reduce is not None and not isinstance(reduce, dict):
            raise _no_dict(reduce)
        if not nest.written:
            raise ConfigError(
                f"nest {nest.name!r} writes no array; allowed: A[i, j] = ..., once or more; or reduce= of what it "
                "computes, reduce={'r': tw.sum('d')}"
            )
        return Reductions(nest)
    if not isinstance(reduce, dict) or not all(
        isinstance(r, Reduction) and isinstance(n, str) for n, r in reduce.items()
    ):
        raise _no_dict(reduce)
    slots = tuple(Slot.of(name, value) for name, value in {**scalars, **captured}.items())
    key = tuple(reduce.items()), tuple(dtypes.items()), slots, nest.code_signature()
    known = nest.known_reductions
    if key not in known:
        while len(known) >= MOST_KNOWN:
            del known[next(iter(known))]
        known[key] = _Description(nest, dtypes, scalars, captured).of(reduce)
    return known[key]


def _no_dict(reduce):
    return ConfigError(
        f"reduce: given {reduce!r}; allowed: a dict from names to tw.max, min, argmax, argmin, sum, dot or norm of the "
        "name of an array or a local, or of an expression of them"
    )


class _Description:
    """What the core is told of some reductions, and the values of rows that they need."""

    def __init__(self, nest, dtypes, scalars, captured):
        self.nest, self.dtypes, self.scalars, self.captured = nest, dtypes, scalars, captured
        self.values = {}  # by form and texts

    def of(self, reduce):
        """Of all that are asked for."""
        parts = {
            name: [Expression(self.nest, text, f"reduce: {name}: {r}") for text in r.texts]
            for name, r in reduce.items()
        }
        computed = [part for each in parts.values() for part in each if part.array is None]
        if computed:
            probes = [RowValue(k, "value", (part.text,), None, (part,)) for k, part in enumerate(computed)]
            find_types(ReducedNest(self.nest, probes), self.dtypes, self.scalars, self.captured)
        asked = {name: self._asked(r, parts[name]) for name, r in reduce.items()}
        return Reductions(self.nest, asked, self.values.values())

    def _asked(self, r, parts):
        dtypes = [self._dtype(part) for part in parts]
        result = _result_dtype(r, dtypes)
        op, form = r.way
        nest, all_axes = self.nest, tuple(range(len(self.nest.indices)))
        place = parts[0].place() if parts[0].array and len(parts) == 1 else None
        axes = all_axes if place is None else tuple(nest.indices.index(name) for name in place.axes)
        shift = (0,) * len(axes) if place is None else place.offsets
        if place and form == "value" and not parts[0].partly and (place.written or nest.written and axes == all_axes):
            return r, result, (op, dtypes[0].name, nest.places.index(place), axes, shift, -1)
        stored = _stored_dtype(r, dtypes)
        counts = -1
        if op != "sum" and any(part.partly for part in parts):
            counts = self._place("counts", parts, np.dtype("u1"))
        return r, result, (op, stored.name, self._place(form, parts, stored), axes, shift, counts)

    def _place(self, form, parts, dtype):
        key = form, tuple(part.text for part in parts), dtype
        if key not in self.values:
            self.values[key] = RowValue(len(self.values), form, key[1], dtype, tuple(parts))
        return len(self.nest.places) + self.values[key].number

    def _dtype(self, part):
        """That NumPy has for all types that an expression may be of."""
        if part.array is not None:
            return self.dtypes[part.array]
        if not part.types:
            raise ConfigError(
                f"{part.what}: no point comes to the end of the body; allowed: a body that some points do"
            )
        return np.result_type(*(kind.dtype for kind in part.types))


def _stored_dtype(r, dtypes):
    """Of the values that the core reduces."""
    if r.kind == "norm":
        return np.dtype("f8")
    if r.kind == "dot":
        return np.dtype("f8" if any(dtype.kind == "f" for dtype in dtypes) else "i8")
    return np.dtype("u1") if dtypes[0].kind == "b" else dtypes[0]


def _result_dtype(r, dtypes):
    if r.kind in ("sum", "dot", "norm"):
        return np.dtype("f8" if r.kind == "norm" or any(dtype.kind == "f" for dtype in dtypes) else "i8")
    return dtypes[0]


def _value(r, dtype, found, field=None):
    """The result as a NumPy scalar or a tuple; `field`: what has no elements where there are none, for a message."""
    has, at, data = found
    op = r.way[0]
    if not has:
        if op == "sum" or r.kind == "norm":
            return dtype.type(0)
        if field is None:
            return None  # no point counts
        raise ConfigError(f"{field} has no elements")
    if r.kind.startswith("arg"):
        return tuple(at)
    if op == "sum":
        value = np.frombuffer(data, dtype)[0]
        return np.sqrt(value) if r.kind == "norm" and r.ord == 2 else value
    if dtype.kind == "b":
        return np.bool_(data[0])
    return np.frombuffer(data, dtype)[0]
