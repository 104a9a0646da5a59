"""The library that products call: found, refused, without a trace in the process."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest
import tilewave as tw
from products import product_rate
from tilewave import _core
from tilewave.linalg.blas import blas


@pytest.fixture(autouse=True)
def default_library():
    yield
    tw.linalg.use_blas()


def test_found_and_kept():
    before = dict(os.environ)
    path = tw.linalg.use_blas("openblas")
    assert path.endswith("libscipy_openblas.so") and blas().path == path
    assert tw.linalg.use_blas(path) == path == tw.linalg.use_blas()
    assert dict(os.environ) == before and os.environ.get("OPENBLAS_NUM_THREADS") == before.get("OPENBLAS_NUM_THREADS")


@pytest.mark.parametrize(
    "given, text",
    [
        ("/nowhere/libblas.so", "/nowhere/libblas.so cannot be loaded"),
        ("libm.so.6", "libm.so.6 has no function sgemm_; allowed: a BLAS and LAPACK with 32-bit integers"),
        (3, "given int; allowed: a path, 'openblas', 'mkl' or None"),
    ],
)
def test_refused(given, text):
    with pytest.raises(tw.ConfigError, match=text.replace("(", r"\(")):
        tw.linalg.use_blas(given)
    assert blas().path.endswith("libscipy_openblas.so")


def test_a_library_of_64_bit_integers(tmp_path):
    """Its functions may have the usual names: they would read past the integers that they are given."""
    (tmp_path / "long.c").write_text('const char* openblas_get_config(void) { return "OpenBLAS 0.3 USE64BITINT"; }')
    library = tmp_path / "liblong.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "long.c"], check=True)
    with pytest.raises(tw.ConfigError, match="liblong.so has integers of 64 bits; allowed: a BLAS and LAPACK with 32"):
        tw.linalg.use_blas(library)


def test_the_variable_chooses(monkeypatch):
    monkeypatch.setenv("TILEWAVE_BLAS", "/nowhere/libblas.so")
    with pytest.raises(tw.ConfigError, match="cannot be loaded"):
        blas()
    assert tw.linalg.use_blas("openblas").endswith("libscipy_openblas.so")


def test_rates_are_measured_once():
    """Of a shape and those nearly alike; positive."""
    first = product_rate(np.dtype("f8"), 96, 96, 64)
    again = product_rate(np.dtype("f8"), 97, 96, 64)
    assert first.amount_s > 0 and first.amount_s == again.amount_s
    assert product_rate(np.dtype("f8"), 0, 0, 0).amount_s > 0 and _core.linalg.copy_rate("float32").amount_s > 0


FAKE = """
static __thread int mine = 5;
int seen = 0, everywhere = 0;
int MKL_Set_Num_Threads_Local(int n) { int before = mine; mine = n; return before; }
void MKL_Set_Num_Threads(int n) { everywhere = n; }
int MKL_Set_Threading_Layer(int layer) { everywhere = 100 + layer; return layer; }
#define FUNCTIONS(p) void p##gemm_(void) { seen = mine; } \\
    void p##potrf_(void) {} void p##trsm_(void) {} void p##getrf_(void) {} void p##geqrt_(void) {}
FUNCTIONS(s) FUNCTIONS(d) FUNCTIONS(c) FUNCTIONS(z)
"""


def test_mkls_threads_are_set_for_calls_from_here_alone(tmp_path):
    (tmp_path / "fake.c").write_text(FAKE)
    path = str(tmp_path / "libfake.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, tmp_path / "fake.c"], check=True)
    tw.linalg.use_blas(path)
    assert product_rate(np.dtype("f8"), 5, 6, 7).amount_s >= 0
    library = ctypes.CDLL(path)
    assert ctypes.c_int.in_dll(library, "seen").value == 1  # thread in a call
    assert library.MKL_Set_Num_Threads_Local(5) == 5  # as before in this thread
    assert ctypes.c_int.in_dll(library, "everywhere").value == 0


def test_loading_starts_no_threads_and_leaves_the_threads_cpus():
    program = """
import os
import tilewave as tw
def now(): return len(os.listdir("/proc/self/task")), os.sched_getaffinity(0), dict(os.environ)
before = now()
tw.linalg.use_blas("openblas")
assert now() == before
"""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBLAS", "OMP", "GOTO"))}
    subprocess.run([sys.executable, "-c", program], env=env, check=True, timeout=300)


def test_mkl_is_as_it_was_for_others():
    """Where the package mkl is installed: for others in the process its threads are as they were."""
    try:
        path = tw.linalg.use_blas("mkl")
    except tw.ConfigError as error:
        pytest.skip(str(error))
    most = ctypes.CDLL(path).MKL_Get_Max_Threads()
    a = np.random.default_rng(0).normal(size=(200, 200))
    assert np.allclose(a @ tw.linalg.lu(a).solve(np.eye(200)), np.eye(200))
    assert ctypes.CDLL(path).MKL_Get_Max_Threads() == most
