"""Elements of fields by global index, over ranks as threads: reading, setting, filling, copies, and what is refused."""

import random
import re

import numpy as np
import pytest

import tilewave as tw
from local_ranks import results_of
from tilewave.field.index import SubscriptError


def subscript(pick, shape):
    """A random subscript of NumPy's basic indexing."""

    def entry(extent):
        if extent and pick.random() < 0.4:
            return pick.choice((int, np.int8))(pick.randrange(-extent, extent))
        ends = [None, *range(-extent - 2, extent + 3)]
        return slice(pick.choice(ends), pick.choice(ends), pick.choice([None, 1, 2, 3, -1, -2]))

    entries = [entry(extent) for extent in shape[: pick.randrange(len(shape) + 1)]]
    if pick.random() < 0.3:
        entries.insert(pick.randrange(len(entries) + 1), ...)
        entries = [  # behind the dots stand the last dimensions
            e if e is ... or k < entries.index(...) else entry(shape[k - len(entries)]) for k, e in enumerate(entries)
        ]
    return entries[0] if len(entries) == 1 and pick.random() < 0.5 else tuple(entries)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_reading_and_setting_are_numpys(ranks, seed):

    def body(context):
        pick, rng = random.Random(seed), np.random.default_rng(seed)
        for shape in ((7,), (4, 5), (2, 3, 4), (1, 0, 3)):
            whole = rng.integers(-99, 99, shape).astype("f4")
            field = tw.field(whole, context=context)
            for _ in range(12):
                at = subscript(pick, shape)
                found = field[at]
                assert found.dtype == whole.dtype and np.array_equal(found, whole[at]), (seed, at)
                assert np.shape(found) == np.shape(whole[at]) and isinstance(found, type(whole[at])), (seed, at)
                part = np.shape(whole[at])
                keep = pick.randrange(len(part) + 1)
                value = rng.integers(-99, 99, [1 if pick.random() < 0.3 else n for n in part[keep:]])
                field[at] = value
                whole[at] = value
            last = field.gather()
            assert last is None or np.array_equal(last, whole), seed

    results_of(ranks, 1, body)


@pytest.mark.parametrize(
    "value, words",
    [
        ([1, 2], "a value of shape (2,) was given for elements of shape (6,); they must be equal, or broadcast to it"),
        (np.ones((2, 6)), "a value of shape (2, 6) was given"),
        ("x", "str of shape () was given for float64: could not convert"),
        (1j, "complex of shape () was given for float64"),
        (10**400, "int of shape () was given for float64: int too large"),
        ({}, "dict of shape () was given for float64"),
    ],
)
def test_values_that_do_not_fit_change_nothing(value, words):
    field = tw.field((5, 6), init=3.0)
    with pytest.raises(tw.ConfigError, match=re.escape(words)) as caught:
        field[0] = value
    assert not isinstance(caught.value, IndexError) and (field.gather() == 3).all()


def test_a_field_is_no_value():
    field = tw.field((5,))
    with pytest.raises(tw.ConfigError, match=r"a field was given as the value; .*other.copy\(\) makes another"):
        field.fill(tw.field((5,)))


@pytest.mark.parametrize("at", [5, -6, (0, 6), (0, 0, 0), None, True, 1.0, [1], slice(None, None, 0), (..., ...)])
def test_wrong_subscripts_are_index_errors_on_every_rank(at):
    def body(context):
        field = tw.field((5, 6), context=context)
        for call in (lambda: field[at], lambda: field.__setitem__(at, 1)):
            with pytest.raises(SubscriptError, match="subscript: ") as caught:
                call()
            assert isinstance(caught.value, IndexError) and caught.value.agreed

    results_of(2, 1, body)


def test_ranks_that_ask_for_different_elements_or_set_different_values():
    def body(context):
        field = tw.field((5, 6), context=context)
        with pytest.raises(tw.ConfigError, match="different arguments"):
            field[context.rank]
        with pytest.raises(tw.ConfigError, match="different arguments"):
            field[0] = context.rank
        with pytest.raises(tw.ConfigError, match="different arguments"):
            field.fill(context.rank)
        return field.gather()

    found = results_of(2, 1, body)
    assert not found[0].any()


@pytest.mark.parametrize(
    "value, words",
    [
        (None, "fill: None was given; allowed: a number, or a function of the indices"),
        ([1], "fill: an array of shape (1,) was given"),
        (np.ones((2, 3)), "fill: an array of shape (2, 3) was given; allowed: a number"),
        ("x", "str of shape () was given for float64"),
        (lambda i, j: None, "fill: the function raised TypeError: it returned None at (0, 0); allowed: a number"),
        (lambda i: 1, "fill: the function raised TypeError"),
    ],
)
def test_fill_refuses_and_leaves_the_field(value, words):
    field = tw.field((2, 3), init=5)
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        field.fill(value)
    assert (field.gather() == 5).all()


