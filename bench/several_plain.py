"""The contenders of `bench several`: plain loops by Numba, fused by hand and in turn."""

from bench import several_bodies as bodies
from bench.nests_plain import numba


def by_numba(name):
    """Functions of (arrays, steps, periodic) by how the loops run; empty where Numba is not installed."""
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

    def rows(nest, first, end):
        """The body of a nest along a row, from `first` to `end`, which counts from the end of the row."""
        point = jit(nest.function)

        @jit
        def row(arrays, i):
            for j in range(first, arrays[0].shape[1] + end):
                point(*arrays, i, j)

        return row

    meridional, electric = rows(bodies.meridional, 1, 0), rows(bodies.electric, 1, 0)
    magnetic_x, magnetic_y = rows(bodies.magnetic_x, 0, -1), rows(bodies.magnetic_y, 0, 0)
    velocity, stress = rows(bodies.velocity, 1, -1), rows(bodies.stress, 1, -1)

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
                meridional((v, h), i)

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
                meridional((v, h), i)

    @jit
    def yee(E, X, Y, steps, periodic):
        n = len(E)
        for _ in range(steps):
            for i in range(1, n):
                electric((E, X, Y), i)
            for i in range(n):
                magnetic_x((X, E), i)
            for i in range(n - 1):
                magnetic_y((Y, E), i)

    @jit
    def yee_fused(E, X, Y, steps, periodic):
        for _ in range(steps):
            for i in range(len(E)):
                if i > 0:
                    electric((E, X, Y), i)
                magnetic_x((X, E), i)
                if i > 0:
                    magnetic_y((Y, E), i - 1)

    @jit
    def elastic(p, q, x, y, s, steps, periodic):
        n = len(p)
        for _ in range(steps):
            for i in range(1, n - 1):
                velocity((p, q, x, y, s), i)
            for i in range(1, n - 1):
                stress((x, y, s, p, q), i)

    @jit
    def elastic_fused(p, q, x, y, s, steps, periodic):
        n = len(p)
        for _ in range(steps):
            for i in range(1, n):
                if i < n - 1:
                    velocity((p, q, x, y, s), i)
                if i > 1:
                    stress((x, y, s, p, q), i - 1)

    of = {"shallow water": (water, water_fused), "Yee": (yee, yee_fused), "elastic waves": (elastic, elastic_fused)}

    def called(function):
        return lambda arrays, steps, periodic: function(*arrays, steps, bool(periodic))

    return dict(zip(("Numba, in turn", "Numba, fused"), map(called, of[name.split(",")[0]]), strict=True))
