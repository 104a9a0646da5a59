"""Functions that loops call with arrays, and subscripts behind each other."""

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
