"""A program as a whole function with its loops as they stand: the function by itself is the definition."""

import ast
import hashlib
import itertools
import linecache
import math

import numpy as np

import tilewave as tw
from random_programs.boxes import box_of
from random_programs.memory import LETTERS
from random_programs.model import Assign, If, lines_of
from random_programs.plain import NUMPY
from random_programs.reordered import reordered_lines
from tilewave.nest.parse import parse


def can_be_whole(program, setting):
    """Return whether a program is loops in space alone."""
    plain = not program.timed and not setting.loops_periodic and not any(setting.reduce.values())
    plain = plain and not {*setting.layouts.values()} & {*sum(LETTERS.values(), ())}  # in Python these are no numbers
    return plain and not any("tw." in nest.text() for nest in program.nests)


def draw_whole(choices):
    """How the loops stand: as plain data."""
    return {
        "joined": choices.chance(0.5),
        "parts": choices.pick(1, 1, 2, 3),
        "turns": choices.pick(0, 0, 1, 3),
        "total": choices.pick("", "", "max", "sum"),
        "nested": choices.chance(0.8),
        "guarded": choices.chance(0.3),  # longer ranges, and conditions on indices in them
        "before": choices.pick(0, 0, 0, 0, 1, 2),  # ranges begin so much earlier: at elements from the end, or outside
        "order": choices.pick("exact", "loops"),
        "added": choices.chance(0.5),  # sums of the body are loops that add
        "constants": choices.chance(0.3),  # offsets come from loops over constants
        "heads": choices.pick("range", "range", "reversed", "product"),
        "divided": choices.chance(0.5),  # turns are divided among lanes, however short they are
        "continued": choices.chance(0.5),  # conditions on indices leave out the rest of a turn
        "reordered": choices.pick(0, choices.below(10**6)),  # other loops behind: that of which they are drawn
        "alone": choices.chance(0.5),  # these without the others
        "while": choices.chance(0.4),  # turns are those of a while loop
        "filled": choices.pick("", "", ":", "1:", ":-1", "2:-1"),  # a slice of each row is set to its second element
        "left": choices.pick(0, 0, 0, 1.5, 3.5),  # above which a value ends the function
    }


