"""Loops that are nests in another order, or with copies; and some like them that are not."""

import math

import numpy as np
import pytest

import tilewave as tw
from tilewave.loops import plan

NESTS, IN_ORDER = {}, {}


def nests(function):
    NESTS[function.__name__] = function
    return function


def in_order(function):
    IN_ORDER[function.__name__] = function
    return function


@pytest.fixture(autouse=True)
def least_points(monkeypatch):
    monkeypatch.setattr(plan, "LEAST_POINTS", 0)
    monkeypatch.setattr(plan, "LEAST_POINTS_OF_TURNS", 0)


@nests
def elimination_by_columns(A, B, x, n):
    for j in range(n):
        for i in range(j + 1):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]
        for i in range(j + 1, n):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]


@nests
def elimination_with_names(A, B, x, n):
    for i in range(n):
        for j in range(i):
            w = A[i, j]
            for k in range(j):
                w -= A[i, k] * A[k, j]
            A[i, j] = w / A[j, j]
        for j in range(i, n):
            w = A[i, j]
            for k in range(i):
                w -= A[i, k] * A[k, j]
            A[i, j] = w


@nests
def mirrored(A, B, x, n):
    for i in range(n):
        for j in range(i, n):
            A[j, i] = 0.5 * A[i, j]


@nests
def before(A, B, x, n):
    for i in range(n):
        for j in range(n):
            for k in range(i + 1, n):
                A[i, j] += B[k, i] * A[k, j]


@nests
def diagonal(A, B, x, n):
    for i in range(n):
        A[i, i] = A[i, i] + B[i, i]


@nests
def carried_upwards(A, B, x, n):
    for i in range(n):
        a = b = 0.25
        for j in range(2, n):
            A[i, j] = B[i, j] + 0.5 * a - 0.125 * b
            b = a
            a = A[i, j]


@nests
def carried_downwards(A, B, x, n):
    for j in range(n):
        a = 0.25
        c = 1.5
        for i in range(n - 1, -1, -1):
            A[i, j] = B[i, j] + 0.5 * a * c
            c = B[i, j]
            a = A[i, j]


@in_order
def an_array_for_each(A, B, x, n):
    for i in range(1, n):
        for p in range(n):
            x[p] = 0.0
            for s in range(n):
                x[p] += A[i, s] * B[s, p]
        for p in range(n):
            A[i, p] = x[p]


@in_order
def two_in_one_loop(A, B, x, n):
    for i in range(n):
        for j in range(n):
            t = 0.0
            for k in range(i):
                A[k, j] += B[i, j] * B[i, k]
                t += B[k, j] * B[i, k]
            A[i, j] = 0.5 * A[i, j] + t


@nests
def a_solution_for_each_column(A, B, x, n):
    for i in range(n):
        for j in range(n):
            for k in range(i):
                A[i, j] += B[k, i] * A[k, j]


@in_order
def one_update_is_too_early(A, B, x, n):  # k = j reads A[j, j] before its last update
    for i in range(n):
        for j in range(i):
            for k in range(j + 1):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]


@in_order
def columns_in_place_of_rows(A, B, x, n):
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = math.sqrt(abs(A[i, i]))


@in_order
def reads_what_is_mirrored(A, B, x, n):
    for i in range(n):
        for j in range(n):
            A[j, i] = 0.5 * A[i, j]


@in_order
def the_element_changes(A, B, x, n):
    for i in range(n):
        a = 0.25
        for j in range(n - 1):
            A[i, j + 1] = B[i, j] + 0.5 * a
            a = A[i, j]
            A[i, j] = 1.5


@in_order
def a_name_is_read_before(A, B, x, n):
    for i in range(n):
        a = 3.5
        x[i] = a
        a = 0.25
        for j in range(n):
            A[i, j] = B[i, j] + 0.5 * a
            a = 0.5 * a + A[i, j]


@nests
def a_name_has_two_values(A, B, x, n):
    for i in range(n):
        a = 3.5
        x[i] = a
        a = 0.25
        for j in range(n):
            A[i, j] = B[i, j] + 0.5 * a
            a = A[i, j]


@in_order
def a_sum_goes_on(A, B, x, n):
    for i in range(n):
        a = 0.25
        for j in range(n):
            A[i, j] = B[i, j] + 0.5 * a
            a = 0.5 * a


@in_order
def the_array_has_more_elements(A, B, x, n):
    for i in range(n):
        for p in range(1, n):
            x[p] = 0.5 * A[i, p]
        for p in range(n):
            A[i, p] = x[p] + 1.0
        x[0] = A[i, 1]


@in_order
def the_element_is_read_meanwhile(A, B, x, n):
    for i in range(1, n):
        w = A[i, i]
        for k in range(n):
            w -= A[i, k] * B[k, i]
        A[i, i] = w


def arguments(n=9):
    random = np.random.default_rng(3)
    return random.random((n, n)) + 2 * n * np.eye(n), random.random((n, n)), random.random(n), n


def results(function):
    given = arguments()
    function(*given)
    return [each.tobytes() for each in given[:3]]


@pytest.mark.parametrize("name", NESTS)
def test_nests(name):
    function = tw.loops(NESTS[name])
    assert results(function) == results(NESTS[name])
    assert ": a nest" in function.explain() and "in order" not in function.explain()


@pytest.mark.parametrize("name", IN_ORDER)
def test_in_order(name):
    function = tw.loops(IN_ORDER[name])
    assert results(function) == results(IN_ORDER[name])
    assert "in order" in function.explain() or "its turns on" in function.explain()


def test_arrays_that_share_memory():
    """Copies are not taken where a store may change another array."""
    given, plain = arguments(), arguments()
    function = tw.loops(two_in_one_loop)
    function(given[0], given[0], *given[2:])
    two_in_one_loop(plain[0], plain[0], *plain[2:])
    assert given[0].tobytes() == plain[0].tobytes() and "arrays share memory" in function.explain()


def test_other_types():
    """Types of which the values of names could differ from those of elements stay in order."""
    A, B, x, n = arguments()
    given, plain = A.astype("f4"), A.astype("f4")
    tw.loops(elimination_with_names)(given, B, x, n)
    elimination_with_names(plain, B, x, n)
    assert given.tobytes() == plain.tobytes()


def test_an_argument_that_is_an_index_in_the_turn_before():
    def turned(A, V, s, size):
        n = A.shape[0]
        for turn in range(3):
            for i in range(1, n):
                for k in range(n):
                    A[i, k] = min(s, A[i-1, k])
            for p in range(n):
                V[p] = turn
                for s in range(size):
                    V[p] += 0.5 * s

    for size in (0, 2, 40):  # no turn, turns that are written out, and a loop
        arrays = np.random.default_rng(7).uniform(2, 9, (12, 12)), np.zeros(12)
        expected = [array.copy() for array in arrays]
        tw.loops(turned)(*arrays, 0, size)
        turned(*expected, 0, size)
        for array, same in zip(arrays, expected, strict=True):
            assert np.array_equal(array, same)
