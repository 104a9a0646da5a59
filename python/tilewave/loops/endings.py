"""Conditions in place of ``continue``, ``break`` and ``return``."""

import ast
import copy


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


def without_returns(loop, name):
    """Return statements in place of a loop that ``return`` leaves: the loop is left, and then the function.

    Parameters
    ----------
    loop : ast.For or ast.While
    name : str
        A free name: of the number of the ``return`` that has left the loop, 0 for none.

    Returns
    -------
    list of ast.stmt or None
        None where the loop has no ``return``, an ``else`` that it skips, or what comes between it and the end of the
        loop: ``finally``, the end of a ``with``.
    """
    left = _Left(name)
    new = copy.copy(loop)
    new.body = [each for part in copy.deepcopy(loop.body) for each in left.statements(part)]
    if not left.values or left.skips or loop.orelse:
        return None
    values = enumerate(left.values, 1)
    after = [ast.If(_compared(name, ast.Eq(), k), [ast.Return(value)], []) for k, value in values]
    return [
        ast.fix_missing_locations(ast.copy_location(each, loop)) if each is not new else new
        for each in (_noted(name, 0), new, *after)
    ]


class _Left(ast.NodeTransformer):
    """``break`` in place of ``return``, whose number is noted."""

    def __init__(self, name):
        self.name, self.values, self.skips = name, [], False

    def statements(self, node):
        """Return what stands for a statement."""
        found = self.visit(node)
        return found if isinstance(found, list) else [found]

    def visit_Return(self, node):
        """Leave the loop."""
        self.values.append(node.value)
        found = [_noted(self.name, len(self.values)), ast.Break()]
        return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in found]

    def visit_For(self, node):
        """Leave the loop around this one, too."""
        before = len(self.values)
        node = self.generic_visit(node)
        if len(self.values) == before:
            return node
        self.skips = self.skips or bool(node.orelse)
        leave = ast.If(_compared(self.name, ast.NotEq(), 0), [ast.Break()], [])
        return [node, ast.fix_missing_locations(ast.copy_location(leave, node))]

    visit_While = visit_For

    def visit_Try(self, node):
        """Keep ``return`` where statements come after it."""
        self.skips = self.skips or any(isinstance(each, ast.Return) for each in ast.walk(node))
        return node

    visit_TryStar = visit_With = visit_AsyncWith = visit_Try

    def _other(self, node):
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _other


def _noted(name, number):
    return ast.Assign([ast.Name(name, ast.Store())], ast.Constant(number))


def _compared(name, operator, number):
    return ast.Compare(ast.Name(name, ast.Load()), [operator], [ast.Constant(number)])
