"""Writes the text of a nest for statements and the loops around them."""

import ast
import copy
import itertools
from dataclasses import dataclass

from tilewave.loops.dependences import may_be_permuted
from tilewave.loops.reductions import Joined, replaced
from tilewave.loops.tree import Stays, linear
from tilewave.nest.affine import Affine
from tilewave.nest.inner_loops import extent_of, is_element
from tilewave.nest.names import MISSING
from tilewave.nest.parse import parse
from tilewave.nest.reserved import RESERVED
from tilewave.nest.subscript import MOST_SCALE, subscripts_of

#: The loop of one round in place of constant subscripts.
AT = "tw_at"


@dataclass(frozen=True)
class NestText:
    """A nest, and how it is run.

    Attributes
    ----------
    text : str
        Its function.
    arrays, scalars : dict
        From names in the text to those of the function.
    outside : tuple of str
        Names from outside the function.
    over : dict
        Bounds by loop index.
    reverse : tuple of str
    elements : dict
        Names in the text that stand for one element: (array, subscripts), integers or names of outer loop indices.
    joined : list of Joined
        Its reductions.
    lines : tuple of int
        The first and the last line of its statements.
    """

    text: str
    arrays: dict
    scalars: dict
    outside: tuple
    over: dict
    reverse: tuple
    elements: dict
    joined: list
    lines: tuple


class Writer:
    """Writes a nest for numbers as they are.

    Parameters
    ----------
    region : Region
    nested : Nested
    numbers : dict
        The integers that names and extents (`tilewave.loops.tree.extent_text`) stand for.
    types : Types
        Of the group.
    turns : set of str
        Indices of loops outside, which run in their order: scalars of the nest.
    """

    def __init__(self, region, nested, numbers, types, turns=frozenset()):
        self.region, self.nested, self.numbers, self.turns = region, nested, numbers, turns
        self.loops, self.tables = nested.loops, {*region.tables}
        self.indices = [loop.index for loop in self.loops]
        self.stored = {each.name for each in nested.group.accesses if each.stores}
        self.at = None  # the constant subscript that the loop of one round stands for
        self.elements = {}
        self.lookups = set()  # arrays that are read at other subscripts
        self.joined = [Joined(each, k, types) for k, each in enumerate(nested.reductions)]
        self.private = {*nested.private}.union(*(each.locals() for each in self.joined))

    def text(self):
        """The `NestText`; raises `Stays` where there is none."""
        self.find_lookups()
        order = self._order()
        statements = [_Subscripts(self).visit(copy.deepcopy(each)) for each in self._statements()]
        names = {each.id for part in statements for each in ast.walk(part) if isinstance(each, ast.Name)}
        if left := [loop.index for loop in self.loops if loop.index not in names]:
            raise Stays(f"no subscript has the loop index {left[0]!r}")
        order = [each for each in order if each != AT or self.at is not None]
        indices = [each if each == AT else each.index for each in order]
        over = {AT: (self.at, self.at + 1)} if self.at is not None else {}
        reverse = []
        for loop in self.loops:
            over[loop.index] = self._range(loop)
            if loop.step < 0:
                reverse.append(loop.index)
        plain, scalars, outside = self._sorted(names, indices)
        if taken := sorted({*plain, *scalars} & {*RESERVED}):
            statements = [_Renamed(taken).visit(each) for each in statements]
        new = {name: f"{name}_" if name in taken else name for name in (*plain, *scalars)}
        firsts = [each.first for each in self.joined if each.first in names]
        named = [*map(new.get, scalars), *self.elements, *firsts]
        head = ", ".join([*(new[each] for each in plain), *indices, *(["*"] if named else []), *named])
        body = "\n".join(ast.unparse(ast.fix_missing_locations(each)) for each in statements)
        text = f"def {self.region.name}({head}):\n" + "\n".join(f"    {line}" for line in body.split("\n"))
        lines = [line for part in self.nested.group.statements for line in (part.lineno, part.end_lineno)]
        return NestText(
            text,
            {new[name]: name for name in plain},
            {new[name]: name for name in scalars},
            tuple(outside),
            over,
            tuple(reverse),
            self.elements,
            self.joined,
            (min(lines), max(lines)),
        )

    def find_lookups(self):
        """Find the arrays that are only read, and not at an index and a constant everywhere."""
        for node in (each for part in self.nested.group.statements for each in ast.walk(part)):
            if is_element(node) and node.value.id not in self.stored and not self.element(node):
                try:
                    for part in subscripts_of(node):
                        self.subscript(part)
                except Stays:
                    self.lookups.add(node.value.id)
        self.at, self.elements = None, {}

    def _statements(self):
        return replaced(self.nested.group.statements, self.joined)

    def _sorted(self, names, indices):
        """Arrays, scalars, and names from outside."""
        names = names - {*self.elements}
        plain = [name for name in self.region.tables if name in names]
        local = [n for n in sorted(names - {*plain, *indices} - self.private) if n in self.region.local_names]
        outside = sorted(names - {*plain, *indices, *local} - self.private)
        return plain, local, outside

    def form(self, node):
        """A subscript or a bound as an affine form of the nest's loop indices."""
        form = linear(node, lambda name: True) if isinstance(node, ast.AST) else node
        if form is None:
            raise Stays(f"`{ast.unparse(node)}` is no sum of loop indices and integers")
        total = Affine({}, form.constant)
        for name, factor in form.terms.items():
            if name in self.indices:
                total = total + Affine({name: factor}, 0)
            elif factor and name not in self.numbers:
                raise Stays(f"{name!r} is no integer that is known before the loops")
            elif factor:
                total = total + self.numbers[name] * factor
        return total

    def subscript(self, part):
        """A subscript as a nest has it: an index times a constant, plus a constant."""
        form = self.form(part)
        terms = [(name, factor) for name, factor in form.terms.items() if factor]
        if not terms:
            return self._constant(form.constant)
        ((name, factor), *more) = terms
        if more or not 1 <= factor <= MOST_SCALE:
            raise Stays(f"the subscript `{ast.unparse(part)}` is not one loop index and a constant")
        return _sum(name if factor == 1 else f"{factor} * {name}", form.constant)

    def element(self, node):
        """The name of the scalar in place of an element that is the same for all points; None where it is not."""
        forms = [linear(part, lambda name: True) for part in subscripts_of(node)]
        if node.value.id in self.stored or any(form is None for form in forms):
            return None
        names = [name for form in forms for name, factor in form.terms.items() if factor]
        if any(name in self.indices or name not in self.numbers and name not in self.turns for name in names):
            return None
        at = []
        for form in forms:
            terms = {name: factor for name, factor in form.terms.items() if factor}
            fixed = sum(self.numbers[name] * factor for name, factor in terms.items() if name not in self.turns)
            at.append(({n: f for n, f in terms.items() if n in self.turns}, form.constant + fixed))
        known = (name for name, there in self.elements.items() if there == (node.value.id, at))
        name = next(known, f"tw_element_{len(self.elements)}")
        self.elements[name] = node.value.id, at
        return name

    def _constant(self, value):
        if value < 0:
            raise Stays(f"the subscript {value} counts from the end")
        if self.at is None:
            self.at = value
        return _sum(AT, value - self.at)

    def _range(self, loop):
        begins, ends = [*map(self.form, loop.begins)], [*map(self.form, loop.ends)]
        if loop.step < 0:
            begins, ends = [end + 1 for end in ends], [begin + 1 for begin in begins]
        if abs(loop.step) == 1:
            return _bounds(begins, max), _bounds(ends, min)
        if any(factor for form in (*begins, *ends) for factor in form.terms.values()):
            raise Stays(f"bounds of line {loop.node.lineno} move, and its step is {loop.step}")
        first, end = max(form.constant for form in begins), min(form.constant for form in ends)
        if loop.step > 0:
            return first, max(first, end), loop.step
        count = len(range(first, end, -loop.step))
        return end - 1 + (count - 1) * loop.step, end, -loop.step

    def _order(self):
        """The loops in an order in which written arrays have their subscripts, with `AT` for constant ones."""
        wanted = []
        for node in (each for part in self.nested.group.statements for each in ast.walk(part)):
            if is_element(node) and isinstance(node.ctx, ast.Store):
                forms = [self.form(part) for part in subscripts_of(node)]
                wanted.append([next((n for n, f in form.terms.items() if f), AT) for form in forms])

        def suits(order):
            names = [each if each == AT else each.index for each in order]
            return all([name for name in names if name in axes] == axes for axes in wanted)

        group = self.nested.group
        for loops in (self.loops, *itertools.permutations(self.loops)):
            orders = [(*loops[:k], AT, *loops[k:]) for k in range(len(loops) + 1)]
            order = next(filter(suits, orders), None)
            plain = tuple(loops) == tuple(self.loops)
            if order and (plain or self._may_nest(loops) and may_be_permuted(group, self.loops, loops)):
                return order
        raise Stays("what is written has its subscripts in another order than the loops")

    def _may_nest(self, order):
        """Return whether bounds have outer indices only."""
        for k, loop in enumerate(order):
            inner = {each.index for each in order[k:]}
            used = {n for bound in (*loop.begins, *loop.ends) for n, factor in bound.terms.items() if factor}
            if used & inner:
                return False
        return True


