"""Random nests that read along a whole axis what earlier steps wrote, and their plain loops."""

import dataclasses
import random

import numpy as np

import tilewave as tw
from tilewave.nest.bounds import loop_bounds
from plain_loops import plain_loops
from tilewave.nests.problem import box_of_loops

KINDS = ("max", "min", "sum", "tw.max", "tw.min", "tw.sum", "tw.argmax", "tw.argmin")
DTYPES = ("f8", "f4", "i8", "i4", "i2", "u1")


@dataclasses.dataclass
class Problem:
    """A nest with all that a run of it takes; `expected` are the written arrays as the plain loops leave them."""

    nest: object
    text: str
    arrays: dict
    arguments: dict
    expected: dict
    cuts: tuple  # loops that ranks may divide

    def run(self, context=None, threads=1, number=0):
        """(the written arrays on rank 0, the report) after a run on all ranks; None elsewhere."""
        given = {
            name: array.copy()
            if name not in self.nest.written and number % 3 or name == "T"
            else tw.field(array.shape, array.dtype, init=array, context=context)
            for name, array in self.arrays.items()
        }
        ranks, count = given["V"].context.size, len(self.nest.indices)
        cut = self.cuts[number % len(self.cuts)]
        plan = {"threads": threads, "grid": tuple(ranks if d == cut else 1 for d in range(count))}
        if number % 2 and ranks * threads > 1:
            plan["tile"] = (1 + number % 5,) * count
        call = {**self.arguments, "plan": plan, "context": context}
        assert tw.check(tw.schedule(self.nest, **call, **given)) is None, self
        report = tw.run(self.nest, **call, **given)
        assert ranks == 1 or report.plan.notes["gathers"] == self.nest.indices[cut], self
        whole = {name: given[name].gather() for name in self.nest.written}
        return (whole, report) if given["V"].context.rank == 0 else None

    def check(self, whole):
        """NaNs have no sign that counts."""
        for name, array in self.expected.items():
            nan = (whole[name] != whole[name]) & (array != array)
            unsigned = f"u{array.itemsize}"
            same = nan | (whole[name].view(unsigned) == array.view(unsigned))
            assert same.all(), f"{name} at {np.argwhere(~same)[:3].tolist()}: {self}"

    def __str__(self):
        shapes = {name: (array.dtype.str, array.shape) for name, array in self.arrays.items()}
        return f"{self.text}\n{shapes} {self.arguments}"


def random_problem(seed):
    """That of a seed."""
    rng, numbers = random.Random(f"gathered {seed}"), np.random.default_rng(seed)
    steps = rng.choice((None, rng.randint(1, 12)))
    backwards = steps is None and rng.random() < 0.2
    loops = rng.choice(("ts", "tbs", "tbs", *(["bts"] if steps is None else [])))
    n, extents = rng.randint(1, 20), {"t": rng.randint(3, 12), "b": rng.randint(1, 7)}
    extents["s"] = n
    aside = rng.choice((-1, 1, 0, 0)) if loops == "tbs" and extents["b"] > 1 else 0
    forward = -1 if backwards else 1
    written = rng.choice((1, 0)) if steps is None else 1

    def at(name, back, **others):
        time = forward * (written - back)
        subscripts = {"t": f"t{time:+d}" if time else "t", "b": "b", "s": "s", **others}
        return f"{name}[{', '.join(subscripts[x] for x in loops)}]"

    def element(back):
        near = {"s": rng.choice(("s", "s", "s-1", "s+1"))} if n > 2 else {}
        return at("V", back, **near, **({"b": f"b{aside:+d}"} if aside and rng.random() < 0.5 else {}))

    back = 2 if steps is None and rng.random() < 0.3 else 1

    def loop():
        old = at("V", rng.randint(1, back), s="q", **({"b": f"b{aside:+d}"} if aside and rng.random() < 0.5 else {}))
        term = rng.choice((f"{old} + T[q, s]", f"{old} * T[s, q]", f"max({old}, T[q, s])", old))
        ends = rng.choice(("n", "n", "len(T)", f"{n // 2}, n", "min(s + 1, n)"))
        return f"{rng.choice(KINDS)}({term} for q in range({ends}))"

    floats = rng.random() < 0.6
    dtype = rng.choice(DTYPES[:2] if floats else DTYPES[2:])
    lines, names = [f"x = {loop()}"], ["V"]
    if rng.random() < 0.4:
        lines[0] += f" + {element(1)}"
    if rng.random() < 0.4:
        lines[0] += " + " + at("E", written)
    lines.append(f"u = 0 * tw.argmax(T[q, s] + {at('V', 1, s='q')} for q in range(n))")  # so that all are arrays
    store = [f"{at('V', 0)} = x + u" if floats else f"{at('V', 0)} = x + u & 63"]
    if rng.random() < 0.5:
        names.append("P")
        store.append(f"{at('P', 0)} = {loop()}{'' if floats else ' & 63'}")
    if rng.random() < 0.3:
        store = [f"if T[s, s] > {'0.3' if floats else '20'}:", *("    " + each for each in store)]
    names += ["E"] * any("E[" in line for line in lines)
    text = f"def body({', '.join([*names, 'T', *loops])}, *, n):\n" + "".join(f"    {x}\n" for x in [*lines, *store])
    nest = tw.nest_from(text, {"tw": tw})
    shape = [extents[x] for x in loops if x != "t" or steps is None]
    arrays = {name: _values(numbers, shape, dtype) for name in names}
    arrays["T"] = _values(numbers, (n, n), dtype)
    arguments = {"n": n, "steps": steps, "over": rng.choice((None, None, _bounds(rng, loops, extents, steps)))}
    arguments["reverse"] = (*("t" * backwards), *(x for x in loops if x != "t" and rng.random() < 0.2))
    loops_box = box_of_loops(nest, arrays, steps)
    try:
        bounds = loop_bounds(nest.indices, loops_box, arguments["over"])
    except tw.ConfigError:
        arguments["over"], bounds = None, loop_bounds(nest.indices, loops_box)
    expected = {name: array.copy() for name, array in arrays.items()}
    plain_loops(nest, bounds, expected, {"n": n}, arguments["reverse"], steps)
    cuts = tuple(d for d, x in enumerate(loops) if x != "t")
    if any(low >= high for low, high in bounds.box):
        return random_problem(seed + 10**6)
    return Problem(nest, text, arrays, arguments, {name: expected[name] for name in nest.written}, cuts)


def _values(rng, shape, dtype):
    values = rng.integers(0, 60, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        values = (rng.random(shape) - 0.3).astype(dtype)
        if rng.random() < 0.3:
            values[rng.random(shape) < 0.1] = rng.choice([np.nan, -0.0, np.inf])
    return values


def _bounds(rng, loops, extents, steps):
    n = extents["s"]
    if rng.random() < 0.5:
        low, high = sorted(rng.sample(range(n + 1), 2))
        return {"s": (low, high)}
    return {"s": ("0", ["t + 2", n - 1])} if rng.random() < 0.5 else {"s": ([f"t - {extents['t']}", 1], n - 1)}
