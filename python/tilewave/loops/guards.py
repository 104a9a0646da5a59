"""Cuts ranges of loops where conditions on indices change, so that each part has accesses inside its arrays.

``if i == 0: ... else: ... u[i-1]`` becomes a loop over i = 0 and one over the rest. So do ``u[i-1]``, which is the last
element where i is 0, and ``(i + 1) % n``. Loops of few turns inside others are written out.
"""

import ast
import copy
import itertools

from tilewave.loops.liveness import needs
from tilewave.loops.tree import Stays, linear, range_of, text_of
from tilewave.nest.affine import Affine
from tilewave.nest.inner_loops import is_element
from tilewave.nest.parse import parse
from tilewave.nest.subscript import subscripts_of
from tilewave.nest.walks import Put, elements_in, is_stored, located, names_in, nodes_in, slice_of

#: Loops that one loop may become, each a nest that takes half a second to compile; turns of a loop that is written out,
#: and statements of all of them.
MOST_LOOPS, MOST_TURNS, MOST_STATEMENTS = 24, 16, 100
COMPARISONS = {ast.GtE: (0, False), ast.Gt: (1, False), ast.Lt: (0, True), ast.LtE: (1, True)}


def cut(region, numbers, live):
    """The statements of a region with ranges cut; None where there is nothing to cut.

    Parameters
    ----------
    region : Region
    numbers : dict
        The integers that names and extents stand for.
    live : set of str
        Names that are needed behind the region.

    Raises
    ------
    Stays
        Where there would be too many loops, or an index is needed outside of its loop.
    """
    needed = live | needs(region.source.tree.body)[0]
    if needed & {node.target.id for node in region.loops if isinstance(node, ast.For)}:
        raise Stays("a loop index is needed outside of its loop")
    cutter = _Cutter(region, numbers)
    statements = cutter.block(copy.deepcopy(region.source.tree.body), ())
    return statements if cutter.changed else None


class _Cutter:
    def __init__(self, region, numbers):
        self.region, self.numbers = region, numbers
        stores = [node.id for node in region.source.nodes if is_stored(node)]
        targets = [node.target.id for node in region.loops if isinstance(node, ast.For)]
        self.assigned = {*stores} - {*targets}
        self.unclear = {name for name in targets if stores.count(name) > targets.count(name)}
        self.changed, self.loops = False, 0

    def block(self, statements, path):
        """Statements inside the loops of a path, cut."""
        found = []
        for node in statements:
            if isinstance(node, ast.For):
                found += self._loop(node, path)
            elif isinstance(node, ast.While):
                raise Stays(f"line {node.lineno} has a while loop")
            elif not isinstance(node, ast.Pass):
                found.append(node)
            if isinstance(found and found[-1], ast.Continue):
                return found[:-1]
        return found

    def form(self, node, path):
        """An expression as an affine form of the indices of a path; None where it is none."""
        form = linear(node, lambda name: name in path or name in self.numbers and name not in self.assigned)
        if form is None or form.divisor > 1:
            return None
        total = Affine({}, form.constant)
        for name, factor in form.terms.items():
            total = total + (Affine({name: factor}, 0) if name in path else self.numbers[name] * factor)
        return Affine({name: factor for name, factor in total.terms.items() if factor}, total.constant)

    def _loop(self, node, path):
        part = self._range(node, path)
        if part is None:
            node.body = self.block(node.body, path)
            return [node] if node.body else []
        if (turns := self._written_out(node, part, path)) is not None:
            self.changed = True
            return turns
        parts = [part]
        for place in self._places(node, part, path):
            parts = [new for each in parts for new in each.at(place)]
        self.loops += len(parts)
        if self.loops > MOST_LOOPS:
            raise Stays("conditions on indices cut the loops into too many")
        found = []
        for each in parts:
            body = [copy.deepcopy(statement) for statement in node.body] if len(parts) > 1 else node.body
            known = _Known(self, each, (*path, part.index))
            body = self.block(known.statements(body), (*path, part.index))
            self.changed |= known.changed or len(parts) > 1
            if body:
                found.append(each.loop(node, body))
        return found

    def _range(self, node, path):
        """The range of a loop, where it may be cut."""
        low, high, step = range_of(node, lambda each: self.form(each, path), self.region.scope)
        if step not in (1, -1) or node.target.id in self.unclear or node.target.id in path:
            return None
        if any(form is None for form in (*low, *high)):
            return None
        if step < 0:
            low, high = [form + 1 for form in high], [form + 1 for form in low]
        return _Part(node.target.id, low, high, step)

    def _places(self, loop, part, path):
        """Where to cut a range: forms of outer indices, of which the index is below or not."""
        inner = (*path, part.index)
        for node in nodes_in(*loop.body):
            forms = []
            if isinstance(node, ast.If | ast.IfExp):
                tests = (each for each in ast.walk(node.test) if isinstance(each, ast.Compare))
                forms = [form for each in tests for form in self.compared(each, inner)]
            elif is_element(node) and node.value.id in self.region.tables:
                forms = [self.form(each, inner) for each in subscripts_of(node)]
            elif modulus := self.modulus(node):
                forms = [self.form(node.left, inner)]
                forms += [forms[0] - modulus] if forms[0] is not None else []
            for form in forms:
                if form is not None and abs(form.terms.get(part.index, 0)) == 1:
                    yield _least(form, part.index)[0]

    def compared(self, node, path):
        """The forms that a comparison finds to be 0 or more, or not."""
        sides = [self.form(each, path) for each in (node.left, *node.comparators)]
        for operator, (left, right) in zip(node.ops, itertools.pairwise(sides), strict=True):
            if left is not None and right is not None:
                both = left - right, left - right - 1
                yield from (both[COMPARISONS[type(operator)][0]],) if type(operator) in COMPARISONS else both

    def _stores_at(self, loop):
        """Return whether an element is stored at the index of a loop, or the index is assigned."""
        stores = [each.slice for each in elements_in(*loop.body) if isinstance(each.ctx, ast.Store)]
        return loop.target.id in names_in(*stores) | self.unclear

    def _written_out(self, loop, part, path):
        """The statements of all turns of an inner loop; None where they are many, or loops are left in them."""
        if not path or part.varies() or len(part.values()) > MOST_TURNS or self._stores_at(loop):
            return None
        found = []
        for value in part.values():
            turn, nothing = Put({loop.target.id: ast.Constant(value)}), _Part("", [Affine({}, 0)], [Affine({}, 1)], 1)
            body = [turn.visit(copy.deepcopy(each)) for each in loop.body]
            found += self.block(_Known(self, nothing, path).statements(body), path)
        ends = any(isinstance(each, ast.For | ast.While | ast.Continue | ast.Break) for each in nodes_in(*found))
        return None if ends or len(found) > MOST_STATEMENTS else found

    def modulus(self, node):
        """The number of a remainder; None for another node."""
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mod):
            return None
        form = self.form(node.right, ())
        return form.constant if form is not None and form.constant > 0 else None


