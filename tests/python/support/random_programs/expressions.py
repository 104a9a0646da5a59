"""Draws the expressions of a body. Types are followed, so that NumPy gives each a value and stores it without error."""

import numpy as np

from random_programs.functions import BINARY, of_float, of_int
from random_programs.model import FLOAT, INT, Access, Affine, Expression

BOOL = np.dtype(bool)
WEAK = INT, FLOAT


def kind(dtype):
    """One of b, i, f, c."""
    if dtype in WEAK:
        return "i" if dtype == INT else "f"
    return {"u": "i"}.get(dtype.kind, dtype.kind)


def joined(*dtypes):
    """The type of what NumPy computes of several (NEP 50)."""
    strong = [dtype for dtype in dtypes if dtype not in WEAK]
    if not strong:
        return FLOAT if FLOAT in dtypes else INT
    found = np.result_type(*strong)
    if FLOAT in dtypes and found.kind in "biu":
        return np.dtype("f8")
    return np.dtype("i8") if INT in dtypes and found == BOOL else found


def made(dtype, *parts):
    """An expression of texts, accesses and expressions."""
    flat = []
    for part in parts:
        flat += part.parts if isinstance(part, Expression) else (part,)
    return Expression(tuple(flat), dtype)


class Expressions:
    """Expressions of one nest.

    Parameters
    ----------
    choices : Choices
    reads : function
        Draws an element that may be read, as an expression: given the inner indices that are there.
    indices : tuple
    scalars : dict
        Types by name.
    narrow : bool
        Whether small or unsigned integers are about: Python's ints must then be small.
    likes : set
        Names of what is drawn often, "inner", "functions", "conditions".
    """

    def __init__(self, choices, reads, indices, scalars, narrow, likes):
        self.c, self.reads, self.indices, self.scalars = choices, reads, indices, scalars
        self.narrow, self.likes = narrow, likes
        self.locals, self.inner = [], []

    # Leaves.

    def leaf(self):
        what = self.c.often(element=8, local=2 * bool(self.locals), number=1, index=1, scalar=1)
        if what == "element" or what == "scalar" and not self._weights():
            return self.reads(self.inner)
        if what == "local":
            name, dtype = self.c.pick(*self.locals)
            return made(dtype, name)
        if what == "scalar":
            name = self.c.pick(*self._weights())
            return made(self.scalars[name], name)
        return self.number() if what == "number" else self.index()

    def _weights(self):
        return [name for name in self.scalars if name != "n"]

    def number(self):
        if self.c.chance(0.5):
            return made(FLOAT, self.c.pick("0.5", "0.25", "2.0", "1.5", "-0.5"))
        return made(INT, self.c.pick("1", "2", "0", "3"))

    def index(self):
        """An integer of the loops."""
        name = self.c.pick(*self.indices, *self.inner)
        if self.narrow:
            return made(INT, f"{name} % {self.c.pick(2, 3, 5)}") if self.c.chance(0.5) else made(INT, f"({name} // 64)")
        other = self.c.pick(*self.indices, *self.inner)
        return made(INT, self.c.pick(name, f"({name} - {other})", f"{name} % 3", f"{name} // 2", f"({name} + {other})"))

    # Conditions.

    def condition(self, depth=1):
        """Of elements or indices."""
        if self.c.chance(0.4):
            name, other = self.c.pick(*self.indices, *self.inner), self.c.pick(*self.indices, *self.inner)
            symbol = self.c.pick("==", "!=", "<", "<=", ">", ">=")
            return made(BOOL, self.c.pick(f"{name} % 2 == 0", f"{name} {symbol} {other}", f"{name} {symbol} 2",
                                          f"({name} + {other}) % 3 != 1"))  # fmt: skip
        if "inner" in self.likes and not self.inner and self.c.chance(0.15):
            return self.any_of()
        a, b = self.expression(depth - 1), self.leaf()
        if kind(a.dtype) == "c" or kind(b.dtype) == "c":
            return made(BOOL, a, " == ", b)
        found = made(BOOL, a, self.c.pick(" < ", " <= ", " > ", " >= ", " != ", " == "), b)
        last = self.leaf() if self.c.chance(0.1) else None
        if last is not None and kind(last.dtype) != "c":
            found = made(BOOL, found, " <= ", last)
        return made(BOOL, found, self.c.pick(" and ", " or "), self.condition(0)) if self.c.chance(0.15) else found

    # Operations.

    def expression(self, depth):
        if depth <= 0:
            return self.leaf()
        what = self.c.often(leaf=3, binary=6, function=2 + 4 * ("functions" in self.likes),
                            choice=1 + 4 * ("conditions" in self.likes),
                            inner=9 * ("inner" in self.likes and len(self.inner) < 2 - self.c.below(2)))  # fmt: skip
        if what == "leaf":
            return self.leaf()
        if what == "inner":
            return self.generator(depth)
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        if what == "binary":
            return self.binary(a, b)
        return self.function(a, b) if what == "function" else self.choice(a, b)

    def binary(self, a, b):
        dtype, kinds = joined(a.dtype, b.dtype), kind(a.dtype) + kind(b.dtype)
        if a.dtype in WEAK and b.dtype in WEAK:
            return a if self.narrow else made(dtype, "(", a, self.c.pick(" + ", " * "), b, ")")
        if kinds == "bb":
            return made(BOOL, "(", a, self.c.pick(" & ", " | ", " ^ "), b, ")")
        if "c" in kinds:
            return made(dtype, "(", a, self.c.pick(" + ", " - ", " * "), b, ")")
        if "f" in kinds or kind(dtype) == "f":
            return made(dtype, "(", a, self.c.pick(" + ", " * ", " - ", " + ", " - ", " * ", " / ", " % "), b, ")")
        if {a.dtype, b.dtype} <= {np.dtype("i8"), np.dtype("i4"), np.dtype("u4")} and self.c.chance(0.1):
            return made(np.dtype("f8"), "(", a, " / ", b, ")")
        symbols = [" + ", " - ", " * ", " // ", " % "]
        if "b" not in kinds and kind(dtype) == "i":
            symbols += [" & ", " | ", " ^ "]
        return made(dtype, "(", a, self.c.pick(*symbols), b, ")")

    def function(self, a, b):
        k = kind(a.dtype)
        if k == "c":
            return self.c.pick(made(a.dtype, "np.conj(", a, ")"), made(_part(a.dtype), "abs(", a, ")"),
                               made(_part(a.dtype), "(", a, ").real"))  # fmt: skip
        if a.dtype == BOOL:
            return made(BOOL, "(not ", a, ")")
        if kind(b.dtype) != "c" and self.c.chance(0.5):
            if a.dtype == b.dtype or {a.dtype, b.dtype} <= {*WEAK}:
                return made(joined(a.dtype, b.dtype), self.c.pick("max(", "min("), a, ", ", b, ")")
            return self._strong(a, b, self.c.pick("np.maximum(", "np.minimum("), a, ", ", b, ")")
        if a.dtype in WEAK:
            return a if k == "i" else made(a.dtype, "abs(", a, ")")
        if k == "i":
            return of_int(self.c, a, made)
        if a.dtype == b.dtype and self.c.chance(0.3):
            return made(a.dtype, f"{self.c.pick('larger', *(f'np.{name}' for name in BINARY))}(", a, ", ", b, ")")
        return of_float(self.c, a, made)

    def choice(self, a, b):
        test = self.condition()
        if a.dtype == b.dtype:
            return made(a.dtype, "(", a, " if ", test, " else ", b, ")")
        if "c" in (getattr(a.dtype, "kind", ""), getattr(b.dtype, "kind", "")):
            return a  # NumPy's arrays of no dimension round otherwise than its numbers, on some processors
        return self._strong(a, b, "np.where(", test, ", ", a, ", ", b, ")")

    def _strong(self, a, b, *parts):
        """A call of NumPy, whose result is no Python number."""
        dtype = joined(a.dtype, b.dtype)
        return made({INT: np.dtype("i8"), FLOAT: np.dtype("f8")}.get(dtype, dtype), *parts)

    # Loops inside the body.

    def generator(self, depth):
        """max, min, sum, argmax or argmin over an inner index."""
        name = "qr"[len(self.inner)]
        self.inner.append(name)
        term = self.expression(depth - 1)
        if name not in _names_in(term):
            other = self.reads(self.inner)
            term = self.binary(term, other)
        test = self.condition(0) if self.c.chance(0.15) else None
        self.inner.pop()
        empty = self.c.chance(0.15)  # of no terms max and min raise
        ends = ["n", "n", f"0, {self.c.pick(1, 2)}", "n // 2, n", *["1, 1"] * empty]
        if self.inner:
            ends += [f"{self.inner[-1]} + 1", *[self.inner[-1]] * empty]
        else:
            last = self.indices[-1]
            ends += [f"min({last} + 1, n)", f"min({last}, n // 2), n", *[f"min({last}, n)"] * empty]
        loop = f" for {name} in range({self.c.pick(*ends)})"
        kinds = ["sum", "sum", "tw.sum"]
        if kind(term.dtype) != "c":
            kinds += ["max", "min", "tw.max", "tw.min"] + ["tw.argmax", "tw.argmin"] * (not self.narrow)
        function = self.c.pick(*kinds)
        dtype = INT if "arg" in function else joined(INT, term.dtype) if "sum" in function else term.dtype
        return made(dtype, f"{function}(", term, loop, *((" if ", test) if test else ()), ")")

    def any_of(self):
        """Whether a condition holds for some or all numbers of an inner index."""
        self.inner.append("q")
        a, b = self.reads(self.inner), self.leaf()
        symbol = " != " if "c" in kind(a.dtype) + kind(b.dtype) else self.c.pick(" < ", " >= ", " == ")
        self.inner.pop()
        name = self.c.pick("any", "all")
        return made(BOOL, f"{name}(", a, symbol, b, f" for q in range({self.c.pick('n', '1, n', 'n // 2')}))")

    # Values that an element of a dtype can take.

    def value(self, dtype, depth):
        """An expression that can be stored in an array, whatever its value is."""
        found = self.expression(depth)
        wanted, have = kind(dtype), kind(found.dtype)
        if wanted == "b":
            return found if have == "b" else made(BOOL, found, " == 1" if have == "c" else " > 1")
        if wanted == "i":
            if have == "i" and (found.dtype == dtype or found.dtype == INT and self._small(found)):
                return found
            if have == "b" or found.dtype not in WEAK and have == "i" and np.can_cast(found.dtype, dtype):
                return found
            if have == "i":
                return made(found.dtype, "(", found, ") % 101")
            if have == "c":
                return made(BOOL, found, " == 1")
            return made(joined(found.dtype, FLOAT), "np.fmin(np.fmax(", found, ", 0.0), 100.0)")
        if wanted == "f" and have == "c":
            return made(_part(found.dtype), "(", found, ").real")
        return found

    def _small(self, found):
        return self.narrow or len(found.parts) == 1


def _part(dtype):
    """The type of a complex number's parts."""
    return np.dtype(f"f{dtype.itemsize // 2}")


def _names_in(expression):
    """Inner indices that an expression has in its text or subscripts."""
    found = set()
    for part in expression.parts:
        if isinstance(part, Access):
            for subscript in part.at:
                if isinstance(subscript, Affine):
                    found.add(subscript.index)
                else:
                    found |= _names_in(Expression(subscript, INT))
        else:
            found |= {name for name in "qr" if name in part.replace("sqrt", "").replace("square", "")}
    return found
