"""This file has what a body may consist of, and what messages call the rest of Python."""

import ast
import copy

#: Operators, and their symbols.
BINARY = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}

#: What a body may consist of.
ALLOWED_STATEMENTS = (
    "assignments to array elements and to local scalars, also of several at once (a, b = b, a; a = b = x), augmented "
    "and annotated assignments, if/elif/else, assert, raise inside an if, pass; for a loop max, min or sum of a "
    "generator, s = sum(x[k] for k in range(n)); with @tw.loops a function that has loops is called by itself, "
    "x = f(A, i)"
)
ALLOWED_EXPRESSIONS = (
    f"numbers, loop indices, scalars, array elements, {' '.join(BINARY.values())} ~, comparisons, and/or/not, "
    "conditional expressions, calls of supported functions"
)

#: What to do in place of printing.
PRINTING = (
    "an array that keeps what is to be seen (S[i, j] = x), printed after the run; or raise "
    'SomeError("constant message") inside an if, whose error names the point'
)

#: Readable names of what Python has and a body may not use.
NAMES = {
    ast.For: "a loop inside a body",
    ast.While: "a loop inside a body",
    ast.AsyncFor: "a loop inside a body",
    ast.Return: "return",
    ast.FunctionDef: "a function inside a body",
    ast.AsyncFunctionDef: "a function inside a body",
    ast.ClassDef: "a class inside a body",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Delete: "del",
    ast.With: "with",
    ast.Try: "try",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Match: "match",
    ast.Expr: "an expression whose value is not used",
    ast.NamedExpr: "an assignment expression (:=)",
    ast.Lambda: "a lambda",
    ast.List: "a list",
    ast.Tuple: "a tuple",
    ast.Dict: "a dict",
    ast.Set: "a set",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a generator expression",
    ast.JoinedStr: "an f-string",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Starred: "a starred expression",
}


class _Members(ast.NodeTransformer):
    def visit_Compare(self, node):
        """Compare with each number in turn."""
        node = self.generic_visit(node)
        if not _is_member(node):
            return node
        equal = [ast.Compare(copy.deepcopy(node.left), [ast.Eq()], [each]) for each in node.comparators[0].elts]
        new = ast.BoolOp(ast.Or(), equal) if len(equal) > 1 else equal[0]
        new = ast.UnaryOp(ast.Not(), new) if isinstance(node.ops[0], ast.NotIn) else new
        for each in ast.walk(new):
            if not hasattr(each, "lineno") and "lineno" in each._attributes:
                ast.copy_location(each, node)
        return new


def _is_member(node):
    """Return whether a node is ``x in (1, 2)``, with numbers."""
    if not isinstance(node, ast.Compare) or len(node.ops) > 1 or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return False
    among = node.comparators[0]
    numbers = isinstance(among, ast.Tuple | ast.List | ast.Set) and among.elts
    return bool(numbers) and all(
        isinstance(each, ast.Constant) and type(each.value) in (bool, int, float) for each in numbers
    )


def without_members(tree):
    """A tree with ``x == 1 or x == 2`` in place of ``x in (1, 2)``, and the tree itself where it has none."""
    return _Members().visit(copy.deepcopy(tree)) if any(map(_is_member, ast.walk(tree))) else tree
