"""Which names statements need from before, and which ones they certainly assign."""

import ast

from tilewave.nest.walks import is_stored, names_stored, nodes_in


def names_read(node):
    """Names that a node reads, those of functions inside it among them."""
    if node is None:
        return set()
    nodes = nodes_in(node)
    changed = {each.target for each in nodes if isinstance(each, ast.AugAssign)}
    return {each.id for each in nodes if isinstance(each, ast.Name) and (each in changed or not is_stored(each))}


def needs(statements):
    """(names that may be read before statements assign them, names that they assign on all paths)."""
    read, assigned = set(), set()
    for statement in statements:
        here, certain = _needs(statement)
        read |= here - assigned
        assigned |= certain
    return read, assigned


def _needs(node):
    if isinstance(node, ast.If):
        then, other = needs(node.body), needs(node.orelse)
        return names_read(node.test) | then[0] | other[0], then[1] & other[1]
    if isinstance(node, ast.For):
        targets = names_stored(node.target)
        other = names_read(node.target) | needs(node.orelse)[0]
        return names_read(node.iter) | (needs(node.body)[0] - targets) | other, set()
    if isinstance(node, ast.While):
        return names_read(node.test) | needs(node.body)[0] | needs(node.orelse)[0], set()
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Return):
        return names_read(node), names_stored(node)
    return names_read(node), set()
