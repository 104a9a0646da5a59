"""Random nests as source text: statements, arrays, offsets, dtypes, tables, time buffers."""

import ast
import dataclasses
import random

import numpy as np
from tilewave.nest.parse import parse

FLOATS, INTS = ("f4", "f8"), ("i4", "i8", "i1", "i2", "u1", "u2", "u4", "u8")
WEIGHTS = {1: ("0.9",), 2: ("0.5", "0.4"), 3: ("0.4", "0.3", "0.25")}  # sums below 1: values stay finite
TABLE_EXTENT = 50  # more than any loop, so that index + constant stays inside, counted from either end


@dataclasses.dataclass
class Array:
    """What a body uses of an array."""

    name: str
    axes: tuple  # index names; of a table None for a computed subscript
    dtype: str
    role: str  # "written", "input", "index" (holds subscripts of a table), "table"
    places: set = dataclasses.field(default_factory=set)  # (axes, offsets) of its accesses, as in the finished text
    orders: tuple = ()  # of an input that may be read in several orders: the axes of each
    extent: int = 0  # of a table's computed subscripts: index arrays hold -extent..extent-1

    @property
    def is_float(self):
        return self.dtype in FLOATS

    @property
    def offsets(self):
        return {offsets for _, offsets in self.places}


@dataclasses.dataclass
class Body:
    """A nest as text, and what its loops need to run."""

    name: str
    text: str
    indices: tuple
    arrays: dict
    scalars: dict  # name to default as text, None for none
    timed: bool
    kinds: set


def write_body(seed, name="body"):
    """The body of a seed."""
    return Writer(seed).body(name)


