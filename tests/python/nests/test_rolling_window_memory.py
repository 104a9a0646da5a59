"""A table of which a rolling window is kept takes the memory of its border; one that cannot is stored, and said to be.
"""

import subprocess
import sys

import numpy as np
import pytest

import tilewave as tw
from tilewave.nest.bounds import loop_bounds
from plain_loops import plain_loops

MOST_MB = 64

ALIGNMENT = """
import resource
import sys
import numpy as np
import tilewave as tw


@tw.nest
def align(H, E, F, S, a, b, i, j):
    E[i, j] = max(E[i, j-1] - 1, H[i, j-1] - 3)
    F[i, j] = max(F[i-1, j] - 1, H[i-1, j] - 3)
    H[i, j] = max(0, max(H[i-1, j-1] + S[a[i-1], b[j-1]], max(E[i, j], F[i, j])))


n = int(sys.argv[1])
letters = np.random.default_rng(0).integers(0, 4, n - 1).astype("u1")
S = np.where(np.eye(4, dtype=bool), 1, -1).astype("i2")
report = tw.run(align, H=tw.field((n, n), "i2", keep="window"), E=tw.scratch("i2"), F=tw.scratch("i2"), S=S,
                a=letters, b=letters,
                reduce={"best": tw.max("H"), "where": tw.argmax("H")})
assert not report.stored, report
assert report.results == {"best": n - 1, "where": (n - 1, n - 1)}, report.results  # a against itself
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_kb(folder, n):
    script = folder / "alignment.py"
    script.write_text(ALIGNMENT)
    done = subprocess.run([sys.executable, script, str(n)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def test_an_alignment_takes_the_memory_of_its_border(tmp_path):
    small, large = peak_kb(tmp_path, 200), peak_kb(tmp_path, 20000)
    assert large - small < MOST_MB << 10, f"{(large - small) >> 10} MB more than a small one"


@tw.nest
def keeps(H, B, W, i, j):
    if W[i, j] > 0:
        H[i, j] = H[i-1, j] + W[i, j]
    B[i, j] = H[i, j]


@tw.nest
def ahead(H, B, W, i, j):
    H[i, j] = H[i-1, j] + 2 * H[i, j+1] + W[i, j]
    B[i, j] = H[i, j]


@tw.nest
def in_place(H, B, W, i, j):
    H[i, j] = H[i, j] * 2 + H[i-1, j] + W[i, j]
    B[i, j] = H[i, j]


@tw.nest
def along_a_line(H, B, W, i):
    H[i] = H[i-1] + W[i]
    B[i] = H[i]


@pytest.mark.parametrize("nest", [keeps, ahead, in_place, along_a_line], ids=lambda nest: nest.name)
@pytest.mark.parametrize("start", ["array", "number", "function", "scratch"])
def test_stored_whole_where_the_window_will_not_do(nest, start):
    shape = (7, 8)[: len(nest.indices)]
    rng = np.random.default_rng(3)
    arrays = {name: rng.integers(-9, 9, shape) for name in nest.arrays}
    if start in ("number", "scratch"):
        arrays["H"][...] = 4
    values = arrays["H"].copy()
    given = {name: tw.field(shape, "i8", init=array) for name, array in arrays.items() if name != "H"}
    given["H"] = (
        tw.scratch("i8", 4)
        if start == "scratch"
        else tw.field(
            shape, "i8", keep="window", init={"array": values, "number": 4, "function": lambda *x: values[x]}[start]
        )
    )
    for _ in range(2):  # each begins with the start values
        expected = plain_b(nest, shape, arrays)
        report = tw.run(nest, **given, reduce={"sum": tw.sum("B")})
        assert report.stored == ("H",)
        assert "stored whole" in str(report)
        np.testing.assert_array_equal(given["B"].gather(), expected)
        arrays["B"] = expected


def plain_b(nest, shape, arrays):
    arrays = {name: array.copy() for name, array in arrays.items()}
    plain_loops(nest, loop_bounds(nest.indices, nest.iteration_box(dict.fromkeys(nest.arrays, shape))), arrays)
    return arrays["B"]


@tw.nest
def columns(M, i, j, p):
    M[i, j, p] = max(M[i-1, j-1, p], M[i, j-1, p]) + 1


def test_a_window_that_only_the_sample_of_a_plan_could_have():
    """Tiles that cut a third loop store the array whole; so does the smaller problem on which such tiles are timed."""
    n, p = 128, 10_000
    M = tw.field((n, n, p), "i2", keep="window")
    report = tw.run(columns, M=M, reduce={"sum": tw.sum("M")}, plan={"tile": (n - 1, n - 2, 512)})
    assert report.stored == ("M",)
    assert report.results["sum"] == p * (n - 1) * sum(range(1, n))  # M[i, j, p] = j
