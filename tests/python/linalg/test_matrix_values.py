"""Matrices as values: what is refused, layouts against their definition, descriptors."""

import itertools
import random
import re

import numpy as np
import pytest

import tilewave as tw
from local_ranks import on_ranks
from tilewave.linalg.layout import layout_of


@pytest.mark.parametrize(
    "shape, words",
    [
        ((2.5, 3, 4), "shape: given (2.5, 3, 4); allowed: two integers >= 0"),
        ((2.5, 3), "shape: given (2.5, 3)"),
        ("34", "shape: given '34'"),
        (("3", 4), "shape: given ('3', 4)"),
        (5, "shape: given 5"),
        (None, "shape: given None"),
        ((True, 2), "shape: given (True, 2)"),
        ((1, 2, 3), "shape: given (1, 2, 3)"),
        ((3, -1), "shape: given (3, -1)"),
        ((2**40, 2**40), "at most 2**60 bytes"),
    ],
)
def test_other_shapes_are_refused(shape, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        tw.linalg.matrix(shape)


@pytest.mark.parametrize(
    "init, words",
    [
        ("x", "matrix: init: ValueError: could not convert"),
        (1j, "init: given complex128 for float64; allowed: real numbers"),
        (10**400, "matrix: init: OverflowError"),
        ([1, 2], "init: given an array of shape (2,); allowed: (2, 3)"),
        (lambda i, j: None, "init raised TypeError: it returned None at (0, 0); allowed: a number"),
        (lambda i: 1, "init raised TypeError"),
        (lambda i, j: "x", "init raised ValueError"),
    ],
)
def test_an_init_that_does_not_do(init, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        tw.linalg.matrix((2, 3), init=init)


@pytest.mark.parametrize("shape", [(3, 2), (2,), (2, 3, 1)])
def test_a_field_of_another_shape(shape):
    with pytest.raises(tw.ConfigError, match=re.escape(f"init: given a field of shape {shape}; allowed: (2, 3)")):
        tw.linalg.matrix((2, 3), init=tw.field(shape))


@pytest.mark.parametrize("dtype", ["i4", "f2", "O", ">f8", "nothing", object(), 3])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(tw.ConfigError, match="dtype: given .*; allowed: float32, float64, complex64, complex128"):
        tw.linalg.matrix((2, 3), dtype)


def test_arrays_in_any_order_of_memory_give_their_values():
    whole = np.random.default_rng(1).random((6, 8))
    given = [whole, np.asfortranarray(whole), whole[::-1], whole[:, ::-1], whole[::2, ::3], whole.T, whole[:, 2:3]]

    def body(context):
        for array in given:
            for init in (array, array if context.rank == 0 else None):
                found = tw.linalg.matrix(array.shape, "f8", init, layout="cyclic", block=2, context=context).gather()
                assert found is None or np.array_equal(found, array)
        return tw.linalg.matrix(given[2], context=context).gather()

    found, errors = on_ranks(2, 1, body)
    assert errors == [None, None] and np.array_equal(found[0], whole[::-1])


def test_functions_of_index_arrays_that_make_objects_are_asked_one_by_one():
    made = tw.linalg.matrix((2, 3), init=lambda i, j: i + 10 * j + 2**70 - 2**70)
    assert np.array_equal(made.gather(), [[0, 10, 20], [1, 11, 21]])


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
def test_the_blocks_of_a_layout_go_round_the_grid(ranks, seed):
    """Element (i, j) is of the rank that its block's numbers, modulo the grid, name; local order is global order."""
    pick = random.Random(seed)
    grids = [(p, q) for p, q in itertools.product(range(1, ranks + 1), repeat=2) if p * q <= ranks]
    cases = []
    for _ in range(8):
        shape = pick.randrange(0, 14), pick.randrange(0, 14)
        name = pick.choice(["rows", "columns", "cyclic"])
        block = pick.choice([None, pick.randrange(1, 6), (pick.randrange(1, 6), pick.randrange(1, 6))])
        cases.append((shape, name, block, pick.choice([None, *grids]) if name == "cyclic" else None))

    def body(context):
        found = []
        for shape, name, block, grid in cases:
            made = tw.linalg.matrix(shape, layout=name, block=block, grid=grid, context=context)
            assert made.local.shape == (len(made.rows), len(made.columns)) and made.local.flags.f_contiguous
            descriptor, local = made.to_scalapack(7)
            assert local is made.local and descriptor.dtype == np.int32
            expected = [1, 7, *shape, *made.layout.block, 0, 0, max(1, made.local.shape[0])]
            assert descriptor.tolist() == expected, (seed, shape, name)
            found.append((made.layout, made.rows.tolist(), made.columns.tolist()))
        return found

    found, errors = on_ranks(ranks, 1, body)
    assert errors == [None] * ranks, seed
    for number, (shape, *_) in enumerate(cases):
        layout = found[0][number][0]
        for rank in range(ranks):
            at = divmod(rank, layout.grid[1])
            wanted = [
                [n for n in range(extent) if at[0] < layout.grid[0] and n // block % parts == mine]
                for extent, block, parts, mine in zip(shape, layout.block, layout.grid, at, strict=True)
            ]
            rows, columns = found[rank][number][1:]
            assert [(i, j) for i in rows for j in columns] == [(i, j) for i in wanted[0] for j in wanted[1]], (
                seed, cases[number], rank,
            )


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(name=3), "layout: given 3; allowed: rows, columns, cyclic"),
        (dict(name=["rows"]), "layout: given ['rows']"),
        (dict(block=True), "block: given True; allowed: an integer >= 1, or two of them"),
        (dict(block=(1, 2, 3)), "block: given (1, 2, 3)"),
        (dict(block=2.0), "block: given 2.0"),
        (dict(name="cyclic", grid=3), "grid: given 3; allowed: two integers >= 1"),
        (dict(name="cyclic", grid=(0, 1)), "grid: given (0, 1)"),
        (dict(name="cyclic", grid=(2, 3)), "grid: given (2, 3); allowed: at most 4 ranks in all"),
        (dict(name="columns", grid=(1, 4)), "grid: given for layout 'columns', which has one dimension"),
    ],
)
def test_layouts_that_are_none(arguments, words):
    given = dict(name="rows", block=None, grid=None) | arguments
    with pytest.raises(tw.ConfigError, match=re.escape(f"call: {words}")):
        layout_of("call", (10, 12), 4, **given)


