"""What a kernel reports when its body raises, and what does not compile."""

import ctypes

import numpy as np
import pytest

from kernel_helpers import Raised, compare, run_box
from kernel_bodies import body, line
from tilewave.nest.types import Unsupported, infer, type_of
from tilewave.kernel.compile import ROW, compile_kernel
from tilewave.errors import ConfigError
from tilewave.nest.nest import nest


@nest
def guarded(A, B, i, j, *, limit=10):
    A[i, j] = 1
    if B[i, j] > limit:
        raise ValueError("above the limit")
    assert B[i, j] > -limit, "below the limit"
    A[i, j] = 2


@pytest.mark.parametrize(
    ("value", "name", "message", "line"),
    [(11, "ValueError", "above the limit", 4), (-11, "AssertionError", "below the limit", 5)],
)
def test_error_sites(value, name, message, line):
    b = np.zeros((3, 20))
    b[1, 7] = value
    a = np.zeros((3, 20))
    kernel = compile_kernel(guarded, {"A": "f8", "B": "f8"})
    assert (name, message, guarded.line + line - 1) in kernel.sites
    with pytest.raises(Raised) as error:
        run_box(kernel, ((0, 3), (0, 20)), {"A": a, "B": b})
    assert (error.value.name, error.value.message, error.value.point) == (name, message, (1, 7))
    expected = np.zeros((3, 20))
    expected[0], expected[1, :7], expected[1, 7] = 2, 2, 1
    assert np.array_equal(a, expected)
    compare(guarded, {"A": "f8", "B": "f8"}, b.shape, arrays={"A": a, "B": b})


def test_a_body_that_always_raises(tmp_path):
    found = body(
        tmp_path, "if B[i, j] > 0:\n        raise KeyError\n    else:\n        raise ValueError('no')\n    A[i, j] = 1"
    )
    compare(found, {"A": "f4", "B": "f4"}, (2, 3))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A[i, j] = c // (j - 2)", "ZeroDivisionError"),
        ("A[i, j] = 1 / (j - 2)", "ZeroDivisionError"),
        ("A[i, j] = c % (j - 2.0)", "ZeroDivisionError"),
        ("A[i, j] = 1 // 0", "ZeroDivisionError"),
        ("A[i, j] = (j - 2.0) ** -1", "ZeroDivisionError"),
        ("A[i, j] = 10.0 ** (j * 100)", "OverflowError"),
        ("A[i, j] = math.log(2 - j)", "ValueError"),
        ("A[i, j] = math.exp(400 * j)", "OverflowError"),
        ("A[i, j] = int(np.inf * j)", "ValueError"),
        ("A[i, j] = int(np.inf)", "OverflowError"),
        ("A[i, j] = B[i, j] + 2 ** 31", "OverflowError"),
        ("A[i, j] = B[i, j] * (j * 2000000000)", "OverflowError"),
    ],
)
def test_exceptions_of_python_arithmetic(tmp_path, text, name):
    found = body(tmp_path, f"unused = B[i, j]\n    {text}", head="A, B, i, j, *, c=5")
    arrays = {"A": np.zeros((2, 6)), "B": np.ones((2, 6), "i4")}
    kernel = compare(found, {"A": "f8", "B": "i4"}, (2, 6), arrays=arrays)
    with pytest.raises(Raised) as error:
        run_box(kernel, ((0, 2), (0, 6)), arrays)
    assert error.value.name == name


def test_python_ints_beyond_64_bits_raise_instead_of_wrapping(tmp_path):
    found = body(tmp_path, "A[i, j] = B[i, j] + c * c * c * j", head="A, B, i, j, *, c")
    arrays = {"A": np.zeros((1, 4)), "B": np.zeros((1, 4))}
    kernel = compile_kernel(found, {"A": "f8", "B": "f8"}, {"c": 2**30})
    with pytest.raises(Raised) as error:
        run_box(kernel, ((0, 1), (0, 4)), arrays, {"c": 2**30})
    assert error.value.name == "OverflowError" and error.value.point == (0, 0)


def test_indices_as_numbers_have_a_bound(tmp_path):
    found = body(tmp_path, "A[i, j] = i + B[i, j]")
    kernel = compile_kernel(found, {"A": "f8", "B": "f8"})
    data = np.zeros(2)
    pointers = (ctypes.c_void_p * 2)(data.ctypes.data, data.ctypes.data)
    steps = (ctypes.c_int64 * 2)(8, 8)
    index, direction = (ctypes.c_int64 * 2)(2**30, 0), (ctypes.c_int64 * 2)(0, 1)
    code = ROW(kernel.address)(
        *map(ctypes.addressof, (pointers, steps)), 1, *map(ctypes.addressof, (index, direction)), 0
    )
    assert kernel.sites[code-1][0] == "OverflowError" and not data.any()


@pytest.mark.parametrize(
    ("text", "dtypes", "words"),
    [
        ("A[i, j] = B[i, j] ** -1", "i4", ["negative power"]),
        ("A[i, j] = -(B[i, j] > 0)", "f4", ["- of a NumPy bool"]),
        ("A[i, j] = (B[i, j] > 0) - (B[i, j] < 0)", "f4", ["not supported", "NumPy bool"]),
        ("A[i, j] = np.exp(B[i, j] > 0)", "f4", ["float16"]),
        ("A[i, j] = np.where(B[i, j] > 0, 1.0, B[i, j]) ** 2", "f4", ["** of the result of np.where"]),
        ("x = np.where(B[i, j] > 0, 1.0, 2.0); x += 1; A[i, j] = x", "f4", ["in place", "x = x + ..."]),
        ("A[i, j] = i ** j + B[i, j]", "f4", ["exponent is not a constant"]),
        ("A[i, j] = B[i, j] + 2 ** 70 * i", "f4", ["beyond 64 bits"]),
    ],
)
def test_refusals_that_depend_on_types(tmp_path, text, dtypes, words):
    found = body(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        compile_kernel(found, {"A": dtypes, "B": dtypes})
    line = found.function.__code__.co_firstlineno + 2
    assert f"body.py:{line}:" in str(error.value), error.value
    assert all(word in str(error.value) for word in words), error.value


def test_dtypes_that_are_refused():
    for dtype in ("f2", "S1", "M8[s]", ">f4", ">i2"):
        with pytest.raises(ConfigError, match="'A'.*allowed: bool, int8, .*uint64, float32"):
            compile_kernel(line, {"A": dtype, "B": "f4"})
    with pytest.raises(ConfigError, match="needs the dtype of its array 'B'"):
        compile_kernel(line, {"A": "f4"})


def test_unknown_types_name_what_was_given():
    with pytest.raises(Unsupported, match="float16"):
        infer(np.exp, type_of(True))
