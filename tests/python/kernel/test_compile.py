"""Compiled bodies against plain Python loops over NumPy arrays: every bit, every exception."""

import itertools
import math
import os
import random
import re
import warnings

import numpy as np
import pytest

from body_generator import HEADER, load, random_nest
from kernel_helpers import Raised, bits, compare, random_array, run_box
from tilewave.nest import names as _names
from tilewave.nest.types import Unsupported, infer, scalar, type_of
from tilewave.kernel.compile import compile_kernel, kernel_key
from tilewave.errors import ConfigError
from tilewave.nest.nest import nest

warnings.filterwarnings("ignore", category=RuntimeWarning)

DTYPES = ("f4", "f8", "i4", "i8", "i1", "i2", "u1")
PAIRS = list(itertools.product(DTYPES, DTYPES))
OPERATORS = ("+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=")
BITS = ("&", "|", "^", "<<", ">>")
RANDOM_BODIES = int(os.environ.get("TILEWAVE_RANDOM_BODIES", "60"))
FIRST_SEED = int(os.environ.get("TILEWAVE_SEED", "20260"))

FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    -2.5,
    3.0,
    7.25,
    1e-30,
    1e30,
    5e-324,
    2.0**31,
    -(2.0**31),
    2.0**63,
    math.pi,
    0.1,
    88.8,
    -104.0,
    710.0,
    math.inf,
    -math.inf,
    math.nan,
    127.0,
    -128.7,
    200.3,
    300.7,
    -40000.0,
    65600.0,
    3000000077.0,
]
INTS = [0, 1, -1, 2, -2, 3, -7, 10, 127, -128, 200, 255, 2**31 - 1, -(2**31), 12345, 2**15 - 1]


def special(dtype):
    """Numbers where operations change their behaviour, and some ordinary ones."""
    dtype = np.dtype(dtype)
    with np.errstate(all="ignore"):
        if dtype.kind in "iu":
            extra = [2**63 - 1, -(2**63), 2**53 + 1, 2**24 + 1]
            inside = np.iinfo(dtype)
            return np.array([n for n in INTS + extra if inside.min <= n <= inside.max], dtype)
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


# Functions and operators, one at a time, on all pairs of special values.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", _names.NUMPY_UNARY)
def test_numpy_function_of_one_argument(tmp_path, name, dtype):
    found = body(tmp_path, f"A[i, j] = np.{name}(B[i, j])")
    result = inferred(getattr(np, name), dtype)
    if result is None:
        refused(found, {"A": "f4", "B": dtype}, f"np.{name}", "float16", np.dtype(dtype).name)
        return
    written = "i4" if result.kind == "b" else result.str
    values = special(dtype)
    if dtype[0] == "f":
        extra = np.random.default_rng(3).normal(0, 20, 400).astype(dtype)
        values = np.concatenate([values, extra])
    arrays = {"A": np.zeros((1, len(values)), written), "B": values[None, :]}
    compare(found, {"A": written, "B": dtype}, arrays["A"].shape, arrays=arrays)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_numpy_functions_of_two_arguments(tmp_path, pair):
    names = [name for name in _names.NUMPY_BINARY if name != "power" or "f" in pair[0] + pair[1]]
    b, c = grid(*map(special, pair))
    for name in names:
        found = body(tmp_path, f"A[i, j] = np.{name}(B[i, j], C[i, j])", head="A, B, C, i, j")
        written = inferred(getattr(np, name), *pair)
        if written is None:
            refused(found, {"A": "f4", "B": pair[0], "C": pair[1]}, f"np.{name}", "float16")
            continue
        arrays = {"A": np.zeros(b.shape, written), "B": b, "C": c}
        compare(found, {"A": written, "B": pair[0], "C": pair[1]}, b.shape, arrays=arrays)


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


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_operators_on_elements(tmp_path, pair):
    both = "f" not in pair[0] + pair[1]
    symbols = [symbol for symbol in OPERATORS if not (both and symbol == "/")]
    symbols += BITS if both else ["**"]
    b, c = (each.ravel() for each in grid(*map(special, pair)))
    written = "i8" if both else "f8"
    shape = (len(symbols), len(b))
    arrays = {"A": np.zeros(shape, written), "B": np.tile(b, (len(symbols), 1)), "C": np.tile(c, (len(symbols), 1))}
    text = switch(f"B[i, j] {symbol} C[i, j]" for symbol in symbols)
    found = body(tmp_path, text, head="A, B, C, i, j")
    compare(found, {"A": written, "B": pair[0], "C": pair[1]}, shape, arrays=arrays)


