"""Conditions in place of ``continue`` and ``break``."""

import ast


class Continued(ast.NodeTransformer):
    """What follows ``continue`` is under a condition."""

    def visit_For(self, node):
        """Replace those of a loop."""
        node.body = without_ends(node.body, ast.Continue) or [ast.copy_location(ast.Pass(), node.body[0])]
        return self.generic_visit(node)

    visit_While = visit_For


def without_ends(statements, kind, rest=()):
    """Return the statements of a turn, which `kind` ends, and of `rest`, to which the others go on."""
    found = []
    for k, node in enumerate(statements):
        if isinstance(node, kind):
            return found
        if isinstance(node, ast.If) and any(_ends(part, kind) for part in (node.body, node.orelse)):
            after = statements[k + 1 :]
            parts = [part if _ends(part, kind) else [*part, *after] for part in (node.body, node.orelse)]
            return [*found, *_condition(node, *(without_ends(part, kind, rest) for part in parts))]
        found.append(node)
    return [*found, *rest]


def _ends(statements, kind):
    return bool(statements) and isinstance(statements[-1], kind)


def _condition(node, body, orelse):
    """An ``if`` that has statements; what does nothing goes."""
    body, orelse = ([each for each in part if not isinstance(each, ast.Pass)] for part in (body, orelse))
    new = ast.If(node.test, body, orelse)
    if not body:
        new = ast.If(ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test), orelse or [ast.Pass()], [])
    return [ast.fix_missing_locations(ast.copy_location(new, node))]
