"""The best of parasail's functions for scores: all its methods, vectors and widths of numbers are tried beforehand."""

import ctypes
import itertools
import time
from pathlib import Path

import numpy as np

from bench.nests_bodies import SCORES
from bench.nests_plain import parasail, plain_loops

METHODS, VECTORS = ("striped", "scan", "diag"), ("sse2_128", "sse41_128", "avx2_256")
#: Of the numbers; "sat" begins with 8 and goes on with 16 where these are too few.
BITS = ("8", "16", "32", "sat")
#: Its method "diag" counts positions in numbers of as many bits; longer sequences are left to the others.
MOST_POSITIONS = 2**15
TRIED_CELLS = 2**25


def best(a, b):
    """(name, function) of the fastest one that gives the right scores of pairs of sequences, which are rows of `a` and
    `b`; the function returns them, and takes a number of threads. (None, None) where there is none."""
    if parasail() is None:
        return None, None
    right = _calls("", np.ascontiguousarray(a[:50, :200]), np.ascontiguousarray(b[:50, :200]))()
    part = slice(max(1, TRIED_CELLS // (a.shape[1] * b.shape[1])))
    length = min(a.shape[1], int(TRIED_CELLS**0.5))
    tried = {}
    for method, vectors, bits in itertools.product(METHODS, VECTORS, BITS):
        few = _calls(f"{method}_{vectors}_{bits}", a[:50, :200], b[:50, :200])
        if few is None or method == "diag" and max(a.shape[1], b.shape[1]) >= MOST_POSITIONS:
            continue
        if bits != "8" and not np.array_equal(few(), right):
            continue
        run = _calls(f"{method}_{vectors}_{bits}", a[part, :length], b[part, :length])
        run()
        begin = time.perf_counter()
        run()
        tried[method, vectors, bits] = time.perf_counter() - begin
    expected = None
    for method, vectors, bits in sorted(tried, key=tried.get):
        run = _calls(f"{method}_{vectors}_{bits}", a, b)
        if expected is None:
            widest = next(each for each in sorted(tried, key=tried.get) if each[2] == "32")
            expected = _calls("_".join(widest), a, b)()
        if np.array_equal(run(), expected):
            numbers = "8 or 16" if bits == "sat" else bits
            return f"parasail, {method}, {vectors.split('_')[0]}, {numbers} bits, best of {len(tried)}", run
    return None, None


def _calls(name, a, b):
    """A function that gives the scores by one of parasail's; None where this processor or library has it not."""
    library = ctypes.CDLL(str(Path(parasail().__file__).with_name("libparasail.so")))
    function = getattr(library, f"parasail_sw_{name}" if name else "parasail_sw", None)
    if function is None:
        return None
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    matrix = parasail().matrix_create("ACGT", SCORES["match"], SCORES["mismatch"])
    gaps = SCORES["start"], SCORES["extend"]

    def run(threads=1):
        scores = np.empty(len(a), "i4")
        plain_loops()["parasail_scores"](function, library.parasail_result_free, a, b, gaps, matrix, threads, scores)
        return scores

    return run
