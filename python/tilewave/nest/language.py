"""This file has what a body may consist of, and what messages call the rest of Python."""

import ast

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
    "generator, s = sum(x[k] for k in range(n))"
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
