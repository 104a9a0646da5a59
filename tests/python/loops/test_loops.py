"""Whole functions with their loops: each against itself as plain Python."""

import math
import re
import signal

import numpy as np
import pytest

import tilewave as tw
from tilewave.loops import plan

COEFFICIENT = 0.25


@pytest.fixture(params=["nests", "in order"], autouse=True)
def least_points(request, monkeypatch):
    """Small loops as nests, and in order."""
    points = 0 if request.param == "nests" else 10**12
    monkeypatch.setattr(plan, "LEAST_POINTS", points)
    monkeypatch.setattr(plan, "LEAST_POINTS_OF_TURNS", points)
    return request.param


def called(function, arguments):
    try:
        return repr(function(*arguments))
    except Exception as error:
        return type(error)


def same(function, *arguments, twice=True):
    """Check results and arrays of a decorated function against those of itself; returns it."""
    ours = tw.loops(function)
    plain, given = ([a.copy() if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2))
    for _ in range(1 + twice):
        with np.errstate(all="ignore"):
            wanted = called(function, plain)
        assert called(ours, given) == wanted
        for one, other in zip(given, plain, strict=True):
            if isinstance(one, np.ndarray) and wanted is not IndexError:
                assert one.tobytes() == other.tobytes()
    return ours


def some(*shape, seed=1):
    return np.random.default_rng(seed).random(shape)


def limited(x, most=0.8):
    return min(x, most)


def test_relaxation_until_it_is_small():
    def relax(u, f, w, tol):
        "Relax."
        n, m = u.shape
        for sweep in range(300):
            largest = 0.0
            for i in range(1, n - 1):
                for j in range(1, m - 1):
                    d = COEFFICIENT * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] - f[i, j]) - u[i, j]
                    u[i, j] += w * limited(d)
                    largest = max(largest, abs(d))
            if largest < tol:
                break
        return sweep, largest

    same(relax, some(12, 17), some(12, 17), 1.1, 1e-2)
    with_nan = some(12, 17)
    with_nan[3, 4] = np.nan
    same(relax, with_nan, some(12, 17), 1.1, 1e-2)


def test_reductions():
    def numbers(x, largest, least):
        count, found = 0, False
        for i in range(len(x)):
            y = abs(x[i]) + 0.0
            largest = max(largest, y)
            if x[i] < least:
                least = x[i]
            if y > 0.5:
                count += 2
                found = True
        return largest, least, count, found

    for first, last in ((0.0, 0.0), (-1.0, 1.0), (math.inf, -math.inf), (2, 0), (np.nan, 0.0)):
        same(numbers, some(40) - 0.5, first, last)
        same(numbers, np.array([0.0, -0.0, np.nan, 0.25]), first, last)
    same(numbers, some(0), 0.0, 0.0)


@pytest.mark.parametrize("order", ["exact", "loops"])
def test_sums(order, least_points):
    def total(A, x):
        s = 0
        for i in range(A.shape[0]):
            for j in range(A.shape[1]):
                s += A[i, j] * x[j]
        return s

    ours, exact = tw.loops(total, order=order), order == "exact" and least_points == "nests"
    A, x = some(30, 20) - 0.5, some(20)
    A[3, 4], A[7, 1] = 1e17, -1e17
    found = ours(A, x)
    assert found == (math.fsum((A * x).ravel()) if exact else total(A, x)) and type(found) is np.float64
    assert exact == (": a nest" in ours.explain())
    for given in ((A.astype("f4"), x.astype("f4")), (A[:0], x), (np.arange(600).reshape(30, 20), np.arange(20))):
        assert repr(ours(*given)) == repr(total(*given))


def test_sums_of_some_points():
    def some_of(x, least):
        s, d, k = 0.0, 1, 0
        for i in range(len(x)):
            if x[i] > least:
                s += x[i]
            d -= x[i]
            k = k + 1
        return s, d, k

    for least in (0.5, 2.0):
        same(some_of, np.round(some(40) * 64) / 64, least)


def test_orders_that_are_refused():
    with pytest.raises(tw.ConfigError, match="allowed: 'exact', 'loops'"):
        tw.loops(order="any")


def test_ranges_mean_what_they_say():
    def outside(u, n):
        for i in range(n):
            u[i+1] = u[i] + 1.0

    same(outside, some(10), 9)

    def from_the_end(u, n):
        for i in range(n):
            u[i] = u[i-1] + u[-1]

    same(from_the_end, some(10), 10)

    def bands(A, n):
        for i in range(n):
            for j in range(max(0, i - 2), min(n, i + 3)):
                A[i, j] += 1.5 * A[i, j-1] if j > 0 else 1.0

    same(bands, some(9, 9), 9)


@pytest.mark.parametrize(("first", "last", "step", "shift"), [
    (0, 8, 1, 0), (1, 8, 1, -1), (0, 8, 1, -1), (0, 7, 1, 1), (0, 8, 1, 1), (7, -1, -1, 0), (7, 0, -1, -1),
    (8, -1, -1, 0), (0, 8, 3, 1), (7, -1, -3, 0), (7, -1, -3, -2), (0, 20, 7, 0),
])
def test_accesses_at_the_ends(first, last, step, shift):
    def ends(A, B):
        for i in range(first, last, step):
            for j in range(i, max(i, 3)):
                B[i] = B[i] * 0.5 + A[i + shift] + A[j]

    same(ends, some(8), some(8), twice=False)


