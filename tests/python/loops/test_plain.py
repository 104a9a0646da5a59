"""Forms of loops that mean ranges and elements: what they give is what Python gives."""

import itertools

import numpy as np
import pytest
from test_loops import least_points, same, some  # noqa: F401

import tilewave as tw


def rows(A, x):
    """Rows by names of their own, read and written."""
    for i in range(A.shape[0]):
        row = A[i]
        for j in range(A.shape[-1]):
            row[j] = row[j] * 2 + x[j]


def elements(A, x):
    """Elements one by one, with their numbers, and pairs."""
    for i, value in enumerate(x):
        A[i % 3, i] = value * i
    for value, other in zip(x, A):
        A[0, int(value)] += other[1]
    for value in x:
        A[1, 2] += A[0, int(value)]
    return value, i


def pairs(A, x):
    for i, j in np.ndindex(3, 5):
        if (i + j) % 3 == 0:
            continue
        A[i, j] -= x[j]
    for i, j in itertools.product(range(1, 3), range(1, 4)):
        A[i, j] = 0.5 * (A[i-1, j] + A[i, j-1])


def downwards(A, x):
    for j in reversed(range(1, len(x) - 1)):
        x[j] += 0.5 * x[j+1]
    return j


def continued(A, x):
    """Turns that end early, on several paths."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            if i == j:
                continue
            if A[i, j] > 0.5:
                A[i, j] = 0.5
                continue
            A[i, j] += 0.1 if i else 0.2
            A[i, j] *= 2


def extents(A, x):
    """Of arrays that have no elements in the loop."""
    count = 0
    for j in range(A.shape[1]):
        x[j] += A.size + A.ndim + len(A)
        for _ in range(A.shape[-2]):
            count += 1
    return count


def numbers(A, x):
    best = float("-inf")
    for j in range(len(x)):
        if j in (1, 3) or j not in [2, 4]:
            x[j] = float("nan") if j == 3 else x[j] + 1
        if x[j] > best:
            best = x[j]
    return best


def constants(A, x):
    """Neighbours one by one, and a name that is needed behind them."""
    for i in range(A.shape[0]):
        for j in range(1, A.shape[1] - 1):
            for di, dj in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                if i + di < 0 or i + di >= A.shape[0]:
                    continue
                x[j] += A[i + di, j + dj]
            for weight in [2, -0.5]:
                A[i, j] *= weight
            x[j] -= weight
            for dj in (1, -1):
                if A[i, j + dj] < A[i, j]:
                    x[j] += 0.25
                    break
                else:  # noqa: RET508
                    x[j] *= 1.5
                A[i, j] += 0.125


@pytest.mark.parametrize("function", [rows, elements, pairs, downwards, continued, extents, numbers, constants])
def test_forms_of_loops(function, least_points):  # noqa: F811
    found = same(function, some(3, 5), np.arange(5.0) % 3)
    assert "line" in found.explain().split("\n")[1]


def names_of_rows(A, x):
    """A row that is used before it has its name, and an index that has two loops."""
    total = 0.0
    for i in range(A.shape[0]):
        row = A[i]
        for i in range(A.shape[1]):
            row[i] += 1
            total += row[0]
    return total


def lists(A, x):
    """Lists of arrays, and elements that are no numbers, stay Python's."""
    several = [A[i].copy() for i in range(len(A))]
    for i in range(len(several)):
        row = several[i]
        for j in range(5):
            row[j] += j
    for row, each in zip(several, ["a", "bc", "def"]):
        A[0, 1] += len(each) + row[2]
    for row in A:
        x[0] += row[1]


def same_names(A, x):
    n = 2
    for i, j in np.ndindex(n, n):
        n = 1
        x[i] += A[i, j]
    for i, i in np.ndindex(2, 3):
        x[i] += 1
    return n


@pytest.mark.parametrize("function", [names_of_rows, lists, same_names])
def test_what_stays_as_it_is(function, least_points):  # noqa: F811
    same(function, some(3, 5), np.arange(5.0))


@tw.nest
def members(u, k, i):
    u[i] = float("inf") if k[i] in (1, 3) else -1.0


def test_members_and_texts_in_nests():
    u, k = np.zeros(5), np.arange(5)
    tw.run(members, u=u, k=k)
    np.testing.assert_array_equal(u, [-1, np.inf, -1, np.inf, -1])


def test_functions_of_arrays_are_refused_with_a_way():
    @tw.loops
    def whole(A, x):
        for i in range(3):
            x[i] = np.sum(A[i])

    with pytest.raises(tw.ConfigError, match=r"calling np\.sum is not supported; allowed: in place of a function of"):
        whole(some(3, 5), np.zeros(3))


def unpacked(A, x):
    """Rows that are unpacked, of an array with as many columns; the index of a row is a name of its own."""
    where = np.array([[0, 1], [2, 3], [1, 4], [2, 3]])
    total = 0.0
    for k in range(len(where)):
        i, j = where[k]
        A[i, j] += x[j] + k
    for i, j in where:
        if j == 1:
            continue
        total += A[i, j] * j
        x[i] += total
    return total, i, j


def unpacked_lists(A, x):
    for i, j in [(0, 1), (2, 3)]:
        A[i, j] += x[j]


@pytest.mark.parametrize("function", [unpacked, unpacked_lists])
def test_rows_that_are_unpacked(function, least_points):  # noqa: F811
    found = same(function, some(3, 5), np.arange(5.0))
    assert function is unpacked_lists or "line" in found.explain().split("\n")[1]


def test_rows_of_other_lengths_raise_what_python_raises():
    def pairs(A, where):
        for k in range(len(where)):
            i, j = where[k]
            A[i, j] = k

    same(pairs, some(3, 5), np.zeros((2, 3), int))


def test_generators_over_a_name_that_the_loop_has():
    def sums(A, x, n):
        for i in range(n):
            added = 0
            for q in range(n // 2, n):
                added += A[i, q]
            x[i] = sum(added * A[i - 1, q] + q for q in range(i, n) if q != 3)
        return q

    ours = same(sums, some(9, 9), np.zeros(9), 9)
    assert "Python" not in ours.explain()
