"""Values of points that are reduced and stored nowhere: of locals, of elements, and of expressions of them."""

import ast
import copy
from dataclasses import dataclass, field

import numpy as np

from tilewave.errors import ConfigError
from tilewave.nest.changed import INSIDE
from tilewave.nest.dependences import Place
from tilewave.nest.derived import DerivedNest
from tilewave.nest.parse import parse
from tilewave.nest.subscript import names_outside
from tilewave.nest.syntax import BodyChecker
from tilewave.nest.walks import names_in, slice_of


@dataclass(frozen=True)
class RowValue:
    """One value a point, which the row function of a nest stores for one row at a time.

    Attributes
    ----------
    number : int
        Among those of a nest.
    form : str
        "value", "magnitude" or "square" of an expression; "product" of two; "counts": whether the point counts.
    texts : tuple of str
        The expressions.
    dtype : numpy.dtype
        None: the types of the expression are wanted, and nothing is stored.
    expressions : tuple of Expression
    otherwise : str
        Where the point does not count the value is 0, or for "max" and "min" no better than any.
    """

    number: int
    form: str
    texts: tuple
    dtype: np.dtype
    expressions: tuple = field(compare=False, repr=False)
    otherwise: str = ""

    @property
    def name(self):
        """Return the name of the array that the row function takes it for; it is no name of Python's."""
        return f"value {self.number}"


class Expression:
    """An expression of the locals and elements that a body computes with, after its statements.

    Parameters
    ----------
    nest : Nest
    text : str
        In Python; the name of an array stands for its element at the point, that which is written where one is.
    what : str
        What it is given for, for messages.

    Attributes
    ----------
    node : ast.expr
        With a subscript for each array.
    array : str or None
        The array, where the expression is the name of one.
    partly : tuple
        The locals (str) and elements (`Place.key`) in it that some paths through the body do not assign: the point
        counts where all of them were. Of an array's name alone none: its element counts at every point of the loops,
        which are those with the local `INSIDE` where it is there.
    numbers : set of str
        The loop indices that it computes with.
    types : set of Type
        Those that it may have, once they were looked for.

    Raises
    ------
    ConfigError
        For a text that is no expression, or one of other things than the body's.
    """

    def __init__(self, nest, text, what):
        self.nest, self.text, self.what = nest, text.strip(), what
        self.source, self.types = _Text(self), set()
        try:
            node = parse(self.text, mode="eval").body
        except (SyntaxError, ValueError) as error:
            raise ConfigError(f"{what}: {text!r} is no expression: {error}; allowed: {self._allowed()}") from None
        self.array = node.id if isinstance(node, ast.Name) and node.id in nest.arrays else None
        self._refuse_unknown(node)
        for each in nest.rewrites:
            node = each.visit(node)
        self.node = ast.fix_missing_locations(_Elements(self).visit(node))
        body = BodyChecker(self.source, nest.scope, nest.parameters, strict=True)
        body._expression(self.node, frozenset(nest.source.local_names))
        if body.constants or body.called:
            outside = next(iter(body.constants or body.called))
            raise ConfigError(
                f"{what}: {outside!r} is from outside the body; allowed: {self._allowed()}, or a local of the body "
                "that is computed with it"
            )
        places = {place.key: place for place in nest.places}
        for key, read in body.reads.items():
            if key not in places:
                raise ConfigError(
                    f"{what}: {ast.unparse(read)} is no element that nest {nest.name!r} writes or reads; allowed: "
                    f"{self._allowed()}, or a local of the body that reads it"
                )
        partly = () if self.array else (key for key in body.reads if places[key].written and not places[key].always)
        used = names_in(self.node) | {INSIDE}
        self.partly = (*sorted(used & nest.source.local_names - nest.certain), *partly)
        self.numbers = names_outside([self.node], nest.tables) & {*nest.indices}

    def place(self):
        """The one element of the array that a point writes, or else reads at the point; None where there is none."""
        nest, name = self.nest, self.array
        if scaled := [place for place in nest.places if place.array == name and place.phases]:
            raise ConfigError(
                f"{self.what}: array {name!r} is subscripted by multiples of loop indices, "
                f"{nest.text_of(scaled[0])}; allowed: a local of the body with the value of the element"
            )
        if name in nest.written:
            written = [place for place in nest.places if place.array == name and place.written]
            lacking = [index for index in nest.indices if index not in nest.axes[name]]
            if len(written) > 1 or lacking:
                why = f"lacks index {lacking[0]!r}" if lacking else f"is written at {len(written)} places"
                raise ConfigError(f"{self.what}: array {name!r} {why}; allowed: one with one value a point")
            return written[0]
        at_point = [place for place in nest.places if place.array == name and not any(place.offsets)]
        if len(at_point) != 1:
            read = [nest.text_of(place) for place in nest.places if place.array == name]
            if name in nest.tables:
                how = "is a table"
            else:
                how = "is read next to the point only" if not at_point else "is read in several orders"
                how += f" ({', '.join(read)})"
            raise ConfigError(f"{self.what}: array {name!r} {how}; allowed: {self._allowed()}")
        return at_point[0]

    def _refuse_unknown(self, node):
        if isinstance(node, ast.Name) and node.id not in (
            *self.nest.arrays,
            *self.nest.indices,
            *self.nest.scalars,
            *self.nest.source.local_names,
        ):
            raise ConfigError(f"{self.what}: {self.text!r} is no name of nest {self.nest.name!r}; {self._names()}")

    def _names(self):
        nest = self.nest
        locals_ = sorted(nest.source.local_names)
        return f"allowed: arrays {', '.join(nest.arrays)}; locals {', '.join(locals_) or 'none'}; {self._allowed()}"

    def _allowed(self):
        return "an array with one value a point, a local of the body, or an expression of these in quotes"


