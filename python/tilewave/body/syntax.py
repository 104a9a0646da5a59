"""Checks that a nest's body is within the supported language, and collects its accesses."""

import ast

from .names import ALLOWED_FUNCTIONS, MISSING, is_constant
from .subscript import local_names, read_access, subscripts_of

BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
UNARY = (ast.USub, ast.UAdd, ast.Not)

ALLOWED_STATEMENTS = (
    "assignments to array elements and to local scalars, augmented assignments, "
    "if/elif/else, assert, raise inside an if, pass"
)
ALLOWED_EXPRESSIONS = (
    "numbers, loop indices, scalars, array elements, + - * / // % **, comparisons, and/or/not, "
    "conditional expressions, calls of supported functions"
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
    ast.AnnAssign: "an annotated assignment",
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


class BodyChecker:
    """Walks a body once; refuses by name what is not supported.

    A place is ``(array, offsets)``: one element of an array in each point.

    Attributes
    ----------
    reads : dict
        From each place that is read to the first node that reads it.
    stores : dict
        From each place that is assigned to the first node that assigns it.
    needed : dict
        From each place whose value from before the point may be needed to the first node that
        reads it while some path has not assigned it.
    always : set
        The places that every path which does not raise assigns.
    constants : dict
        From the text of each captured constant to its value.
    outside : dict
        From the text of each name that is neither parameter nor local to a node of it.
    """

    def __init__(self, source, scope, parameters, strict):
        self.source = source
        self.scope = scope
        self.parameters = parameters
        self.strict = strict
        self.reads, self.stores, self.needed, self.always = {}, {}, {}, set()
        self.constants = {}
        self.outside = {}
        self._locals = local_names(source)

    def check(self):
        """Check the whole body and return self."""
        body = list(self.source.tree.body)
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) \
                and isinstance(first.value.value, str):
            body = body[1:]
        assigned = self._block(body, frozenset(), conditional=False)
        if not self.stores:
            raise self.source.error(
                self.source.tree, "the body assigns to no array", "A[i, j] = ..., once or more",
            )
        self.always = {place for place in self.stores if assigned is None or place in assigned}
        return self

    def refuse(self, node, what, allowed):
        return self.source.error(node, f"{what} is not supported", allowed)

    # Statements: each returns the set of locals and places that are certainly assigned, None where
    # a raise ends the path.

    def _block(self, statements, assigned, conditional):
        for statement in statements:
            after = self._statement(
                statement, frozenset() if assigned is None else assigned, conditional)
            assigned = None if assigned is None else after
        return assigned

    def _statement(self, node, assigned, conditional):
        if isinstance(node, ast.Pass):
            return assigned
        if isinstance(node, ast.Assign):
            return self._assign(node, assigned)
        if isinstance(node, ast.AugAssign):
            return self._augmented(node, assigned)
        if isinstance(node, ast.If):
            return self._if(node, assigned)
        if isinstance(node, ast.Assert):
            self._expression(node.test, assigned)
            self._message(node.msg)
            return assigned
        if isinstance(node, ast.Raise):
            self._raise(node, conditional)
            return None
        what = NAMES.get(type(node), f"{type(node).__name__.lower()}")
        raise self.refuse(node, what, ALLOWED_STATEMENTS)

    def _assign(self, node, assigned):
        if len(node.targets) > 1:
            raise self.refuse(node, "a chained assignment (x = y = ...)", ALLOWED_STATEMENTS)
        self._expression(node.value, assigned)
        return self._target(node.targets[0], assigned)

    def _augmented(self, node, assigned):
        if not isinstance(node.op, BINARY):
            raise self.refuse(
                node, f"operator {type(node.op).__name__}=", "+= -= *= /= //= %= **="
            )
        self._expression(_as_load(node.target), assigned)
        self._expression(node.value, assigned)
        return self._target(node.target, assigned)

    def _target(self, node, assigned):
        if isinstance(node, ast.Subscript):
            return assigned | {self._store(node)}
        if not isinstance(node, ast.Name):
            raise self.refuse(node, "this assignment target", ALLOWED_STATEMENTS)
        for names, what in (
            (self.parameters.arrays, "an array"),
            (self.parameters.indices, "a loop index"),
            (self.parameters.scalars, "a scalar parameter"),
        ):
            if node.id in names:
                raise self.refuse(
                    node, f"assigning to {node.id!r}, {what} of the nest,", "local names of its own"
                )
        return assigned | {node.id}

    def _store(self, node):
        """The place that a target stands for."""
        array, indices = node.value.id, self.parameters.indices
        if array in self.parameters.tables:
            raise self.source.error(
                node, f"writing {array!r} at subscripts that are computed is not supported",
                "index + integer constant in the subscripts of an array that is written",
            )
        axes, offsets = read_access(self.source, node)
        if [name for name in indices if name in axes] != list(axes):
            raise self.source.error(
                node, f"writing {array!r} with its subscripts in the order {', '.join(axes)} is not "
                f"supported: the loops are nested in the order {', '.join(indices)}",
                "an array that is written has its subscripts in the order of the loops",
            )
        self.stores.setdefault((array, offsets), node)
        return array, offsets

    def _load(self, node, assigned):
        """An element that is read, of an array or a table."""
        if node.value.id in self.parameters.tables:
            for part in subscripts_of(node):
                self._expression(part, assigned)
            return
        place = node.value.id, read_access(self.source, node)[1]
        self.reads.setdefault(place, node)
        if place not in assigned:
            self.needed.setdefault(place, node)

    def _if(self, node, assigned):
        self._expression(node.test, assigned)
        then = self._block(node.body, assigned, conditional=True)
        other = self._block(node.orelse, assigned, conditional=True)
        if then is None or other is None:
            return other if then is None else then
        return then & other

    def _raise(self, node, conditional):
        allowed = 'raise SomeError("constant message") inside an if'
        if not conditional:
            raise self.source.error(node, "a raise that every point meets", allowed)
        call = node.exc
        if node.cause is not None or call is None:
            raise self.refuse(node, "this form of raise", allowed)
        kind = call.func if isinstance(call, ast.Call) else call
        self.outside.setdefault(ast.unparse(kind), kind)
        missing = self.scope.resolve(kind) is MISSING and not self.strict
        if not missing and self.scope.exception(kind) is None:
            raise self.source.error(kind, "this is no exception class", allowed)
        if isinstance(call, ast.Call):
            if call.keywords or len(call.args) > 1:
                raise self.refuse(call, "an exception with several arguments", allowed)
            self._message(call.args[0] if call.args else None)

    def _message(self, node):
        text = node is None or isinstance(node, ast.Constant) and isinstance(node.value, str)
        if not text:
            raise self.refuse(node, "a message that is computed", "a constant string")

    # Expressions.

    def _expression(self, node, assigned):
        if isinstance(node, ast.Constant):
            if type(node.value) not in (bool, int, float):
                raise self.refuse(
                    node, f"a constant of type {type(node.value).__name__}", "int, float, bool"
                )
        elif isinstance(node, ast.Name):
            self._name(node, assigned)
        elif isinstance(node, ast.Subscript):
            self._load(node, assigned)
        elif isinstance(node, ast.Attribute):
            self._attribute(node)
        elif isinstance(node, ast.Call):
            self._call(node, assigned)
        elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
            self._operators(node)
            self._children(node, assigned)
        elif isinstance(node, ast.BoolOp | ast.IfExp):
            self._children(node, assigned)
        else:
            what = NAMES.get(type(node), f"{type(node).__name__.lower()}")
            raise self.refuse(node, what, ALLOWED_EXPRESSIONS)

    def _children(self, node, assigned):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._expression(child, assigned)

    def _operators(self, node):
        if isinstance(node, ast.BinOp) and not isinstance(node.op, BINARY):
            raise self.refuse(node, f"operator {type(node.op).__name__}", "+ - * / // % **")
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, UNARY):
            raise self.refuse(node, f"operator {type(node.op).__name__}", "- + not")
        for operator in node.ops if isinstance(node, ast.Compare) else ():
            if not isinstance(operator, COMPARISONS):
                raise self.refuse(
                    node, f"comparison {type(operator).__name__}", "< <= > >= == !="
                )

    def _name(self, node, assigned):
        if node.id in self.parameters.arrays:
            raise self.source.error(
                node, f"array {node.id!r} is used without a subscript: not supported",
                self.parameters.example(node.id),
            )
        if node.id in self.parameters.indices or node.id in self.parameters.scalars:
            return
        if node.id not in self._locals:
            self._outer_name(node)
        elif node.id not in assigned:
            raise self.source.error(
                node, f"local {node.id!r} may be read before it is assigned",
                "locals that every path to their use assigns",
            )

    def _attribute(self, node):
        owner = node.value
        known = self.parameters.arrays + self.parameters.indices + self.parameters.scalars
        if isinstance(owner, ast.Name) and self.scope.resolve(owner) is not MISSING \
                and owner.id not in known and owner.id not in self._locals:
            self._outer_name(node)
            return
        what = f"attribute {node.attr!r} of `{self.source.text_of(owner)}`"
        raise self.refuse(node, what, ALLOWED_EXPRESSIONS)

    def _outer_name(self, node):
        text = ast.unparse(node)
        self.outside.setdefault(text, node)
        found = self.scope.resolve(node)
        if is_constant(found):
            self.constants[text] = found
        elif found is not MISSING:
            raise self.refuse(
                node, f"{text!r} ({type(found).__name__}) as a value",
                "numbers defined outside the nest: int, float, bool, NumPy scalars of "
                "bool, int32, int64, float32, float64",
            )
        elif self.strict:
            raise self.source.error(node, f"name {text!r} is not defined", ALLOWED_EXPRESSIONS)

    def _call(self, node, assigned):
        text = ast.unparse(node.func)
        known = self.parameters.arrays + self.parameters.indices + self.parameters.scalars
        shadowed = text in self._locals or text in known
        self.outside.setdefault(text, node.func)
        found = None if shadowed else self.scope.function(node.func)
        if found is None:
            missing = self.scope.resolve(node.func) is MISSING and not shadowed
            if not missing or self.strict or not isinstance(node.func, ast.Name):
                raise self.refuse(node, f"calling {text}", ALLOWED_FUNCTIONS)
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self.refuse(node, "a call with keywords or *arguments", "plain arguments")
        if found is not None:
            _, least, most = found
            if len(node.args) < least or (most is not None and len(node.args) > most):
                count = f"{least}" if least == most else f"{least} or more"
                raise self.source.error(
                    node, f"{text} given {len(node.args)} argument(s)", f"{count} here"
                )
        for argument in node.args:
            self._expression(argument, assigned)


def _as_load(node):
    """The same place, read instead of written."""
    if isinstance(node, ast.Name):
        return ast.copy_location(ast.Name(node.id, ast.Load()), node)
    return node
