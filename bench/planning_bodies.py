"""The nests of `bench plan`, by name: what makes a nest and its arguments from a context and numbers."""
import numpy as np
import tilewave as tw

from bench.nests_bodies import (
    SCORES,
    one,
    recurrence,
    roots,
    smith_waterman,
    smith_waterman_by_table,
    sor,
    two,
)
from bench.stencils_bodies import heat


@tw.nest
def decay(A, i, j, k):
    A[i, j, k] = 0.5 * np.exp(-A[i-1, j, k]) + 0.25 * A[i, j-1, k]


@tw.nest
def hyper(A, i, j, k, l):
    A[i, j, k, l] = 0.2 * (A[i-1, j, k, l] + A[i, j-1, k, l] + A[i, j, k-1, l] + A[i, j, k, l-1])


@tw.nest
def longest(A, i, j):
    A[i, j] = max(A[i-1, j], A[i, j-1]) + 1.0


@tw.nest
def damped(A, W, i, j):
    A[i, j] = np.exp(-abs(A[i-1, j])) * W[i, j] + 0.3 * A[i, j-1] + 0.1 * A[i-1, j-1]


@tw.nest
def four_arrays(A, B, C, D, i, j):
    A[i, j] = B[i, j] * A[i-1, j] + C[i, j] * A[i, j-1] + D[i, j]


@tw.nest
def heat2(u, t, i, j):
    u[t+1, i, j] = u[t, i, j] + 0.1 * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])


@tw.nest
def wave2(u, t, i, j):
    u[t+1, i, j] = 2 * u[t, i, j] - u[t-1, i, j] + 0.2 * (
        u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])


@tw.nest
def wave3(u, t, i, j, k):
    u[t+1, i, j, k] = 2 * u[t, i, j, k] - u[t-1, i, j, k] + 0.1 * (
        u[t, i-1, j, k] + u[t, i+1, j, k] + u[t, i, j-1, k] + u[t, i, j+1, k]
        + u[t, i, j, k-1] + u[t, i, j, k+1] - 6 * u[t, i, j, k])


def _field(shape, dtype, context):
    return tw.field(shape, dtype, init=lambda *at: 1.0, context=context)


def _letters(n, letters):
    random = np.random.default_rng(1)
    return {name: random.integers(0, letters, n).astype("i1") for name in "ab"}


def _window(context, n):
    return {name: tw.field((n + 1, n + 1), "i2", keep="window", context=context) for name in "HEF"}


def _alignment(context, n):
    return smith_waterman, {**_window(context, n), **_letters(n, 4), **SCORES}


def _scored(context, n, letters):
    score = np.random.default_rng(2).integers(-4, 9, (letters, letters)).astype("i2")
    given = {**_window(context, n), **_letters(n, letters), "score": score, "start": 11, "extend": 1}
    return smith_waterman_by_table, given


def _sor(context, n, steps):
    return sor, {"u": _field((n, n), "f8", context), "f": _field((n, n), "f8", context), "w": 1.9, "steps": steps}


def _nest(nest, dtype):
    """A nest whose arrays are fields of one shape and have all its loops."""
    return lambda context, *shape: (nest, {name: _field(shape, dtype, context) for name in nest.arrays})


def _in_time(nest, dtype):
    """A nest over time steps; its numbers are the extents and then the steps."""
    return lambda context, *numbers: (nest, {"u": _field(numbers[:-1], dtype, context), "steps": numbers[-1]})


PROBLEMS = {
    "linear": _nest(one, "f4"), "roots": _nest(roots, "f4"), "decay": _nest(decay, "f8"),
    "recurrence": _nest(recurrence, "f8"),
    "hyper": _nest(hyper, "f4"), "longest": _nest(longest, "f4"), "damped": _nest(damped, "f8"),
    "two arrays": _nest(two, "f4"),
    "four arrays": _nest(four_arrays, "f8"), "heat2": _in_time(heat2, "f8"), "heat3": _in_time(heat, "f4"),
    "wave2": _in_time(wave2, "f4"),
    "wave3": _in_time(wave3, "f4"), "sor": _sor, "alignment": _alignment, "scored": _scored,
}
