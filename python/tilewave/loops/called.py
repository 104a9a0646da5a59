"""Functions that loops call with arrays: their statements stand in the place of the call.

Functions of numbers alone are those of bodies of nests (`tilewave.nest.helpers`).
"""

import ast
import copy
import types

from tilewave.loops.endings import without_returns
from tilewave.nest.helpers import without_docstring
from tilewave.nest.names import Scope
from tilewave.nest.source import Source
from tilewave.nest.walks import Put, assigned, elements_in, located, names_in, names_stored, nodes_in

#: Calls that are replaced, those in functions that are called counted each time.
MOST_CALLS = 200

#: Nodes of one expression that stands for a call: values that are used often make it grow.
MOST_NODES = 400

#: What an index may be made of in a row that is given, ``f(A[i - 1])``.
PLAIN = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context)


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
        self.before = None  # the statements that go before the one at hand; None: where none can

    def visit_For(self, node):
        """Replace calls in loops alone."""
        node.iter, before = self._parts(node.iter)
        outer, self.inside = self.inside, True
        node.body, node.orelse = self.statements(node.body), self.statements(node.orelse)
        self.inside = outer
        return [*before, node]

    def visit_While(self, node):
        """Replace calls in the loop; those of its condition come again in each turn."""
        outer, self.inside = self.inside, True
        node = self.generic_visit(node)
        self.inside = outer
        return node

    def visit_If(self, node):
        """Replace calls in a condition and in what is under it."""
        node.test, before = self._parts(node.test)
        node.body, node.orelse = self.statements(node.body), self.statements(node.orelse)
        return [*before, node]

    def visit_Call(self, node):
        """Replace a call in an expression: the statements of its function go before."""
        node = self.generic_visit(node)
        try:
            body, names = self._opened(node)
            try:
                return located(_expression(body, names), node)
            except _No:
                if self.before is None or any(isinstance(each.ctx, ast.Store) for each in elements_in(*body)):
                    raise
                statements, value = self._statements(body, names)
            if value is None:
                return node
            self.before += [located(each, node) for each in statements]
            return located(value, node)
        except _No:
            return node

    def visit_BoolOp(self, node):
        """Replace calls in conditions that are joined: of the first alone is it known that it is computed."""
        first = self.visit(node.values[0])
        return ast.copy_location(ast.BoolOp(node.op, [first, *self._without_statements(node.values[1:])]), node)

    def visit_IfExp(self, node):
        """Replace calls in a choice, of which one value is computed."""
        test = self.visit(node.test)
        return ast.copy_location(ast.IfExp(test, *self._without_statements([node.body, node.orelse])), node)

    def _apart(self, node):
        return self._without_statements([node], self.generic_visit)[0]

    visit_Lambda = visit_GeneratorExp = visit_ListComp = _apart

    def visit_Compare(self, node):
        """Replace calls in a comparison; in a chain of them the later ones may not be computed."""
        return self._apart(node) if len(node.ops) > 1 else self.generic_visit(node)

    def visit_Return(self, node):
        """Replace calls in what is returned."""
        if node.value is None:
            return node
        node.value, before = self._parts(node.value)
        return [*before, node]

    def visit_Expr(self, node):
        """Replace a call that is a statement."""
        return self._statement(node, lambda value: [])

    def visit_Assign(self, node):
        """Replace a call whose value is assigned."""

        def assigned(value):
            if value is None:
                raise _No
            new = copy.copy(node)
            new.value = value
            return [new]

        return self._statement(node, assigned)

    def visit_AugAssign(self, node):
        """Replace calls in what is added."""
        node.value, before = self._parts(node.value)
        return [*before, node]

    def statements(self, statements):
        """Visit statements, each of which may become several."""
        found, outer, self.before = [], self.before, None  # those of a function that is called stay among its own
        for each in statements:
            new = self.visit(each)
            found += new if isinstance(new, list) else [new]
        self.before = outer
        return found

    def _parts(self, expression):
        """(an expression with calls replaced, the statements that go before)."""
        outer, self.before = self.before, [] if self.inside else None
        try:
            return self.visit(expression), self.before or []
        finally:
            self.before = outer

    def _without_statements(self, expressions, visit=None):
        outer, self.before = self.before, None
        try:
            return [(visit or self.visit)(each) for each in expressions]
        finally:
            self.before = outer

    def _statement(self, node, ending):
        if isinstance(node.value, ast.Call):
            call, outer = copy.deepcopy(node.value), self.before
            self.before = [] if self.inside else None
            try:
                call.args = [self.visit(each) for each in call.args]
                first = self.before or []
                body, names = self._opened(call)
                statements = []
                try:
                    value = _expression(body, names)
                except _No:
                    statements, value = self._statements(body, names)
                return [*first, *(located(each, node) for each in (*statements, *ending(value)))]
            except _No:
                pass
            finally:
                self.before = outer
        node.value, before = self._parts(node.value)
        return [*before, node]

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
        defaults = dict(zip(reversed(names), reversed(given.defaults), strict=False))
        arguments = {**defaults, **dict(zip(names, call.args, strict=False)), **named}
        if len(call.args) > len(names) or {*arguments} != {*names}:
            raise _No
        left = {*names[len(call.args) :]} - {*named}
        if any(isinstance(each, ast.Name | ast.Call) for name in left for each in ast.walk(arguments[name])):
            raise _No
        body = without_docstring(tree.body)
        arrays = {each.value.id for each in elements_in(*body) if isinstance(each.value, ast.Name)}
        loops = any(isinstance(each, ast.For | ast.While) for each in nodes_in(*body))
        if not (arrays & {*names} or loops) or not all(_is_array(arguments[n]) for n in arrays & {*names}):
            raise _No
        local = names_stored(*body)
        outside = names_in(*body) - local - {*names}
        self.calls += 1
        if outside & self.local_names or local & arrays or self.calls > MOST_CALLS:
            raise _No
        return self.statements([copy.deepcopy(each) for each in body]), arguments

    def _statements(self, body, arguments):
        """(statements with names of their own, the value that is returned at their end)."""
        if any(isinstance(each, ast.Yield | ast.YieldFrom | ast.FunctionDef) for each in nodes_in(*body)):
            raise _No
        value = None
        if isinstance(body[-1], ast.Return) and not any(isinstance(each, ast.Return) for each in nodes_in(*body[:-1])):
            body, value = body[:-1], body[-1].value
        elif any(isinstance(each, ast.Return) for each in nodes_in(*body)):
            body, value = Returned(body).statements, ast.Name(VALUE, ast.Load())
        stored = names_stored(*body)
        new = {name: f"{name}_{self.calls}" for name in stored | {*arguments}}
        if {*new.values()} & self.local_names:
            raise _No
        first, at = [], {}
        for name, each in arguments.items():
            if isinstance(each, ast.Subscript) and not _is_plain(each.slice) and _is_array(each):
                at[name] = f"{name}_at_{self.calls}"
                first.append(ast.Assign([ast.Name(at[name], ast.Store())], each.slice))
                arguments[name] = ast.Subscript(each.value, ast.Name(at[name], ast.Load()), ast.Load())
        plain = {n: each for n, each in arguments.items() if n not in stored and _is_array(each)}
        first += [ast.Assign([ast.Name(new[n], ast.Store())], each) for n, each in arguments.items() if n not in plain]
        self.local_names |= {*at.values()}
        self.local_names |= {*new.values()} - {new[name] for name in plain}
        names = {name: ast.Name(other, ast.Load()) for name, other in new.items()} | plain
        replaced = Put(names)
        return [*first, *map(replaced.visit, body)], value and replaced.visit(value)


