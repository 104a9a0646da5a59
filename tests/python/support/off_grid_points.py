"""Random sources and receivers between the points of the grid, and the plain loops that they mean."""

import itertools

import numpy as np
from several_nests import plain

import tilewave as tw

NESTS = {
    1: "def step(u, t, i):\n    u[t+1, i] = 0.25 * (u[t, i-1] + 2 * u[t, i] + u[t, i+1])\n",
    2: "def step(u, t, i, j):\n    u[t+1, i, j] = 0.25 * (u[t, i-1, j] + u[t, i, j+1] + u[t, i, j])\n",
    3: "def step(u, t, i, j, k):\n    u[t+1, i, j, k] = 0.3 * (u[t, i-1, j, k] + u[t, i, j+1, k] - u[t, i, j, k+1])\n",
}
NESTS = {dims: tw.nest_from(text) for dims, text in NESTS.items()}
AFTER = {
    dims: tw.nest_from(f"def after(u, t{i}):\n    u[t+1{i}] = 0.5 * u[t{i}]\n")
    for dims, i in ((1, ", i"), (2, ", i, j"), (3, ", i, j, k"))
}


def neighbours(off_grid, shape, steps, step):
    """Of each point the list of (index, weight): plain loops."""
    first, weights = off_grid._neighbours(shape, steps)
    if first.ndim == 3:
        first, weights = first[step], weights[step]
    for point, factors in zip(first, weights, strict=True):
        around = []
        for at in itertools.product(range(factors.shape[1]), repeat=len(shape)):
            weight = np.float64(1)
            for axis, k in enumerate(at):
                weight = weight * factors[axis, k]
            if weight != 0:
                around.append((tuple(int(a) + k for a, k in zip(point, at, strict=True)), weight))
        yield around


def times(weight, number):
    """Complex numbers by parts: a complex product adds zeros, and a -0 becomes 0."""
    wide = number.astype("c16" if number.dtype.kind == "c" else "f8")
    return weight * wide if wide.dtype.kind == "f" else np.complex128(complex(weight * wide.real, weight * wide.imag))


def looped(nests, u, steps, sources, values, receivers):
    """The meaning: each step, then what is added, then what is recorded."""
    u, wide = u.copy(), "c16" if u.dtype.kind == "c" else "f8"
    recorded = np.zeros((steps, values.shape[1]), u.dtype)
    for step in range(steps):
        plain(nests, {"u": u}, {}, 1, [None] * len(nests), {"u": u})
        for k, around in enumerate(neighbours(sources, u.shape, steps, step)):
            for index, weight in around:
                u[index] = u[index].astype(wide) + times(weight, values[step, k])
        for k, around in enumerate(neighbours(receivers, u.shape, steps, step)):
            total = np.zeros((), wide)[()]
            for index, weight in around:
                total = total + times(weight, u[index])
            recorded[step, k] = total
    return u, recorded


class RandomPoints:
    """A run with sources and receivers between points, which may move, coincide, and lie at edges and grid points."""

    def __init__(self, seed):
        draw = np.random.default_rng(seed)
        self.dims = int(draw.integers(1, 4))
        self.shape = tuple(int(n) for n in draw.integers(4, (40, 16, 9)[self.dims - 1], self.dims))
        self.steps, self.count = int(draw.integers(1, 6)), int(draw.integers(0, 6))
        self.dtype = str(draw.choice(["f4", "f8", "c8", "c16"]))
        self.nests = [NESTS[self.dims]] + [AFTER[self.dims]] * int(draw.integers(2))
        self.sources, self.receivers = self.points(draw), self.points(draw)
        self.first, self.values = self.numbers(draw, self.shape), self.numbers(draw, (self.steps, self.count))

    def numbers(self, draw, shape):
        found = draw.standard_normal(shape)
        return (found + 1j * draw.standard_normal(shape) if self.dtype[0] == "c" else found).astype(self.dtype)

    def points(self, draw):
        moving = (self.steps,) if draw.random() < 0.5 else ()
        at = draw.random((*moving, self.count, self.dims)) * (np.array(self.shape) - 1)
        at = np.where(draw.random(at.shape) < 0.2, np.round(at), at)
        if self.count > 1:
            at[..., 1, :] = at[..., 0, :]
        if draw.random() < 0.4:
            return tw.OffGrid(at)
        spacing, origin = 0.25 * np.arange(1, self.dims + 1), -3.0
        return tw.OffGrid(
            at * spacing + origin, "sinc", radius=int(draw.integers(2, 5)), origin=origin, spacing=spacing
        )

    def run(self, context):
        u = tw.field(self.shape, self.dtype, self.first, context=context)
        nests = self.nests[0] if len(self.nests) == 1 else tuple(self.nests)
        given = {"inject": {"u": (self.sources, self.values)}, "record": {"u": self.receivers}}
        report = tw.run(nests, u=u, steps=self.steps, **given)
        return u.gather(), report.recorded["u"]
