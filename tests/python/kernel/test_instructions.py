"""The variable that leaves instructions out."""

import os
import subprocess
import sys

import llvmlite.binding as llvm
import pytest

PROGRAM = """
import numpy as np
import tilewave as tw
from tilewave.kernel import processor
A = np.ones((9, 200))
tw.run(tw.nest_from("def body(A, i, j): A[i, j] = 0.5 * A[i, j] + 0.25 * A[i-1, j]"), A=A, plan={"threads": 1})
print(processor.in_place_bytes(), processor.ahead_bytes(), A.sum().hex())
"""


def run(value):
    variables = {**os.environ, "TILEWAVE_INSTRUCTIONS": value, "TILEWAVE_CACHE_DIR": "", "TILEWAVE_MACHINE": "default"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True, timeout=300
    )


@pytest.mark.skipif(not llvm.get_host_cpu_features().get("avx512f"), reason="needs AVX-512")
def test_kernels_without_avx512_have_the_same_bits():
    with_all, without = run(""), run("avx2")
    assert without.returncode == 0, without.stderr
    assert with_all.stdout.split()[:2] == ["64", "256"] and without.stdout.split()[:2] == ["32", "0"]
    assert with_all.stdout.split()[2] == without.stdout.split()[2]


def test_another_value_is_refused():
    ended = run("mmx")
    assert "TILEWAVE_INSTRUCTIONS='mmx'; allowed: avx512, avx2" in ended.stderr
