"""Rows of points: any direction, any strides, in order or independent; tables; vector code."""

import platform
import random
import re

import llvmlite.binding as llvm
import numpy as np
import pytest

import tilewave
from kernel_helpers import (
    Raised,
    check,
    compare,
    compare_all_ways,
    random_array,
    rows_of_hyperplanes,
    run_box,
    shapes_of,
    skewed,
)
from kernel_bodies import SEEDS, alignment, body, relax
from random_programs.draw import plain_program
from tilewave.kernel.compile import compile_kernel
from tilewave.errors import ConfigError
from tilewave.nest.nest import nest, nest_from


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_nest(seed):
    """Any nest, in every order of rows that its dependences allow, over any strides."""
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    drawn = plain_program(seed)
    text = drawn.nests[0].text()
    dtypes = {name: array.dtype for name, array in drawn.arrays.items()}
    if any(dtype.kind == "c" for dtype in dtypes.values()):
        pytest.skip("complex numbers have NaNs of many kinds, and products of arrays of them are fused")
    try:
        found = nest_from(text, {"np": np, "tw": tilewave})
        extents = (9, 8, 7, 3, 3, 2)[: found.rank]
        shapes, arrays = shapes_of(found, extents), {}
        for name, array in drawn.arrays.items():
            if array.role == "subscripts":
                arrays[name] = rng.integers(0, 3, shapes[name]).astype(array.dtype)
        for table in found.tables:
            shape = [n if isinstance(n, int) else extents[found.indices.index(n)] for n in drawn.arrays[table].axes]
            arrays[table] = random_array(rng, shape, dtypes[table])
        scalars = {"c": choose.choice([0.3, -1.5, np.float32(0.3)]), "s": choose.choice([0, 2]), "d": 2}
        scalars = {name: value for name, value in scalars.items() if name in found.scalars}
        print(text, dtypes, scalars)
        compare_all_ways(found, dtypes, extents, scalars, seed, choose.choice([0, 0.1]), arrays)
    except ConfigError as refusal:
        pytest.skip(f"refused: {refusal}")


@nest
def linear(A, i, j, k, *, c=np.float32(0.3)):
    A[i, j, k] = c * (A[i-1, j, k] + A[i, j-1, k] + A[i, j, k-1])


@nest
def affine_gaps(H, E, F, a, b, i, j, *, o=11, e=1):
    """Several outputs, two sequences of which one runs backwards along a hyperplane."""
    E[i, j] = max(E[i, j-1] - e, H[i, j-1] - o)
    F[i, j] = np.maximum(F[i-1, j] - e, H[i-1, j] - o)
    match = 5 if a[i-1] == b[j-1] else -4
    H[i, j] = max(H[i-1, j-1] + match, E[i, j], F[i, j], 0)


@nest
def many_reads(A, B, i, j):
    A[i, j] = (
        A[i-1, j]
        + A[i-1, j-1]
        + A[i, j-1]
        + B[i, j]
        + B[i-1, j]
        + B[i-2, j]
        + B[i+1, j]
        + B[i+2, j]
        + B[i+1, j+1]
        + B[i, j+1]
        + B[i-1, j+1]
        + B[i-1, j-1]
    )


@nest
def some_paths(A, B, i, j, *, c=1.5):
    x = A[i-1, j]
    if x > c:
        A[i, j] = x * 2 + B[i, j]
    elif B[i, j] > 0:
        A[i, j] = A[i, j-1]


@nest
def weighted(A, w, v, i, j):
    A[i, j] = A[i-1, j-1] * w[j] + v[i]


@nest
def by_table(H, S, a, b, i, j, *, gap=1):
    H[i, j] = max(H[i-1, j-1] + S[a[i-1], b[j-1]], H[i-1, j] - gap, H[i, j-1] - gap, 0)


VECTORS = {
    "linear": (linear, "f4", None, "vaddps"),
    "roots": (relax, "f4", None, "vsqrtps"),
    "alignment": (alignment, "i4", None, "vpmaxsd"),
    "many": (many_reads, "f4", None, "vaddps"),
    "affine gaps": (affine_gaps, "i4", None, "vpmaxsd"),
    "some paths": (some_paths, "f4", None, "vcmp\\w*ps"),
    "backwards": (weighted, "f4", (1, 1, -1, 0), "vperm"),
    "constant": (weighted, "f4", (1, 1, 0, 1), "vmulps"),
    "table": (by_table, "i4", None, "vpmaxsd"),
    "strided": (weighted, "f4", (1, 1, None, 0), "vmulps"),
}


