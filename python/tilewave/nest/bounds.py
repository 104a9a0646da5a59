"""Bounds of the loops: ``over={"j": (0, "i+1")}`` read, checked and turned into constraints."""

import inspect
import math
import numbers
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewave.errors import ConfigError, shown
from tilewave.nest.affine import Affine, NotAffine, read_affine
from tilewave.nest.subscript import MOST_SCALE

#: What bounds may reach over the loops: the core computes with 64 bits, and the sum of a few of them, along skewed
#: loops, too.
MOST_REACH = 2**55

#: Most outer points that are visited to find out whether a loop leaves the arrays.
MOST_OUTER_POINTS = 10**6

ALLOWED = (
    "an int, an affine expression of outer loop indices with integer coefficients "
    '("2*i-3", lambda i: 2*i-3), also over a positive int, rounded down ("2*i//3-1"), or a list of these (the largest '
    "lower bound and the smallest upper bound count)"
)


@dataclass(frozen=True)
class Bounds:
    """The points of a nest's loops: a box cut by half-spaces.

    Attributes
    ----------
    indices : tuple of str
        Outermost first.
    box : tuple of (int, int)
        A half-open range an index that holds all points; exact where every bound is an int.
    constraints : tuple of (tuple of int, int)
        ``(c, d)`` says ``sum(c[k] * x[k]) + d >= 0``; those that the box implies are left out.
    ranges : tuple
        For each index its lower and its upper bounds, each as ``(coefficients, constant, divisor)``.
    """

    indices: tuple
    box: tuple
    constraints: tuple
    ranges: tuple

    def points(self, reverse=()):
        """The points in the order of the loops; those of the indices in `reverse` run down."""
        directions = loop_directions(self.indices, reverse)
        return self._points((), directions)

    def last(self, reverse=()):
        """The point that has the last value of each loop; None where some loop has no value there."""
        point = ()
        for (lower, upper), direction in zip(self.ranges, loop_directions(self.indices, reverse), strict=True):
            low, high = max(_value(form, point) for form in lower), min(_value(form, point) for form in upper)
            if low >= high:
                return None
            point += (high - 1 if direction > 0 else low,)
        return point

    def may_contain(self, over, box):
        """Return whether bounds of `over` leave a point of a box, as far as each of them tells.

        `box` has half-open ranges by index."""
        ranges = tuple(box[name] for name in self.indices)
        return all(
            _extremes(form, ranges)[1] >= 0
            for k, pair in enumerate(self.ranges)
            if self.indices[k] in (over or {})
            for form in _half_spaces(k, *pair, len(self.indices))
        )

    def _points(self, outer, directions):
        if len(outer) == len(self.indices):
            yield outer
            return
        lower, upper = self.ranges[len(outer)]
        first = max(_value(form, outer) for form in lower)
        values = range(first, min(_value(form, outer) for form in upper))
        for x in values[:: directions[len(outer)]]:
            yield from self._points((*outer, x), directions)


