"""Draws programs: the nests over some arrays, and their bodies."""

import dataclasses
import itertools

from random_programs.arrays import Arrays
from random_programs.choices import Choices
from random_programs.elements import Elements
from random_programs.expressions import BOOL, Expressions, joined, made
from random_programs.model import Access, Affine, Assign, If, Nest, Program, Raise, Weak, mirrored


def program(choices):
    """A program of choices."""
    world = Arrays(choices)
    written = [name for name, array in world.arrays.items() if array.role == "written"]
    plain = [name for name in written if world.arrays[name].times in ("", "steps")]  # others need one of these
    door = choices.often(one=8, several=3 * world.timed, chain=1 if "clean batch" in world.features else 2)
    nests, begun, paired = [], set(), door == "chain" and world.timed and choices.chance(0.3)
    count = 1 if door == "one" else choices.between(1 if door == "several" else 2, 3)
    film = door == "several" and count > 1 and "R" in written and choices.chance(0.7)  # R is of the last nest alone
    for number in range(count):
        own = written if door == "one" else choices.some(written)
        own = own if set(own) & set(plain) else [choices.pick(*plain), *own]
        if film:
            own = ["R"] if number == count - 1 else [name for name in own if name != "R"]
        together = door == "several" or paired and number == 1
        nests.append(_Body(choices, world, own, begun if together else ()).nest(f"body{number}"))
        begun.update(name for name in own if world.arrays[name].times == "steps")
    if door == "chain" and choices.chance(0.2):
        nests.append(choices.pick(*nests))  # one twice
    backwards = world.timed and "backwards in time" in world.features
    if backwards:
        nests = [mirrored(nest, world.arrays) for nest in nests]
    kinds = set()
    if door == "one" and not (world.timed or world.pivot) and choices.chance(0.05):
        changed = _writes_nothing(nests[0], world.arrays)
        kinds = {"writes nothing"} if changed is not nests[0] else set()
        nests = [changed]
    used = {name for nest in nests for name in nest.arrays()}
    arrays = {name: array for name, array in world.arrays.items() if name in used}
    kinds |= {*world.features, f"{len(world.indices)} loops", f"program {door}"}
    kinds |= {name for name, there in (("time", world.timed), ("pivot", world.pivot)) if there}
    kinds -= {"batch"} if not world.batch else set()
    kinds |= {"paired"} if paired else set()
    kinds |= {"film"} if film else set()
    return Program(arrays, nests, dict(world.scalars), kinds, door, backwards, world.independent, paired)


def plain_program(seed, avoided=()):
    """A program of one nest with steps in space only, for tests of what is made of a nest."""
    others = {"program several", "program chain", "time", "pivot", "inner", "scaled", "batch", *avoided}
    drawn = (program(Choices(f"nest {seed} {number}")) for number in itertools.count())
    return next(made for made in drawn if not made.kinds & others)


def _writes_nothing(nest, arrays):
    """The nest with locals in place of what it writes, where it has real numbers to be reduced."""
    body = []
    for each in nest.body:
        if not isinstance(each, Assign):
            return nest
        if isinstance(each.target, Access):
            dtype, given = arrays[each.target.array].dtype, each.value.dtype
            if each.op != "=" or isinstance(given, Weak) or "c" in (dtype.kind, given.kind):
                return nest
            body += [
                Assign(f"r{len(body)}", "=", each.value), Assign(f"r{len(body) + 1}", "=", made(dtype, each.target))
            ]  # fmt: skip
        else:
            body.append(each)
    return dataclasses.replace(nest, body=tuple(body))


