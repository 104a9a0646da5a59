"""Making fields: shapes, dtypes, first values and earlier time steps, and what is refused."""

import re

import numpy as np
import pytest

import tilewave as tw
from local_ranks import results_of
from tilewave.dtypes import ALL
from tilewave.field.values import values_at


@pytest.mark.parametrize(
    "shape, found",
    [
        ((3,), (3,)),
        ([2, 3], (2, 3)),
        (np.array([2, 3, 4]), None),  # an array gives its values, see below
        ((np.int8(2), np.uint64(5)), (2, 5)),
        ((n for n in (2, 3)), (2, 3)),
        (range(1, 5), (1, 2, 3, 4)),
        ((0, 7), (0, 7)),
    ],
)
def test_shapes_are_whole_numbers(shape, found):
    made = tw.field(shape)
    assert made.shape == (found or (3,)) and all(type(n) is int for n in made.shape)
    assert made.ndim == len(made.shape) and made.size == np.prod(made.shape)


@pytest.mark.parametrize(
    "shape, words",
    [
        (5, "shape 5 was given; allowed: one to six integers"),
        (None, "shape None was given; allowed: one to six integers"),
        ("34", "shape '34' was given"),
        (b"34", "shape b'34' was given"),
        (("3",), "shape ('3',) was given"),
        ((True, 2), "shape (True, 2) was given"),
        ((np.True_,), "was given; allowed: one to six integers"),
        ({3: 1}, "shape {3: 1} was given"),
        ((2.5,), "allowed: one to six integers, or an array, as numpy.asarray(x)"),
        ([3.0, 4.0], "shape [3.0, 4.0] was given; allowed: one to six integers, or an array, as numpy.asarray(x)"),
        ({3, 4}, "allowed: one to six integers"),
        ((float("nan"),), "allowed: one to six integers"),
        ((float("inf"),), "allowed: one to six integers"),
        ((1j,), "allowed: one to six integers"),
        ((), "shape () was given; allowed: one to six extents >= 0"),
        ((1,) * 7, "allowed: one to six extents >= 0"),
        ((4, -1), "shape (4, -1) was given; allowed: one to six extents >= 0"),
        ((2**63 - 1,), "bytes; allowed: at most 2**60"),
        ((2**40, 2**40), "bytes; allowed: at most 2**60"),
    ],
)
def test_other_shapes_are_refused(shape, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        tw.field(shape)


class Series:
    """A column of a table, as pandas and polars have it."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values)

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)


def test_what_numpy_takes_for_an_array_is_one():
    u = tw.field(Series([3.0, 4.0]))
    assert u.shape == (2,) and u.dtype == "f8" and u[...].tolist() == [3, 4]
    assert tw.field(Series([3, 4]), "f4")[...].tolist() == [3, 4]
    assert tw.field((2,), init=Series([3, 4]))[...].tolist() == [3, 4]
    assert tw.linalg.matrix(Series([[3.0, 4.0]])).gather().tolist() == [[3, 4]]
    with pytest.raises(tw.ConfigError, match="one to six extents"):
        tw.field(np.float64(3))
    with pytest.raises(tw.ConfigError, match="allowed: one to six integers, or an array"):
        tw.field(tw.linalg.matrix((2, 2)))


@pytest.mark.parametrize("dtype", ["f2", "O", ">f8", "U3", "S1", "M8[s]", object(), "nothing", 3, [("a", "f8")]])
def test_other_dtypes_are_refused_with_a_list_of_those_allowed(dtype):
    for make in (lambda: tw.field((2,), dtype), lambda: tw.scratch(dtype)):
        with pytest.raises(tw.ConfigError, match="allowed: bool, int8, .*complex128$"):
            make()


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_a_number_a_function_and_an_array_give_the_same_values(dtype):
    number = dtype.type(7)
    whole = np.full((3, 4), number)
    for init in (7, number, np.array(7), lambda i, j: 7 + 0 * i * j, whole, whole.tolist(), np.asfortranarray(whole)):
        made = tw.field((3, 4), dtype, init=init).gather()
        assert made.dtype == dtype and np.array_equal(made, whole)
    assert np.array_equal(tw.field(whole).gather(), whole)
    assert tw.field(whole, "c16").dtype == np.dtype("c16")


@pytest.mark.parametrize(
    "init, words",
    [
        ("abc", "init raised ValueError: could not convert string to float: 'abc'"),
        ({}, "init raised TypeError"),
        (1j, "init raised TypeError"),
        (10**400, "init raised OverflowError: int too large"),
        (np.ones(3), "init has shape (3,), the field (2,); they must be equal, or init a number"),
        ([[1, 2]], "init has shape (1, 2)"),
        (lambda i: None, "init raised TypeError: it returned None at (0,); allowed: a number"),
        (lambda i: "x", "init raised ValueError"),
        (lambda i, j: 0, "missing 1 required positional argument"),
        (lambda i: [1, 2, 3], "init raised ValueError"),
        (lambda i: 1 // (1 - int(i)), "init raised ZeroDivisionError"),
    ],
)
def test_an_init_that_does_not_do(init, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)) as caught:
        tw.field((2,), init=init)
    assert caught.value.agreed


def test_a_function_of_single_points_may_branch():
    def init(i, j):
        return (10 if i > j else -1) * i + j

    found = tw.field((5, 6), "i4", init=init).gather()
    assert np.array_equal(found, [[init(i, j) for j in range(6)] for i in range(5)])


def test_an_init_that_makes_objects_of_index_arrays_is_asked_point_by_point():
    big = 2**70  # NumPy's sum with it is of objects

    def init(i):
        return i + big - big + 3

    assert tw.field((4,), "i8", init=init).gather().tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize("keep", ["whole", 3, None, [], "Window"])
def test_what_else_a_field_could_keep(keep):
    with pytest.raises(tw.ConfigError, match="allowed: 'all', 'window'"):
        tw.field((3,), keep=keep)


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(keep="window", halo=1), "halo= or grid= was given together with keep='window' or history="),
        (dict(history=1, halo=1), "halo= or grid= was given together"),
        (dict(history=1, grid=(1, 1)), "halo= or grid= was given together"),
        (dict(keep="window", history=1), "history= was given for a field with keep='window'"),
        (dict(keep="window", blocks=tw.Blocks(2)), "blocks= was given together with keep='window'"),
        (dict(history=2, blocks=tw.Blocks(2)), "blocks= was given together with"),
        (dict(halo=1, blocks=tw.Blocks(2)), "blocks= was given together with"),
        (dict(periodic=(0,)), "periodic=(0,) was given without halo="),
        (dict(halo=1, periodic="x"), "periodic='x' was given; allowed: a tuple of axes, 0 or 'i', 1 or 'j'"),
        (dict(halo=1, periodic=(2,)), "periodic=(2,) was given"),
        (dict(halo=1, periodic=3.5), "periodic=3.5 was given"),
        (dict(halo=1, grid=(1,)), "grid=(1,) was given for 2 dimensions"),
        (dict(halo=1, grid=(0, 1)), "grid=(0, 1) was given"),
        (dict(halo=(1, (1, -1))), "was given for 2 dimensions; allowed: one width"),
        (dict(halo=2**31), "allowed: one width"),
        (dict(halo=True), "allowed: one width"),
    ],
)
def test_options_that_exclude_each_other_or_make_no_sense(options, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        tw.field((8, 8), **options)


# --- earlier time steps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("history", [-1, 7, True, 1.0, "abc", None, [1] * 7, {1: 2}])
def test_a_history_is_a_number_or_a_list(history):
    with pytest.raises(tw.ConfigError, match="allowed: a number from 0 to 6, or a list of so many, each as init"):
        tw.field((3,), history=history)


def test_a_history_in_numbers_begins_as_the_field():
    made = tw.field((3,), init=lambda i: i + 1.0, history=np.int64(2))
    assert made.history == 2
    assert [made.buffer(-k).gather().tolist() for k in range(3)] == [[1, 2, 3]] * 3


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_history_in_a_list_begins_as_its_entries_say(ranks):
    def body(context):
        given = [5, lambda i: 2.0 * i, None, np.arange(7.0), np.arange(7) if context.rank == 0 else None]
        made = tw.field((7,), init=-1, history=given, context=context)
        return [made.buffer(-k).gather() for k in range(made.history + 1)]

    found = results_of(ranks, 1, body)
    assert found[1:] == [[None] * 6] * (ranks - 1)
    wanted = [[-1] * 7, [5] * 7, [2 * i for i in range(7)], [0] * 7, list(range(7)), list(range(7))]
    assert [buffer.tolist() for buffer in found[0]] == wanted


def test_a_history_that_raises_on_one_rank_is_an_error_on_all():
    def body(context):
        def init(i):
            if context.rank == 1:
                raise OSError("no such day")
            return 0 * i

        with pytest.raises(tw.ConfigError, match="history raised OSError: no such day"):
            tw.field((7,), history=[init], context=context)

    results_of(2, 1, body)


def test_buffers_are_views_and_go_back_so_far_as_the_field_keeps():
    made = tw.field((2, 3), "f4", history=1)
    earlier = made.buffer(-1)
    earlier.local[...] = 4
    assert (earlier.shape, earlier.dtype, earlier.ndim) == (made.shape, made.dtype, 2)
    assert earlier.owned == made.owned and earlier.context is made.context
    assert made.gather().tolist() == [[0] * 3] * 2 and earlier.gather().tolist() == [[4] * 3] * 2
    assert repr(earlier) == f"<tilewave.TimeBuffer -1 of {made!r}>"
    for number in (-2, 1, True, -1.0, "a", None):
        with pytest.raises(tw.ConfigError, match="allowed: -1 to 0, the time steps that this field keeps"):
            made.buffer(number)


# --- fields without values, scratch -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, what",
    [
        (lambda A: A.gather(), "gather"), (lambda A: A.owned, "owned"), (lambda A: A.local, "local"),
        (lambda A: A.origin, "origin"), (lambda A: A.halo, "halo"), (lambda A: A.copy(), "copy"),
        (lambda A: A.fill(0), "fill"), (lambda A: A[0], r"field\[...\]"),
        (lambda A: A.__setitem__(0, 1), r"field\[...\] = "), (lambda A: A.save("a.npy"), "save"),
        (lambda A: A.buffer(0), "buffer"),
    ],
)
def test_what_needs_values_says_why_there_are_none(call, what):
    window, closed = tw.field((3,), keep="window"), tw.field((3,))
    closed.close()
    closed.close()
    assert closed.closed and not window.closed and window.history == 0
    with pytest.raises(tw.ConfigError, match=f"^{what}: this field of shape .* keeps a rolling window only"):
        call(window)
    with pytest.raises(tw.ConfigError, match=f"^{what}: this field of shape .* was closed"):
        call(closed)
    assert "rolling window" in repr(window) and "closed" in repr(closed)


def test_values_before_a_run_are_those_of_init(seed):
    rng = np.random.default_rng(seed)
    subscripts = rng.integers(0, [5, 6], (20, 2))
    whole = rng.random((5, 6))

    def branching(i, j):
        return whole[i, j] if i >= 0 else 0

    for init in (whole, lambda i, j: whole[i, j], branching):
        found = values_at(tw.field((5, 6), init=init, keep="window"), subscripts)
        assert np.array_equal(found, whole[tuple(subscripts.T)]), seed
    assert values_at(tw.field((5, 6), keep="window"), subscripts).tolist() == [0]
    assert values_at(tw.field((5, 6), "i4", init=3, keep="window"), subscripts).tolist() == [3]
    none = tw.field((5, 6), init=lambda i, j: None, keep="window")
    with pytest.raises(tw.ConfigError, match="init raised TypeError: it returned None at "):
        values_at(none, subscripts)
    assert len(values_at(none, subscripts[:0])) == 0


@pytest.mark.parametrize(
    "init, words",
    [
        ([1], "scratch: init: given [1]; allowed: a number, or a function of the indices"),
        ("x", "scratch: init 'x' was given for float64: could not convert"),
        (1j, "scratch: init 1j was given for float64"),
        (10**400, "was given for float64: int too large"),
    ],
)
def test_scratch_refuses(init, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        tw.scratch("f8", init)
    assert tw.scratch("i4", 3) == tw.scratch(np.int32, 3) != tw.scratch("i4", 4)