class _Elements(ast.NodeTransformer):
    """Puts the element for the name of an array."""

    def __init__(self, expression):
        self.expression, self.nest = expression, expression.nest

    def visit_Subscript(self, node):
        if isinstance(node.value, ast.Name) and node.value.id in self.nest.tables:
            node.slice = self.visit(node.slice)
        return node

    def visit_Name(self, node):
        if node.id not in self.nest.arrays:
            return node
        of_array = copy.copy(self.expression)
        of_array.array = node.id
        place = of_array.place()
        parts = [
            ast.Name(axis, ast.Load())
            if not offset
            else ast.BinOp(ast.Name(axis, ast.Load()), ast.Add(), ast.Constant(offset))
            for axis, offset in zip(place.axes, place.offsets, strict=True)
        ]
        return ast.Subscript(node, slice_of(parts), ast.Load())


class _Text:
    """The expression as a source, for messages."""

    def __init__(self, expression):
        self.what, self.tree = expression.what, expression.nest.source.tree
        self.local_names, self.inner_names, self.accesses = expression.nest.source.local_names, set(), {}
        self.file, self._line = expression.nest.source.file, expression.nest.line

    def line(self, node):
        """Return the line of the nest."""
        return self._line

    def column(self, node):
        """Return the column, as in a text of one line."""
        return getattr(node, "col_offset", 0) + 1

    def text_of(self, node):
        """Return the text of a part of the expression."""
        return ast.unparse(node)

    def error(self, node, message, allowed=None):
        """A ConfigError that names the part."""
        tail = f"; allowed: {allowed}" if allowed else ""
        return ConfigError(f"{self.what}: `{ast.unparse(node)}`: {message}{tail}")


class ReducedNest(DerivedNest):
    """A nest whose row function also stores values that are reduced: further places, behind the nest's.

    Parameters
    ----------
    nest : Nest
    values : sequence of RowValue
    """

    def __init__(self, nest, values):
        super().__init__(nest)
        self.values, self._unwritten_keys = tuple(values), None
        zeros = (0,) * len(nest.indices)
        self.places = nest.places + tuple(
            Place(value.name, zeros, nest.indices, True, False, True) for value in values if value.dtype is not None
        )
        used = set().union(*(each.numbers for value in values for each in value.expressions))
        self.numbers = nest.numbers | used

    def _difference(self):
        texts = [
            (
                value.form,
                str(value.dtype),
                [ast.dump(each.node) for each in value.expressions],
                value.number,
                value.otherwise,
            )
            for value in self.values
        ]
        return str(texts)
