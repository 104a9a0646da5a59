"""Draws how a program is run: sizes, values, memory, bounds, the door, ranks, lanes, the plan, fast paths off."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from random_programs.model import FLOAT, INT, Affine

LENGTHS = (5, 1, 2, 3, 4, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 63, 64, 65, 66, 127, 128, 129)  # around vectors
MOST_POINTS, MOST_TERMS = 1500, 9000


@dataclasses.dataclass(frozen=True)
class Bound:
    """``(factors of outer indices + constant) // divisor``."""

    constant: int
    terms: tuple = ()  # (index, factor)
    divisor: int = 1

    def __str__(self):
        if not self.terms:
            return str(self.constant)
        text = " + ".join(index if factor == 1 else f"{factor}*{index}" for index, factor in self.terms)
        text = f"{text} {'-' if self.constant < 0 else '+'} {abs(self.constant)}"
        return text if self.divisor == 1 else f"({text}) // {self.divisor}"

    def given(self):
        """As `over` takes it."""
        return str(self) if self.terms else self.constant


@dataclasses.dataclass
class Setting:
    """One way to run a program."""

    shapes: dict = dataclasses.field(default_factory=dict)  # with time where it is a dimension
    values: dict = dataclasses.field(default_factory=dict)
    history: dict = dataclasses.field(default_factory=dict)  # names to arrays of the time steps before, latest first
    scalars: dict = dataclasses.field(default_factory=dict)
    layouts: dict = dataclasses.field(default_factory=dict)  # of arrays that are NumPy's
    over: dict = dataclasses.field(default_factory=dict)  # index to (lower bounds, upper bounds, stride)
    reverse: tuple = ()
    periodic: tuple = ()
    steps: int | None = None
    reduce: dict = dataclasses.field(default_factory=dict)  # names to (function, what)
    plan: dict = dataclasses.field(default_factory=dict)
    door: str = "run"
    times: int = 1
    ranks: int = 1
    lanes: int = 1
    without: str = ""
    short_rows: bool = False
    kinds: set = dataclasses.field(default_factory=set)


