"""Loops as regions read them: shorter forms written out, extents of other arrays as names."""

import ast
import builtins
import copy
import itertools

import numpy as np

from tilewave.nest.inner_loops import extent_of, is_element
from tilewave.nest.language import without_members
from tilewave.nest.parse import parse
from tilewave.nest.subscript import subscripts_of


def plain_loop(node, scope, local_names, live):
    """A loop in the form that regions take.

    It has ``A[i, j]`` for ``A[i][j]`` and for ``row[j]`` after ``row = A[i]``, extents for ``len(A[0])`` and
    ``A.size``, ``else`` for ``continue``, comparisons for ``x in (1, 2)``, and loops over ranges for those over
    ``reversed``, ``enumerate``, ``zip``, ``ndindex``, ``product`` and elements; `live` are the names that are needed
    behind it.

    Returns
    -------
    ast.stmt, dict
        The loop, and of what must be arrays, not lists, the number of dimensions: None where any is right.
    """
    ranges = _Ranges(scope, local_names, live)
    node = ranges.visit(without_members(copy.deepcopy(node)))
    rows = _Rows(node, live)
    node = _Continued().visit(_Joined().visit(rows.visit(node)))
    return _sized(node), {row.value.id: None for row in rows.rows.values()} | ranges.over


def _sized(node):
    elements = [each for each in ast.walk(node) if is_element(each) and isinstance(each.value, ast.Name)]
    return _Sizes({each.value.id: len(subscripts_of(each)) for each in elements}).visit(node)


class _Rows(ast.NodeTransformer):
    """``A[i]`` in place of names that stand for it, ``row = A[i]``, and of which a loop has elements.

    The statements behind the assignment, in the same turn, have all its uses; what it is made of stays the same there.
    """

    def __init__(self, node, live):
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        self.used = [each.id for each in names if not isinstance(each.ctx, ast.Store)]
        self.stored = [each.id for each in names if isinstance(each.ctx, ast.Store)]
        self.live, self.indices, self.rows = live, (), {}

    def visit_For(self, node):
        """Replace names in the body of a loop."""
        outer = self.indices
        self.indices = (*outer, *(each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)))
        body = []
        for k, statement in enumerate(node.body):
            if row := self._row(statement, node.body[k + 1 :]):
                self.rows[statement.targets[0].id] = row
            else:
                body.append(self.visit(statement))
        node.body, self.indices = body, outer
        return node

    def visit_Name(self, node):
        """Put the row in its name's place."""
        row = self.rows.get(node.id)
        return ast.copy_location(copy.deepcopy(row), node) if row else node

    def _row(self, statement, rest):
        """The row to which a statement gives a name; None for another one."""
        plain = isinstance(statement, ast.Assign) and len(statement.targets) == 1
        if not plain or not isinstance(statement.targets[0], ast.Name) or not is_element(statement.value):
            return None
        name, row = statement.targets[0].id, statement.value
        elements = [
            each.value.id
            for part in rest
            for each in ast.walk(part)
            if is_element(each) and isinstance(each.value, ast.Name)
        ]
        many = elements.count(name)
        if not many or many < self.used.count(name) or self.stored.count(name) > 1 or name in self.live:
            return None
        if any(isinstance(each, ast.Slice | ast.Call | ast.Attribute) for each in ast.walk(row)):
            return None
        names = {each.id for each in ast.walk(row) if isinstance(each, ast.Name)}
        return None if any(self.stored.count(each) > (each in self.indices) for each in names) else self.visit(row)