def test_steps_and_directions():
    def strides(A, B, step):
        n = len(A)
        for i in range(n - 2, 0, -1):
            A[i] = A[i+1] + B[i]
        for i in range(1, n, 3):
            A[i] = B[i] * 2.0
        for i in range(n - 1, -1, -4):
            B[i] = A[i] - 1.0
        for i in range(0, n, step):
            A[i] += 0.5
        return i

    same(strides, some(23), some(23), 2)
    same(strides, some(23), some(23), 0)


def test_names_that_nothing_assigns():
    def last(A, n):
        for i in range(n):
            if A[i] > 0.5:
                x = A[i]
        return x, i

    same(last, some(10), 10)
    same(last, np.zeros(10), 10)
    same(last, some(10), 0)


def test_carried_scalars_and_types():
    def carried(A, out):
        before, kind = 0, 1
        for i in range(len(A)):
            out[i] = before + kind
            before = A[i]
            kind = kind / 2 if i % 2 else kind
        return before, kind

    same(carried, some(9).astype("f4"), some(9))
    same(carried, np.arange(9), some(9))


def test_loops_inside_and_between():
    def mixed(A, B, y, t):
        n, m = A.shape
        for i in range(n):
            y[i] = 0.0
            for j in range(m):
                y[i] += A[i, j] * B[j, i]
            y[i] /= 2.0
        k = 0
        while k < 3:
            for i in range(n):
                for j in range(i + 1, m):
                    A[i, j] = A[i, j-1] + y[i]
            k += 1
        for step in range(t):
            for j in range(m):
                A[0, j] = y[step]
            for i in range(1, n):
                for j in range(m):
                    A[i, j] = A[i-1, j] * 0.5
        return k

    ours = same(mixed, some(8, 9), some(9, 8), some(8), 3)
    assert "in order" in ours.explain() or "nest" in ours.explain()


def test_indices_of_turns_before():
    def turns(A):
        for turn in range(3):
            for i in range(1, 5):
                for j in range(1, 8):
                    A[i-1, j+1] = 0.5 + 0.25 * A[i, j-1]
                for j in range(9):
                    A[i, j] = A[i-1, j] * 0.5
            k = turn
            if k > 100:
                break

    same(turns, some(5, 9))


def test_a_name_between_loops_of_one_turn():
    def between(A, B):
        for t in range(1):
            for i in range(1, 2):
                x = np.where(A[i] > 0.5, A[i], 1)
            for i in range(1, 3):
                B[i] = x + A[i]

    same(between, some(4), some(4))

    def unset(A, n):
        if n > 100:
            x = 1.0
        for i in range(n):
            A[i] = x

    same(unset, some(4), 4)
    same(unset, some(4), 0)


def test_control_flow():
    def walk(A, n):
        found = -1
        for i in range(n):
            if i == 2:
                continue
            j = i
            while j > 0 and A[j] < A[j-1]:
                A[j], A[j-1] = A[j-1], A[j]
                j -= 1
            if A[i] > 0.95:
                found = i
                break
        return found, j

    same(walk, some(30), 30)


def test_swapped_arrays(least_points):
    def swap(u, v, steps):
        for step in range(steps):
            for i in range(1, len(u) - 1):
                v[i] = u[i-1] + u[i+1]
            u, v = v, u
        return u

    for steps in (0, 1, 2, 5, 6):
        ours = same(swap, some(12), some(12), steps)
        assert (" times" in ours.explain()) == (least_points == "nests" and steps > 1)

    def wave(u, v, w, n, c):
        for step in range(n, 0, -1):
            for i in range(1, len(u) - 1):
                w[i] = 2 * v[i] - u[i] + c * (v[i-1] - 2 * v[i] + v[i+1])
            for i in range(1):
                w[0] = step * 0.1
            old = u
            u, v, w = v, w, old
        return u, v, w, step

    for steps in (1, 3, 7):
        same(wave, some(12), some(12), np.zeros(12), steps, 0.2)

    def smoothed(u, v, n, tol):
        for step in range(n):
            largest = 0.0
            for i in range(1, len(u) - 1):
                v[i] = u[i-1] + 0.4 * u[i+1]
                largest = max(largest, abs(v[i] - u[i]))
            if largest < tol:
                break
            u, v = v, u
        return step, largest

    same(smoothed, some(12), some(12), 30, 0.1)


def test_a_signal_ends_loops_in_order():
    def forever(x):
        k = 0
        while k >= 0:
            x[k % 3] += 1.0

    class Late(Exception):
        pass

    def late(number, frame):
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Late):
            tw.loops(forever)(np.zeros(3))
    finally:
        signal.signal(signal.SIGALRM, before)