class Writer:
    """Writes one body; every choice follows from the seed."""

    def __init__(self, seed):
        self.random = random.Random(f"body {seed}")
        self.older = random.Random(f"history {seed}")  # a stream of its own: other bodies stay as they are
        self.turned = random.Random(f"orders {seed}")  # so is this one
        self.reads_history = self.older.random() < 0.4
        self.kinds, self.locals, self.scalars = set(), [], {}
        self.timed = self.chance(0.3)
        self.partial = not self.timed and self.chance(0.2)
        if self.timed:
            self.indices = "tijk"[: self.pick((2, 2, 3, 3, 4))]
        else:
            self.indices = "ijkl"[: self.pick((2, 3, 3, 4) if self.partial else (1, 2, 2, 2, 3, 3, 4))]
        self.space = self.indices[self.timed :]
        self.order = self.pick(("backwards", "box", "any"))
        self.arrays = {}
        self.make_arrays()

    def chance(self, p):
        return self.random.random() < p

    def pick(self, choices):
        return self.random.choice(list(choices))

    # Arrays.

    def make_arrays(self):
        profile = self.random.random()
        one = self.pick(FLOATS if profile < 0.4 else INTS)
        dtypes = (one,) if profile < 0.6 else FLOATS + INTS
        for k in range(self.pick((1, 1, 1, 2, 2, 3))):
            partial = self.partial and (k == 0 or self.chance(0.5)) or self.chance(0.04)
            axes = self.some_indices(ordered=True) if partial and len(self.space) > 1 else tuple(self.space)
            self.add("ABC"[k], (*self.indices[: self.timed], *axes), self.pick(dtypes), "written")
        for k in range(self.pick((0, 1, 1, 2, 3))):
            axes = tuple(self.space) if self.chance(0.4) else self.some_indices(ordered=False)
            self.add("DEF"[k], axes, self.pick(dtypes), "input")
            if self.turned.random() < 0.3:
                self.give_orders(self.arrays["DEF"[k]])
        if self.chance(0.25):
            self.make_table(dtypes)

    def add(self, name, axes, dtype, role, **more):
        self.arrays[name] = Array(name, tuple(axes), dtype, role, **more)

    def give_orders(self, array):
        """Two or three orders of its subscripts, an index perhaps at several of them, perhaps all behind time."""
        orders = {array.axes}
        for _ in range(self.turned.choice((1, 1, 2))):
            if self.turned.random() < 0.3:
                orders.add(tuple(self.turned.choice(self.space) for _ in array.axes))
            else:
                orders.add(tuple(self.turned.sample(self.space, len(array.axes))))
        if self.timed and self.turned.random() < 0.3:
            orders, array.axes = {("t", *axes) for axes in orders}, ("t", *array.axes)
        array.orders = tuple(sorted(orders))

    def some_indices(self, ordered):
        chosen = self.random.sample(self.space, self.random.randint(1, len(self.space)))
        if ordered and len(chosen) == len(self.space):
            chosen = chosen[1:]
        return tuple(sorted(chosen) if ordered else chosen)

    def make_table(self, dtypes):
        extent, rank = self.random.randint(3, 7), self.pick((1, 2, 2))
        axes = [self.pick(self.space) if rank == 2 and self.chance(0.3) else None for _ in range(rank)]
        if not any(axis is None for axis in axes):
            axes[0] = None
        self.add("S", axes, self.pick(dtypes), "table", extent=extent)
        for name in "ab"[:rank]:
            self.add(name, (self.pick(self.space),), self.pick(INTS), "index", extent=extent)

    # Accesses.

    def subscripts(self, array, offsets, axes=None):
        parts = []
        for axis, offset in zip(axes or array.axes, offsets):
            parts.append(axis if not offset else f"{offset}+{axis}" if self.chance(0.05) else f"{axis}{offset:+d}")
        return f"{array.name}[{', '.join(parts)}]"

    def read(self, array):
        if array.role == "table":
            return self.look_up(array)
        if array.role == "written":
            return self.subscripts(array, self.offsets_of_written(array))
        axes = self.turned.choice(array.orders) if array.orders else array.axes
        steps = [self.step(0.3) for _ in axes]
        if axes[0] == "t":
            steps[0] = self.turned.choice((0, 0, 1))
        return self.subscripts(array, steps, axes)

    def step(self, p):
        return self.pick((-2, -1, -1, 1, 1, 2)) if self.chance(p) else 0

    def offsets_of_written(self, array):
        rank = len(array.axes) - self.timed
        steps = [self.step(0.5) for _ in range(rank)]
        if not self.timed:
            return self.ordered(steps, self.order)
        level = self.pick((0, 0, 1))
        if self.reads_history and self.older.random() < 0.5:
            level, steps = -self.older.choice((1, 1, 1, 2, 4)), steps if self.older.random() < 0.4 else [0] * rank
            return [level, *steps]
        if level == 0 or self.chance(0.08):
            return [level, *steps]
        return [1, *self.ordered(steps, self.pick(("backwards", "box")))]

    def ordered(self, steps, order):
        """Offsets as they are, or turned to what the loops have passed already."""
        if order == "box":
            steps = [-abs(s) for s in steps]
        if order == "backwards" and next(filter(None, steps), 0) > 0:
            steps = [-s for s in steps]
        return steps

    def look_up(self, table):
        parts = []
        for k, axis in enumerate(table.axes):
            whole = [a for a in self.arrays.values() if not a.is_float and a.role in ("written", "input")]
            if axis is not None:
                parts.append(self.pick((axis, f"{axis}+1", f"{axis}-2")))
            elif whole and self.chance(0.3):
                parts.append(f"{self.read(self.pick(whole))} % {table.extent}")
            else:
                parts.append(self.read(self.arrays["ab"[k]]))
        return f"{table.name}[{', '.join(parts)}]"

    # Expressions: (text, whether it is a float).

    def leaf(self, inputs_only=False):
        if self.locals and not inputs_only and self.chance(0.25):
            return self.pick(self.locals)
        arrays = [a for a in self.arrays.values() if a.role != "index" or self.chance(0.1)]
        inputs = [a for a in arrays if a.role != "written"]
        if inputs_only and not inputs:
            self.add("D", self.space, self.pick(FLOATS + INTS), "input")
            inputs = [self.arrays["D"]]
        array = self.pick(inputs if inputs_only or inputs and self.chance(0.3) else arrays)
        return self.read(array), array.is_float

    def atom(self, inputs_only=False):
        (x, x_float), (y, y_float) = self.leaf(inputs_only), self.leaf(inputs_only)
        either, kind = x_float or y_float, self.random.random()
        if kind < 0.5:
            return x, x_float
        if kind < 0.58:
            return f"abs({x})", x_float
        if kind < 0.7:
            return f"{self.pick(('min', 'max'))}({x}, {y})", either
        if kind < 0.78:
            return f"np.{self.pick(('minimum', 'maximum'))}({x}, {y})", either
        if kind < 0.86:
            return f"np.where({self.condition()}, {x}, {y})", either
        if kind < 0.93:
            return f"({x} if {self.condition()} else {y})", either
        if x_float:
            return f"np.sqrt(abs({x}))", True
        return f"({x} {self.pick(('% 5', '// 2', '* 3'))})", False

    def condition(self):
        if self.chance(0.3):
            index = self.pick(self.indices)
            return self.pick((f"{index} % 2 == 0", f"{index} > 3", f"{self.pick(self.indices)} <= {index}"))
        x, y = self.leaf()[0], self.leaf()[0]
        if self.chance(0.2):
            return f"{x} < {y} or {self.leaf()[0]} > 1"
        return f"{x} {self.pick(('<', '<=', '>', '>=', '!='))} {self.pick((y, y, '1', '0'))}"

    def expression(self, inputs_only=False, first=None):
        atoms = [self.atom(inputs_only) for _ in range(self.random.randint(1, 3))]
        if first:
            atoms[0] = first
        if not any(is_float for _, is_float in atoms) and not self.chance(0.1):
            return self.whole(atoms), False
        text = ""
        for weight, (atom, _) in zip(WEIGHTS[len(atoms)], atoms):
            sign = self.pick(" + | - | + ".split("|")) if text else ""
            text += f"{sign}{self.weight(weight)} * {atom}"
        if self.chance(0.15):
            text += f" + 0.0625 * ({self.pick(self.indices)} + 3)"
        return text, True

    def weight(self, weight):
        if self.chance(0.15):
            self.scalars.setdefault("c", self.pick((None, "0.25")))
            return "c"
        coefficients = [a for a in self.arrays.values() if a.role == "input" and a.is_float]
        if coefficients and self.chance(0.15):
            return f"{weight} * {self.read(self.pick(coefficients))}"
        return weight

    def whole(self, atoms):
        """Integers wrap, so anything goes; literals are small and not negative, as uint8 wants them."""
        text = atoms[0][0]
        for atom, _ in atoms[1:]:
            text = f"{text} {self.pick('+-*')} {atom}"
        kind = self.random.random()
        if kind < 0.15:
            self.scalars.setdefault("m", self.pick((None, "2")))
            return f"({text}) * m"
        if kind < 0.3:
            return f"{text} + ({self.pick(self.indices)} + 3)"
        return f"{text} + 1" if kind < 0.5 else text

    # Statements.

    def assignment(self, array, pad, first=None):
        offsets = [0] * len(array.axes)
        if self.timed:
            offsets[0] = 1
        if self.chance(0.12):
            offsets[self.timed :] = [self.pick((-1, 0, 1)) for _ in offsets[self.timed :]]
        adds = self.chance(0.6 if len(array.axes) < len(self.indices) else 0.08)
        value, is_float = self.expression(inputs_only=adds, first=first)
        target = self.subscripts(array, offsets)
        if adds and (array.is_float or not is_float and not self.narrows(array)):
            return f"{pad}{target} {self.pick('++-')}= {value}\n"
        if is_float and not array.is_float:  # NumPy leaves open what a float out of range becomes
            self.kinds.add("float into int")
            low, high = ("0.0", "200.0") if array.dtype[0] == "u" else ("-100.0", "100.0")
            value = self.pick((f"min(max({value}, {low}), {high})", f"np.minimum(np.maximum({value}, {low}), {high})"))
        elif not array.is_float and self.narrows(array):  # NumPy raises where the value does not fit
            value = f"({value}) % 101"
        return f"{pad}{target} = {value}\n"

    def narrows(self, array):
        """Whether integers of this body may be of a wider type than an array's elements."""
        return np.result_type(*(a.dtype for a in self.arrays.values() if not a.is_float)) != array.dtype

    def statement(self, array, level=1, first=None):
        pad = "    " * level
        if level == 3 or first or not self.chance(0.3):
            return self.assignment(array, pad, first)
        text, known = f"{pad}if {self.condition()}:\n", list(self.locals)
        text += self.statement(array, level + 1)
        if self.chance(0.6):
            other = self.pick([a for a in self.arrays.values() if a.role == "written"])
            text += f"{pad}else:\n" + self.statement(self.pick((array, array, other)), level + 1)
        self.locals = known
        return text

    def local(self):
        value, is_float = self.expression()
        name = f"x{len(self.locals)}"
        self.locals.append((name, is_float))
        return f"    {name} = {value}\n"

    def body(self, name):
        written = [a for a in self.arrays.values() if a.role == "written"]
        targets = written + [self.pick(written) for _ in range(self.pick((0, 0, 1, 2)))]
        targets = targets[: max(3, len(written))]
        self.random.shuffle(targets)
        text, first = self.missing_indices(written)
        for k, array in enumerate(targets):
            if self.chance(0.25):
                text += self.local()
            text += self.statement(array, first=first if k == 0 else None)
        self.arrays = {n: a for n, a in self.arrays.items() if f"{n}[" in text}
        names = [*self.arrays]
        if self.chance(0.3):
            self.random.shuffle(names)
        self.scalars = {n: default for n, default in self.scalars.items() if f"{n} *" in text or f"* {n}" in text}
        scalars = [n if default is None else f"{n}={default}" for n, default in self.scalars.items()]
        parameters = ", ".join([*names, *self.indices, *(["*", *scalars] if scalars else [])])
        text = f"def {name}({parameters}):\n{text}"
        self.describe(text, len(targets))
        return Body(name, text, tuple(self.indices), self.arrays, self.scalars, self.timed, self.kinds)

    def missing_indices(self, written):
        """A read of an input with the indices that no written array has: some subscript must name them."""
        missing = [n for n in self.space if not any(n in array.axes for array in written)]
        if not missing:
            return "", None
        self.add("G", missing, self.pick([a.dtype for a in written]), "input")
        return f"    z = {self.read(self.arrays['G'])}\n", ("z", self.arrays["G"].is_float)

    def describe(self, text, statements):
        """Offsets of the arrays, and kinds, as the finished text has them."""
        tree = parse(text)  # ranks that are threads generate at the same time
        zeros = dict.fromkeys(self.indices, 0)
        buffers = set()
        for node in ast.walk(tree):
            array = self.arrays.get(node.value.id) if isinstance(node, ast.Subscript) else None
            if array is None:
                continue
            if array.role == "table":
                self.kinds |= kinds_of_look_up(node)
                continue
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            offsets = tuple(eval(ast.unparse(part), zeros) for part in parts)
            axes = tuple(name.id for part in parts for name in ast.walk(part) if isinstance(name, ast.Name))
            array.places.add((axes, offsets))
            if array.role == "written":
                self.kinds |= kinds_of_access(isinstance(node.ctx, ast.Store), offsets, self.timed)
                buffers |= {offsets[0]} if isinstance(node.ctx, ast.Load) else set()
        if self.timed:
            self.kinds |= {"time", f"time with {len(self.space)} space indices"}
            self.kinds |= {"time: earlier time steps"} if min(buffers, default=0) < 0 else set()
            self.kinds.add(
                "time: in place"
                if 1 in buffers
                else "time: from the old time step only"
                if buffers
                else "time: no time step read"
            )
        self.kinds |= kinds_of_text(tree, text, self.indices)
        self.kinds |= {f"{len(self.indices)} indices", f"{statements} statements"}
        self.describe_arrays()

    def describe_arrays(self):
        arrays = self.arrays.values()
        written = [a for a in arrays if a.role == "written"]
        self.kinds.add(f"{len(written)} written arrays")
        self.kinds |= {f"dtype {a.dtype}" for a in arrays} | {f"written dtype {a.dtype}" for a in written}
        self.kinds.add("one dtype" if len({a.dtype for a in arrays}) == 1 else "several dtypes")
        for array in arrays:
            if array.role == "written" and len(array.axes) < len(self.indices):
                self.kinds.add("written array of lower rank")
            if array.role == "input" and len(array.axes) < len(self.space):
                self.kinds.add("input of one axis" if len(array.axes) == 1 else "input of lower rank")
            if array.role == "input" and list(array.axes) != sorted(array.axes):
                self.kinds.add("transposed input")
            self.kinds |= set(kinds_of_orders({axes for axes, _ in array.places}))