class _Ranges(ast.NodeTransformer):
    """Loops over ranges in place of others."""

    def __init__(self, scope, local_names, live):
        self.scope, self.local_names, self.live, self.over = scope, local_names, live, {}

    def visit_For(self, node):
        """Replace what a loop goes over; what is not known stays."""
        node = self.generic_visit(node)
        call, ranged = node.iter, None
        if isinstance(call, ast.Name):
            ranged = self._elements(node, (node.target,), (call,))
        elif isinstance(call, ast.Call) and not call.keywords and call.args:
            found, targets = self.scope.resolve(call.func), getattr(node.target, "elts", ())
            if found is builtins.reversed:
                ranged = self._reversed(node, call.args[0])
            elif found is builtins.enumerate and len(call.args) == 1 and len(targets) == 2:
                ranged = self._elements(node, targets[1:], call.args, targets[0])
            elif found is builtins.zip and len(targets) == len(call.args):
                ranged = self._elements(node, targets, call.args)
            elif found is np.ndindex and len(targets) == len(call.args):
                ranged = self._nested(node, targets, [self._range(call, each) for each in call.args])
            elif found is itertools.product and len(targets) == len(call.args) and all(map(self._ends, call.args)):
                ranged = self._nested(node, targets, call.args)
        return ast.fix_missing_locations(ranged) if ranged else node

    def _ends(self, node):
        """The arguments of a range; None for something else."""
        ranged = isinstance(node, ast.Call) and self.scope.resolve(node.func) is builtins.range and not node.keywords
        return node.args if ranged and 1 <= len(node.args) <= 3 else None

    def _range(self, where, *ends):
        return ast.copy_location(ast.Call(ast.copy_location(ast.Name("range", ast.Load()), where), [*ends], []), where)

    def _is_builtin(self, *names):
        return all(self.scope.lookup(name) is getattr(builtins, name) for name in names)

    def _loop(self, node, target, iterated, body):
        return ast.copy_location(ast.For(target, iterated, body, node.orelse), node)

    def _reversed(self, node, given):
        """Downwards, over a range of steps of one."""
        ends = self._ends(given)
        if not ends or len(ends) == 3:
            return None
        low, high = [ast.copy_location(ast.Constant(0), given), *ends][-2:]
        one = [ast.BinOp(copy.deepcopy(end), ast.Sub(), ast.Constant(1)) for end in (high, low)]
        return self._loop(node, node.target, self._range(given, *one, ast.Constant(-1)), node.body)

    def _elements(self, node, targets, arrays, index=None):
        """The elements of arrays one by one; `index` is their number."""
        written = {each.id for part in node.body for each in ast.walk(part) if _is_stored(each)}
        plain = all(isinstance(each, ast.Name) for each in (*targets, *arrays, *((index,) if index else ())))
        if not plain or written & {each.id for each in arrays} or not self._is_builtin("range", "len", "min"):
            return None
        if index is None or index.id in written:  # a name of its own, which the body does not change
            first = f"{targets[0].id}_index"
            free = (f"{first}_{k}" if k else first for k in itertools.count())
            number = next(name for name in free if name not in self.local_names)
            self.local_names.add(number)
        else:
            number = index.id
        values = [
            ast.Assign([target], ast.Subscript(array, ast.Name(number, ast.Load()), ast.Load()))
            for target, array in zip(targets, arrays, strict=True)
        ]
        if index is not None and index.id != number:
            values.insert(0, ast.Assign([index], ast.Name(number, ast.Load())))
        for each in values:
            ast.copy_location(each, node)
        lengths = [ast.Call(ast.Name("len", ast.Load()), [copy.deepcopy(array)], []) for array in arrays]
        length = lengths[0] if len(lengths) == 1 else ast.Call(ast.Name("min", ast.Load()), lengths, [])
        self.over |= {array.id: 1 for array in arrays}
        return self._loop(node, ast.Name(number, ast.Store()), self._range(node.iter, length), [*values, *node.body])

    def _nested(self, node, targets, ranges):
        """Loops in each other, which ``break`` would not leave."""
        leaves = any(isinstance(each, ast.Break) for part in node.body for each in ast.walk(part))
        plain = all(isinstance(each, ast.Name) for each in targets) and len({each.id for each in targets}) == len(
            targets
        )
        if leaves or not plain or node.orelse or not self._is_builtin("range"):
            return None
        stored = {each.id for part in node.body for each in ast.walk(part) if _is_stored(each)}
        named = {each.id for part in ranges for each in ast.walk(part) if isinstance(each, ast.Name)}
        indices = {each.id for each in targets}
        if (named | indices) & stored or named & indices or indices & self.live:
            return None  # the ranges are evaluated once, and indices are set anew in each turn
        body = node.body
        for target, iterated in zip(reversed(targets), reversed(ranges), strict=True):
            body = [self._loop(node, target, iterated, body)]
        return body[0]


def _is_stored(node):
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def without_extents(node, written, local_names):
    """A loop with names in place of extents of arrays of which it, as it was written, has no elements.

    Returns
    -------
    ast.stmt, dict
        The loop, and what the names stand for as text.
    """
    elements = (each.value for each in (*ast.walk(node), *ast.walk(written)) if is_element(each))
    own = {each.id for each in elements if isinstance(each, ast.Name)}
    own |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    extents = _Extents(own, local_names)
    return extents.visit(node), extents.found


