"""Which names statements need from before, and which ones they certainly assign."""

import ast


def names_read(node):
    """Names that a node reads, those of functions inside it among them."""
    if node is None:
        return set()
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Store)}
    return found | {
        each.target.id
        for each in ast.walk(node)
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)
    }


def _stored(node):
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


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
        targets = _stored(node.target)
        other = names_read(node.target) | needs(node.orelse)[0]
        return names_read(node.iter) | (needs(node.body)[0] - targets) | other, set()
    if isinstance(node, ast.While):
        return names_read(node.test) | needs(node.body)[0] | needs(node.orelse)[0], set()
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Return):
        return names_read(node), _stored(node)
    return names_read(node), set()