def loop_bounds(indices, allowed, over=None):
    """Read the bounds of all loops.

    Parameters
    ----------
    indices : sequence of str
        Outermost first.
    allowed : sequence of (int, int)
        For each index the half-open range in which every access is inside its array: ``nest.iteration_box(shapes)``.
    over : dict, optional
        From index name to ``(lower, upper)``, half-open. A bound is an int, a string or a function
        that is an affine expression of outer indices, or one over a positive int, rounded down; or a list or tuple
        of such: of several lower bounds the largest counts, of several upper bounds the smallest.

    Returns
    -------
    Bounds

    Raises
    ------
    ConfigError
        For an unknown index, a bound that is not affine or too large for exact arithmetic, or points outside
        `allowed`. This is exact as long as the outer loops have at most a million points; beyond, the ranges that the
        bounds could take over the box of the outer indices have to be inside.
    """
    indices = tuple(indices)
    allowed = tuple((int(low), int(high)) for low, high in allowed)
    ranges = tuple(_read_range(indices, k, allowed[k], over) for k in range(len(indices)))
    _check_names(indices, over)
    box, suspects = [], []
    for k, (lower, upper) in enumerate(ranges):
        low = max(_extremes(form, box)[0] // form[2] for form in lower)
        high = min(_extremes(form, box)[1] // form[2] for form in upper)
        if low < allowed[k][0] or high > allowed[k][1]:
            suspects.append((k, low, high))
        low = min(max(low, allowed[k][0]), allowed[k][1])
        box.append((low, max(low, min(high, allowed[k][1]))))
    if suspects:
        _refuse_outside(indices, ranges, allowed, suspects)
    empty = any(low == high for low, high in box)
    needed = {}
    for k, bounds in enumerate(ranges):
        for form in _half_spaces(k, *bounds, len(indices)):
            if not empty and _extremes(form, box)[0] < 0:
                needed[_small_enough(form, box, indices[k], over)] = True
    return Bounds(indices, tuple(box), tuple(needed), ranges)


def loop_directions(indices, reverse=()):
    """+1 for each index that runs up, -1 for each in `reverse`.

    Raises
    ------
    ConfigError
        When `reverse` is not a tuple or list of index names.
    """
    if not isinstance(reverse, tuple | list) or not all(isinstance(name, str) for name in reverse):
        turning = f'; of rows that turn round: two nests in each time step, reverse=[(), ("{indices[-1]}",)]'
        raise ConfigError(
            f'reverse: given {shown(reverse)}; allowed: a tuple of index names, reverse=("{indices[0]}",)'
            + turning * isinstance(reverse, dict)
        )
    for name in reverse:
        if name not in indices:
            raise ConfigError(f"reverse: the nest has no index {name!r}; allowed: {', '.join(indices)}")
    return tuple(-1 if name in reverse else 1 for name in indices)


def bounds_key(indices, name, pair):
    """Text that is equal for equal bounds of an index: functions are read, not named."""

    def text(bound):
        if callable(bound) and name in indices:
            form = _read(indices, indices.index(name), bound)
            return f"{sorted(form.terms.items())} {form.constant} {form.divisor}"
        return f"({', '.join(map(text, bound))})" if isinstance(bound, tuple | list) else repr(bound)

    return text(pair)


def read_strides(indices, over):
    """From the names of indices to (lower bound, upper bound, stride), where one is given.

    Raises
    ------
    ConfigError
        For strides that are none.
    """
    found = {}
    for name, bounds in over.items() if isinstance(over, dict) else ():
        if not isinstance(bounds, tuple | list) or len(bounds) != 3:
            continue
        if type(bounds[2]) is not int or not 1 <= bounds[2] <= MOST_SCALE:
            raise ConfigError(
                f"over: bounds {bounds!r} of index {name!r} have the stride {shown(bounds[2])}; allowed: an int from 1 "
                f"to {MOST_SCALE}; with reverse= the same points come last first"
            )
        found[name] = tuple(bounds)
    _check_names(indices, found)
    return found


def without_strides(over, strides):
    """`over` with bounds in place of strides: between numbers from the first point to the last one."""
    found = dict(over)
    for name, (low, high, step) in strides.items():
        found[name] = low, high
        whole = all(isinstance(end, numbers.Integral) for end in (low, high))
        if whole and (points := range(int(low), int(high), step)):
            found[name] = points[0], points[-1] + 1
    return found


def text_of_bound(indices, name, bound):
    """A lower bound of an index as a Python expression.

    Raises
    ------
    ConfigError
        For a bound that is not affine.
    """
    if isinstance(bound, tuple | list) and bound:
        texts = [text_of_bound(indices, name, each) for each in bound]
        return f"max({', '.join(texts)})" if len(texts) > 1 else texts[0]
    form = _read(indices, indices.index(name), bound)
    return f"({_text_of_form(form)})"


def _text_of_form(form):
    text = " + ".join([*(f"{factor} * {name}" for name, factor in form.terms.items() if factor), str(form.constant)])
    return text if form.divisor == 1 else f"({text}) // {form.divisor}"


def changed_over(indices, over, index, factor, constant):
    """`over` with ``factor * index + constant`` in place of an index in the bounds of others.

    Raises
    ------
    ConfigError
        For a bound that is not affine.
    """

    def changed(k, bound):
        if isinstance(bound, tuple | list):
            return tuple(changed(k, each) for each in bound)
        form = _read(indices, k, bound)
        if not (times := form.terms.get(index, 0)):
            return bound
        terms = {**form.terms, index: factor * times}
        return _text_of_form(Affine(terms, form.constant + constant * times, form.divisor))

    if not isinstance(over, dict):
        return over
    return {
        name: changed(indices.index(name), pair) if name in indices and name != index else pair
        for name, pair in over.items()
    }


# Reading bounds.


def _read_range(indices, k, allowed, over):
    """Lower and upper bounds of one index as forms over all indices."""
    name = indices[k]
    if not isinstance(over, dict) or name not in over:
        return ((_form(indices, Affine.of(allowed[0])),), (_form(indices, Affine.of(allowed[1])),))
    pair = over[name]
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ConfigError(
            f"over: bounds {pair!r} of index {name!r} are not supported; allowed: a pair (first, end), half-open, "
            "or (first, end, stride)"
        )
    check_ints(name, pair, allowed)
    sides = []
    for side in pair:
        several = side if isinstance(side, tuple | list) else (side,)
        if not several:
            raise ConfigError(f"over: bounds {pair!r} of index {name!r} have an empty list; allowed: {ALLOWED}")
        sides.append(tuple(dict.fromkeys(_form(indices, _read(indices, k, bound)) for bound in several)))
    return tuple(sides)


def check_ints(name, pair, allowed):
    """Plain ints have to be inside, in order, whether or not points come of it."""
    low, high = allowed
    whole = [int(bound) for bound in pair if isinstance(bound, numbers.Integral)]
    if not all(low <= bound <= high for bound in whole) or (len(whole) == 2 and whole[0] > whole[1]):
        raise ConfigError(
            f"over: bounds ({pair[0]!r}, {pair[1]!r}) of index {name!r} reach outside the points where "
            f"every access is inside its array; allowed: within ({low}, {high})"
        )


def _check_names(indices, over):
    if over is not None and not isinstance(over, dict):
        raise ConfigError(
            f'over: given {type(over).__name__}; allowed: a dict from index names to pairs, {{"i": (1, n)}}'
        )
    for name in over or {}:
        if name not in indices:
            raise ConfigError(f"over: the nest has no index {name!r}; allowed: {', '.join(indices)}")


def _read(indices, k, bound):
    """One bound of index k as an affine form."""
    outer = indices[:k]
    try:
        return read_affine(bound, outer)
    except NotAffine as problem:
        known = f"outer indices here: {', '.join(outer)}" if outer else "there is no outer index here"
        raise ConfigError(
            f"over: bound {_text(bound)} of index {indices[k]!r} is not supported ({problem}); "
            f"allowed: {ALLOWED}; {known}"
        ) from None


def _text(bound):
    return f"{bound.__name__}{inspect.signature(bound)}" if inspect.isfunction(bound) else repr(bound)


# Computing with forms: (coefficients, constant, divisor); half-spaces have no divisor.


def _form(indices, affine):
    return tuple(affine.terms.get(name, 0) for name in indices), affine.constant, affine.divisor


def _value(form, point):
    # A bound has no terms beyond its outer points.
    return (form[1] + sum(c * x for c, x in zip(form[0], point))) // form[2]


def _extremes(form, box):
    """Least and largest value of a form, not divided, over a half-open box that is not empty."""
    low = high = form[1]
    for c, (first, end) in zip(form[0], box):
        last = max(end - 1, first)
        low, high = low + min(c * first, c * last), high + max(c * first, c * last)
    return low, high


def _half_spaces(k, lower, upper, rank):
    unit = tuple(int(n == k) for n in range(rank))
    for coefficients, constant, divisor in lower:
        yield tuple(divisor * u - c for u, c in zip(unit, coefficients)), divisor - 1 - constant
    for coefficients, constant, divisor in upper:
        yield tuple(c - divisor * u for u, c in zip(unit, coefficients)), constant - divisor


def _small_enough(form, box, name, over):
    """A constraint that holds for the same points of a box, with coefficients that 64 bits are enough for."""
    longest = max(abs(end) for bounds in box for end in bounds)

    def reach(form):
        return abs(form[1]) + sum(map(abs, form[0])) * longest

    while reach(form) > MOST_REACH:
        smaller = min((_with_less(form, box, count) for count in range(len(box))), key=reach)
        if reach(smaller) >= reach(form):
            raise ConfigError(
                f"over: bounds {over[name]!r} of index {name!r} reach numbers beyond 64 bits within the loops; "
                "allowed: smaller coefficients and constants"
            )
        form = smaller
    return form


def _with_less(form, box, count):
    """The same half-space of a box, with less for the factor that all but the `count` smallest coefficients have in
    common.

    ``g*y + s >= 0`` says ``y >= -s/g``. Where s varies by less than g, the least y is `first`, for all s, or for
    those that are large enough, and ``first + 1`` for the others. So g may be any factor from which on neighbours of
    `first` are decided whatever s is."""
    coefficients, constant = form
    order = sorted(range(len(box)), key=lambda k: abs(coefficients[k]))
    small, large = order[:count], order[count:]
    g = math.gcd(*(coefficients[k] for k in large))
    low, high = _extremes((tuple(c if k in small else 0 for k, c in enumerate(coefficients)), constant), box)
    if g == 0 or high - low >= g:
        return form
    first, last = -(high // g), -(low // g)
    if first == last:
        return tuple(0 if k in small else c // g for k, c in enumerate(coefficients)), -first
    factor = max(-(low + g * first), high + g * first + 1)
    return (
        tuple(c if k in small else c // g * factor for k, c in enumerate(coefficients)),
        constant + (g - factor) * first,
    )


# Points outside the arrays.


def _refuse_outside(indices, ranges, allowed, suspects):
    """Raise if a point is outside `allowed`: by visiting outer points, by intervals if they are many."""
    k, low, high = suspects[0]
    try:
        point = _outside(indices, ranges, allowed, [k for k, _, _ in suspects])
    except OverflowError:
        raise ConfigError(
            f"over: bounds of index {indices[k]!r} may reach ({low}, {high}), outside the points where every access is "
            "inside its array, and the outer loops are too long to look at each of their points; allowed: within "
            f"{allowed[k]}, for example as a list with ints, ((lower, {allowed[k][0]}), (upper, {allowed[k][1]}))"
        ) from None
    if point is not None:
        at, (name, first, end, limits) = point
        where = f" at {at}" if at else ""
        raise ConfigError(
            f"over: index {name!r} runs over ({first}, {end}){where}, outside the points where "
            f"every access is inside its array; allowed: within {limits}"
        )


def _outside(indices, ranges, allowed, suspects):
    """(outer point as text, (index, first, end, limits)) of a loop with points outside, or None.

    Only loops that may leave the arrays, have affine bounds, or occur in others' bounds matter:
    the rest has the same points everywhere.
    """
    used = [any(form[0][k] for bounds in ranges for side in bounds for form in side) for k in range(len(indices))]
    affine = [any(any(form[0]) for side in bounds for form in side) for bounds in ranges]
    levels = [k for k in range(len(indices)) if used[k] or affine[k] or k in suspects]
    others = set(range(len(indices))) - set(levels)
    if any(max(d for _, d, _ in ranges[k][0]) >= min(d for _, d, _ in ranges[k][1]) for k in others):
        return None
    prefixes = np.zeros((1, len(indices)), np.int64)
    for k in levels:
        first, end = (
            pick([_values(form, prefixes) for form in side], axis=0) for pick, side in zip((np.max, np.min), ranges[k])
        )
        counts = np.maximum(end - first, 0)
        if k == levels[-1]:
            break
        if counts.sum(dtype=float) > MOST_OUTER_POINTS:
            raise OverflowError
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        inner = np.arange(len(starts)) - starts + np.repeat(first, counts)
        prefixes = np.repeat(prefixes, counts, axis=0)
        prefixes[:, k] = inner
    real = counts > 0
    prefixes, first, end = prefixes[real], first[real], end[real]
    for level in levels:
        low, high = (first, end) if level == levels[-1] else (prefixes[:, level], prefixes[:, level] + 1)
        bad = np.flatnonzero((low < allowed[level][0]) | (high > allowed[level][1]))
        if bad.size:
            outer = [n for n in levels if n < level]
            at = ", ".join(f"{indices[n]}={prefixes[bad[0], n]}" for n in outer)
            return at, (indices[level], int(low[bad[0]]), int(high[bad[0]]), allowed[level])
    return None


def _values(form, points):
    """A form at many points; OverflowError where 64 bits might not do."""
    coefficients, constant, divisor = form
    reach = np.abs(points).max(axis=0, initial=0)
    if divisor + abs(constant) + sum(abs(c) * int(x) for c, x in zip(coefficients, reach)) >= 2**62:
        raise OverflowError
    return (points @ np.array(coefficients, np.int64) + constant) // divisor


@dataclass(frozen=True)
class Loops:
    """Hold what a run says of the loops in addition to the nest."""

    over: Any = None
    reverse: tuple[str, ...] = ()
    steps: int | None = None
    #: Arrays that another nest has written in the time step: their values of time t + 1 are there, to be changed.
    again: frozenset[str] = frozenset()
    periodic: tuple[str, ...] = ()  # names of the indices along which subscripts wrap
    backwards: int | None = None  # the number of time steps, where the nest is one whose time ran backwards
    #: From indices of a nest that stand for others, to (factor, constant): the others are factor * index + constant.
    affine: dict[str, tuple[int, int]] = field(default_factory=dict)
    stepwise: bool = False  # something happens between time steps: each is run by itself
    visited: frozenset[str] = frozenset()  # arrays of `inject` and `record`
    inner: tuple[Any, ...] = ()  # of a batch, the (index, low, high) of the loops within its points
    inner_points: int = 1  # of these loops
    others: frozenset[str] = frozenset()  # arrays that other nests of the time step write
    #: Of arrays that another nest has written in the time step those that are changed in place: their run makes no
    #: other time step.
    within: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if isinstance(self.periodic, list):  # hashable, where it is what it should be
            object.__setattr__(self, "periodic", tuple(self.periodic))

    def key(self, nest: Any) -> tuple[Any, ...]:
        """Equal where the loops are; a function counts by what it says, not by its identity."""
        over = self.over
        if isinstance(over, dict) and over:
            over = sorted((str(name), bounds_key(nest.indices, name, pair)) for name, pair in over.items())
        return (
            repr(over),
            repr(self.reverse),
            repr(self.steps),
            repr(self.periodic),
            self.stepwise,
            tuple(sorted(self.visited)),
            tuple(sorted(self.within)),
            *sorted(self.again),
        )
