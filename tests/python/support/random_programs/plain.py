"""What a program means: plain Python loops over NumPy arrays, as text, which Python runs."""

import builtins
import math

import numpy as np

from random_programs.model import Affine, lines_of, text_of


class Functions:
    """What `tw` has inside a body."""

    max, min, sum = builtins.max, builtins.min, builtins.sum

    @staticmethod
    def argmax(terms):
        return Functions._first(terms, lambda a, b: a > b)

    @staticmethod
    def argmin(terms):
        return Functions._first(terms, lambda a, b: a < b)

    @staticmethod
    def _first(terms, better):
        found = best = None
        for place, term in enumerate(terms):
            if found is None or better(term, best):
                found, best = place, term
        if found is None:
            raise ValueError("no terms")
        return found


def is_table(name, program):
    """Whether an array narrows no loop: some subscript is computed, and none is an inner index."""
    array, computed = program.arrays[name], False
    for nest in program.nests:
        for access, _ in nest.accesses():
            if access.array == name:
                for subscript in access.at[array.times == "steps" :]:
                    if isinstance(subscript, Affine):
                        if subscript.index and subscript.index in "qr":
                            return False
                    else:
                        computed = True
    return computed


def box_of(nest, program, setting):
    """The largest box in which every access is inside its array: (first, end) by index."""
    lows, highs = {name: [] for name in nest.indices}, {name: [] for name in nest.indices}
    for access, _ in nest.accesses():
        array = program.arrays[access.array]
        if is_table(access.array, program):
            continue
        at = access.at[array.times == "steps" :]
        for subscript, extent in zip(at, setting.shapes[access.array], strict=True):
            if not isinstance(subscript, Affine) or subscript.index not in lows:
                continue
            if subscript.index in setting.periodic:
                lows[subscript.index].append(0)
                highs[subscript.index].append(extent)
                continue
            lows[subscript.index].append(math.ceil(-subscript.offset / subscript.factor))
            highs[subscript.index].append((extent - 1 - subscript.offset) // subscript.factor + 1)
    if nest.timed:
        lows["t"], highs["t"] = [0], [setting.steps]
    return {name: (max(lows[name], default=0), min(highs[name], default=0)) for name in nest.indices}


def depth_of(name, program, setting):
    """How many time steps before the first an array of the definition has."""
    levels = [
        -access.at[0].offset
        for nest in program.nests
        for access, _ in nest.accesses()
        if access.array == name and isinstance(access.at[0], Affine)
    ]
    return max(0, *levels, len(setting.history.get(name, ())))


class Definition:
    """The loops of a program in a setting: `text`, and what they give, `run`."""

    def __init__(self, program, setting):
        self.program, self.setting = program, setting
        self.depths = {
            name: depth_of(name, program, setting) for name, array in program.arrays.items() if array.times == "steps"
        }
        self.text = "\n".join(self._lines()) + "\n"

    def _show(self, access):
        """The text of an element: earlier time steps come first, periodic subscripts wrap."""
        at = []
        for place, subscript in enumerate(access.at):
            if not isinstance(subscript, Affine):
                at.append(text_of(subscript, self._show))
                continue
            if place == 0 and access.array in self.depths:
                subscript = Affine(subscript.index, subscript.offset + self.depths[access.array])
            text = str(subscript)
            if subscript.index in self.setting.periodic and not is_table(access.array, self.program):
                d = place - (access.array in self.depths)
                text = f"({text}) % {self.setting.shapes[access.array][d]}"
            at.append(text)
        return f"{access.array}[{', '.join(at)}]"

    def _lines(self):
        s, arrays = self.setting, self.program.arrays
        yield f"def loops({', '.join([*arrays, *s.scalars])}, numbers):"
        indent = 1
        if self.program.timed:
            yield f"    for t in range({s.steps}):"
            indent, written = 2, [name for nest in self.program.nests for name in nest.written()]
            for name in dict.fromkeys(written):
                if name in self.depths:
                    depth = self.depths[name]
                    yield f"        {name}[t+{1 + depth}] = {name}[{Affine('t', depth)}]"
        for nest in self.program.nests:
            yield from self._nest(nest, indent)

    def _nest(self, nest, indent):
        s, box = self.setting, box_of(nest, self.program, self.setting)
        for index in nest.indices[nest.timed :]:
            low, high = box[index]
            lows, highs, stride = s.over.get(index, ((low,), (high,), 1))
            first, end = (", ".join(map(str, dict.fromkeys(bounds))) for bounds in (lows, highs))
            first, end = f"max({first})" if "," in first else first, f"min({end})" if "," in end else end
            loop = f"range({first}, {end}, {stride})" if stride > 1 else f"range({first}, {end})"
            loop = f"reversed({loop})" if index in s.reverse else loop
            yield f"{'    ' * indent}for {index} in {loop}:"
            indent += 1
        pad = "    " * indent
        for number, (_, what) in enumerate(s.reduce.values()):
            if what not in self.program.arrays:
                yield f"{pad}{what} = None"
        yield from lines_of(nest.body, indent, self._show)
        for number, (_, what) in s.reduce.items():
            if what in self.program.arrays:
                access = next(access for access, written in nest.accesses() if written and access.array == what)
                where = ", ".join(map(str, access.at))
                yield f"{pad}numbers[{number!r}].append((({where},), {self._show(access)}))"
            else:
                yield f"{pad}if {what} is not None:"
                yield f"{pad}    numbers[{number!r}].append((({', '.join(nest.indices)},), {what}))"

    def run(self):
        """(arrays, history by name, results) after all runs; raises what the body raises."""
        s = self.setting
        namespace = {"np": np, "math": math, "tw": Functions}
        exec(compile(self.text, "<definition>", "exec"), namespace)
        arrays = {name: value.copy() for name, value in s.values.items()}
        before = {
            name: ([level.copy() for level in s.history.get(name, ())] + [arrays[name].copy()] * depth)[:depth]
            for name, depth in self.depths.items()
        }
        numbers = {}
        with np.errstate(all="ignore"):
            for _ in range(s.times):
                numbers = {name: [] for name in s.reduce}
                given = dict(arrays)
                for name, depth in self.depths.items():
                    levels = [*before[name][::-1], *[arrays[name]] * (s.steps + 1)]
                    given[name] = np.array(levels, dtype=arrays[name].dtype).reshape(-1, *arrays[name].shape)
                namespace["loops"](*given.values(), *s.scalars.values(), numbers)
                for name, depth in self.depths.items():
                    arrays[name] = given[name][depth + s.steps].copy()
                    before[name] = [given[name][depth + s.steps - 1 - k].copy() for k in range(depth)]
        from random_programs.numbers import reduced

        results = {name: reduced(function, numbers[name]) for name, (function, _) in s.reduce.items()}
        return arrays, before, results
