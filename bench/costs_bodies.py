"""The nests of `bench costs`."""

import numpy as np
import tilewave as tw


@tw.nest
def functions(A, B, i, j):
    A[i, j] = np.exp(-B[i, j]) * 0.5 + np.sin(B[i, j])


@tw.nest
def exp(A, B, i, j):
    A[i, j] = np.exp(B[i, j])


@tw.nest
def log(A, B, i, j):
    A[i, j] = np.log(B[i, j])


@tw.nest
def dependent(A, B, i, j):
    A[i, j] = 0.3 * np.exp(-A[i-1, j] * B[i, j]) + 0.2 * A[i, j-1]


@tw.nest
def squares(u, v, i, j):
    u[i, j] = 0.5 * u[i, j] ** 2 + v[i, j] ** 2


@tw.nest
def logistic(u, v, i, j):
    u[i, j] = 0.3 * u[i, j-1] ** 2 + v[i, j]


@tw.nest
def best_of_each(H, S, X, Y, b, i, j):
    h = max(H[b, i-1, j-1] + (X[b, i] == Y[b, j]) * 2 - 1, H[b, i-1, j] - 1, H[b, i, j-1] - 1, 0)
    H[b, i, j] = h
    S[b] = max(S[b], h)


@tw.nest
def relax(u, f, i, j, *, w):
    d = 0.25 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] + f[i, j]) - u[i, j]
    u[i, j] = u[i, j] + w * d


@tw.nest
def wave(u, c, t, i, j):
    u[t+1, i, j] = (
        2 * u[t, i, j]
        - u[t-1, i, j]
        + c[i, j] * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])
    )
