"""Draws the extents of a program's arrays, scalars, and values."""

import math

import numpy as np

from random_programs.model import FLOAT, INT, Affine
from random_programs.boxes import is_table

LENGTHS = (5, 1, 2, 3, 4, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 63, 64, 65, 66, 127, 128, 129)  # around vectors
MOST_POINTS, MOST_ELEMENTS = 1500, 1_000_000


class Sizes:
    """Draws extents, scalars and values into a setting."""

    def __init__(self, choices, program, setting):
        self.c, self.program, self.setting = choices, program, setting
        self.accesses = [access for nest in program.nests for access, _ in nest.accesses()]
        self._points()
        self._extents()
        while max(map(math.prod, setting.shapes.values())) > MOST_ELEMENTS:  # one index has several dimensions
            longest = max(self.points.keys() - {"t"}, key=lambda index: (self.points[index], index))
            self.points[longest] = (self.points[longest] + 1) // 2
            self._extents()
        self._scalars()
        self._values()

    def _points(self):
        """How many points there are along each loop, and the first of them."""
        c, program, setting = self.c, self.program, self.setting
        nest = program.nests[0]
        room = MOST_POINTS // (6 if any("for q" in each.text() for each in program.nests) else 1) // len(program.nests)
        space = nest.indices[nest.timed :]
        if nest.timed:
            setting.steps = c.pick(2, 1, 3, 4, 5, 9, 0, 2, 3, 40)
            room //= max(1, setting.steps)
        lanes = program.problems()[-1:] if "clean batch" in program.kinds else ()
        self.points, self.low = {}, {}
        for index in reversed(space):  # the last is the longest
            most = max(1, min(room, 200 if index == space[-1] else 40 if len(space) < 3 else 12))
            last = index == space[-1] or c.chance(0.7 if "batch" in program.kinds else 0.15)  # a problem a lane
            if index in lanes:
                self.points[index] = c.pick(*(length for length in LENGTHS if length > 7))
            elif lanes:
                self.points[index] = min(most, c.pick(5, 1, 2, 3, 4, 9))
            else:
                self.points[index] = min(most, c.pick(*LENGTHS) if last else c.between(1, 9))
            room //= self.points[index]
        for access in self.accesses:
            for subscript in access.at:
                if isinstance(subscript, Affine) and subscript.index in self.points:
                    low = max(0, math.ceil(-subscript.offset / subscript.factor))
                    self.low[subscript.index] = max(self.low.get(subscript.index, 0), low)
        self.points["t"], self.low["t"] = setting.steps or 0, 0

    def _extents(self):
        c, setting = self.c, self.setting
        uneven = c.chance(0.25) and "pivot" not in self.program.kinds
        self.inner = c.pick(4, 2, 3, 5, 8, 9, 16, 17, 33, 70)
        need, along, factors = {}, set(), {}
        for access, d, subscript in self._subscripts():
            factors[access.array, d] = max(factors.get((access.array, d), 1), subscript.factor)
            if subscript.index in self.points:
                last = self.low[subscript.index] + self.points[subscript.index] - 1
                least = subscript.factor * last + subscript.offset + 1
                need[access.array, d] = max(need.get((access.array, d), 1), least)
            elif subscript.index and self.program.arrays[access.array].axes[d] != "q":
                along.add((access.array, d))  # its inner index is within it
        for name, array in self.program.arrays.items():
            shape = []
            for d, axis in enumerate(array.axes):
                extent = need.get((name, d), 1)
                if isinstance(axis, int) or axis == "q":
                    shape.append(axis)
                    continue
                if axis in setting.loops_periodic:
                    extent = self.points[axis] * factors.get((name, d), 1)
                elif axis == "rows":
                    extent = self.setting.steps + 3
                elif is_table(name, self.program) or axis == "t":
                    extent = max(extent, self.low.get(axis, 0) + self.points[axis] + (axis == "t"))
                shape.append(max(1, extent + (c.between(0, 2) if uneven and axis not in setting.loops_periodic else 0)))
            setting.shapes[name] = shape
        if "pivot" in self.program.kinds:
            written = [name for name, array in self.program.arrays.items() if array.role == "written"]
            shape = np.max([setting.shapes[name] for name in written], axis=0).tolist()
            setting.shapes |= {name: list(shape) for name in written}
        self.inner = min([self.inner, *(setting.shapes[name][d] for name, d in along)])
        setting.shapes = {
            name: tuple(self.inner if n == "q" else n for n in shape) for name, shape in setting.shapes.items()
        }

    def _subscripts(self):
        """(access, dimension, subscript) of those that are affine and have a dimension."""
        for access in self.accesses:
            array = self.program.arrays[access.array]
            for d, subscript in enumerate(access.at[array.times == "steps" :]):
                if isinstance(subscript, Affine):
                    yield access, d, subscript

    def _scalars(self):
        c, setting = self.c, self.setting
        for name, dtype in self.program.scalars.items():
            if name == "n":
                setting.scalars[name] = self.inner if c.chance(0.7) else c.between(min(2, self.inner), self.inner)
            elif dtype == INT:
                setting.scalars[name] = c.pick(1, 2, 0) if name == "s" else c.pick(2, 1, 3)
            else:
                value = c.pick(0.5, 0.25, -0.75)
                setting.scalars[name] = value if dtype == FLOAT else dtype.type(value)

    # Values.

    def _values(self):
        c, setting, arrays = self.c, self.setting, self.program.arrays
        numbers = np.random.default_rng(c.below(10_000))
        odd = c.often(none=6, nan=1, zero=1, infinite=1)
        for name, array in arrays.items():
            setting.values[name] = self._values_of(numbers, array, setting.shapes[name], odd)
        for access in self.accesses if self.program.timed else ():
            array = arrays[access.array]
            back = access.at[0].offset * (-1 if self.program.backwards else 1) if array.times == "steps" else 0
            if back < 0 and array.name not in setting.history and c.chance(0.6):
                levels = range(c.between(1, 3))
                setting.history[array.name] = [
                    self._values_of(numbers, array, setting.shapes[array.name], odd) for _ in levels
                ]

    def _values_of(self, numbers, array, shape, odd):
        kind, dtype = array.dtype.kind, array.dtype
        if array.role == "subscripts":
            extents = [axis for a in self.program.arrays.values() if a.name == "T" for axis in a.axes]
            extent = min(extents, default=3)
            return numbers.integers(-extent if kind == "i" and odd == "none" else 0, extent, shape).astype(dtype)
        if kind == "b":
            return numbers.random(shape) < 0.5
        if kind in "iu":
            return numbers.integers(0 if kind == "u" else -9, 100 if dtype.itemsize > 1 else 10, shape).astype(dtype)
        found = numbers.integers(-16, 17, shape) / 8.0 if odd == "zero" else numbers.uniform(-1.5, 1.5, shape)
        if kind == "c":
            found = found + 1j * numbers.uniform(-1, 1, shape)
        if odd != "none":
            found[numbers.random(shape) < 0.05] = {"nan": np.nan, "infinite": np.inf, "zero": -0.0}[odd]
        return found.astype(dtype)
