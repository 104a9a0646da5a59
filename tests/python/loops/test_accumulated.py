"""Loops inside the body that only add to a name: sums of nests, and in order what no nest can have."""

import numpy as np
import pytest

import tilewave as tw
from tilewave.loops import plan


@pytest.fixture(params=["nests", "in order"], autouse=True)
def least_points(request, monkeypatch):
    """Small loops as nests, and in order."""
    monkeypatch.setattr(plan, "LEAST_POINTS", 0 if request.param == "nests" else 10**12)
    return request.param


def times_vector(A, x, y):
    for i in range(A.shape[0]):
        s = 0.0
        for k in range(A.shape[1]):
            s += A[i, k] * x[k]
        y[i] = s


def differences(A, x, y):
    for i in range(A.shape[0]):
        d, c = 0.0, 1
        q = 0.0
        for k in range(x.shape[0]):
            t = A[i, k] - x[k]
            r = abs(t)
            q += r * t
        y[i] = q + d + c


def below(A, x, y):
    for i in range(A.shape[0]):
        s = 0
        for j in range(i + 1):
            if A[i, j] > 0 and j != 3:
                s += A[i, j] * x[j]
        y[i] = s / (1 + i)


def behind(A, x, y):
    """The index and a name of a turn are needed behind the loop."""
    t = 2.0
    for i in range(A.shape[0]):
        s = 0.0
        for k in range(3):
            t = A[i, k]
            s += t
        y[i] = s + t + k


def before(A, x, y):
    """What the name has before counts."""
    for i in range(A.shape[0]):
        s = x[i % 3]
        for k in range(4):
            s += A[i, k]
        y[i] = s


def twice(A, x, y):
    for i in range(A.shape[0]):
        s = 0.0
        for k in range(A.shape[1]):
            s += A[i, k]
        for k in range(x.shape[0]):
            s += x[k]
        y[i] = s


def solved(A, x, y):
    """Each element needs those before."""
    for i in range(A.shape[0]):
        s = 0.0
        for j in range(i):
            s += A[i, j] * y[j]
        y[i] = (x[i % 3] - s) / (2 + abs(A[i, i]))


def needs_itself(A, x, y):
    for i in range(A.shape[0]):
        s = 0.0
        for k in range(5):
            s += 0.5 * s + A[i, k]
        y[i] = s


ALL = (times_vector, differences, below, behind, before, twice, solved, needs_itself)


@pytest.mark.parametrize("function", ALL, ids=lambda each: each.__name__)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i8", "u1"])
def test_sums_of_loops(function, dtype, seed):
    rng = np.random.default_rng(seed)
    for n, m in ((12, 12), (12, 9), (1, 12)):
        A = (10 * rng.standard_normal((n, 12)))[:, : max(m, n)].astype(dtype)
        x = (10 * rng.standard_normal(A.shape[1])).astype(dtype)
        plain, found = (np.full(n, 7.0, "f8" if dtype != "f4" else "f4") for _ in range(2))
        ours = tw.loops(function)
        with np.errstate(all="ignore"):
            function(A, x, plain)
        ours(A, x, found)
        numbers = plain == plain
        assert np.array_equal(found, plain, equal_nan=True), f"seed {seed}"
        assert np.array_equal(np.signbit(found[numbers]), np.signbit(plain[numbers])), f"seed {seed}"


@pytest.mark.parametrize("function", [times_vector, below])
def test_they_are_nests(function, least_points, seed):
    rng = np.random.default_rng(seed)
    ours = tw.loops(function)
    ours(rng.random((12, 12)), rng.random(12), np.zeros(12))
    assert ("a nest" in ours.explain()) == (least_points == "nests"), ours.explain()


def test_zeros_keep_their_signs():
    A, y = np.full((3, 4), -0.0), np.ones(3)
    tw.loops(times_vector)(A, np.ones(4), y)
    assert not np.signbit(y).any()
