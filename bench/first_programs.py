"""Programs of ``tilewave bench first``: ``python first_programs.py CONTENDER CASE QUICK`` prints the seconds of parts.

CONTENDER is tilewave, or numba: plain loops with its cache on; [] is printed where Numba is missing.
"""

import functools
import json
import sys
import time

import numpy as np

OURS = sys.argv[1] == "tilewave"
_BEGUN = time.perf_counter()
if OURS:
    import tilewave as tw

    nest = tw.nest
else:
    nest = lambda function: function
    try:
        import numba
    except ImportError:
        print("[]")
        sys.exit()
    from numba import prange  # what loops name
_IMPORTED_S = time.perf_counter() - _BEGUN


@nest
def align(D, X, Y, i, j):
    D[i, j] = abs(X[i] - Y[j]) + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])


@nest
def align_all(D, X, Y, b, i, j):
    D[b, i, j] = abs(X[b, i] - Y[b, j]) + min(D[b, i - 1, j], D[b, i, j - 1], D[b, i - 1, j - 1])


@nest
def heat(u, t, i, j, *, c):
    u[t + 1, i, j] = u[t, i, j] + c * (
        u[t, i - 1, j] + u[t, i + 1, j] + u[t, i, j - 1] + u[t, i, j + 1] - 4 * u[t, i, j]
    )


@nest
def sweep(fx, fy, psi, q, i, j, k, m):
    p = (q[i, j, k] + fx[i - 1, j, k, m] + fy[i, j - 1, k, m]) / 3.0
    fx[i, j, k, m] = 2 * p - fx[i - 1, j, k, m]
    fy[i, j, k, m] = 2 * p - fy[i, j - 1, k, m]
    psi[i, j, k, m] = p


@nest
def over_angles(phi, psi, i, j, k, m):
    phi[i, j, k] = phi[i, j, k] + psi[i, j, k, m]


def loops_of_align(D, X, Y):
    for i in range(1, D.shape[0]):
        for j in range(1, D.shape[1]):
            D[i, j] = abs(X[i] - Y[j]) + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])


def loops_of_align_all(D, X, Y):
    for b in prange(D.shape[0]):
        for i in range(1, D.shape[1]):
            for j in range(1, D.shape[2]):
                c = abs(X[b, i] - Y[b, j])
                D[b, i, j] = c + min(D[b, i - 1, j], D[b, i, j - 1], D[b, i - 1, j - 1])


def loops_of_heat(u, v, c, steps):
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = u[i, j] + c * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
        u, v = v, u


def _timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _run(ours, loops, *arrays, parallel=False):
    """Seconds of a nest over arrays D, X and Y, or of its loops."""
    if OURS:
        return _timed(lambda: tw.run(ours, **dict(zip("DXY", arrays, strict=True))))
    compiled = _compiled(loops, parallel)
    return _timed(lambda: compiled(*arrays))


@functools.cache
def _compiled(loops, parallel=False):
    return numba.njit(cache=True, parallel=parallel)(loops)


def beyond_numpy(quick):
    return [_IMPORTED_S]


def tiny(quick):
    found = []
    for n, m in ((500, 500), (507, 509)):
        X, Y, D = np.random.rand(n).astype("f4"), np.random.rand(m).astype("f4"), np.zeros((n, m), "f4")
        found.append(_run(align, loops_of_align, D, X, Y))
    return found


def sizes(quick):
    """Seconds of all calls, and of the runs in them."""
    calls_s, runs_s = 0.0, []
    plain = None if OURS else _compiled(loops_of_heat)
    for n in range(50, 250, 50) if quick else range(100, 2100, 100):
        if OURS:
            u = tw.field((n, n), "f8", init=lambda i, j: 1.0 * (i == 0))
            call = lambda u=u: runs_s.append(tw.run(heat, u=u, c=0.2, steps=100).measured.time_s)
        else:
            u, v = np.zeros((2, n, n))
            u[0] = v[0] = 1.0
            call = lambda u=u, v=v: plain(u, v, 0.2, 100)
        calls_s += _timed(call)
    return [calls_s, *([sum(runs_s)] if OURS else [])]


def batch(quick):
    pairs, n = (10, 64) if quick else (200, 256)
    X, Y = np.random.default_rng(0).standard_normal((2, pairs, n)).astype("f4")
    D = np.full((pairs, n, n), np.inf, "f4")
    D[:, 0, 0] = 0
    return [_run(align_all, loops_of_align_all, D, X, Y, parallel=True) for _ in range(2)]


def in_turn(quick):
    """Rounds of a sweep and a sum over its angles, as in source iteration."""
    n = 8 if quick else 64
    fx, fy, psi = (tw.field((n, n, n, 16)) for _ in range(3))
    phi, q = tw.field((n, n, n)), tw.field((n, n, n), init=1.0)

    def both():
        tw.run(sweep, fx=fx, fy=fy, psi=psi, q=q)
        tw.run(over_angles, phi=phi, psi=psi)

    rounds = [_timed(both) for _ in range(6)]
    return [*rounds[:2], min(rounds[2:])]


def poisson(quick):
    n = 8 if quick else 64
    f = np.random.default_rng(0).standard_normal((n, n, n))
    begin = time.perf_counter()
    solver = tw.multigrid.Poisson(f.shape)
    solver.solve(f)
    return [time.perf_counter() - begin, _timed(lambda: solver.solve(f))]


PROGRAMS = {
    "import": beyond_numpy,
    "tiny nest": tiny,
    "sizes": sizes,
    "batch": batch,
    "in turn": in_turn,
    "poisson": poisson,
}

if __name__ == "__main__":
    print(json.dumps(PROGRAMS[sys.argv[2]](sys.argv[3] == "1")))
