"""Functions that loops call with arrays, and subscripts behind each other."""

import math

import numpy as np
from test_loops import least_points, same, some  # noqa: F401

import tilewave as tw

RATE = 0.25


def neighbours(u, i, j):
    """Return the sum of neighbours."""
    left = u[i, j-1]
    return left + u[i, j+1] + u[i-1, j] + u[i+1, j]


def value_or(u, i, j, otherwise):
    if i < 0 or i >= u.shape[0]:
        return otherwise
    if j < 0 or j >= u.shape[1]:
        return otherwise
    return u[i, j]


def moved(u, v, i, j):
    change = neighbours(u, i, j) - 4 * u[i, j]
    v[i, j] = u[i, j] + RATE * change


def row_sum(A, i):
    total = 0.0
    for k in range(A.shape[1]):
        total += A[i, k]
    return total


@tw.loops
def scaled(u, i, factor):
    u[i] *= factor


def test_functions_of_arrays():
    def step(u, v, n):
        for t in range(n):
            for i in range(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    moved(u, v, i, j)
            u, v = v, u
        return u

    assert "lines" in same(step, some(9, 8), some(9, 8), 4).explain()

    def around(u, v):
        for i in range(u.shape[0]):
            for j in range(u.shape[1]):
                v[i, j] = value_or(u, i - 1, j, 0.5) + value_or(u, i, otherwise=1.5, j=j + 1)

    same(around, some(9, 8), some(9, 8))

    def sums(A, x, change):
        change = 2.0
        for i in range(len(x)):
            x[i] = row_sum(A, i)
            scaled(x, i, change)

    same(sums, some(9, 8), some(9), 1.0)


def test_subscripts_behind_each_other():
    def transposed(A, B, x):
        for i in range(len(A)):
            for j in range(len(A[0])):
                B[j][i] = A[i][j] * 2.0 + x[0]

    same(transposed, some(5, 6), some(6, 5), some(1))


def escape(x, y, most):
    a = b = 0.0
    for n in range(most):
        a, b = a * a - b * b + x, 2 * a * b + y
        if a * a + b * b > 4.0:
            return n
    return most


def distance(a, b, power=1.0):
    n = a.shape[0]
    total = 0.0
    for k in range(n):
        total += abs(a[k] - b[k]) ** power
    return total


def until(A, i, limit):
    if i < 2:
        return 0.0
    s = 0.0
    for k in range(i):
        if A[k] < 0.1:
            return s
        for j in range(3):
            if A[k] * j > limit:
                return s * 2
            s += A[k]
    if s > 3:
        return 3.0
    s += 1
    return s


def added(row, value):
    n, m = len(row), 1
    for k in range(n):
        row[k] += value * m


def above(A, i, limit):
    n, m = A.shape
    k = 0
    while k < m:
        if A[i % n, k] > limit:
            return k
        k += 1
    return -1.5


def test_functions_with_loops():
    def picture(out, xs, ys, most):
        for i in range(len(ys)):
            for j in range(len(xs)):
                out[i, j] = escape(xs[j], ys[i], most)

    same(picture, np.zeros((12, 13), int), 3 * some(13) - 2, 2 * some(12) - 1, 30)

    def sums(A, out):
        for i in range(len(A)):
            out[i] = until(A, i, 1.5) * 2 + until(A, i, 1.0)
            if until(A, i, 1.2) > 2:
                out[i] += 0.5

    same(sums, some(40), np.zeros(40))

    def types(A, out):
        found = 0
        for i in range(len(out)):
            found = above(A, i, out[i])
            out[i] = found + 1
        return found

    same(types, some(5, 6), some(7))
    same(types, some(5, 6), 1 + some(7))


def test_rows_as_arguments():
    def pairs(P, Q, D):
        for i in range(len(P)):
            for j in range(len(Q)):
                D[i, j] = distance(P[i], Q[j]) + distance(P[i - 1], Q[j - 1], power=2.0)

    same(pairs, some(12, 3), some(14, 3), np.zeros((12, 14)))

    def chosen(P, Q, out, which):
        for i in range(len(out)):
            out[i] = distance(P[which[i]], Q[i])
            added(Q[i], out[i])

    same(chosen, some(12, 3), some(9, 3), np.zeros(9), np.random.default_rng(2).integers(0, 12, 9))

    def of_lists(A):
        s = 0.0
        for i in range(len(A)):
            for k in range(2):
                s += A[i][k]
        return s

    same(of_lists, [[1.0, 2.0], [3.0, 4.0]])


def below(A, i):
    total = 0.0
    for k in range(i):
        total += A[k]
    return total


def twice_below(A, i):
    m = i + 1
    return below(A, m) * 2


def test_functions_with_loops_inside_expressions():
    def nested(A, out):
        m = 3
        for i in range(len(A) - 1):
            out[i] = math.sqrt(below(A, i) + 1) + twice_below(A, i) + m
            out[i] += max(below(A, i) * 2, twice_below(A, m))
            if below(A, i) > 0.5:
                out[i] += below(A, max(i - 1, 0))
            elif twice_below(A, i) > 0.9:
                out[i] = -1.0
        return m

    same(nested, np.arange(8.0) / 16, np.zeros(8))  # sums that are exact in any order
