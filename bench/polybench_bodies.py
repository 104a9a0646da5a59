"""The 30 kernels of PolyBench as plain functions, from their mathematics: loops as they stand, for `tw.loops`.

Each kernel is a function of arrays and numbers; ``arguments(name, size)`` gives those of a problem of about ``size``
elements along each dimension, different ones along dimensions that may differ.
"""

import math

import numpy as np

KERNELS = {}


def kernel(function):
    """Know a kernel by its name."""
    KERNELS[function.__name__] = function
    return function


# Products of matrices and vectors.


@kernel
def gemm(C, A, B, alpha, beta):
    ni, nj = C.shape
    nk = A.shape[1]
    for i in range(ni):
        for j in range(nj):
            C[i, j] *= beta
        for k in range(nk):
            for j in range(nj):
                C[i, j] += alpha * A[i, k] * B[k, j]


@kernel
def two_mm(D, tmp, A, B, C, alpha, beta):
    ni, nl = D.shape
    nk, nj = B.shape
    for i in range(ni):
        for j in range(nj):
            tmp[i, j] = 0.0
            for k in range(nk):
                tmp[i, j] += alpha * A[i, k] * B[k, j]
    for i in range(ni):
        for j in range(nl):
            D[i, j] *= beta
            for k in range(nj):
                D[i, j] += tmp[i, k] * C[k, j]


@kernel
def three_mm(E, F, G, A, B, C, D):
    ni, nj = E.shape
    nk = A.shape[1]
    nl = F.shape[1]
    nm = C.shape[1]
    for i in range(ni):
        for j in range(nj):
            E[i, j] = 0.0
            for k in range(nk):
                E[i, j] += A[i, k] * B[k, j]
    for i in range(nj):
        for j in range(nl):
            F[i, j] = 0.0
            for k in range(nm):
                F[i, j] += C[i, k] * D[k, j]
    for i in range(ni):
        for j in range(nl):
            G[i, j] = 0.0
            for k in range(nj):
                G[i, j] += E[i, k] * F[k, j]


@kernel
def atax(y, tmp, A, x):
    m, n = A.shape
    for i in range(n):
        y[i] = 0.0
    for i in range(m):
        tmp[i] = 0.0
        for j in range(n):
            tmp[i] += A[i, j] * x[j]
        for j in range(n):
            y[j] += A[i, j] * tmp[i]


@kernel
def bicg(s, q, A, p, r):
    n, m = A.shape
    for i in range(m):
        s[i] = 0.0
    for i in range(n):
        q[i] = 0.0
        for j in range(m):
            s[j] += r[i] * A[i, j]
            q[i] += A[i, j] * p[j]


@kernel
def mvt(x1, x2, A, y1, y2):
    n = A.shape[0]
    for i in range(n):
        for j in range(n):
            x1[i] += A[i, j] * y1[j]
    for i in range(n):
        for j in range(n):
            x2[i] += A[j, i] * y2[j]


@kernel
def gesummv(y, tmp, A, B, x, alpha, beta):
    n = A.shape[0]
    for i in range(n):
        tmp[i] = 0.0
        y[i] = 0.0
        for j in range(n):
            tmp[i] += A[i, j] * x[j]
            y[i] += B[i, j] * x[j]
        y[i] = alpha * tmp[i] + beta * y[i]


