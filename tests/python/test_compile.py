"""Compiled bodies against plain Python loops over NumPy arrays: every bit, every exception."""

import ctypes
import itertools
import math
import os
import platform
import random
import warnings

import numpy as np
import pytest

from body_generator import HEADER, NestGenerator, load, random_nest
from kernel_helpers import (
    Raised, bits, compare, compare_all_ways, random_array, run_box, shapes_of,
)
from tilewave.body import names as _names
from tilewave.body.typing import Unsupported, infer, scalar, type_of
from tilewave.compile import ROW, compile_kernel, kernel_key
from tilewave.errors import ConfigError
from tilewave.nest import nest

warnings.filterwarnings("ignore", category=RuntimeWarning)

DTYPES = ("f4", "f8", "i4", "i8")
PAIRS = list(itertools.product(DTYPES, DTYPES))
OPERATORS = ("+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=")
RANDOM_BODIES = int(os.environ.get("TILEWAVE_RANDOM_BODIES", "60"))
FIRST_SEED = int(os.environ.get("TILEWAVE_SEED", "20260"))

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.0, 7.25, 1e-30, 1e30, 5e-324, 2.0**31,
          -(2.0**31), 2.0**63, math.pi, 0.1, 88.8, -104.0, 710.0, math.inf, -math.inf, math.nan]
INTS = [0, 1, -1, 2, -2, 3, -7, 10, 2**31 - 1, -(2**31), 12345]


def special(dtype):
    """Numbers where operations change their behaviour, and some ordinary ones."""
    dtype = np.dtype(dtype)
    with np.errstate(all="ignore"):
        if dtype.kind == "i":
            extra = [2**63 - 1, -(2**63), 2**53 + 1, 2**24 + 1] if dtype.itemsize == 8 else []
            return np.array(INTS + extra, dtype)
        return np.concatenate([np.array(FLOATS, dtype), random_array(
            np.random.default_rng(7), 40, dtype, special=0)])


def grid(left, right):
    """Two arrays that pair every value of one list with every value of another."""
    a, b = np.meshgrid(left, right, indexing="ij")
    return np.ascontiguousarray(a), np.ascontiguousarray(b)


def body(tmp_path, text, name="body", head="A, B, i, j"):
    return load(tmp_path, name, f"{HEADER}@nest\ndef body({head}):\n    {text}\n").body


# Functions and operators, one at a time, on all pairs of special values.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", _names.NUMPY_UNARY)
def test_numpy_function_of_one_argument(tmp_path, name, dtype):
    result = infer(getattr(np, name), scalar(dtype)).dtype
    written = "i4" if result.kind == "b" else result.str
    values = special(dtype)
    if dtype[0] == "f":
        extra = np.random.default_rng(3).normal(0, 20, 400).astype(dtype)
        values = np.concatenate([values, extra])
    arrays = {"A": np.zeros((1, len(values)), written), "B": values[None, :]}
    found = body(tmp_path, f"A[i, j] = np.{name}(B[i, j])")
    compare(found, {"A": written, "B": dtype}, arrays["A"].shape, arrays=arrays)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_numpy_functions_of_two_arguments(tmp_path, pair):
    names = [name for name in _names.NUMPY_BINARY if name != "power" or "f" in pair[0] + pair[1]]
    b, c = grid(*map(special, pair))
    for name in names:
        written = infer(getattr(np, name), *map(scalar, pair)).dtype.str
        arrays = {"A": np.zeros(b.shape, written), "B": b, "C": c}
        found = body(tmp_path, f"A[i, j] = np.{name}(B[i, j], C[i, j])", head="A, B, C, i, j")
        compare(found, {"A": written, "B": pair[0], "C": pair[1]}, b.shape, arrays=arrays)


def switch(expressions):
    """A body that computes expression k in row k."""
    lines = [f"{'el' if k else ''}if i == {k}:\n        A[i, j] = {text}"
             for k, text in enumerate(expressions)]
    return "\n    ".join(lines)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_operators_on_elements(tmp_path, pair):
    both = "i" == pair[0][0] == pair[1][0]
    symbols = [symbol for symbol in OPERATORS if not (both and symbol == "/")]
    symbols += [] if both else ["**"]
    b, c = (each.ravel() for each in grid(*map(special, pair)))
    written = "i8" if both else "f8"
    shape = (len(symbols), len(b))
    arrays = {"A": np.zeros(shape, written), "B": np.tile(b, (len(symbols), 1)),
              "C": np.tile(c, (len(symbols), 1))}
    text = switch(f"B[i, j] {symbol} C[i, j]" for symbol in symbols)
    found = body(tmp_path, text, head="A, B, C, i, j")
    compare(found, {"A": written, "B": pair[0], "C": pair[1]}, shape, arrays=arrays)


