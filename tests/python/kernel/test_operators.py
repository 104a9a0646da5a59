"""Operators on elements, scalars and indices against plain Python loops: every bit, every exception."""

import itertools
import math
import re
import warnings

import numpy as np
import pytest

from kernel_bodies import BITS, DTYPES, OPERATORS, PAIRS, body, compare_rows, grid, special, switch
from kernel_helpers import compare
from tilewave.nest.types import infer, scalar, type_of
from tilewave.kernel.compile import compile_kernel

warnings.filterwarnings("ignore", category=RuntimeWarning)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_operators_on_elements(tmp_path, pair):
    both = "f" not in pair[0] + pair[1]
    symbols = [symbol for symbol in OPERATORS if not (both and symbol == "/")]
    floats = np.result_type(*pair).kind == "f"  # also of uint64 with signed integers
    symbols += ["**"] if not both else [] if floats else BITS
    b, c = (each.ravel() for each in grid(*map(special, pair)))
    written = "f8" if floats else "i8"
    shape = (len(symbols), len(b))
    arrays = {"A": np.zeros(shape, written), "B": np.tile(b, (len(symbols), 1)), "C": np.tile(c, (len(symbols), 1))}
    text = switch(f"B[i, j] {symbol} C[i, j]" for symbol in symbols)
    found = body(tmp_path, text, head="A, B, C, i, j")
    compare(found, {"A": written, "B": pair[0], "C": pair[1]}, shape, arrays=arrays)


@pytest.mark.parametrize(
    "value",
    [
        3, -2, 0, 2**24 + 1, True, 0.3, -0.0, 1e300, math.inf, math.nan, np.float32(0.3), np.float64(0.3),
        np.int32(-7), np.int64(2**40), np.bool_(True), -128, 127, 128, 255, 256, -(2**15), 2**15, np.int8(-7),
        np.int16(300), np.uint8(200),
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
        "min(B[i, j], c)", "max(B[i, j], c, B[i, j])", "np.where(B[i, j] > 0, c, B[i, j])",
        "min(c, B[i, j]) * 0.5 > c", "(B[i, j] if B[i, j] > c else c) * 3",
    ]
    if not ints:
        texts += ["B[i, j] ** c", "c ** B[i, j]", "np.minimum(B[i, j], c)", "np.power(B[i, j], c)"]
    else:
        texts += [text for symbol in BITS for text in (f"B[i, j] {symbol} c", f"c {symbol} B[i, j]")]
        texts += [
            "~B[i, j] & c", "(B[i, j] > c) | (B[i, j] < 0)", "(B[i, j] == c) ^ True", "~(B[i, j] > c)",
            "(B[i, j] > 0) & c", "~c ^ B[i, j]",
        ]
    if ints or dtype[0] == "f":  # else of an integer, between a Python int and a float
        texts += ["np.clip(B[i, j], c, 100)", "np.clip(B[i, j], -100, c)", "np.clip(B[i, j], 2, c)"]
    whole = isinstance(value, int | np.integer)
    if not whole or ints and not (dtype == "u8" and type(value) is int):
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
        (7, -3), (-3, 7), (7, 2.5), (-0.75, -3), (2.5, -0.75), (True, 7), (2.5, True), (True, True), (2**31, -3),
        (2**31, 2**31), (-0.75, 2**31), (np.float32(1.5), 7), (-0.75, np.float32(1.5)),
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
        "-c", "+c", "abs(c - i)", "int(c) + int(d)", "float(c) / 3", "i * j * c", "not c", "c and d", "c or d",
        "c < i < d", "c if i > 3 else d", "min(c, d, i)", "max(i, c)", "c ** 2", "i ** 3", "(i + 1) ** -1",
        "2 ** 10 - c", "1.1 ** c", "abs(c) ** 0.5", "math.sqrt(i)", "math.floor(c)", "math.ceil(d)",
        "math.atan2(c, d)", "np.sqrt(i)", "np.maximum(c, i)", "np.sign(i - 3)", "math.pow(2, d)", "int(d) // 2",
    ]
    found = body(tmp_path, switch(texts), head="A, i, j, *, c, d")
    compare(found, {"A": "f8"}, (len(texts), 4), dict(zip("cd", pair, strict=True)))


@pytest.mark.parametrize(
    "pair",
    [
        (7, 3), (-3, 70), (2**40, 21), (2**62, 1), (-(2**62), 1), (-1, 63), (1, 63), (0, 10**6), (5, -2), (True, 3),
        (True, False), (-(2**63), 62), (2**63 - 1, 0), (6, 200), (np.int8(-3), 7), (7, np.int8(3)),
        (np.bool_(True), True), (np.uint8(200), np.int16(-3)), (np.bool_(True), np.int64(5)),
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
        "~c", "~i", "~(i > j)", "(i > j) & (c > d)", "(i > j) | c", "(i < 3) ^ (j < 2)", "~c & 255",
        "(c & 15) | ((d & 15) << 4)", "c >> 3 << 3", "(c >> 70) + (i >> 2)", "i & j | 1 ^ 3", "1 << 40 >> 38", "~5",
        "~True", "pow(c, 2)", "pow(c, i, 7)", "pow(i, j, -5)", "pow(c, 5, d)", "pow(-3, j, 2**31)",
        "pow(7, 100, 13)", "round(c)", "round(c, 2)",
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


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype[0] != "f"])
def test_integer_powers(tmp_path, dtype):
    texts = [f"B[i, j] ** {power}" for power in (0, 1, 2, 3, 7, 31, 127, 128, 255, 256, 40000)]
    texts += ["np.power(B[i, j], 5)", "np.power(B[i, j], 200)"]
    values = special(dtype)
    arrays = {"A": np.zeros((len(texts), len(values)), dtype), "B": np.tile(values, (len(texts), 1))}
    compare_rows(body(tmp_path, switch(texts)), arrays)


@pytest.mark.parametrize("number", [2**60 + 2**36 + 1, -(2**60) - 2**36 - 1, 2**60 + 3 * 2**36 - 1, 2**24 + 1])
def test_ints_that_are_rounded_twice(tmp_path, number):
    """To a double and then to float32, as NumPy does it: the first number is above the middle of two of the latter, its
    double is the middle.
    """
    found = body(tmp_path, f"A[i, j] = B[i, j] + (i + j + {number - 7})")
    shape = 5, 5
    compare(found, {"A": "f4", "B": "f4"}, shape, arrays={"A": np.zeros(shape, "f4"), "B": np.zeros(shape, "f4")})