def test_arrays_that_share_memory():
    def shift(a, b):
        for i in range(len(a)):
            a[i] = b[i] + 1.0

    x, y = some(20), some(20)
    shift(x[1:], x[:-1])
    tw.loops(shift)(y[1:], y[:-1])
    assert x.tobytes() == y.tobytes()


def test_elements_that_share_memory():
    def twice(a):
        for i in range(len(a) - 1):
            a[i] = a[i] + 1.0
            a[i+1] = a[i] * 0.5

    x, y = some(20), some(20)
    twice(np.lib.stride_tricks.as_strided(x, (9,), (0,)))
    tw.loops(twice)(np.lib.stride_tricks.as_strided(y, (9,), (0,)))
    assert x.tobytes() == y.tobytes()


def test_element_of_an_array_that_a_loop_writes():
    def turns(A, B, n):
        for t in range(n):
            for i in range(len(A)):
                A[i] = A[i] + B[0]
            for i in range(len(B)):
                B[i] = A[i] * 0.5

    same(turns, some(9), some(9), 4)


def test_exceptions_are_those_of_the_function():
    def checked(A, n):
        for i in range(n):
            if A[i] > 0.9:
                raise ValueError("large")
            A[i] += 1

    same(checked, some(40), 40, twice=False)

    def divided(A, n, zero):
        for i in range(n):
            A[i] = 1 / zero

    same(divided, some(4), 4, 0, twice=False)


def test_magnitudes_of_python_numbers():
    def escape(counts, most, scale):
        n, m = counts.shape
        for i in range(n):
            for j in range(m):
                c, z = complex(-2 + 3 * i / n, -1 + 2 * j / m) * scale, 0j
                for k in range(most):
                    if abs(z) > 2:
                        break
                    z = z * z + c
                counts[i, j] = k

    same(escape, np.zeros((9, 7), "i8"), 20, 1.0)
    same(escape, np.zeros((9, 7), "i8"), 20, np.nan)

    def large(x, z):
        for i in range(len(x)):
            x[i] = abs(z)

    for z in (1e308 + 1e308j, complex(np.inf, np.nan), complex(1, np.nan), -3 + 4j):
        same(large, np.zeros(3), z)


def test_lists_and_methods_stay_python():
    def lists(n):
        a = [[0] * n for _ in range(n)]
        for i in range(n):
            for j in range(n):
                a[i][j] = i * j
        words = {}
        for name in ("x", "y"):
            words[name] = len(name)
        return a, words

    same(lists, 4)

    class Grid:
        def __init__(self):
            self.u = some(9)

        @tw.loops
        def smooth(self, n):
            u = self.u
            for i in range(1, n):
                u[i] = 0.5 * (u[i] + u[i-1])
            return u.sum()

    one, other = Grid(), Grid()
    assert one.smooth(9) == Grid.smooth.function(other, 9)


def test_closures_defaults_and_new_constants():
    factor = 2.0

    def scaled(A, n=5, *, shift=1.0):
        for i in range(n):
            A[i] = A[i] * factor + shift

    ours = same(scaled, some(9))
    factor = 3.0
    one, other = some(9), some(9)
    scaled(one, shift=2.0)
    ours(other, shift=2.0)
    assert one.tobytes() == other.tobytes()


REFUSED = {
    "calling sorted": ("for i in range(n):\n        A[i] = sorted(x)", "calling sorted"),
    "a slice": ("for i in range(n):\n        A[i] = A[1:3].sum()", "not supported"),
    "attribute": ("for i in range(n):\n        x.u[i] = A[i]", "only a name can be subscripted"),
    "ranks": ("for i in range(n):\n        A[i] = A[i, 0]", "subscripts here"),
    "global": ("global total\n    for i in range(n):\n        total = A[i]\n        A[i] = 1", "which is global"),
    "print": ("for i in range(n):\n        A[i] = 1\n        print(i)", "print"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, tmp_path):
    lines, text = REFUSED[case]
    path = tmp_path / "refused.py"
    path.write_text(f"def refused(A, x, n):\n    {lines}\n")
    namespace = {"np": np}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    with pytest.raises(tw.ConfigError, match=text) as error:
        tw.loops(namespace["refused"])(some(9), 1, 9)
    assert re.search(r"refused\.py:\d+:\d+: `", str(error.value)) and "allowed" in str(error.value)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros(3, "f2"), "dtype float16"),
        (np.zeros((3, 3)), "a subscript for each dimension"),
        (np.zeros(3)[:0].reshape(0, 1, 1), "a subscript for each dimension"),
    ],
)
def test_arrays_that_are_refused(array, text):
    @tw.loops
    def ones(A):
        for i in range(3):
            A[i] = 1

    with pytest.raises(tw.ConfigError, match=text):
        ones(array)


def test_read_only_arrays():
    @tw.loops
    def ones(A):
        for i in range(3):
            A[i] = 1

    A = np.zeros(3)
    A.setflags(write=False)
    with pytest.raises(tw.ConfigError, match="read-only"):
        ones(A)


def test_nest_names_loops():
    def whole(A, n):
        for i in range(n):
            A[i] = 1

    with pytest.raises(tw.ConfigError, match=r"@tw\.loops"):
        tw.nest(whole)
