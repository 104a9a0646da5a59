"""Whether accesses of loops are inside their arrays, for the integers of a call."""

import ast

from tilewave.loops.dependences import domain, not_least, row_of
from tilewave.loops.systems import add, may_hold
from tilewave.loops.tree import linear
from tilewave.nest.inner_loops import is_element, is_inner
from tilewave.nest.subscript import subscripts_of
from tilewave.nest.walks import nodes_in

#: Operators that raise where a number of Python is divided by 0, and calls that raise nothing for numbers.
DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
NEVER_RAISE = ("abs", "len", "range", "min", "max", "sum", "any", "all")


def are_inside(tree, numbers, shapes):
    """Return whether all elements that loops may touch are inside, counted from the begin of their arrays.

    Parameters
    ----------
    tree : Tree
    numbers : dict
        The integers that names and extents stand for.
    shapes : dict
        Of arrays.
    """
    return all(
        _is_inside(group, access, numbers, shapes[access.name])
        for group in tree.groups
        for access in group.accesses
        if access.name in tree.tables
    )


def outside(tree, numbers, shapes):
    """The text of an error about an access that is outside its array, and certain to come; None where none is found.

    Of conditions nothing is said: what stands behind them may never come. Nor where something else may raise first.
    """
    if any(_may_raise(node) for group in tree.groups for node in nodes_in(*group.statements)):
        return None
    for group in tree.groups:
        for point in _corners(group.path, numbers, {}):
            for node in (each for part in group.statements for each in _certain(part)):
                if is_element(node) and node.value.id in tree.tables and (found := _outside(node, point, shapes)):
                    at = ", ".join(f"{loop.index} = {point[loop.index]}" for loop in group.path)
                    return f"{tree.region.source.file}:{node.lineno}: `{ast.unparse(node)}` at {at}: {found}"
    return None


def _outside(node, point, shapes):
    """What of an element is outside, at known integers."""
    extents = shapes[node.value.id]
    for d, (part, extent) in enumerate(zip(subscripts_of(node), extents, strict=True)):
        form = linear(part, lambda name: name in point)
        index = None if form is None else _value(form, point)
        if index is not None and not -extent <= index < extent:
            return f"index {index} is outside axis {d} of {node.value.id!r}, which has {extent} elements"
    return None


def _value(form, point):
    return (form.constant + sum(point[name] * factor for name, factor in form.terms.items())) // form.divisor


def _corners(path, numbers, inside):
    """The points where each loop of a path is at its first or its last turn, with what names stand for."""
    point = {**numbers, **inside}
    if not path:
        yield point
        return
    loop, *inner = path
    forms = (*loop.begins, *loop.ends)
    if not {name for form in forms for name in form.terms} <= point.keys():
        return
    outer, narrow = (max, min) if loop.step > 0 else (min, max)
    begin, end = outer(_value(f, point) for f in loop.begins), narrow(_value(f, point) for f in loop.ends)
    turns = range(begin, end, loop.step)
    for value in {turns[0], turns[-1]} if turns else ():
        yield from _corners(inner, numbers, {**inside, loop.index: value})


def _may_raise(node):
    """Whether what a node computes, of elements that are there, may raise an exception."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, DIVISIONS):
        divisor = node.right if isinstance(node, ast.BinOp) else node.value
        return not (isinstance(divisor, ast.Constant) and divisor.value)
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    empty = is_inner(node) and name not in ("sum", "any", "all")
    return empty or not (name.startswith("np.") or name in NEVER_RAISE)


def _certain(node):
    """The nodes that are evaluated wherever a node is."""
    yield node
    parts = ast.iter_child_nodes(node)
    if isinstance(node, ast.If | ast.IfExp):
        parts = [node.test]
    elif isinstance(node, ast.BoolOp):
        parts = node.values[:1]
    elif isinstance(node, ast.Compare):
        parts = [node.left, node.comparators[0]]
    elif isinstance(node, ast.GeneratorExp | ast.Lambda):
        parts = []
    for each in parts:
        yield from _certain(each)


def may_wrap(tree, numbers):
    """Return whether a subscript of an array that is written may count from the end: dependences know nothing of it."""
    stored = {access.name for group in tree.groups for access in group.accesses if access.stores}
    return not all(
        _is_inside(group, access, numbers, None)
        for group in tree.groups
        for access in group.accesses
        if access.name in tree.tables & stored
    )


def _is_inside(group, access, numbers, shape):
    """Return whether an access is inside; without a shape, whether no sum of indices is negative."""
    if any(form is None for form in access.subscripts) and shape:
        return False
    points = domain(group.path)
    indices = {loop.index for loop in group.path}
    rows = [row_of(form) for form in access.subscripts if form is not None]
    names = {name for row in (*points, *rows) for name in row} - indices - {1}
    if not names <= numbers.keys():
        return False
    equal = [{name: 1, 1: -numbers[name]} for name in names]
    if any(may_hold(equal, [*points, not_least(row)]) for row in rows):
        return False
    ends = zip(rows, shape or (), strict=shape is not None)
    return not any(may_hold(equal, [*points, add(row, {1: -extent}, 1)]) for row, extent in ends)
