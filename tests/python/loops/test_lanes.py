"""Loops whose turns need none of the others are divided among lanes: with the bits of Python's loops."""

import numpy as np
import pytest
from test_loops import same, some

import tilewave as tw
from tilewave.loops import lanes, region_run


@pytest.fixture(autouse=True)
def three_lanes(monkeypatch):
    """Three lanes, for loops that take no time, too."""
    monkeypatch.setattr(lanes, "LEAST_S", 0)
    monkeypatch.setattr(lanes, "LEAST_TURN_S", 0)
    monkeypatch.setattr(region_run, "usual_threads", lambda: 3)


def escapes(out, n):
    for i in range(n):
        for j in range(n):
            z, c = 0j, complex(3.0 * j / n - 2.2, 3.0 * i / n - 1.5)
            k = 0
            while abs(z) < 2 and k < 30:
                z = z * z + c
                k += 1
            out[i, j] = k


def nearest(x, c, where):
    for i in range(len(x)):
        best = np.inf
        for k in range(len(c)):
            d = abs(x[i] - c[k])
            if d < best:
                best = d
                where[i, 1] = k
        if best > 0.3:
            continue
        where[i, 0] += best


def of_every_other(x, y, n):
    """Strides, an offset, and names that are needed behind the loop."""
    last = -1.0
    for i in range(2, n, 3):
        last = x[i + 1]
        while last > 0.2:
            last *= 0.5
        y[2*i + 1] = last + y[2*i + 1]
    return last, i


@pytest.mark.parametrize(
    "function, arguments",
    [
        (escapes, [np.zeros((20, 20), "i4"), 20]),
        (nearest, [some(50), some(7, seed=2), np.zeros((50, 2))]),
        (of_every_other, [some(40), some(90, seed=2), 38]),
        (of_every_other, [some(40), some(90, seed=2), 3]),
    ],
)
def test_turns_on_lanes(function, arguments):
    found = same(function, *arguments)
    turns = len(range(2, arguments[2], 3)) if function is of_every_other else 20
    assert ("its turns on" in found.explain()) == (turns > 1)


def flat_product(a, b, c, n, m):
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i*n + k] * b[k*n + j]
            c[i*m + j] = s


def pixels(a, out, w, h):
    for y in range(1, h):
        for x in range(w):
            for c in range(3):
                v = a[(y*w + x)*3 + c]
                while v > 0.1:
                    v *= 0.5
                out[(y*w + x)*3 + c] += v


def pairs(a, out, first, step):
    for i in range(first, len(a), step):
        v = a[i]
        while v > 0.1:
            v *= 0.5
        out[2*i + 1] = v
        out[2*i] = v + out[2*i + 1]


def from_above(a, out, n, back):
    for i in range(2, n):
        for j in range(n):
            v = a[j]
            while v > 0.1:
                v *= 0.5
            out[i*n + j] = out[(i - back)*n + j] + v


def by_name_that_changes(a, out, n, k):
    for i in range(n):
        k = 0
        while k < n:
            k += 1
        out[i*n + k] += a[i]


def triangle(a, out, n, m):
    for i in range(n):
        for j in range(i, m):
            v = a[j]
            while v > 0.1:
                v *= 0.5
            out[i*n + j - i] += v


@pytest.mark.parametrize(
    "function, arguments, on_lanes",
    [
        (flat_product, [some(81), some(81, seed=2), np.zeros(81), 9, 9], True),
        (flat_product, [some(81), some(81, seed=2), np.zeros(99), 9, 11], True),
        (flat_product, [some(81), some(81, seed=2), np.zeros(81), 9, 8], False),
        (flat_product, [some(81), some(81, seed=2), np.zeros(81), 9, 0], False),
        (pixels, [some(150), some(150, seed=2), 10, 5], True),
        (pairs, [some(30), some(60, seed=2), 0, 1], True),
        (pairs, [some(30), some(60, seed=2), 3, 4], True),
        (from_above, [some(8), some(64, seed=2), 8, 0], True),
        (from_above, [some(8), some(64, seed=2), 8, 1], False),
        (from_above, [some(8), some(64, seed=2), 8, 2], False),
        (by_name_that_changes, [some(8), some(80, seed=2), 8, 0], False),
        (triangle, [some(8), some(80, seed=2), 8, 8], False),
    ],
)
def test_flat_subscripts(function, arguments, on_lanes):
    """Each turn has a part of a flat array of its own, or it has not."""
    assert ("its turns on" in same(function, *arguments).explain()) == on_lanes


def attracted(x, v, n):
    """Time steps, whose loops are divided; names of one turn go from loop to loop."""
    for t in range(n):
        for i in range(len(x)):
            total, most = 0.0, 0.0
            for k in range(len(x)):
                d = x[k] - x[i]
                total += d / (1 + d * d)
                most = max(most, d)
            v[i] += 0.01 * total + most * t
        rest = v[0] * 0.5
        while rest > 0.1:
            rest *= 0.5
        for i in range(len(x)):
            x[i] += rest * v[i]
    return t, rest


def test_loops_in_turns_on_lanes():
    for n in (1, 2, 5):
        found = same(attracted, some(30), some(30, seed=2), n)
    assert "turns of loops in it on 3 lanes" in found.explain()


def carried(x, y, n):
    s = 0.0
    for i in range(n):
        while s > 1:
            s -= 1
        s += x[i]
        y[i] = s


def neighbours(x, y, n):
    for i in range(1, n):
        k = 0
        while k < 3:
            y[i] += y[i-1] * x[k]
            k += 1


def from_the_end(x, y, n):
    """Turn n - 1 and turn -1 have one element."""
    for i in range(-1, n):
        k = 0
        while k < 3:
            y[i] = y[i] * 0.5 + x[k] + i
            k += 1


def sometimes(x, y, n):
    last = -1.0
    for i in range(n):
        k = 0
        while k < 2:
            k += 1
        if x[i] > 0.5:
            last = x[i]
        y[i] = k
    return last


def until(x, y, n):
    for i in range(n):
        if x[i] > 0.9:
            break
        while y[i] < 3:
            y[i] += 1


def scattered(x, y, n):
    for i in range(n):
        k = int(x[i] * n)
        while y[k] < i:
            y[k] += 1 + x[i]


@pytest.mark.parametrize("function", [carried, neighbours, from_the_end, sometimes, until, scattered])
def test_turns_that_need_others(function):
    found = same(function, some(40), some(40, seed=2), 40)
    assert "its turns on" not in found.explain()


def test_arrays_in_one_memory():
    def shifted(x, y, n):
        for i in range(n):
            k = 0
            while k < 2:
                y[i] += x[i]
                k += 1

    def called(function):
        memory = some(41)
        function(memory[:-1], memory[1:], 40)
        return memory

    ours = tw.loops(shifted)
    np.testing.assert_array_equal(called(ours), called(shifted))
    assert "its turns on" not in ours.explain()


def test_the_first_error_is_raised():
    @tw.loops
    def checked(x, y):
        for i in range(len(x)):
            y[i] = 1
            if x[i] > 0.5:
                raise ValueError("large")
            if x[i] > 0.4:
                raise OverflowError("near")

    x = np.zeros(500)
    x[77], x[300:] = 0.45, 1
    for _ in range(5):
        with pytest.raises(OverflowError, match="near"):
            checked(x, np.zeros(500))
