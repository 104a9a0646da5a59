"""The loops of a region as a tree, with what its statements read and write."""

import ast
import builtins
import copy
from dataclasses import dataclass, field

from tilewave.nest.affine import Affine, NotAffine, affine_form
from tilewave.nest.inner_loops import extent_of, is_element
from tilewave.nest.parse import parse
from tilewave.nest.subscript import subscripts_of
from tilewave.nest.walks import is_stored, names_in, nodes_in

#: Of these, quotients, remainders and products consist that are numbers of their own.
FIXED = (ast.BinOp, ast.operator, ast.Name, ast.Constant, ast.expr_context, ast.Attribute, ast.Subscript)


class Stays(Exception):
    """Says why loops run in their order, and are no nests."""


@dataclass(eq=False)
class Loop:
    """One loop over a range.

    Attributes
    ----------
    node : ast.For
    index : str
    begins, ends : tuple of Affine
        Of outer indices and of names that the region does not assign. All hold, as in ``range(max(0, i - 2), n)``.
    step : int
    """

    node: ast.For
    index: str
    begins: tuple
    ends: tuple
    step: int


@dataclass(frozen=True)
class Access:
    """A read or a write of an element, or of a name that the region assigns.

    Attributes
    ----------
    name : str
    subscripts : tuple of (Affine or None)
        None: anything. Of a name that is no array: nothing.
    stores : bool
    """

    name: str
    subscripts: tuple
    stores: bool


@dataclass(eq=False)
class Group:
    """Statements without loops that stand one behind the other.

    Attributes
    ----------
    statements : list of ast.stmt
    path : tuple of Loop
        The loops around them, outermost first.
    number : int
        In the order of the text.
    accesses : list of Access
    """

    statements: list
    path: tuple
    number: int
    accesses: list = field(default_factory=list)


def extent_text(array, dimension):
    """The name of an extent in affine forms; no name of Python's."""
    return f"{array}.shape[{dimension}]"


class _Extents(ast.NodeTransformer):
    """Names in place of extents, and of quotients, remainders and products of names."""

    def visit(self, node):
        if found := extent_of(node):
            return ast.Name(extent_text(*found), ast.Load())
        if is_fixed(node):
            return ast.Name(ast.unparse(node), ast.Load())
        return self.generic_visit(node)


