"""A program as plain data: arrays, nests, statements, expressions; and the text of a nest."""

from __future__ import annotations

import dataclasses
import enum
import re

import numpy as np


class Weak(enum.Enum):
    """The types of Python's own numbers, whose type follows from what they meet."""

    INT = 1
    FLOAT = 2


INT, FLOAT = Weak


#: Functions that a body calls: each keeps the type of real numbers.
HELPERS = {
    "larger": "def larger(p, q):\n    if p > q:\n        return p\n    return q\n",
    "folded": "def folded(p):\n    p, q = abs(p), 2 * p\n    p += 0.5 * q\n    return p if p < 3 else p - 1\n",
    "scaled": "def scaled(p, by=0.5):\n    return larger(p * by, p)\n",
}


@dataclasses.dataclass(frozen=True)
class Affine:
    """A subscript: factor * index + offset; without an index a constant."""

    index: str = ""
    offset: int = 0
    factor: int = 1

    def __str__(self):
        if not self.index:
            return str(self.offset)
        scaled = self.index if self.factor == 1 else f"{self.factor}*{self.index}"
        return f"{scaled}{self.offset:+d}" if self.offset else scaled


@dataclasses.dataclass(frozen=True)
class Access:
    """An element of an array; a subscript that is not `Affine` is the parts of an expression."""

    array: str
    at: tuple

    def indices(self):
        return [s.index for s in self.at if isinstance(s, Affine) and s.index]


@dataclasses.dataclass(frozen=True)
class Expression:
    """Parts, each text or an access, and the type of their value: a dtype, INT or FLOAT."""

    parts: tuple
    dtype: object

    def accesses(self):
        return list(accesses_of(self.parts))


def accesses_of(parts):
    """All accesses among parts, those in subscripts too."""
    for part in parts:
        if isinstance(part, Access):
            yield part
            for subscript in part.at:
                if not isinstance(subscript, Affine):
                    yield from accesses_of(subscript)


def text_of(parts, show=None):
    """The text of parts; `show` writes an access."""
    return "".join(part if isinstance(part, str) else (show or plainly)(part) for part in parts)


def plainly(access):
    """An access as the nest has it."""
    return f"{access.array}[{', '.join(str(s) if isinstance(s, Affine) else text_of(s) for s in access.at)}]"


@dataclasses.dataclass(frozen=True)
class Assign:
    """``target op value``; the target is an access or the name of a local."""

    target: object
    op: str
    value: Expression


@dataclasses.dataclass(frozen=True)
class If:
    test: Expression
    then: tuple
    other: tuple = ()


@dataclasses.dataclass(frozen=True)
class Raise:
    """An error of the body."""

    text: str


def lines_of(statements, indent, show=None):
    """The lines of statements."""
    pad = "    " * indent
    for each in statements:
        if isinstance(each, Assign):
            target = each.target if isinstance(each.target, str) else (show or plainly)(each.target)
            yield f"{pad}{target} {each.op} {text_of(each.value.parts, show)}"
        elif isinstance(each, Raise):
            yield f"{pad}raise {each.text}"
        else:
            yield f"{pad}if {text_of(each.test.parts, show)}:"
            yield from lines_of(each.then, indent + 1, show)
            if each.other:
                yield f"{pad}else:"
                yield from lines_of(each.other, indent + 1, show)


def accesses_in(statements):
    """(access, whether it is written) of all accesses of statements."""
    for each in statements:
        if isinstance(each, If):
            yield from ((access, False) for access in each.test.accesses())
            yield from accesses_in((*each.then, *each.other))
            continue
        if isinstance(each, Raise):
            continue
        if isinstance(each.target, Access):
            yield each.target, True
            yield from ((access, False) for access in accesses_of((each.target,)) if access is not each.target)
        yield from ((access, False) for access in each.value.accesses())


