"""Loops that only add to a name: ``s = 0.0; for k in range(n): s += A[i, k] * x[k]`` is a sum inside the body."""

import ast
import builtins
import copy

from tilewave.loops.liveness import names_read, needs
from tilewave.nest.region import is_range
from tilewave.nest.walks import Put, assigned, names_in


def accumulated(node, scope, local_names, live):
    """A loop with sums, as nests have them in their bodies, in place of loops within it that only add.

    The terms are added in the order of the loop, and so are those of a sum.

    Parameters
    ----------
    node : ast.For or ast.While
        It may be changed.
    scope : Scope
    local_names : set of str
        Of the function: an index inside a body is none of them.
    live : set of str
        Names that are needed behind the loop.
    """
    return _Accumulated(scope, local_names, live).visit(node) if scope.lookup("sum") is builtins.sum else node


class _Accumulated(ast.NodeTransformer):
    def __init__(self, scope, local_names, live):
        self.scope, self.local_names, self.live = scope, local_names, live

    def visit_For(self, node):
        """Replace loops in the body."""
        outer, body = self.live, []
        for k, each in enumerate(node.body):
            self.live = outer | needs(node.body[k + 1 :])[0] | needs(node.body)[0]
            body.append(self.visit(each))
            if not isinstance(each, ast.For) or not is_range(self.scope, each.iter):
                continue
            found = _Adding(body[-1], self.live)
            begin = self._begin(body[:-1], found) if found.total and found.index not in self.local_names else None
            if begin is not None:
                body[-1] = found.statement(body[begin].value)
                del body[begin]
        self.live, node.body = outer, body
        return node

    visit_While = visit_For

    @staticmethod
    def _begin(statements, found):
        """Where a total begins as 0, with nothing behind that needs it."""
        for place in reversed(range(len(statements))):
            node = statements[place]
            if assigned(node) == found.total:
                zero = isinstance(node.value, ast.Constant) and type(node.value.value) in (int, float)
                return place if zero and node.value.value == 0 else None
            if found.total in names_in(node):
                return None
        return None


class _Adding:
    """What a loop adds, and to which name; no total where it does more.

    Parameters
    ----------
    loop : ast.For
    outer : set of str
        Names that are needed behind it or in its next turn.
    """

    def __init__(self, loop, outer):
        self.loop, self.total, names = loop, None, {}
        *before, last = loop.body
        if loop.orelse or not isinstance(loop.target, ast.Name) or len(loop.iter.args) > 2:
            return
        for each in before:
            if (name := assigned(each)) is None or name in outer:
                return
            names[name] = Put(names).visit(copy.deepcopy(each.value))
        tests = []
        if isinstance(last, ast.If) and len(last.body) == 1 and not last.orelse:
            tests, (last,) = [Put(names).visit(copy.deepcopy(last.test))], last.body
        adds = isinstance(last, ast.AugAssign) and isinstance(last.op, ast.Add) and isinstance(last.target, ast.Name)
        if not adds or loop.target.id in outer:
            return
        self.term, self.tests = Put(names).visit(copy.deepcopy(last.value)), tests
        read = {name for each in (self.term, *tests, *loop.iter.args) for name in names_read(each)}
        if not read & {last.target.id, *names} and last.target.id != loop.target.id and last.target.id not in names:
            self.total, self.index = last.target.id, f"{loop.target.id}_{last.target.id}"

    def statement(self, zero):
        """``total = sum(zero + term for k in range(...))``: of floats the zero says that they are."""
        term = ast.BinOp(zero, ast.Add(), self.term) if isinstance(zero.value, float) else self.term
        turned = Put({self.loop.target.id: ast.Name(self.index, ast.Load())})
        tests = [turned.visit(each) for each in self.tests]
        turns = ast.comprehension(ast.Name(self.index, ast.Store()), self.loop.iter, tests, 0)
        terms = ast.Call(ast.Name("sum", ast.Load()), [ast.GeneratorExp(turned.visit(term), [turns])], [])
        new = ast.copy_location(ast.Assign([ast.Name(self.total, ast.Store())], terms), self.loop)
        return ast.fix_missing_locations(new)
