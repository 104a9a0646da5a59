"""Whole functions with loops on fields of several ranks, against themselves as plain Python."""

import numpy as np
import pytest
from polybench import KERNELS, arguments

import tilewave as tw


pytestmark = pytest.mark.mpi(ranks=[1, 3])


@pytest.mark.parametrize("name", ["gemm", "trisolv", "jacobi_2d", "fdtd_2d", "adi", "nussinov"])
def test_kernel(name):
    given = [tw.field(a) if isinstance(a, np.ndarray) else a for a in arguments(name, 9)]
    function = tw.loops(KERNELS[name])
    function(*given)
    plain = arguments(name, 9)
    KERNELS[name](*plain)
    for one, other in zip(given, plain, strict=True):
        if isinstance(one, tw.Field):
            whole = one.gather()
            assert whole is None or whole.tobytes() == other.tobytes()


def test_relaxation_until_it_is_small():
    @tw.loops
    def relax(u, w, tol):
        n, m = u.shape
        for sweep in range(200):
            largest = 0.0
            for i in range(1, n - 1):
                for j in range(1, m - 1):
                    d = 0.25 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1]) - u[i, j]
                    u[i, j] += w * d
                    largest = max(largest, abs(d))
            if largest < tol:
                break
        return sweep, largest

    first = np.random.default_rng(1).random((20, 30))
    u, plain = tw.field(first), first.copy()
    assert repr(relax(u, 1.5, 1e-2)) == repr(relax.function(plain, 1.5, 1e-2))
    whole = u.gather()
    assert whole is None or whole.tobytes() == plain.tobytes()
    assert "a nest" in relax.explain() or tw.size == 1


def test_errors_are_those_of_all_ranks():
    @tw.loops
    def outside(u, n):
        for i in range(n):
            u[i+1] = i

    u = tw.field((8,))
    with pytest.raises(IndexError):
        outside(u, 9)
    assert tw.sum(u) == 0  # nothing has run
