"""What bodies assign, and conversions between types, against plain Python loops: every bit, every exception."""

import itertools
import math
import warnings

import numpy as np
import pytest

from kernel_bodies import FLOATS, PAIRS, body, check_one, compare_rows, special, switch
from kernel_helpers import compare
import tilewave as tw
from tilewave.kernel.compile import compile_kernel

warnings.filterwarnings("ignore", category=RuntimeWarning)


ASSIGNMENTS = [
    "x, y = B[i, j], A[i, j]\n    x, y = y, x\n    A[i, j] = x - y",
    "A[i, j] = x = B[i, j] * 3\n    A[i, j] += x",
    "x = y = z = B[i, j] + A[i-1, j]\n    y += 1\n    z -= x\n    A[i, j] = x * y + z",
    "A[i, j], B[i, j] = B[i, j], A[i, j]",
    "A[i, j], A[i-1, j] = A[i-1, j], A[i, j]",
    "x: float = B[i, j]\n    y: 'anything[1, 2]' = x\n    z: int\n    z = 3\n    A[i, j] = y + z",
    "(x, y), z = (B[i, j], 2), A[i, j-1]\n    A[i, j] = x * y + z",
    "[x, y] = [A[i, j], B[i, j]]\n    A[i, j] = x or y",
    "a, b = 0, 1\n    a, b = b, a + b\n    a, b = b, a + b\n    A[i, j] = a * B[i, j] + b",
    "x, y = B[i, j], 1\n    if x > y: x, y = y, x\n    A[i, j] = y - x",
    "A[i, j] = B[i, j] = x = A[i, j-1] + 1\n    B[i, j] += x",
    "A[i, j], = B[i, j],",
    "x = 12\n    x &= i\n    x |= 3\n    x ^= j\n    x <<= 2\n    x >>= 1\n    A[i, j] = x + B[i, j]",
]


@pytest.mark.parametrize("text", ASSIGNMENTS)
def test_assignments_of_all_kinds(tmp_path, text):
    found = body(tmp_path, text + ("" if "B" in text else "\n    B[i, j] = 0"))
    for seed, dtypes in enumerate((("f8", "f4"), ("i4", "i2"))):
        compare(found, dict(zip("AB", dtypes, strict=True)), (6, 17), seed=seed)


CONVERSIONS = [
    "A[i, j] = B[i, j]", "A[i, j] = float(B[i, j])", "A[i, j] = np.where(B[i, j] == 0, 0, B[i, j])",
    "A[i, j] = int(B[i, j])", "A[i, j] = np.int32(B[i, j])", "A[i, j] = np.int64(B[i, j])",
    "A[i, j] = np.float32(B[i, j])", "A[i, j] = B[i, j] > 0", "A[i, j] = np.float64(B[i, j]) + 1",
    "A[i, j] = np.int32(float(B[i, j]))", "A[i, j] = not B[i, j]", "A[i, j] += B[i, j]",
    "A[i, j] = np.int8(B[i, j])", "A[i, j] = np.int16(B[i, j])", "A[i, j] = np.uint8(B[i, j])",
    "A[i, j] = np.uint8(int(B[i, j]))", "A[i, j] = np.int8(float(B[i, j]))", "A[i, j] -= 200",
    "A[i, j] = np.where(B[i, j] > 0, 300, B[i, j])", "A[i, j] = -np.abs(B[i, j])",
    "A[i, j] = abs(B[i, j]) - A[i, j]", "A[i, j] = -1", "A[i, j] = 200", "A[i, j] = 0.5",
    "A[i, j] = max(B[i, j], 0)", "A[i, j] = min(B[i, j], 200)", "A[i, j] = int(B[i, j]) * 2",
    "A[i, j] = np.uint8(200) + B[i, j]", "A[i, j] = np.int8(-100) * B[i, j]",
]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_conversions_and_stores(tmp_path, pair):
    """Each point by itself: many raise."""
    found = body(tmp_path, switch(CONVERSIONS, target=""))
    kernel = compile_kernel(found, dict(zip("AB", pair, strict=True)))
    values = special(pair[1])[: len(FLOATS)]
    shape = len(CONVERSIONS), len(values)
    arrays = {"A": np.ones(shape, pair[0]), "B": np.tile(values, (shape[0], 1))}
    for i, j in itertools.product(*map(range, shape)):
        if "int(" in CONVERSIONS[i] and 2**62 <= abs(float(values[j])) < math.inf:
            continue  # a Python int has 64 bits here
        check_one(found, kernel, arrays, (i, j))


@pytest.mark.parametrize("pair", ["f4 f8", "f8 f4"])
def test_the_sign_of_a_zero_outlives_a_choice_and_a_conversion(tmp_path, pair):
    written, read = pair.split()
    texts = [
        "max(B[i, j], 0)", "min(B[i, j], 0)", "0.0 if B[i, j] < 0 else np.float32(B[i, j])",
        "np.float64(B[i, j]) if B[i, j] >= 0 else 0.0", "max(0, B[i, j])", "min(-0.0, B[i, j])",
        "-0.0 if B[i, j] > 0 else float(B[i, j])", "np.where(B[i, j] < 0, 0.0, B[i, j])",
        "max(float(B[i, j]), 0.0)", "min(np.float64(B[i, j]), 0.0)", "max(np.float32(B[i, j]), 0)",
        "float(B[i, j]) if np.float64(B[i, j]) > 0 else 0.0",
    ]
    values = np.array([0.0, -0.0, 1, -1, np.nan, 1e-300, -1e-300], read)
    compare_rows(
        body(tmp_path, switch(texts)), {"A": np.ones((len(texts), 7), written), "B": np.tile(values, (len(texts), 1))}
    )


@tw.nest
def whole(A, B, i):
    A[i] = int(B[i])


@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_ints_of_floats_at_the_ends_of_64_bits(kind):
    end = np.array(2.0**63, kind)[()]
    for value, fits in (
        (end, False), (np.nextafter(end, -end), True), (-end, True),
        (np.nextafter(-end, -np.inf, dtype=kind), False), (np.array(np.inf, kind)[()], False),
    ):
        A, B = np.zeros(2, "i8"), np.array([1.0, value], kind)
        if fits:
            tw.run(whole, A=A, B=B)
            assert A.tolist() == [1, int(value)]
        else:
            with pytest.raises(tw.KernelError, match="OverflowError"):
                tw.run(whole, A=A, B=B)
