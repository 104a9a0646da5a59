"""Distances and alignments of sequences: time warping, Levenshtein, Needleman-Wunsch, Smith-Waterman."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave.context.collective import collective
from tilewave.errors import ConfigError, is_integer, shown
from tilewave.field.create import field
from tilewave.nest.nest import nest_from
from tilewave.nests.call.reduce_functions import max as largest
from tilewave.nests.doors.run import run
from tilewave.recipes import given

if TYPE_CHECKING:
    import numpy.typing as npt

    from tilewave.annotations import Array, Collective
    from tilewave.context.context import Context
    from tilewave.field.field import Field

#: So many pairs share the vectors, lanes and ranks; fewer run one after another, each with all of these.
LEAST_BATCH = 8
#: Series of at most so many channels have one array a channel, which is faster than a loop in the body.
MOST_ARRAYS = 8

_DISTANCE = ("change = 0 if x[{b}i-1] == y[{b}j-1] else 1",
             "D[{b}i, j] = min(min(D[{b}i-1, j], D[{b}i, j-1]) + 1, D[{b}i-1, j-1] + change)",
             "S[{s}] = D[{b}i, j]")  # fmt: skip
_ALIGN = ("e = max(E[{b}i, j-1] - extend, H[{b}i, j-1] - start)",
          "f = max(F[{b}i-1, j] - extend, H[{b}i-1, j] - start)",
          "E[{b}i, j] = e",
          "F[{b}i, j] = f")  # fmt: skip


@functools.cache
def _made(name, parameters, lines, scalars, batch):
    """Return a nest over the cells i, j of a pair's table, or over b, i, j of a batch's."""
    loops = "b, i, j" if batch else "i, j"
    scalars = "".join(f", {each}" for each in ("*", *scalars)) if scalars else ""
    body = "\n    ".join(lines).format(b="b, " * batch, s="b" if batch else "j")
    return nest_from(f"def {name}({', '.join(parameters)}, {loops}{scalars}):\n    {body}\n")


def _scores(made, tables, sequences, dtype, context, best=False, **more):
    """Return the value of each pair's last cell, or its largest value where `best`; collective.

    Parameters
    ----------
    made : function
        Gives the nest, told whether it is that of a batch.
    tables : dict
        What the elements of each table are at first: a number, or a function of i and j.
    sequences : dict
        The arrays of the body; x..., y...: (pairs, n) and (pairs, m).
    """
    pairs, n = sequences["x"].shape[:2]
    m = sequences["y"].shape[1]
    if pairs >= LEAST_BATCH:
        S = field((pairs,), dtype, context=context)
        D = {
            name: field((pairs, n + 1, m + 1), dtype, _of_batch(init), keep="window", context=context)
            for name, init in tables.items()
        }
        run(made(True), S=S, **D, **sequences, **more, context=context)
        return np.asarray(S[...])
    found = np.zeros(pairs, dtype)
    for pair in range(pairs):
        own = {name: each[pair] if name[0] in "xy" else each for name, each in sequences.items()}
        D = {name: field((n + 1, m + 1), dtype, init, keep="window", context=context) for name, init in tables.items()}
        if best:
            results = run(made(False), **D, **own, **more, reduce={"best": largest("H")}, context=context).results
            found[pair] = results["best"]
        else:
            S = field((m + 1,), dtype, context=context)
            run(made(False), S=S, **D, **own, **more, context=context)
            found[pair] = S[m]
    return found


def _of_batch(init):
    return (lambda b, i, j: init(i, j)) if callable(init) else init


def _pair(call, a, b, dims, kinds):
    """Return two arrays or fields with as many dimensions, of as many pairs where there are several."""
    x, y = given.values(call, dims[0], a, kinds, dims[2]), given.values(call, dims[1], b, kinds, dims[2])
    several = len(x.shape) == dims[2][-1]
    if len(x.shape) != len(y.shape) or several and x.shape[0] != y.shape[0]:
        raise ConfigError(
            f"{call}: given shapes {x.shape} and {y.shape}; allowed: one pair, or as many in {dims[0]} as in {dims[1]}"
        )
    return x, y


@collective("tw.recipes.dtw", whole=True)
def dtw(
    x: npt.ArrayLike | Field, y: npt.ArrayLike | Field, *, window: int | None = None, context: Context | None = None
) -> Collective[Any]:
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
    x, y = _pair("dtw", x, y, ("x", "y", (1, 2, 3)), "biuf")
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
    made = functools.partial(_warping, channels)
    if channels <= MOST_ARRAYS:
        arrays = {
            f"{name}{q or ''}": np.ascontiguousarray(s[..., q])
            for name, s in (("x", x), ("y", y))
            for q in range(channels)
        }
    else:
        arrays = {"x": x, "y": y}
    found = _scores(made, {"D": _origin}, arrays, dtype, context, over=_band(n, m, window))
    found = np.sqrt(found)
    return found if dims == 3 else found[0]


def _origin(i, j):
    return np.where((i == 0) & (j == 0), 0.0, np.inf)


def _band(n, m, window):
    if window is None:
        return None
    low, high = window + max(n - m, 0), window + max(m - n, 0)
    return {"j": ([1, f"i - {low}"], [m + 1, f"i + {high + 1}"])}


def _warping(channels, batch):
    """Return the nest of series of so many channels."""
    if channels <= MOST_ARRAYS:
        names = [str(q or "") for q in range(channels)]
        lines = [f"d{q} = x{q}[{{b}}i-1] - y{q}[{{b}}j-1]" for q in names]
        cost, parameters = " + ".join(f"d{q} * d{q}" for q in names), [f"{s}{q}" for s in "xy" for q in names]
    else:
        lines, parameters = [], ["x", "y"]
        difference = "(x[{b}i-1, q] - y[{b}j-1, q])"
        cost = f"sum({difference} * {difference} for q in range({channels}))"
    lines += [
        f"D[{{b}}i, j] = {cost} + min(D[{{b}}i-1, j], D[{{b}}i, j-1], D[{{b}}i-1, j-1])",
        "S[{s}] = D[{b}i, j]",
    ]
    return _made("dtw", ("D", "S", *parameters), tuple(lines), (), batch)


def _letters(call, a, b):
    """Return two sequences, or batches of them, as arrays or fields of integers."""
    codes = []
    for each in (a, b):
        if isinstance(each, str):
            each = np.frombuffer(each.encode("utf-32-le", "surrogatepass"), "u4")
        elif isinstance(each, bytes | bytearray):
            each = np.frombuffer(each, "u1")
        codes.append(each)
    return _pair(call, *codes, ("a", "b", (1, 2)), "iu")


@collective("tw.recipes.edit_distance", whole=True)
def edit_distance(
    a: str | bytes | npt.ArrayLike | Field, b: str | bytes | npt.ArrayLike | Field, *, context: Context | None = None
) -> Collective[Any]:
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
    one = len(a.shape) == 1
    if not all((*a.shape[-1:], *b.shape[-1:])):
        found = np.full(a.shape[:-1] or 1, max(a.shape[-1], b.shape[-1]), "i4")
    else:
        a, b = (np.atleast_2d(given.whole(each)) for each in (a, b))
        made = functools.partial(_made, "edit_distance", ("D", "S", "x", "y"), _DISTANCE, ())
        found = _scores(made, {"D": lambda i, j: i + j}, {"x": a, "y": b}, "i4", context)
    return int(found[0]) if one else found


@collective("tw.recipes.align", whole=True)
def align(
    a: str | bytes | npt.ArrayLike | Field,
    b: str | bytes | npt.ArrayLike | Field,
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
    table = given.values("align", "scores", scores, "biuf", (1, 2))
    if table.shape != (2,) and (table.ndim != 2 or not table.size):
        raise ConfigError(
            f"align: scores: given shape {table.shape}; allowed: (match, mismatch), or a table of two axes"
        )
    if not np.isfinite(table).all():
        raise ConfigError("align: scores: given values that are not finite; allowed: finite numbers")
    yield f"{given.text_of(a)}, {given.text_of(b)}, {table.tolist()}, {start}, {extend}, {mode}"
    one = len(a.shape) == 1
    a, b = (np.atleast_2d(given.whole(each)) for each in (a, b))
    if table.ndim == 2:
        _check_letters(table, a, b)
    dtype, low = _type_of_scores(table, start, extend, a.shape[1] + b.shape[1])
    number = float if dtype.kind == "f" else int
    costs = {"start": number(start), "extend": number(extend)}
    local = mode == "local"
    if a.shape[1] and b.shape[1]:
        costs |= (
            {"scores": table.astype(dtype)}
            if table.ndim == 2
            else dict(zip(("match", "other"), table.astype(dtype).tolist()))
        )
        tables = {"H": 0 if local else lambda i, j: _rim(i + j, costs), "E": low, "F": low}
        made = functools.partial(_alignment, table.ndim == 2, local)
        found = _scores(made, tables, {"x": a, "y": b}, dtype, context, local, **costs)
    else:
        found = np.full(len(a), 0 if local else _rim(a.shape[1] + b.shape[1], costs), dtype)
    return found[0] if one else found


def _rim(letters, costs):
    """Return the scores of one gap of so many letters."""
    return np.where(np.equal(letters, 0), 0, -costs["start"] - costs["extend"] * (letters - 1))


def _check_letters(table, a, b):
    for axis, (name, each) in enumerate((("a", a), ("b", b))):
        if each.size and not 0 <= each.min() <= each.max() < table.shape[axis]:
            raise ConfigError(
                f"align: {name}: given letters {each.min()} to {each.max()}; allowed: 0 to {table.shape[axis] - 1}, "
                "which have scores"
            )


def _type_of_scores(table, start, extend, letters):
    """Return the dtype of all scores, and a value that is below them."""
    if table.dtype.kind == "f" or not (start.is_integer() and extend.is_integer()):
        return np.dtype("f8"), -np.inf
    most = (letters + 1) * max(int(np.abs(table.astype(float)).max()), int(start), int(extend))
    if most >= 2**61:
        raise ConfigError("align: given scores whose sums leave int64; allowed: smaller ones, or floats")
    return (np.dtype("i4"), -(2**30)) if most < 2**29 else (np.dtype("i8"), -(2**62))


def _alignment(by_table, local, batch):
    """Return the nest of alignments, told how letters are scored and which alignments are wanted."""
    score = "scores[x[{b}i-1], y[{b}j-1]]" if by_table else "(match if x[{b}i-1] == y[{b}j-1] else other)"
    lines = [*_ALIGN, f"h = max(H[{{b}}i-1, j-1] + {score}, e, f{', 0' * local})", "H[{b}i, j] = h"]
    if batch or not local:
        lines.append("S[{s}] = max(S[{s}], h)" if local else "S[{s}] = h")
    arrays = ("H", "E", "F", *("S",) * (batch or not local), "x", "y", *("scores",) * by_table)
    scalars = ("start", "extend", *(() if by_table else ("match", "other")))
    return _made("align", arrays, tuple(lines), scalars, batch)
