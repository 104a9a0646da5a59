"""Checks that a nest's body is within the supported language, and collects its accesses."""

import ast
import types

from tilewave import units
from tilewave.nest.helpers import MOST_CALLS, helper_of, without_docstring
from tilewave.nest.inner_loops import ALLOWED, extent_of, is_inner, kind_of
from tilewave.nest.language import (
    ALLOWED_EXPRESSIONS,
    ALLOWED_STATEMENTS,
    BINARY,
    COMPARISONS,
    NAMES,
    PRINTING,
    UNARY,
)
from tilewave.nest.names import MISSING, allowed_functions, is_constant, number_in_text
from tilewave.nest.subscript import Parameters, place_of, subscripts_of


class BodyChecker:
    """Walks a body once; refuses by name what is not supported.

    A place is ``(array, offsets, axes)``: one element of an array in each point; axes are its loop indices.

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
    certain : set
        These, and the locals.
    constants : dict
        From the text of each captured constant to its value.
    outside : dict
        From the text of each name that is neither parameter nor local to a node of it.
    called : dict
        The checkers of the functions that it calls, directly or not, by the names that lead there: ``f``, and ``f/g``
        where that calls ``g``. In `constants` theirs are ``f:WEIGHT``.
    """

    path = ""  # of a function that is called: the names that lead to it

    def __init__(self, source, scope, parameters, strict):
        self.source = source
        self.scope = scope
        self.parameters = parameters
        self.strict = strict
        self.reads, self.stores, self.needed, self.always = {}, {}, {}, set()
        self.wholes = {}  # from each place that is read along loops inside the body to the loop indices in their place
        self.certain = frozenset()
        self.constants = {}
        self.outside = {}
        self.called = {}
        self.extents = {}  # (array, dimension) that it computes with
        self._locals = source.local_names

    @property
    def watched(self):
        """(scope, node) of all names from outside, those of functions that are called among them."""
        return [(each.scope, node) for each in (self, *self.called.values()) for node in each.outside.values()]

    def check(self):
        """Check the whole body and return self."""
        assigned = self._block(without_docstring(self.source.tree.body), frozenset(), conditional=False)
        if not self.stores and not self._locals:
            raise self.source.error(
                self.source.tree,
                "the body assigns to no array",
                "A[i, j] = ..., once or more; or a local, d = ..., which reduce= makes a number of",
            )
        self.certain = assigned if assigned is not None else frozenset({*self.stores, *self._locals})
        self.always = {place for place in self.stores if assigned is None or place in assigned}
        return self

    def refuse(self, node, what, allowed):
        return self.source.error(node, f"{what} is not supported", allowed)

    # Statements: each returns the set of locals and places that are certainly assigned, None where
    # a raise ends the path.

    def _block(self, statements, assigned, conditional):
        for statement in statements:
            after = self._statement(statement, frozenset() if assigned is None else assigned, conditional)
            assigned = None if assigned is None else after
        return assigned

    def _statement(self, node, assigned, conditional):
        if isinstance(node, ast.Pass):
            return assigned
        if isinstance(node, ast.Assign):
            return self._assign(node.targets, node.value, assigned)
        if isinstance(node, ast.AnnAssign):
            return self._annotated(node, assigned)
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
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._refuse_print(node.value)
        what = NAMES.get(type(node), f"{type(node).__name__.lower()}")
        raise self.refuse(node, what, ALLOWED_STATEMENTS)

    def _refuse_print(self, call):
        if self.scope.resolve(call.func) is print:
            raise self.refuse(call, "print in a body, whose points may run in any order and on any rank,", PRINTING)

    def _assign(self, targets, value, assigned):
        for target in targets:
            self._shape(target, value)
        self._values(value, assigned, unpacked=all(isinstance(target, ast.Tuple | ast.List) for target in targets))
        for target in targets:
            assigned = self._targets(target, assigned)
        return assigned

    def _annotated(self, node, assigned):
        if node.value is not None:
            return self._assign([node.target], node.value, assigned)
        if not isinstance(node.target, ast.Name):
            raise self.refuse(node, "an annotation of an element", "an annotation of a local scalar (x: float)")
        return assigned

    def _shape(self, target, value):
        """Refuse to unpack what is not written out, in as many parts as there are names."""
        allowed = "as many values as targets, written out (a, b = x, y)"
        if isinstance(target, ast.Tuple | ast.List):
            helper = self._helper(value)
            if (
                helper is not None
                and helper.count == len(target.elts)
                and not any(isinstance(each, ast.Tuple | ast.List | ast.Starred) for each in target.elts)
            ):
                return
            if helper is not None and helper.count:
                raise self.source.error(value, _unequal(helper.count, target), allowed)
            if self._may_come(value):
                return
            if not isinstance(value, ast.Tuple | ast.List):
                raise self.refuse(value, "unpacking this value", allowed)
            if len(target.elts) != len(value.elts) or any(
                isinstance(each, ast.Starred) for each in (*target.elts, *value.elts)
            ):
                raise self.source.error(value, _unequal(len(value.elts), target), allowed)
            for each in zip(target.elts, value.elts, strict=True):
                self._shape(*each)
        elif isinstance(value, ast.Tuple | ast.List):
            what = NAMES[type(value)]
            pair = "a, b = x, y has a name for each"
            raise self.refuse(value, f"{what} as a value", f"{ALLOWED_EXPRESSIONS}; {pair}; to unpack: {allowed}")

    def _values(self, value, assigned, unpacked=False):
        if isinstance(value, ast.Tuple | ast.List):
            for part in value.elts:
                self._values(part, assigned)
        elif unpacked and isinstance(value, ast.Call):
            self._call(value, assigned, unpacked=True)
        else:
            self._expression(value, assigned)

    def _targets(self, target, assigned):
        if not isinstance(target, ast.Tuple | ast.List):
            return self._target(target, assigned)
        for part in target.elts:
            assigned = self._targets(part, assigned)
        return assigned

    def _augmented(self, node, assigned):
        if type(node.op) not in BINARY:
            allowed = " ".join(f"{symbol}=" for symbol in BINARY.values())
            raise self.refuse(node, f"operator {type(node.op).__name__}=", allowed)
        self._expression(node.target, assigned)
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
                raise self.refuse(node, f"assigning to {node.id!r}, {what} of the nest,", "local names")
        return assigned | {node.id}

    def _store(self, node):
        """The place that a target stands for."""
        array, indices = node.value.id, self.parameters.indices
        if array in self.parameters.tables:
            raise self.source.error(
                node,
                f"writing {array!r} at subscripts that are computed is not supported",
                "index + integer constant in the subscripts of an array that is written; as the first of several a "
                "quotient or remainder of the first loop index, A[t // k, i], in time steps",
            )
        place = place_of(self.source, node)
        axes = place[2]
        if [name for name in indices if name in axes] != list(axes):
            raise self.source.error(
                node,
                f"writing {array!r} with its subscripts in the order {', '.join(axes)} is not "
                f"supported: the loops are nested in the order {', '.join(indices)}",
                "an array that is written has its subscripts in the order of the loops",
            )
        self.stores.setdefault(place, node)
        return place

    def _load(self, node, assigned):
        """An element that is read, of an array or a table."""
        if node.value.id in self.parameters.tables or node in self.parameters.wholes:
            for part in subscripts_of(node):
                self._expression(part, assigned)
            if node.value.id in self.parameters.tables:
                return
        place = place_of(self.source, node)
        if along := self.parameters.wholes.get(node):
            self.wholes.setdefault(place, set()).update(place[2][d] for d in along)
            self.extents.update(dict.fromkeys((node.value.id, d) for d in along))
            assigned = assigned - {place}
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
            if type(node.value) not in (bool, int, float, complex):
                raise self.refuse(node, f"a constant of type {type(node.value).__name__}", "int, float, bool, complex")
        elif isinstance(node, ast.Name):
            self._name(node, assigned)
        elif extent := extent_of(node):
            self._extent(node, extent)
        elif isinstance(node, ast.Subscript):
            self._load(node, assigned)
        elif isinstance(node, ast.Attribute):
            self._attribute(node, assigned)
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
        if isinstance(node, ast.BinOp) and type(node.op) not in BINARY:
            raise self.refuse(node, f"operator {type(node.op).__name__}", " ".join(BINARY.values()))
        if isinstance(node, ast.UnaryOp) and type(node.op) not in UNARY:
            raise self.refuse(node, f"operator {type(node.op).__name__}", "- + ~ not")
        for operator in node.ops if isinstance(node, ast.Compare) else ():
            if type(operator) not in COMPARISONS:
                raise self.refuse(node, f"comparison {type(operator).__name__}", "< <= > >= == !=")

    def _extent(self, node, extent):
        array, dimension = extent
        if array not in self.parameters.tables or not 0 <= dimension < self.parameters.ranks[array]:
            raise self.refuse(
                node,
                f"`{self.source.text_of(node)}`",
                "len(T) and T.shape[0] of an array that is only read, along a loop inside the body or as a table; or "
                "a scalar with the extent",
            )
        self.extents[extent] = True

    def _inner(self, node, assigned):
        """A loop inside the body."""
        generator, text = node.args[0], ast.unparse(node.func)
        self.outside.setdefault(text, node.func)
        missing = self.scope.resolve(node.func) is MISSING and not self.strict
        if node.keywords or self._is_of_body(text) or not missing and kind_of(self.scope, node.func) is None:
            raise self.refuse(node, f"calling {text} of a generator" + " with keywords" * bool(node.keywords), ALLOWED)
        for loop in generator.generators:
            target, bounds = loop.target, loop.iter
            if not isinstance(target, ast.Name) or self._is_of_body(target.id) or target.id in assigned:
                raise self.source.error(target, "this is no free name for a loop inside the body", ALLOWED)
            ranged = isinstance(bounds, ast.Call) and not self._is_of_body(ast.unparse(bounds.func))
            if not ranged or self.scope.resolve(bounds.func) is not range or bounds.keywords or len(bounds.args) > 2:
                raise self.refuse(bounds, "looping over this", ALLOWED)
            self.outside.setdefault(ast.unparse(bounds.func), bounds.func)
            for bound in bounds.args:
                self._expression(bound, assigned)
            assigned = assigned | {target.id}
            for condition in loop.ifs:
                self._expression(condition, assigned)
        self._expression(generator.elt, assigned)

    def _name(self, node, assigned):
        if node.id in self.parameters.arrays:
            raise self.source.error(
                node, f"array {node.id!r} is used without a subscript: not supported", self.parameters.example(node.id)
            )
        if node.id in self.parameters.indices or node.id in self.parameters.scalars:
            return
        if node.id not in self._locals and node.id not in self.source.inner_names:
            self._outer_name(node)
        elif node.id not in assigned:
            raise self.source.error(
                node,
                f"local {node.id!r} may be read before it is assigned",
                "locals that every path to their use assigns",
            )

    def _attribute(self, node, assigned):
        owner = node.value
        if node.attr in ("real", "imag") and not self._is_module(owner):
            self._expression(owner, assigned)
            return
        if isinstance(owner, ast.Name) and self.scope.resolve(owner) is not MISSING and not self._is_of_body(owner.id):
            self._outer_name(node)
            return
        what = f"attribute {node.attr!r} of `{self.source.text_of(owner)}`"
        raise self.refuse(node, what, ALLOWED_EXPRESSIONS)

    def _is_module(self, node):
        return (
            isinstance(node, ast.Name | ast.Attribute)
            and not self._is_of_body(ast.unparse(node))
            and isinstance(self.scope.resolve(node), types.ModuleType)
        )

    def _outer_name(self, node):
        text = ast.unparse(node)
        self.outside.setdefault(text, node)
        found = self.scope.resolve(node)
        if is_constant(found):
            self.constants[text] = found
        elif found is not MISSING:
            raise self.refuse(
                node,
                f"{text!r} ({type(found).__name__}) as a value",
                "numbers defined outside the nest: int, float, bool, NumPy scalars of "
                "bool, ints, floats, complex64, complex128; complex",
            )
        elif self.strict:
            raise self.source.error(node, f"name {text!r} is not defined", ALLOWED_EXPRESSIONS)

    def _helper(self, node):
        """The function that a call puts its statements in place of; None where it is none."""
        if not isinstance(node, ast.Call) or self._is_of_body(ast.unparse(node.func)):
            return None
        return helper_of(self.scope.resolve(node.func), self.scope)

    def _may_come(self, node):
        """Return whether a call is of a function that is not defined yet."""
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and not self.strict
            and not self._is_of_body(node.func.id)
            and self.scope.resolve(node.func) is MISSING
        )

    def _is_of_body(self, text):
        return (
            text in self._locals or text in self.parameters.arrays + self.parameters.indices + self.parameters.scalars
        )

    def _inlined(self, node, helper, assigned, unpacked):
        if helper.count and not unpacked:
            raise self.source.error(
                node, f"{helper.name} returns {helper.count} values", "unpacking them: x, y = f(...)"
            )
        for _, value in helper.bind(self.source, node):
            if isinstance(value, ast.expr):
                self._expression(value, assigned)
        path = f"{self.path}/{ast.unparse(node.func)}".lstrip("/")
        if path not in self.called:
            inner = HelperChecker(helper, path, self)
            if len(self.called) > MOST_CALLS:
                raise self.refuse(node, f"a body that calls more than {MOST_CALLS} functions", "fewer")
            self.called[path] = inner
            inner.check()
            self.constants.update(
                (f"{path}:{text}" if ":" not in text else text, value) for text, value in inner.constants.items()
            )

    def _call(self, node, assigned, unpacked=False):
        if is_inner(node):
            self._inner(node, assigned)
            return
        text = ast.unparse(node.func)
        shadowed = self._is_of_body(text)
        self.outside.setdefault(text, node.func)
        found = None if shadowed else self.scope.function(node.func)
        if found is None and (helper := self._helper(node)) is not None:
            self._inlined(node, helper, assigned, unpacked)
            return
        if found is None:
            self._refuse_print(node)
            missing = self.scope.resolve(node.func) is MISSING and not shadowed
            if not missing or self.strict or not isinstance(node.func, ast.Name):
                raise self.refuse(node, f"calling {text}", allowed_functions(text))
        if found is not None and node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self.refuse(node, "a call with keywords or *arguments", "plain arguments")
        if found is not None:
            _, least, most = found
            if len(node.args) < least or (most is not None and len(node.args) > most):
                count = f"{least}" if least == most else f"{least} or more"
                given = units.count(len(node.args), "argument")
                of_array = f"; of an array {text}(A[k] for k in range(n)), or a name for its value, before the loops"
                one = len(node.args) == 1 and self.scope.resolve(node.func) in (max, min)
                raise self.source.error(node, f"{text} given {given}", f"{count} here{of_array * one}")
            if number_in_text(node, self.scope.resolve(node.func)) is not None:
                return
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self._expression(argument, assigned)


