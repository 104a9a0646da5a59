"""Loops over constants, as ``for di, dj in ((0, 1), (1, 0))``: the statements once for each of them."""

import ast
import copy

from tilewave.loops.endings import without_ends
from tilewave.loops.liveness import needs
from tilewave.nest.walks import Put, names_stored, nodes_in

MOST_STATEMENTS = 1000


class Constants(ast.NodeTransformer):
    """The body of a loop over constants in place of the loop; `loop` is the one that has it, `live` are the names that
    are needed behind that.
    """

    def __init__(self, loop, live):
        self.loop = loop
        self.needed = needs([loop])[0] | {*live}

    def visit_For(self, node):
        """Write out a loop; one that changes its variable stays."""
        node = self.generic_visit(node)
        if node is self.loop or node.orelse:
            return node
        turns = _turns(node)
        size = sum(isinstance(each, ast.stmt) for each in nodes_in(*node.body))
        if not turns or len(turns) * size > MOST_STATEMENTS or names_stored(*node.body) & turns[0].keys():
            return node
        written = []
        for values in reversed(turns):
            turn = [Put(values).visit(copy.deepcopy(each)) for each in node.body]
            written = without_ends(turn, ast.Break, written)
        if any(map(_leaves, written)):
            return node
        for name, value in turns[-1].items():
            if name in self.needed:
                if any(map(_leaves, node.body)):  # behind the loop it is that of the turn that ended it
                    return node
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


def _leaves(statement):
    """Whether a statement ends a loop around it."""
    if isinstance(statement, ast.For | ast.While):
        return False
    return isinstance(statement, ast.Break | ast.Continue) or any(map(_leaves, ast.iter_child_nodes(statement)))