@pytest.mark.skipif("+avx2" not in llvm.get_host_cpu_features().flatten(), reason="needs AVX2")
@pytest.mark.parametrize("name", VECTORS)
def test_independent_points_are_vector_code(name):
    found, dtype, steps, instruction = VECTORS[name]
    steps = steps or (1,) * len(found.places)
    kernel = compile_kernel(found, dict.fromkeys(found.arrays, dtype), steps=steps, independent=True)
    assert re.search(rf"({instruction})\w*\s.*%ymm", kernel.assembly())


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for x86 instructions")
def test_rows_whose_overlap_is_checked_at_run_time_are_vector_code():
    @nest
    def jacobi(A, B, i, j):
        A[i, j] = A[i-1, j] + 0.5 * B[i, j]

    @nest
    def chosen(A, B, i, j):
        A[i, j] = max(A[i-1, j], 0) + (0.5 * B[i, j] if B[i, j] > 0.1 else 1.0)

    for found in (jacobi, chosen):
        assert "addps" in compile_kernel(found, {"A": "f4", "B": "f4"}, steps=(1, 1, 1)).assembly()


@nest
def tables_of_all_kinds(A, S, T, a, i, j, *, m=2):
    """Subscripts that are elements, indices, scalars, constants; one on some points only."""
    A[i, j] = S[a[j], i-1] + (T[m] if i > 2 else S[a[j], 2*i-2*i]) * T[1]


def table_arrays(rng, extents, dtype, low, high):
    return {
        "S": rng.integers(-9, 9, (4, 9)).astype("i4")[:, ::2],
        "a": rng.integers(low, high, extents[0]).astype(dtype),
        "b": rng.integers(low, high, extents[1]).astype(dtype),
    }


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8"])
@pytest.mark.parametrize(("low", "high"), [(0, 4), (-4, 4), (0, 5), (-5, 4)])
def test_tables(dtype, low, high):
    """Negative subscripts count from the end; the first wrong one raises, as plain loops do."""
    for seed, extents in enumerate([(7, 9), (20, 24)]):
        arrays = table_arrays(np.random.default_rng(seed), extents, dtype, low, high)
        dtypes = {"H": "i4", "S": "i4", "a": dtype, "b": dtype}
        compare_all_ways(by_table, dtypes, extents, seed=seed, arrays=arrays)


@pytest.mark.parametrize("scalar", [2, -1, np.int64(1), 3])
@pytest.mark.parametrize("extents", [(5, 40), (6, 30)])
def test_subscripts_of_tables(scalar, extents):
    rng = np.random.default_rng(3)
    for low in (0, -2):
        arrays = {"S": rng.random((4, 5)), "T": rng.random(3), "a": rng.integers(low, 4, extents[1])}
        compare_all_ways(
            tables_of_all_kinds, {"A": "f8", "S": "f8", "T": "f8", "a": "i8"}, extents, {"m": scalar}, arrays=arrays
        )


def test_a_lookup_out_of_range_raises():
    rng = np.random.default_rng(5)
    arrays = {"H": np.zeros((9, 30), "i4"), **table_arrays(rng, (8, 29), "i4", 0, 4)}
    arrays["b"][17] = 5
    for independent in (False, True):
        kernel = compile_kernel(by_table, dict.fromkeys(arrays, "i4"), independent=independent)
        with pytest.raises(Raised) as error:
            run_box(kernel, ((1, 9), (1, 30)), arrays)
        assert (error.value.name, error.value.point) == ("IndexError", (1, 18))
        assert error.value.message == "index out of bounds for axis 1 of S"


@pytest.mark.parametrize(
    ("subscript", "words"),
    [
        ("B[i, j]", ["`T[B[i, j]]`", "float32 as a subscript of table 'T'", "allowed: integers"]),
        ("x > 0", ["Python bool as a subscript"]),
        ("np.sqrt(x)", ["float64 as a subscript"]),
        ("x / 2", ["Python float as a subscript"]),
    ],
)
def test_subscripts_of_tables_that_are_refused(tmp_path, subscript, words):
    found = body(tmp_path, f"x = 1 + i; A[i, j] = B[i, j] + T[{subscript}]", head="A, B, T, i, j")
    with pytest.raises(ConfigError) as error:
        compile_kernel(found, dict.fromkeys("ABT", "f4"))
    assert all(word in str(error.value) for word in words), error.value