@dataclasses.dataclass
class Array:
    """What is fixed of an array before its shape is.

    `axes` has for each dimension the loop index that it follows, the inner index "q", a number, which is the extent of
    a table, or "rows". `times`: "" for no time, "steps" for time steps (then the subscript of time has no dimension),
    "axis" where the first of `axes` is time, "rows" where it is a row for several time steps, "last" of an array
    without some loop index, which keeps the last of several values.
    """

    name: str
    dtype: np.dtype
    axes: tuple
    role: str = "read"  # or "written", "table", "subscripts": holds subscripts of a table
    times: str = ""

    def space(self):
        """The axes that are no time."""
        return self.axes[1:] if self.times in ("axis", "rows") else self.axes


@dataclasses.dataclass
class Nest:
    """Loops and their body."""

    name: str
    indices: tuple
    body: tuple
    scalars: tuple = ()
    timed: bool = False  # the first index is time

    def accesses(self):
        return list(dict.fromkeys(accesses_in(self.body)))

    def arrays(self):
        return list(dict.fromkeys(access.array for access, _ in self.accesses()))

    def written(self):
        return list(dict.fromkeys(access.array for access, written in self.accesses() if written))

    def text(self):
        text = "\n".join(lines_of(self.body, 1))
        named = [name for name in self.scalars if _names(text, name)]
        parameters = [*self.arrays(), *self.indices, *(["*", *named] if named else [])]
        return f"{self.helpers(text)}def {self.name}({', '.join(parameters)}):\n{text}\n"

    def helpers(self, text=None):
        """The functions that the body calls."""
        text, found = text or "\n".join(lines_of(self.body, 1)), ""
        for name in reversed(HELPERS):
            if _names(text + found, name):
                found = HELPERS[name] + found
        return found

    def used_scalars(self):
        text = "\n".join(lines_of(self.body, 1))
        return [name for name in self.scalars if _names(text, name)]


def _names(text, name):
    return re.search(rf"\b{name}\b", text) is not None


@dataclasses.dataclass
class Program:
    """Nests over shared arrays."""

    arrays: dict
    nests: list
    scalars: dict  # name to type: INT, FLOAT or a dtype
    kinds: set
    door: str = "one"  # or "several" in each time step, "chain": one after another
    backwards: bool = False  # time runs downwards
    independent: bool = False  # the points of a time step, or of a nest without time, may be computed in any order
    paired: bool = False  # the first two nests of a chain are run in each of its time steps

    @property
    def timed(self):
        return self.nests[0].timed

    def stages(self):
        """Lists of nests: those of one list are run in each time step."""
        first = len(self.nests) if self.door == "several" else 1 + self.paired
        return [self.nests[:first], *([nest] for nest in self.nests[first:])]

    def problems(self):
        """The loops over the problems of a batch."""
        return next((array.axes for array in self.arrays.values() if array.times == "last"), ())

    def text(self):
        return "\n".join(nest.text() for nest in self.nests)


def mirrored(nest, arrays):
    """A nest whose time runs the other way: t+1 becomes t-1."""

    def turned(access):
        at = []
        for place, each in enumerate(access.at):
            if not isinstance(each, Affine):
                each = tuple(turned(part) if isinstance(part, Access) else part for part in each)
            elif place == 0 and each.index == "t" and arrays[access.array].times in ("steps", "axis"):
                each = Affine("t", -each.offset)
            at.append(each)
        return Access(access.array, tuple(at))

    def turned_in(part):
        if isinstance(part, Expression):
            return Expression(tuple(turned(p) if isinstance(p, Access) else p for p in part.parts), part.dtype)
        if isinstance(part, Raise):
            return part
        if isinstance(part, If):
            return If(turned_in(part.test), tuple(map(turned_in, part.then)), tuple(map(turned_in, part.other)))
        target = part.target if isinstance(part.target, str) else turned(part.target)
        return Assign(target, part.op, turned_in(part.value))

    return dataclasses.replace(nest, body=tuple(map(turned_in, nest.body)))
