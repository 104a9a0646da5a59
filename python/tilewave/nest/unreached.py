"""Conditions on loop indices that no point of the loops fulfils, since an access ends the loops before.

The loops run where every access is inside its array, whatever conditions say. In ``if i == 0: y[i] = x[i]`` with
``y[i-1]`` in the other branch they begin at 1. The body is computed with ranges in place of numbers: once for all
points that run, which says what conditions come to there; and, where some condition has one outcome only, for points
that are left out. It is an error where such a point has the other outcome, all that it touches is inside, and it
writes.
"""

import ast
import itertools
import math
import operator

import numpy as np

from tilewave.nest.box import with_time
from tilewave.nest.helpers import without_docstring
from tilewave.nest.inner_loops import extent_of, is_inner
from tilewave.nest.subscript import place_of, subscripts_of

#: What is looked at of the points that are left out: so many values of an index next to the loops and at each end of
#: the arrays, and so many points of several indices.
MOST_VALUES, MOST_POINTS = 8, 400

#: Their results for ranges lie between those for the ends, but for what `_ends` says.
_OPERATIONS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg, ast.UAdd: operator.pos,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
_NOTHING = frozenset()
#: (lowest, highest, indices that it depends on) of a value; this one may be anything.
_ANY = (None, None, _NOTHING)


def check_reached(nest, arrays, scalars, loops, bounds):
    """Refuse a condition on loop indices that no point fulfils, since an access ends the loops.

    Parameters
    ----------
    nest : Nest
    arrays, scalars : dict
        Of the call, by name.
    loops : Loops
    bounds : Bounds
        Of all loops.

    Raises
    ------
    ConfigError
    """
    if not nest.numbers & {*nest.indices} or any(low >= high for low, high in bounds.box):
        return
    box = dict(zip(nest.indices, bounds.box, strict=True))
    whole = _uncut(nest, arrays, loops, box)
    if whole == box:
        return
    known = {**_numbers(scalars), **_numbers(nest.constants())}
    for node, (outcomes, names) in _Walk(nest, arrays, loops, known, box).outcomes.items():
        cut = [name for name in nest.indices if name in names and whole[name] != box[name]]
        for point in _left_out(names, box, whole) if cut and len(outcomes) == 1 else ():
            (outcome,) = outcomes
            here = {name: (value, value + 1) for name, value in point.items()}
            there = _Walk(nest, arrays, loops, known, here)
            other = there.outcomes.get(node, (set(), set()))[0] == {not outcome}
            if other and there.inside and there.writes and bounds.may_contain(loops.over, here):
                point = {name: value for name, value in point.items() if not box[name][0] <= value < box[name][1]}
                raise _error(nest, node, outcome, point, box, _limits(nest, arrays, loops, here, point))


