"""Loops over constants, as ``for di, dj in ((0, 1), (1, 0))``: the statements once for each of them."""

import ast
import copy

MOST_STATEMENTS = 1000


class Constants(ast.NodeTransformer):
    """The body of a loop over constants in place of the loop; `loop` is the one that has it, `live` are the names that
    are needed behind that.
    """

    def __init__(self, loop, live):
        self.loop = loop
        self.read = [*_names(loop, ast.Load), *live]

    def visit_For(self, node):
        """Write out a loop; one that is left by ``break``, or changes its variable, stays."""
        node = self.generic_visit(node)
        if node is self.loop or node.orelse or _left(node.body):
            return node
        turns = _turns(node)
        names = set(_names(node.target, ast.Store))
        size = sum(isinstance(each, ast.stmt) for part in node.body for each in ast.walk(part))
        if not turns or len(turns) * size > MOST_STATEMENTS or any(names & {*_names(n, ast.Store)} for n in node.body):
            return node
        written = []
        for values in turns:
            written += [_Put(values).visit(copy.deepcopy(each)) for each in node.body]
        for name, value in turns[-1].items():  # what it is behind the loop
            if self.read.count(name) > sum(_names(each, ast.Load).count(name) for each in node.body):
                assigned = ast.Assign([ast.Name(name, ast.Store())], copy.deepcopy(value))
                written.append(ast.fix_missing_locations(ast.copy_location(assigned, node)))
        return written


def _turns(node):
    """The constants by name of each turn of a loop; empty where it goes over something else."""
    if not isinstance(node.iter, ast.Tuple | ast.List):
        return []
    turns = []
    for item in node.iter.elts:
        targets, values = [node.target], [item]
        if isinstance(node.target, ast.Tuple | ast.List):
            targets, values = node.target.elts, getattr(item, "elts", ())
        plain = all(isinstance(each, ast.Name) for each in targets) and all(map(_is_number, values))
        if not plain or len(targets) != len(values):
            return []
        turns.append({target.id: value for target, value in zip(targets, values, strict=True)})
    return turns


def _is_number(node):
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float | complex)


def _left(statements):
    """Whether a turn of the loop around these statements may end before them."""
    for each in statements:
        if isinstance(each, ast.Break | ast.Continue):
            return True
        inside = isinstance(each, ast.If | ast.With | ast.Try)
        if inside and _left([part for part in ast.iter_child_nodes(each) if isinstance(part, ast.stmt)]):
            return True
    return False


def _names(node, context):
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, context)]


class _Put(ast.NodeTransformer):
    def __init__(self, values):
        self.values = values

    def visit_Name(self, node):
        """Put the constant."""
        value = self.values.get(node.id)
        return node if value is None else ast.copy_location(copy.deepcopy(value), node)
