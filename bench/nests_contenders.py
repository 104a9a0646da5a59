"""The contenders of `bench nests` in C++: plain loops, and the best of parasail's functions; and their input."""

import ctypes
import functools
import gzip
import itertools
import time
from pathlib import Path

import numpy as np

from bench.contenders import library, module
from bench.nests_bodies import SCORES
from bench.runner import Own

GENOME = Path("examples/cases/data/lambda_virus.fa.gz")
METHODS, VECTORS = ("striped", "scan", "diag"), ("sse2_128", "sse41_128", "avx2_256")
#: Of parasail's numbers; "sat" begins with 8 and goes on with 16 where these are too few.
BITS = ("8", "16", "32", "sat")
#: Its method "diag" counts positions in numbers of as many bits; longer sequences are left to the others.
MOST_POSITIONS = 2**15
TRIED_CELLS = 2**25


@functools.cache
def plain_loops():
    """Functions of nests_plain.cpp, which take NumPy arrays and integers; None without g++."""
    loaded = library("nests_plain.cpp", "-O3 -march=native -ffp-contract=off -fno-math-errno")
    return loaded and {
        name: functools.partial(_call, loaded, name)
        for name in (
            "recurrence recurrence_jammed recurrence_jammed_omp update gauss_seidel gauss_seidel_wavefront "
            "parasail_scores"
        ).split()
    }


def _call(loaded, name, *arguments):
    """Seconds of a call, its threads awake before."""
    given = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments]
    given = [ctypes.c_int64(a) if isinstance(a, int) else a for a in given]
    loaded.wake()
    begin = time.perf_counter()
    getattr(loaded, name)(*given)
    return Own(time.perf_counter() - begin)


def sequences():
    """The lambda genome and its other strand as int8 codes."""
    if not GENOME.exists():
        raise SystemExit(f"bench nests: {GENOME} is not there: run it in a checkout")
    with gzip.open(GENOME, "rt") as lines:
        bases = "".join(line.strip() for line in lines if not line.startswith(">")).upper()
    other = bases[::-1].translate(str.maketrans("ACGT", "TGCA"))
    return tuple(np.frombuffer(s.encode(), "i1") for s in (bases, other))


def parasail(a, b):
    """{name: function} of the fastest of its methods, vectors and widths that gives the right scores of pairs.

    The pairs are rows of `a` and `b`; the function takes a number of threads, and returns scores. Empty without one.
    """
    if module("parasail") is None or plain_loops() is None:
        return {}
    few = np.ascontiguousarray(a[:50, :200]), np.ascontiguousarray(b[:50, :200])
    right = _scores("", *few)()
    length = min(a.shape[1], int(TRIED_CELLS**0.5))
    some = [s[: max(1, TRIED_CELLS // (a.shape[1] * b.shape[1])), :length] for s in (a, b)]
    tried = {}
    for method, vectors, bits in itertools.product(METHODS, VECTORS, BITS):
        name = f"{method}_{vectors}_{bits}"
        run = _scores(name, *few)
        if run is None or (method == "diag" and max(a.shape[1], b.shape[1]) >= MOST_POSITIONS):
            continue
        if bits == "8" or np.array_equal(run(), right):
            run = _scores(name, *some)
            run()
            begin = time.perf_counter()
            run()
            tried[method, vectors, bits] = time.perf_counter() - begin
    order = sorted(tried, key=tried.get)
    expected = _scores("_".join(next(each for each in order if each[2] == "32")), a, b)()
    for method, vectors, bits in order:
        run = _scores(f"{method}_{vectors}_{bits}", a, b)
        if np.array_equal(run(), expected):
            numbers = "8 or 16" if bits == "sat" else bits
            return {f"parasail, {method}, {vectors.split('_')[0]}, {numbers} bits, best of {len(tried)}": run}
    return {}


def _scores(name, a, b):
    """A function that gives the scores by one of parasail's; None where this processor or library has it not."""
    loaded = ctypes.CDLL(str(Path(module("parasail").__file__).with_name("libparasail.so")))
    function = getattr(loaded, f"parasail_sw_{name}" if name else "parasail_sw", None)
    if function is None:
        return None
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    matrix = module("parasail").matrix_create("ACGT", SCORES["match"], SCORES["mismatch"])
    sizes, gaps = (len(a), a.shape[1], b.shape[1]), (SCORES["start"], SCORES["extend"])

    def run(threads=1):
        found = np.empty(len(a), "i4")
        given = function, loaded.parasail_result_free, a, b, *sizes, *gaps, matrix.pointer, threads, found
        plain_loops()["parasail_scores"](*given)
        return found

    return run
