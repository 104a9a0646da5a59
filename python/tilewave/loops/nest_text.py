"""Writes the text of a nest for statements and the loops around them."""

import ast
import copy
import itertools
from dataclasses import dataclass

from tilewave.loops.dependences import bounds_of, may_be_permuted, may_read_written, row_of
from tilewave.loops.reductions import Joined, replaced
from tilewave.loops.systems import add
from tilewave.loops.tree import Group, Loop, Stays, access_of, linear, texts_of
from tilewave.nest.affine import Affine
from tilewave.nest.inner_loops import extent_of, is_element
from tilewave.nest.names import MISSING
from tilewave.nest.parse import parse
from tilewave.nest.reserved import RESERVED
from tilewave.nest.subscript import MOST_SCALE, subscripts_of
from tilewave.nest.walks import Put, elements_in, names_in, slice_of

#: The loop of one round in place of constant subscripts, and the one in place of an index that stands twice.
AT, AGAIN = "tw_at", "tw_again"


@dataclass(frozen=True)
class NestText:
    """A nest, and how it is run.

    Attributes
    ----------
    text : str
        Its function.
    arrays, scalars : dict
        From names in the text to those of the function.
    before : dict
        From names in the text to arrays, of which they have the elements as they were before the nest.
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
    origin : tuple of int
        For each line of the text behind its first one, the line of the function that it is of.
    """

    text: str
    arrays: dict
    scalars: dict
    before: dict
    outside: tuple
    over: dict
    reverse: tuple
    elements: dict
    joined: list
    lines: tuple
    origin: tuple


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
        self.loops, self.tables, self.group = nested.loops, {*region.tables}, nested.group
        self.indices = [loop.index for loop in self.loops]
        self._on_diagonal()
        self.stored = {each.name for each in self.group.accesses if each.stores}
        self.at = None  # the constant subscript that the loop of one round stands for
        self.elements = {}
        self.lookups = set()  # arrays that are read at other subscripts
        self.before = {}  # accesses of written arrays that read what was there before the nest: their new names
        self.joined = [Joined(each, k, types) for k, each in enumerate(nested.reductions)]
        self.private = {*nested.private}.union(*(each.locals() for each in self.joined))

    def text(self):
        """The `NestText`; raises `Stays` where there is none."""
        self._find_before()
        self.find_lookups()
        order = self._order()
        statements = [_Subscripts(self).visit(copy.deepcopy(each)) for each in self._statements()]
        names = names_in(*statements)
        if left := [loop.index for loop in self.loops if loop.index not in names]:
            raise Stays(f"no subscript has the loop index {left[0]!r}")
        order = [each for each in order if each != AT or self.at is not None]
        indices = [each if each == AT else each.index for each in order]
        over = {AT: (self.at, self.at + 1)} if self.at is not None else {}
        reverse = []
        bounds = self._bounds(order)
        for loop in self.loops:
            over[loop.index] = bounds[loop] if bounds else self._range(loop)
            if loop.step < 0:
                reverse.append(loop.index)
        plain, scalars, outside = self._sorted(names, indices)
        if taken := sorted({*plain, *scalars} & {*RESERVED}):
            statements = [Put({name: ast.Name(f"{name}_") for name in taken}).visit(each) for each in statements]
        new = {name: f"{name}_" if name in taken else name for name in (*plain, *scalars)}
        firsts = [each.first for each in self.joined if each.first in names]
        named = [*map(new.get, scalars), *self.elements, *firsts]
        before = {new: access.name for access, new in self.before.items()}
        head = ", ".join([*(new[each] for each in plain), *before, *indices, *(["*"] if named else []), *named])
        lines = [line for part in self.group.statements for line in (part.lineno, part.end_lineno)]
        body = [
            (line, getattr(each, "lineno", 0) or min(lines))
            for each in statements
            for line in ast.unparse(ast.fix_missing_locations(each)).split("\n")
        ]
        text = f"def {self.region.name}({head}):\n" + "\n".join(f"    {line}" for line, _ in body)
        return NestText(
            text,
            {new[name]: name for name in plain},
            {new[name]: name for name in scalars},
            before,
            tuple(outside),
            over,
            tuple(reverse),
            self.elements,
            self.joined,
            (min(lines), max(lines)),
            tuple(number for _, number in body),
        )

    def find_lookups(self):
        """Find the arrays that are only read, and not at an index and a constant everywhere."""
        for node in elements_in(*self.group.statements):
            name = self.before.get(self.access(node), node.value.id)
            if name not in self.stored and not self.element(node) and not self._axes(node):
                self.lookups.add(name)
        self.at, self.elements = None, {}

    def access(self, node, more=()):
        """The access of an element; None where it is none, or has a subscript that is computed."""
        if not is_element(node):
            return None
        known = {loop.index for loop in self.group.path} | self.numbers.keys() | {*more}
        forms = [linear(part, known.__contains__) for part in subscripts_of(node)]
        return None if any(form is None for form in forms) else access_of(node, forms)

    def _axes(self, node):
        """The indices of the subscripts of an element; None where one is no index and a constant."""
        try:
            for part in subscripts_of(node):
                self.subscript(part)
        except Stays:
            return None
        return [next((n for n, f in self.form(part).terms.items() if f), AT) for part in subscripts_of(node)]

    def _find_before(self):
        """Find reads of written arrays that are in another order, and need no element that the nest has written."""
        (node, *more) = self.group.statements
        if more or not isinstance(node, ast.Assign | ast.AugAssign):
            return
        elements = [each for each in elements_in(node) if each.value.id in self.stored]
        written = {each.value.id: self._axes(each) for each in elements if isinstance(each.ctx, ast.Store)}
        for each in elements:
            access = self.access(each)
            plain = isinstance(each.ctx, ast.Store) or self._axes(each) == written[each.value.id]
            if not plain and access and not may_read_written(self.group, access, self.loops):
                name = f"tw_before_{each.value.id}"
                self.before[access] = name
        self.at = None

    def _on_diagonal(self):
        """Have a loop of one round, ``for tw_again in range(i, i + 1)``, where an element is written at [i, i]."""
        nodes = elements_in(*self.group.statements)
        twice = set()
        for node in nodes:
            if isinstance(node.ctx, ast.Store) and (access := self.access(node)):
                names = [[n for n, f in form.terms.items() if f and n in self.indices] for form in access.subscripts]
                twice |= {name for each in names for name in each if names.count([name]) == 2}
        if len(twice) != 1 or self.nested.reductions or len(self.group.statements) > 1:
            return
        (index,) = twice
        (around,) = (loop for loop in self.loops if loop.index == index)
        again = Loop(around.node, AGAIN, (Affine({index: 1}, 0),), (Affine({index: 1}, 1),), 1)
        stored = {node.value.id for node in nodes if isinstance(node.ctx, ast.Store)}
        group = self.group
        statements = [_Again(index, stored).visit(copy.deepcopy(each)) for each in group.statements]
        found = [self.access(each, (AGAIN,)) for each in elements_in(*statements)]
        if None not in found:
            self.loops, self.indices = (*self.loops, again), [*self.indices, AGAIN]
            self.group = Group(statements, (*group.path, again), group.number, found)

    def _statements(self):
        return replaced(self.group.statements, self.joined)

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

    def _ends(self, loop):
        """The forms that indices are at or above, and those that they are below."""
        begins, ends = [*map(self.form, loop.begins)], [*map(self.form, loop.ends)]
        if loop.step < 0:
            begins, ends = [end + 1 for end in ends], [begin + 1 for begin in begins]
        return begins, ends

    def _range(self, loop):
        begins, ends = self._ends(loop)
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
        for node in elements_in(*self.group.statements):
            if isinstance(node.ctx, ast.Store):
                forms = [self.form(part) for part in subscripts_of(node)]
                wanted.append([next((n for n, f in form.terms.items() if f), AT) for form in forms])

        def suits(order):
            names = [each if each == AT else each.index for each in order]
            return all([name for name in names if name in axes] == axes for axes in wanted)

        group = copy.copy(self.group)
        group.accesses = [each for each in group.accesses if each not in self.before]
        for loops in (self.loops, *itertools.permutations(self.loops)):
            orders = [(*loops[:k], AT, *loops[k:]) for k in range(len(loops) + 1)]
            order = next(filter(suits, orders), None)
            plain = tuple(loops) == tuple(self.loops)
            if order and (plain or self._bounds(loops) != {} and may_be_permuted(group, self.loops, loops)):
                return order
        raise Stays("what is written has its subscripts in another order than the loops")

    def _bounds(self, order):
        """The bounds of loops in another order; None where they may be as they stand, nothing where there are none."""
        order = [loop for loop in order if loop != AT]
        used = [{n for form in (*o.begins, *o.ends) for n, f in form.terms.items() if f} for o in order]
        if not any(used[k] & {each.index for each in order[k:]} for k in range(len(order))):
            return None
        if any(abs(loop.step) != 1 for loop in order):
            return {}
        rows = []
        for loop in order:
            begins, ends = self._ends(loop)
            rows += [add({loop.index: 1}, row_of(form), -1) for form in begins]
            rows += [add(add(row_of(form), {loop.index: 1}, -1), {1: -1}, 1) for form in ends]
        if not (found := bounds_of(rows, [loop.index for loop in order])):
            return {}
        return {loop: (_bounds(found[loop.index][0], max), _bounds(found[loop.index][1], min)) for loop in order}


