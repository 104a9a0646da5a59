"""Sources and receivers of plain loops: what is added at points after each time step, and what is recorded there."""

import itertools

import numpy as np

from tilewave.nests.points.off_grid import OffGrid


class PlainPoints:
    """What a call adds and records at points.

    Parameters
    ----------
    inject, record : dict or None
        As `run` is given them.
    shapes, dtypes : dict
        Of arrays, by name.
    steps : int
    """

    def __init__(self, inject, record, shapes, dtypes, steps):
        self._inject, self.recorded = [], {}
        for name, (points, values) in (inject or {}).items():
            values = np.asarray(values)
            if dtypes[name].kind not in "fc":
                values = values.astype(dtypes[name])
            self._inject.append((name, _Places(points, shapes[name], steps), values))
        self._record = {name: _Places(points, shapes[name], steps) for name, points in (record or {}).items()}
        for name, places in self._record.items():
            self.recorded[name] = np.zeros((steps, places.count), dtypes[name])

    def after(self, step, array_of):
        """Add and record after a time step; `array_of(name)` is an array as it is then."""
        for name, places, values in self._inject:
            places.add(step, array_of(name), values[step])
        for name, places in self._record.items():
            self.recorded[name][step] = places.values(step, array_of(name))


class _Places:
    """Points of an array, on the grid or between its points."""

    def __init__(self, points, shape, steps):
        self._shape, self._off_grid = shape, isinstance(points, OffGrid)
        if self._off_grid:
            self._first, self._weights = points._neighbours(shape, steps)
            self.count = self._first.shape[-2]
            return
        found = np.asarray(points)
        found = found.reshape(-1, len(shape)) if found.size else np.zeros((0, len(shape)))
        self._at, self.count = tuple(found.astype(np.int64).T), len(found)

    def add(self, step, array, values):
        """Add a value at each point, point after point."""
        if not self._off_grid:
            for at, value in zip(zip(*self._at, strict=True), values, strict=True):
                array[at] = array[at] + value
            return
        wide = _wide(array.dtype)
        for value, around in zip(values, self._neighbours(step), strict=True):
            for index, weight in around:
                array[index] = array[index].astype(wide) + _times(weight, value)

    def values(self, step, array):
        """What is recorded at each point."""
        if not self._off_grid:
            return array[self._at]
        found = np.zeros(self.count, _wide(array.dtype))
        for k, around in enumerate(self._neighbours(step)):
            for index, weight in around:
                found[k] = found[k] + _times(weight, array[index])
        return found.astype(array.dtype)

    def _neighbours(self, step):
        """Of each point (index, weight) of its neighbours, in row-major order."""
        first, weights = self._first, self._weights
        if first.ndim == 3:
            first, weights = first[step], weights[step]
        for point, factors in zip(first, weights, strict=True):
            around = []
            for at in itertools.product(range(factors.shape[1]), repeat=len(self._shape)):
                weight = np.float64(1)
                for axis, k in enumerate(at):
                    weight = weight * factors[axis, k]
                if weight != 0:
                    around.append((tuple(int(a) + k for a, k in zip(point, at, strict=True)), weight))
            yield around


def _wide(dtype):
    return np.dtype("c16" if dtype.kind == "c" else "f8")


def _times(weight, number):
    """A product by parts: that of complex numbers adds zeros, and a -0 becomes 0."""
    if np.iscomplexobj(number):
        return np.complex128(complex(weight * np.float64(number.real), weight * np.float64(number.imag)))
    return weight * np.float64(number)
