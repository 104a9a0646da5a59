"""Random bodies as source text: every operator, function and statement that a nest may have."""

import importlib.util
import random
import sys
import tempfile
import threading
from pathlib import Path

from tilewave.nest import names as _names

ARRAYS = ("A", "B", "C")
OFFSETS_OF_WRITTEN = ("[i-1, j]", "[i, j-1]", "[i-1, j-1]", "[i-2, j]", "[i, j-2]", "[i, j]")
OFFSETS = (*OFFSETS_OF_WRITTEN, "[i+1, j]", "[i, j+1]", "[i+1, 1+j]", "[-1+i, j]")
LITERALS = (
    "0", "1", "2", "-1", "3", "7", "0.5", "0.3", "-0.0", "1.5", "1e-3", "2.0", "True", "np.pi", "WEIGHT", "COUNT",
    "SINGLE",
)
# Without copysign: the sign of a NaN is not the loops' own.
BINARY = [name for name in _names.NUMPY_BINARY if name not in ("power", "copysign")]
INTEGER_UNARY = "absolute floor ceil trunc sign square isnan isfinite".split()
INTEGER_BINARY = "minimum maximum fmin fmax remainder fmod".split()
INTEGER_LITERALS = ("0", "1", "2", "3", "7", "-1", "True", "100", "COUNT", "BYTE", "SHORT", "200")