class _Subscripts(ast.NodeTransformer):
    """Subscripts as nests have them, and numbers in place of extents."""

    def __init__(self, writer):
        self.writer = writer

    def visit_Subscript(self, node):
        if extent := extent_of(node):
            return ast.Constant(self.writer.numbers[f"{extent[0]}.shape[{extent[1]}]"])
        if isinstance(node.ctx, ast.Load) and (name := self.writer.element(node)):
            return ast.Name(name, ast.Load())
        if isinstance(node.ctx, ast.Load) and (name := self.writer.before.get(self.writer.access(node))):
            node.value = ast.Name(name, ast.Load())
        if node.value.id in self.writer.lookups:  # a quotient makes a table of it
            parts = [ast.BinOp(self.visit(part), ast.FloorDiv(), ast.Constant(1)) for part in subscripts_of(node)]
        else:
            parts = [parse(self.writer.subscript(part), mode="eval").body for part in subscripts_of(node)]
        return ast.Subscript(node.value, slice_of(parts), node.ctx)

    def visit_Call(self, node):
        if extent := extent_of(node):
            return ast.Constant(self.writer.numbers[f"{extent[0]}.shape[{extent[1]}]"])
        return self.generic_visit(node)


class _Again(ast.NodeTransformer):
    """The last subscript with an index has `AGAIN` in its place, in elements of some arrays that have it twice."""

    def __init__(self, index, stored):
        self.index, self.stored = index, stored

    def visit_Subscript(self, node):
        parts = [*subscripts_of(node)] if is_element(node) and node.value.id in self.stored else []
        having = [d for d, part in enumerate(parts) if self.index in names_in(part)]
        if len(having) == 2:
            parts[having[1]] = Put({self.index: ast.Name(AGAIN)}).visit(copy.deepcopy(parts[having[1]]))
            node.slice = ast.Tuple(parts, ast.Load())
        return node


def _sum(text, constant):
    return text if not constant else f"{text} {'+' if constant > 0 else '-'} {abs(constant)}"


def _bounds(forms, pick):
    texts = texts_of(forms, pick)
    return texts[0] if len(texts) == 1 else texts


def outside_names(region, names):
    """What names from outside the function stand for."""
    found = {name: region.scope.lookup(name) for name in names}
    return {name: value for name, value in found.items() if value is not MISSING}