def _is_array(argument):
    """Return whether an argument is a name, or a row ``A[i - 1]``."""
    if isinstance(argument, ast.Subscript) and isinstance(argument.value, ast.Name):
        one = not isinstance(argument.slice, ast.Tuple)
        return _is_plain(argument.slice) or (one and not isinstance(argument.slice, ast.Slice))
    return isinstance(argument, ast.Name)


def _is_plain(index):
    return all(isinstance(each, PLAIN) for each in ast.walk(index))


#: What a function has returned, and by which ``return`` of a loop, before these names get numbers.
VALUE, SITE = "returned", "left_by"


class Returned:
    """Statements without ``return``: the value gets a name, and what follows belongs to the other way.

    Parameters
    ----------
    body : list of ast.stmt
        Of a function, which returns a value in the end.

    Attributes
    ----------
    statements : list of ast.stmt
    """

    def __init__(self, body):
        self._made = self._sites = 0
        self.statements = self._block(body)

    def _block(self, statements):
        found = []
        for k, node in enumerate(statements):
            self._made += 1
            if self._made > MOST_NODES:
                raise _No
            rest = statements[k + 1 :]
            if isinstance(node, ast.Return):
                if node.value is None:
                    raise _No
                return [*found, ast.Assign([ast.Name(VALUE, ast.Store())], node.value)]
            if not any(isinstance(each, ast.Return) for each in ast.walk(node)):
                found.append(node)
            elif isinstance(node, ast.If):
                parts = [self._block([*part, *rest]) for part in (node.body, node.orelse)]
                return [*found, ast.If(node.test, *parts)]
            else:
                self._sites += 1
                loop = isinstance(node, ast.For | ast.While) and without_returns(node, f"{SITE}_{self._sites}")
                if not loop:
                    raise _No
                return [*found, *self._block([*loop, *rest])]
        raise _No


def _expression(statements, names):
    """The value that statements return, as one expression of `names`; `_No` where it is none."""
    for k, node in enumerate(statements):
        if isinstance(node, ast.Return) and node.value is not None:
            return _put(names, node.value)
        if isinstance(node, ast.If):
            rest = statements[k + 1 :]
            parts = [_expression([*part, *rest], names) for part in (node.body, node.orelse)]
            return ast.IfExp(_put(names, node.test), *parts)
        if (name := assigned(node)) is None:
            raise _No
        names = {**names, name: _put(names, node.value)}
    raise _No


def _put(names, value):
    """A value with expressions in place of names; `_No` where it gets long."""
    found = Put(names).visit(copy.deepcopy(value))
    if len(nodes_in(found)) > MOST_NODES:
        raise _No
    return found
