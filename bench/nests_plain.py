"""The contenders of `bench nests`: plain loops by g++ and Numba, parasail; and its input."""
import ctypes
import functools
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FLAGS = "-std=c++17 -O3 -march=native -ffp-contract=off -fno-math-errno -fopenmp -shared -fPIC".split()
GENOME = Path("examples/cases/data/lambda_virus.fa.gz")


def compiled(name, flags):
    """The library of a C++ file in this folder; None without g++."""
    compiler = shutil.which("g++")
    if compiler is None:
        print("bench: no g++: plain loops are skipped", file=sys.stderr)
        return None
    os.environ.setdefault("GOMP_SPINCOUNT", "100000")  # idle threads leave the cores to the next contender
    with tempfile.TemporaryDirectory() as folder:
        path, source = Path(folder) / "plain.so", Path(__file__).with_name(name)
        subprocess.run([compiler, *flags, str(source), "-o", str(path)], check=True, timeout=120)
        return ctypes.CDLL(str(path))


@functools.cache
def plain_loops():
    """Functions of NumPy arrays, compiled from nests_plain.cpp; empty without g++."""
    library = compiled("nests_plain.cpp", FLAGS)
    if library is None:
        return {}
    size = ctypes.c_int64

    def at(array):
        return ctypes.c_void_p(array.ctypes.data)

    def on_array(name):
        function = getattr(library, name)
        function.restype = None
        return lambda array: function(at(array), size(len(array)))

    def on_threads(call):
        """The call's seconds, its threads awake before."""
        def run(*arguments):
            library.wake()
            begin = time.perf_counter()
            call(*arguments)
            return time.perf_counter() - begin
        return run

    calls = {name: on_array(name) for name in ("recurrence", "recurrence_jammed")}
    calls["recurrence_jammed_omp"] = on_threads(on_array("recurrence_jammed_omp"))
    library.update.restype = library.wake.restype = None
    calls["update"] = on_threads(lambda array, threads: library.update(at(array), size(len(array)), threads))
    library.parasail_scores.restype = None
    calls["parasail_scores"] = lambda align, release, a, b, gaps, matrix, threads, scores: library.parasail_scores(
        align, release, at(a), a.shape[1], at(b), b.shape[1], size(len(a)), *gaps, matrix.pointer, threads, at(scores)
    )
    library.gauss_seidel.restype = library.gauss_seidel_wavefront.restype = None
    calls["gauss_seidel"] = lambda u, sweeps: library.gauss_seidel(at(u), size(len(u)), size(sweeps))
    calls["gauss_seidel_wavefront"] = on_threads(
        lambda u, sweeps, together, threads: library.gauss_seidel_wavefront(
            at(u), size(len(u)), size(sweeps), size(together), threads
        )
    )
    return calls


@functools.cache
def numba():
    """The module; None where it is not installed."""
    try:
        import numba
    except ImportError:
        print("bench nests: no Numba: its plain loops are skipped", file=sys.stderr)
        return None
    return numba


def sequences():
    """The lambda genome and its other strand as int8 codes; (None, None) outside a checkout."""
    if not GENOME.exists():
        return None, None
    with gzip.open(GENOME, "rt") as lines:
        bases = "".join(line.strip() for line in lines if not line.startswith(">")).upper()
    other = bases[::-1].translate(str.maketrans("ACGT", "TGCA"))
    return tuple(np.frombuffer(s.encode(), "i1") for s in (bases, other))


@functools.cache
def parasail():
    """The module; None where it is not installed."""
    try:
        import parasail
    except ImportError:
        print("bench nests: no parasail (pip install parasail): it is skipped", file=sys.stderr)
        return None
    return parasail