@pytest.mark.parametrize("value", [
    3, -2, 0, 2**24 + 1, True, 0.3, -0.0, 1e300, math.inf, math.nan, np.float32(0.3),
    np.float64(0.3), np.int32(-7), np.int64(2**40), np.bool_(True),
], ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_on_an_element_and_a_scalar(tmp_path, dtype, value):
    kind = infer(lambda x, y: x + y, scalar(dtype), type_of(value)).dtype
    ints = kind.kind == "i"
    texts = [text for symbol in OPERATORS for text in (f"B[i, j] {symbol} c", f"c {symbol} B[i, j]")
             if not (ints and symbol == "/")]
    texts += ["min(B[i, j], c)", "max(B[i, j], c, B[i, j])", "np.where(B[i, j] > 0, c, B[i, j])",
              "min(c, B[i, j]) * 0.5 > c", "(B[i, j] if B[i, j] > c else c) * 3"]
    if not ints:
        texts += ["B[i, j] ** c", "c ** B[i, j]", "np.minimum(B[i, j], c)", "np.power(B[i, j], c)"]
    values = special(dtype)
    arrays = {"A": np.zeros((len(texts), len(values)), "i8" if ints else "f8"),
              "B": np.tile(values, (len(texts), 1))}
    found = body(tmp_path, switch(texts), head="A, B, i, j, *, c")
    dtypes = {"A": arrays["A"].dtype, "B": dtype}
    compare(found, dtypes, arrays["A"].shape, {"c": value}, arrays=arrays)


@pytest.mark.parametrize("pair", [
    (7, -3), (-3, 7), (7, 2.5), (-0.75, -3), (2.5, -0.75), (True, 7), (2.5, True), (True, True),
    (2**31, -3), (2**31, 2**31), (-0.75, 2**31), (np.float32(1.5), 7), (-0.75, np.float32(1.5)),
], ids=str)
def test_arithmetic_of_scalars_and_indices(tmp_path, pair):
    texts = [f"{a} {symbol} {b}" for symbol in OPERATORS
             for a, b in (("c", "d"), ("i", "c"), ("c", "(j + 1)"), ("(i - j)", "d"))]
    texts += ["-c", "+c", "abs(c - i)", "int(c) + int(d)", "float(c) / 3", "i * j * c", "not c",
              "c and d", "c or d", "c < i < d", "c if i > 3 else d", "min(c, d, i)", "max(i, c)",
              "c ** 2", "i ** 3", "(i + 1) ** -1", "2 ** 10 - c", "1.1 ** c", "abs(c) ** 0.5",
              "math.sqrt(i)", "math.floor(c)", "math.ceil(d)", "math.atan2(c, d)", "np.sqrt(i)",
              "np.maximum(c, i)", "np.sign(i - 3)", "math.pow(2, d)", "int(d) // 2"]
    found = body(tmp_path, switch(texts), head="A, i, j, *, c, d")
    compare(found, {"A": "f8"}, (len(texts), 4), dict(zip("cd", pair, strict=True)))


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_integer_powers(tmp_path, dtype):
    texts = [f"B[i, j] ** {power}" for power in (0, 1, 2, 3, 7, 31)] + ["np.power(B[i, j], 5)"]
    values = special(dtype)
    arrays = {"A": np.zeros((len(texts), len(values)), dtype),
              "B": np.tile(values, (len(texts), 1))}
    compare(body(tmp_path, switch(texts)), {"A": dtype, "B": dtype}, arrays["A"].shape,
            arrays=arrays)


@pytest.mark.parametrize("name", [f"{name}(B[i, j])" for name in _names.MATH_UNARY]
                         + [f"{name}(B[i, j], C[i, j])" for name in _names.MATH_BINARY])
def test_math_functions_and_their_exceptions(tmp_path, name):
    """Each value in a nest of its own run: many raise."""
    found = body(tmp_path, f"A[i, j] = math.{name}", head="A, B, C, i, j" if "C" in name
                 else "A, B, i, j")
    for dtype in ("f4", "f8"):
        kernel = compile_kernel(found, dict.fromkeys(found.arrays, dtype))
        values = special(dtype)[:34]
        if name.startswith(("floor", "ceil")):  # a Python int has 64 bits here
            values = values[~(np.isfinite(values) & (abs(values) >= 2**63))]
        for left, right in itertools.product(values, values[:24] if "C" in name else [0]):
            arrays = {"A": np.zeros((1, 1), dtype), "B": np.full((1, 1), left, dtype)}
            if "C" in name:
                arrays["C"] = np.full((1, 1), right, dtype)
            check_one(found, kernel, arrays)


def check_one(found, kernel, arrays):
    """One point both ways."""
    expected, box = {name: array.copy() for name, array in arrays.items()}, ((0, 1),) * 2
    outcome = []
    for run in (lambda: found.reference(box, expected), lambda: run_box(kernel, box, arrays)):
        try:
            run()
            outcome.append(None)
        except Raised as error:
            outcome.append(error.name)
        except Exception as error:
            outcome.append(type(error).__name__)
    point = {name: array[0, 0] for name, array in arrays.items()}
    assert outcome[0] == outcome[1], (point, outcome)
    assert np.array_equal(bits(expected["A"]), bits(arrays["A"])), (point, expected["A"])


@pytest.mark.parametrize("text", [
    "A[i, j] = B[i, j]", "A[i, j] = float(B[i, j])", "A[i, j] = np.where(B[i, j] == 0, 0, B[i, j])",
    "A[i, j] = int(B[i, j])", "A[i, j] = np.int32(B[i, j])", "A[i, j] = np.int64(B[i, j])",
    "A[i, j] = np.float32(B[i, j])", "A[i, j] = B[i, j] > 0", "A[i, j] = np.float64(B[i, j]) + 1",
    "A[i, j] = np.int32(float(B[i, j]))", "A[i, j] = not B[i, j]", "A[i, j] += B[i, j]",
])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_conversions_and_stores(tmp_path, text, pair):
    found = body(tmp_path, text)
    kernel = compile_kernel(found, dict(zip("AB", pair, strict=True)))
    for value in special(pair[1])[:30]:
        if "int(" in text and "32" not in text and 2**63 <= abs(float(value)) < math.inf:
            continue  # a Python int has 64 bits here
        check_one(found, kernel, {"A": np.ones((1, 1), pair[0]),
                                  "B": np.full((1, 1), value, pair[1])})


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


@pytest.mark.parametrize("cut", [None, 1, 5])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("found", [
    relax, branches, alignment, reads_its_store, line, four, old_values_ahead,
], ids=lambda found: found.name)
def test_bodies(found, dtype, cut):
    shape = {1: (50,), 2: (6, 23), 3: (4, 5, 19), 4: (3, 4, 4, 9)}[found.rank]
    for seed, other in enumerate(DTYPES):
        names = [name for name in found.arrays if name not in found.written]
        compare(found, {found.written[0]: dtype, **dict.fromkeys(names, other)}, shape,
                seed=seed, special=0.05 * (dtype[0] == "f"), cut=cut)


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 33, 100])
def test_vector_loops_of_any_length(rows):
    @nest
    def stencil(A, B, i, j):
        A[i, j] = A[i-1, j] + 0.25 * (B[i, j] + B[i-1, j] + B[i, j+1] + B[i, j-1] + B[i+1, j]
                                      + B[i+1, j+1] + B[i-1, j-1] + B[i-1, j+1])

    compare(stencil, {"A": "f4", "B": "f4"}, (4, rows + 2), seed=rows)


