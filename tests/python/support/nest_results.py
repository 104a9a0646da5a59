"""Random rolling-window fields and reductions for random nests, and the numbers that plain loops give."""

import dataclasses
import functools
import inspect
import math
import random
import types

import numpy as np

import tilewave as tw
from nest_problems import stand_in
from tilewave.nest.reference import plain_loops

KINDS = ("max", "min", "argmax", "argmin", "sum")


@dataclasses.dataclass
class Results:
    """Which written arrays keep a rolling window only, and which numbers are asked for."""

    window: dict  # name to how its start values are given
    reduce: dict  # name of the number to (kind, array)

    def __str__(self):
        return f"window {self.window}, reduce {self.reduce}"


def random_results(problem, nest):
    """What is asked of a problem's run; changes start values where an array is given as scratch or by one number."""
    rng = random.Random(f"results {problem.seed}")
    single = [name for name in problem.written if one_value_a_point(nest, name)]
    window, reduce = {}, {}
    wants_window = rng.random() < (0.7 if single and not problem.body.timed else 0.2)
    if single and rng.random() < (0.85 if wants_window else 0.2):
        for k in range(rng.randint(1, 4)):
            reduce[f"number {k}"] = rng.choice(KINDS), rng.choice(single)
    if wants_window:
        chosen = [name for name in problem.written if rng.random() < 0.7]
        if len(chosen) == len(problem.written) and not reduce:
            chosen.remove(rng.choice(chosen))
        for name in chosen:
            window[name] = random_start(rng, problem, name, chosen)
    return Results(window, reduce)


def one_value_a_point(nest, name):
    return set(nest.axes[name]) == set(nest.indices) and sum(p.written and p.array == name for p in nest.places) == 1


def random_start(rng, problem, name, chosen):
    how = rng.choice(("array", "function of arrays", "function of numbers", "number", "scratch"))
    if how in ("number", "scratch"):
        start = problem.arrays[name]
        start[...] = start.flat[0]
        if how == "scratch" and scratch_shape(problem, name, chosen) != start.shape:
            return "number"
    return how


def scratch_shape(problem, name, chosen):
    """As long along each loop index as the longest other array; those of `chosen` may be scratch, too."""
    longest = {}
    for other in problem.body.arrays.values():
        if other.name in chosen or other.role == "table":
            continue
        shape = problem.arrays[other.name].shape
        for axes, _ in other.places:
            for index, extent in zip(axes[len(axes)-len(shape) :], shape, strict=True):
                longest[index] = max(longest.get(index, 0), extent)
    axes = problem.body.arrays[name].axes
    return tuple(longest.get(index) for index in axes[len(axes)-problem.arrays[name].ndim :])


def start_of(how, start, context):
    """What a run is given for an array that keeps a rolling window."""
    init = {
        "array": start,
        "function of arrays": lambda *x: start[x],
        "function of numbers": lambda *x: start[tuple(map(index_of, x))],
        "number": start.flat[0],
        "scratch": start.flat[0],
    }[how]
    if how == "scratch":
        return tw.scratch(start.dtype, init)
    return tw.field(start.shape, start.dtype, init, keep="window", context=context)


def index_of(x):
    if isinstance(x, np.ndarray):
        raise TypeError("one point at a time")
    return x


def plain_results(problem, nest, results):
    """(the written arrays, the numbers asked for) after plain loops; rolling windows start anew in each run."""
    arrays = {name: array.copy() for name, array in problem.arrays.items()}
    values, history = {}, problem.buffers_before(results.window)
    for _ in range(problem.runs):
        for name in results.window:
            arrays[name] = problem.arrays[name].copy()
            if name in history:
                history[name] = problem.buffers_before(results.window)[name]
        values = {name: [] for _, name in results.reduce.values()}
        recorder = types.SimpleNamespace(
            function=recording(nest, values), scalars=problem.body.scalars, **vars(stand_in(problem.body))
        )
        plain_loops(recorder, problem.bounds, arrays, problem.scalars, problem.reverse, problem.steps, history)
    numbers = {
        name: reduced(kind, values[array], problem.arrays[array].dtype)
        for name, (kind, array) in results.reduce.items()
    }
    return {name: arrays[name] for name in problem.written}, numbers


def recording(nest, values):
    """The body; then what it has left in the written elements of `values` is added there, with their subscripts."""
    if not values:
        return nest.function
    names = list(inspect.signature(nest.function).parameters)
    places = {p.array: p.offsets for p in nest.places if p.written and p.array in values}

    @functools.wraps(nest.function)
    def body(*arguments, **scalars):
        nest.function(*arguments, **scalars)
        given = dict(zip([n for n in names if n not in nest.scalars], arguments, strict=True))
        for array, offsets in places.items():
            at = tuple(given[index] + o for index, o in zip(nest.axes[array], offsets, strict=True))
            values[array].append((at, given[array][at]))

    return body


def reduced(kind, values, dtype):
    """One number out of (subscripts, value) pairs, in plain Python."""
    if kind == "sum":
        return float_sum([float(v) for _, v in values]) if dtype.kind == "f" else integer_sum(values, dtype)
    if not values:
        return None
    best = None
    for at, value in values:
        if best is None or better(kind, value, best[1]) or (not better(kind, best[1], value) and at < best[0]):
            best = at, value
    return best[0] if kind.startswith("arg") else best[1]


def better(kind, a, b):
    """NaN is better than any number."""
    if a != a or b != b:
        return a != a and b == b
    return a > b if kind.endswith("max") else a < b


def integer_sum(values, dtype):
    total = sum(int(v) for _, v in values) % 2**64
    if dtype == np.uint64:
        return np.uint64(total)
    return np.int64(total - 2**64 if total >= 2**63 else total)


def float_sum(values):
    special = {v if v == v else "NaN" for v in values if not math.isfinite(v)}
    if special:
        return np.float64(special.pop() if special in ({math.inf}, {-math.inf}) else math.nan)
    return np.float64(math.fsum(values))


def wrong_results(found, expected):
    """What differs between numbers by name; empty if nothing does."""
    wrong = [
        f"{name} is {found.get(name)!r} instead of {value!r}"
        for name, value in expected.items()
        if not same(found.get(name), value)
    ]
    if found.keys() != expected.keys():
        wrong.append(f"there are results {sorted(found)} instead of {sorted(expected)}")
    return "; ".join(wrong)


def same(a, b):
    if b is None or isinstance(b, tuple):
        return a == b and type(a) is type(b)
    if type(a) is not type(b):
        return False
    return a.tobytes() == b.tobytes() or bool(a != a and b != b)
