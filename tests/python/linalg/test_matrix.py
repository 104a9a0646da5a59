"""Distributed matrices: layouts, what they are made of, moving them."""

import numpy as np
import pytest
import tilewave as tw
from local_ranks import results_of
from matrices import DTYPES, layout, values


def numroc(n, block, place, places):
    """Rows of a process, as ScaLAPACK counts them (TOOLS/numroc.f)."""
    blocks = n // block
    rows, extra = blocks // places * block, blocks % places
    return rows + (block if place < extra else n % block if place == extra else 0)


@pytest.mark.parametrize("seed", range(8))
def test_layouts_move_and_gather(seed):
    """From NumPy, between layouts, to NumPy: bit for bit, in any dtype; local parts as ScaLAPACK has them."""
    rng = np.random.default_rng(seed)
    ranks = int(rng.choice([1, 2, 3, 4, 6]))
    cases = []
    for _ in range(4):
        shape = tuple(int(n) for n in rng.integers(0, 14, 2))
        array = values(rng, shape, str(rng.choice(DTYPES)))
        cases.append((array, layout(rng, ranks), layout(rng, ranks), rng.random() < 0.5))

    def body(context):
        found = []
        for whole, before, after, everywhere in cases:
            init = whole if everywhere or context.rank == 0 else None
            made = tw.linalg.matrix(whole.shape, whole.dtype, init, context=context, **before)
            assert np.array_equal(made.local, whole[np.ix_(made.rows, made.columns)])
            moved = made.redistribute(**after)
            assert np.array_equal(moved.local, whole[np.ix_(moved.rows, moved.columns)])
            if moved.layout.weights:
                with pytest.raises(tw.ConfigError, match="to_scalapack: given a matrix with weights"):
                    moved.to_scalapack()
                moved = moved.redistribute(moved.layout.name)
            descriptor, local = moved.to_scalapack()
            rows, columns = moved.layout.grid
            if context.rank < rows * columns:
                place = divmod(context.rank, columns)
                assert local.shape == tuple(map(numroc, whole.shape, moved.layout.block, place, (rows, columns)))
            assert list(descriptor) == [1, -1, *whole.shape, *moved.layout.block, 0, 0, max(1, len(local))]
            assert local is moved.local and local.flags.f_contiguous
            found.append(moved.gather())
        return found

    results = results_of(ranks, 1, body)
    assert all(part is None for found in results[1:] for part in found)
    for (whole, *_), found in zip(cases, results[0], strict=True):
        assert found.dtype == whole.dtype and np.array_equal(found, whole)


def test_large_pieces_go_in_chunks():
    """More than a piece of 1 MiB between two ranks."""
    whole = np.arange(700 * 600.0).reshape(700, 600)

    def body(context):
        made = tw.linalg.matrix(whole, layout="rows", context=context)
        return made.redistribute("columns").redistribute("cyclic", 7).gather()

    results = results_of(2, 1, body)
    assert np.array_equal(results[0], whole)


def test_from_functions_numbers_and_fields():
    def body(context):
        make = lambda init, **k: tw.linalg.matrix((7, 5), init=init, context=context, **k).gather()
        field = tw.field((7, 5), "f4", init=lambda i, j: i - 2 * j, context=context)
        return (
            make(lambda i, j: 10 * i + j, layout="cyclic", block=2),
            make(lambda i, j: float(i) if i > j else -1.0),
            make(3),
            make(None),
            make(field, layout="columns"),
            make(field, dtype="c16"),
        )

    results = results_of(3, 1, body)
    i, j = np.ogrid[:7, :5]
    by_array, by_element, number, nothing, of_field, as_complex = results[0]
    assert np.array_equal(by_array, 10 * i + j) and np.array_equal(by_element, np.where(i > j, i, -1.0))
    assert np.all(number == 3) and np.all(nothing == 0)
    assert of_field.dtype == np.float32 and np.array_equal(of_field, i - 2 * j)
    assert as_complex.dtype == np.complex128 and np.array_equal(as_complex, i - 2 * j)