@pytest.mark.parametrize(
    "value",
    [
        3,
        -2,
        0,
        2**24 + 1,
        True,
        0.3,
        -0.0,
        1e300,
        math.inf,
        math.nan,
        np.float32(0.3),
        np.float64(0.3),
        np.int32(-7),
        np.int64(2**40),
        np.bool_(True),
        -128,
        127,
        128,
        255,
        256,
        -(2**15),
        2**15,
        np.int8(-7),
        np.int16(300),
        np.uint8(200),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_on_an_element_and_a_scalar(tmp_path, dtype, value):
    kind = infer(lambda x, y: x + y, scalar(dtype), type_of(value)).dtype
    ints = kind.kind in "iu"
    texts = [
        text
        for symbol in OPERATORS
        for text in (f"B[i, j] {symbol} c", f"c {symbol} B[i, j]")
        if not (ints and symbol == "/")
    ]
    texts += [
        "min(B[i, j], c)",
        "max(B[i, j], c, B[i, j])",
        "np.where(B[i, j] > 0, c, B[i, j])",
        "min(c, B[i, j]) * 0.5 > c",
        "(B[i, j] if B[i, j] > c else c) * 3",
    ]
    if not ints:
        texts += ["B[i, j] ** c", "c ** B[i, j]", "np.minimum(B[i, j], c)", "np.power(B[i, j], c)"]
    else:
        texts += [text for symbol in BITS for text in (f"B[i, j] {symbol} c", f"c {symbol} B[i, j]")]
        texts += [
            "~B[i, j] & c",
            "(B[i, j] > c) | (B[i, j] < 0)",
            "(B[i, j] == c) ^ True",
            "~(B[i, j] > c)",
            "(B[i, j] > 0) & c",
            "~c ^ B[i, j]",
        ]
    if ints or dtype[0] == "f":  # else of an integer, between a Python int and a float
        texts += ["np.clip(B[i, j], c, 100)", "np.clip(B[i, j], -100, c)", "np.clip(B[i, j], 2, c)"]
    if ints or not isinstance(value, int | np.integer):
        texts += ["np.clip(c, B[i, j], 50)"]
    values = special(dtype)
    arrays = {"A": np.zeros((len(texts), len(values)), "i8" if ints else "f8"), "B": np.tile(values, (len(texts), 1))}
    found = body(tmp_path, switch(texts), head="A, B, i, j, *, c")
    compare_rows(found, arrays, {"c": value})
    if type(value) is int:  # as a constant of the body, too
        compare_rows(body(tmp_path, re.sub(r"\bc\b", repr(value), switch(texts))), arrays)


@pytest.mark.parametrize(
    "pair",
    [
        (7, -3),
        (-3, 7),
        (7, 2.5),
        (-0.75, -3),
        (2.5, -0.75),
        (True, 7),
        (2.5, True),
        (True, True),
        (2**31, -3),
        (2**31, 2**31),
        (-0.75, 2**31),
        (np.float32(1.5), 7),
        (-0.75, np.float32(1.5)),
    ],
    ids=str,
)
def test_arithmetic_of_scalars_and_indices(tmp_path, pair):
    texts = [
        f"{a} {symbol} {b}"
        for symbol in OPERATORS
        for a, b in (("c", "d"), ("i", "c"), ("c", "(j + 1)"), ("(i - j)", "d"))
    ]
    texts += [
        "-c",
        "+c",
        "abs(c - i)",
        "int(c) + int(d)",
        "float(c) / 3",
        "i * j * c",
        "not c",
        "c and d",
        "c or d",
        "c < i < d",
        "c if i > 3 else d",
        "min(c, d, i)",
        "max(i, c)",
        "c ** 2",
        "i ** 3",
        "(i + 1) ** -1",
        "2 ** 10 - c",
        "1.1 ** c",
        "abs(c) ** 0.5",
        "math.sqrt(i)",
        "math.floor(c)",
        "math.ceil(d)",
        "math.atan2(c, d)",
        "np.sqrt(i)",
        "np.maximum(c, i)",
        "np.sign(i - 3)",
        "math.pow(2, d)",
        "int(d) // 2",
    ]
    found = body(tmp_path, switch(texts), head="A, i, j, *, c, d")
    compare(found, {"A": "f8"}, (len(texts), 4), dict(zip("cd", pair, strict=True)))


@pytest.mark.parametrize(
    "pair",
    [
        (7, 3),
        (-3, 70),
        (2**40, 21),
        (2**62, 1),
        (-(2**62), 1),
        (-1, 63),
        (1, 63),
        (0, 10**6),
        (5, -2),
        (True, 3),
        (True, False),
        (-(2**63), 62),
        (2**63 - 1, 0),
        (6, 200),
        (np.int8(-3), 7),
        (7, np.int8(3)),
        (np.bool_(True), True),
        (np.uint8(200), np.int16(-3)),
        (np.bool_(True), np.int64(5)),
    ],
    ids=str,
)
def test_bits_of_scalars_and_indices(tmp_path, pair):
    texts = [
        f"{a} {symbol} {b}"
        for symbol in BITS
        for a, b in (("c", "d"), ("i", "d"), ("c", "j"), ("(i - j)", "(j + 1)"), ("c", "2"), ("3", "d"))
    ]
    texts += [
        "~c",
        "~i",
        "~(i > j)",
        "(i > j) & (c > d)",
        "(i > j) | c",
        "(i < 3) ^ (j < 2)",
        "~c & 255",
        "(c & 15) | ((d & 15) << 4)",
        "c >> 3 << 3",
        "(c >> 70) + (i >> 2)",
        "i & j | 1 ^ 3",
        "1 << 40 >> 38",
        "~5",
        "~True",
        "pow(c, 2)",
        "pow(c, i, 7)",
        "pow(i, j, -5)",
        "pow(c, 5, d)",
        "pow(-3, j, 2**31)",
        "pow(7, 100, 13)",
        "round(c)",
        "round(c, 2)",
    ]
    if not all(type(value) in (bool, int) for value in pair):
        texts = [text for text in texts if text.count(",") != 2 and "round(c" not in text]
    found = body(tmp_path, switch(texts), head="A, i, j, *, c, d")
    values = dict(zip("cd", pair, strict=True))
    kernel = compile_kernel(found, {"A": "i8"}, values)
    for i, j in itertools.product(range(len(texts)), range(0, 5, 2)):
        compare(
            found,
            {"A": "i8"},
            None,
            values,
            arrays={"A": np.zeros((len(texts), 5), "i8")},
            kernel=kernel,
            box=((i, i + 1), (j, j + 1)),
        )


ROUNDED = [
    0.5,
    1.5,
    2.5,
    -0.5,
    -1.5,
    0.125,
    0.375,
    2.675,
    1.005,
    -2.675,
    1e-9,
    0.0,
    -0.0,
    -0.001,
    12345.678,
    1e15 + 0.3,
    2.0**52 + 1,
    1e300,
    5e-324,
    -7.5,
    0.15,
    0.25,
    0.35,
    1e22,
    123456789.123456789,
    2.5e-5,
    5e-3,
    1.5e-2,
    math.nan,
    math.inf,
    -math.inf,
    0.045,
    1.115,
    4503599627370495.5,
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding(tmp_path, dtype):
    """Python's and NumPy's, of elements and of Python numbers, to all digits."""
    digits = [0, 1, 2, 3, 7, 15, 22, -1, -3]
    texts = [
        "round(B[i, j])",
        "np.round(B[i, j])",
        "np.rint(B[i, j])",
        "round(float(B[i, j]))",
        "np.around(B[i, j], 2)",
        "np.round(float(B[i, j]), 1)",
    ]
    texts += [f"round(B[i, j], {n})" for n in digits if n >= 0 or dtype[0] == "f"]
    texts += [f"round(float(B[i, j]), {n})" for n in digits if n >= 0]
    texts += [f"np.round(B[i, j], {n})" for n in digits if n >= 0 or dtype[0] == "f"]
    rng = np.random.default_rng(5)
    random_values = (
        np.concatenate([rng.normal(size=60), np.round(rng.normal(size=60) * 100, 3), rng.integers(0, 2000, 60) / 8])
        * 10.0
    )
    values = (
        special(dtype)
        if dtype[0] != "f"
        else np.array([x for x in (*ROUNDED, *random_values) if dtype == "f8" or not 1e38 < abs(x) < math.inf], dtype)
    )
    if dtype in ("i1", "u1"):
        texts = [text for text in texts if "rint" not in text]
    arrays = {"A": np.zeros((len(texts), len(values))), "B": np.tile(values, (len(texts), 1))}
    found = body(tmp_path, switch(texts))
    kernel = compile_kernel(found, {"A": "f8", "B": dtype})
    for i, text in enumerate(texts):
        whole = text in ("round(B[i, j])", "round(float(B[i, j]))")  # an int has 64 bits here
        boxes = [(j, j + 1) for j in range(len(values)) if not whole or not 2**63 <= abs(float(values[j])) < math.inf]
        for columns in boxes if text.startswith("round(") else [(0, len(values))]:
            compare(found, {"A": "f8", "B": dtype}, None, arrays=arrays, kernel=kernel, box=((i, i + 1), columns))


@pytest.mark.parametrize(
    "text",
    [
        "round(B[i, j], -1)",
        "round(float(B[i, j]), -2)",
        "round(B[i, j], i)",
        "round(B[i, j], 30)",
        "np.round(B[i, j], c)",
        "np.clip(B[i, j], 0.5, c)",
        "B[i, j] & 1.5",
        "~float(B[i, j])",
        "pow(B[i, j], 2, 3)",
        "B[i, j] << 0.5",
        "(1 << 5000)",
    ],
)
def test_what_has_no_exact_translation_is_refused(tmp_path, text):
    found = body(
        tmp_path, f"A[i, j] = {text} + B[i, j]", head="A, B, i, j" + ", *, c" * ("c" in text.replace("clip", ""))
    )
    with pytest.raises(ConfigError, match=r"body.py:\d+:\d+: .*not supported: "):
        compile_kernel(found, {"A": "i8", "B": "i8"}, {"c": 3} if found.scalars else None)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_clip(tmp_path, pair):
    b, c = (each.ravel() for each in grid(*map(special, pair)))
    d = np.random.default_rng(9).permutation(c)
    texts = [
        "np.clip(B[i, j], C[i, j], D[i, j])",
        "np.clip(B[i, j], 0, D[i, j])",
        "np.clip(C[i, j], -0.0, 1.0)",
        "np.clip(B[i, j], C[i, j], 0.0)",
        "np.clip(float(B[i, j]), C[i, j], D[i, j])",
        "np.clip(B[i, j], -1, 1) + np.clip(C[i, j], B[i, j], 7.5)",
    ]
    if pair[0][0] != "f" and pair[1][0] == "f":
        del texts[1]  # refused: of an integer, between a Python int and a float
    found = body(tmp_path, switch(texts), head="A, B, C, D, i, j")
    arrays = {
        "A": np.zeros((len(texts), len(b))),
        **{name: np.tile(values, (len(texts), 1)) for name, values in zip("BCD", (b, c, d), strict=True)},
    }
    compare_rows(found, arrays)


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


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype[0] != "f"])
def test_integer_powers(tmp_path, dtype):
    texts = [f"B[i, j] ** {power}" for power in (0, 1, 2, 3, 7, 31, 127, 128, 255, 256, 40000)]
    texts += ["np.power(B[i, j], 5)", "np.power(B[i, j], 200)"]
    values = special(dtype)
    arrays = {"A": np.zeros((len(texts), len(values)), dtype), "B": np.tile(values, (len(texts), 1))}
    compare_rows(body(tmp_path, switch(texts)), arrays)


@pytest.mark.parametrize(
    "name",
    [f"{name}(B[i, j])" for name in _names.MATH_UNARY] + [f"{name}(B[i, j], C[i, j])" for name in _names.MATH_BINARY],
)
def test_math_functions_and_their_exceptions(tmp_path, name):
    """Each value in a nest of its own run: many raise."""
    found = body(tmp_path, f"A[i, j] = math.{name}", head="A, B, C, i, j" if "C" in name else "A, B, i, j")
    for dtype in ("f4", "f8"):
        if name.startswith("trunc") and dtype == "f4":
            refused(found, dict.fromkeys(found.arrays, dtype), "not define it for NumPy float32")
            continue
        kernel = compile_kernel(found, dict.fromkeys(found.arrays, dtype))
        values = special(dtype)[:34]
        if name.startswith(("floor", "ceil", "trunc")):  # a Python int has 64 bits here
            values = values[~(np.isfinite(values) & (abs(values) >= 2**63))]
        for left, right in itertools.product(values, values[:24] if "C" in name else [0]):
            arrays = {"A": np.zeros((1, 1), dtype), "B": np.full((1, 1), left, dtype)}
            if "C" in name:
                arrays["C"] = np.full((1, 1), right, dtype)
            check_one(found, kernel, arrays)


BEYOND_DOUBLES = [2**53 + 1, -(2**53) - 1, 2**53 + 3, 2**62 + 1, 2**63 - 1025, -(2**63) + 1, 2**53, 5, -7, 0]


@pytest.mark.parametrize(
    "text",
    [
        *(f"math.{name}({{}})" for name in ("floor", "ceil")),
        "int(math.fabs({}))",
        "int(math.copysign({}, -1))",
        "int(math.fmod({}, 1000))",
        "abs({})",
        "int({})",
        "int(float({}))",
        "{} // 3",
        "{} % 1000",
        "{} // -7",
        "np.floor({})",
        "int(math.sqrt(abs({})))",
        "{} == float({})",
        "int({} // 3.0)",
        "int({} % 1000.0)",
        "int(np.fmod({}, 1000))",
        "{} ** 1",
        "{} < 2.0**53",
        "int(abs({}) ** 0.5)",
    ],
)
def test_ints_beyond_doubles(tmp_path, text):
    """Where Python and NumPy go through a double, the kernel does, and only there; elements and Python ints."""
    found = body(tmp_path, switch([text.format("B[i, j]", "B[i, j]")]))
    arrays = {"A": np.zeros((1, len(BEYOND_DOUBLES)), "i8"), "B": np.array([BEYOND_DOUBLES], "i8")}
    kernel = compile_kernel(found, {"A": "i8", "B": "i8"})
    for j in range(len(BEYOND_DOUBLES)):
        compare(found, {"A": "i8", "B": "i8"}, None, arrays=arrays, kernel=kernel, box=((0, 1), (j, j + 1)))
    scalar = body(tmp_path, switch([text.format("c", "c")]), head="A, i, j, *, c")
    texts = body(tmp_path, switch([f"math.trunc(c) + {text.format('c', 'c')} * 0"]), head="A, i, j, *, c")
    for value in BEYOND_DOUBLES:
        for each in (scalar, texts):
            compare(each, {"A": "i8"}, (1, 2), {"c": value})


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


CONVERSIONS = [
    "A[i, j] = B[i, j]",
    "A[i, j] = float(B[i, j])",
    "A[i, j] = np.where(B[i, j] == 0, 0, B[i, j])",
    "A[i, j] = int(B[i, j])",
    "A[i, j] = np.int32(B[i, j])",
    "A[i, j] = np.int64(B[i, j])",
    "A[i, j] = np.float32(B[i, j])",
    "A[i, j] = B[i, j] > 0",
    "A[i, j] = np.float64(B[i, j]) + 1",
    "A[i, j] = np.int32(float(B[i, j]))",
    "A[i, j] = not B[i, j]",
    "A[i, j] += B[i, j]",
    "A[i, j] = np.int8(B[i, j])",
    "A[i, j] = np.int16(B[i, j])",
    "A[i, j] = np.uint8(B[i, j])",
    "A[i, j] = np.uint8(int(B[i, j]))",
    "A[i, j] = np.int8(float(B[i, j]))",
    "A[i, j] -= 200",
    "A[i, j] = np.where(B[i, j] > 0, 300, B[i, j])",
    "A[i, j] = -np.abs(B[i, j])",
    "A[i, j] = abs(B[i, j]) - A[i, j]",
    "A[i, j] = -1",
    "A[i, j] = 200",
    "A[i, j] = 0.5",
    "A[i, j] = max(B[i, j], 0)",
    "A[i, j] = min(B[i, j], 200)",
    "A[i, j] = int(B[i, j]) * 2",
    "A[i, j] = np.uint8(200) + B[i, j]",
    "A[i, j] = np.int8(-100) * B[i, j]",
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
@pytest.mark.parametrize(
    "found",
    [
        relax,
        branches,
        alignment,
        reads_its_store,
        line,
        four,
        old_values_ahead,
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


@pytest.mark.parametrize(
    "found", [many_arrays, eight_neighbours, branches, old_values_ahead], ids=lambda found: found.name
)
def test_llvm_prints_nothing(found, capfd):
    for dtype in ("f4", "i8"):
        for steps in (None, (1,) * len(found.places), (2,) * len(found.places)):
            compile_kernel(found, dict.fromkeys(found.arrays, dtype), steps=steps).assembly()
    printed = capfd.readouterr()
    assert printed.err == printed.out == ""


@pytest.mark.parametrize("seed", [FIRST_SEED + k for k in range(RANDOM_BODIES)])
def test_random_body(tmp_path, seed):
    """TILEWAVE_SEED and TILEWAVE_RANDOM_BODIES choose other and more bodies."""
    try:
        choose = random.Random(seed)
        small = "i1", "i2", "u1"
        kinds = choose.choice((("f4", "f8"), ("f4", "f8", "i4", "i8"), small, DTYPES))
        found, text = random_nest(tmp_path, seed, ints=kinds == small)
        dtypes = {name: choose.choice(kinds) for name in "ABC"}
        value = choose.choice(
            [
                0.3,
                2,
                True,
                -1.5,
                np.float32(0.3),
                np.float64(0.7),
                np.int64(9),
                200,
                -3,
                np.int8(-5),
                np.int16(300),
                np.uint8(250),
            ]
        )
        print(text, dtypes, "c =", repr(value))
        compare(found, dtypes, (6, 14), {"c": value}, seed, special=choose.choice([0, 0.1]))
    except ConfigError as refusal:
        pytest.skip(f"refused: {refusal}")


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


@pytest.mark.parametrize("pair", ["f4 f8", "f8 f4"])
def test_the_sign_of_a_zero_outlives_a_choice_and_a_conversion(tmp_path, pair):
    written, read = pair.split()
    texts = [
        "max(B[i, j], 0)",
        "min(B[i, j], 0)",
        "0.0 if B[i, j] < 0 else np.float32(B[i, j])",
        "np.float64(B[i, j]) if B[i, j] >= 0 else 0.0",
        "max(0, B[i, j])",
        "min(-0.0, B[i, j])",
        "-0.0 if B[i, j] > 0 else float(B[i, j])",
        "np.where(B[i, j] < 0, 0.0, B[i, j])",
        "max(float(B[i, j]), 0.0)",
        "min(np.float64(B[i, j]), 0.0)",
        "max(np.float32(B[i, j]), 0)",
        "float(B[i, j]) if np.float64(B[i, j]) > 0 else 0.0",
    ]
    values = np.array([0.0, -0.0, 1, -1, np.nan, 1e-300, -1e-300], read)
    compare_rows(
        body(tmp_path, switch(texts)), {"A": np.ones((len(texts), 7), written), "B": np.tile(values, (len(texts), 1))}
    )


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
        compile_kernel(found, {"A": "c16" if "complex" in key else "f8", "B": "f8"})