def kinds_of_orders(orders):
    """What is special about the orders in which an array is subscripted."""
    if len(orders) > 1:
        yield "input in several orders"
        if any("t" in axes for axes in orders):
            yield "time: input in several orders"
        if any(one != other and sorted(one) == sorted(other) for one in orders for other in orders):
            yield "input both ways"
    if any(len(set(axes)) < len(axes) for axes in orders):
        yield "input with an index at several subscripts"


def kinds_of_access(store, offsets, timed):
    """What is special about one access of a written array."""
    space = offsets[timed:]
    if store:
        return {"write at an offset"} if any(space) else set()
    ahead = next(filter(None, space), 0) > 0
    if timed and offsets[0] < 0:
        return {"reads an earlier time step" + (" beside the point" if any(space) else "")}
    if timed and offsets[0] == 0:
        return {"reads the old time step"}
    if timed:
        return {"reads the new time step ahead" if ahead else "reads the new time step behind"}
    if ahead:
        return {"reads ahead"}
    return {"reads behind with a positive component"} if any(s > 0 for s in space) else set()


def kinds_of_look_up(node):
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    kinds = {"table"}
    if any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) for part in parts):
        kinds.add("table by a computed integer")
    if any(not any(isinstance(n, ast.Subscript) for n in ast.walk(part)) for part in parts):
        kinds.add("table by an index")
    return kinds


def kinds_of_text(tree, text, indices):
    """Kinds of statements and expressions."""
    seen = {
        "abs": "abs(", "square root": "np.sqrt(", "np.where": "np.where(", "float scalar": "c *",
        "int scalar": "* m", "augmented assignment": "] += ", "if with else": "else:\n",
        "value of an index": " + 3)",
    }
    kinds = {kind for kind, part in seen.items() if part in text.partition("\n")[2]}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("min", "max"):
            kinds.add("min or max")
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.minimum", "np.maximum"):
            kinds.add("np.minimum or np.maximum")
        elif isinstance(node, ast.IfExp):
            kinds.add("conditional expression")
        elif isinstance(node, ast.If) and not node.orelse:
            kinds.add("if without else")
        elif isinstance(node, ast.Compare):
            left = node.left.left if isinstance(node.left, ast.BinOp) else node.left
            kinds |= {"condition on an index"} if isinstance(left, ast.Name) and left.id in indices else set()
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            kinds.add("local")
    return kinds