class _Body:
    """Draws the body of one nest."""

    def __init__(self, choices, world, written, begun):
        self.c, self.world, self.written = choices, world, written
        self.elements = Elements(choices, world, written, begun)
        likes = world.features & {"inner", "functions", "conditions"}
        self.writer = Expressions(choices, self.elements.read, world.indices, world.scalars, world.narrow(), likes)

    def nest(self, name):
        c, world, body = self.c, self.world, []
        once = world.pivot or "clean batch" in world.features
        again = [c.pick(*self.written)] if c.chance(0.2) and not once else []
        lasting = [each for each in self.written if world.arrays[each].times == "last"]
        if world.pivot:  # some row or column k is read
            k, i, j = world.indices
            at = tuple(Affine(index) for index in c.pick((i, k), (k, j), (k, k)))
            body.append(Assign("z", "=", made(world.arrays["A"].dtype, Access("A", at))))
            self.writer.locals.append(("z", world.arrays["A"].dtype))
        for each in (*(each for each in self.written if each not in lasting), *again, *lasting):
            if "locals" in world.features and c.chance(0.6):
                body.append(self.local())
            body.append(self.statement(world.arrays[each], c.between(1, 2)))
            self.elements.stored.add(each)
        missing = [i for i in world.indices if not self.has(i)]
        if missing and not world.pivot:
            name_of = f"G{name[-1]}"
            world.add(name_of, missing, "read")
            known = Access(name_of, tuple(Affine(i) for i in missing))
            body.insert(0, Assign("z", "=", made(world.arrays[name_of].dtype, known)))
        if "colours" in world.features and not world.pivot:
            colour = c.pick(f"({' + '.join(world.space[-2:])}) % 2 == s", f"({world.space[-1]} + 1) & 1", "i % 3 != d")
            body = [If(made(BOOL, colour), tuple(body))]
        if c.chance(0.02):
            body.append(If(self.writer.condition(), (Raise('ValueError("no number")'),)))
        return Nest(name, world.indices, tuple(body), tuple(world.scalars), world.timed)

    def has(self, index):
        """Whether an index is a subscript of what the nest writes."""
        targets = [self.elements.targets[each] for each in self.written]
        return any(isinstance(at, Affine) and at.index == index for target in targets for at in target.at)

    def local(self):
        if self.c.chance(0.15):
            return self.two_locals()
        value = self.writer.expression(self.c.between(1, 2))
        name = f"x{len(self.writer.locals)}"
        self.writer.locals.append((name, value.dtype))
        return Assign(name if self.c.chance(0.9) else f"{name}: float", "=", value)

    def two_locals(self):
        """Two at once; perhaps they change places."""
        known = self.writer.locals
        if len(known) > 1 and known[-1][1] == known[-2][1]:
            (one, dtype), (two, _) = known[-2:]
            return Assign(f"{one}, {two}", "=", made(dtype, f"{two}, {one}"))
        a, b = self.writer.expression(1), self.writer.expression(1)
        names = f"x{len(known)}", f"x{len(known) + 1}"
        if self.c.chance(0.3):
            known += [(name, a.dtype) for name in names]
            return Assign(" = ".join(names), "=", a)
        known += [(names[0], a.dtype), (names[1], b.dtype)]
        return Assign(", ".join(names), "=", made(a.dtype, a, ", ", b))

    def statement(self, array, depth, level=0):
        c = self.c
        if level < 2 and "conditions" in self.world.features and c.chance(0.4):
            test, known = self.writer.condition(), list(self.writer.locals)
            then = self.statement(array, depth - 1, level + 1)
            other = (self.statement(array, depth - 1, level + 1),) if c.chance(0.5) else ()
            self.writer.locals = known
            return If(test, (then,), other)
        target = self.elements.targets[array.name]
        known = [name for name in self.elements.stored if self.world.arrays[name].dtype == array.dtype]
        if array.times == "last" and known and c.chance(0.7):
            value = made(array.dtype, self.elements.targets[c.pick(*sorted(known))])
        else:
            value = self.writer.value(array.dtype, depth)
        if "updates" in self.world.features and not self.world.pivot and c.chance(0.6):
            return self.update(array, target, value)
        return Assign(target, "=", value)

    def update(self, array, target, value):
        """A value and the one before it, in an operation that keeps the array's type."""
        c, kind = self.c, array.dtype.kind
        if value.dtype == array.dtype and kind not in "bc" and array.times != "steps" and c.chance(0.6):
            return Assign(target, "=", made(array.dtype, c.pick("max(", "min("), target, ", ", value, ")"))
        if joined(value.dtype, array.dtype) != array.dtype:
            return Assign(target, "=", value)
        if array.times == "steps" and c.chance(0.5):  # of the time step before, by name
            before = Access(array.name, (Affine("t"), *target.at[1:]))
            return Assign(target, "=", made(array.dtype, before, " | " if kind == "b" else c.pick(" + ", " - "), value))
        return Assign(target, c.pick("|=", "&=") if kind == "b" else c.pick("+=", "-="), value)
