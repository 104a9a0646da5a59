"""Loops as regions read them: shorter forms written out, extents of other arrays as names."""

import ast
import copy
import itertools

from tilewave.loops.constants import Constants
from tilewave.loops.endings import Continued
from tilewave.loops.filled import Filled
from tilewave.loops.ranges import Ranges
from tilewave.nest.inner_loops import extent_of, is_element
from tilewave.nest.language import without_members
from tilewave.nest.parse import parse
from tilewave.nest.subscript import subscripts_of
from tilewave.nest.walks import Put, assigned, elements_in, is_stored, located, names_in, names_stored, nodes_in


def plain_loop(node, scope, local_names, live):
    """A loop in the form that regions take.

    It has ``A[i, j]`` for ``A[i][j]`` and for ``row[j]`` after ``row = A[i]``, loops for ``A[i, :] = 0``, elements for
    ``x, y = A[i]``, extents for ``len(A[0])`` and ``A.size``, ``else`` for ``continue``, comparisons for
    ``x in (1, 2)``, ranges in place of what else loops go over (`Ranges`), and no loops over `Constants`; `live` are
    the names that are needed behind it.

    Returns
    -------
    ast.stmt, dict
        The loop, and of what must be arrays, not lists, the numbers of dimensions and of columns, None where any is
        right.
    """
    ranges, filled = Ranges(scope, local_names, live), Filled(local_names)
    node = _Terms(node, local_names).visit(without_members(copy.deepcopy(node)))
    node = filled.visit(node)
    node = ranges.visit(node)
    shapes = _Shapes()
    node = shapes.visit(node)
    rows, unpacked = _Rows(node, live), _Unpacked()
    node = Continued().visit(unpacked.visit(_Joined().visit(rows.visit(node))))
    node = Constants(node, live).visit(node)
    over = {row.value.id: (None, None) for row in rows.rows.values() if is_element(row)} | ranges.over
    # Of one array in several ways: what holds for all of them.
    for name, what in (*shapes.over.items(), *unpacked.over.items(), *filled.over.items()):
        over[name] = what if over.get(name, (None, None)) == (None, None) else (-1, None)
    return _sized(node), over


def _sized(node):
    elements = [each for each in elements_in(node) if isinstance(each.value, ast.Name)]
    return _Sizes({each.value.id: len(subscripts_of(each)) for each in elements}).visit(node)


class _Terms(ast.NodeTransformer):
    """Names of their own for what generators go over, ``sum(x[q] for q in ...)``, where the loop has such names."""

    def __init__(self, node, local_names):
        inside = nodes_in(*(each.target for each in nodes_in(node) if isinstance(each, ast.comprehension)))
        self.stored = {each.id for each in nodes_in(node) if is_stored(each) and each not in inside}
        self.taken = {*local_names}  # names of terms are not among the local ones

    def visit_GeneratorExp(self, node):
        """Rename what it goes over; the first range is that of the loop's names."""
        node, new = self.generic_visit(node), {}
        for k, each in enumerate(node.generators):
            each.iter = Put(new).visit(each.iter) if k else each.iter
            if isinstance(each.target, ast.Name) and (name := each.target.id) in self.stored:
                new[name] = ast.copy_location(ast.Name(self._free(name), ast.Load()), each.target)
                each.target = Put(new).visit(each.target)
            each.ifs = [Put(new).visit(condition) for condition in each.ifs]
        node.elt = Put(new).visit(node.elt)
        return node

    def _free(self, name):
        free = next(each for k in itertools.count() if (each := f"{name}_term_{k}") not in self.taken)
        self.taken.add(free)
        return free


class _Rows(ast.NodeTransformer):
    """``A[i]`` in place of names that stand for it, ``row = A[i]``, and of which a loop has elements; ``len(A)`` in
    place of ``n = len(A)``.

    The statements behind the assignment, in the same turn, have all its uses; what it is made of stays the same there.
    """

    def __init__(self, node, live):
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        self.used = [each.id for each in names if not is_stored(each)]
        self.stored = [each.id for each in names if is_stored(each)]
        self.live, self.indices, self.rows = live, (), {}

    def visit_For(self, node):
        """Replace names in the body of a loop."""
        outer, body, node.iter = self.indices, [], self.visit(node.iter)
        self.indices = (*outer, *names_in(node.target))
        for k, statement in enumerate(node.body):
            if row := self._row(statement, node.body[k + 1 :]):
                self.rows[statement.targets[0].id] = row
            else:
                body.append(self.visit(statement))
        node.body, self.indices = body or [ast.copy_location(ast.Pass(), node)], outer
        node.orelse = [self.visit(each) for each in node.orelse]
        return node

    def visit_Name(self, node):
        """Put the row in its name's place."""
        row = self.rows.get(node.id)
        return ast.copy_location(copy.deepcopy(row), node) if row else node

    def _row(self, statement, rest):
        """The row or the extent to which a statement gives a name; None for another one."""
        name = assigned(statement)
        if name is None or not (is_element(statement.value) or extent_of(statement.value)):
            return None
        row = statement.value
        if extent_of(row):
            names = [node.id for node in nodes_in(*rest) if isinstance(node, ast.Name) and not is_stored(node)]
            many = names.count(name)
            kept = {*self.stored} & names_in(row) or many < self.used.count(name)
            return None if kept or not many or self.stored.count(name) > 1 or name in self.live else row
        elements = [each.value.id for each in elements_in(*rest) if isinstance(each.value, ast.Name)]
        many = elements.count(name)
        if not many or many < self.used.count(name) or self.stored.count(name) > 1 or name in self.live:
            return None
        if any(isinstance(each, ast.Slice | ast.Call | ast.Attribute) for each in ast.walk(row)):
            return None
        changing = any(self.stored.count(each) > (each in self.indices) for each in names_in(row))
        return None if changing else self.visit(row)


