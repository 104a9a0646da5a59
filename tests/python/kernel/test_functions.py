"""Functions that bodies call against plain Python loops: every bit, every exception."""

import itertools
import math
import warnings

import numpy as np
import pytest

from kernel_bodies import DTYPES, PAIRS, body, check_one, compare_rows, grid, inferred, refused, special, switch
from kernel_helpers import compare
from tilewave.nest import names as _names
from tilewave.kernel.compile import compile_kernel
from tilewave.errors import ConfigError

warnings.filterwarnings("ignore", category=RuntimeWarning)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", _names.NUMPY_UNARY)
def test_numpy_function_of_one_argument(tmp_path, name, dtype):
    found = body(tmp_path, f"A[i, j] = np.{name}(B[i, j])")
    result = inferred(getattr(np, name), dtype)
    if result is None:
        refused(found, {"A": "f4", "B": dtype}, f"np.{name}", "float16", np.dtype(dtype).name)
        return
    if name == "reciprocal" and result.kind in "iu":  # 1 / 0 is another number on each processor
        refused(found, {"A": "f4", "B": dtype}, f"np.{name}", np.dtype(dtype).name)
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


ROUNDED = [
    0.5, 1.5, 2.5, -0.5, -1.5, 0.125, 0.375, 2.675, 1.005, -2.675, 1e-9, 0.0, -0.0, -0.001, 12345.678, 1e15 + 0.3,
    2.0**52 + 1, 1e300, 5e-324, -7.5, 0.15, 0.25, 0.35, 1e22, 123456789.123456789, 2.5e-5, 5e-3, 1.5e-2, math.nan,
    math.inf, -math.inf, 0.045, 1.115, 4503599627370495.5,
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding(tmp_path, dtype):
    """Python's and NumPy's, of elements and of Python numbers, to all digits."""
    digits = [0, 1, 2, 3, 7, 15, 22, -1, -3]
    texts = [
        "round(B[i, j])", "np.round(B[i, j])", "np.rint(B[i, j])", "round(float(B[i, j]))", "np.around(B[i, j], 2)",
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
        "round(B[i, j], -1)", "round(float(B[i, j]), -2)", "round(B[i, j], i)", "round(B[i, j], 30)",
        "np.round(B[i, j], c)", "np.clip(B[i, j], 0.5, c)", "B[i, j] & 1.5", "~float(B[i, j])",
        "pow(B[i, j], 2, 3)", "B[i, j] << 0.5", "(1 << 5000)",
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
    if pair[0][0] != "f" and np.result_type(*pair).kind == "f":
        del texts[1]  # refused: of an integer, between a Python int and a float
    found = body(tmp_path, switch(texts), head="A, B, C, D, i, j")
    arrays = {
        "A": np.zeros((len(texts), len(b))),
        **{name: np.tile(values, (len(texts), 1)) for name, values in zip("BCD", (b, c, d), strict=True)},
    }
    compare_rows(found, arrays)


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
        *(f"math.{name}({{}})" for name in ("floor", "ceil")), "int(math.fabs({}))", "int(math.copysign({}, -1))",
        "int(math.fmod({}, 1000))", "abs({})", "int({})", "int(float({}))", "{} // 3", "{} % 1000", "{} // -7",
        "np.floor({})", "int(math.sqrt(abs({})))", "{} == float({})", "int({} // 3.0)", "int({} % 1000.0)",
        "int(np.fmod({}, 1000))", "{} ** 1", "{} < 2.0**53", "int(abs({}) ** 0.5)",
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


def test_every_function_has_a_translation(tmp_path):
    """A function in the table of names without a translation would be refused at compile time."""
    for key, least, _ in _names.FUNCTIONS.values():
        if key == "np.array_power":  # of expressions of fields
            continue
        arguments = ", ".join(["B[i, j]", "2", "3"][:least])
        found = body(tmp_path, f"A[i, j] = {key}({arguments})")
        compile_kernel(found, {"A": "c16" if "complex" in key else "f8", "B": "f8"})
