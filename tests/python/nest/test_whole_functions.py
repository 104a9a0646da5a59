"""Functions with their loops under @tw.nest: the error says what the nest would be."""

import pytest

import tilewave as tw


def relax(u, f, *, w):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = (1 - w) * u[i, j] + w * 0.25 * (u[i-1, j] + u[i, j+1] + f[i, j])


def heat(u, t, n, c):
    """Its loop is Numba's, has two statements, and one stands before it."""
    n = n - 1
    for i in numba.prange(n):  # noqa: F821
        d = c * u[t, i]
        u[t+1, i] = u[t, i] + d


def total(C, A, i, *, n):
    s = 0.0
    for k in range(n):
        s += A[i, k]
    C[i] = s


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (relax, "def relax(u, f, i, j, *, w): u[i, j] = ..., without the for lines"),
        (heat, "def heat(u, t, i, *, c): u[t+1, i] = ..., without the for lines"),
        (total, "s = sum(x[k] for k in range(n))"),
    ],
)
def test_what_to_write(function, text):
    with pytest.raises(tw.ConfigError) as error:
        tw.nest(function)
    assert text in str(error.value)