def without_extents(node, written, local_names, made):
    """A loop with names in place of extents of arrays of which it, as it was written, has no elements; `made` are the
    names that other loops have for theirs.

    Returns
    -------
    ast.stmt, dict
        The loop, and what the names stand for as text.
    """
    arrays = (each.value for each in elements_in(node, written))
    own = names_stored(node) | {each.id for each in arrays if isinstance(each, ast.Name)}
    extents = _Extents(own, local_names, made)
    return extents.visit(node), extents.found


def _extent_from_end(node):
    """(array, k) of ``A.shape[-k]``; None for another node."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.UnaryOp):
        return None
    found = extent_of(ast.Subscript(node.value, node.slice.operand, ast.Load()))
    return found if found and isinstance(node.slice.op, ast.USub) else None


class _Extents(ast.NodeTransformer):
    def __init__(self, own, local_names, made):
        self.own, self.local_names, self.made, self.found = own, local_names, made, {}

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
        if name in self.local_names - self.made:
            return node
        self.local_names.add(name)
        self.made.add(name)
        self.found[name] = ast.unparse(node)
        return ast.copy_location(ast.Name(name, ast.Load()), node)


class _Unpacked(ast.NodeTransformer):
    """``x = A[i, 0]; y = A[i, 1]`` in place of ``x, y = A[i]``."""

    def __init__(self):
        self.over = {}

    def visit_Assign(self, node):
        """Replace a row that is unpacked."""
        target, row = node.targets[0], node.value
        names = len(node.targets) == 1 and isinstance(target, ast.Tuple | ast.List)
        if not names or not all(isinstance(each, ast.Name) for each in target.elts):
            return node
        if not is_element(row) or not isinstance(row.value, ast.Name):
            return node
        names, parts = {each.id for each in target.elts}, subscripts_of(row)
        inside = names_in(row.value, *parts)
        what = len(parts) + 1, len(target.elts)
        if (
            names & inside
            or any(isinstance(part, ast.Slice) for part in parts)
            or self.over.get(row.value.id, what) != what
        ):
            return node
        self.over[row.value.id] = what
        values = [ast.Tuple([*copy.deepcopy(parts), ast.Constant(k)], ast.Load()) for k in range(len(target.elts))]
        return [_assignment(node, each, row.value, at) for each, at in zip(target.elts, values, strict=True)]


class _Shapes(ast.NodeTransformer):
    """``n = A.shape[0]; m = A.shape[1]`` in place of ``n, m = A.shape``."""

    def __init__(self):
        self.over = {}

    def visit_Assign(self, node):
        """Replace a shape that is unpacked."""
        target, shape = node.targets[0], node.value
        names = len(node.targets) == 1 and isinstance(target, ast.Tuple | ast.List) and target.elts
        of_name = isinstance(shape, ast.Attribute) and shape.attr == "shape" and isinstance(shape.value, ast.Name)
        if not names or not of_name or not all(isinstance(each, ast.Name) for each in names):
            return node
        name = shape.value.id
        if name in {each.id for each in names} or self.over.setdefault(name, (len(names), None))[0] != len(names):
            return node
        return [_assignment(node, each, copy.deepcopy(shape), ast.Constant(k)) for k, each in enumerate(names)]


def _assignment(node, target, of, subscript):
    """An assignment of one element, which stands where another statement does."""
    new = ast.Assign([target], ast.Subscript(of, subscript, ast.Load()))
    return ast.fix_missing_locations(ast.copy_location(new, node))


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
        return located(parse(text, mode="eval").body, node)


def _extent_of_row(node):
    """``A.shape[1]`` for ``A[i].shape[0]``; None for another node."""
    shape, k = node.value, node.slice
    if not isinstance(shape, ast.Attribute) or shape.attr != "shape" or not isinstance(k, ast.Constant):
        return None
    row = shape.value
    if not is_element(row) or not isinstance(row.value, ast.Name) or type(k.value) is not int or k.value < 0:
        return None
    whole = ast.Attribute(row.value, "shape", ast.Load())
    new = ast.Subscript(whole, ast.Constant(k.value + len(subscripts_of(row))), ast.Load())
    return ast.fix_missing_locations(ast.copy_location(new, node))


class _Joined(ast.NodeTransformer):
    def visit_Subscript(self, node):
        """Join subscripts."""
        node = self.generic_visit(node)
        inner = node.value
        if of_row := _extent_of_row(node):
            return of_row
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
