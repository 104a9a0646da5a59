"""Functions that loops call with arrays: their statements stand in the place of the call.

Functions of numbers alone are those of bodies of nests (`tilewave.nest.helpers`).
"""

import ast
import copy
import types

from tilewave.nest.helpers import without_docstring
from tilewave.nest.names import Scope
from tilewave.nest.source import Source
from tilewave.nest.walks import Put, assigned, elements_in, located, names_in, names_stored, nodes_in

#: Calls that are replaced, those in functions that are called counted each time.
MOST_CALLS = 200


class _No(Exception):
    """Says that a call stays as it is."""


class Called(ast.NodeTransformer):
    """Puts statements of functions in the place of their calls.

    Parameters
    ----------
    function : function
        The one with the loops.
    local_names : set of str
        Its local names, to which new ones are added.
    """

    def __init__(self, function, local_names):
        self.function, self.scope, self.local_names = function, Scope(function), local_names
        self.calls, self.inside = 0, False

    def visit_For(self, node):
        """Replace calls in loops alone."""
        outer, self.inside = self.inside, True
        node = self.generic_visit(node)
        self.inside = outer
        return node

    visit_While = visit_For

    def visit_Call(self, node):
        """Replace a call in an expression."""
        node = self.generic_visit(node)
        try:
            body, names = self._opened(node)
            return located(_expression(body, names), node)
        except _No:
            return node

    def visit_Expr(self, node):
        """Replace a call that is a statement."""
        return self._statement(node, node.value, lambda value: [])

    def visit_Assign(self, node):
        """Replace a call whose value is assigned."""

        def assigned(value):
            if value is None:
                raise _No
            new = copy.copy(node)
            new.value = value
            return [new]

        return self._statement(node, node.value, assigned)

    def _statement(self, node, call, ending):
        if isinstance(call, ast.Call):
            call = copy.copy(call)
            call.args = [self.visit(each) for each in call.args]
            try:
                body, names = self._opened(call)
                with_names = []
                try:
                    value = _expression(body, names)
                except _No:
                    with_names, value = self._statements(body, names)
                return [located(each, node) for each in (*with_names, *ending(value))]
            except _No:
                pass
        return self.generic_visit(node)

    def _opened(self, call):
        """(statements of the function that is called, from its parameters to arguments)."""
        found = self.scope.resolve(call.func)
        found = getattr(found, "py_func", getattr(found, "function", found))
        if not self.inside or not isinstance(found, types.FunctionType) or not self.scope.is_of_module(found):
            raise _No
        tree = Source(found, "@tw.loops").tree
        given, names = tree.args, [argument.arg for argument in tree.args.args]
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or found.__closure__:
            raise _No
        named = {each.arg: each.value for each in call.keywords}
        arguments = {**dict(zip(names, call.args, strict=False)), **named}
        if len(call.args) + len(named) != len(names) or {*arguments} != {*names}:
            raise _No
        body = without_docstring(tree.body)
        arrays = {each.value.id for each in elements_in(*body) if isinstance(each.value, ast.Name)}
        if not arrays & {*names} or not all(isinstance(arguments[n], ast.Name) for n in arrays & {*names}):
            raise _No
        local = names_stored(*body)
        outside = names_in(*body) - local - {*names}
        self.calls += 1
        if outside & self.local_names or local & arrays or self.calls > MOST_CALLS:
            raise _No
        return [self.visit(copy.deepcopy(each)) for each in body], arguments

    def _statements(self, body, arguments):
        """(statements with names of their own, the value that is returned at their end)."""
        body, value = (body[:-1], body[-1].value) if isinstance(body[-1], ast.Return) else (body, None)
        if any(isinstance(each, ast.Return | ast.Yield | ast.FunctionDef) for each in nodes_in(*body)):
            raise _No
        stored = names_stored(*body)
        new = {name: f"{name}_{self.calls}" for name in stored | {*arguments}}
        if {*new.values()} & self.local_names:
            raise _No
        plain = {n: each for n, each in arguments.items() if n not in stored and isinstance(each, ast.Name)}
        first = [ast.Assign([ast.Name(new[n], ast.Store())], each) for n, each in arguments.items() if n not in plain]
        self.local_names |= {*new.values()} - {new[name] for name in plain}
        names = {name: ast.Name(other, ast.Load()) for name, other in new.items()} | plain
        replaced = Put(names)
        return [*first, *map(replaced.visit, body)], value and replaced.visit(value)


def _expression(statements, names):
    """The value that statements return, as one expression of `names`; `_No` where it is none."""
    for k, node in enumerate(statements):
        if isinstance(node, ast.Return) and node.value is not None:
            return Put(names).visit(copy.deepcopy(node.value))
        if isinstance(node, ast.If):
            rest = statements[k + 1 :]
            parts = [_expression([*part, *rest], names) for part in (node.body, node.orelse)]
            return ast.IfExp(Put(names).visit(copy.deepcopy(node.test)), *parts)
        if (name := assigned(node)) is None:
            raise _No
        names = {**names, name: Put(names).visit(copy.deepcopy(node.value))}
    raise _No