@pytest.mark.parametrize("seed", [FIRST_SEED + k for k in range(RANDOM_BODIES)])
def test_random_body(tmp_path, seed):
    """TILEWAVE_SEED and TILEWAVE_RANDOM_BODIES choose other and more bodies."""
    try:
        found, text = random_nest(tmp_path, seed)
        choose = random.Random(seed)
        dtypes = {name: choose.choice(("f4", "f8", "f4", "f8", "i4", "i8")) for name in "ABC"}
        value = choose.choice([0.3, 2, True, -1.5, np.float32(0.3), np.float64(0.7), np.int64(9)])
        print(text, dtypes, "c =", repr(value))
        compare(found, dtypes, (6, 14), {"c": value}, seed, special=choose.choice([0, 0.1]))
    except ConfigError as refusal:
        pytest.skip(f"refused: {refusal}")


@pytest.mark.parametrize("seed", [FIRST_SEED + k for k in range(RANDOM_BODIES)])
def test_random_nest(tmp_path, seed):
    """Any nest, in every order of rows that its dependences allow, over any strides."""
    try:
        found, text = random_nest(tmp_path, seed, NestGenerator)
        choose, rng = random.Random(seed), np.random.default_rng(seed)
        dtypes = {name: choose.choice(("f4", "f8", "f4", "f8", "i4", "i8")) for name in found.arrays}
        extents = (9, 8, 7)[:found.rank]
        arrays = {}
        if "P" in found.arrays:
            dtypes["P"] = choose.choice(("i4", "i8"))
            wrong = choose.random() < 0.1
            arrays["P"] = rng.integers(-4, 5 if wrong else 4, shapes_of(found, extents)["P"]) \
                .astype(dtypes["P"])
        for table in found.tables:
            shape = (4, 4)[:found.table_rank(table)]
            arrays[table] = random_array(rng, shape, dtypes[table])
        scalars = {"c": choose.choice([0.3, 2, -1.5, np.float32(0.3)]), "m": choose.choice([-4, 0, 3])}
        print(text, dtypes, scalars)
        compare_all_ways(found, dtypes, extents, scalars, seed, choose.choice([0, 0.1]), arrays)
    except ConfigError as refusal:
        pytest.skip(f"refused: {refusal}")


