"""Distributed arrays: ways to fill them, what each rank holds, gathering."""

import numpy as np
import pytest

import tilewave as tw

pytestmark = pytest.mark.ranks([1, 2, 3, 4, 6])


@pytest.mark.ranks([1, 2, 3, 4, 6])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("shape", [(1,), (7,), (5, 3), (1, 9), (4, 5, 6), (2, 3, 1, 4), (0, 4)])
def test_init_and_gather(context, shape):
    rng = np.random.default_rng(7)
    whole = rng.integers(-99, 99, shape)
    zero = tw.field(shape, "i8", context=context).gather()
    everywhere = tw.field(shape, "i8", init=whole, context=context).gather()
    only_zero = tw.field(shape, "i8", init=whole if context.rank == 0 else None, context=context).gather()
    points = tw.field(shape, "i8", init=lambda *at: int(whole[at]) if at[0] >= 0 else None, context=context).gather()
    arrays = tw.field(
        shape, "i8", init=lambda *at: sum((k + 1) * a for k, a in enumerate(at)), context=context
    ).gather()
    if context.rank:
        assert all(x is None for x in (zero, everywhere, only_zero, points, arrays))
        return
    assert (zero == 0).all() and zero.shape == shape
    for got in (everywhere, only_zero, points):
        assert np.array_equal(got, whole)
    index = np.indices(shape)
    assert np.array_equal(arrays, sum((k + 1) * a for k, a in enumerate(index)))


def test_local_is_a_view_of_the_owned_points(context):
    A = tw.field((6, 7), "f4", init=lambda i, j: 10.0 * i + j, context=context)
    local = A.local
    rows, columns = A.owned
    expected = 10.0 * np.arange(6)[rows, None] + np.arange(7)[None, columns]
    assert np.array_equal(local, expected.astype("f4"))
    local[...] += 100
    whole = A.gather()
    assert whole is None or whole[0, 0] == 100 and whole[-1, -1] == 156


def test_blocks_move_with_the_plan_and_values_stay(context):
    @tw.nest
    def shift(A, i, j):
        A[i, j] = A[i, j-1] + 1.0

    start = np.random.default_rng(3).random((12, 9))
    A = tw.field(start.shape, init=start, context=context)
    for grid in ((context.size, 1), (1, context.size), (context.size, 1)):
        tw.run(shift, A=A, plan={"grid": grid}, context=context)
        shift.reference(shift.iteration_box(start.shape), {"A": start})
        whole = A.gather()
        assert whole is None or np.array_equal(whole, start), grid


def test_one_rank_alone_fails_on_all(context):
    for r in range(context.size):

        def init(i, r=r):
            if context.rank == r:
                raise OSError(f"no file on rank {r}")
            return 0 * i

        with pytest.raises(tw.ConfigError, match=f"no file on rank {r}"):
            tw.field((20,), init=init, context=context)


def test_ranks_that_differ(context):
    if context.size == 1:
        return
    with pytest.raises(tw.ConfigError, match=r"different arguments.*Rank 0.*\(5,\).*Rank 1.*\(6,\)"):
        tw.field((5 + (context.rank == 1),), context=context)
    with pytest.raises(tw.ConfigError, match="init differs"):
        tw.field((5,), init=np.zeros(5) if context.rank == 1 else None, context=context)
