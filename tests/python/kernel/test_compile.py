"""Compiled bodies against plain Python loops over NumPy arrays: every bit, every exception."""

import warnings

import llvmlite.binding as llvm
import numpy as np
import pytest

from kernel_bodies import (
    DTYPES,
    alignment,
    branches,
    four,
    line,
    old_values_ahead,
    reads_its_store,
    refused,
    relax,
)
from kernel_helpers import compare, compare_all_ways, run_box
from tilewave.kernel.compile import compile_kernel, kernel_key
from tilewave.errors import ConfigError
from tilewave.nest.nest import nest

warnings.filterwarnings("ignore", category=RuntimeWarning)


@pytest.mark.parametrize("cut", [None, 1, 5])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "found",
    [
        relax, branches, alignment, reads_its_store, line, four, old_values_ahead,
    ],
    ids=lambda found: found.name,
)
def test_bodies(found, dtype, cut):
    shape = {1: (50,), 2: (6, 23), 3: (4, 5, 19), 4: (3, 4, 4, 9)}[found.rank]
    tiny = "i1", "u1"
    for seed, other in enumerate(DTYPES if cut is None else ("f4", "i2")):
        if found is relax and dtype in tiny:
            refused(found, {"A": dtype}, "np.sqrt", "float16", np.dtype(dtype).name)
            continue
        names = [name for name in found.arrays if name not in found.written]
        compare(
            found,
            {found.written[0]: dtype, **dict.fromkeys(names, other)},
            shape,
            seed=seed,
            special=0.05 * (dtype[0] == "f"),
            cut=cut,
        )


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 33, 100])
def test_vector_loops_of_any_length(rows):
    @nest
    def stencil(A, B, i, j):
        A[i, j] = A[i-1, j] + 0.25 * (
            B[i, j]
            + B[i-1, j]
            + B[i, j+1]
            + B[i, j-1]
            + B[i+1, j]
            + B[i+1, j+1]
            + B[i-1, j-1]
            + B[i-1, j+1]
        )

    compare(stencil, {"A": "f4", "B": "f4"}, (4, rows + 2), seed=rows)


@nest
def many_arrays(A, B, C, D, E, F, i, j):
    A[i, j] = A[i, j+1] + B[i, j] * C[i, j] - D[i, j+1] + E[i+1, j] + F[i, j] - B[i-1, j] + C[i, j-1] * 0.5


@nest
def eight_neighbours(A, B, i, j):
    A[i, j] = min(
        A[i-1, j-1] + B[i-1, j-1],
        A[i-1, j] + B[i-1, j],
        A[i, j-1] + B[i, j-1],
        A[i, j+1] + B[i, j+1],
        A[i+1, j] + B[i+1, j],
        A[i+1, j+1] + B[i+1, j+1],
    )


@pytest.mark.parametrize("known", [False, True], ids=["steps-at-run-time", "steps-compiled-in"])
@pytest.mark.parametrize("found", [many_arrays, eight_neighbours], ids=lambda found: found.name)
def test_arrays_that_overlap_and_arrays_apart(found, known):
    """All arrays in one buffer: B begins `shift` elements after A, the others far away."""
    rows, cols = 5, 41
    steps = (1,) * len(found.places) if known else None
    kernel = compile_kernel(found, dict.fromkeys(found.arrays, "f8"), steps=steps)
    for shift in (1, -1, 3, 40, -200, 205, 1000):

        def arrays():
            memory = np.random.default_rng(3).random(4000)
            starts = {name: 1000 + 230 * k + 1000 * (k > 1) for k, name in enumerate(found.arrays)}
            starts["B"] = starts["A"] + shift
            return {name: memory[at : at+rows*cols].reshape(rows, cols) for name, at in starts.items()}

        box = [(1, rows - 1), (1, cols - 1)]
        ours, plain = arrays(), arrays()
        run_box(kernel, box, ours)
        for i in range(*box[0]):
            for j in range(*box[1]):
                found.function(*plain.values(), i, j)
        assert np.array_equal(ours["A"], plain["A"]), shift


@nest
def angles(phi, most, count, fx, fy, q, w, i, j, m):
    psi = (q[i, j] + w[m] * fx[j, m]) / (2 + abs(fy[i, m]))
    fx[j, m] = 2 * psi - fx[j, m]
    fy[i, m] = psi - fy[i, m]
    phi[i, j] += w[m] * psi
    most[i, j] = max(most[i, j], psi)
    count[i, j] += 1


