"""What a program means: plain Python loops over NumPy arrays, as text, which Python runs."""

import builtins
import dataclasses
import math
import types

import numpy as np

from random_programs.boxes import box_of, is_table
from random_programs.model import Affine, lines_of, text_of
from random_programs.numbers import reduced
from random_programs.points import visit


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


#: NumPy with a `where` that gives a number, whose products have the bits of numbers; those of its array are fused.
NUMPY = types.SimpleNamespace(**{**vars(np), "where": lambda *given: np.where(*given)[()]})


class Definition:
    """The loops of a program in a setting: `text`, and what they give, `run`."""

    def __init__(self, program, setting):
        self.program, self.setting = program, setting
        self.depths = {
            name: max(self._read_back(name, program.nests), len(setting.history.get(name, ())))
            for name, array in program.arrays.items()
            if array.times == "steps"
        }  # how many time steps before the first an array has here
        stages = enumerate(program.stages())
        helpers = dict.fromkeys(nest.helpers() for nest in program.nests)
        lines = (line for number, nests in stages for line in self._stage(number, nests))
        self.text = "".join(helpers) + "\n".join(lines) + "\n"

    def _read_back(self, name, nests):
        """How many time steps before the current one some nests read of an array."""
        sign = -1 if self.program.backwards else 1
        levels = [
            -sign * access.at[0].offset
            for nest in nests
            for access, _ in nest.accesses()
            if access.array == name
        ]
        return max(0, 0, *levels)

    def _show(self, access):
        """The text of an element: earlier time steps come first, periodic subscripts wrap."""
        at = []
        for place, subscript in enumerate(access.at):
            if not isinstance(subscript, Affine):
                at.append(text_of(subscript, self._show))
                continue
            if place == 0 and access.array in self.depths and not self.program.backwards:
                subscript = Affine(subscript.index, subscript.offset + self.depths[access.array])
            text = str(subscript)
            if subscript.index in self.periodic and not is_table(access.array, self.program):
                d = place - (access.array in self.depths)
                text = f"({text}) % {self.setting.shapes[access.array][d]}"
            at.append(text)
        return f"{access.array}[{', '.join(at)}]"

    def _stage(self, number, nests):
        s, arrays = self.setting, self.program.arrays
        yield f"def stage{number}({', '.join([*arrays, *s.scalars])}, numbers, after):"
        indent = 1
        if self.program.timed:
            yield f"    for t in range({f'{s.steps}, 0, -1' if self.program.backwards else s.steps}):"
            for name in dict.fromkeys(name for nest in nests for name in nest.written()):
                if name in self.depths:
                    now, step = (0, -1) if self.program.backwards else (self.depths[name], 1)
                    yield f"        {name}[{Affine('t', now + step)}] = {name}[{Affine('t', now)}]"
            indent = 2
            if s.door == "several" or len(nests) > 1:
                yield "        for each in numbers.values(): each.clear()"
        for nest in nests:
            yield from self._nest(nest, indent)
        if self.program.timed:
            yield "        if after(t): break"

    def _loops(self, nest, indent):
        """The lines of a nest's loops in space."""
        box, loops = box_of(nest, self.program, self.setting), self.setting.loops[nest.name]
        for index in nest.indices[nest.timed :]:
            low, high = box[index]
            lows, highs, stride = loops.over.get(index, ((low,), (high,), 1))
            first, end = (", ".join(map(str, dict.fromkeys(bounds))) for bounds in (lows, highs))
            first, end = f"max({first})" if "," in first else first, f"min({end})" if "," in end else end
            loop = f"range({first}, {end}, {stride})" if stride > 1 else f"range({first}, {end})"
            loop = f"reversed({loop})" if index in loops.reverse else loop
            yield f"{'    ' * indent}for {index} in {loop}:"
            indent += 1

    def _nest(self, nest, indent):
        s = self.setting
        self.periodic = s.loops[nest.name].periodic
        yield from self._loops(nest, indent)
        indent += len(nest.indices) - nest.timed
        pad, wanted = "    " * indent, s.reduce.get(nest.name, {})
        for what in dict.fromkeys(what for _, what in wanted.values()):
            if what not in self.program.arrays:
                yield f"{pad}{what} = None"
        yield from lines_of(nest.body, indent, self._show)
        for number, (_, what) in wanted.items():
            if what in self.program.arrays:
                access = next(access for access, written in nest.accesses() if written and access.array == what)
                yield f"{pad}numbers[{number!r}].append((({', '.join(map(str, access.at))},), {self._show(access)}))"
            else:
                yield f"{pad}if {what} is not None:"
                yield f"{pad}    numbers[{number!r}].append((({', '.join(nest.indices)},), {what}))"

    def run(self):
        """(arrays, history by name, results, elements by name whose history counts) after all runs; raises what the
        body raises.
        """
        s, namespace = self.setting, self.functions()
        self.arrays = {name: value.copy() for name, value in s.values.items()}
        self.before = {
            name: ([level.copy() for level in s.history.get(name, ())] + [self.arrays[name].copy()] * depth)[:depth]
            for name, depth in self.depths.items()
        }
        self.kept = {name: len(s.history.get(name, ())) for name in self.depths}  # as many as a field keeps so far
        results, self.reached = {}, self._reached()
        with np.errstate(all="ignore"):
            results |= self._run_others()
            for turn in range(1, s.times + 1):
                results |= self._run_stages(namespace, s.scalars)
                if s.until and s.door == "chain" and turn % s.every == 0 and results[s.until[0]] <= s.until[1]:
                    break
            if s.again is not None:
                results |= self._run_stages(namespace, s.scalars | s.again)
            results |= self._run_others()
        return self.arrays, self.before, results, self._with_history()

    def _run_others(self):
        """A run of another number of steps and other scalars, if there is one."""
        s = self.setting
        if s.other is None:
            return {}
        scalars = {name: value for name, value in s.other.items() if name != "steps"}
        other = Definition(self.program, dataclasses.replace(s, steps=s.other.get("steps", s.steps)))
        self.setting, namespace = other.setting, other.functions()
        try:
            return self._run_stages(namespace, s.scalars | scalars)
        finally:
            self.setting = s

    def functions(self):
        """What the text defines, by name."""
        namespace = {"np": NUMPY, "math": math, "tw": Functions}
        exec(compile(self.text, "<definition>", "exec"), namespace)
        return namespace

    def _run_stages(self, namespace, scalars):
        self.arrays |= {name: self.setting.values[name].copy() for name in self.setting.windows}
        self.kept |= {name: 0 for name in self.setting.windows if name in self.kept}
        results = {}
        for number, nests in enumerate(self.program.stages()):
            results |= self._run_stage(namespace[f"stage{number}"], nests, scalars)
        return results

    def _with_history(self):
        """Of arrays with time steps the elements that each stage which writes them reaches."""
        found = {name: np.ones(self.setting.shapes[name], bool) for name in self.depths}
        for masks in self.reached:
            for name, mask in masks.items():
                found[name] &= mask
        return found

    def _reached(self):
        """Of each stage, by the name of an array with time steps: which elements its loops write in some time step."""
        found = []
        for nests in self.program.stages() if self.program.timed else ():
            names = dict.fromkeys(name for nest in nests for name in nest.written() if name in self.depths)
            lines = [f"def reach({', '.join([*names, *self.setting.scalars])}):"]
            first = int(self.program.backwards)
            lines.append(f"    for t in range({first}, {first + self.setting.steps}):")
            for nest in nests:
                targets = [access for access, written in nest.accesses() if written and access.array in self.depths]
                lines += self._loops(nest, 2)
                for target in dict.fromkeys(targets):
                    at = ", ".join(map(str, target.at[1:]))
                    lines.append(f"{'    ' * (1 + len(nest.indices))}{target.array}[{at}] = True")
                lines.append("    " * (1 + len(nest.indices)) + "pass")
            masks, namespace = {name: np.zeros(self.setting.shapes[name], bool) for name in names}, {}
            exec("\n".join(lines), namespace)
            namespace["reach"](*masks.values(), *self.setting.scalars.values())
            found.append(masks)
        return found

    def _run_stage(self, loops, nests, scalars):
        s, given = self.setting, dict(self.arrays)
        wanted = {name: function for nest in nests for name, (function, _) in s.reduce.get(nest.name, {}).items()}
        numbers = {name: [] for name in wanted}
        turn = -1 if self.program.backwards else 1
        reached = self.reached[self.program.stages().index(nests)] if self.depths else {}
        for name in self.depths:  # what a field does not keep yet are copies of the current time step
            kept = self.kept[name]
            self.before[name][kept:] = [self.arrays[name].copy() for _ in self.before[name][kept:]]
            self.kept[name] = max(kept, self._read_back(name, nests)) if name in reached else kept
        for name in self.depths:
            levels = [*self.before[name][::-1], *[self.arrays[name]] * (s.steps + 1)]
            given[name] = np.array(levels, self.arrays[name].dtype).reshape(-1, *self.arrays[name].shape)[::turn].copy()
        recorded = {name: [] for name in s.record}

        def after(t):
            for name in {**s.inject, **s.record}:
                step = s.steps - t if self.program.backwards else t
                array = given[name]
                if name in self.depths:
                    array = array[t - 1 if self.program.backwards else t + 1 + self.depths[name]]
                row = visit(array, step, s.inject.get(name), s.record.get(name))
                if name in s.record:
                    recorded[name].append(row)
            self.done = s.steps - t + 1 if self.program.backwards else t + 1
            if s.door != "several" or not s.until or self.done % s.every:
                return False
            name, most = s.until
            return reduced(wanted[name], numbers[name]) <= most

        self.done = 0
        loops(*given.values(), *scalars.values(), numbers, after)
        for name in reached:  # the time of others stands still
            depth, levels = self.depths[name], given[name][::turn]
            self.arrays[name] = levels[depth + self.done].copy()
            self.before[name] = [levels[depth + self.done - 1 - k].copy() for k in range(depth)]
        results = {name: reduced(wanted[name], values) for name, values in numbers.items()}
        results = {} if (s.door == "several" or len(nests) > 1) and not self.done else results  # of the last time step
        return results | {f"record {name}": np.array(rows) for name, rows in recorded.items() if rows}
