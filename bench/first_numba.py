"""Numba's loops of the programs of ``tilewave bench first``, with its cache on; prints [] where it is missing."""

import json
import sys
import time

import numpy as np

_BEGUN = time.perf_counter()
try:
    from numba import njit, prange
except ImportError:
    print("[]")
    sys.exit()
_IMPORTED_S = time.perf_counter() - _BEGUN


@njit(cache=True)
def align(D, X, Y):
    for i in range(1, D.shape[0]):
        for j in range(1, D.shape[1]):
            D[i, j] = abs(X[i] - Y[j]) + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])


@njit(cache=True, parallel=True)
def align_all(D, X, Y):
    for b in prange(D.shape[0]):
        for i in range(1, D.shape[1]):
            for j in range(1, D.shape[2]):
                c = abs(X[b, i] - Y[b, j])
                D[b, i, j] = c + min(D[b, i - 1, j], D[b, i, j - 1], D[b, i - 1, j - 1])


@njit(cache=True)
def heat(u, v, c, steps):
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = u[i, j] + c * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
        u, v = v, u


def _timed(function, *arguments):
    begin = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - begin


def tiny():
    found = []
    for n, m in ((500, 500), (507, 509)):
        X, Y, D = np.random.rand(n).astype("f4"), np.random.rand(m).astype("f4"), np.zeros((n, m), "f4")
        found.append(_timed(align, D, X, Y))
    return found


def sizes(extents):
    calls_s = 0.0
    for n in extents:
        u = np.zeros((n, n))
        u[0] = 1.0
        calls_s += _timed(heat, u, u.copy(), 0.2, 100)
    return [calls_s]


def batch(pairs, n):
    X, Y = np.random.default_rng(0).standard_normal((2, pairs, n)).astype("f4")
    D = np.full((pairs, n, n), np.inf, "f4")
    D[:, 0, 0] = 0
    return [_timed(align_all, D, X, Y) for _ in range(2)]


def main(case, quick):
    found = {
        "import": lambda: [_IMPORTED_S],
        "tiny nest": tiny,
        "sizes": lambda: sizes(range(50, 250, 50) if quick else range(100, 2100, 100)),
        "batch": lambda: batch(*((10, 64) if quick else (200, 256))),
    }
    print(json.dumps(found[case]()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "1")
