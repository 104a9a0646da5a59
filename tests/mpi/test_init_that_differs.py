"""What every rank gives as a field's first values must be equal: else ranks would make one array of several."""

import numpy as np
import pytest

import tilewave as tw

pytestmark = pytest.mark.ranks([2, 3])

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
