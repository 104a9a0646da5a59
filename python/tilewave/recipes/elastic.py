"""Distances and alignments of sequences: time warping, Levenshtein, Needleman-Wunsch, Smith-Waterman."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave.context.collective import collective
from tilewave.errors import ConfigError, is_integer, shown
from tilewave.field.create import field
from tilewave.nest.nest import nest_from
from tilewave.nests.doors.run import run
from tilewave.recipes import given

if TYPE_CHECKING:
    from tilewave.annotations import Array, Collective
    from tilewave.context.context import Context
    from tilewave.recipes.given import Given

#: So many pairs share the vectors, lanes and ranks; fewer run one after another, each with all of these.
LEAST_BATCH = 8
#: Series of at most so many channels have one array a channel, which is faster than a loop in the body.
MOST_ARRAYS = 8

_DISTANCE = (
    "edit_distance",
    ("D", "x", "y"),
    (
        "change = 0 if x[{b}i-1] == y[{b}j-1] else 1",
        "d = min(min(D[{b}i-1, j], D[{b}i, j-1]) + 1, D[{b}i-1, j-1] + change)",
        "D[{b}i, j] = d",
        "S[{s}] = d",
    ),
    (),
)
_ALIGN = (
    "e = max(E[{b}i, j-1] - extend, H[{b}i, j-1] - start)",
    "f = max(F[{b}i-1, j] - extend, H[{b}i-1, j] - start)",
    "E[{b}i, j] = e",
    "F[{b}i, j] = f",
)


def _scores(nest, tables, sequences, dtype, context, **more):
    """Return what the nest stores at S in the last cell of each pair's table; collective.

    Parameters
    ----------
    nest : tuple
        Its name, arrays, lines and scalars: ``{b}`` begins the subscripts of a batch, ``{s}`` is that of S.
    tables : dict
        What the elements of each table are at first: a number, or a function of indices, of which i and j are the last.
    sequences : dict
        The arrays of the body; x..., y...: (pairs, n) and (pairs, m).
    """
    (pairs, n), m = sequences["x"].shape[:2], sequences["y"].shape[1]
    batch, found = pairs >= LEAST_BATCH, np.zeros(pairs, dtype)
    for pair in [slice(None)] if batch else range(pairs):
        own = {name: each[pair] if name[0] in "xy" else each for name, each in sequences.items()}
        shape = (*(pairs,) * batch, n + 1, m + 1)
        own |= {name: field(shape, dtype, init, keep="window", context=context) for name, init in tables.items()}
        S = field((pairs if batch else m + 1,), dtype, context=context)
        run(_made(*nest, batch), S=S, **own, **more, context=context)
        found[pair] = S[...] if batch else S[m]
    return found


@functools.cache
def _made(name, arrays, lines, scalars, batch):
    """Return a nest over the cells i, j of a pair's table, or over b, i, j of a batch's."""
    scalars = "".join(f", {each}" for each in ("*", *scalars)) if scalars else ""
    body = "\n    ".join(lines).format(b="b, " * batch, s="b" if batch else "j")
    return nest_from(f"def {name}(S, {', '.join(arrays)}, {'b, ' * batch}i, j{scalars}):\n    {body}\n")


def _pair(call, names, dims, kinds):
    """Return two arrays or fields with as many dimensions, of as many pairs where there are several."""
    x, y = (given.values(call, name, each, kinds, dims) for name, each in names.items())
    if len(x.shape) != len(y.shape) or len(x.shape) == dims[-1] and x.shape[0] != y.shape[0]:
        raise ConfigError(f"{call}: given shapes {x.shape} and {y.shape}; allowed: one pair, or equal numbers of pairs")
    return x, y


@collective("tw.recipes.dtw", whole=True)
def dtw(x: Given, y: Given, *, window: int | None = None, context: Context | None = None) -> Collective[Any]:
    """Find the distance of time series by dynamic time warping, as ``tslearn.metrics.dtw`` does; collective.

    Parameters
    ----------
    x, y : array or field
        Series of shapes (n,) and (m,), or (n, d) and (m, d) with d channels; of pairs (pairs, n, d) and (pairs, m, d).
        Real numbers; series of float32 are computed in float32, others in float64.
    window : int, optional
        The radius of Sakoe and Chiba's band: element i of the shorter series meets elements from ``i - window`` to
        ``i + window`` and the difference of the lengths. Default: no band.
    context : Context, optional

    Returns
    -------
    float or numpy.ndarray
        The root of the smallest sum of squared differences along a path; one for each pair. The same on every rank.

    Raises
    ------
    ConfigError
        On every rank: for series without elements, and shapes that do not fit.
    """
    x, y = _pair("dtw", {"x": x, "y": y}, (1, 2, 3), "biuf")
    if len(x.shape) > 1 and x.shape[-1] != y.shape[-1] or not all((*x.shape, *y.shape)):
        raise ConfigError(
            f"dtw: given series of shapes {x.shape} and {y.shape}; allowed: at least one element, as many channels"
        )
    if window is not None and not is_integer(window, 0):
        raise ConfigError(f"dtw: window: given {shown(window)}; allowed: an integer >= 0, or None")
    yield f"{given.text_of(x)}, {given.text_of(y)}, window {window}"
    dtype, dims = given.floats(x, y), len(x.shape)
    x, y = (given.whole(each, dtype).reshape((1,) * (dims < 3) + each.shape + (1,) * (dims < 2)) for each in (x, y))
    (_, n, channels), m = x.shape, y.shape[1]
    if channels <= MOST_ARRAYS:
        several = [(name, each, q) for name, each in (("x", x), ("y", y)) for q in range(channels)]
        arrays = {f"{name}{q or ''}": np.ascontiguousarray(each[..., q]) for name, each, q in several}
        lines = [f"d{q} = x{q or ''}[{{b}}i-1] - y{q or ''}[{{b}}j-1]" for q in range(channels)]
        cost = " + ".join(f"d{q} * d{q}" for q in range(channels))
    else:
        arrays, lines, difference = {"x": x, "y": y}, [], "(x[{b}i-1, q] - y[{b}j-1, q])"
        cost = f"sum({difference} * {difference} for q in range({channels}))"
    lines += [f"d = {cost} + min(D[{{b}}i-1, j], D[{{b}}i, j-1], D[{{b}}i-1, j-1])", "D[{b}i, j] = d", "S[{s}] = d"]
    nest = "dtw", ("D", *arrays), tuple(lines), ()
    found = np.sqrt(_scores(nest, {"D": _origin}, arrays, dtype, context, over=_band(n, m, window)))
    return found if dims == 3 else found[0]


def _origin(*index):
    return np.where((index[-2] == 0) & (index[-1] == 0), 0.0, np.inf)


def _band(n, m, window):
    if window is None:
        return None
    low, high = window + max(n - m, 0), window + max(m - n, 0)
    return {"j": ([1, f"i - {low}"], [m + 1, f"i + {high + 1}"])}


def _letters(call, a, b):
    """Return two sequences, or batches of them, as arrays or fields of integers."""
    codes = {}
    for name, each in (("a", a), ("b", b)):
        if isinstance(each, str):
            each = np.frombuffer(each.encode("utf-32-le", "surrogatepass"), "u4")
        codes[name] = np.frombuffer(each, "u1") if isinstance(each, bytes | bytearray) else each
    return _pair(call, codes, (1, 2), "iu")


@collective("tw.recipes.edit_distance", whole=True)
def edit_distance(a: str | bytes | Given, b: str | bytes | Given, *, context: Context | None = None) -> Collective[Any]:
    """Count the fewest insertions, deletions and replacements between sequences, Levenshtein's distance; collective.

    Parameters
    ----------
    a, b : str, bytes, array or field
        Texts, or integers of shapes (n,) and (m,); of pairs (pairs, n) and (pairs, m).
    context : Context, optional

    Returns
    -------
    int or numpy.ndarray
        One for each pair, int32. The same on every rank.

    Raises
    ------
    ConfigError
        On every rank, for what are no sequences, and shapes that do not fit.
    """
    a, b = _letters("edit_distance", a, b)
    yield f"{given.text_of(a)}, {given.text_of(b)}"
    a, b, one = np.atleast_2d(given.whole(a)), np.atleast_2d(given.whole(b)), len(a.shape) == 1
    if a.shape[1] and b.shape[1]:
        found = _scores(_DISTANCE, {"D": lambda *index: index[-2] + index[-1]}, {"x": a, "y": b}, "i4", context)
    else:
        found = np.full(len(a), max(a.shape[1], b.shape[1]), "i4")
    return int(found[0]) if one else found


@collective("tw.recipes.align", whole=True)
def align(
    a: str | bytes | Given,
    b: str | bytes | Given,
    *,
    scores: tuple[float, float] | Array,
    gap: float,
    gap_open: float | None = None,
    mode: str = "global",
    context: Context | None = None,
) -> Collective[Any]:
    """Find the best score of alignments: Needleman and Wunsch, Smith and Waterman, gaps after Gotoh; collective.

    Parameters
    ----------
    a, b : str, bytes, array or field
        Texts, or integers of shapes (n,) and (m,); of pairs (pairs, n) and (pairs, m).
    scores : (match, mismatch), or array
        Two numbers, or a table of two dimensions with the score of letters a and b at ``scores[a, b]``: sequences are
        then integers from 0.
    gap : float
        What each letter of a gap costs, at least 0.
    gap_open : float, optional
        What the first letter of a gap costs in place of `gap`, as in parasail. Default: `gap`.
    mode : {"global", "local"}
        Alignments of the whole sequences, or of the parts with the best score, which is at least 0.
    context : Context, optional

    Returns
    -------
    number or numpy.ndarray
        The score of each pair: integers where `scores` and gaps are integers, else float64. The same on every rank.

    Raises
    ------
    ConfigError
        On every rank: for what are no sequences or scores, letters without a score, and shapes that do not fit.
    """
    a, b = _letters("align", a, b)
    extend = given.number("align", "gap", gap, 0)
    start = given.number("align", "gap_open", gap if gap_open is None else gap_open, 0)
    given.one_of("align", "mode", mode, ("global", "local"))
    table = given.numbers_of("align", "scores", scores, (1, 2))
    if table.shape != (2,) and (table.ndim != 2 or not table.size):
        raise ConfigError(f"align: scores: given shape {table.shape}; allowed: (match, mismatch), or a table")
    yield f"{given.text_of(a)}, {given.text_of(b)}, {table.tolist()}, {start}, {extend}, {mode}"
    a, b, one = np.atleast_2d(given.whole(a)), np.atleast_2d(given.whole(b)), len(a.shape) == 1
    for name, each, letters in zip("ab", (a, b), table.shape) if table.ndim == 2 else ():
        if each.size and not 0 <= each.min() <= each.max() < letters:
            raise ConfigError(
                f"align: {name}: given letters {each.min()} to {each.max()}; allowed: 0 to {letters - 1}, as in scores"
            )
    dtype, low = _type_of_scores(table, start, extend, a.shape[1] + b.shape[1])
    start, extend = (each if dtype.kind == "f" else int(each) for each in (start, extend))

    def rim(*index):
        letters = index[-2] + index[-1]
        return np.where(np.equal(letters, 0), 0, -start - extend * (letters - 1))

    local, table = mode == "local", table.astype(dtype)
    if a.shape[1] and b.shape[1]:
        scored = {"scores": table} if table.ndim == 2 else dict(zip(("match", "other"), table.tolist()))
        tables = {"H": 0 if local else rim, "E": low, "F": low} | ({"B": 0} if local else {})
        nest = _alignment(tuple(tables), table.ndim == 2, local)
        found = _scores(nest, tables, {"x": a, "y": b}, dtype, context, start=start, extend=extend, **scored)
    else:
        found = np.full(len(a), 0 if local else rim(a.shape[1], b.shape[1]), dtype)
    return found[0] if one else found


def _type_of_scores(table, start, extend, letters):
    """Return the dtype of all scores, and a value that is below them."""
    if table.dtype.kind == "f" or not (start.is_integer() and extend.is_integer()):
        return np.dtype("f8"), -np.inf
    most = (letters + 1) * max(int(np.abs(table.astype(float)).max()), int(start), int(extend))
    if most >= 2**61:
        raise ConfigError("align: given scores whose sums leave int64; allowed: smaller ones, or floats")
    return (np.dtype("i4"), -(2**30)) if most < 2**29 else (np.dtype("i8"), -(2**62))


def _alignment(tables, by_table, local):
    """Return what a nest of alignments is made of: how letters are scored, and which alignments are wanted."""
    score = "scores[x[{b}i-1], y[{b}j-1]]" if by_table else "(match if x[{b}i-1] == y[{b}j-1] else other)"
    lines = [*_ALIGN, f"h = max(H[{{b}}i-1, j-1] + {score}, e, f{', 0' * local})", "H[{b}i, j] = h"]
    if local:  # the best of all cells up to this one
        lines += ["h = max(B[{b}i-1, j], B[{b}i, j-1], h)", "B[{b}i, j] = h"]
    arrays, scalars = (*tables, "x", "y", *("scores",) * by_table), () if by_table else ("match", "other")
    return "align", arrays, (*lines, "S[{s}] = h"), ("start", "extend", *scalars)
