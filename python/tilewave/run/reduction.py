"""One number out of all values that a nest computes, or out of all elements of a field."""

import dataclasses
import functools

import numpy as np

from tilewave.errors import ConfigError
from tilewave.field.field import Field
from tilewave.runtime.collective import collective

OPS = {"max": "max", "min": "min", "sum": "sum", "argmax": "max", "argmin": "min"}


@dataclasses.dataclass(frozen=True)
class Reduction:
    """What `run` is asked for by ``reduce=``; made by `max`, `min`, `sum`, `argmax` and `argmin`.

    Attributes
    ----------
    kind : str
        "max", "min", "sum", "argmax" or "argmin".
    array : str
        Name of an array that the nest writes.
    """

    kind: str
    array: str


def _of_name_or_field(function):
    """Decorator: a function's docstring becomes that of a call that is local for a name, and collective for a field."""
    kind = function.__name__

    def of_field(array):
        if not isinstance(array, Field):
            raise ConfigError(
                f"{kind}: given {type(array).__name__}; allowed: the name of an array of the nest, or a field"
            )
        storage = array._whole(kind)
        yield f"field {array._number}"
        found = storage.reduce(OPS[kind], array.dtype.name)
        return _value(kind, array.dtype, (found.any, found.at, found.bytes), f"a field of shape {array.shape}")

    of_field = collective(f"tw.{kind}")(functools.wraps(function)(of_field))

    @functools.wraps(function)
    def call(*arguments, **keywords):
        array = arguments[0] if len(arguments) == 1 and not keywords else keywords.get("array")
        return Reduction(kind, array) if isinstance(array, str) else of_field(*arguments, **keywords)

    return call


@_of_name_or_field
def max(array):  # noqa: A001
    """The largest value: ``tw.run(..., reduce={"best": tw.max("H")})``, or at once for a field.

    Parameters
    ----------
    array : str or Field
        A name: the array of the nest that `run` is given; of all values that its points write, one a point,
        while they are computed. A field: of its elements now.

    Returns
    -------
    Reduction or NumPy scalar
        Of the array's dtype. NaN if any is.

    Raises
    ------
    ConfigError
        For a field that keeps a rolling window only, or has no elements.

    Notes
    -----
    Collective for a field: one gather of 600 bytes a rank. In a run the best of a row of integers is found while it is
    computed, and only a row that has a better one than those before is searched; other values are read once more while
    they are in the nearest cache.
    """


@_of_name_or_field
def min(array):  # noqa: A001
    """The smallest value; as `max`."""


@_of_name_or_field
def sum(array):  # noqa: A001
    """The sum; as `max`.

    Of integers as int64, modulo 2**64. Of floats as float64: the exact sum, rounded once, as `math.fsum`
    gives; so it is the same for any plan and number of ranks.
    """


@_of_name_or_field
def argmax(array):
    """The subscripts of the largest value, a tuple; of equals the lexicographically first; as `max`."""


@_of_name_or_field
def argmin(array):
    """The subscripts of the smallest value, a tuple; of equals the lexicographically first; as `max`."""


def check(nest, reduce, dtypes):
    """Reductions as the core takes them: (operation, dtype, place, loop index of each subscript, its offset).

    Raises
    ------
    ConfigError
        For what is no dict of reductions, or an array that has not one value a point.
    """
    if reduce is None:
        return []
    if not isinstance(reduce, dict) or not all(
        isinstance(r, Reduction) and isinstance(n, str) for n, r in reduce.items()
    ):
        raise ConfigError(
            f"reduce: given {reduce!r}; allowed: a dict from names to tw.max, min, sum, argmax or argmin of an "
            "array's name"
        )
    return list(
        dict.fromkeys(_described(nest, r, dtypes) for r in reduce.values())
    )  # max and argmax are found together


def _described(nest, r, dtypes):
    if r.array not in nest.written:
        raise ConfigError(
            f"reduce: {r.kind}({r.array!r}); allowed: an array that nest {nest.name!r} writes, "
            f"{', '.join(nest.written)}"
        )
    places = [p for p, place in enumerate(nest.places) if place.written and place.array == r.array]
    lacking = [name for name in nest.indices if name not in nest.axes[r.array]]
    if len(places) > 1 or lacking:
        why = f"lacks index {lacking[0]!r}" if lacking else f"is written at {len(places)} places"
        raise ConfigError(
            f"reduce: {r.kind}({r.array!r}): array {r.array!r} {why}; allowed: one with one value a point"
        )
    axes = tuple(nest.indices.index(name) for name in nest.axes[r.array])
    return OPS[r.kind], dtypes[r.array].name, places[0], axes, tuple(nest.places[places[0]].offsets)


def bests(described):
    """Of which places a row's largest or smallest value is wanted: (place, "max" or "min") of each."""
    return tuple(dict.fromkeys((place, op) for op, _, place, *_ in described if op != "sum"))


def with_bests(described, told):
    """As the core takes them: each of `described`, and its number among the row results of the kernel, or -1."""
    return [(*r, told.index((r[2], r[0])) if (r[2], r[0]) in told else -1) for r in described]


def results(nest, reduce, dtypes, described, reduced):
    """Names to values; `reduced` has (any, at, bytes) of each of `described`."""
    if not reduce:
        return {}
    found = dict(zip(described, reduced, strict=True))
    return {
        name: _value(r.kind, dtypes[r.array], found[_described(nest, r, dtypes)], f"reduce: {name}")
        for name, r in reduce.items()
    }


def _value(kind, dtype, found, what):
    has, at, data = found
    if kind == "sum":
        out = np.dtype("f8") if dtype.kind == "f" else np.dtype("i8")
        return np.frombuffer(data, out)[0] if has else out.type(0)
    if not has:
        if what.startswith("reduce"):
            return None  # no point was computed
        raise ConfigError(f"{kind}: {what} has no elements")
    return tuple(at) if kind.startswith("arg") else np.frombuffer(data, dtype)[0]