def test_a_layout_of_another_matrix_stands_for_itself():
    layout = layout_of("call", (10, 12), 4, "cyclic", (2, 3), (2, 2))
    assert layout_of("call", (7, 7), 4, layout, None, None) is layout
    for block, grid in ((2, None), (None, (2, 2))):
        with pytest.raises(tw.ConfigError, match="block, grid or weights was given with a whole layout"):
            layout_of("call", (10, 12), 4, layout, block, grid)
    with pytest.raises(tw.ConfigError, match=r"a layout on a grid of \(2, 2\) was given; allowed: at most 3 ranks"):
        layout_of("call", (10, 12), 3, layout, None, None)


@pytest.mark.parametrize("ranks, grid", [(1, (1, 1)), (2, (1, 2)), (6, (2, 3)), (7, (1, 7)), (16, (4, 4))])
def test_grids_are_as_near_to_a_square_as_can_be(ranks, grid):
    assert layout_of("call", (1000, 1000), ranks, "cyclic", None, None).grid == grid


def test_a_matrix_is_no_array_of_numpy():
    A = tw.linalg.matrix((2, 3))
    with pytest.raises(TypeError, match="no NumPy array; allowed: A.local"):
        np.asarray(A)
    assert repr(A) == "<tilewave.linalg.Matrix (2, 3) float64, rows, block (2, 3), grid (1, 1)>"