def _extent_from_end(node):
    """(array, k) of ``A.shape[-k]``; None for another node."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.UnaryOp):
        return None
    found = extent_of(ast.Subscript(node.value, node.slice.operand, ast.Load()))
    return found if found and isinstance(node.slice.op, ast.USub) else None


class _Extents(ast.NodeTransformer):
    def __init__(self, own, local_names):
        self.own, self.local_names, self.found = own, local_names, {}

    def visit(self, node):
        """Replace an extent by a name."""
        found, what = extent_of(node), "shape_{}"
        if end := _extent_from_end(node):
            found, what = end, "shape_from_end_{}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in ("size", "ndim"):
            found, what = (node.value.id, node.attr), "{}"
        if not found or found[0] in self.own:
            return self.generic_visit(node)
        name = f"{found[0]}_{what.format(found[1])}"
        if name in self.local_names and name not in self.found:
            return node
        self.local_names.add(name)
        self.found[name] = ast.unparse(node)
        return ast.copy_location(ast.Name(name, ast.Load()), node)


class _Continued(ast.NodeTransformer):
    def visit_For(self, node):
        """Put what follows ``continue`` under a condition."""
        node.body = self._rest(node.body)
        return node

    visit_While = visit_For

    def _rest(self, statements):
        """Statements that end a turn of a loop."""
        found = []
        for k, node in enumerate(statements):
            if isinstance(node, ast.Continue):
                break
            if isinstance(node, ast.If) and any(_continues(part) for part in (node.body, node.orelse)):
                rest = statements[k + 1 :]
                parts = [part if _continues(part) else [*part, *rest] for part in (node.body, node.orelse)]
                return [*found, *_condition(node, *map(self._rest, parts))]
            found.append(self.visit(node))
        return found or [ast.copy_location(ast.Pass(), statements[0])]


def _continues(statements):
    return bool(statements) and isinstance(statements[-1], ast.Continue)


def _condition(node, body, orelse):
    """An ``if`` that has statements; what does nothing goes."""
    body, orelse = ([each for each in part if not isinstance(each, ast.Pass)] for part in (body, orelse))
    new = ast.If(node.test, body, orelse)
    if not body:
        new = ast.If(ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test), orelse or [ast.Pass()], [])
    return [ast.fix_missing_locations(ast.copy_location(new, node))]


class _Sizes(ast.NodeTransformer):
    def __init__(self, ranks):
        self.ranks = ranks

    def visit_Subscript(self, node):
        """Count ``A.shape[-1]`` from the start."""
        found = _extent_from_end(node)
        if not found or found[0] not in self.ranks:
            return self.generic_visit(node)
        dimension = ast.copy_location(ast.Constant(self.ranks[found[0]] - found[1]), node)
        return ast.copy_location(ast.Subscript(node.value, dimension, ast.Load()), node)

    def visit_Attribute(self, node):
        known = isinstance(node.value, ast.Name) and node.value.id in self.ranks
        if not known or node.attr not in ("size", "ndim"):
            return node
        rank = self.ranks[node.value.id]
        text = " * ".join(f"{node.value.id}.shape[{d}]" for d in range(rank)) if node.attr == "size" else str(rank)
        new = parse(text, mode="eval").body
        for each in ast.walk(new):
            if "lineno" in each._attributes:
                ast.copy_location(each, node)
        return new


class _Joined(ast.NodeTransformer):
    def visit_Subscript(self, node):
        """Join subscripts."""
        node = self.generic_visit(node)
        inner = node.value
        if not is_element(node) or not isinstance(inner, ast.Subscript) or extent_of(inner):
            return node
        parts = [*subscripts_of(inner), *subscripts_of(node)]
        new = ast.Subscript(inner.value, ast.Tuple(parts, ast.Load()), node.ctx)
        return ast.fix_missing_locations(ast.copy_location(new, node))

    def visit_Call(self, node):
        """Find extents."""
        node = self.generic_visit(node)
        named = isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1 and not node.keywords
        if named and is_element(node.args[0]) and isinstance(node.args[0].value, ast.Name):
            shape = ast.Attribute(node.args[0].value, "shape", ast.Load())
            new = ast.Subscript(shape, ast.Constant(len(subscripts_of(node.args[0]))), ast.Load())
            return ast.fix_missing_locations(ast.copy_location(new, node))
        return node