class Whole:
    """The function of a program in a setting: `text`."""

    def __init__(self, program, setting):
        self.program, self.setting, self.how = program, setting, setting.whole
        self.names = [*setting.values, *setting.scalars]
        helpers = dict.fromkeys(nest.helpers() for nest in program.nests)
        total = self.how["total"]
        lines = [f"def whole({', '.join(self.names)}):"] + ["    total = 0"] * bool(total)
        number = self.how.get("reordered")
        size, *others = reordered_lines(number, program, setting) if number else [""]
        lines += [f"    {size}"] * bool(size)
        turns, indent = self.how["turns"], 1
        if turns and self.how.get("while"):
            lines += ["    turn = 0", f"    while turn < {turns}:", "        turn += 1"]
        elif turns:
            lines.append(f"    for turn in range({turns}):")
        indent += bool(turns)
        if not (others and self.how["alone"]):
            lines += self._lines([self._tree(nest) for nest in program.nests], indent)
        lines += ["    " * indent + line for line in (*others, *self._filled())]
        lines.append(f"    return {'total' if total else 'None'}")
        self.text = "".join(helpers) + "\n".join(lines) + "\n"

    def _filled(self):
        """The lines of a loop that sets slices."""
        ranks = {name: np.ndim(each) for name, each in self.setting.values.items()}
        names = [name for nest in self.program.nests for name in nest.written() if ranks.get(name, 0) > 1]
        if not self.how.get("filled") or not names or self.setting.values[names[0]].shape[1] < 2:
            return []
        row = f"{names[0]}[fill, {', '.join([self.how['filled']] * (ranks[names[0]] - 1))}]"
        return [
            f"for fill in range({names[0]}.shape[0]):", f"    {row} = {names[0]}[fill{', 1' * (ranks[names[0]] - 1)}]"
        ]  # fmt: skip

    def _tree(self, nest):
        """[heads of loops, bodies of the innermost one]."""
        box, loops = box_of(nest, self.program, self.setting), self.setting.loops[nest.name]
        heads, tests, before = [], [], self.how["before"]
        for index in nest.indices:
            low, high = box[index]
            lows, highs, stride = loops.over.get(index, ((low,), (high,), 1))
            first, end = (", ".join(map(str, dict.fromkeys(bounds))) for bounds in (lows, highs))
            first, end = f"max({first})" if "," in first else first, f"min({end})" if "," in end else end
            if self.how["guarded"] and stride == 1:
                tests.append(f"{first} <= {index} < {end}")
                first, end = f"{first} - 1", f"{end} + 2"
            elif before and stride == 1:
                first = f"{first} - {before}"
            if index in loops.reverse and stride == 1 and self.how.get("heads") == "reversed":
                heads.append(f"for {index} in reversed(range({first}, {end})):")
            elif index in loops.reverse:
                heads.append(f"for {index} in range({end} - 1, {first} - 1, -{stride}):")
            else:
                heads.append(f"for {index} in range({first}, {end}{f', {stride}' if stride > 1 else ''}):")
        if self.how.get("heads") == "product" and len(heads) > 1 and not _names(heads[1]) & {*nest.indices[:1]}:
            pairs = [head.removeprefix("for ").removesuffix(":").split(" in ") for head in heads[:2]]
            (one, first), (other, second) = pairs
            heads[:2] = [f"for {one}, {other} in itertools.product({first}, {second}):"]
        parts = self._parts(nest)
        if tests and self.how.get("continued"):
            left_out = [f"if not ({' and '.join(tests)}):", "    continue"]
            return heads, [[*left_out, *part] for part in parts]
        return heads + [f"if {' and '.join(tests)}:"] * bool(tests), parts

    def _parts(self, nest):
        """The statements of a body, in as many loops as are wanted."""
        body, count = [*nest.body], min(self.how["parts"], len(nest.body))
        size = -(-len(body) // count)
        parts = [[*lines_of(body[k : k + size], 0)] for k in range(0, len(body), size)]
        if self.how.get("added"):
            parts = [[new for line in part for new in _added(line)] for part in parts]
        if self.how.get("constants"):
            parts = [[new for line in part for new in _over_constants(line)] for part in parts]
        if self.how["total"] and (values := _values(body)):
            text = {"max": f"total = max(total, {values[-1]})", "sum": f"total += {values[-1]}"}[self.how["total"]]
            parts[-1].append(text)
        if (limit := self.how.get("left")) and (values := _values(body)):
            parts[-1] += [f"if abs({values[-1]}) > {limit}:", f"    return {'total' if self.how['total'] else 'None'}"]
        return parts

    def _lines(self, trees, indent):
        """The lines of loops, those with equal heads in one loop."""
        pad, k = "    " * indent, 0
        while k < len(trees):
            heads, parts = trees[k]
            if not heads:
                yield from (pad + line for part in parts for line in part)
                k += 1
                continue
            same = [(heads, parts)]
            while self.how["joined"] and k + len(same) < len(trees) and trees[k + len(same)][0][:1] == heads[:1]:
                same.append(trees[k + len(same)])
            k += len(same)
            inner = [(each[1:], parts) for each, parts in same]
            if len(heads) == 1 and not self.how["joined"]:
                for part in parts:
                    yield pad + heads[0]
                    yield from ("    " + pad + line for line in part)
                continue
            if len(heads) == 2 and self.how["joined"]:  # each part has an innermost loop of its own
                inner = [(rest, [part]) for rest, parts in inner for part in parts]
            yield pad + heads[0]
            yield from self._lines(inner, indent + 1)

    def _made(self, numpy, decorate):
        file = f"<whole {hashlib.sha256(self.text.encode()).hexdigest()[:16]}>"
        linecache.cache[file] = len(self.text), None, self.text.splitlines(True), file
        namespace = {"np": numpy, "math": math, "itertools": itertools, "__name__": "whole"}
        exec(compile(self.text, file, "exec", dont_inherit=True), namespace)
        return decorate(namespace["whole"])

    def run(self):
        """What the definition gives, as `Definition.run`."""
        arrays = {name: value.copy() for name, value in self.setting.values.items()}
        function, total = self._made(NUMPY, lambda f: f), None
        with np.errstate(all="ignore"):
            for _ in range(self.setting.times):
                total = function(*arrays.values(), *self.setting.scalars.values())
        return arrays, {}, self._results(total), {}

    def _results(self, total):
        """The results; not sums of floats in any order."""
        inexact = self.how["order"] == "exact" and self.how["total"] == "sum" and isinstance(total, float | np.floating)
        return {} if total is None or inexact else {"total": total}

    def call(self, given):
        """The results of `tw.loops` on arrays."""
        function, total = self._made(np, tw.loops(order=self.how["order"])), None
        for _ in range(self.setting.times):
            total = function(*(given[name] for name in self.names if name in given), *self.setting.scalars.values())
        return self._results(total)


def _names(head):
    """The names in the range of a loop."""
    return {each.id for each in ast.walk(parse(head.split(" in ")[1][:-1])) if isinstance(each, ast.Name)}


def _added(line):
    """A line with a loop before it in place of a sum of terms."""
    if line.startswith(" ") or line.endswith(":"):
        return [line]
    tree = parse(line)
    for node in ast.walk(tree):
        plain = isinstance(node, ast.Call) and ast.unparse(node.func) == "sum" and len(node.args) == 1
        if plain and isinstance(node.args[0], ast.GeneratorExp) and len(node.args[0].generators) == 1:
            term, (turns,) = ast.unparse(node.args[0].elt), node.args[0].generators
            tests = "".join(f"if {ast.unparse(test)}: " for test in turns.ifs[:1])
            if len(turns.ifs) > 1 or " for " in term:
                continue
            node.func, node.args = ast.Name("abs"), [ast.Name("added")]  # found again in the text
            rest = ast.unparse(tree).replace("abs(added)", "added")
            loop = f"for {ast.unparse(turns.target)} in {ast.unparse(turns.iter)}:"
            return ["added = 0", loop, f"    {tests}added += {term}", rest]
    return [line]


def _over_constants(line):
    """A line twice, with an offset that a loop over constants gives."""
    if line.startswith(" ") or line.endswith(":"):
        return [line]
    tree = parse(line)
    elements = (each for each in ast.walk(tree) if isinstance(each, ast.Subscript))
    for node in (each for element in elements for each in ast.walk(element)):
        offset = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) else None
        if isinstance(offset, ast.Constant) and isinstance(offset.value, int):
            node.right = ast.Name("offset")
            return [f"for offset in ({offset.value}, {offset.value}):", "    " + ast.unparse(tree)]
    return [line]


def _values(body):
    """The texts of what a body has assigned: real numbers."""
    found = []
    for each in body:
        if isinstance(each, Assign) and not isinstance(each, If) and getattr(each.value.dtype, "kind", "") in "fiu":
            found += next(iter(lines_of([each], 0))).split(f" {each.op} ")[:1]
    return [text for text in found if text]
