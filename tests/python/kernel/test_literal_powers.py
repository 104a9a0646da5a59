"""Powers with literal exponents: the bits of the C library's pow, also where they take no call."""

import os
import subprocess
import sys

import numpy as np
import pytest
from kernel_bodies import body
from kernel_helpers import compare_all_ways
from tilewave import _core
from tilewave.kernel.compile import compile_kernel
from tilewave.kernel.emit import literal_powers

EXPONENTS = ("2", "3", "4", "0.5", "-1", "2.0")
OFF = _core.paths_off("powers")

#: Counts the numbers whose power differs from that of NumPy's scalars, which is the C library's.
PROGRAM = """
import sys
import numpy as np
import tilewave as tw

def numbers(dtype, count, rng):
    bits, kind = np.dtype(f"u{dtype[1]}"), np.dtype(dtype)
    fraction, whole = (52, 2**64 - 1) if dtype == "f8" else (23, 2**32 - 1)
    anything = rng.integers(0, whole, count // 8, bits, endpoint=True).view(dtype)  # NaN, infinite, tiny, too
    ordinary = rng.choice([-1, 1], count) * (1 + rng.random(count)) * 2.0 ** rng.integers(-12, 12, count)
    half = (fraction + 1) // 2
    ties = (2 * rng.integers(2 ** (half - 1), 2**half, count // 8) + 1) * 2.0**-20  # their squares are
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    near = [np.nextafter(powers.astype(dtype), kind.type(end)) for end in (0, np.inf)]
    roots = np.sqrt(ordinary[: count // 8] ** 2 * (1 + rng.integers(-4, 5, count // 8) * 2.0**-fraction))
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1, np.finfo(dtype).max, np.finfo(dtype).tiny])
    found = np.concatenate([part.astype(dtype) for part in (anything, ordinary, ties, powers, *near, roots, ends)])
    rng.shuffle(found)
    return found[: len(found) // 333 * 333].reshape(-1, 333)

np.seterr(all="ignore")
differ = 0
for dtype in ("f4", "f8"):
    B = numbers(dtype, int(sys.argv[1]), np.random.default_rng(int(sys.argv[2])))
    for exponent in sys.argv[3:]:
        bits, power = np.dtype(f"u{dtype[1]}"), eval(exponent)
        expected = np.array([x**power for x in B.ravel()], dtype).reshape(B.shape)
        for text in ("A[i, j] = B[i, j] ** p", "A[i, j] = B[i, j] ** p if B[i, j] > 1.5 else B[i, j]"):
            A = np.zeros_like(B)
            tw.run(tw.nest_from("def body(A, B, i, j): " + text.replace("p", exponent)), A=A, B=B, plan={"threads": 1})
            wanted = expected if " if " not in text else np.where(B > 1.5, expected, B)
            differ += int((A.view(bits) != wanted.view(bits)).sum())
print(differ, B.size)
"""


@pytest.mark.parametrize(
    "instructions, without", [("", ""), ("avx2", ""), ("", "strips"), ("avx2", "strips"), ("", "powers")]
)
def test_every_number_has_the_bits_of_pow(instructions, without):
    variables = {"TILEWAVE_INSTRUCTIONS": instructions, "TILEWAVE_WITHOUT": without}
    variables |= {"TILEWAVE_MACHINE": "default", **({"TILEWAVE_CACHE_DIR": ""} if instructions else {})}
    seed = str(np.random.SeedSequence().entropy % 2**32)
    arguments = [os.environ.get("TILEWAVE_POWERS", "30000"), seed, *EXPONENTS]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split()[0] == "0", f"{ended.stdout}, seed {seed}"


BODIES = {
    "strips": "A[i, j] = 0.5 * A[i, j] ** 2 + B[i, j] ** 2",
    "several": "A[i, j] = (B[i, j] ** 2 + 1) ** 0.5 - (A[i-1, j] ** 3) ** -1 + np.exp(B[i, j] ** 2.0)",
    "a recurrence": "A[i, j] = 0.5 * A[i, j-1] ** 2 - B[i, j] * A[i-1, j] ** -1",
    "on some points": "A[i, j] = A[i, j] if B[i, j] < 0.3 else B[i, j] ** 3 if B[i, j] < 0.5 else A[i, j-2] ** 4",
    "operands of other types": "A[i, j] = i ** 2 + np.float32(B[i, j]) ** 2 + 2 ** B[i, j] + B[i, j] ** (j - j + 2)",
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", BODIES)
def test_bodies(tmp_path, name, dtype):
    found = body(tmp_path, BODIES[name])
    for columns in (1, 5, 63, 64, 65, 600):
        compare_all_ways(found, dict.fromkeys("AB", dtype), (4, columns), seed=columns)


def text_of(nest, dtype="f8", **choices):
    recipe = compile_kernel(nest, dict.fromkeys("AB", dtype), steps=[1] * len(nest.places), **choices)._recipe
    return str(recipe.build().module)


def test_where_the_path_is_taken(tmp_path, monkeypatch):
    """With a C library whose errors are known, and where it is not switched off."""
    nest = body(tmp_path, BODIES["strips"])
    if not literal_powers.exponents(0):
        pytest.skip("another C library, or no FMA")
    for dtype, name in (("f4", "float32"), ("f8", "float64")):
        assert f"strip_all_power_2_{name}" in text_of(nest, dtype, independent=True)
    assert "strip_" not in text_of(nest, independent=True, off=OFF)
    assert "llvm.fma" not in text_of(nest, independent=True, fastmath=True)
    for library in (("glibc", "2.27"), ("musl", "1.2"), ("", "")):
        monkeypatch.setattr(literal_powers.platform, "libc_ver", lambda library=library: library)
        literal_powers.exponents.cache_clear()
        assert not literal_powers.exponents(0), library
    literal_powers.exponents.cache_clear()
