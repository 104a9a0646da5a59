"""Statements that mean the same, in loops that become nests: names and arrays that go from turn to turn are replaced.

Arrays are apart from each other here, all accesses are inside them, and float64 is the type of what is replaced.
"""

import ast
import copy
import math
from textwrap import indent

from tilewave.loops.accumulated import accumulated
from tilewave.loops.carried import Carried, stored_by
from tilewave.loops.dependences import domain, may_follow, row_of
from tilewave.loops.eliminations import eliminated
from tilewave.loops.liveness import names_read
from tilewave.loops.systems import add, may_hold
from tilewave.loops.tree import Group, Put, assigned
from tilewave.nest.inner_loops import is_element
from tilewave.nest.parse import parse
from tilewave.nest.subscript import subscripts_of


class Reshaped(Carried):
    """A region whose statements are changed step by step.

    Parameters
    ----------
    region : Region
    numbers : dict
        The integers that names and extents stand for.
    types : Types
        Of all its statements.
    live : set of str
        Names that are needed behind it.

    Attributes
    ----------
    region : Region
        The new one.
    guarded : bool
        Conditions on indices keep elements inside their arrays.
    is_faster : bool
        Nests take less time than the loops in order on one lane, too.
    shapes : dict
        Of arrays that the call does not have: float64, whose first values do not matter.
    """

    def __init__(self, region, numbers, types, live):
        self.numbers, self.types, self.live = numbers, types, live
        self.shapes, self.changed, self.guarded, self.is_faster = {}, False, False, False
        self.plain = region
        self._begin(region, copy.deepcopy(region.source.tree.body))
        for change in (
            self._split_sums,
            self._with_elements,
            self._with_carried,
            self._with_each,
            self._eliminated,
        ):
            if (statements := change(self.region.source.tree.body)) is not None:
                self._begin(region, statements)
                self.changed = True
                self.is_faster |= change in (self._with_carried, self._eliminated)

    # Sums that stand among other statements of a loop get a loop of their own, and become sums in a body.

    def _split_sums(self, statements):
        changed = False
        for block, _ in [*self._blocks(statements)]:
            for node in [each for each in block if isinstance(each, ast.For) and len(each.body) > 1]:
                for last in [each for each in node.body if _added(each)]:
                    others = [each for each in node.body if each is not last]
                    if others and not self._need_each_other(last, others):
                        node.body = others
                        new = copy.copy(node)
                        new.body = [last]
                        block.insert(block.index(node) + 1, new)
                        changed = True
        if not changed:
            return None
        return [accumulated(each, self.region.scope, self.region.local_names, self.live) for each in statements]

    def _need_each_other(self, last, others):
        stored = [stored_by(each) for each in (ast.Module([last], []), ast.Module(others, []))]
        read = [
            names_read(each) | {e.value.id for e in ast.walk(each) if is_element(e)}
            for each in (last, ast.Module(others, []))
        ]
        return bool(stored[0] & (read[1] | stored[1]) or stored[1] & read[0])

    # ``w = A[i, j]; ...; A[i, j] = w / A[j, j]``: the element in place of the name.

    def _with_elements(self, statements):
        found = {}
        for block, path in self._blocks(statements):
            for end, last in enumerate(block):
                target = last.targets[0] if isinstance(last, ast.Assign) and len(last.targets) == 1 else None
                if target is None or not is_element(target) or self.types.of(target) != "float64":
                    continue
                for name in sorted(names_read(last.value) & self.tree.assigned - self.indices - self.live):
                    begin = next((k for k, each in enumerate(block[:end]) if assigned(each) == name), end)
                    if begin < end and self._is_element(name, target, block[begin : end + 1], path):
                        found.setdefault(name, []).append((block, begin, end, target))
        changed = False
        for name, places in found.items():
            uses = sum(_uses(part, name) for block, begin, end, _ in places for part in block[begin : end + 1])
            if uses != sum(_uses(part, name) for part in statements):
                continue
            for block, begin, end, target in places:
                for k in range(begin, end + 1):
                    block[k] = Put({name: target}).visit(block[k])
                for k in (begin, end):
                    if ast.unparse(block[k].value) == ast.unparse(target):
                        block[k] = ast.Pass()
            changed = True
        for block, _ in [*self._blocks(statements)]:
            block[:] = [each for each in block if not isinstance(each, ast.Pass)]
        return statements if changed else None

    def _is_element(self, name, target, segment, path):
        """Return whether an element may stand for a name in a part of a body."""
        used = {each.id for each in ast.walk(target.slice) if isinstance(each, ast.Name)}
        if (
            used & {each for part in segment for each in stored_by(part)}
            or self.types.of(segment[0].value) != "float64"
        ):
            return False
        for part in (each for statement in segment[1:] for each in ast.walk(statement)):
            if isinstance(part, ast.Assign | ast.AugAssign | ast.For | ast.If) and name in stored_by(part):
                plain = (
                    isinstance(part, ast.For) or isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)
                )
                if not plain:
                    return False
                if isinstance(part, ast.AugAssign) and self.types.of(part.value) not in ("float64", "weak"):
                    return False
        others = [each for each in self._elements(segment[1:], path) if each[0] is not target]
        return not self._may_meet(target, others, path)

    # ``total[p] = ...`` in each turn of outer loops: an array with an element for each of them.

    def _with_each(self, statements):
        if len(statements) > 1 or not isinstance(statements[0], ast.For):
            return None
        node, outer = statements[0], ()
        while isinstance(node, ast.For) and id(node) in self.loops:
            outer, block = (*outer, self.loops[id(node)]), node.body
            node = block[0] if len(block) == 1 else None
        ranges = [self._values(loop) for loop in outer]
        if not all(ranges) or any(loop.step != 1 for loop in outer):
            return None
        new = [self._each(name, block, outer, ranges) for name in self.region.written_tables]
        new = [each for each in new if each]
        return [*statements, *new] if new else None

    def _values(self, loop):
        """The turns of a loop; None where they depend on others."""
        forms = (*loop.begins, *loop.ends)
        if not {name for form in forms for name in form.terms} <= self.numbers.keys():
            return None
        low, high = (
            pick(f.constant + sum(self.numbers[n] * factor for n, factor in f.terms.items()) for f in some)
            for some, pick in ((loop.begins, max), (loop.ends, min))
        )
        return range(low, high)

    def _each(self, name, block, outer, ranges):
        elements = [each for each in self._elements(block, outer) if each[0].value.id == name]
        (first, path), *_ = stores = [each for each in elements if isinstance(each[0].ctx, ast.Store)]
        inner = path[len(outer) :]
        group = next(g for g in self.tree.groups if any(e is first for s in g.statements for e in ast.walk(s)))
        plain = (part for part in group.statements if isinstance(part, ast.Assign))
        value = next((part.value for part in plain if part.targets[0] is first), None)
        forms = [self._access(each, there) for each, there in elements]
        if (
            value is None
            or len(stores) == len(elements)
            or any(form is None for form in forms)
            or self.types.of(first) != "float64"
        ):
            return None
        if any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(value)):
            return None
        used = {n for form in forms for part in form.subscripts for n, f in part.terms.items() if f}
        turns = [self._values(loop) for loop in inner]
        subscripts = [part.id if isinstance(part, ast.Name) else "" for part in subscripts_of(first)]
        if used & {loop.index for loop in outer} or subscripts != [loop.index for loop in inner]:
            return None
        if None in turns or any(loop.step != 1 for loop in inner):
            return None
        for each, (_, there) in zip(forms, elements, strict=True):
            for form, loop in zip(map(row_of, each.subscripts), inner, strict=True):
                beyond = [add(add(row_of(begin), form, -1), {1: -1}, 1) for begin in loop.begins]
                beyond += [add(form, row_of(end), -1) for end in loop.ends]
                if any(may_hold([], [*domain(there), row]) for row in beyond):
                    return None
        store = Group([], path, group.number, [self._access(first, path)])
        for each in self.tree.groups:
            accesses = [access for access in each.accesses if access.name == name]
            if accesses and may_follow(Group([], each.path, each.number, accesses), store, len(outer)):
                return None
        new = f"{name}_each"
        shape = (*map(len, ranges), *(self.numbers[f"{name}.shape[{d}]"] for d in range(len(inner))))
        sizes = [
            math.prod(self.numbers[f"{n}.shape[{d}]"] for d in range(self.plain.table_rank(n)))
            for n in self.plain.tables
        ]
        if new in self.region.local_names or math.prod(shape) > sum(sizes):
            return None
        self.shapes[new] = shape
        last = ", ".join([*(str(len(values) - 1) for values in ranges), *subscripts])
        copied = f"{name}[{', '.join(subscripts)}] = {new}[{last}]"
        for loop, values in reversed([*zip(inner, turns, strict=True)]):
            copied = f"for {loop.index} in range({values.start}, {values.stop}):\n{indent(copied, ' ')}"
        (copied,) = parse(copied).body
        for each in ast.walk(copied):
            if "lineno" in each._attributes:
                ast.copy_location(each, first)
        places = [
            ast.BinOp(ast.Name(loop.index, ast.Load()), ast.Sub(), ast.Constant(values.start))
            for loop, values in zip(outer, ranges, strict=True)
        ]
        for each, _ in elements:
            parts = [*copy.deepcopy(places), *subscripts_of(each)]
            each.value, each.slice = ast.Name(new, ast.Load()), ast.Tuple(parts, ast.Load())
            ast.fix_missing_locations(each)
        return copied

    # Loops in another order, with the loop outside that a pivot needs.

    def _eliminated(self, statements):
        return eliminated(self.tree, statements, self.types)


def _added(node):
    """The name that a statement adds to, if that is all it does."""
    plain = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name)
    return node.target.id if plain else None


def _uses(node, name):
    return sum(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))
