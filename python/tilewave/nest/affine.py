"""Affine forms of loop indices, read from strings and functions."""

import ast
import inspect
import math
import numbers
import operator

from tilewave.nest.parse import parse

UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos}
BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
QUOTIENT = {ast.FloorDiv: operator.floordiv}


class NotAffine(Exception):
    """Says what about an expression is not affine."""


class Affine:
    """An affine form of loop indices over a divisor >= 1, rounded down, as a value to compute with.

    What is no such form raises.
    """

    # Else NumPy numbers would make arrays of objects of it.
    __array_ufunc__ = None
    __hash__ = None

    def __init__(self, terms, constant, divisor=1):
        common = math.gcd(divisor, *terms.values())
        self.terms, self.constant = {name: factor // common for name, factor in terms.items()}, constant // common
        self.divisor = divisor // common

    @staticmethod
    def of(value):
        if isinstance(value, Affine):
            return value
        if isinstance(value, numbers.Integral) and not isinstance(value, bool):
            return Affine({}, int(value))
        raise NotAffine(f"{value!r} is no int")

    def __add__(self, other):
        other = Affine.of(other)
        if self.divisor > 1 and other.divisor > 1:
            raise NotAffine("a sum of two quotients")
        divisor = self.divisor * other.divisor
        terms = {name: factor * other.divisor for name, factor in self.terms.items()}
        for name, factor in other.terms.items():
            terms[name] = terms.get(name, 0) + factor * self.divisor
        return Affine(terms, self.constant * other.divisor + other.constant * self.divisor, divisor)

    def __mul__(self, other):
        left, right = self, Affine.of(other)
        if any(right.terms.values()):
            left, right = right, left
        if any(right.terms.values()):
            raise NotAffine("a product of loop indices")
        factor, divisor = right.constant, left.divisor
        if divisor > 1 and abs(factor) > 1:
            raise NotAffine("a multiple of a quotient; (2*i)//3 is supported, 2*(i//3) is not")
        rounded = divisor - 1 if factor < 0 else 0  # -(x // d) is (-x + d - 1) // d
        terms = {name: value * factor for name, value in left.terms.items()}
        return Affine(terms if factor else {}, left.constant * factor + rounded, divisor)

    def __floordiv__(self, other):
        other = Affine.of(other)
        if any(other.terms.values()) or other.constant < 1:
            raise NotAffine("a divisor that is no positive integer")
        return Affine(self.terms, self.constant, self.divisor * other.constant)

    def __rfloordiv__(self, other):
        return Affine.of(other) // self

    def __neg__(self):
        return self * -1

    def __pos__(self):
        return self

    def __sub__(self, other):
        return self + Affine.of(other) * -1

    def __rsub__(self, other):
        return Affine.of(other) - self

    __radd__, __rmul__ = __add__, __mul__

    def _refuse(self, *_):
        raise NotAffine("more than + - * // of a loop index")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __index__ = __int__ = __float__ = _refuse
    __mod__ = __rmod__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _refuse
    __abs__ = __round__ = __floor__ = __ceil__ = __trunc__ = __divmod__ = __rdivmod__ = _refuse


def read_affine(bound, outer):
    """An int, a string or a function as an affine form of the indices `outer`.

    Parameters
    ----------
    bound : int, str or function
        A function names the indices as its parameters; other parameters keep their defaults.
    outer : sequence of str

    Returns
    -------
    Affine

    Raises
    ------
    NotAffine
        Saying why.
    """
    try:
        if isinstance(bound, str):
            return affine_form(parse(bound.strip(), mode="eval").body, outer, BINARY | QUOTIENT)
        return _called(bound, outer) if callable(bound) else Affine.of(bound)
    except NotAffine:
        raise
    except Exception as problem:  # a function raises what it likes
        raise NotAffine(f"{type(problem).__name__}: {problem}") from None


def affine_form(node, outer=None, operators=BINARY):
    """The syntax tree of an expression with some operators as an affine form of the names `outer`, or of all names.

    Raises
    ------
    NotAffine
        Saying why.
    """
    if isinstance(node, ast.Constant):
        return Affine.of(node.value)
    if isinstance(node, ast.Name):
        if outer is not None and node.id not in outer:
            raise NotAffine(f"{node.id!r} is no outer loop index")
        return Affine({node.id: 1}, 0)
    if isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        return UNARY[type(node.op)](affine_form(node.operand, outer, operators))
    if isinstance(node, ast.BinOp) and type(node.op) in operators:
        sides = (affine_form(side, outer, operators) for side in (node.left, node.right))
        return operators[type(node.op)](*sides)
    signs = "+ - *" if operators is BINARY else "+ - * //"
    raise NotAffine(f"`{ast.unparse(node)}` is more than {signs} of indices and integers")


def _called(function, outer):
    """A function of outer indices, by what it computes of symbols: exact, where points would be a guess."""
    arguments = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in outer and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            arguments[parameter.name] = Affine({parameter.name: 1}, 0)
        elif parameter.default is parameter.empty:
            raise NotAffine(f"its parameter {parameter.name!r} is no outer loop index")
    form = Affine.of(function(**arguments))
    # A function may look at the kind of its arguments; then its numbers tell.
    for shift in (-3, 0, 1, 2, 1000):
        point = {name: shift * (k + 1) + k for k, name in enumerate(arguments)}
        expected = form.constant + sum(factor * point[name] for name, factor in form.terms.items())
        expected //= form.divisor
        if Affine.of(function(**point)).constant != expected:
            raise NotAffine("it computes something else for ints than for symbols")
    return form
