"""The contenders of `bench several`: plain loops by g++, and by Numba, fused by hand and in turn."""

import ctypes

from bench.nests_plain import compiled, numba

FLAGS = "-std=c++17 -O3 -march=native -ffp-contract=off -shared -fPIC".split()


def by_compiler(name):
    """Functions of (arrays, steps, periodic) by how the loops run; empty without g++."""
    library = compiled("several_plain.cpp", FLAGS)
    if library is None:
        return {}
    plain = name.split(",")[0].lower().replace(" ", "_")

    def of(function):
        function.restype = None

        def run(arrays, steps, periodic):
            places = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
            function(places, ctypes.c_int64(len(arrays[0])), ctypes.c_int64(steps), ctypes.c_int(bool(periodic)))

        return run

    return {"g++, in turn": of(getattr(library, plain)), "g++, fused": of(getattr(library, f"{plain}_fused"))}


def by_numba(name):
    """The same of Numba; empty where it is not installed."""
    if numba() is None:
        return {}
    jit = numba().njit

    @jit
    def height(h, u, v, i, below):
        for j in range(h.shape[1] - 1):
            h[i, j] = h[i, j] - 0.1 * (u[below, j] - u[i, j] + v[i, j + 1] - v[i, j])

    @jit
    def zonal(u, h, i, above):
        for j in range(h.shape[1]):
            u[i, j] = u[i, j] - 0.1 * (h[i, j] - h[above, j])

    @jit
    def meridional(v, h, i):
        for j in range(1, h.shape[1]):
            v[i, j] = v[i, j] - 0.1 * (h[i, j] - h[i, j - 1])

    @jit
    def water(h, u, v, steps, periodic):
        n = len(h)
        for _ in range(steps):
            for i in range(n - 1):
                height(h, u, v, i, i + 1)
            if periodic:
                height(h, u, v, n - 1, 0)
                zonal(u, h, 0, n - 1)
            for i in range(1, n):
                zonal(u, h, i, i - 1)
            for i in range(n):
                meridional(v, h, i)

    @jit
    def water_fused(h, u, v, steps, periodic):
        n = len(h)
        for _ in range(steps):
            if periodic:
                height(h, u, v, n - 1, 0)
            for i in range(n):
                if i < n - 1:
                    height(h, u, v, i, i + 1)
                if i > 0 or periodic:
                    zonal(u, h, i, i - 1 if i > 0 else n - 1)
                meridional(v, h, i)

    @jit
    def electric(E, X, Y, i):
        for j in range(1, E.shape[1]):
            E[i, j] = E[i, j] + 0.5 * (Y[i, j] - Y[i - 1, j] - X[i, j] + X[i, j - 1])

    @jit
    def magnetic_x(X, E, i):
        for j in range(E.shape[1] - 1):
            X[i, j] = X[i, j] - 0.5 * (E[i, j + 1] - E[i, j])

    @jit
    def magnetic_y(Y, E, i):
        for j in range(E.shape[1]):
            Y[i, j] = Y[i, j] + 0.5 * (E[i + 1, j] - E[i, j])

    @jit
    def yee(E, X, Y, steps, periodic):
        n = len(E)
        for _ in range(steps):
            for i in range(1, n):
                electric(E, X, Y, i)
            for i in range(n):
                magnetic_x(X, E, i)
            for i in range(n - 1):
                magnetic_y(Y, E, i)

    @jit
    def yee_fused(E, X, Y, steps, periodic):
        for _ in range(steps):
            for i in range(len(E)):
                if i > 0:
                    electric(E, X, Y, i)
                magnetic_x(X, E, i)
                if i > 0:
                    magnetic_y(Y, E, i - 1)

    @jit
    def velocity(p, q, x, y, s, i):
        for j in range(1, p.shape[1] - 1):
            p[i, j] = p[i, j] + 0.2 * (x[i + 1, j] - x[i, j] + s[i, j] - s[i, j - 1])
            q[i, j] = q[i, j] + 0.2 * (s[i, j] - s[i - 1, j] + y[i, j + 1] - y[i, j])

    @jit
    def stress(x, y, s, p, q, i):
        for j in range(1, p.shape[1] - 1):
            a = p[i, j] - p[i - 1, j]
            b = q[i, j] - q[i, j - 1]
            x[i, j] = x[i, j] + 0.3 * a + 0.1 * b
            y[i, j] = y[i, j] + 0.1 * a + 0.3 * b
            s[i, j] = s[i, j] + 0.1 * (p[i, j + 1] - p[i, j] + q[i + 1, j] - q[i, j])

    @jit
    def elastic(p, q, x, y, s, steps, periodic):
        n = len(p)
        for _ in range(steps):
            for i in range(1, n - 1):
                velocity(p, q, x, y, s, i)
            for i in range(1, n - 1):
                stress(x, y, s, p, q, i)

    @jit
    def elastic_fused(p, q, x, y, s, steps, periodic):
        n = len(p)
        for _ in range(steps):
            for i in range(1, n):
                if i < n - 1:
                    velocity(p, q, x, y, s, i)
                if i > 1:
                    stress(x, y, s, p, q, i - 1)

    of = {"shallow water": (water, water_fused), "Yee": (yee, yee_fused), "elastic waves": (elastic, elastic_fused)}

    def called(function):
        return lambda arrays, steps, periodic: function(*arrays, steps, bool(periodic))

    return dict(zip(("Numba, in turn", "Numba, fused"), map(called, of[name.split(",")[0]]), strict=True))
