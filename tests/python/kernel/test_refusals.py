"""Expressions that kernels refuse, each by name and with what to do instead; and those of complex numbers that they
take.
"""

import numpy as np
import pytest

from kernel_bodies import body
from test_complex import numbers, same
from tilewave.errors import ConfigError
from tilewave.kernel.compile import compile_kernel
from kernel_helpers import run_box
from tilewave.nest import names

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(
    "text, dtype, words",
    [
        # Complex numbers.
        ("B[i, j] ** 2", "c16", "** of complex numbers (use np.power, or z * z)"),
        ("B[i, j] < 1", "c16", "< of complex numbers (compare abs(z), z.real or z.imag)"),
        ("max(B[i, j], 1)", "c8", "> of complex numbers (compare abs(z)"),
        ("np.minimum(B[i, j], B[i, j])", "c8", "np.minimum of complex numbers"),
        ("np.sign(B[i, j])", "c8", "np.sign of complex numbers"),
        ("np.clip(B[i, j], 0, 1)", "c16", "np.clip of complex numbers"),
        ("np.clip(B[i, j], -1, 1j)", "f8", "np.clip of complex numbers"),
        ("np.clip(1.0, B[i, j], 2)", "c8", "np.clip of complex numbers"),
        ("int(B[i, j])", "c16", "int(x) of a complex number (take z.real, z.imag or abs(z))"),
        ("float(B[i, j])", "c16", "a complex number as a float (take z.real"),
        ("np.float32(B[i, j])", "c16", "a complex number as float32 (take z.real"),
        ("np.int8(B[i, j])", "c16", "a complex number as int8 (take z.real"),
        ("B[i, j] // 2", "c16", "NumPy and Python do not define it for NumPy complex128 and Python int"),
        ("math.isnan(B[i, j])", "c16", "a complex number as a float"),
        ("round(B[i, j])", "c16", "NumPy and Python do not define it for NumPy complex128"),
        # Powers, shifts, digits.
        ("B[i, j] + 2 ** 5000", "f8", "a power that may have more than 4096 bits"),
        ("B[i, j] + 10 ** 400", "f8", "in float arithmetic"),
        ("B[i, j] + i ** 65", "f8", "an integer power above 64"),
        ("B[i, j] + i ** j", "f8", "an integer power whose exponent is not a constant"),
        ("B[i, j] ** -2", "i4", "an integer to a negative power (NumPy refuses it too)"),
        ("B[i, j] + (1 << 10**5)", "f8", "a shift by more than"),
        ("np.round(B[i, j], 23)", "f8", "round to a number of digits that is no int constant from -22 to 22"),
        ("np.round(B[i, j], i)", "f8", "round to a number of digits that is no int constant"),
        ("np.round(B[i, j], -1)", "i4", "np.round of ints to -1 digits"),
        ("B[i, j] + round(i * 1.5, -1)", "f8", "round to -1 digits; 0 to 22 are"),
        ("pow(B[i, j], 2, 3)", "i4", "pow with three arguments of NumPy int32, Python int, Python int"),
        # Bools.
        ("np.round(B[i, j] > 0)", "f8", "a result of dtype float16"),
        ("-(B[i, j] > 0)", "f8", "- of a NumPy bool (NumPy refuses it too)"),
        ("(B[i, j] > 0) - (B[i, j] > 1)", "f8", "NumPy bool"),
        # What there is no operation for.
        ("~B[i, j]", "f8", "NumPy and Python do not define it for NumPy float64"),
        ("B[i, j] << 1.5", "i4", "NumPy and Python do not define it for NumPy int32 and Python float"),
        ("np.clip(B[i, j], 0, 1.5)", "i4", "np.clip of an integer between a Python int and a float"),
        ("math.trunc(B[i, j])", "c8", "do not define it"),
    ],
)
def test_an_expression_is_refused_by_name(tmp_path, text, dtype, words):
    found = body(tmp_path, f"A[i, j] = {text}")
    for written in (dtype, "c16"):
        with pytest.raises(ConfigError) as error:
            compile_kernel(found, {"A": written, "B": dtype})
        line = found.function.__code__.co_firstlineno + 2
        assert f"body.py:{line}:" in str(error.value) and "not supported: " in str(error.value)
        assert words in str(error.value), error.value


ROUNDED = ["np.round(B[i, j])", "np.round(B[i, j], 2)", "np.round(B[i, j], -1)", "np.rint(B[i, j])"]
REAL = ["np.round(B[i, j].real, 1)", "np.isnan(B[i, j])", "np.isinf(B[i, j])", "np.isfinite(B[i, j])", "abs(B[i, j])"]


def complex_functions():
    """Calls of the functions that NumPy defines for complex numbers."""
    for name in names.NUMPY_UNARY:
        if name != "sign" and "D->" in " ".join(getattr(np, name).types):
            yield f"np.{name}(B[i, j])"


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_functions_of_complex_numbers_are_numpys(tmp_path, dtype):
    """One body, row k with expression k: numbers of all sizes, zeros of both signs, infinities and NaNs."""
    texts = [*ROUNDED, *REAL, *complex_functions()]
    assert len(texts) > 25
    rows = [f"{'el' if k else ''}if i == {k}:\n        A[i, j] = {text}" for k, text in enumerate(texts)]
    found = body(tmp_path, "\n    ".join(rows))
    rng = np.random.default_rng(11)
    B = np.tile(numbers(rng, (1, 200), dtype), (len(texts), 1))
    A, expected = np.zeros(B.shape, "c16"), np.zeros(B.shape, "c16")
    run_box(compile_kernel(found, {"A": "c16", "B": dtype}), ((0, len(texts)), (0, 200)), {"A": A, "B": B.copy()})
    found.reference(((0, len(texts)), (0, 200)), {"A": expected, "B": B})
    for k, text in enumerate(texts):
        others = [(b, x, y) for b, x, y in zip(B[k], A[k], expected[k]) if x != y]
        assert same(A[k], expected[k]), f"{text}: {others[:3]}"
