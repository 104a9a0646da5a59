"""Which arrays patterns take as matrices, and which may share memory: against sets of the items' addresses."""

import random
import re

import numpy as np
import pytest

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.patterns.matrix import inside, number_of, outer_text, rows_and_columns, same_or_apart, same_rows, view


def places(M):
    """The addresses of a matrix's items, row by row."""
    M = rows_and_columns("M", M)
    first = M.__array_interface__["data"][0]
    return [[first + i * M.strides[0] + j * M.strides[1] for j in range(M.shape[1])] for i in range(M.shape[0])]


def cut(pick, memory):
    """A random matrix with unit column stride in a flat memory."""
    rows, cols = pick.randrange(1, 5), pick.randrange(1, 6)
    stride = pick.choice((cols, 6, 7, cols + pick.randrange(4)))
    stride = max(stride, cols)
    last = (rows - 1) * stride + cols
    at = pick.randrange(0, len(memory) - last + 1)
    item = memory.itemsize
    return np.lib.stride_tricks.as_strided(memory[at:], (rows, cols), (stride * item, item))


def test_the_same_matrix_or_memory_apart(seed):
    pick, memory, kinds = random.Random(seed), np.zeros(40), set()
    for _ in range(3000):
        M = cut(pick, memory)
        out = M[:] if pick.random() < 0.1 else cut(pick, memory)
        one, other = places(M), places(out)
        fine = one == other or not set().union(*one) & set().union(*other)
        kinds.add((fine, one == other))
        try:
            same_or_apart(M, out)
            accepted = True
        except ConfigError as error:
            accepted = False
            assert str(error) == "M and out overlap; allowed: the same matrix, or separate memory"
        assert accepted == fine, (seed, M.shape, M.strides, out.shape, out.strides)
    assert kinds == {(True, True), (True, False), (False, False)}


def test_a_part_in_its_own_place_in_the_whole(seed):
    pick, memory, found = random.Random(seed), np.zeros(40), set()
    for _ in range(3000):
        whole = cut(pick, memory)
        last = pick.randrange(whole.shape[1])
        part = whole[:, last // 2 : last + 1] if pick.random() < 0.1 else cut(pick, memory)
        of_part, of_whole = places(part), places(whole)
        if not set().union(*of_part) & set().union(*of_whole):
            assert inside(part, whole) == -1, seed
            continue
        columns = [
            c
            for c in range(whole.shape[1] - part.shape[1] + 1)
            if len(of_part) == len(of_whole) and of_part == [row[c : c + part.shape[1]] for row in of_whole]
        ]
        found.add(bool(columns))
        if columns:
            assert [inside(part, whole)] == columns, (seed, part.shape, whole.shape)
        else:
            with pytest.raises(ConfigError, match="or the part in its place in the whole matrix"):
                inside(part, whole)
    assert found == {True, False}


def test_a_part_between_the_items_of_the_whole_is_refused():
    memory = np.zeros(100, np.uint8)
    whole, part = memory[:64].view("f8")[None], memory[4:20].view("f8")[None]
    with pytest.raises(ConfigError, match="M and out overlap"):
        inside(part, whole)
    assert inside(np.zeros((1, 0)), whole) == inside(part, np.zeros((3, 0))) == -1  # nothing overlaps nothing


@pytest.mark.parametrize(
    "shape, order, rows_cols",
    [
        ((), "C", (1, 1)), ((7,), "C", (1, 7)), ((3, 4), "F", (3, 4)), ((2, 3, 4), "C", (6, 4)),
        ((2, 0, 4), "F", (0, 4)), ((5, 1, 1, 2), "C", (5, 2)), ((0,), "C", (1, 0)),
    ],
)
def test_arrays_of_any_dimensions_are_matrices_of_the_same_memory(shape, order, rows_cols):
    M = np.zeros(shape, order=order)
    found = rows_and_columns("M", M)
    assert found.shape == rows_cols and (M.size == 0 or np.shares_memory(M, found))
    found[...] = 3
    assert (M == 3).all()


@pytest.mark.parametrize(
    "M, words",
    [
        (np.zeros(8)[::2], "M of one dimension has a stride of 16 bytes; allowed: 8"),
        (np.zeros(8)[::-1], "M of one dimension has a stride of -8 bytes"),
        (np.zeros((2, 3, 4), order="F"), "M of 3 dimensions is not contiguous"),
        (np.zeros((2, 3, 8))[..., ::2], "M of 3 dimensions is not contiguous"),
        (np.broadcast_to(np.zeros(4), (2, 3, 4)), "M of 3 dimensions is not contiguous"),
    ],
)
def test_arrays_that_are_no_matrices(M, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        rows_and_columns("M", M)
    with pytest.raises(ConfigError, match=re.escape(words)):
        view("M", M)


def test_the_fast_look_at_an_array_takes_nothing_that_the_slow_one_refuses(seed):
    pick, taken, refused = random.Random(seed), 0, 0
    subclass = type("Other", (np.ndarray,), {})  # which the fast look leaves to the slow one
    for _ in range(600):
        dtype = np.dtype(pick.choice(["f8", "f4", "i1", "c16", "?", "f2", ">f8", "u2"]))
        shift = pick.choice((0, 0, 0, 1))
        memory = np.zeros(24 * dtype.itemsize + 1, np.uint8)[shift : shift + 24 * dtype.itemsize].view(dtype)
        M = memory.reshape(pick.choice([(4, 6), (24,), (24, 1), (1, 24), (2, 3, 4)]))
        M = pick.choice([M, M, M[::2], M[:, ::2] if M.ndim > 1 else M[::3], M.T, M[::-1], M[:0], M[1:3]])
        M.flags.writeable = pick.random() < 0.8
        written = pick.random() < 0.5
        if _core.plain_view(M, written) is None:
            refused += 1
            continue
        taken += 1
        view("M", M.view(subclass), written)
    assert taken > 100 and refused > 100


@pytest.mark.parametrize("M", [True, 3, -2.5, 1j, np.float32(2), np.int8(-3), np.bool_(True), 2**62])
def test_numbers_are_arrays_of_one_element(M):
    found = number_of(M)
    assert found.shape == () and found[()] == M


@pytest.mark.parametrize("M", [None, "x", [1], np.zeros(3), np.zeros(()), {}])
def test_what_is_no_number(M):
    assert number_of(M) is None


def test_a_number_beyond_64_bits():
    with pytest.raises(ConfigError, match="a number of 65 bits was given; allowed: 64 bits"):
        number_of(2**64)


def test_what_ranks_compare_beyond_rows_and_columns():
    assert outer_text(np.zeros((2, 3, 4))) == "(2, 3)" and outer_text(np.zeros((2, 3))) == outer_text([[[1]]]) == ""
    same_rows(np.zeros((2, 3, 4)), np.zeros((2, 3, 9)))
    same_rows(np.zeros((6, 4)), np.zeros((2, 4)))  # the core compares these
    with pytest.raises(ConfigError, match=re.escape("M has shape (2, 3, 4), out (3, 2, 4); they must be equal but")):
        same_rows(np.zeros((2, 3, 4)), np.zeros((3, 2, 4)))