class Generator:
    """Writes one body from a seed; with ``ints`` of functions that small ints have, too."""

    def __init__(self, seed, ints=False):
        self.random = random.Random(seed)
        self.ints = ints
        self.known = []
        self.functions = []

    def pick(self, choices):
        return self.random.choice(list(choices))

    def expression(self, depth):
        if depth <= 0 or self.random.random() < 0.08:
            return self.leaf()
        kind = self.random.random()
        if kind < 0.45:
            symbol = self.pick(("+ - * // % & | ^ << >>" if self.ints else "+ - * + - * / // %").split())
            return f"({self.expression(depth - 1)} {symbol} {self.expression(depth - 1)})"
        if kind < 0.50:
            return (
                f"({self.expression(depth - 1)} ** {self.pick(('2', '3') if self.ints else ('2', '3', '0.5', '2.0'))})"
            )
        if kind < 0.53:
            return self.bits(depth - 1)
        if kind < 0.58:
            return f"({self.pick(('-', '+', 'not ', *'~~' * self.ints))}{self.expression(depth - 1)})"
        if kind < 0.66:
            test = self.condition(depth - 1)
            return f"({self.expression(depth - 1)} if {test} else {self.expression(depth - 1)})"
        if kind < 0.70:
            return f"({self.condition(depth - 1)})"
        if kind < 0.76 and self.functions:
            last = self.pick((f", {self.expression(depth - 1)}", f", q={self.expression(depth - 1)}", ""))
            return f"{self.pick(self.functions)}({self.expression(depth - 1)}{last})"
        return self.call(depth)

    def bits(self, depth):
        """Operators on bits, which floats do not have: of conditions, indices and what int() gives."""
        if depth <= 0 or self.random.random() < 0.4:
            return (
                self.pick(("i", "j", "3", "~i", "0", "(i >> 1)", "True", "(j & 1)"))
                if "j" in getattr(self, "indices", "ij")
                else self.pick(("i", "~i", "(i << 2)", "True"))
            )
        kind = self.random.random()
        if kind < 0.4:
            return f"({self.condition(depth - 1)}) {self.pick('&|^')} ({self.condition(depth - 1)})"
        symbol = self.pick(("&", "|", "^", ">>", "<<"))
        return f"({self.bits(depth - 1)} {symbol} {self.bits(depth - 1) if symbol in '&|^' else self.pick('0123')})"

    def call(self, depth):
        def some(count):
            return ", ".join(self.expression(depth - 1) for _ in range(count))

        kind = self.random.random()
        if kind < 0.25:
            return f"{self.pick(('min', 'max'))}({some(self.pick((2, 2, 3)))})"
        if kind < 0.32:
            return f"{self.pick(('abs', 'abs', 'float'))}({some(1)})"
        if kind < 0.35:
            return self.pick(
                (
                    f"np.clip({some(1)}, -2, {self.leaf()})",
                    f"np.round({some(1)}, {self.pick('0123')})",
                    f"pow({some(1)}, 2)",
                    f"np.clip({some(3)})",
                    f"round({some(1)}, {self.pick('012')})",
                )
            )
        if kind < 0.60:
            return f"np.{self.pick(INTEGER_UNARY if self.ints else _names.NUMPY_UNARY)}({some(1)})"
        if kind < 0.75:
            name = self.pick(INTEGER_BINARY if self.ints else BINARY)
            return f"np.{name}({some(2)})"
        if kind < 0.83:
            return f"np.where({self.condition(depth - 1)}, {some(2)})"
        if kind < 0.92:
            return f"np.{self.pick(_names.NUMPY_TYPES)}({some(1)})"
        if self.ints:
            return f"int({some(1)})"
        return f"math.{self.pick(('sqrt', 'exp', 'atan', 'fabs', 'isnan', 'tanh'))}({some(1)})"

    def condition(self, depth):
        kind = self.random.random()
        if kind < 0.2 and depth > 0:
            return f"{self.condition(depth - 1)} {self.pick(('and', 'or'))} {self.condition(depth - 1)}"
        symbols = "< <= > >= == !=".split()
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        chain = f" {self.pick(symbols)} {self.leaf()}" if kind < 0.35 else ""
        return f"{left} {self.pick(symbols)} {right}{chain}"

    def leaf(self):
        kind = self.random.random()
        if kind < 0.30:
            return "A" + self.pick(OFFSETS_OF_WRITTEN)
        if kind < 0.60:
            return self.pick("BC") + self.pick(OFFSETS)
        if kind < 0.70 and self.known:
            return self.pick(self.known)
        return self.pick((*(INTEGER_LITERALS if self.ints else LITERALS), "i", "j", "c", "d"))

    def statement(self, level, depth):
        kind = self.random.random()
        pad = "    " * level
        if kind < 0.35:
            name = f"x{len(self.known)}"
            text = f"{pad}{name} = {self.expression(depth)}\n"
            self.known.append(name)
            return text
        if kind < 0.55 and level < 3:
            return self.conditional(level, depth)
        if kind < 0.62:
            return f"{pad}{self.target()} {self.pick('+-*')}= {self.expression(depth)}\n"
        if kind < 0.72:
            return self.assignment(pad, depth)
        return f"{pad}{self.target()} = {self.expression(depth)}\n"

    def assignment(self, pad, depth):
        """Of several targets at once, or annotated."""
        names = [f"x{len(self.known) + k}" for k in range(2)]
        kind = self.pick("tcsan")
        if kind == "s" and len(self.known) > 1:
            one, two = self.random.sample(self.known, 2)
            return f"{pad}{one}, {two} = {two}, {one}\n"
        if kind == "a":
            text = f"{pad}{names.pop()}: float = {self.expression(depth)}\n".replace(
                "x" + str(len(self.known) + 1), names[0], 1
            )
        elif kind == "c":
            text = f"{pad}{names.pop(0)} = {self.target()} = {self.expression(depth)}\n"
            names = [f"x{len(self.known)}"]
        elif kind == "n":
            text = f"{pad}{names[0]} = {names[1]} = {self.expression(depth)}\n"
        else:
            text = f"{pad}{names[0]}, {names[1]} = {self.expression(depth - 1)}, {self.expression(depth - 1)}\n"
        self.known.extend(names)
        return text

    def target(self):
        return "A[i, j]"

    def conditional(self, level, depth):
        pad = "    " * level
        text, before = f"{pad}if {self.condition(depth - 1)}:\n", list(self.known)
        text += self.statement(level + 1, depth - 1)
        self.known = list(before)
        if self.random.random() < 0.6:
            text += f"{pad}else:\n" + self.statement(level + 1, depth - 1)
            self.known = list(before)
        return text

    def functions_before(self):
        """Text of functions that the body may call."""
        texts = []
        for k in range(self.pick((0, 0, 1, 2))):
            texts.append(FunctionGenerator(self, self.functions).function(f"f{k}"))
            self.functions = [*self.functions, f"f{k}"]
        return "".join(texts)

    def body(self, name):
        before = self.functions_before()
        statements = "".join(self.statement(1, 3) for _ in range(self.random.randrange(1, 4)))
        last = f"    A[i, j] = {self.expression(3)}\n"
        uses = "    unused = B[i, j] + C[i, j] + A[i-1, j-1]\n"
        return f"{before}@nest\ndef {name}(A, B, C, i, j, *, c, d=0.25):\n{uses}{statements}{last}"


class FunctionGenerator(Generator):
    """Writes a function that bodies call: parameters, locals, early returns, calls of functions before it."""

    def __init__(self, generator, functions):
        self.random, self.ints, self.functions = generator.random, generator.ints, functions
        self.known = ["p", "q"]

    def leaf(self):
        if self.random.random() < 0.7:
            return self.pick(self.known)
        return self.pick(INTEGER_LITERALS if self.ints else LITERALS)

    def bits(self, depth):
        return f"({self.condition(depth)}) {self.pick('&|^')} ({self.condition(depth)})"

    def function(self, name):
        text = (
            f"def {name}(p, q={self.pick(('0.5', '2', 'True', 'SINGLE') if not self.ints else ('2', '3', 'BYTE'))}):\n"
        )
        for _ in range(self.random.randrange(0, 4)):
            kind = self.random.random()
            if kind < 0.3:
                text += f"    x{len(self.known)} = {self.expression(2)}\n"
                self.known.append(f"x{len(self.known)}")
            elif kind < 0.4:
                text += f"    p {self.pick('+-*')}= {self.expression(1)}\n"
            elif kind < 0.5:
                text += "    p, q = q, p\n"
            elif kind < 0.75:
                text += f"    if {self.condition(1)}:\n        return {self.expression(1)}\n"
            else:
                text += (
                    f"    if {self.condition(1)}:\n        p = {self.expression(1)}\n    elif {self.condition(1)}:\n"
                    f"        return {self.expression(1)}\n    else:\n        q = {self.expression(1)}\n"
                )
        return text + f"    return {self.expression(2)}\n"