class HelperChecker(BodyChecker):
    """Checks a function that a body calls: numbers in, numbers out."""

    def __init__(self, helper, path, caller):
        super().__init__(helper.source, helper.scope, Parameters((), (), (), (), {}, {}, {}), caller.strict)
        self.helper, self.path = helper, path
        self.stack = (*getattr(caller, "stack", ()), helper)
        self.called = caller.called  # of all that are called
        self._locals = {*self._locals, *helper.parameters}
        if helper in getattr(caller, "stack", ()):
            raise self.refuse(helper.source.tree, f"{helper.name}, which calls itself,", "functions that do not")

    def check(self):
        """Check all statements and return self."""
        end = self._block(self.helper.body, frozenset(self.helper.parameters), conditional=False)
        if end is not None:
            raise self.source.error(
                self.source.tree, f"{self.helper.name} may end without a return", "a return on every path"
            )
        return self

    def _statement(self, node, assigned, conditional):
        if not isinstance(node, ast.Return):
            return super()._statement(node, assigned, conditional=True)  # some path has returned
        if node.value is None:
            raise self.refuse(node, "a return without a value", "return x, or return x, y")
        for part in node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]:
            self._expression(part, assigned)
        return None

    def _store(self, node):
        raise self.refuse(node, "assigning to an element in a function that a body calls", "local names, and return")

    def _load(self, node, assigned):
        raise self.refuse(node, "a subscript in a function that a body calls", "elements as arguments: f(A[i, j])")


def _unequal(values, target):
    return f"{units.count(values, 'value')} for {units.count(len(target.elts), 'target')}"
