"""``return`` in loops, and loops in ``while``."""

import numpy as np
import pytest
from test_loops import least_points, same, some  # noqa: F401


def first_above(A, limit):
    for i in range(len(A)):
        for j in range(A.shape[1]):
            if A[i, j] > limit:
                return i, j, "found"
        if A[i, 0] < 0:
            return None
    return -1


def doubled(A, limit):
    turns = 0
    while True:
        for i in range(len(A)):
            A[i] *= 2
            if A[i] > limit:
                return turns, i
        turns += 1
        if turns > 40:
            return -1, -1


@pytest.mark.parametrize("limit", [0.5, 0.95, 2.0])
def test_return_leaves_the_function(limit):
    assert "compiled" in same(first_above, some(6, 7), limit).explain()
    same(first_above, some(6, 7) - 2, limit)
    assert "compiled" in same(doubled, some(5), 1000 * limit).explain()
    same(doubled, np.zeros(5), limit)


def test_loops_that_stay_python_are_listed():
    def grows(A, rates):
        for rate in rates:
            A[0] = f"{rate:.2f}"
            for i in range(1, len(A)):
                A[i] = A[i - 1] * 2
        left = len(rates)
        while left:
            left -= 1

    lines = same(grows, some(9), [0.5, 2.25]).explain().splitlines()[1:]
    first = grows.__code__.co_firstlineno + 1
    kinds = [f"line {first}: Python: ", f"lines {first + 2} to {first + 3}: ", f"line {first + 5}: Python: it has no "]
    found = [line for line in lines if line.startswith("line")]
    assert [line.startswith(kind) for line, kind in zip(found, kinds, strict=True)] == [True] * 3, lines


def test_return_past_an_else_stays_python():
    def found(A):
        for i in range(len(A)):
            if A[i] > 0.9:
                return i
        else:  # noqa: PLW0120
            return -5

    same(found, some(9))
    same(found, some(9) / 2)


def test_return_before_finally_stays_python():
    def before(A):
        seen = []
        for k in range(len(A)):
            try:
                if A[k] > 0.9:
                    return seen
            finally:
                seen = [k]
        return None

    same(before, some(9))

    def last(A, out):
        for k in range(3):
            with np.errstate(all="ignore"):
                for i in range(len(A)):
                    if A[i] > 0.9:
                        return out[0]
                    out[0] = A[i]
        return None

    same(last, some(9), np.zeros(1))


def test_loops_in_while_are_one_loop_where_they_are_small():
    def by_levels(start, ends, level, queue):
        head, tail = 0, 1
        while head < tail:
            u = queue[head]
            head += 1
            for e in range(start[u], start[u + 1]):
                v = ends[e]
                if level[v] < 0:
                    level[v] = level[u] + 1
                    queue[tail] = v
                    tail += 1
        return tail

    level = np.full(40, -1)
    level[0] = 0
    ends = np.random.default_rng(3).integers(0, 40, 120)
    ours = same(by_levels, np.arange(0, 123, 3), ends, level, np.zeros(41, int), twice=False)
    assert "has a while loop" in ours.explain()

    def nested(a, out):
        i = 0
        while i < len(a):
            j = 0
            while j < 5:
                out[i] += a[i] * j
                j += 1
            i += 1

    assert "has a while loop" in same(nested, some(30), np.zeros(30)).explain()


def test_large_loops_in_while_are_compiled_by_themselves(least_points):  # noqa: F811
    def relaxed(u, limit):
        change = 1.0
        while change > limit:
            change = 0.0
            for i in range(1, len(u) - 1):
                for j in range(1, len(u) - 1):
                    new = 0.5 * u[i, j] + 0.125 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1])
                    change = max(change, abs(new - u[i, j]))
                    u[i, j] = new
        return change

    whole = "has a while loop" in same(relaxed, some(9, 9), 0.1).explain()
    assert whole == (least_points == "in order")


def test_loops_that_only_read():
    def ends(xs):
        least, most = xs[0], xs[0]
        for x in xs:
            least, most = min(least, x), max(most, x)
        return least, most

    assert "compiled" in same(ends, some(30)).explain()
    same(ends, [3, 1, 2])

    def total(xs):
        s = 0
        for x in xs:
            s += x
        return s

    for given in (some(30).astype("f4"), np.arange(9), np.array([1, 255], "u1"), [3, 1], "", {}, some(4, 3)):
        same(total, given)


def test_values_that_are_made_for_a_loop():
    def filled(out, n):
        for i in np.arange(2, n, 2):
            out[i] = i * 0.5
        for k, x in enumerate(np.linspace(0, 1, len(out))):
            out[k] += x**2
        return i

    assert "compiled" in same(filled, np.zeros(9), 9).explain()
    same(filled, np.zeros(9), 2)


def test_types_of_values_that_are_used_often():
    """Of each name the type is found once: of twelve that are used twice by the next one it took seconds."""

    def leaky(x, y):
        z = 0.0
        for i in range(len(x)):
            o = x[i] + z
            y[i] = o
            z = o * 0.5
        return z

    same(leaky, some(50), np.zeros(50))

    def largest(x):
        s = 0.0
        for i in range(len(x)):
            a = x[i]
            b = a * a + a
            c = b * b + b
            d = c * c + c
            e = d * d + d
            f = e * e + e
            g = f * f + f
            h = g * g + g
            k = h * h + h
            m = k * k + k
            n = m * m + m
            o = n * n + n
            p = o * o + o
            q = p * p + p
            r = q * q + q
            s = max(s, r * 0.5)
        return s

    same(largest, some(50) / 9)
