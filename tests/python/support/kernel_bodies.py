"""Bodies for tests of kernels, and values where operations change their behaviour."""

import itertools
import math
import os
import warnings

import numpy as np
import pytest

from bodies import HEADER, load
from kernel_helpers import Raised, bits, compare, random_array, run_box
from tilewave.nest.types import Unsupported, infer, scalar
from tilewave.kernel.compile import compile_kernel
from tilewave.errors import ConfigError
from tilewave.nest.nest import nest

warnings.filterwarnings("ignore", category=RuntimeWarning)


DTYPES = ("f4", "f8", "i4", "i8", "i1", "i2", "u1", "u2", "u4", "u8")
PAIRS = list(itertools.product(DTYPES, DTYPES))
OPERATORS = ("+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=")
BITS = ("&", "|", "^", "<<", ">>")
RANDOM_BODIES = int(os.environ.get("TILEWAVE_RANDOM_BODIES", "60"))
FIRST_SEED = int(os.environ.get("TILEWAVE_SEED", "20260"))
#: Seeds of random bodies; a third of them also without --long.
SEEDS = [
    pytest.param(FIRST_SEED + k, marks=pytest.mark.long if 3 * k >= RANDOM_BODIES else ()) for k in range(RANDOM_BODIES)
]


FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.0, 7.25, 1e-30, 1e30, 5e-324, 2.0**31, -(2.0**31), 2.0**63,
    math.pi, 0.1, 88.8, -104.0, 710.0, math.inf, -math.inf, math.nan, 127.0, -128.7, 200.3, 300.7, -40000.0,
    65600.0, 3000000077.0,
]
INTS = [0, 1, -1, 2, -2, 3, -7, 10, 127, -128, 200, 255, 2**31 - 1, -(2**31), 12345, 2**15 - 1]


def special(dtype):
    """Numbers where operations change their behaviour, and some ordinary ones."""
    dtype = np.dtype(dtype)
    with np.errstate(all="ignore"):
        if dtype.kind in "iu":
            extra = [2**63 - 1, -(2**63), 2**53 + 1, 2**24 + 1, 2**16 - 1, 2**32 - 1, 2**63, 2**64 - 1]
            inside = np.iinfo(dtype)
            return np.array([n for n in INTS + extra if inside.min <= n <= inside.max], dtype)
        if dtype.kind == "b":
            return np.array([False, True])
        return np.concatenate([np.array(FLOATS, dtype), random_array(np.random.default_rng(7), 40, dtype, special=0)])


def grid(left, right):
    """Two arrays that pair every value of one list with every value of another."""
    a, b = np.meshgrid(left, right, indexing="ij")
    return np.ascontiguousarray(a), np.ascontiguousarray(b)


def inferred(function, *dtypes):
    """dtype of a function of elements; None where NumPy computes in one that is not supported."""
    try:
        return infer(function, *map(scalar, dtypes)).dtype
    except Unsupported:
        return None


def refused(found, dtypes, *words):
    """Compiling fails with a message that has these words."""
    with pytest.raises(ConfigError) as error:
        compile_kernel(found, dtypes)
    assert all(word in str(error.value) for word in words), error.value


def body(tmp_path, text, name="body", head="A, B, i, j"):
    return load(tmp_path, name, f"{HEADER}@nest\ndef body({head}):\n    {text}\n").body


def switch(expressions, target="A[i, j] = "):
    """A body that computes expression k in row k."""
    lines = [f"{'el' if k else ''}if i == {k}:\n        {target}{text}" for k, text in enumerate(expressions)]
    return "\n    ".join(lines)


def compare_rows(found, arrays, scalars=None):
    """Each row in a run of its own, so that one that raises does not hide the others."""
    dtypes = {name: array.dtype for name, array in arrays.items()}
    kernel = compile_kernel(found, dtypes, scalars)
    rows, columns = arrays["A"].shape
    for row in range(rows):
        compare(found, dtypes, None, scalars, arrays=arrays, kernel=kernel, box=((row, row + 1), (0, columns)))
    return kernel


def check_one(found, kernel, arrays, at=(0, 0)):
    """One point both ways."""
    expected = {name: array.copy() for name, array in arrays.items()}
    box = tuple((index, index + 1) for index in at)
    outcome = []
    for run in (lambda: found.reference(box, expected), lambda: run_box(kernel, box, arrays)):
        try:
            run()
            outcome.append(None)
        except Raised as error:
            outcome.append(error.name)
        except Exception as error:
            outcome.append(type(error).__name__)
    point = {name: array[at] for name, array in arrays.items()}
    assert outcome[0] == outcome[1], (point, outcome)
    assert np.array_equal(bits(expected["A"]), bits(arrays["A"])), (point, at, expected["A"][at])


# Bodies as users write them.


@nest
def relax(A, i, j, k):
    A[i, j, k] = np.sqrt(A[i-1, j, k]) + np.sqrt(A[i, j-1, k]) + np.sqrt(A[i, j, k-1])


@nest
def branches(A, B, i, j, *, c=0.3):
    """Stores on some paths only."""
    x = max(B[i, j+1], 0) * c
    if A[i-1, j] > x or B[i, j] < 0.1:
        A[i, j] = np.exp(x) - A[i, j-1] ** 2
        A[i, j] *= 0.5
    elif i > 2:
        y = 3 if x > 1 else 0.5
        y -= 1
        A[i, j] += y // 2 + B[i-1, j] % 0.7 + i / (j + 1)
    else:
        pass


@nest
def alignment(H, S, i, j, *, gap=2):
    score = max(H[i-1, j-1] + S[i, j], H[i-1, j] - gap, H[i, j-1] - gap, 0)
    H[i, j] = score


@nest
def reads_its_store(A, B, i, j):
    before = A[i, j]
    A[i, j] = B[i, j] + 1
    A[i, j] = A[i, j] * 2 + before + A[i, j-2]


@nest
def line(A, B, i):
    A[i] = A[i-1] * np.float32(0.5) + B[i+2]


@nest
def four(A, B, i, j, k, m, *, c=np.float32(0.1)):
    A[i, j, k, m] = A[i-1, j, k, m] + c * A[i, j-1, k-1, m] - B[i, j, k, m-1] + m * 0.5


@nest
def old_values_ahead(A, i, j):
    A[i, j] = A[i, j+1] + A[i+1, j-1] * 0.25 + A[i, j-2]