def _uncut(nest, arrays, loops, box):
    """Return the ranges of the indices that the extents of arrays allow without offsets, where accesses end them."""
    fixed = {*(loops.over or {}), *(loops.periodic or ())} | ({nest.indices[0]} if loops.steps is not None else set())
    whole = dict(box)
    for place in nest.places:
        extents = place.extents(with_time(place, arrays[place.array].shape))
        for name, extent in zip(place.axes, extents, strict=True):
            if name not in fixed:
                whole[name] = min(whole[name][0], 0), max(whole[name][1], extent)
    for array, axis, name, scale, _ in nest.bounding:
        if name not in fixed:
            whole[name] = min(whole[name][0], 0), max(whole[name][1], arrays[array].shape[axis] // scale)
    return whole


def _left_out(indices, box, whole):
    """Yield points of which some of the indices is beyond the loops: next to them, or at the ends of arrays."""

    def values(name):
        (low, high), (least, most) = box[name], whole[name]
        inside = dict.fromkeys(value for value in (low, low + 1, (low + high) // 2, high - 1) if low <= value < high)
        if name not in indices:
            return inside
        beyond = [value for ends in ((least, low), (high, most)) for value in _near_ends(*ends)]
        return [*beyond, *inside]

    order = sorted(box, key=lambda name: name in indices)  # these change most
    points = (dict(zip(order, point, strict=True)) for point in itertools.product(*map(values, order)))
    beyond = (point for point in points if any(not box[name][0] <= point[name] < box[name][1] for name in indices))
    return itertools.islice(beyond, MOST_POINTS)


def _near_ends(low, high):
    if high - low <= 2 * MOST_VALUES:
        return range(low, high)
    return [*range(low, low + MOST_VALUES), *range(high - MOST_VALUES, high)]


def _limits(nest, arrays, loops, here, point):
    """Return the text of an access that ends the loops before a point, and the index."""
    for node in nest.source.nodes:
        if not isinstance(node, ast.Subscript) or extent_of(node):
            continue
        walk = _Walk(nest, arrays, loops, {}, here, ())
        walk.access(node, dict.fromkeys(nest.source.local_names | nest.source.inner_names, _ANY))
        if ends := [name for name in point if name in walk.outside]:
            return nest.source.text_of(node), ends[0]
    return "an access", next(iter(point))


def _error(nest, node, outcome, point, box, limit):
    access, index = limit
    low, high = box[index]
    where = ", ".join(map("{}={}".format, point, point.values()))
    return nest.source.error(
        node,
        f"this is {'false' if outcome else 'true'} at no point that runs: `{access}` is inside its array for {index} "
        f"in range({low}, {high}), to which it limits the loop also where the condition leaves it out, so that {where} "
        "does not run",
        f'over={{"{index}": ({low}, {high})}} where these points are meant; a nest of its own for the others, without '
        f"`{access}`; or an array with more elements, in which `{access}` is inside at all of them",
    )


def _numbers(values):
    """Return those that are real numbers, as Python's."""
    found = {}
    for name, value in values.items():
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, int | float) and not (isinstance(value, float) and math.isnan(value)):
            found[name] = value
    return found


class _Walk:
    """Hold what a body does at the points of a box.

    Attributes
    ----------
    outcomes : dict
        From each condition on indices to (its outcomes, these indices).
    outside : set
        The indices along which it may touch what is outside its array.
    writes : bool
        Whether it may write an array, but for those that other nests write, too.
    """

    def __init__(self, nest, arrays, loops, known, box, statements=None):
        self.nest, self.arrays, self.loops, self.box = nest, arrays, loops, box
        self.known, self.outcomes, self.outside, self.writes = known, {}, set(), not nest.written
        self.block(without_docstring(nest.source.tree.body) if statements is None else statements, {})

    @property
    def inside(self):
        return not self.outside

    # Statements; each returns whether the next one is reached.

    def block(self, statements, names):
        return all(self.statement(statement, names) for statement in statements)

    def statement(self, node, names):
        if isinstance(node, ast.If):
            return self.branches(node, names)
        if isinstance(node, ast.Assert):
            return self.truth(node.test, names) is not False
        if isinstance(node, ast.Raise):
            return False
        if isinstance(node, ast.AugAssign):
            self.value(node.target, names)
        value = self.value(node.value, names) if getattr(node, "value", None) is not None else None
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            if target is not None and value is not None:
                self.store(target, value if isinstance(node, ast.Assign | ast.AnnAssign) else _ANY, names)
        return True

    def branches(self, node, names):
        holds = self.truth(node.test, names)
        if holds is not None:
            return self.block(node.body if holds else node.orelse, names)
        others = dict(names)
        goes_on = [self.block(node.body, names), self.block(node.orelse, others)]
        for name in {*names} | {*others}:
            if names.get(name, _ANY) != others.get(name, _ANY):
                names[name] = _ANY
        return any(goes_on)

    def store(self, target, value, names):
        if isinstance(target, ast.Name):
            names[target.id] = value
        elif isinstance(target, ast.Subscript):
            self.value(target, names)
            self.writes |= target.value.id not in self.loops.others
        else:
            for part in target.elts:
                self.store(part, _ANY, names)

    # Conditions: True, False, or None for both.

    def truth(self, node, names):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            holds = self.truth(node.operand, names)
            return None if holds is None else not holds
        if isinstance(node, ast.BoolOp):
            decides = isinstance(node.op, ast.Or)
            found = []
            for each in node.values:
                found.append(self.truth(each, names))
                if found[-1] is decides:
                    return decides
            return None if None in found else not decides
        low, high, indices = self.value(node, names)
        if not indices:  # scalars and data decide it
            return None
        holds = bool(low) if low == high else True if low is not None and (low > 0 or high < 0) else None
        outcomes, known = self.outcomes.setdefault(node, (set(), set()))
        outcomes |= {True, False} if holds is None else {holds}
        known |= indices
        return holds

    # Values.

    def value(self, node, names):
        """(lowest, highest, indices that it depends on) of an expression."""
        if isinstance(node, ast.Constant):
            return (node.value, node.value, _NOTHING) if isinstance(node.value, int | float) else _ANY
        if isinstance(node, ast.Name | ast.Attribute):
            return self.name(node, names)
        if extent := extent_of(node):
            return self.extent(*extent)
        if isinstance(node, ast.Subscript):
            self.access(node, names)
            return _ANY
        if isinstance(node, ast.BoolOp) or isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return _ANY if (holds := self.truth(node, names)) is None else (holds, holds, frozenset(self.box))
        if isinstance(node, ast.IfExp):
            holds = self.truth(node.test, names)
            if holds is not None:
                return self.value(node.body if holds else node.orelse, names)
            both = self.value(node.body, names), self.value(node.orelse, names)
            return both[0] if both[0] == both[1] else _ANY
        if is_inner(node):
            return self.inner(node.args[0], names)
        parts = [self.value(each, names) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        return self.computed(node, parts)

    def name(self, node, names):
        text = ast.unparse(node)
        if isinstance(node, ast.Name) and text in self.box:
            low, high = self.box[text]
            return low, high - 1, frozenset([text])
        if text in names:
            return names[text]
        return (self.known[text], self.known[text], _NOTHING) if text in self.known else _ANY

    def extent(self, array, dimension):
        shape = self.arrays[array].shape
        extent = shape[dimension - self.nest.parameters.ranks[array]]
        return extent, extent, _NOTHING

    def inner(self, generator, names):
        names = dict(names)
        for loop in generator.generators:
            for bound in loop.iter.args:
                self.value(bound, names)
            names[loop.target.id] = _ANY
            for condition in loop.ifs:
                self.truth(condition, names)
        self.value(generator.elt, names)
        return _ANY

    def computed(self, node, parts):
        if not parts or any(low is None for low, *_ in parts):
            return _ANY
        operators = node.ops if isinstance(node, ast.Compare) else [getattr(node, "op", None)]
        ranges, width = [part[:2] for part in parts], len(parts) - len(operators) + 1
        try:
            found = [_ends(type(each), ranges[k : k + width]) for k, each in enumerate(operators)]
        except (ArithmeticError, TypeError, ValueError):
            return _ANY
        if None in found:
            return _ANY
        ends = map(all, zip(*found, strict=True)) if isinstance(node, ast.Compare) else found[0]
        return *ends, frozenset().union(*(indices for *_, indices in parts))

    # Accesses.

    def access(self, node, names):
        """Note whether an element is inside its array, for all of the points."""
        name, nest = node.value.id, self.nest
        shape = self.arrays[name].shape
        if name in nest.tables:
            for part, extent in zip(subscripts_of(node), shape, strict=True):
                low, high, indices = self.value(part, names)
                if low is not None and not 0 <= low <= high < extent:
                    self.outside |= indices
            return
        array, offsets, axes, phases = place_of(nest.source, node)
        place = next(each for each in nest.places if each.key == (array, offsets, axes, phases))
        for part in subscripts_of(node) if node in nest.parameters.wholes else ():
            self.value(part, names)
        lacking = len(axes) - len(shape)
        extents = place.extents(with_time(place, shape))
        for d, (index, offset, extent) in enumerate(zip(axes, offsets, extents, strict=True)):
            along = d in nest.parameters.wholes.get(node, ())
            if d < lacking or along or index in (self.loops.periodic or ()):
                continue
            if not 0 <= self.box[index][0] + offset <= self.box[index][1] - 1 + offset < extent:
                self.outside.add(index)


def _ends(kind, ranges):
    """(lowest, highest) of an operation on one range or two; None where that is not known."""
    (low, high), (other, most) = ranges[0], ranges[-1]
    if kind in (ast.FloorDiv, ast.Mod) and not (other == most and type(other) is int and other > 0):
        return None
    if kind not in _OPERATIONS or kind is ast.Div and not (low == high and other == most):
        return None
    if kind is ast.Mod and low // other != high // other:
        return 0, other - 1
    if kind in (ast.Eq, ast.NotEq) and low <= most and other <= high and not low == high == other == most:
        return False, True
    values = [_OPERATIONS[kind](*ends) for ends in itertools.product(*ranges)]
    return min(values), max(values)
