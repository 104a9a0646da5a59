"""Numbers from outside a body that its kernel is given when it runs, in place of being compiled for each of their
values.
"""

import ast
import hashlib
import math
from dataclasses import dataclass

import numpy as np

from tilewave.nest.inner_loops import is_element, kind_of

#: Operators whose results are the same, bit for bit, whether a number is known when they are compiled or not.
OPERATORS = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}
#: Functions of several arguments for which that holds, too.
FUNCTIONS = ("min", "max", "minimum", "maximum", "fmin", "fmax")
#: Ints beyond may not fit where others do: they are compiled in.
MOST_INT = 2**31 - 1


class Captured:
    """Hold what of a body is computed from outside numbers only, as far as it may be given at run time.

    A number decides code where it is an exponent, a condition, or a divisor that makes a multiplication; there it stays
    compiled in.

    Parameters
    ----------
    statements : list of ast.stmt
    constants : dict
        Captured numbers by their text.

    Attributes
    ----------
    nodes : dict
        From the id of an expression's node to its name among the scalars of the kernel.
    values : dict
        From that name to the value.
    compiled : set
        Texts of the constants whose values are compiled in.
    """

    def __init__(self, statements, constants):
        self._constants = constants
        self.nodes, self.values, self.compiled = {}, {}, set()
        inside = set()
        if not constants:
            return
        for statement in statements:
            for node in _outside_subscripts(statement):
                for part, value in self._given(node):
                    name = f"({ast.unparse(part)})"  # no name of a scalar
                    self.nodes[id(part)], self.values[name] = name, value
                    inside.update(id(each) for each in ast.walk(part))
        for statement in statements:
            for node in ast.walk(statement):
                if (
                    isinstance(node, ast.Name | ast.Attribute)
                    and id(node) not in inside
                    and (text := ast.unparse(node)) in constants
                ):
                    self.compiled.add(text)

    def _given(self, node):
        """The operands of a node that may be given at run time, with their values."""
        if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
            sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
            for part, other in (sides, sides[::-1]):
                if self._number(other) is None:
                    yield from self._suiting(part, type(node.op), divides=part is sides[1], other=other)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = node.left, node.comparators[0]
            for part, other in (sides, sides[::-1]):
                if self._number(other) is None:
                    yield from self._suiting(part)
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).rpartition(".")[2] in FUNCTIONS
            and any(self._number(argument) is None for argument in node.args)
        ):
            for part in node.args:
                yield from self._suiting(part)

    def _suiting(self, part, operator=None, divides=False, other=None):
        found = self._number(part)
        if found is None or not found[1]:
            return
        value = found[0]
        if isinstance(value, float | np.floating):  # np.float64 is a float, too
            if not (operator is ast.Div and divides and math.frexp(abs(value))[0] == 0.5):
                yield part, value
        elif type(value) is int and operator in (ast.Add, ast.Sub, ast.Mult) and abs(value) <= MOST_INT:
            elements = any(is_element(each) for each in ast.walk(other))
            shifts = operator is ast.Mult and abs(value) & (abs(value) - 1) == 0
            if elements and not shifts:
                yield part, value

    def _number(self, node):
        """(value, whether an outside number is in it) of an expression of numbers only; else None."""
        if isinstance(node, ast.Constant):
            return (node.value, False) if type(node.value) in (int, float) else None
        if isinstance(node, ast.Name | ast.Attribute):
            value = self._constants.get(ast.unparse(node))
            return None if value is None or isinstance(value, bool | np.bool_) else (value, True)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            operand = self._number(node.operand)
            return operand and (-operand[0] if isinstance(node.op, ast.USub) else operand[0], operand[1])
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            left, right = self._number(node.left), self._number(node.right)
            if left and right:
                try:
                    with np.errstate(all="ignore"):
                        return OPERATORS[type(node.op)](left[0], right[0]), left[1] or right[1]
                except ArithmeticError:  # the body raises it in each point
                    return None
        return None


def _outside_subscripts(node):
    """A node and those below it; numbers in subscripts decide which elements a point touches."""
    yield node
    if not isinstance(node, ast.Subscript):
        for child in ast.iter_child_nodes(node):
            yield from _outside_subscripts(child)


@dataclass(frozen=True)
class Outside:
    """The objects that a body's outside names stood for, and what follows from them."""

    watched: list  # (scope, node, object)
    constants: dict
    signature: str
    captured: Captured
    code_signature: str
    lines: list


def found_by(body):
    """(scope, node, object) of what a checked body uses from outside, as it is now."""
    return [(scope, node, scope.resolve(node)) for scope, node in body.watched]


def has_changed(watched):
    """Return whether a name has come to mean another object."""
    return any(scope.resolve(node) is not found for scope, node, found in watched)


def hash_of(body, texts):
    """Return the hash of some texts, and of the functions that a checked body uses from outside; 64 digits."""
    texts = [f"asserts {__debug__}", *texts]
    for scope, node in body.watched:
        function, exception = scope.function(node), scope.exception(node)
        texts.append(f"{ast.unparse(node)}:{function[0] if function else exception or kind_of(scope, node)}")
    for path, each in body.called.items():
        texts += [path, ast.dump(each.source.tree.args), *map(ast.dump, each.helper.body)]
        texts += [f"{name}={describe(value)}" for name, value in each.helper.defaults.items()]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def describe(value):
    """Type and exact value of a constant."""
    return f"{type(value).__name__}:{value.hex() if isinstance(value, float) else value!r}"