class _Subscripts(ast.NodeTransformer):
    """Subscripts as nests have them, and numbers in place of extents."""

    def __init__(self, writer):
        self.writer = writer

    def visit_Subscript(self, node):
        if extent := extent_of(node):
            return ast.Constant(self.writer.numbers[f"{extent[0]}.shape[{extent[1]}]"])
        if isinstance(node.ctx, ast.Load) and (name := self.writer.element(node)):
            return ast.Name(name, ast.Load())
        if node.value.id in self.writer.lookups:  # a quotient makes a table of it
            parts = [ast.BinOp(self.visit(part), ast.FloorDiv(), ast.Constant(1)) for part in subscripts_of(node)]
        else:
            parts = [parse(self.writer.subscript(part), mode="eval").body for part in subscripts_of(node)]
        inner = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
        return ast.Subscript(node.value, inner, node.ctx)

    def visit_Call(self, node):
        if extent := extent_of(node):
            return ast.Constant(self.writer.numbers[f"{extent[0]}.shape[{extent[1]}]"])
        return self.generic_visit(node)


class _Renamed(ast.NodeTransformer):
    def __init__(self, names):
        self.names = names

    def visit_Name(self, node):
        return ast.Name(f"{node.id}_", node.ctx) if node.id in self.names else node


def _sum(text, constant):
    return text if not constant else f"{text} {'+' if constant > 0 else '-'} {abs(constant)}"


def _bounds(forms, pick):
    """Bounds as `over` takes them: a list where several hold."""
    texts = []
    constants = [form.constant for form in forms if not any(form.terms.values())]
    if constants:
        texts.append(pick(constants))
    for form in forms:
        terms = [(name, factor) for name, factor in form.terms.items() if factor]
        if terms:
            texts.append(" + ".join([*(f"{factor}*{name}" for name, factor in terms), str(form.constant)]))
    return texts[0] if len(texts) == 1 else texts


def outside_names(region, names):
    """What names from outside the function stand for."""
    found = {name: region.scope.lookup(name) for name in names}
    return {name: value for name, value in found.items() if value is not MISSING}
