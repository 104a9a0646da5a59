"""Programs of ``tilewave bench first``: ``python first_programs.py CASE QUICK`` prints the seconds of its parts."""

import time

import numpy as np

_BEGUN = time.perf_counter()
import tilewave as tw  # noqa: E402

_IMPORTED_S = time.perf_counter() - _BEGUN


@tw.nest
def align(D, X, Y, i, j):
    D[i, j] = abs(X[i] - Y[j]) + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])


@tw.nest
def align_all(D, X, Y, b, i, j):
    D[b, i, j] = abs(X[b, i] - Y[b, j]) + min(D[b, i - 1, j], D[b, i, j - 1], D[b, i - 1, j - 1])


@tw.nest
def heat(u, t, i, j, *, c):
    u[t + 1, i, j] = u[t, i, j] + c * (
        u[t, i - 1, j] + u[t, i + 1, j] + u[t, i, j - 1] + u[t, i, j + 1] - 4 * u[t, i, j]
    )


@tw.nest
def sweep(fx, fy, psi, q, i, j, k, m):
    p = (q[i, j, k] + fx[i - 1, j, k, m] + fy[i, j - 1, k, m]) / 3.0
    fx[i, j, k, m] = 2 * p - fx[i - 1, j, k, m]
    fy[i, j, k, m] = 2 * p - fy[i, j - 1, k, m]
    psi[i, j, k, m] = p


@tw.nest
def over_angles(phi, psi, i, j, k, m):
    phi[i, j, k] = phi[i, j, k] + psi[i, j, k, m]


def _timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def beyond_numpy(quick):
    return [_IMPORTED_S]


def tiny(quick):
    def run(n, m):
        X, Y, D = np.random.rand(n).astype("f4"), np.random.rand(m).astype("f4"), np.zeros((n, m), "f4")
        return _timed(lambda: tw.run(align, D=D, X=X, Y=Y))

    return [run(500, 500), run(507, 509)]


def sizes(quick):
    """Seconds of all calls, and of the runs in them."""
    calls_s = runs_s = 0.0
    for n in range(50, 250, 50) if quick else range(100, 2100, 100):
        u = tw.field((n, n), "f8", init=lambda i, j: 1.0 * (i == 0))
        begin = time.perf_counter()
        runs_s += tw.run(heat, u=u, c=0.2, steps=100).measured.time_s
        calls_s += time.perf_counter() - begin
    return [calls_s, runs_s]


def batch(quick):
    pairs, n = (10, 64) if quick else (200, 256)
    X, Y = np.random.default_rng(0).standard_normal((2, pairs, n)).astype("f4")
    D = np.full((pairs, n, n), np.inf, "f4")
    D[:, 0, 0] = 0
    return [_timed(lambda: tw.run(align_all, D=D, X=X, Y=Y)) for _ in range(2)]


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
    import json
    import sys

    print(json.dumps(PROGRAMS[sys.argv[1]](sys.argv[2] == "1")))