def test_tables_are_packed_after_the_scalars():
    kernel = compile_kernel(by_table, dict.fromkeys("HSab", "i4"))
    table = np.zeros((4, 6), "i4")[:, ::2]
    assert kernel.pack({"gap": 7}, {"S": table}).tolist() == [7, 4, 3, 24, 8]
    for tables, words in (
        ({}, "needs its table 'S'"),
        ({"S": table, "H": table}, "no table 'H'; allowed: S"),
        ({"S": [[1]]}, "'S'.*given list; allowed: a NumPy array"),
        ({"S": table[0]}, r"'S'.*looked up by 2.*given shape \(3,\); allowed: rank 2"),
        ({"S": table.astype("i8")}, "'S'.*compiled for int32, given int64"),
    ):
        with pytest.raises(ConfigError, match=words):
            kernel.pack(tables=tables)


@pytest.mark.parametrize("found", [linear, affine_gaps, many_reads, some_paths, weighted], ids=lambda found: found.name)
@pytest.mark.parametrize(
    "extents, dtype",
    [  # without --long each extents with one dtype
        pytest.param(extents, dtype, marks=() if e == d else pytest.mark.long, id=f"{extents}-{dtype}")
        for e, extents in enumerate([(2, 3), (7, 41), (40, 39)])
        for d, dtype in enumerate(("f8", "f4", "i4"))
    ],
)
def test_every_order_and_layout(found, extents, dtype):
    extents = (3, *extents) if found.rank == 3 else extents
    compare_all_ways(found, dict.fromkeys(found.arrays, dtype), extents, seed=1)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for x86 instructions")
@pytest.mark.parametrize(
    ("dtype", "added", "greater"), [("i1", "paddb", "pmaxsb"), ("i2", "paddw", "pmaxsw"), ("u1", "paddb", "pmaxub")]
)
def test_rows_of_small_ints_are_vector_code_without_checks(dtype, added, greater):
    @nest
    def exact(H, E, S, i, j):
        H[i, j] = np.maximum(np.maximum(H[i-1, j-1] + S[i, j], E[i, j]), 0)

    @nest
    def python(H, E, S, i, j, *, gap=2):
        H[i, j] = max(H[i-1, j-1] + S[i, j], E[i, j] - gap, 0)

    for found in (exact, python):
        kernel = compare(found, dict.fromkeys(found.arrays, dtype), (5, 80), seed=1)  # constant steps
        assert not kernel.sites
        assert {added, greater} <= set(re.findall(r"p(?:add|max)\w+", kernel.assembly()))


@nest
def in_place(A, i, j):
    """Reads old values ahead and new ones behind."""
    A[i, j] = 0.25 * (A[i-1, j] + A[i, j-1] + A[i+1, j] + A[i, j+1])


@nest
def several_statements(A, B, i, j):
    A[i, j] = A[i-1, j] + B[i, j-1]
    B[i+1, j] = A[i, j] * 2 + B[i+1, j]
    A[i, j] += B[i+1, j]
    if A[i, j] > 3:
        A[i-1, j+1] = -A[i, j]
        B[i+1, j] -= 1


@nest
def product(C, A, B, i, j, k):
    C[i, j] += A[i, k] * B[k, j]


@nest
def running_sums(s, A, i, j):
    """Elements that every row, or every point of a row, writes again."""
    s[j] = s[j-1] * 0.5 + A[i, j]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("found", [in_place, several_statements, product, running_sums], ids=lambda found: found.name)
def test_bodies_in_every_order_and_layout(found, seed):
    extents = (5, 7, 21)[-found.rank :]
    for dtype in ("f4", "i2"):
        compare_all_ways(found, dict.fromkeys(found.arrays, dtype), extents, seed=seed, special=0)


def test_a_value_is_carried_only_where_the_row_goes_along_the_last_index():
    """Skewed storage has a step of one element along a hyperplane, too."""
    for width in (7, 12):
        laid = skewed(np.random.default_rng(1).random((6, 7)), width)
        box = linear_2d.iteration_box({"A": laid.shape})
        kernel = compile_kernel(linear_2d, {"A": "f8"}, steps=(1, 1, 1))
        check(kernel, box, {"A": laid}, None, rows_of_hyperplanes, f"width {width}")


@nest
def linear_2d(A, i, j):
    A[i, j] = A[i-1, j] + 0.5 * A[i, j-1]