@kernel
def gemver(A, x, w, u1, v1, u2, v2, y, z, alpha, beta):
    n = A.shape[0]
    for i in range(n):
        for j in range(n):
            A[i, j] = A[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
    for i in range(n):
        for j in range(n):
            x[i] = x[i] + beta * A[j, i] * y[j]
    for i in range(n):
        x[i] = x[i] + z[i]
    for i in range(n):
        for j in range(n):
            w[i] = w[i] + alpha * A[i, j] * x[j]


@kernel
def syrk(C, A, alpha, beta):
    n, m = A.shape
    for i in range(n):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(m):
            for j in range(i + 1):
                C[i, j] += alpha * A[i, k] * A[j, k]


@kernel
def syr2k(C, A, B, alpha, beta):
    n, m = A.shape
    for i in range(n):
        for j in range(i + 1):
            C[i, j] *= beta
        for k in range(m):
            for j in range(i + 1):
                C[i, j] += A[j, k] * alpha * B[i, k] + B[j, k] * alpha * A[i, k]


@kernel
def symm(C, A, B, alpha, beta):
    m, n = C.shape
    for i in range(m):
        for j in range(n):
            temp = 0.0
            for k in range(i):
                C[k, j] += alpha * B[i, j] * A[i, k]
                temp += B[k, j] * A[i, k]
            C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * temp


@kernel
def trmm(B, A, alpha):
    m, n = B.shape
    for i in range(m):
        for j in range(n):
            for k in range(i + 1, m):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = alpha * B[i, j]


@kernel
def doitgen(A, C4, total):
    nr, nq, np_ = A.shape
    for r in range(nr):
        for q in range(nq):
            for p in range(np_):
                total[p] = 0.0
                for s in range(np_):
                    total[p] += A[r, q, s] * C4[s, p]
            for p in range(np_):
                A[r, q, p] = total[p]


# Solvers.


@kernel
def trisolv(x, L, b):
    n = L.shape[0]
    for i in range(n):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]


@kernel
def lu(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]


@kernel
def ludcmp(A, b, x, y):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            w = A[i, j]
            for k in range(j):
                w -= A[i, k] * A[k, j]
            A[i, j] = w / A[j, j]
        for j in range(i, n):
            w = A[i, j]
            for k in range(i):
                w -= A[i, k] * A[k, j]
            A[i, j] = w
    for i in range(n):
        w = b[i]
        for j in range(i):
            w -= A[i, j] * y[j]
        y[i] = w
    for i in range(n - 1, -1, -1):
        w = y[i]
        for j in range(i + 1, n):
            w -= A[i, j] * x[j]
        x[i] = w / A[i, i]


@kernel
def cholesky(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = math.sqrt(A[i, i])


@kernel
def durbin(y, z, r):
    n = len(r)
    y[0] = -r[0]
    beta = 1.0
    alpha = -r[0]
    for k in range(1, n):
        beta = (1.0 - alpha * alpha) * beta
        total = 0.0
        for i in range(k):
            total += r[k - i - 1] * y[i]
        alpha = -(r[k] + total) / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha


@kernel
def gramschmidt(A, R, Q):
    m, n = A.shape
    for k in range(n):
        square = 0.0
        for i in range(m):
            square += A[i, k] * A[i, k]
        R[k, k] = math.sqrt(square)
        for i in range(m):
            Q[i, k] = A[i, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = 0.0
            for i in range(m):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range(m):
                A[i, j] = A[i, j] - Q[i, k] * R[k, j]


# Statistics.


@kernel
def covariance(cov, mean, data):
    n, m = data.shape
    for j in range(m):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
    for i in range(m):
        for j in range(i, m):
            cov[i, j] = 0.0
            for k in range(n):
                cov[i, j] += data[k, i] * data[k, j]
            cov[i, j] /= n - 1.0
            cov[j, i] = cov[i, j]


@kernel
def correlation(corr, mean, stddev, data):
    n, m = data.shape
    for j in range(m):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for j in range(m):
        stddev[j] = 0.0
        for i in range(n):
            stddev[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        stddev[j] = math.sqrt(stddev[j] / n)
        if stddev[j] <= 0.1:
            stddev[j] = 1.0
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
            data[i, j] /= math.sqrt(n) * stddev[j]
    for i in range(m - 1):
        corr[i, i] = 1.0
        for j in range(i + 1, m):
            corr[i, j] = 0.0
            for k in range(n):
                corr[i, j] += data[k, i] * data[k, j]
            corr[j, i] = corr[i, j]
    corr[m - 1, m - 1] = 1.0


# Graphs, sequences, images.


@kernel
def floyd_warshall(paths):
    n = paths.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                paths[i, j] = min(paths[i, j], paths[i, k] + paths[k, j])


@kernel
def nussinov(table, seq):
    n = len(seq)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])


@kernel
def deriche(out, y1, y2, img, alpha):
    w, h = img.shape
    k = (1.0 - math.exp(-alpha)) ** 2 / (1.0 + 2.0 * alpha * math.exp(-alpha) - math.exp(2.0 * alpha))
    a1 = a5 = k
    a2 = a6 = k * math.exp(-alpha) * (alpha - 1.0)
    a3 = a7 = k * math.exp(-alpha) * (alpha + 1.0)
    a4 = a8 = -k * math.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -math.exp(-2.0 * alpha)
    for i in range(w):
        before = before2 = x1 = 0.0
        for j in range(h):
            y1[i, j] = a1 * img[i, j] + a2 * x1 + b1 * before + b2 * before2
            x1 = img[i, j]
            before2 = before
            before = y1[i, j]
    for i in range(w):
        before = before2 = x1 = x2 = 0.0
        for j in range(h - 1, -1, -1):
            y2[i, j] = a3 * x1 + a4 * x2 + b1 * before + b2 * before2
            x2 = x1
            x1 = img[i, j]
            before2 = before
            before = y2[i, j]
    for i in range(w):
        for j in range(h):
            out[i, j] = y1[i, j] + y2[i, j]
    for j in range(h):
        before = before2 = x1 = 0.0
        for i in range(w):
            y1[i, j] = a5 * out[i, j] + a6 * x1 + b1 * before + b2 * before2
            x1 = out[i, j]
            before2 = before
            before = y1[i, j]
    for j in range(h):
        before = before2 = x1 = x2 = 0.0
        for i in range(w - 1, -1, -1):
            y2[i, j] = a7 * x1 + a8 * x2 + b1 * before + b2 * before2
            x2 = x1
            x1 = out[i, j]
            before2 = before
            before = y2[i, j]
    for i in range(w):
        for j in range(h):
            out[i, j] = y1[i, j] + y2[i, j]


# Stencils.


@kernel
def jacobi_1d(A, B, steps):
    n = len(A)
    for _ in range(steps):
        for i in range(1, n - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, n - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])


