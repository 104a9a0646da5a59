"""Draws elements of arrays: which subscripts a nest reads and writes."""

from random_programs.expressions import made
from random_programs.model import Access, Affine

SMALL_STEPS = (-1, 1, -2, 2, -1)


class Elements:
    """Elements of a program's arrays, as one nest reads and writes them.

    Parameters
    ----------
    choices : Choices
    world : Arrays
        Arrays, loops and what is wanted of the program.
    written : list of str
        Arrays that this nest writes.
    begun : set of str
        Arrays with time steps that an earlier nest has written in the same time step.
    """

    def __init__(self, choices, world, written, begun=()):
        self.c, self.world, self.written, self.begun = choices, world, written, set(begun)
        self.clean = "clean batch" in world.features
        self.order = choices.pick("backwards", "box", "backwards" if self.clean else "any")
        self.stored = set()  # arrays that statements before have written
        self.factors = {name: each for name, each in world.factors.items() if choices.chance(0.7)}
        self.targets = {name: self._target(world.arrays[name]) for name in written}

    def _target(self, array):
        world = self.world
        still = world.batch or world.timed or world.pivot or world.independent or self.c.chance(0.85)
        factors = self.factors.get(array.name, {})
        at = [Affine(axis, 0 if still else self.c.pick(0, 1, -1), factors.get(axis, 1)) for axis in array.space()]
        if still and factors:
            at = [Affine(each.index, self.c.below(each.factor), each.factor) for each in at]
        if "time kept" in world.features:
            at = [Affine(world.space[0], 1), *map(Affine, world.space[1:])]
        return Access(array.name, (*self._first(array, 1), *at))

    def _first(self, array, level):
        """The subscript of time of a written array, if it has one."""
        if array.times == "rows":
            return ((self.world.row_text,),)
        return (Affine("t", level),) if array.times in ("steps", "axis") else ()

    def read(self, inner):
        """An element that may be read here, as an expression; `inner` are the loops inside the body."""
        c, arrays = self.c, self.world.arrays
        names = [name for name, array in arrays.items() if self._is_read(array, inner)]
        along = [name for name in names if "q" in arrays[name].axes] if inner else []
        along += [name for name in names if inner and arrays[name].role == "written" and not self.world.pivot]
        name = c.pick(*along) if along and c.chance(0.7) else c.pick(*names)
        array = arrays[name]
        if array.role == "written":
            at = self._written(array, inner if name in along else ())
        elif array.role == "table":
            at = self._looked_up(array, inner)
        else:
            axes = c.pick(*self.world.orders[name]) if name in self.world.orders else array.axes
            at = tuple(self._subscript(axis, inner) for axis in axes)
        return made(array.dtype, Access(name, at))

    def _is_read(self, array, inner):
        if array.times in ("rows", "axis", "last") and array.role == "written":
            return array.name in self.written and array.times != "last"
        return inner or "q" not in array.axes

    def _step(self, p):
        return self.c.pick(*SMALL_STEPS) if self.c.chance(p) else 0

    def _subscript(self, axis, inner):
        if axis == "q":
            return Affine(self.c.pick(*inner[::-1]))
        if axis == "t":
            return Affine("t", self.c.pick(0, 0, 1))
        factor = self.c.pick(1, 2) if self.world.factors else 1
        return Affine(axis, self._step(0.3) + 2 * (factor > 1), factor)

    # Written arrays.

    def _written(self, array, inner):
        target = self.targets.get(array.name)
        if self.world.pivot and target and array.name not in self.stored:
            k, i, j = self.world.indices
            return tuple(Affine(index) for index in self.c.pick((i, k), (k, j), (k, k), (i, j)))
        if array.times == "rows" or target and (self.world.pivot or self.world.independent and not self.world.timed):
            return target.at
        batch = self.world.space[: self.world.batch]
        steps = [0 if axis in batch else self._step(0.5) for axis in array.axes]
        if array.times == "axis":  # of the time step before
            return (Affine("t"), *map(Affine, array.space(), steps[1:]))
        if "time kept" in self.world.features:  # written at t+1, in arrays with all of time
            level = self.c.pick(0, 0, 1, -1)
            later = self._ordered(steps[1:], "backwards") if level == 1 or inner else steps[1:]
            at = [Affine(axis, step) for axis, step in zip(array.axes, (level, *later))]
            return tuple([*at[:-1], Affine(self.c.pick(*inner))] if inner and level < 1 else at)
        level = self._level(array, inner)
        if level == 1 and array.name not in self.begun or not array.times and not inner:
            steps = self._ordered(steps, "backwards" if array.times else self.order)
            if self.clean and not any(steps) and self.c.chance(0.9):  # of a point before
                steps = [*steps[:-1], -1]
            if self.clean and self.c.chance(0.05):  # of another problem: this is no batch
                steps = [-1, *steps[1:]]
        factors = self.factors.get(array.name, {})
        at = [Affine(axis, step, factors.get(axis, 1)) for axis, step in zip(array.axes, steps)]
        if inner and array.axes[-1:] == self.world.indices[-1:]:
            first = -abs(at[0].offset) or -1
            at = [Affine(s.index, first if k == 0 and not array.times else 0) for k, s in enumerate(at)]
            at[-1] = Affine(self.c.pick(*inner))
        return (*self._first(array, level), *at)

    def _level(self, array, inner):
        """Which time step is read."""
        c, wants = self.c, self.world.features
        if array.name in self.begun and array.name not in self.written and c.chance(0.8):
            return 1
        if not self.world.independent and not inner and array.name in self.written and c.chance(0.25):
            return 1
        return -c.pick(1, 1, 2) if "history" in wants and c.chance(0.25) else 0

    @staticmethod
    def _ordered(steps, order):
        """Offsets as they are, or turned to what the loops have passed already."""
        if order == "box":
            return [-abs(step) for step in steps]
        if order == "backwards" and next(filter(None, steps), 0) > 0:
            return [-step for step in steps]
        return steps

    # Tables.

    def _looked_up(self, table, inner):
        """Subscripts that are computed at each point."""
        c, at = self.c, []
        for axis in table.axes:
            if isinstance(axis, int):
                source = self.world.arrays[c.pick("a", "b")]
                element = Access(source.name, (Affine(source.axes[0], self._step(0.2)),))
                index = c.pick(*self.world.indices, *inner)
                at.append(c.pick((element,), (f"{index} % {axis}",), (element, f" % {axis}"), ("s",)))
            else:
                at.append(c.pick((f"{axis} // 2",), (f"{axis} % 3",), (f"{axis} // d",), Affine(axis)))
        if all(isinstance(subscript, Affine) for subscript in at):
            at[0] = (f"{table.axes[0]} // 2",)
        return tuple(at)