class Drawn:
    """Draws a `Setting` of a program."""

    def __init__(self, choices, program, fast_paths):
        self.c, self.program, self.paths = choices, program, fast_paths
        self.setting = Setting()

    def setting_of(self):
        c, s = self.c, self.setting
        s.ranks, s.lanes = c.pick(1, 1, 2, 3, 2, 4, 5), c.between(1, 3)
        self.draw_sizes()
        self.draw_scalars()
        self.draw_values()
        self.draw_memory()
        self.draw_loops()
        self.draw_door()
        self.draw_plan()
        return s

    # Sizes.

    def draw_sizes(self):
        c, program = self.c, self.program
        nest = program.nests[0]
        accesses = [access for each in program.nests for access, _ in each.accesses()]
        inner = any("q" in str(access) for access in accesses)
        room, points, self.low = MOST_POINTS // (6 if inner else 1), {}, {}
        space = nest.indices[nest.timed :]
        if nest.timed:
            self.setting.steps = c.pick(2, 1, 3, 4, 5, 9, 0)
            room //= max(1, self.setting.steps)
        for index in reversed(space):  # the last is the longest
            most = max(1, min(room, 200 if index == space[-1] else 40 if len(space) < 3 else 12))
            points[index] = min(most, c.pick(*LENGTHS) if index == space[-1] or c.chance(0.15) else c.between(1, 9))
            room //= points[index]
        need = {}
        for access in accesses:
            for index, factor, offset in _affine(access):
                low = max(0, math.ceil(-offset / factor))
                self.low[index] = max(self.low.get(index, 0), low)
        points["t"], self.low["t"] = self.setting.steps or 0, 0
        self.points = points
        for access in accesses:
            array = program.arrays[access.array]
            at = access.at[array.times == "steps" :]
            for d, subscript in enumerate(at):
                if isinstance(subscript, Affine) and subscript.index in points:
                    last = self.low[subscript.index] + points[subscript.index] - 1
                    need[array.name, d] = max(
                        need.get((array.name, d), 1), subscript.factor * last + subscript.offset + 1
                    )
        uneven = c.chance(0.25)
        self.inner = c.pick(4, 2, 3, 5, 8, 9, 16, 17, 33, 70)
        along = {}  # extents that inner indices are within
        for access in accesses:
            array = program.arrays[access.array]
            for d, subscript in enumerate(access.at[array.times == "steps" :]):
                if isinstance(subscript, Affine) and subscript.index in "qr" and array.axes[d] != "q":
                    along[array.name, d] = True
        for name, array in program.arrays.items():
            shape = []
            for d, axis in enumerate(array.axes):
                if isinstance(axis, int):
                    shape.append(axis)
                elif axis == "q":
                    shape.append(None)
                else:
                    least = self.low.get(axis, 0) + points[axis] + (axis == "t")
                    extent = need.get((name, d), 1) if self._narrows(name) else max(need.get((name, d), 1), least)
                    shape.append(max(1, extent + (c.between(0, 2) if uneven else 0)))
            self.setting.shapes[name] = shape
        least = min([self.setting.shapes[name][d] for name, d in along], default=self.inner)
        self.inner = min(self.inner, least)
        self.setting.shapes = {
            name: tuple(self.inner if n is None else n for n in shape) for name, shape in self.setting.shapes.items()
        }

    def _narrows(self, name):
        array = self.program.arrays[name]
        return all(
            isinstance(subscript, Affine)
            for nest in self.program.nests
            for access, _ in nest.accesses()
            if access.array == name
            for subscript in access.at[array.times == "steps" :]
        )

    def draw_scalars(self):
        c, s = self.c, self.setting
        for name, dtype in self.program.scalars.items():
            if name == "n":
                s.scalars[name] = self.inner if c.chance(0.7) else c.between(min(2, self.inner), self.inner)
            elif dtype == INT:
                s.scalars[name] = c.pick(1, 2, 0) if name == "s" else c.pick(2, 1, 3)
            else:
                value = c.pick(0.5, 0.25, -0.75)
                s.scalars[name] = value if dtype == FLOAT else dtype.type(value)

    # Values.

    def draw_values(self):
        c, s = self.c, self.setting
        numbers = np.random.default_rng(c.below(10_000))
        odd = c.often(none=6, nan=1, zero=1, infinite=1)
        for name, array in self.program.arrays.items():
            s.values[name] = self.values_of(numbers, array, s.shapes[name], odd)
        for nest in self.program.nests if self.program.timed else ():
            for access, _ in nest.accesses():
                array = self.program.arrays[access.array]
                if array.times == "steps" and access.at[0].offset < 0 and array.name not in s.history and c.chance(0.6):
                    s.history[array.name] = [
                        self.values_of(numbers, array, s.shapes[array.name], odd) for _ in range(c.between(1, 3))
                    ]

    def values_of(self, numbers, array, shape, odd):
        kind, dtype = array.dtype.kind, array.dtype
        if array.role == "subscripts":
            tables = [a for a in self.program.arrays.values() if a.name == "T"]
            extent = min([axis for table in tables for axis in table.axes], default=3)
            return numbers.integers(-extent if kind == "i" and odd == "none" else 0, extent, shape).astype(dtype)
        if kind == "b":
            return numbers.random(shape) < 0.5
        if kind in "iu":
            return numbers.integers(0 if kind == "u" else -9, 100 if dtype.itemsize > 1 else 10, shape).astype(dtype)
        found = numbers.integers(-16, 17, shape) / 8.0 if odd == "zero" else numbers.uniform(-1.5, 1.5, shape)
        if kind == "c":
            found = found + 1j * numbers.uniform(-1, 1, shape)
        if odd in ("nan", "infinite", "zero"):
            value = {"nan": np.nan, "infinite": np.inf, "zero": -0.0}[odd]
            found[numbers.random(shape) < 0.05] = value
        return found.astype(dtype)

    # Memory.

    def draw_memory(self):
        c, s = self.c, self.setting
        written = {name for nest in self.program.nests for name in nest.written()}
        in_place = s.ranks == 1 and c.chance(0.4) and not s.history and not self._reads_before()
        for name, array in self.program.arrays.items():
            if name in written and not in_place:
                continue
            if name not in written and not c.chance(0.8 if array.role == "subscripts" or name in "TW" else 0.5):
                continue
            layouts = ["C", "F", "negative", "strided", "offset"]
            s.layouts[name] = c.pick(*layouts) if name in written else c.pick(*layouts, "read-only", "unaligned")
            s.kinds.add(f"memory {s.layouts[name]}")

    def _reads_before(self):
        return any(
            access.at[0].offset < 0
            for nest in self.program.nests
            for access, _ in nest.accesses()
            if self.program.arrays[access.array].times == "steps"
        )

    # Loops.

    def draw_loops(self):
        from random_programs.bounds import draw_over

        c, s, nest = self.c, self.setting, self.program.nests[0]
        space = nest.indices[nest.timed :]
        if c.chance(0.2):
            s.reverse = tuple(c.some(space))
        if c.chance(0.35):
            s.over = draw_over(c, nest, self.program, s)
        if s.over:
            s.kinds.add("over")
        if s.reverse:
            s.kinds.add("reverse")

    # The door, and how it runs.

    def draw_door(self):
        c, s = self.c, self.setting
        s.door = c.often(run=6, bind=2, plan=1)
        s.times = 2 if c.chance(0.25) else 1
        s.kinds |= {f"door {s.door}", f"{s.ranks} ranks", f"{s.lanes} lanes"}

    def draw_plan(self):
        c, s = self.c, self.setting
        nest = self.program.nests[0]
        rank = len(nest.indices)
        share = c.pick(0, 0.2, 0.5, 0.9)
        s.without = ",".join(name for name in self.paths if share and c.chance(share))
        s.short_rows = c.chance(0.5)
        s.plan = {"threads": s.lanes}
        if c.chance(0.4):
            return
        if c.chance(0.5):
            s.plan["tile"] = tuple(c.pick(4, 1, 2, 3, 5, 8, 16) for _ in range(rank))
        for name, p, values in (
            ("grouping", 0.3, ("hyperplane", "vertical")),
            ("schedule", 0.3, ("blocking", "overlapping")),
            ("lookahead", 0.3, (1, 2, 4)),
            ("temporal_block", 0.3, (2, 3, 8)),
            ("aggregate", 0.15, (1, 2, 16)),
            ("chunk_bytes", 0.1, (64, 1024)),
            ("helper", 0.1, (True,)),
            ("poll_period_s", 0.15, (0.0, 1e-6, 1e-3)),
            ("synchronous", 0.15, (True, False)),
            ("storage", 0.15, ("plain", "skewed")),
            ("generator", 0.15, ("sweep", "stencil")),
        ):
            if c.chance(p):
                s.plan[name] = c.pick(*values)
        if rank > 1 and c.chance(0.1):
            s.plan["skew"] = tuple(sorted(c.order(range(rank))[:2]))
        if rank > 1 and c.chance(0.15):
            s.plan["row"] = tuple(c.pick(0, 1, -1) for _ in range(rank))
        if s.ranks > 1 and c.chance(0.25):
            s.plan["weights"] = tuple(c.pick(1, 2, 5, 100) for _ in range(s.ranks))
        if s.ranks > 1 and c.chance(0.25):
            grid, left = [1] * rank, s.ranks if c.chance(0.7) else c.between(1, s.ranks - 1)
            for factor in (2, 3, 2, 5):
                if left > 1 and left % factor == 0:
                    grid[c.between(int(nest.timed), rank - 1)] *= factor
                    left //= factor
            s.plan["grid"] = tuple(grid)


def _affine(access):
    return [
        (subscript.index, subscript.factor, subscript.offset)
        for subscript in access.at
        if isinstance(subscript, Affine) and subscript.index and subscript.index not in "qr"
    ]
