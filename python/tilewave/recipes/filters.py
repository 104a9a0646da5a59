"""Filters and recurrences along an axis: IIR filters, exponential means, tridiagonal systems."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave.context.collective import collective
from tilewave.errors import ConfigError, is_integer, shown
from tilewave.field.create import field
from tilewave.field.field import Field
from tilewave.nest.nest import nest_from
from tilewave.nests.doors.run import run
from tilewave.recipes import given

if TYPE_CHECKING:
    import numpy.typing as npt

    from tilewave.annotations import Array, Collective
    from tilewave.context.context import Context
    from tilewave.recipes.given import Given

INDICES = "ijklmn"
#: Coefficients of one filter, at most: each has an array that the nest keeps a window of.
MOST_COEFFICIENTS = 32


def at(dims, axis, offset=0):
    """Return subscripts of a point, moved along an axis: "i, j-1"."""
    return ", ".join(f"{index}{offset:+d}" if d == axis and offset else index for d, index in enumerate(INDICES[:dims]))


def made(name, arrays, dims, lines, scalars=()):
    """Return a nest of these statements."""
    more = ", ".join(["", "*", *scalars]) if scalars else ""
    loops, body = ", ".join(INDICES[:dims]), "\n    ".join(lines)
    return nest_from(f"def {name}({', '.join(arrays)}, {loops}{more}):\n    {body}\n")


def _axis(call, axis, dims):
    """Return an axis counted from 0."""
    if not is_integer(axis, -dims, dims - 1):
        raise ConfigError(f"{call}: axis: given {shown(axis)}; allowed: an integer from {-dims} to {dims - 1}")
    if dims > len(INDICES):
        raise ConfigError(f"{call}: x: given {dims} dimensions; allowed: at most {len(INDICES)}")
    return int(axis) % dims


def _coefficients(call, name, values):
    found = given.numbers_of(call, name, values, 1)
    if not 1 <= found.size <= MOST_COEFFICIENTS:
        raise ConfigError(
            f"{call}: {name}: given {shown(values)}; allowed: 1 to {MOST_COEFFICIENTS} finite numbers; sosfilt takes "
            "filters of higher order as sections, numpy.convolve those without feedback"
        )
    return found


@collective("tw.recipes.lfilter", whole=True)
def lfilter(
    b: npt.ArrayLike, a: npt.ArrayLike, x: Given, axis: int = -1, *, context: Context | None = None
) -> Collective[Array | Field]:
    """Filter along an axis with an IIR or FIR filter, as ``scipy.signal.lfilter`` does; collective.

    Parameters
    ----------
    b, a : array
        Coefficients of the numerator and the denominator, at most 32 each; ``a[0]`` is not 0.
    x : array or field
        Real numbers, of 1 to 6 dimensions. Lanes and ranks divide the other axes.
    axis : int
    context : Context, optional

    Returns
    -------
    numpy.ndarray or Field
        As `x`: an array, the same on every rank, or a field. float32 where all that is given is float32, else float64.

    Raises
    ------
    ConfigError
        On every rank: for coefficients and axes that are not allowed.

    Notes
    -----
    The direct form II transposed, from rest, with SciPy's order of operations where `a` has more than one coefficient.
    """
    x, b, a = given.values("lfilter", "x", x), _coefficients("lfilter", "b", b), _coefficients("lfilter", "a", a)
    axis = _axis("lfilter", axis, len(x.shape))
    if not a[0]:
        raise ConfigError("lfilter: a: given 0 as the first coefficient; allowed: another number")
    yield f"{given.text_of(x)}, {b.tolist()}, {a.tolist()}, axis {axis}"
    dtype, order = given.floats(x, b, a), max(len(a), len(b)) - 1
    values = np.zeros((2, order + 1), dtype)
    values[0, : len(b)], values[1, : len(a)] = b, a
    values /= values[1, 0]
    scalars = {f"{name}{q}": float(value) for name, row in zip("ba", values) for q, value in enumerate(row)}
    del scalars["a0"]
    return _filtered(_direct(len(x.shape), axis, order), order, x, axis, dtype, scalars, context)


@functools.cache
def _direct(dims, axis, order):
    before, here, sample = (at(dims, axis, offset) for offset in (-1, 0, -1))
    first = f" + Z0[{before}]" if order else ""
    lines = [f"v = x[{sample}]", f"w = b0 * v{first}", f"y[{sample}] = w"]
    for q in range(order):
        last = "" if q + 1 == order else f"Z{q + 1}[{before}] + "
        lines.append(f"Z{q}[{here}] = {last}v * b{q + 1} - w * a{q + 1}")
    scalars = [f"b{q}" for q in range(order + 1)] + [f"a{q}" for q in range(1, order + 1)]
    return made("lfilter", ["y", *(f"Z{q}" for q in range(order)), "x"], dims, lines, scalars)


def _filtered(nest, states, x, axis, dtype, scalars, context):
    """Return y of a nest whose arrays Z0, Z1, ... begin with 0, one element before x; collective."""
    y = field(x.shape, dtype, context=context)
    if np.prod(x.shape):
        shape = tuple(n + (d == axis) for d, n in enumerate(x.shape))
        Z = {f"Z{q}": field(shape, dtype, keep="window", context=context) for q in range(states)}
        over = {INDICES[axis]: (1, shape[axis])}
        run(nest, y=y, x=x if x.dtype == dtype else given.whole(x, dtype), **Z, **scalars, over=over, context=context)
    return given.as_given(y, x)


@collective("tw.recipes.sosfilt", whole=True)
def sosfilt(
    sos: npt.ArrayLike, x: Given, axis: int = -1, *, context: Context | None = None
) -> Collective[Array | Field]:
    """Filter along an axis with sections of second order, as ``scipy.signal.sosfilt`` does; collective.

    Parameters
    ----------
    sos : array
        (sections, 6), as SciPy's designs give it with ``output="sos"``; ``sos[:, 3]`` is 1. At most 16 sections.
    x : array or field
        Real numbers, of 1 to 6 dimensions. Lanes and ranks divide the other axes.
    axis : int
    context : Context, optional

    Returns
    -------
    numpy.ndarray or Field
        As that of `lfilter`, with SciPy's order of operations.

    Raises
    ------
    ConfigError
        On every rank: for sections and axes that are not allowed.
    """
    x, sections = given.values("sosfilt", "x", x), given.numbers_of("sosfilt", "sos", sos, 2)
    axis, (count, width) = _axis("sosfilt", axis, len(x.shape)), sections.shape
    if width != 6 or not 1 <= count <= MOST_COEFFICIENTS // 2:
        raise ConfigError(
            f"sosfilt: sos: given {shown(sections)}; allowed: an array of 1 to {MOST_COEFFICIENTS // 2} rows of 6"
        )
    if (sections[:, 3] != 1).any():
        raise ConfigError("sosfilt: sos: given another number than 1 in sos[:, 3]; allowed: 1")
    yield f"{given.text_of(x)}, {sections.tolist()}, axis {axis}"
    dtype = given.floats(x, sections)
    scalars = {f"c{s}{q}": float(sections[s, q]) for s in range(count) for q in range(6) if q != 3}
    return _filtered(_sections(len(x.shape), axis, count), 2 * count, x, axis, dtype, scalars, context)


@functools.cache
def _sections(dims, axis, count):
    before, here = at(dims, axis, -1), at(dims, axis)
    lines, scalars = [f"v0 = x[{before}]"], []
    for s in range(count):
        now, new, first, second = f"v{s}", f"v{s + 1}", f"Z{2 * s}", f"Z{2 * s + 1}"
        lines += [
            f"{new} = c{s}0 * {now} + {first}[{before}]",
            f"{first}[{here}] = c{s}1 * {now} - c{s}4 * {new} + {second}[{before}]",
            f"{second}[{here}] = c{s}2 * {now} - c{s}5 * {new}",
        ]
        scalars += [f"c{s}{q}" for q in (0, 1, 2, 4, 5)]
    lines.append(f"y[{before}] = v{count}")
    return made("sosfilt", ["y", *(f"Z{q}" for q in range(2 * count)), "x"], dims, lines, scalars)


@collective("tw.recipes.ema", whole=True)
def ema(
    x: Given, alpha: float, groups: npt.ArrayLike | None = None, axis: int = -1, *, context: Context | None = None
) -> Collective[Array | Field]:
    """Compute exponential moving averages, as ``pandas.Series.ewm(alpha=alpha, adjust=False).mean()``; collective.

    Parameters
    ----------
    x : array or field
        Real numbers, of 1 to 6 dimensions.
    alpha : float
        From 0 to 1: ``y[t] = (1 - alpha) * y[t-1] + alpha * x[t]``, which begins with ``y[0] = x[0]``.
    groups : array, optional
        One label for each element of `x`, which then has one dimension: each group has averages of its own, in the
        order of its elements, as with ``groupby``.
    axis : int
    context : Context, optional

    Returns
    -------
    numpy.ndarray or Field
        As `x`. float32 where `x` is float32, else float64.

    Raises
    ------
    ConfigError
        On every rank: for `alpha`, axes and groups that are not allowed.
    """
    x, alpha = given.values("ema", "x", x), given.number("ema", "alpha", alpha, 0, 1)
    axis, labels = _axis("ema", axis, len(x.shape)), None if groups is None else np.asarray(groups)
    if labels is not None and (labels.dtype.kind == "O" or labels.ndim != 1 or labels.shape != x.shape):
        raise ConfigError(
            f"ema: groups: given shape {labels.shape}, {labels.dtype}, for x of shape {tuple(x.shape)}; allowed: one "
            "number or text for each element of x, which has one dimension"
        )
    yield f"{given.text_of(x)}, alpha {alpha}, axis {axis}, groups {labels is not None}"
    dtype, weights, dims = given.floats(x), {"alpha": alpha, "rest": 1 - alpha}, len(x.shape)
    if labels is None:
        y = given.copied(x, dtype, context)
        if x.shape[axis] > 1 and np.prod(x.shape):
            run(_means(dims, axis), y=y, **weights, context=context)
        return given.as_given(y, x)
    order = np.argsort(labels, kind="stable")
    first = np.r_[True, labels[order][1:] != labels[order][:-1]][: len(order)]
    y = field(given.whole(x, dtype)[order], context=context)
    if len(order) > 1:
        run(_means(dims, axis, "first"), y=y, first=first, **weights, context=context)
    found = np.empty(x.shape, dtype)
    found[order] = y[...]
    return given.from_array(found, context, x)


@functools.cache
def _means(dims, axis, *first):
    here, before = at(dims, axis), at(dims, axis, -1)
    lines = [f"y[{here}] = rest * y[{before}] + alpha * y[{here}]"]
    lines = ["if not first[i]:", f"    {lines[0]}"] if first else lines
    return made("ema", ["y", *first], dims, lines, ["alpha", "rest"])


@collective("tw.recipes.tridiagonal", whole=True)
def tridiagonal(
    lower: Given, diagonal: Given, upper: Given, rhs: Given, *, context: Context | None = None
) -> Collective[Any]:
    """Solve tridiagonal systems, one for each column, by Thomas's algorithm; collective.

    Parameters
    ----------
    lower, diagonal, upper : array or field
        ``lower[i] * x[i-1] + diagonal[i] * x[i] + upper[i] * x[i+1] = rhs[i]``. Of shape (n,), the same for all
        columns, or of the shape of `rhs`. ``lower[0]`` and ``upper[-1]`` are finite, and not used.
    rhs : array or field
        (n,), or (n, ...) with up to 6 dimensions. Lanes and ranks divide the columns.
    context : Context, optional

    Returns
    -------
    numpy.ndarray or Field
        x, as `rhs`. float32 where all that is given is float32, else float64.

    Raises
    ------
    ConfigError
        On every rank, for shapes that do not fit.

    Notes
    -----
    Without pivoting, for systems that are diagonally dominant or positive definite: a pivot of 0 gives infinities or
    NaNs.
    """
    names = {"lower": lower, "diagonal": diagonal, "upper": upper, "rhs": rhs}
    names = {name: given.values("tridiagonal", name, each) for name, each in names.items()}
    shape = tuple(names["rhs"].shape)
    _axis("tridiagonal", 0, len(shape))
    for name, each in names.items():
        if tuple(each.shape) not in (shape, shape[:1]):
            raise ConfigError(
                f"tridiagonal: {name}: given shape {tuple(each.shape)}; allowed: {shape[:1]} or {shape}, as rhs"
            )
    yield ", ".join(given.text_of(each) for each in names.values())
    dtype, dims = given.floats(*names.values()), len(shape)
    arrays = {name: each if each.dtype == dtype else given.whole(each, dtype) for name, each in names.items()}
    x = field(shape, dtype, context=context)
    if np.prod(shape):
        longer = (shape[0] + 1, *shape[1:])
        C = field(longer, dtype, context=context)
        G = field(longer, dtype, keep="window", context=context)
        forward, back = _thomas(dims, tuple(len(arrays[name].shape) for name in ("lower", "diagonal", "upper")))
        run(forward, C=C, G=G, x=x, **arrays, over={"i": (1, longer[0])}, context=context)
        if shape[0] > 1:
            run(back, x=x, C=C, over={"i": (1, shape[0])}, reverse=("i",), context=context)
    return given.as_given(x, rhs)


@functools.cache
def _thomas(dims, of_diagonals):
    here, before = at(dims, 0), at(dims, 0, -1)
    low, middle, up = (
        f"{name}[{at(n, 0, -1)}]" for name, n in zip(("lower", "diagonal", "upper"), of_diagonals, strict=True)
    )
    forward = [
        f"pivot = {middle} - {low} * C[{before}]",
        f"g = (rhs[{before}] - {low} * G[{before}]) / pivot",
        f"C[{here}] = {up} / pivot",
        f"G[{here}] = g",
        f"x[{before}] = g",
    ]
    back = [f"x[{before}] = x[{before}] - C[{here}] * x[{here}]"]
    arrays = ["C", "G", "x", "lower", "diagonal", "upper", "rhs"]
    return made("thomas_forward", arrays, dims, forward), made("thomas_back", ["x", "C"], dims, back)
