"""The nests of `bench nests`."""
import numpy as np
import tilewave as tw

# A gap of n bases costs start + (n - 1) * extend, as parasail counts.
SCORES = {"match": 2, "mismatch": -3, "start": 5, "extend": 2}


@tw.nest
def roots(A, i, j, k):
    A[i, j, k] = np.sqrt(A[i-1, j, k]) + np.sqrt(A[i, j-1, k]) + np.sqrt(A[i, j, k-1])


@tw.nest
def recurrence(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1] - A[i-1, j-1]


@tw.nest
def relax(A, i, j):
    A[i, j] = 0.25 * (A[i-1, j] + A[i+1, j] + A[i, j-1] + A[i, j+1])


@tw.nest
def smith_waterman(H, E, F, a, b, i, j, *, match, mismatch, start, extend):
    e = max(E[i, j-1] - extend, H[i, j-1] - start)
    f = max(F[i-1, j] - extend, H[i-1, j] - start)
    pair = match if a[i-1] == b[j-1] else mismatch
    E[i, j] = e
    F[i, j] = f
    H[i, j] = max(max(H[i-1, j-1] + pair, 0), max(e, f))


@tw.nest
def smith_waterman_by_table(H, E, F, score, a, b, i, j, *, start, extend):
    e = max(E[i, j-1] - extend, H[i, j-1] - start)
    f = max(F[i-1, j] - extend, H[i-1, j] - start)
    E[i, j] = e
    F[i, j] = f
    H[i, j] = max(max(H[i-1, j-1] + score[a[i-1], b[j-1]], 0), max(e, f))


@tw.nest
def smith_waterman_scores(H, E, F, S, a, b, p, i, j, *, match, mismatch, start, extend):
    e = max(E[p, i, j-1] - extend, H[p, i, j-1] - start)
    f = max(F[p, i-1, j] - extend, H[p, i-1, j] - start)
    pair = match if a[p, i-1] == b[p, j-1] else mismatch
    E[p, i, j] = e
    F[p, i, j] = f
    h = max(max(H[p, i-1, j-1] + pair, 0), max(e, f))
    H[p, i, j] = h
    S[p] = max(S[p], h)


@tw.nest
def warping(D, S, X, Y, p, i, j):
    D[p, i, j] = abs(X[p, i-1] - Y[p, j-1]) + min(D[p, i-1, j], D[p, i, j-1], D[p, i-1, j-1])
    S[p] = D[p, i, j]


@tw.nest
def gauss_seidel(u, t, i, j, k):
    around = u[t+1, i-1, j, k] + u[t, i+1, j, k] + u[t+1, i, j-1, k] + u[t, i, j+1, k] + u[t, i, j, k+1]
    u[t+1, i, j, k] = (around + u[t+1, i, j, k-1]) * 0.16


@tw.nest
def sor(u, f, t, i, j, *, w):
    mean = 0.25 * (u[t+1, i-1, j] + u[t+1, i, j-1] + u[t, i+1, j] + u[t, i, j+1] + f[i, j])
    u[t+1, i, j] = u[t, i, j] + w * (mean - u[t, i, j])


@tw.nest
def one(A, i, j, k):
    A[i, j, k] = 0.3 * A[i-1, j, k] + 0.3 * A[i, j-1, k] + 0.3 * A[i, j, k-1]


@tw.nest
def two(A, B, i, j, k):
    A[i, j, k] = 0.3 * A[i-1, j, k] + 0.3 * A[i, j-1, k] + 0.3 * A[i, j, k-1] + B[i, j, k]


@tw.nest
def four(A, B, C, D, i, j, k):
    A[i, j, k] = 0.3 * A[i-1, j, k] + 0.3 * A[i, j-1, k] + 0.3 * A[i, j, k-1] + B[i, j, k] + C[i, j, k] + D[i, j, k]


def plain_four(c, A, B, C, D, i, j, k):
    A[i, j, k] = c * A[i-1, j, k] + c * A[i, j-1, k] + c * A[i, j, k-1] + B[i, j, k] + C[i, j, k] + D[i, j, k]


def warping_in_two_rows(x, y, b):
    """The distance of a pair of series."""
    last, row = np.full(y.shape[1] + 1, np.inf), np.full(y.shape[1] + 1, np.inf)
    last[0] = 0.0
    for i in range(x.shape[1]):
        for j in range(1, y.shape[1] + 1):
            row[j] = abs(x[b, i] - y[b, j - 1]) + min(last[j], row[j - 1], last[j - 1])
        last, row = row, last
        row[0] = np.inf
    return last[-1]


def scores_in_two_rows(a, b, p, match, mismatch, start, extend):
    """The score of a pair of sequences."""
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
    return best
