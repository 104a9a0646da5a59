"""Images and grids: summed-area tables, least costs, travel times, distances."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import numpy as np

from tilewave.context.collective import collective
from tilewave.errors import ConfigError, shown
from tilewave.field.create import field
from tilewave.nests.call.reduce_functions import max as largest
from tilewave.nests.doors.bind import bind
from tilewave.nests.doors.chain import chain
from tilewave.nests.doors.run import run
from tilewave.recipes import given
from tilewave.recipes.filters import INDICES, at, made

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewave.annotations import Array, Collective
    from tilewave.context.context import Context
    from tilewave.field.field import Field
    from tilewave.recipes.given import Given

#: Times that all directions are swept, at most: more than paths through mazes of thousands of points turn.
MOST_SWEEPS = 100_000


@collective("tw.recipes.integral_image", whole=True)
def integral_image(image: Given, *, context: Context | None = None) -> Collective[Array | Field]:
    """Sum all elements up to each one, a summed-area table, as ``skimage.transform.integral_image``; collective.

    Parameters
    ----------
    image : array or field
        Of 1 to 3 dimensions.
    context : Context, optional

    Returns
    -------
    numpy.ndarray or Field
        Of the same shape; int64 for bool and integers, which wraps, else float64. The bits are those of
        ``np.cumsum`` along the first axis, then along the others.

    Raises
    ------
    ConfigError
        On every rank, for element types and dimensions that are not allowed.
    """
    image = given.values("integral_image", "image", image, "biuf", (1, 2, 3))
    yield given.text_of(image)
    dims = len(image.shape)
    sums = given.copied(image, "f8" if image.dtype.kind == "f" else "i8", context)
    for axis, n in enumerate(image.shape):
        if n > 1 and np.prod(image.shape):
            run(_sums(dims, axis), S=sums, context=context)
    return given.as_given(sums, image)


@functools.cache
def _sums(dims, axis):
    return made("integral_image", ["S"], dims, [f"S[{at(dims, axis)}] = S[{at(dims, axis, -1)}] + S[{at(dims, axis)}]"])


def _grid(call, name, values):
    """Return a grid of 1 to 3 dimensions with elements."""
    values = given.values(call, name, values, "biuf", (1, 2, 3))
    if not all(values.shape):
        raise ConfigError(f"{call}: {name}: given shape {tuple(values.shape)}; allowed: at least one element")
    return values


def _start(call, sources, grid):
    """Return what `_times` makes an array of: bool, or times."""
    sources = given.values(call, "sources", sources, "bf")
    if tuple(sources.shape) != tuple(grid.shape):
        raise ConfigError(
            f"{call}: sources: given shape {tuple(sources.shape)}; allowed: {tuple(grid.shape)}: True where "
            "paths begin, or the values there, and infinity elsewhere"
        )
    return sources


def _times(sources):
    values = given.whole(sources)
    return np.where(values, 0.0, np.inf) if values.dtype == bool else values.astype("f8")


def _spacing(call, spacing, dims):
    """Return a number above 0 for each axis."""
    each = tuple(spacing) if isinstance(spacing, tuple | list | np.ndarray) else (spacing,) * dims
    if len(each) != dims or not all(given.number(call, "spacing", h) > 0 for h in each):
        raise ConfigError(f"{call}: spacing: given {shown(spacing)}; allowed: a number above 0, or one for each axis")
    return tuple(float(h) for h in each)


def _checked(call, name, values):
    """Return the array of a grid, on every rank; numbers at least 0; collective."""
    values = given.whole(values, "f8")
    if not (values >= 0).all():
        raise ConfigError(f"{call}: {name}: given numbers below 0, or NaN; allowed: numbers >= 0")
    return values


def _swept(nest, start, arrays, scalars, context):
    """Return what a nest makes of `start` in sweeps from all corners, once no sweep lowers a value; collective.

    A rim of infinities is around it, and around the arrays.
    """
    dims = len(start.shape)
    T = field(np.pad(start, 1, constant_values=np.inf), context=context)
    options = {"over": {INDICES[d]: (1, n + 1) for d, n in enumerate(start.shape)}, "context": context}
    sweeps, ends = [], {}
    for number, flags in enumerate(itertools.product((False, True), repeat=dims)):
        reverse, name = tuple(itertools.compress(INDICES, flags)), f"lower{number}"
        ends[name] = 0
        sweeps.append(bind(nest, T=T, **arrays, **scalars, reverse=reverse, reduce={name: largest("lower")}, **options))
    chain(sweeps, context=context).run(times=MOST_SWEEPS, until=ends)
    return np.asarray(T[(slice(1, -1),) * dims])


def _neighbours(dims):
    """Return subscripts of the points around one, with their steps."""
    for steps in itertools.product((-1, 0, 1), repeat=dims):
        if any(steps):
            yield ", ".join(f"{x}{step:+d}" if step else x for x, step in zip(INDICES, steps)), steps


@collective("tw.recipes.cost_distance", whole=True)
def cost_distance(
    cost: Given, sources: Given, spacing: float | Sequence[float] = 1.0, *, context: Context | None = None
) -> Collective[Array | Field]:
    """Find the least cost of paths from sources to each element, as ``skimage.graph.MCP_Geometric``; collective.

    Parameters
    ----------
    cost : array or field
        Of 1 to 3 dimensions, at least 0; infinite where no path goes. A step to one of the neighbours, diagonal ones
        among them, costs its length times the mean of both elements.
    sources : array or field
        bool, True where paths begin; or what they cost there, and infinity elsewhere.
    spacing : float or sequence of float
        The distance of neighbours along each axis.
    context : Context, optional

    Returns
    -------
    numpy.ndarray or Field
        float64, infinite where no path leads; an array, the same on every rank, or a field where `cost` is one.

    Raises
    ------
    ConfigError
        On every rank: for costs below 0, and shapes that do not fit.

    Notes
    -----
    Sweeps from all corners until nothing changes, so that the result is that of Dijkstra's algorithm but for rounding.
    Arguments that are fields are copied to every rank whole.
    """
    cost = _grid("cost_distance", "cost", cost)
    sources, dims = _start("cost_distance", sources, cost), len(cost.shape)
    spacing = _spacing("cost_distance", spacing, dims)
    yield f"{given.text_of(cost)}, {given.text_of(sources)}, spacing {spacing}"
    around = np.pad(_checked("cost_distance", "cost", cost), 1, constant_values=np.inf)
    lengths = {
        f"h{number}": 0.5 * float(np.hypot.reduce(np.multiply(steps, spacing)))
        for number, (_, steps) in enumerate(_neighbours(dims))
    }
    found = _swept(_paths(dims), _times(sources), {"c": around}, lengths, context)
    return given.from_array(found, context, cost)


@functools.cache
def _paths(dims):
    here, scalars = at(dims, 0), []
    lines = [f"old = T[{here}]", f"own = c[{here}]", "new = old"]
    for number, (there, _) in enumerate(_neighbours(dims)):
        lines.append(f"new = min(new, T[{there}] + h{number} * (own + c[{there}]))")
        scalars.append(f"h{number}")
    lines += [f"T[{here}] = new", "lower = 1 if new < old else 0"]
    return made("cost_distance", ["T", "c"], dims, lines, scalars)


@collective("tw.recipes.eikonal", whole=True)
def eikonal(
    speed: Given, sources: Given, spacing: float | Sequence[float] = 1.0, *, context: Context | None = None
) -> Collective[Array | Field]:
    """Find first arrival times of a front, ``|grad T| = 1 / speed``, as ``skfmm.travel_time`` does; collective.

    Parameters
    ----------
    speed : array or field
        Of 1 to 3 dimensions, at least 0; 0 where no front goes.
    sources : array or field
        bool, True where the front begins; or the times there, and infinity elsewhere.
    spacing : float or sequence of float
        The distance of neighbours along each axis.
    context : Context, optional

    Returns
    -------
    numpy.ndarray or Field
        float64, infinite where the front does not come; an array, the same on every rank, or a field where `speed` is
        one.

    Raises
    ------
    ConfigError
        On every rank: for speeds below 0, and shapes that do not fit.

    Notes
    -----
    Godunov's upwind differences of first order, solved by fast sweeping until nothing changes: what fast marching finds
    but for rounding. Arguments that are fields are copied to every rank whole.
    """
    speed = _grid("eikonal", "speed", speed)
    sources, dims = _start("eikonal", sources, speed), len(speed.shape)
    spacing = _spacing("eikonal", spacing, dims)
    yield f"{given.text_of(speed)}, {given.text_of(sources)}, spacing {spacing}"
    with np.errstate(divide="ignore"):
        slowness = np.pad(1.0 / _checked("eikonal", "speed", speed), 1)
    scalars = {f"h{d}": h for d, h in enumerate(spacing)}
    found = _swept(_front(dims), _times(sources), {"s": slowness}, scalars, context)
    return given.from_array(found, context, speed)


@functools.cache
def _front(dims):
    """Upwind from the axis with the nearest neighbour, from two where the second is nearer than that, from three."""
    here = at(dims, 0)
    lines = [f"old = T[{here}]", f"own = s[{here}]"]
    for d in range(dims):
        lines += [f"a{d} = min(T[{at(dims, d, -1)}], T[{at(dims, d, 1)}])", f"p{d} = h{d}"]
    for first, second in [(d, d + 1) for last in range(dims - 1, 0, -1) for d in range(last)]:
        lines += [f"if a{first} > a{second}:", f"    a{first}, a{second} = a{second}, a{first}",
                  f"    p{first}, p{second} = p{second}, p{first}"]  # fmt: skip
    lines.append("new = a0 + own * p0")
    for d in range(1, dims):
        weights = [f"1 / (p{e} * p{e})" for e in range(d + 1)]
        shifts = [f"(a{e} - a0) / (p{e} * p{e})" for e in range(1, d + 1)]
        squares = [f"(a{e} - a0) * (a{e} - a0) / (p{e} * p{e})" for e in range(1, d + 1)]
        indent = "    " * d
        lines += [
            f"{indent[4:]}if new > a{d}:",
            f"{indent}w = {' + '.join(weights)}",
            f"{indent}b = {' + '.join(shifts)}",
            f"{indent}new = a0 + (b + np.sqrt(max(b * b - w * ({' + '.join(squares)} - own * own), 0.0))) / w",
        ]
    lines += ["new = min(new, old)", f"T[{here}] = new", "lower = 1 if new < old else 0"]
    return made("eikonal", ["T", "s"], dims, lines, [f"h{d}" for d in range(dims)])


@collective("tw.recipes.distance_transform", whole=True)
def distance_transform(
    image: Given, spacing: float | Sequence[float] = 1.0, *, context: Context | None = None
) -> Collective[Array | Field]:
    """Find the Euclidean distance to the nearest 0, as ``scipy.ndimage.distance_transform_edt`` does; collective.

    Parameters
    ----------
    image : array or field
        Of 1 to 3 dimensions: what is 0, or False, is background.
    spacing : float or sequence of float
        The distance of neighbours along each axis, SciPy's ``sampling``.
    context : Context, optional

    Returns
    -------
    numpy.ndarray or Field
        float64, exact but for rounding; infinite without background. An array, the same on every rank, or a field
        where `image` is one.

    Raises
    ------
    ConfigError
        On every rank, for element types and shapes that are not allowed.

    Notes
    -----
    Two passes along the first axis; squares are minimised along one other axis after the other, each of which costs an
    element as many operations as the axis has elements.
    """
    image = _grid("distance_transform", "image", image)
    dims = len(image.shape)
    spacing = _spacing("distance_transform", spacing, dims)
    yield f"{given.text_of(image)}, spacing {spacing}"
    steps = field(np.where(given.whole(image) != 0, np.inf, 0.0), context=context)  # along the first axis
    if image.shape[0] > 1:
        for offset, reverse in ((-1, ()), (1, ("i",))):
            run(_steps(dims, offset), S=steps, reverse=reverse, context=context)
    squares = (spacing[0] * np.asarray(steps[...])) ** 2
    for axis in range(1, dims):
        D = field(image.shape, context=context)
        run(_nearest(dims, axis), D=D, G=squares, n=image.shape[axis], h=spacing[axis], context=context)
        squares = np.asarray(D[...])
    return given.from_array(np.sqrt(squares), context, image)


@functools.cache
def _steps(dims, offset):
    here = at(dims, 0)
    return made("steps", ["S"], dims, [f"S[{here}] = min(S[{here}], S[{at(dims, 0, offset)}] + 1)"])


@functools.cache
def _nearest(dims, axis):
    index, here = INDICES[axis], at(dims, axis)
    step = f"(h * ({index} - q))"
    lines = [f"D[{here}] = min(G[{here.replace(index, 'q')}] + {step} * {step} for q in range(n))"]
    return made("distance_transform", ["D", "G"], dims, lines, ["n", "h"])
