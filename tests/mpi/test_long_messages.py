"""Messages longer than what one call of MPI counts, with calls that count little: 2 GiB take too long here."""

import numpy as np
import pytest

import tilewave as tw
from tilewave import _core
from tilewave import patterns
from tilewave.context.mpi_library import load_mpi

pytestmark = pytest.mark.ranks([2, 3])


@tw.nest
def sweep(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


@pytest.fixture(scope="module", params=[1000, 4096])
def context(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWAVE_WITHOUT", "shared")
        load_mpi()
        return tw.Context._of(_core.Context.mpi_in_pieces(1, request.param))


@pytest.mark.ranks([2, 3])
@pytest.mark.mpi(ranks=[2, 3])
def test_sweeps_and_gathers(context):
    n = 700
    start = np.random.default_rng(3).integers(0, 9, (n, n))
    expected = start.copy()
    for i in range(1, n):
        for j in range(1, 3):
            expected[i, j] = expected[i-1, j] + expected[i, j-1]
    for grid in ((context.size, 1), (1, context.size)):
        A = tw.field((n, n), "i8", init=start, context=context)
        tw.run(sweep, A=A, context=context, over={"j": (1, 3)}, plan={"grid": grid})
        whole = A.gather()
        assert whole is None or np.array_equal(whole, expected)


@pytest.mark.parametrize("count", [1, 999, 1000, 1001, 4096, 12345, 1 << 20])
def test_patterns_and_bytes_of_any_length(context, count):
    data = np.random.default_rng(count).integers(0, 99, (1, count)).astype("i4")
    mine = data.copy() if context.rank == 0 else np.zeros_like(data)
    patterns.broadcast(mine, context=context)
    assert np.array_equal(mine, data)
    assert context._core.broadcast(data.tobytes() if context.rank == 0 else b"") == data.tobytes()


@pytest.mark.long
def test_two_gibibytes(context):
    n = (1 << 31) + 12345
    if context.size > 2:
        pytest.skip("takes too much memory")
    plain = tw.Context(threads=1)
    given = np.zeros(n, "u1")
    given[[0, n // 2, n - 1]] = 1, 2, 3
    mine = given if plain.rank == 0 else np.zeros_like(given)
    patterns.broadcast(mine.reshape(1, n), context=plain)
    assert [mine[0], mine[n//2], mine[n-1]] == [1, 2, 3]
