"""The library that products call: found, refused, without a trace in the process."""

import os
import subprocess

import numpy as np
import pytest
import tilewave as tw
from tilewave.linalg.blas import blas, copy_rate, product_rate


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
    assert product_rate(np.dtype("f8"), 0, 0, 0).amount_s > 0 and copy_rate(np.dtype("f4")).amount_s > 0


def test_mkl_runs_in_one_thread():
    """Where the package mkl is installed: its parts without threads, and the environment as it was."""
    before = dict(os.environ)
    try:
        path = tw.linalg.use_blas("mkl")
    except tw.ConfigError as error:
        pytest.skip(str(error))
    a = np.random.default_rng(0).normal(size=(200, 200))
    assert np.allclose(a @ tw.linalg.lu(a).solve(np.eye(200)), np.eye(200))
    with open("/proc/self/maps") as file:
        parts = {line.split("/")[-1] for line in file if "libmkl_" in line}
    assert path.rsplit(".so", 1)[0].endswith("libmkl_rt") and dict(os.environ) == before
    assert any("sequential" in part for part in parts) and not any("intel_thread" in part for part in parts)