# Errors.


@nest
def guarded(A, B, i, j, *, limit=10):
    A[i, j] = 1
    if B[i, j] > limit:
        raise ValueError("above the limit")
    assert B[i, j] > -limit, "below the limit"
    A[i, j] = 2


@pytest.mark.parametrize(("value", "name", "message", "line"), [
    (11, "ValueError", "above the limit", 4), (-11, "AssertionError", "below the limit", 5)])
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
    found = body(tmp_path, "if B[i, j] > 0:\n        raise KeyError\n    else:\n"
                           "        raise ValueError('no')\n    A[i, j] = 1")
    compare(found, {"A": "f4", "B": "f4"}, (2, 3))


@pytest.mark.parametrize(("text", "name"), [
    ("A[i, j] = c // (j - 2)", "ZeroDivisionError"), ("A[i, j] = 1 / (j - 2)", "ZeroDivisionError"),
    ("A[i, j] = c % (j - 2.0)", "ZeroDivisionError"), ("A[i, j] = 1 // 0", "ZeroDivisionError"),
    ("A[i, j] = (j - 2.0) ** -1", "ZeroDivisionError"),
    ("A[i, j] = 10.0 ** (j * 100)", "OverflowError"),
    ("A[i, j] = math.log(2 - j)", "ValueError"), ("A[i, j] = math.exp(400 * j)", "OverflowError"),
    ("A[i, j] = int(np.inf * j)", "ValueError"), ("A[i, j] = int(np.inf)", "OverflowError"),
    ("A[i, j] = B[i, j] + 2 ** 31", "OverflowError"),
    ("A[i, j] = B[i, j] * (j * 2000000000)", "OverflowError"),
])
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
    code = ROW(kernel.address)(*map(ctypes.addressof, (pointers, steps)), 1,
                               *map(ctypes.addressof, (index, direction)), 0)
    assert kernel.sites[code - 1][0] == "OverflowError" and not data.any()


