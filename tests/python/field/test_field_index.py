"""Subscripts of fields: which elements, and which of them a block has."""

import itertools
import random

import numpy as np
import pytest

from tilewave.errors import ConfigError
from tilewave.field.index import Selection, SubscriptError, pack, unpack


def even(extent, parts):
    return [slice(extent * k // parts, extent * (k + 1) // parts) for k in range(parts)]


def random_entry(pick, extent):
    if extent and pick.random() < 0.3:
        return pick.randrange(-extent, extent)
    bound = [None, *range(-extent - 3, extent + 4)]
    return slice(pick.choice(bound), pick.choice(bound), pick.choice([None, 1, 2, 3, 7, -1, -2, -5, 100, -100]))


@pytest.mark.parametrize("seed", range(6))
def test_blocks_give_what_numpy_gives(seed):
    pick = random.Random(seed)
    for _ in range(150):
        shape = tuple(pick.choice((0, 1, 2, 5, 9)) for _ in range(pick.randint(1, 4)))
        whole = np.arange(np.prod(shape), dtype="i4").reshape(shape)
        given = tuple(random_entry(pick, extent) for extent in shape)[: pick.randint(0, len(shape))]
        if pick.random() < 0.3:
            at = pick.randint(0, len(given))
            given = (*given[:at], Ellipsis, *given[at:])
        given = given[0] if len(given) == 1 and pick.random() < 0.5 else given
        try:
            expected = whole[given]
        except IndexError:  # the Ellipsis moved an index to a shorter dimension
            with pytest.raises(IndexError):
                Selection(given, shape)
            continue
        selection = Selection(given, shape)
        assert selection.shape == np.shape(expected), (shape, given)
        blocks = list(itertools.product(*(even(extent, pick.randint(1, 4)) for extent in shape)))
        data = np.concatenate([pack(selection, block, whole[block]) for block in blocks])
        found = unpack(selection, np.empty(selection.counts, whole.dtype), data)
        assert np.array_equal(found, expected), (shape, given)
        # Writing through the blocks is writing to the whole.
        ours, theirs = whole.copy(), whole.copy()
        values = np.full(selection.counts, -7, "i4") - np.arange(np.prod(selection.counts)).reshape(selection.counts)
        for block in blocks:
            there, here = selection.inside(block)
            ours[block][here] = values[there]
        theirs[given] = values.reshape(selection.shape)
        assert np.array_equal(ours, theirs), (shape, given)


@pytest.mark.parametrize(
    "given,words",
    [
        (5, "index 5 is out of bounds for dimension 0 with extent 5"),
        ((0, -8), "index -8 is out of bounds for dimension 1 with extent 7"),
        ((0, 0, 0), "too many indices: 3 were given"),
        ((Ellipsis, 0, Ellipsis), "two Ellipsis"),
        (1.0, "float was given for dimension 0"),
        ((0, None), "NoneType was given for dimension 1"),
        (True, "bool"),
        (np.True_, "allowed: an integer"),
        ([0, 1], "list"),
        (np.array([0, 1]), "ndarray"),
        (slice(0, 3, 0), "slice step cannot be zero"),
        (slice("a", None), "dimension 0"),
        ("x", "str"),
    ],
)
def test_what_is_no_subscript(given, words):
    with pytest.raises(SubscriptError, match=words) as error:
        Selection(given, (5, 7))
    assert isinstance(error.value, IndexError) and isinstance(error.value, ConfigError)


def test_equal_subscripts_have_equal_keys():
    shape = (6, 7)
    assert Selection((1, slice(2, 4)), shape).key == Selection((np.int8(-5), slice(-5, 4)), shape).key
    assert Selection((1, slice(2, 4)), shape).key != Selection((slice(1, 2), slice(2, 4)), shape).key
    assert Selection((), shape).key == Selection(Ellipsis, shape).key == Selection(np.s_[:, :], shape).key