def _least(form, index):
    """(place, whether the form is 0 or more from there on, else below it)."""
    rest = Affine({name: factor for name, factor in form.terms.items() if name != index}, form.constant)
    return (-rest, True) if form.terms[index] == 1 else (rest + 1, False)


def _distance(one, other):
    """How far a form is ahead of another one; None where that is no number."""
    found = one - other
    return None if any(found.terms.values()) else found.constant


class _Part:
    """Indices of a range from the largest of some forms on, below the least of others."""

    def __init__(self, index, low, high, step):
        self.index, self.low, self.high, self.step = index, low, high, step

    def varies(self):
        """Return whether bounds have outer indices."""
        return any(form.terms for form in (*self.low, *self.high))

    def values(self):
        """The indices, where bounds are numbers."""
        low, high = max(form.constant for form in self.low), min(form.constant for form in self.high)
        return range(low, high)[:: self.step]

    def is_above(self, place):
        """Return whether all indices are at a place or beyond it; None where some may be and some not."""
        if any((d := _distance(form, place)) is not None and d >= 0 for form in self.low):
            return True
        if any((d := _distance(form, place)) is not None and d <= 0 for form in self.high):
            return False
        return None

    def at(self, place):
        """The parts before and behind a place, in the order of the loop."""
        if self.is_above(place) is not None:
            return [self]
        before = _Part(self.index, self.low, [*self.high, place], self.step)
        behind = _Part(self.index, [*self.low, place], self.high, self.step)
        return [before, behind][:: self.step]

    def loop(self, node, body):
        """The loop over the part."""
        if self.step > 0:
            text = f"range({text_of(self.low, max)}, {text_of(self.high, min)})"
        else:
            first, end = ([form - 1 for form in side] for side in (self.high, self.low))
            text = f"range({text_of(first, min)}, {text_of(end, max)}, -1)"
        new = copy.copy(node)
        new.iter, new.body = located(parse(text, mode="eval").body, node), body
        new.iter.func = node.iter.func
        return new


