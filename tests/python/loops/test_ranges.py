"""Ranges of loops: accesses outside, from the end, behind conditions on indices, around a period."""

import numpy as np
import pytest
from test_loops import least_points, same, some  # noqa: F401

import tilewave as tw


def nests_of(ours, request):
    """How many nests the last call had; where loops run in order, one more than enough."""
    return ours.explain().count(": a nest") if "nests" in request.node.name else 99


def test_conditions_on_indices(request):
    def edit(D, a, b):
        for i in range(D.shape[0]):
            for j in range(D.shape[1]):
                if i == 0 or j == 0:
                    D[i, j] = i + j
                elif a[i-1] == b[j-1]:
                    D[i, j] = D[i-1, j-1]
                else:
                    D[i, j] = 1 + min(D[i-1, j], D[i, j-1], D[i-1, j-1])

    letters = np.random.default_rng(3).integers(0, 3, 20)
    assert nests_of(same(edit, np.zeros((9, 12), "i8"), letters, letters[::-1].copy()), request) >= 2

    def summed(S, A, n, m):
        for i in range(n):
            for j in range(m):
                S[i, j] = A[i, j]
                if i > 0:
                    S[i, j] += S[i-1, j]
                if 0 < j:
                    S[i, j] += S[i, j-1]
                if i > 0 and j > 0:
                    S[i, j] -= S[i-1, j-1]

    assert nests_of(same(summed, np.zeros((9, 12)), some(9, 12), 9, 12), request) >= 2

    def chosen(u, v, n, k):
        for i in range(n - 1, -1, -1):
            if i == k:
                continue
            left = u[i-1] if i > 0 else 0.0
            right = u[i+1] if not i >= n - 1 else 1.0
            v[i] = left + right

    for k in (-3, 0, 4, 11, 20):
        assert nests_of(same(chosen, some(12), some(12), 12, k), request) >= 1


def test_around_a_period(request):
    def life(old, new):
        n, m = old.shape
        for i in range(n):
            for j in range(m):
                new[i, j] = old[(i - 1) % n, j] + old[(i + 1) % n, j] + old[i, j-1] + old[i, (j + 1) % m]

    for shape in ((9, 11), (1, 4), (2, 2), (3, 1)):
        ours = same(life, np.arange(np.prod(shape)).reshape(shape), np.zeros(shape, "i8"))
    ours = same(life, some(9, 11), some(9, 11))
    assert nests_of(ours, request) >= 1


def test_from_the_end(request):
    def ends(u, v, n):
        for i in range(n):
            v[i] = u[i-1] + u[-1] + u[-n]

    assert nests_of(same(ends, some(10), some(10), 10), request) >= 1

    def twice(A):
        total = 0.0
        for i in range(len(A) - 1, -2, -1):
            A[i] = i * 0.5
            total += A[i]
        return total

    same(twice, some(10))


def test_few_turns_are_written_out(request):
    weights = np.array([0.25, 0.5, 0.25])

    def smooth(u, v, w):
        n = len(u)
        for i in range(n):
            v[i] = 0.0
            for k in range(3):
                v[i] += w[k] * u[(i + k - 1) % n]

    assert nests_of(same(smooth, some(12), some(12), weights), request) >= 1


@pytest.mark.parametrize(("first", "last", "text"), [
    (0, 10, r"`u\[i \+ 1\]` at i = 9: index 10 is outside axis 0 of 'u', which has 10 elements"),
    (-12, 5, r"`u\[i\]` at i = -12: index -12 is outside"),
])
def test_outside_is_an_error_before_the_run(first, last, text):
    @tw.loops
    def shift(u, v):
        for i in range(first, last):
            v[0] = 1.0
            u[i] = u[i+1] + 1.0

    u, v = np.zeros(10), np.zeros(1)
    with pytest.raises(IndexError, match=text):
        shift(u, v)
    assert not u.any() and not v.any()


def test_outside_behind_a_condition():
    def guarded(u, v, n):
        for i in range(n):
            if u[i] > 0.5:
                v[i] = u[i+1]

    same(guarded, np.linspace(0.6, 0, 10), some(10), 10)
    same(guarded, some(10) + 1, some(10), 10, twice=False)

    def never(u, n):
        for i in range(n):
            for j in range(i):
                u[j+1] = u[i] + 1.0

    same(never, some(10), 10)
    same(never, some(10), 0)


def test_quotients_of_extents(request):
    def blurred(image, out, k):
        h, w = image.shape
        for i in range(k // 2, h - k // 2):
            for j in range(k // 2, w - k // 2):
                out[i, j] = image[i - k // 2, j] + image[i, j + k // 2] + image[h // 2, w % 5]
        for i in range(image.size // (h * 2)):
            out[0, i] = i * image[i // 2, 0]

    assert nests_of(same(blurred, some(11, 14), some(11, 14), 3), request) >= 1


def test_conditions_inside_loops_that_are_written_out(request):
    def life(board, new):
        n, m = board.shape
        for i in range(n):
            for j in range(m):
                total = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        if di == 0 and dj == 0:
                            continue
                        total += board[(i + di) % n, (j + dj) % m]
                new[i, j] = 1 if total == 3 or total == 2 and board[i, j] == 1 else 0

    board = np.random.default_rng(1).integers(0, 2, (12, 10))
    assert nests_of(same(life, board, np.zeros((12, 10), "i8")), request) >= 1


def test_a_name_that_several_parts_join(request):
    def spread(wet, dry):
        n, m = wet.shape
        sweeps, changed = 0, True
        while changed:
            changed, most = False, 0.0
            for i in range(n):
                for j in range(m):
                    near = (i > 0 and wet[i-1, j]) or (i < n - 1 and wet[i+1, j]) or (j > 0 and wet[i, j-1])
                    if near and not wet[i, j] and dry[i, j] < 0.7:
                        wet[i, j] = True
                        changed = True
                    most = max(most, dry[i, j] - (dry[i-1, j] if i > 0 else 0.0))
            sweeps += 1
        return sweeps, most

    def total(A):
        s, most = 0, 0.0
        for i in range(A.shape[0]):
            for j in range(A.shape[1]):
                x = A[i-1, j] + (A[i, j+1] if j < A.shape[1] - 1 else 0.5)
                s += x
                most = max(most, x)
        return s, most

    for shift in range(9):
        same(total, np.roll(np.arange(72.0), 8 * shift).reshape(9, 8))
    wet = np.zeros((9, 8), bool)
    wet[3, 2] = True
    same(spread, wet, some(9, 8))


def empty_before_outside(A, n):
    for i in range(n):
        A[i] = max(A[q] for q in range(i))


def quotient_before_outside(A, n):
    for i in range(n):
        A[i] = i % (n - 9)


@pytest.mark.parametrize(
    "function, error", [(empty_before_outside, ValueError), (quotient_before_outside, ZeroDivisionError)]
)
def test_what_python_raises_first(function, error):
    """An access that is outside does not come if something else is raised before it."""
    for each in (function, tw.loops(function)):
        with pytest.raises(error):
            each(np.ones(5), 9)
