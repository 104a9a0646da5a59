"""Rows as whole vectors, and several rows in one call, against one row point by point."""

import ctypes
import random
import re

import numpy as np
import pytest

import tilewave as tw
from tilewave.kernel.compile import ROW, ROWS, compile_kernel


@tw.nest
def three(A, i, j):
    A[i, j] = A[i-1, j] + 3 * A[i-1, j-1] - A[i-1, j+1]


@tw.nest
def in_place(A, B, i, j, *, w=3):
    B[i, j] = A[i, j] + B[i, j]
    A[i, j] = w * A[i, j] + A[i-1, j] - B[i-1, j]


@tw.nest
def kept(A, B, i, j):
    if A[i-1, j] > B[i, j]:
        A[i, j] = B[i, j]


@tw.nest
def numbered(A, i, j):
    A[i, j] = A[i-1, j] + i - 2 * j


@tw.nest
def looked_up(A, a, S, i, j):
    A[i, j] = A[i-1, j] + S[a[j]]


BODIES = [(three, {}), (in_place, {"w": 3}), (kept, {}), (numbered, {}), (looked_up, {})]


def addresses(kernel, arrays, i, j):
    """Pointers to what the places are at point (i, j), then the tables."""
    pointers = []
    for place in kernel.places:
        array, axes = arrays[place.array], place.axes
        at = [{"i": i, "j": j}[index] + offset for index, offset in zip(axes, place.offsets, strict=True)]
        pointers.append(array.ctypes.data + sum(n * s for n, s in zip(at, array.strides, strict=True)))
    return pointers + [arrays[table].ctypes.data for table in kernel.nest.tables]


def change(kernel, arrays, direction):
    """Bytes from each place to the one `direction` away."""
    return [
        sum(direction[index] * stride for index, stride in zip(place.axes, arrays[place.array].strides, strict=True))
        for place in kernel.places
    ]


def words(values, kind=ctypes.c_int64):
    return (kind * max(len(values), 1))(*values)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i2", "u1"])
@pytest.mark.parametrize("nest, scalars", BODIES, ids=lambda value: getattr(value, "name", ""))
def test_rows_are_those_of_one_row_at_a_time(nest, scalars, dtype, seed=4):
    dice = random.Random(seed)
    generator = np.random.default_rng(seed)
    dtypes = {name: np.dtype("i4") if name == "a" else np.dtype(dtype) for name in nest.arrays}
    shapes = {"A": (9, 90), "B": (9, 90), "a": (90,), "S": (7,)}
    whole = compile_kernel(nest, dtypes, scalars, steps=[1] * len(nest.places), independent=True)
    single = compile_kernel(nest, dtypes, scalars)
    assert whole.rows_address and not single.rows_address
    for _ in range(60):
        first = {name: generator.integers(0, 7, shapes[name]).astype(dtypes[name]) for name in nest.arrays}
        found, known = ({name: value.copy() for name, value in first.items()} for _ in range(2))
        spans = [(number, dice.randint(1, 40), dice.choice((1, 3, dice.randint(1, 47)))) for number in range(8)]
        env = [kernel.pack(scalars, {name: first[name] for name in nest.tables}) for kernel in (whole, single)]
        steps = words(change(whole, found, {"i": 0, "j": 1}))
        code = ROWS(whole.rows_address)(
            words(addresses(whole, found, 1, 0), ctypes.c_void_p),
            steps,
            len(spans),
            words(sum(spans, ())),
            words(change(whole, found, {"i": 1, "j": 0})),
            words((1, 0)),
            words((0, 1)),
            words((1, 0)),
            env[0].ctypes.data,
        )
        assert code == 0
        for number, begin, points in spans:
            assert (
                ROW(single.address)(
                    words(addresses(single, known, 1 + number, begin), ctypes.c_void_p),
                    steps,
                    points,
                    words((1 + number, begin)),
                    words((0, 1)),
                    env[1].ctypes.data,
                )
                == 0
            )
        for name in nest.arrays:
            np.testing.assert_array_equal(found[name], known[name])


def test_a_row_that_raises_is_told_by_its_place_among_the_spans():
    dtypes = {"A": np.dtype("f8"), "a": np.dtype("i4"), "S": np.dtype("f8")}
    A, a, S = np.ones((9, 20)), np.zeros(20, "i4"), np.ones(7)
    a[13] = 7
    kernel = compile_kernel(looked_up, dtypes, steps=[1] * len(looked_up.places), independent=True)
    arrays = {"A": A, "a": a, "S": S}
    spans = [(0, 2, 11), (3, 0, 13), (4, 5, 10), (5, 0, 20)]
    code = ROWS(kernel.rows_address)(
        words(addresses(kernel, arrays, 1, 0), ctypes.c_void_p),
        words(change(kernel, arrays, {"i": 0, "j": 1})),
        len(spans),
        words(sum(spans, ())),
        words(change(kernel, arrays, {"i": 1, "j": 0})),
        words((1, 0)),
        words((0, 1)),
        words((1, 0)),
        kernel.pack({}, {"S": S}).ctypes.data,
    )
    assert code >> 32 == 2 and (code & 0xFFFFFFFF) // 4096 == 8
    assert kernel.sites[code%4096-1][0] == "IndexError"
    assert (A[5, 5:13] == 3).all() and (A[5, 13:] == 1).all() and (A[6] == 1).all()


@tw.nest
def heat(U, t, i, j, k):
    U[t+1, i, j, k] = U[t, i, j, k] + 0.1 * (U[t, i-1, j, k] + U[t, i+1, j, k] + U[t, i, j-1, k] + U[t, i, j+1, k])


@tw.nest
def wave(U, C, t, i, j, k):
    U[t+1, i, j, k] = 2 * U[t, i, j, k] - U[t-1, i, j, k] + C[i, j, k] * (U[t, i-1, j, k] + U[t, i, j+1, k])


@tw.nest
def not_in_time(A, B, i, j, k):
    A[i, j, k] = B[i-1, j, k] + B[i, j, k] + B[i, j+1, k] + A[i-1, j, k]


@pytest.mark.parametrize("nest, asked", [(heat, 2), (wave, 4), (not_in_time, 2)], ids=lambda value: str(value))
def test_memory_is_asked_for_ahead_once_for_each_array_and_time_step(nest, asked):
    kernel = compile_kernel(nest, dict.fromkeys(nest.arrays, "f4"), steps=[1] * len(nest.places), independent=True)
    module = str(kernel._recipe.build().module)
    assert len(re.findall(r"call void @.?llvm\.prefetch", module)) == asked