class NestGenerator(Generator):
    """Writes a nest of any shape: 1 to 3 loops, 1 to 3 written arrays at offsets -2 to 2 each, some
    of lower rank, inputs of any axes, a table.

    The written arrays are A, B, C, the others D and E; T is looked up by P, which has integers. D, E and P may come in
    several orders of their subscripts, an index at several of them, too.
    """

    def __init__(self, seed, ints=False):
        super().__init__(seed, ints)
        self.turned = random.Random(f"orders {seed}")  # a stream of its own: other bodies stay as they are
        self.indices = "ijk"[: self.pick((1, 2, 2, 2, 3))]
        self.axes = {"A": self.indices, "P": self.some_axes()}
        for name in "BC"[: self.pick((0, 0, 1, 1, 2))]:
            self.axes[name] = self.indices if self.random.random() < 0.7 else "".join(sorted(self.some_axes()))
        self.targets = [self.access(name) for name in "ABC" if name in self.axes for _ in range(self.pick((1, 1, 2)))]
        for name in "DE"[: self.pick((0, 1, 2))]:
            self.axes[name] = self.some_axes()
        self.table_rank = self.pick((0, 0, 1, 2))
        self.turns = {name for name in "DEP" if self.turned.random() < 0.3}

    def some_axes(self):
        count = self.random.randrange(1, len(self.indices) + 1)
        return "".join(self.random.sample(self.indices, count))

    def access(self, name):
        axes, offsets = self.axes[name], [self.pick((0, 0, 0, 1, -1, -1, 2, -2)) for _ in self.axes[name]]
        if name in getattr(self, "turns", ()) and self.turned.random() < 0.6:
            axes = "".join(self.turned.choice(self.indices) for _ in axes)
        parts = (f"{index}{offset:+d}" if offset else index for index, offset in zip(axes, offsets, strict=True))
        return f"{name}[{', '.join(parts)}]"

    def target(self):
        return self.pick(self.targets)

    def lookup(self):
        choices = [self.access("P"), self.access("P"), "m", "-1", f"{self.access('P')} % 3"]
        first = [self.access("P")]  # one that makes it a lookup
        return f"T[{', '.join(first + [self.pick(choices) for _ in range(self.table_rank - 1)])}]"

    def leaf(self):
        kind = self.random.random()
        if kind < 0.15:
            return self.target()
        if kind < 0.60:
            return self.access(self.pick([name for name in self.axes if name != "P"]))
        if kind < 0.68 and self.table_rank:
            return self.lookup()
        if kind < 0.76 and self.known:
            return self.pick(self.known)
        literals = INTEGER_LITERALS if self.ints else LITERALS
        return self.pick((*literals, *self.indices, "c", "m"))

    def body(self, name):
        depth, before = self.pick((1, 2, 2, 3)), self.functions_before()
        text = "".join(self.statement(1, depth) for _ in range(self.random.randrange(1, 4)))
        for target in self.targets if self.random.random() < 0.7 else self.targets[:1]:
            text += f"    {target} = {self.expression(depth)}\n"
        text += f"    {self.access('A')} = {self.target()} * 2\n" * (self.random.random() < 0.2)
        arrays = [each for each in (*self.axes, "T") if f"{each}[" in text]
        return f"{before}@nest\ndef {name}({', '.join([*arrays, *self.indices])}, *, c=0.5, m=1):\n{text}"


HEADER = """\
import math
import numpy as np
from tilewave import nest

WEIGHT = 0.125
COUNT = 5
SINGLE = np.float32(0.7)
BYTE = np.uint8(201)
SHORT = np.int16(-77)

"""


_loading = threading.Lock()


def access(array, indices, offsets):
    """An array's element at the point of the loops, moved by offsets, as text."""
    moved = (f"{index}{offset:+d}" if offset else index for index, offset in zip(indices, offsets, strict=True))
    return f"{array}[{', '.join(moved)}]"


def load(folder, name, text):
    """Write source text to a file and import it, so that its functions have source."""
    # A folder of its own: bytecode and line caches go by name, size and time.
    path = Path(tempfile.mkdtemp(dir=folder)) / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    with _loading:  # ranks that are threads load theirs at the same time
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return module


def random_nest(folder, seed, generator=Generator, ints=False):
    """(nest, its text) of a seed."""
    text = generator(seed, ints).body("body")
    return load(folder, f"random_body_{seed}", HEADER + text).body, text
