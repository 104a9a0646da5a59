"""The 30 kernels of PolyBench as plain functions, from their mathematics: loops as they stand, for `tw.loops`.

Each kernel is a function of arrays and numbers; ``arguments(name, size)`` gives those of a problem of about ``size``
elements along each dimension, different ones along dimensions that may differ.
"""

import numpy as np

from polybench import linear_algebra, other_kernels  # noqa: F401  # they fill KERNELS
from polybench.known import KERNELS  # noqa: F401


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
