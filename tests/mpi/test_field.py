"""Distributed arrays: ways to fill them, what each rank holds, gathering; ranks that give different values."""

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
    zero = tw.field(shape, "i8").gather()
    everywhere = tw.field(shape, "i8", init=whole).gather()
    only_zero = tw.field(shape, "i8", init=whole if context.rank == 0 else None).gather()
    points = tw.field(shape, "i8", init=lambda *at: int(whole[at]) if at[0] >= 0 else None).gather()
    arrays = tw.field(shape, "i8", init=lambda *at: sum((k + 1) * a for k, a in enumerate(at))).gather()
    if context.rank:
        assert all(x is None for x in (zero, everywhere, only_zero, points, arrays))
        return
    assert (zero == 0).all() and zero.shape == shape
    for got in (everywhere, only_zero, points):
        assert np.array_equal(got, whole)
    index = np.indices(shape)
    assert np.array_equal(arrays, sum((k + 1) * a for k, a in enumerate(index)))


def test_local_is_a_view_of_the_owned_points(context):
    A = tw.field((6, 7), "f4", init=lambda i, j: 10.0 * i + j)
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
    A = tw.field(start.shape, init=start)
    for grid in ((context.size, 1), (1, context.size), (context.size, 1)):
        tw.run(shift, A=A, plan={"grid": grid})
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
            tw.field((20,), init=init)


def test_ranks_that_differ(context):
    if context.size == 1:
        return
    with pytest.raises(tw.ConfigError, match=r"different arguments.*Rank 0.*\(5,\).*Rank 1.*\(6,\)"):
        tw.field((5 + (context.rank == 1),))
    with pytest.raises(tw.ConfigError, match="init differs"):
        tw.field((5,), init=np.zeros(5) if context.rank == 1 else None)


SHAPE = (7, 5)


def array(changed, at=(0, 0)):
    values = np.arange(35.0).reshape(SHAPE)
    if changed:
        values[at] += 1
    return values


#: From whether this rank differs to the arguments of a call.
GIVEN = {
    "a number": lambda odd: {"init": 1.0 + odd},
    "zero and minus zero": lambda odd: {"init": -0.0 if odd else 0.0},
    "an array": lambda odd: {"init": array(odd)},
    "its last element": lambda odd: {"init": array(odd, (6, 4))},
    "an array in another order": lambda odd: {"init": np.asfortranarray(array(odd))},
    "a rolling window's number": lambda odd: {"init": 1.0 + odd, "keep": "window"},
    "a rolling window's array": lambda odd: {"init": array(odd), "keep": "window"},
    "an earlier time step": lambda odd: {"init": 1.0, "history": [array(odd)]},
}


@pytest.mark.ranks([2, 3])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("name", GIVEN)
def test_values_that_differ(name):
    given = GIVEN[name]
    tw.field(SHAPE, "f8", **given(False))
    for rank in range(tw.size):
        with pytest.raises(tw.ConfigError, match="init has other values|different arguments") as error:
            tw.field(SHAPE, "f8", **given(tw.rank == rank))
        assert error.value.agreed
        assert tw.sum(tw.field(array(False))) == 35 * 17


def test_what_is_equal_wherever_it_lies():
    mine = np.asfortranarray(array(False)) if tw.rank else array(False)
    assert tw.sum(tw.field(SHAPE, "f8", mine)) == 35 * 17
    assert tw.sum(tw.field(SHAPE, "f8", array(False) if tw.rank == 0 else None)) == 35 * 17
    assert tw.sum(tw.field(SHAPE, "f8", 1 if tw.rank else np.float32(1))) == 35
    assert tw.field((0, 3), "f8", np.ones((0, 3))).size == 0