def test_fill_sets_the_current_time_step_only():
    field = tw.field((2, 3), "i4", init=1, history=1)
    field.fill(np.float64(4))
    assert (field.gather() == 4).all() and (field.buffer(-1).gather() == 1).all()
    field.fill(lambda i, j: 10 * i + j)
    assert field.gather().tolist() == [[0, 1, 2], [10, 11, 12]]


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_copy_shares_nothing(ranks):
    def body(context):
        field = tw.field((5, 4), init=lambda i, j: i - j, history=[9], context=context)
        other = field.copy()
        field.local[...] = 7
        field.buffer(-1).local[...] = 8
        assert other.owned == field.owned and other.history == 1
        return other.gather(), other.buffer(-1).gather()

    found = results_of(ranks, 1, body)
    assert np.array_equal(found[0][0], np.subtract.outer(np.arange(5), np.arange(4))) and (found[0][1] == 9).all()


def test_python_and_numpy_are_told_what_a_field_is_not():
    field = tw.field((5, 4))
    assert len(field) == 5
    for call, words in (
        (lambda: bool(field), "truth value of a field"),
        (lambda: list(field), "cannot be iterated over"),
        (lambda: np.asarray(field), "is no NumPy array"),
        (lambda: np.sort(field), "is no NumPy array"),
        (lambda: np.add.at(field, 0, 1), "is no NumPy array"),
    ):
        with pytest.raises(TypeError, match=words):
            call()


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_blocks_begin_where_their_definition_says(ranks, seed):
    """shift + ceil(scale * p / per), with p the begin of an even block; what lies outside is the first's and last's."""

    even = lambda points, c: c * (points // ranks) + min(c, points % ranks)

    def wanted(extent, points, scale, per, shift, every):
        """First and end of each block: the first of so many blocks has what all of them would have; what lies before
        and behind the points is of the first and the last block that have some."""
        begins = [shift - (-scale * even(points, c) // per) for c in range(ranks + 1)]
        blocks = [(begins[c], begins[min(c + every, ranks)]) if c % every == 0 else (0, 0) for c in range(ranks)]
        some = [c for c, (low, high) in enumerate(blocks) if low < high]
        blocks[some[-1]] = blocks[some[-1]][0], max(extent, blocks[some[-1]][1])
        blocks[some[0]] = 0, blocks[some[0]][1]
        return [range(low, max(low, min(high, extent))) for low, high in blocks]

    pick, cases = random.Random(seed), []
    for _ in range(12):
        points, scale, per = pick.randrange(1, 40), pick.randrange(1, 4), pick.randrange(1, 4)
        shift, every = pick.randrange(3), pick.choice([1, 1, 2, ranks, 2 * ranks])
        extent = max(1, shift - (-scale * points // per) + pick.randrange(-2, 4))
        cases.append((extent, points, scale, per, shift, every))

    @tw.nest
    def count(A, i):
        A[i] = A[i] + 1.0

    def body(context):
        found = []
        for extent, *blocks in cases:
            field = tw.field((extent,), blocks=tw.Blocks(*blocks), context=context)
            tw.run(count, A=field, context=context, plan={"grid": (ranks,)})
            (owned,), whole = field.owned, field.gather()
            found.append(((owned.start, owned.stop), whole is None or (whole == 1).all()))
        return found

    found = results_of(ranks, 1, body)
    for number, case in enumerate(cases):
        assert all(counted_once for _, counted_once in (each[number] for each in found)), (seed, case)
        blocks = wanted(*case)
        if all(block.start < case[0] for block in blocks if block):  # none lies beyond the elements
            assert [range(*each[number][0]) for each in found] == blocks, (seed, case)


@pytest.mark.parametrize(
    "blocks, words",
    [
        (3, "blocks: given int; allowed: a tilewave.Blocks"),
        (tw.Blocks((3, 3)), "points=(3, 3) was given for 1 dimension"),
        (tw.Blocks(-1), "points=-1 was given for 1 dimension; allowed: an integer from 0 to"),
        (tw.Blocks(3.0), "points=3.0 was given"),
        (tw.Blocks(3, scale=0), "scale=0 was given for 1 dimension; allowed: an integer from 1 to 1048576"),
        (tw.Blocks(3, per=True), "per=True was given"),
        (tw.Blocks(3, shift=(0, 1)), "shift=(0, 1) was given"),
        (tw.Blocks(3, every=2**31 + 1), "every=2147483649 was given"),
        (tw.Blocks("9"), "points='9' was given"),
    ],
)
def test_blocks_that_are_none(blocks, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        tw.field((8,), blocks=blocks)