@pytest.mark.parametrize(("text", "dtypes", "words"), [
    ("A[i, j] = B[i, j] ** B[i, j]", "i4", ["`B[i, j] ** B[i, j]`", "exponent", "constant"]),
    ("A[i, j] = B[i, j] ** -1", "i4", ["negative power"]),
    ("A[i, j] = -(B[i, j] > 0)", "f4", ["- of a NumPy bool"]),
    ("A[i, j] = (B[i, j] > 0) - (B[i, j] < 0)", "f4", ["not supported", "NumPy bool"]),
    ("A[i, j] = np.exp(B[i, j] > 0)", "f4", ["float16"]),
    ("A[i, j] = np.where(B[i, j] > 0, 1.0, B[i, j]) ** 2", "f4", ["** of the result of np.where"]),
    ("x = np.where(B[i, j] > 0, 1.0, 2.0); x += 1; A[i, j] = x", "f4", ["in place", "x = x + ..."]),
    ("A[i, j] = i ** j + B[i, j]", "f4", ["exponent is not a constant"]),
    ("A[i, j] = B[i, j] + 2 ** 70 * i", "f4", ["beyond 64 bits"]),
])
def test_refusals_that_depend_on_types(tmp_path, text, dtypes, words):
    found = body(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        compile_kernel(found, {"A": dtypes, "B": dtypes})
    line = found.function.__code__.co_firstlineno + 2
    assert f"body.py:{line}:" in str(error.value), error.value
    assert all(word in str(error.value) for word in words), error.value


def test_dtypes_that_are_refused():
    for dtype in ("f2", "i2", "u4", "c8", "bool", ">f4"):
        with pytest.raises(ConfigError, match="'A'.*allowed: int32, int64, float32, float64"):
            compile_kernel(line, {"A": dtype, "B": "f4"})
    with pytest.raises(ConfigError, match="needs the dtype of its array 'B'"):
        compile_kernel(line, {"A": "f4"})


def test_unknown_types_name_what_was_given():
    with pytest.raises(Unsupported, match="float16"):
        infer(np.exp, type_of(True))


# Scalars, reuse, code.


def test_scalars_are_packed_by_the_types_compiled_for():
    kernel = compile_kernel(branches, {"A": "f4", "B": "f4"}, {"c": 0.5})
    assert kernel.pack({"c": 2.5}).view("f8").tolist() == [2.5]
    assert kernel.pack().view("f8").tolist() == [0.3]
    with pytest.raises(ConfigError, match="'c'.*compiled for a Python float, given a Python int"):
        kernel.pack({"c": 2})
    narrow = compile_kernel(alignment, {"H": "i4", "S": "i4"}, {"gap": 3})
    assert narrow.pack({"gap": -7}).tolist() == [-7]
    with pytest.raises(ConfigError, match="of 32 bits, given a Python int .*compile again"):
        narrow.pack({"gap": 2**31})
    assert compile_kernel(line, {"A": "f4", "B": "f4"}).pack().shape == (1,)


def test_kernel_key_tells_when_a_kernel_serves_again():
    types = {"A": "f4", "B": "f4"}
    key = kernel_key(branches, types, {"c": 0.5})
    assert key == kernel_key(branches, types, {"c": 0.7}) == kernel_key(branches, types)
    others = [kernel_key(branches, types, {"c": value}) for value in (1, 2**40, np.float32(1))]
    others += [kernel_key(branches, types, fastmath=True),
               kernel_key(branches, {"A": "f4", "B": "f8"})]
    assert len({key, *others}) == 6


def test_code_is_deterministic_and_unfused():
    texts = {compile_kernel(found, {"A": "f4", "B": "f4"}).assembly()
             for _ in range(3) for found in (branches,)}
    assert len(texts) == 1 and "fmadd" not in texts.pop()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for x86 instructions")
def test_rows_without_a_dependence_along_them_are_vector_code():
    @nest
    def jacobi(A, B, i, j):
        A[i, j] = A[i-1, j] + 0.5 * B[i, j]

    @nest
    def chosen(A, B, i, j):
        A[i, j] = max(A[i-1, j], 0) + (0.5 * B[i, j] if B[i, j] > 0.1 else 1.0)

    for found in (jacobi, chosen):
        assert "addps" in compile_kernel(found, {"A": "f4", "B": "f4"}, steps=(1, 1, 1)).assembly()


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


def test_every_function_has_a_translation(tmp_path):
    """A function in the table of names without a translation would be refused at compile time."""
    for key, least, _ in _names.FUNCTIONS.values():
        arguments = ", ".join(["B[i, j]", "2", "3"][:least])
        found = body(tmp_path, f"A[i, j] = {key}({arguments})")
        compile_kernel(found, {"A": "f8", "B": "f8"})