@nest
def flux(phi, fx, fy, q, w, i, j, m):
    psi = (q[i, j] + w[m] * fx[j, m]) / (2 + fy[i, m])
    fx[j, m] = 2 * psi - fx[j, m]
    fy[i, m] = psi - fy[i, m]
    phi[i, j] += w[m] * psi


@pytest.mark.parametrize("found", [angles, flux], ids=lambda found: found.name)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_along_rows_keep_the_order_of_their_points(found, dtype, seed=0):
    """Whether points are vectors or not: their other values do not need the sum."""
    dtypes = {name: "i4" if name == "count" else dtype for name in found.arrays}
    for more, points in enumerate((1, 7, 8, 16, 61)):
        compare_all_ways(found, dtypes, (3, 4, points), seed=seed + more, special=0.02 * (points == 61))


@pytest.mark.skipif("+avx2" not in llvm.get_host_cpu_features().flatten(), reason="needs AVX2")
def test_sums_along_rows_are_vector_code():
    steps = [1 if place.axes[-1:] == ("m",) else 0 for place in flux.places]
    kernel = compile_kernel(flux, dict.fromkeys(flux.arrays, "f8"), steps=steps, separate=True)
    assert "vdivpd" in kernel.assembly()


@pytest.mark.parametrize(
    "found", [many_arrays, eight_neighbours, branches, old_values_ahead], ids=lambda found: found.name
)
def test_llvm_prints_nothing(found, capfd):
    for dtype in ("f4", "i8"):
        for steps in (None, (1,) * len(found.places), (2,) * len(found.places)):
            compile_kernel(found, dict.fromkeys(found.arrays, dtype), steps=steps).assembly()
    printed = capfd.readouterr()
    assert printed.err == printed.out == ""


# Scalars, reuse, code.


def test_scalars_are_packed_by_the_types_compiled_for():
    kernel = compile_kernel(branches, {"A": "f4", "B": "f4"}, {"c": 0.5})
    assert kernel.pack({"c": 2.5}).view("f8").tolist() == [2.5]
    assert kernel.pack().view("f8").tolist() == [0.3]
    with pytest.raises(ConfigError, match="'c'.*compiled for a Python float, given a Python int"):
        kernel.pack({"c": 2})
    narrow = compile_kernel(alignment, {"H": "i4", "S": "i4"}, {"gap": 3})
    assert narrow.pack({"gap": 127}).tolist() == [127]
    for other in (-1, 128, 2**31):
        with pytest.raises(ConfigError, match="int in 0..127, given a Python int .*compile again"):
            narrow.pack({"gap": other})
    wide = compile_kernel(alignment, {"H": "i4", "S": "i4"}, {"gap": -(2**15) - 1})
    assert wide.pack({"gap": 5}).tolist() == [5]
    assert compile_kernel(line, {"A": "f4", "B": "f4"}).pack().shape == (1,)


def test_kernel_key_tells_when_a_kernel_serves_again():
    types = {"A": "f4", "B": "f4"}
    key = kernel_key(branches, types, {"c": 0.5})
    assert key == kernel_key(branches, types, {"c": 0.7}) == kernel_key(branches, types)
    others = [kernel_key(branches, types, {"c": value}) for value in (1, 2**40, np.float32(1))]
    others += [kernel_key(branches, types, fastmath=True), kernel_key(branches, {"A": "f4", "B": "f8"})]
    assert len({key, *others}) == 6


def test_code_is_deterministic_and_unfused():
    texts = {compile_kernel(found, {"A": "f4", "B": "f4"}).assembly() for _ in range(3) for found in (branches,)}
    assert len(texts) == 1 and "fmadd" not in texts.pop()


def test_fastmath_is_close():
    rng = np.random.default_rng(5)
    a, b = rng.random((5, 40)), rng.random((5, 40))
    expected = {"A": a.copy(), "B": b}
    branches.reference(((1, 5), (1, 39)), expected, {"c": 0.3})
    kernel = compile_kernel(branches, {"A": "f8", "B": "f8"}, fastmath=True)
    run_box(kernel, ((1, 5), (1, 39)), {"A": a, "B": b})
    assert np.allclose(a, expected["A"], rtol=1e-12, atol=1e-12)


def test_an_empty_row_touches_nothing():
    kernel = compile_kernel(line, {"A": "f4", "B": "f4"})
    run_box(kernel, ((1, 1),), {"A": np.zeros(1, "f4"), "B": np.zeros(1, "f4")})