@kernel
def jacobi_2d(A, B, steps):
    n, m = A.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


@kernel
def seidel_2d(A, steps):
    n, m = A.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                A[i, j] = (
                    A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1]
                    + A[i, j - 1] + A[i, j] + A[i, j + 1]
                    + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
                ) / 9.0  # fmt: skip


@kernel
def heat_3d(A, B, steps):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    B[i, j, k] = (
                        0.125 * (A[i + 1, j, k] - 2.0 * A[i, j, k] + A[i - 1, j, k])
                        + 0.125 * (A[i, j + 1, k] - 2.0 * A[i, j, k] + A[i, j - 1, k])
                        + 0.125 * (A[i, j, k + 1] - 2.0 * A[i, j, k] + A[i, j, k - 1])
                        + A[i, j, k]
                    )
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    A[i, j, k] = (
                        0.125 * (B[i + 1, j, k] - 2.0 * B[i, j, k] + B[i - 1, j, k])
                        + 0.125 * (B[i, j + 1, k] - 2.0 * B[i, j, k] + B[i, j - 1, k])
                        + 0.125 * (B[i, j, k + 1] - 2.0 * B[i, j, k] + B[i, j, k - 1])
                        + B[i, j, k]
                    )


@kernel
def fdtd_2d(ex, ey, hz, fict):
    nx, ny = ex.shape
    for t in range(len(fict)):
        for j in range(ny):
            ey[0, j] = fict[t]
        for i in range(1, nx):
            for j in range(ny):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(nx):
            for j in range(1, ny):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(nx - 1):
            for j in range(ny - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


@kernel
def adi(u, v, p, q, steps):
    n = u.shape[0]
    dx, dt = 1.0 / n, 1.0 / steps
    mul1, mul2 = 2.0 * dt / (dx * dx), dt / (dx * dx)
    a = -mul1 / 2.0
    b = 1.0 + mul1
    c = a
    d = -mul2 / 2.0
    e = 1.0 + mul2
    f = d
    for _ in range(steps):
        for i in range(1, n - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = v[0, i]
            for j in range(1, n - 1):
                p[i, j] = -c / (a * p[i, j - 1] + b)
                q[i, j] = (
                    -d * u[j, i - 1] + (1.0 + 2.0 * d) * u[j, i] - f * u[j, i + 1] - a * q[i, j - 1]
                ) / (a * p[i, j - 1] + b)
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in range(1, n - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = u[i, 0]
            for j in range(1, n - 1):
                p[i, j] = -f / (d * p[i, j - 1] + e)
                q[i, j] = (
                    -a * v[i - 1, j] + (1.0 + 2.0 * a) * v[i, j] - c * v[i + 1, j] - d * q[i, j - 1]
                ) / (d * p[i, j - 1] + e)
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


def arguments(name, size, seed=1):
    """The arrays and numbers of a problem: well-conditioned, and different for each seed.

    Parameters
    ----------
    name : str
        Of `KERNELS`.
    size : int
        About so many elements along each dimension.
    """
    random = np.random.default_rng(seed)
    n, m, k, h = size, size + 1, size + 2, size + 3

    def some(*shape):
        return random.random(shape) + 0.5

    def definite():
        A = some(n, n)
        return A @ A.T + n * np.eye(n)

    def dominant():
        return some(n, n) + 2 * n * np.eye(n)

    makers = {
        "gemm": lambda: (some(n, m), some(n, k), some(k, m), 1.5, 1.2),
        "two_mm": lambda: (some(n, h), some(n, m), some(n, k), some(k, m), some(m, h), 1.5, 1.2),
        "three_mm": lambda: (some(n, m), some(m, h), some(n, h), some(n, k), some(k, m), some(m, n), some(n, h)),
        "atax": lambda: (some(m), some(n), some(n, m), some(m)),
        "bicg": lambda: (some(m), some(n), some(n, m), some(m), some(n)),
        "mvt": lambda: (some(n), some(n), some(n, n), some(n), some(n)),
        "gesummv": lambda: (some(n), some(n), some(n, n), some(n, n), some(n), 1.5, 1.2),
        "gemver": lambda: (some(n, n), *(some(n) for _ in range(8)), 1.5, 1.2),
        "syrk": lambda: (some(n, n), some(n, m), 1.5, 1.2),
        "syr2k": lambda: (some(n, n), some(n, m), some(n, m), 1.5, 1.2),
        "symm": lambda: (some(n, m), some(n, n), some(n, m), 1.5, 1.2),
        "trmm": lambda: (some(n, m), some(n, n), 1.5),
        "doitgen": lambda: (some(n, m, k), some(k, k), some(k)),
        "trisolv": lambda: (some(n), dominant(), some(n)),
        "lu": lambda: (dominant(),),
        "ludcmp": lambda: (dominant(), some(n), some(n), some(n)),
        "cholesky": lambda: (definite(),),
        "durbin": lambda: (some(n), some(n), some(n) / (2 * n)),
        "gramschmidt": lambda: (some(m, n), some(n, n), some(m, n)),
        "covariance": lambda: (some(n, n), some(n), some(m, n)),
        "correlation": lambda: (some(n, n), some(n), some(n), some(m, n)),
        "floyd_warshall": lambda: (random.integers(1, 100, (n, n)),),
        "nussinov": lambda: (np.zeros((n, n), "i8"), random.integers(0, 4, n)),
        "deriche": lambda: (some(n, m), some(n, m), some(n, m), some(n, m), 0.25),
        "jacobi_1d": lambda: (some(n), some(n), 5),
        "jacobi_2d": lambda: (some(n, m), some(n, m), 5),
        "seidel_2d": lambda: (some(n, m), 5),
        "heat_3d": lambda: (some(n, n, n), some(n, n, n), 3),
        "fdtd_2d": lambda: (some(n, m), some(n, m), some(n, m), some(5)),
        "adi": lambda: (some(n, n), some(n, n), some(n, n), some(n, n), 3),
    }
    return makers[name]()
