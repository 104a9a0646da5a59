"""Draws programs: which arrays there are, which nests run over them, and their bodies."""

import numpy as np

from random_programs.choices import Choices
from random_programs.expressions import Expressions, made
from random_programs.model import FLOAT, INT, Access, Affine, Array, Assign, If, Nest, Program

FLOATS, INTS = ("f8", "f4"), ("i8", "i4", "i2", "i1", "u1", "u2", "u4", "u8")
FEATURES = {"several arrays": 0.5, "partial": 0.15, "orders": 0.2, "tables": 0.2, "inner": 0.25, "conditions": 0.3,
            "locals": 0.4, "functions": 0.3, "scaled": 0.08, "updates": 0.15, "history": 0.3, "independent": 0.4,
            "time rows": 0.15, "mixed": 0.3}  # fmt: skip


def program(choices):
    """A program of choices."""
    return _Draw(choices).program()


class _Draw:
    def __init__(self, choices):
        self.c = c = choices
        self.features = {name for name, p in FEATURES.items() if c.chance(p)}
        self.timed = c.chance(0.35)
        space = c.often(two=6, one=4, three=3, four=1, more=1)
        space = {"one": 1, "two": 2, "three": 3, "four": 4, "more": 5 + (not self.timed and c.below(2))}[space]
        self.space = tuple("ijklmp"[:space])
        self.indices = ("t",) * self.timed + self.space
        self.arrays, self.orders, self.factors = {}, {}, {}
        self.dtypes = self._dtypes()

    def _dtypes(self):
        c = self.c
        if "mixed" in self.features:
            return [np.dtype(d) for d in c.order(("f8", "f4", "i8", "i4", "i2", "u1", "?", "c16", "i1", "u4"))[:3]]
        kind = c.often(floats=8, ints=4, bools=1, complexes=1)
        one = {"floats": FLOATS, "ints": INTS, "bools": ("?",), "complexes": ("c16", "c8")}[kind]
        return [np.dtype(c.pick(*one))]

    # Arrays.

    def add(self, name, axes, role, dtype=None, times=""):
        self.arrays[name] = Array(name, np.dtype(dtype or self.c.pick(*self.dtypes)), tuple(axes), role, times)

    def some_indices(self):
        some = self.c.some(self.space) or [self.c.pick(*self.space)]
        return tuple(some)

    def make_arrays(self):
        c, features = self.c, self.features
        for name in "ABC"[: c.between(1, 3) if "several arrays" in features else 1]:
            partial = "partial" in features and not self.timed and c.chance(0.6)
            self.add(name, self.some_indices() if partial else self.space, "written", times="steps" * self.timed)
            if "scaled" in features and not self.timed:
                self.factors[name] = {index: c.pick(1, 2, 3) for index in self.space}
        for name in "DEF"[: c.between(0, 3)]:
            axes = self.space if c.chance(0.5) else tuple(c.order(self.some_indices()))
            rows = self.timed and "time rows" in features and c.chance(0.6)
            self.add(name, ("t",) * rows + axes, "read", times="axis" if rows else "")
            if "orders" in features and c.chance(0.6):
                self.orders[name] = [axes, *(tuple(c.pick(*self.space) for _ in axes) for _ in range(c.between(1, 2)))]
        if "inner" in features:
            for name in "XYZ"[: c.between(1, 2)]:
                last = c.pick(*self.space)
                self.add(name, c.pick(("q",), ("q", last), (last, "q"), ("q", "q")), "read")
        if "tables" in features:
            self.add("T", [c.between(3, 6) for _ in range(c.between(1, 2))], "read")
            for name in "ab":
                self.add(name, (c.pick(*self.space),), "subscripts", c.pick("i8", "i4", "i1", "u1"))
            if c.chance(0.5):
                self.add("W", (c.pick(*self.indices), *self.some_indices()[:1]), "read")

    # Elements.

    def step(self, p=0.4):
        return self.c.pick(-1, 1, -2, 2, -1) if self.c.chance(p) else 0

    def reads(self, nest, order):
        """A function that draws an element of any array that is read."""
        c = self.c

        def draw(inner):
            names = [name for name, array in self.arrays.items() if inner or "q" not in array.axes]
            along = [name for name in names if "q" in self.arrays[name].axes] if inner else []
            along += nest["written"] if inner else []
            name = c.pick(*along) if along and c.chance(0.7) else c.pick(*names)
            array = self.arrays[name]
            if array.role == "written":
                return self.written_element(array, order, inner if name in along else ())
            if name in ("T", "W"):
                return made(array.dtype, Access(name, self.look_up(array, inner)))
            axes = c.pick(*self.orders[name]) if name in self.orders else array.axes
            axes = ("t",) * (array.times == "axis" and len(axes) < len(array.axes)) + tuple(axes)
            return made(array.dtype, Access(name, tuple(self.subscript(name, axis, inner) for axis in axes)))

        return draw

    def subscript(self, name, axis, inner):
        if axis == "q":
            return Affine(self.c.pick(*inner[::-1]))
        if axis == "t":
            return Affine("t", self.c.pick(0, 0, 1))
        factor = self.c.pick(1, 2) if "scaled" in self.features and not self.timed else 1
        return Affine(axis, self.step(0.3) + 2 * (factor > 1), factor)

    def written_element(self, array, order, inner):
        c = self.c
        steps = [self.step(0.5) for _ in array.axes]
        first = ()
        if array.times == "steps":
            level = c.pick(0, 0, 0, -1) if "history" in self.features else 0
            if "independent" not in self.features and not inner and c.chance(0.25):
                level = 1
            if level == 1:
                steps = self.ordered(steps, "backwards")
            if level < 0:
                level = -c.pick(1, 1, 2)
            first = (Affine("t", level),)
        elif not inner:
            steps = self.ordered(steps, order)
        factors = self.factors.get(array.name, {})
        at = [Affine(axis, step, factors.get(axis, 1)) for axis, step in zip(array.axes, steps)]
        if inner and array.axes[-1:] == self.space[-1:]:
            if array.times != "steps":
                at = [Affine(s.index, -abs(s.offset) or -1 if k == 0 else 0) for k, s in enumerate(at)]
            else:
                at = [Affine(s.index, 0) for s in at]
            at[-1] = Affine(c.pick(*inner))
        return made(array.dtype, Access(array.name, (*first, *at)))

    def ordered(self, steps, order):
        if order == "box":
            return [-abs(step) for step in steps]
        if order == "backwards" and next(filter(None, steps), 0) > 0:
            return [-step for step in steps]
        return steps

    def look_up(self, table, inner):
        """Subscripts of a table, computed at each point."""
        c, at = self.c, []
        for axis in table.axes:
            if isinstance(axis, int):
                source = self.arrays[c.pick("a", "b")]
                element = Access(source.name, (Affine(source.axes[0], self.step(0.2)),))
                index = c.pick(*self.indices, *inner)
                at.append(c.pick((element,), (f"{index} % {axis}",), (element, f" % {axis}"), ("s",)))
            else:
                at.append(c.pick((f"{axis} // 2",), (f"{axis} % 3",), (f"{axis} // d",), Affine(axis)))
        if not any(not isinstance(subscript, Affine) for subscript in at):
            at[0] = (f"{table.axes[0]} // 2",)
        return tuple(at)

    # Bodies.

    def nest(self, name, written):
        c, features = self.c, self.features
        narrow = any(a.dtype.kind == "u" or a.dtype.kind == "i" and a.dtype.itemsize < 4 for a in self.arrays.values())
        likes = features & {"inner", "functions", "conditions"}
        reads = self.reads({"written": written}, c.pick("backwards", "box", "any"))
        self.writer = Expressions(c, reads, self.indices, self.scalars, narrow, likes)
        self.targets = {each: self.target(self.arrays[each]) for each in written}
        body = []
        for each in (*written, *([c.pick(*written)] if c.chance(0.2) else [])):
            if "locals" in features and c.chance(0.6):
                body.append(self.local())
            body.append(self.statement(self.arrays[each], c.between(1, 2)))
        missing = [i for i in self.space if not any(i in self.arrays[each].axes for each in written)]
        if missing:
            self.add("G", missing, "read")
            known = Access("G", tuple(Affine(i) for i in missing))
            body.insert(0, Assign("z", "=", made(self.arrays["G"].dtype, known)))
        return Nest(name, self.indices, tuple(body), tuple(self.scalars), self.timed)

    def target(self, array):
        factors = self.factors.get(array.name, {})
        still = self.timed or self.c.chance(0.85)
        at = [Affine(axis, 0 if still else self.c.pick(0, 1, -1), factors.get(axis, 1)) for axis in array.axes]
        return Access(array.name, (*((Affine("t", 1),) if array.times == "steps" else ()), *at))

    def local(self):
        value = self.writer.expression(self.c.between(1, 2))
        name = f"x{len(self.writer.locals)}"
        self.writer.locals.append((name, value.dtype))
        return Assign(name, "=", value)

    def statement(self, array, depth, level=0):
        c = self.c
        if level < 2 and "conditions" in self.features and c.chance(0.4):
            test, known = self.writer.condition(), list(self.writer.locals)
            then = self.statement(array, depth - 1, level + 1)
            other = (self.statement(array, depth - 1, level + 1),) if c.chance(0.5) else ()
            self.writer.locals = known
            return If(test, (then,), other)
        target, value = self.targets[array.name], self.writer.value(array.dtype, depth)
        if "updates" in self.features and c.chance(0.6):
            return self.update(array, target, value)
        return Assign(target, "=", value)

    def update(self, array, target, value):
        """A value and the one before it; in time steps of the step before."""
        c, old = self.c, made(array.dtype, target)
        kind = array.dtype.kind
        if array.times == "steps" or kind == "b" or kind == "c":
            symbol = "|" if kind == "b" else "+"
            if kind in "iu":
                value = made(value.dtype, "(", value, ") % 101")
            return Assign(target, f"{symbol}=", made(array.dtype, value)) if self.fits(value, array) else Assign(
                target, "=", value)  # fmt: skip
        if value.dtype == array.dtype and c.chance(0.6):
            return Assign(target, "=", made(array.dtype, c.pick("max(", "min("), old, ", ", value, ")"))
        if not self.fits(value, array):
            return Assign(target, "=", value)
        return Assign(target, c.pick("+=", "-="), value)

    def fits(self, value, array):
        """Whether NumPy's sum has the array's type."""
        from random_programs.expressions import joined

        return joined(value.dtype, array.dtype) == array.dtype

    def program(self):
        c = self.c
        self.scalars = {"n": INT, "s": INT, "d": INT, "c": c.pick(FLOAT, np.dtype("f4"), FLOAT)}
        self.make_arrays()
        written = [name for name, array in self.arrays.items() if array.role == "written"]
        nests = [self.nest("body", written)]
        used = {name for nest in nests for name in nest.arrays()}
        arrays = {name: array for name, array in self.arrays.items() if name in used}
        kinds = {*self.features, f"{len(self.indices)} loops", *({"time"} if self.timed else ())}
        return Program(arrays, nests, dict(self.scalars), kinds)


if __name__ == "__main__":
    for seed in range(20):
        print(seed, program(Choices(seed)).text())
