"""Random nests with a pivot, with values, bounds, directions and plans; and their plain loops."""

import dataclasses
import random

import numpy as np

import tilewave as tw
from tilewave.nest.bounds import loop_bounds
from tilewave.nest.reference import plain_loops

#: By kind of values: dtypes, operations of two operands, functions of two.
KINDS = {
    "float": (("f8", "f4"), "+-*", ("min", "max")),
    "int": (("i4", "i8", "u1", "i2"), "+-*&|", ("min", "max")),
    "bool": (("?",), "&|^", ()),
    "complex": (("c16", "c8"), "+-*", ()),
}
#: Pivots of what is written, and what is only read. "row" and "over_" are names like those of arguments.
PIVOTS = ("[i, k]", "[k, j]", "[k, k]")
OPERANDS = {"row": "[i, j]", "U": "[i]", "V": "[j]", "W": "[k]", "T": "[j, i]", "B": "[k, j]", "C": "[i, k]"}


@dataclasses.dataclass
class Problem:
    """A nest with all that a run of it takes; `expected` are the arrays as the plain loops leave them."""

    nest: object
    text: str
    arrays: dict
    over: dict
    reverse: tuple
    plan: dict
    expected: dict

    def run(self, context=None, threads=1):
        """The written arrays after a run on all ranks of a context, on rank 0; else None."""
        fields = {
            name: tw.field(array.shape, array.dtype, init=array, context=context)
            if name in self.nest.written or name in ("row", "W")
            else array
            for name, array in self.arrays.items()
        }
        plan = {**self.plan, "threads": threads}
        given = {"over": self.over, "reverse": self.reverse, "plan": plan, "context": context}
        assert tw.check(tw.schedule(self.nest, **given, **fields)) is None, self
        report = tw.run(self.nest, **given, **fields)
        whole = {name: fields[name].gather() for name in self.nest.written}
        return (whole, report) if fields[self.nest.written[0]].context.rank == 0 else None

    def check(self, whole):
        """NaNs have no sign that counts."""
        for name, array in self.expected.items():
            same = (whole[name] == array) | ((whole[name] != whole[name]) & (array != array))
            assert same.all(), f"{name} at {np.argwhere(~same)[:3].tolist()}: {self}"

    def __str__(self):
        shapes = {name: (array.dtype.str, array.shape) for name, array in self.arrays.items()}
        return f"{self.text}\n{shapes} over {self.over} reverse {self.reverse} plan {self.plan}"


def random_problem(seed):
    """That of a seed."""
    rng = random.Random(f"pivot {seed}")
    kind = rng.choice([*KINDS])
    dtypes, operations, functions = KINDS[kind]
    written = rng.choice((["D"], ["D"], ["D", "E"]))
    text, operands = _body(rng, written, kind, operations, functions)
    m, n = rng.randint(1, 18), rng.randint(1, 18)
    extents = {"i": m, "j": n, "k": min(m, n)}
    values = np.random.default_rng(seed)
    dtype = rng.choice(dtypes)
    shapes = dict.fromkeys(written, (m, n))
    shapes |= {name: tuple(extents[x] for x in OPERANDS[name] if x in extents) for name in operands}
    arrays = {name: _values(values, shape, dtype) for name, shape in shapes.items()}
    nest = tw.nest_from(text)
    over = {"k": (0, min(m, n)), **(_bounds(rng, m, n) or {})}  # some read no row k
    reverse = tuple(x for x in "kij" if rng.random() < 0.2)
    plan = {"tile": (rng.randint(1, 7), rng.randint(1, 6), n)}
    expected = {name: array.copy() for name, array in arrays.items()}
    box = nest.iteration_box({name: array.shape for name, array in arrays.items()})
    plain_loops(nest, loop_bounds(nest.indices, box, over), expected, dict(nest.scalars), reverse)
    return Problem(nest, text, arrays, over, reverse, plan, {name: expected[name] for name in written})


def _values(rng, shape, dtype):
    if np.dtype(dtype).kind in "?iu":
        return rng.integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)
    array = rng.standard_normal(shape).astype(dtype)
    return array + np.asarray(1j * rng.standard_normal(shape), dtype) if np.dtype(dtype).kind == "c" else array


def _body(rng, written, kind, operations, functions):
    operands = rng.sample([*OPERANDS], rng.randint(0, 2))
    pivots = [name + place for name in written for place in PIVOTS]
    reads = [name + "[i, j]" for name in written] + [name + OPERANDS[name] for name in operands]
    first = [rng.choice(pivots)]

    def expression(depth):
        if depth == 0 or rng.random() < 0.2:
            return first.pop() if first else rng.choice(pivots + reads)
        one, other = expression(depth - 1), expression(depth - 1)
        if functions and rng.random() < 0.3:
            return f"{rng.choice(functions)}({one}, {other})"
        return f"({one} {rng.choice(operations)} {other})"

    lines = [f"x{n} = {expression(2)}" for n in range(len(written))]
    lines += [f"y = {read}" for read in (name + OPERANDS[name] for name in operands)]
    index = rng.random() < 0.15 and kind == "float"
    stores = [f"{name}[i, j] = x{n}{' + 0.5 * i - j' if index else ''}" for n, name in enumerate(written)]
    condition = rng.choice(["", "", "i > k and j > k", "x0 != D[i, j]", *(["i != k"] if index else [])])
    lines += [f"if {condition}:", *("    " + store for store in stores)] if condition else stores
    names = ", ".join([*written, *operands, "k", "i", "j"])
    return f"def body({names}):\n" + "".join(f"    {line}\n" for line in lines), operands


def _bounds(rng, m, n):
    both = min(m, n)
    low, high = sorted(rng.sample(range(both + 1), 2))
    return rng.choice(
        [
            None,
            None,
            {"i": ("k+1", m), "j": ("k+1", n)},
            {"i": (0, ["k", m])},
            {"k": (low, high)},
            {"i": (min(1, m), m), "j": (0, max(n - 1, 0))},
            {"j": (["i", 0], n)} if m <= n else {"i": (["k-2", 0], m)},
            {"j": (["k-1", 0], ["k+3", n])},
        ]
    )
