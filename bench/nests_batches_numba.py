"""Numba's loops of `bench nests`, case batches: each pair with two rows of its tables."""

import functools

import numba
import numpy as np
from numba import prange


def run(name, threads, *arguments):
    """The results of a function on some threads."""
    numba.set_num_threads(threads)
    return _compiled(name, threads > 1)(*arguments)


@functools.cache
def _compiled(name, parallel):
    return numba.njit(boundscheck=False, parallel=parallel)({"warping": _warping, "scores": _scores}[name])


def _warping(x, y):
    found = np.empty(len(x))
    for b in prange(len(x)):
        last, row = np.full(y.shape[1] + 1, np.inf), np.full(y.shape[1] + 1, np.inf)
        last[0] = 0.0
        for i in range(x.shape[1]):
            for j in range(1, y.shape[1] + 1):
                row[j] = abs(x[b, i] - y[b, j - 1]) + min(last[j], row[j - 1], last[j - 1])
            last, row = row, last
            row[0] = np.inf
        found[b] = last[-1]
    return found


def _scores(a, b, match, mismatch, start, extend):
    found = np.empty(len(a), np.int32)
    for p in prange(len(a)):
        H, F = np.zeros(b.shape[1] + 1, np.int16), np.zeros(b.shape[1] + 1, np.int16)
        best = 0
        for i in range(a.shape[1]):
            before, left, e = 0, 0, 0
            for j in range(1, b.shape[1] + 1):
                e = max(e - extend, left - start)
                f = max(F[j] - extend, H[j] - start)
                h = max(before + (match if a[p, i] == b[p, j - 1] else mismatch), 0, e, f)
                before, left = H[j], h
                F[j], H[j] = f, h
                best = max(best, h)
        found[p] = best
    return found