def is_fixed(node):
    """Return whether a node is a number of its own where its names are known: ``n // 2``, not ``2 * i``."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv | ast.Mod | ast.Mult):
        return False
    constant = isinstance(node.op, ast.Mult) and any(isinstance(e, ast.Constant) for e in (node.left, node.right))
    return not constant and all(isinstance(each, FIXED) for each in ast.walk(node))


def names_of(name):
    """The names in a name of `linear`, which may be an expression."""
    return {name} if name.isidentifier() else names_in(parse(name))


def linear(node, known):
    """An expression as an affine form; None where it is none, or has names that are not `known`."""
    try:
        form = affine_form(_Extents().visit(copy.deepcopy(node)))
    except NotAffine:
        return None
    return form if all(known(name) for name in form.terms) else None


def range_of(node, form, scope):
    """(begins, ends, step) of a loop over a range, of which all begins and ends hold; the step is None where it is no
    constant.

    `form`: gives the affine form of an expression, or None; of each begin and end it is as given.
    """
    given = [ast.Constant(0), *node.iter.args][-max(2, len(node.iter.args)) :]
    step = form(given[2]) if len(given) == 3 else Affine({}, 1)
    if step is None or step.terms or step.constant == 0:
        return (), (), None

    def bounds(bound, narrows):
        called = isinstance(bound, ast.Call) and isinstance(bound.func, ast.Name) and not bound.keywords
        if called and bound.func.id == narrows and scope.lookup(narrows) is getattr(builtins, narrows):
            return tuple(found for each in bound.args for found in bounds(each, narrows))
        return (form(bound),)

    outer, inner = ("max", "min") if step.constant > 0 else ("min", "max")
    return bounds(given[0], outer), bounds(given[1], inner), step.constant


def texts_of(forms, pick):
    """What bounds are in `over`, of which all hold: ints and texts; `pick`: max for lower ones, min for upper ones."""
    constants = [form.constant for form in forms if not any(form.terms.values())]
    texts = [pick(constants)] if constants else []
    for form in forms:
        terms = [f"{factor}*{name}" for name, factor in form.terms.items() if factor]
        if terms:
            texts.append(" + ".join([*terms, str(form.constant)]))
    return [*dict.fromkeys(texts)]


def text_of(forms, pick):
    """What bounds are in a range, as `texts_of`."""
    texts = texts_of(forms, pick)
    return str(texts[0]) if len(texts) == 1 else f"{pick.__name__}({', '.join(map(str, texts))})"


class Tree:
    """The loops of a region and the groups of its statements.

    Parameters
    ----------
    region : Region

    Attributes
    ----------
    groups : list of Group

    Raises
    ------
    Stays
        Where a statement keeps all loops in their order.
    """

    def __init__(self, region):
        self.region, self.groups = region, []
        self.tables = {*region.tables}
        targets = [node.target.id for node in region.loops if isinstance(node, ast.For)]
        stored = [node.id for node in region.source.nodes if is_stored(node)]
        for name in {*targets}:
            if stored.count(name) > targets.count(name):
                raise Stays(f"a statement assigns {name!r}, which is a loop index")
        self.assigned = {*stored}
        self._block(region.source.tree.body, ())

    def _block(self, statements, path):
        waiting = []
        for node in [*statements, None]:
            loop = isinstance(node, ast.For)
            if node is not None and not loop:
                self._check(node)
                waiting.append(node)
                continue
            if waiting:
                self._group(waiting, path)
                waiting = []
            if loop:
                self._block(node.body, (*path, self._loop(node, path)))

    def _check(self, node):
        for each in ast.walk(node):
            if isinstance(each, ast.For | ast.While):
                kind = "a while loop" if isinstance(each, ast.While) else "a loop under a condition"
                raise Stays(f"line {each.lineno} has {kind}")
            if isinstance(each, ast.Break | ast.Continue | ast.Raise | ast.Assert):
                raise Stays(f"line {each.lineno} has {type(each).__name__.lower()}")

    def _known(self, path):
        indices = {loop.index for loop in path}
        return lambda name: name in indices or not names_of(name) & self.assigned

    def _loop(self, node, path):
        known = self._known(path)
        begins, ends, step = range_of(node, lambda each: linear(each, known), self.region.scope)
        if step is None:
            raise Stays(f"the step of line {node.lineno} is no constant")
        if any(form is None for form in (*begins, *ends)):
            raise Stays(f"the bounds of line {node.lineno} are no sums of outer indices and integers")
        if node.target.id in {loop.index for loop in path}:
            raise Stays(f"line {node.lineno} has the index of a loop around it")
        return Loop(node, node.target.id, begins, ends, step)

    def _group(self, statements, path):
        self.groups.append(self.group(statements, path, len(self.groups)))

    def group(self, statements, path, number):
        """A group with its accesses."""
        known, indices, found = self._known(path), {loop.index for loop in path}, []
        for node in nodes_in(*statements):
            target = node.target if isinstance(node, ast.AugAssign) else None
            if is_element(node):
                found.append(self._access(node, known, isinstance(node.ctx, ast.Store)))
            elif target is not None and is_element(target):
                found.append(self._access(target, known, False))
            elif target is not None and isinstance(target, ast.Name):
                found.append(Access(target.id, (), False))
            elif isinstance(node, ast.Name) and node.id in self.assigned - indices - self.tables:
                found.append(Access(node.id, (), isinstance(node.ctx, ast.Store)))
        return Group(statements, path, number, list(dict.fromkeys(found)))

    def _access(self, node, known, stores):
        return access_of(node, [linear(part, known) for part in subscripts_of(node)], stores)


def access_of(node, forms, stores=None):
    """The access of an element with these subscripts."""
    forms = (None if f is None else _Form(f.terms, f.constant, f.divisor) for f in forms)
    return Access(node.value.id, tuple(forms), isinstance(node.ctx, ast.Store) if stores is None else stores)


class _Form(Affine):
    """An affine form that is compared by value."""

    def __eq__(self, other):
        return (
            isinstance(other, Affine)
            and (self.constant, self.divisor) == (other.constant, other.divisor)
            and {k: v for k, v in self.terms.items() if v} == {k: v for k, v in other.terms.items() if v}
        )

    def __hash__(self):
        return hash((self.constant, self.divisor, frozenset((k, v) for k, v in self.terms.items() if v)))
