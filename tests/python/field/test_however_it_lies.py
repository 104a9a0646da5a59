"""However a field lies on the ranks and in their memory, all calls that look at its values see the same."""


import numpy as np
import pytest

import tilewave as tw
from local_ranks import results_of


@tw.nest
def count(A, i, j):
    A[i, j] = A[i, j] + 1.0


@tw.nest
def slanted(A, i, j):
    A[i, j] = A[i-1, j] + 0.25 * A[i, j-1]


@tw.nest
def coarse(C, F, i, j):
    C[i, j] = C[i, j] + F[2*i, j] + F[2*i+1, j]


def ran(nest, ranks, plan, over=None):
    """A field that a run has left in the blocks and the order of memory that it wanted."""

    def make(context, shape, dtype):
        field = tw.field(shape, dtype, init=1, context=context)
        tw.run(nest, A=field, context=context, plan=plan, over=over)
        return field

    return make


def of_coarse_blocks(context, shape, dtype):
    """One whose blocks follow those of a coarser field."""
    field = tw.field(shape, dtype, init=1, context=context)
    half = tw.field((shape[0] // 2, shape[1]), dtype, context=context)
    tw.run(coarse, C=half, F=field, context=context, plan={"grid": (context.size, 1)})
    return field


def made(**options):
    return lambda context, shape, dtype: tw.field(shape, dtype, context=context, **options)


def in_blocks(context, shape, dtype):
    field = tw.field(shape, dtype, blocks=tw.Blocks((2, 3), shift=1), context=context)
    tw.run(count, A=field, context=context, plan={"grid": (context.size, 1)})
    return field


def ways(ranks):
    return {
        "plain": made(),
        "halo": made(halo=((2, 1), 1)),
        "periodic": made(halo=2, periodic=("i", "j"), grid=(1, ranks)),
        "history": made(history=2),
        "columns": ran(count, ranks, {"grid": (1, ranks)}),
        "few": ran(count, ranks, {"grid": (1, 1)}),
        "skewed": ran(slanted, ranks, {"grid": (ranks, 1), "row": (1, -1), "storage": "skewed"}),
        "part": ran(count, ranks, {"grid": (ranks, 1)}, over={"i": (5, 9)}),
        "blocks": in_blocks,
        "coarse": of_coarse_blocks,
    }


def seen(field, whole, other, folder, context):
    """Each look at a field's values, and what it must find."""
    path = str(folder / f"{field._number} of {context.size}.npy")
    field.save(path)
    part = (slice(1, None, 3), slice(None, None, -2))
    size = {"f4": "f8"}.get(whole.dtype.str[1:], whole.dtype)
    yield "elements", field[...], whole
    yield "some elements", field[part], whole[part]
    yield "one element", field[-1, 2], whole[-1, 2]
    yield "a file", tw.load(path, context=context)[...], whole
    yield "a copy", field.copy()[...], whole
    yield "sum", tw.sum(field), whole.sum(dtype=size)
    yield "dot", tw.dot(field, other), (whole.astype(size) ** 2).sum()
    yield "dot with another", tw.dot(other, field), (whole.astype(size) ** 2).sum()
    yield "norm", tw.norm(field, 1), np.abs(whole).sum(dtype="f8")
    yield "max", tw.max(field), whole.max()
    yield "argmin", tw.argmin(field), np.unravel_index(whole.argmin(), whole.shape)
    for layout in ("rows", "columns", "cyclic"):
        for dtype in (whole.dtype, np.dtype("c16")):
            found = tw.linalg.matrix(whole.shape, dtype, field, layout=layout, context=context).gather()
            yield f"a matrix by {layout}", found if found is not None else whole, whole


@pytest.mark.parametrize("way", ways(1))
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_all_looks_at_a_field_agree(ranks, way, tmp_path, seed):
    rng = np.random.default_rng(seed)
    shape, dtype = [(12, 9), (10, 5)][seed % 2], ["f4", "f8"][seed // 2 % 2]
    whole = rng.integers(-999, 999, shape).astype(dtype)  # sums of them are exact

    def body(context):
        field = ways(ranks)[way](context, shape, dtype)
        other = tw.field(whole, context=context)
        field[...] = whole
        found = [(what, *pair) for what, *pair in seen(field, whole, other, tmp_path, context)]
        last = field.gather()
        found.append(("gather", whole if last is None else last, whole))
        return [what for what, value, wanted in found if not np.array_equal(value, wanted)]

    found = results_of(ranks, 1, body)
    assert found == [[]] * ranks, (seed, found)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("way", ["plain", "halo", "periodic", "history"])
def test_sources_and_receivers_lie_where_their_points_say(ranks, way):
    """Also of a field with a halo, which a run may have moved."""

    @tw.nest
    def drift(u, t, i, j):
        u[t+1, i, j] = u[t, i, j-1] + u[t, i-1, j]

    def body(context):
        u = ways(ranks)[way](context, (8, 9), "f8")
        u[...] = np.arange(72.0).reshape(8, 9)
        points, values = [(0, 0), (5, 5), (7, 8), (5, 5)], np.arange(12.0).reshape(3, 4)
        report = tw.run(drift, u=u, steps=3, inject={"u": (points, values)}, record={"u": points[:3]}, context=context)
        return u[...], report.recorded["u"]

    expected, recorded = np.arange(72.0).reshape(8, 9), np.zeros((3, 3))
    for step in range(3):
        before = expected.copy()
        expected[1:, 1:] = before[1:, :-1] + before[:-1, 1:]
        for k, point in enumerate([(0, 0), (5, 5), (7, 8), (5, 5)]):
            expected[point] += 4 * step + k
        recorded[step] = expected[0, 0], expected[5, 5], expected[7, 8]
    found = results_of(ranks, 1, body)
    for u, values in found:
        assert np.array_equal(u, expected) and np.array_equal(values, recorded)


def test_a_field_without_values_is_no_matrix():
    window, closed = tw.field((3, 4), keep="window"), tw.field((3, 4))
    closed.close()
    for field, words in ((window, "keeps a rolling window only"), (closed, "was closed")):
        with pytest.raises(tw.ConfigError, match=f"matrix: init: this field of shape .* {words}"):
            tw.linalg.matrix((3, 4), init=field)