class _Known(ast.NodeTransformer):
    """What a part of a range tells: conditions that hold or not, remainders, subscripts from the end."""

    def __init__(self, cutter, part, path):
        self.cutter, self.part, self.path, self.changed = cutter, part, path, False

    def statements(self, nodes):
        """Statements without those that are not reached."""
        found = []
        for node in nodes:
            new = self.visit(node)
            found += new if isinstance(new, list) else [new]
            if found and isinstance(found[-1], ast.Continue):
                break
        return found

    def visit_For(self, node):
        node.iter, node.body = self.visit(node.iter), self.statements(node.body) or [ast.Pass()]
        return node

    def visit_If(self, node):
        node.test = self.visit(node.test)
        if isinstance(node.test, ast.Constant):
            return self.statements(node.body if node.test.value else node.orelse)
        node.body, node.orelse = self.statements(node.body) or [ast.Pass()], self.statements(node.orelse)
        return node

    def visit_IfExp(self, node):
        node.test = self.visit(node.test)
        if isinstance(node.test, ast.Constant):
            return self.visit(node.body if node.test.value else node.orelse)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_BoolOp(self, node):
        ends = isinstance(node.op, ast.Or)  # the value that decides
        kept = []
        for each in map(self.visit, node.values):
            if not isinstance(each, ast.Constant) or type(each.value) is not bool:
                kept.append(each)
            elif each.value is ends:
                kept.append(each)
                break
        if not kept:
            return ast.copy_location(ast.Constant(not ends), node)
        node.values = kept
        return kept[0] if len(kept) == 1 else node

    def visit_UnaryOp(self, node):
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.copy_location(ast.Constant(not node.operand.value), node)
        return node

    def visit_Compare(self, node):
        sides = [self.cutter.form(each, self.path) for each in (node.left, *node.comparators)]
        holds = [self._holds(a, b, op) for a, b, op in zip(sides, sides[1:], node.ops, strict=False)]
        if False in holds or None not in holds:
            self.changed = True
            return ast.copy_location(ast.Constant(False not in holds), node)
        return self.generic_visit(node)

    def _holds(self, left, right, operator):
        if left is None or right is None:
            return None
        found = [self._is_least(left - right), self._is_least(left - right - 1)]  # >=, >
        if isinstance(operator, ast.Eq | ast.NotEq):
            equal = False if found[0] is False or found[1] else None if None in found else True
            return equal if equal is None or isinstance(operator, ast.Eq) else not equal
        if type(operator) not in COMPARISONS:
            return None
        which, turned = COMPARISONS[type(operator)]
        return found[which] if found[which] is None or not turned else not found[which]

    def _is_least(self, form):
        """Return whether a form is 0 or more in all the part, or nowhere; None where that is not known."""
        if not form.terms:
            return form.constant >= 0
        if abs(form.terms.get(self.part.index, 0)) != 1:
            return None
        place, upwards = _least(form, self.part.index)
        above = self.part.is_above(place)
        return above if above is None or upwards else not above

    def visit_BinOp(self, node):
        modulus = self.cutter.modulus(node)
        form = self.cutter.form(node.left, self.path) if modulus else None
        if (
            form is None
            or self._is_least(form + modulus) is not True
            or self._is_least(form - 2 * modulus) is not False
        ):
            return self.generic_visit(node)
        by = {(True, True): -modulus, (True, False): 0, (False, False): modulus}
        shift = by.get((self._is_least(form), self._is_least(form - modulus)))
        return self.generic_visit(node) if shift is None else self._moved(node.left, ast.Constant(shift), shift)

    def visit_Subscript(self, node):
        node = self.generic_visit(node)
        if (
            not is_element(node)
            or not isinstance(node.value, ast.Name)
            or node.value.id not in self.cutter.region.tables
        ):
            return node
        parts = [self._from_begin(node.value.id, d, each) for d, each in enumerate(subscripts_of(node))]
        node.slice = ast.copy_location(slice_of(parts), node)
        return node

    def _from_begin(self, array, dimension, part):
        form = self.cutter.form(part, self.path)
        extent = self.cutter.numbers.get(f"{array}.shape[{dimension}]")
        if form is None or extent is None or not form.terms and form.constant >= 0 or self._is_least(form) is not False:
            return part
        return self._moved(part, ast.Constant(extent), extent)

    def _moved(self, node, constant, by):
        self.changed = True
        new = ast.BinOp(node, ast.Add(), constant) if by else node
        return ast.fix_missing_locations(ast.copy_location(new, node))
