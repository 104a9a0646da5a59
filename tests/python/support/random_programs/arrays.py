"""Draws what a program is about: its loops, its arrays, and which constructs are likely in it."""

import numpy as np

from random_programs.model import FLOAT, INT, Array

FLOATS, INTS = ("f8", "f4"), ("i8", "i4", "i2", "i1", "u1", "u2", "u4", "u8")
MIXED = ("f8", "f4", "i8", "i4", "i2", "u1", "?", "c16", "i1", "u4")
FEATURES = {"several arrays": 0.5, "partial": 0.15, "orders": 0.2, "tables": 0.2, "inner": 0.25, "conditions": 0.3,
            "locals": 0.4, "functions": 0.3, "scaled": 0.08, "updates": 0.15, "history": 0.3, "independent": 0.4,
            "time rows": 0.15, "time kept": 0.15, "trace": 0.1, "batch": 0.2, "step rows": 0.18, "mixed": 0.3,
            "colours": 0.07, "backwards in time": 0.12}  # fmt: skip
#: What else a batch may have: with other features few are computed a problem a lane.
IN_BATCHES = {"several arrays", "locals", "functions", "mixed"}
EXTRA_INDICES = "ijklmp"


class Arrays:
    """The loops and arrays of a program.

    Attributes
    ----------
    features : set
        Names of `FEATURES`.
    indices : tuple
        Time first, if `timed`.
    arrays : dict
    orders : dict
        Of arrays that are read in several orders: the axes of each.
    factors : dict
        Of written arrays: the factor of each index.
    batch : int
        Loops outside, along which nothing depends on anything.
    row_text : str
        The first subscript of an array with step rows.
    """

    def __init__(self, choices):
        self.c = c = choices
        self.features = {name for name, p in FEATURES.items() if c.chance(p)}
        self.pivot = c.chance(0.04)
        self.timed = not self.pivot and c.chance(0.4)
        count = {"one": 1, "two": 2, "three": 3, "four": 4, "more": 5 + (not self.timed and c.below(2))}
        self.space = tuple(EXTRA_INDICES[: count[c.often(two=6, one=4, three=3, four=1, more=1)]])
        if self.pivot:
            self.space = ("k", "i", "j")
        self.indices = ("t",) * self.timed + self.space
        self.batch = 0
        if "batch" in self.features and not self.timed and not self.pivot and len(self.space) > 1:
            self.batch = c.between(1, max(1, len(self.space) - 2))
            if c.chance(0.6):
                self.features = {"clean batch", "batch"} | self.features & IN_BATCHES
        if self.timed or self.pivot or self.batch or len(self.space) < 2 or "scaled" in self.features:
            self.features.discard("time kept")
        self.independent = "independent" in self.features and "time kept" not in self.features
        self.arrays, self.orders, self.factors = {}, {}, {}
        self.row_text = c.pick("t // 2", "t // d", "t % 3", "(t+1) // 2", "t // 5")
        self.dtypes = self._dtypes()
        self.scalars = {"n": INT, "s": INT, "d": INT, "c": c.pick(FLOAT, np.dtype("f4"), FLOAT)}
        self._make()

    def _dtypes(self):
        c = self.c
        if "mixed" in self.features:
            return [np.dtype(d) for d in c.order(MIXED)[:3]]
        kind = c.often(floats=8, ints=4, bools=1, complexes=1)
        one = {"floats": FLOATS, "ints": INTS, "bools": ("?",), "complexes": ("c16", "c8")}[kind]
        one = FLOATS + INTS if "clean batch" in self.features and kind != "floats" else one
        return [np.dtype(c.pick(*one))]

    def narrow(self):
        """Whether Python's numbers have to be small, as some array has small or unsigned integers."""
        dtypes = [array.dtype for array in self.arrays.values()]
        return any(dtype.kind == "u" or dtype.kind == "i" and dtype.itemsize < 4 for dtype in dtypes)

    def add(self, name, axes, role, dtype=None, times=""):
        self.arrays[name] = Array(name, np.dtype(dtype or self.c.pick(*self.dtypes)), tuple(axes), role, times)

    def some_indices(self):
        return tuple(self.c.some(self.space) or [self.c.pick(*self.space)])

    def _make(self):
        c, features = self.c, self.features
        if self.pivot:
            for name in "AB"[: c.between(1, 2)]:
                self.add(name, self.space[1:], "written")
        else:
            self._make_written()
        axes = dtype = None
        for name in "DEF"[: c.between(0, 3)]:
            if axes is None or c.chance(0.7):  # else as the array before, which may be the same one
                axes = self.space if c.chance(0.5) else tuple(c.order(self.some_indices()))
                dtype = None
            rows = self.timed and "time rows" in features and c.chance(0.6)
            self.add(name, ("t",) * rows + axes, "read", dtype, "axis" if rows else "")
            dtype = self.arrays[name].dtype
            if "orders" in features and c.chance(0.6):
                more = [tuple(c.pick(*self.space) for _ in axes) for _ in range(c.between(1, 2))]
                self.orders[name] = [("t",) * rows + each for each in (axes, *more)]
        if "inner" in features:
            for name in "XYZ"[: c.between(1, 2)]:
                last = c.pick(*self.space)
                self.add(name, c.pick(("q",), ("q", last), (last, "q"), ("q", "q")), "read")
        if "tables" in features:
            self.add("T", [c.between(3, 6) for _ in range(c.between(1, 2))], "table")
            for name in "ab":
                self.add(name, (c.pick(*self.space),), "subscripts", c.pick("i8", "i4", "i1", "u1"))
            if c.chance(0.5):
                self.add("W", (c.pick(*self.indices), *self.some_indices()[:1]), "table")

    def _make_written(self):
        c, features = self.c, self.features
        for name in "ABC"[: c.between(1, 3) if "several arrays" in features else 1]:
            partial = "partial" in features and not self.timed and "time kept" not in features and c.chance(0.6)
            self.add(name, self.some_indices() if partial else self.space, "written", times="steps" * self.timed)
            if "scaled" in features:
                self.factors[name] = {index: c.pick(1, 2, 3) for index in self.space}
        if self.batch:
            self.add("S", self.space[: self.batch], "written", times="last")
        if self.timed and "trace" in features:
            self.add("H", ("t", *(self.some_indices() if c.chance(0.3) else self.space)), "written", times="axis")
        if self.timed and "step rows" in features:
            self.add("R", ("rows", *self.space), "written", times="rows")
