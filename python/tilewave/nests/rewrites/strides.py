"""Strides in the bounds of loops: loops over their points alone, or a condition around the body."""

import ast
import copy
import dataclasses
import numbers

import numpy as np

from tilewave.nest.bounds import changed_over, check_ints, read_strides, text_of_bound
from tilewave.nest.box import iteration_box, shapes_of
from tilewave.nest.changed import INSIDE, ChangedNest, remembered
from tilewave.nest.parse import parse


def strided(call):
    """A call with strides in `over` as one without, or None. ``{"i": (1, n, 2)}`` puts ``2 * i + 1`` in place of i;
    where time steps, periodic loops, bounds or reductions need all values of i, it puts ``if (i - 1) % 2 == 0:`` around
    the body.

    Raises
    ------
    ConfigError
        For strides that are none.
    """
    nest, loops, arrays, reduce = call.nest, call.loops, call.arrays, call.reduce
    strides = read_strides(nest.indices, loops.over)
    if not strides:
        return None
    over = {**loops.over, **{name: (low, high) for name, (low, high, _) in strides.items()}}
    # A condition where a pivot, or loops inside the body, read all elements along an axis, also those that are skipped.
    whole = loops.steps is not None or loops.periodic or nest.parameters.wholes or nest.pivot or reduce
    whole = whole or call.without("strides") or not all(name in arrays for name in nest.arrays)
    whole = whole or not all(isinstance(a, np.ndarray) or getattr(a, "keep", "") == "all" for a in arrays.values())
    affine = {}
    for name, (low, high, step) in strides.items():
        if not all(isinstance(end, numbers.Integral) for end in (low, high)):
            continue
        if points := range(int(low), int(high), step):
            over[name] = (points[0], points[-1] + 1)
        if step > 1 and not whole:
            box = iteration_box(nest, shapes_of(nest, arrays))
            check_ints(name, over[name], box[nest.indices.index(name)])
            affine[name] = step, int(low)
            over = {**changed_over(nest.indices, over, name, step, int(low)), name: (0, len(points))}
    within = {name: each for name, each in strides.items() if each[2] > 1 and name not in affine}
    conditions = tuple(
        f"({name} - {text_of_bound(nest.indices, name, low)}) % {step} == 0" for name, (low, _, step) in within.items()
    )
    if not all(isinstance(end, numbers.Integral) for ends in within.values() for end in ends):
        within = {}
    key = tuple(affine.items()), conditions, bool(reduce), *within
    changed = remembered(nest, key, lambda: _with_strides(nest, affine, conditions, bool(reduce), tuple(within)))
    return dataclasses.replace(call, nest=changed, loops=dataclasses.replace(loops, over=over, affine=affine))


def _with_strides(nest, affine, conditions, reduced, within):
    """`within`: the indices of the conditions, where the last points of their loops fulfil these."""
    tree = copy.deepcopy(nest.source.tree)
    first = 1 if ast.get_docstring(tree, clean=False) is not None and len(tree.body) > 1 else 0
    if conditions and reduced:
        inside = ast.Assign([ast.Name(INSIDE, ast.Store())], ast.Constant(True))
        for node in ast.walk(inside):
            ast.copy_location(node, tree.body[first])
        tree.body.insert(first, inside)
    for condition in conditions:
        test = parse(condition, mode="eval").body
        for node in ast.walk(test):
            ast.copy_location(node, tree.body[first])
        tree.body[first:] = [ast.copy_location(ast.If(test, tree.body[first:], []), tree.body[first])]
    changed = ChangedNest(nest, _Affine(affine).visit(tree))
    for place in nest.places if within else ():
        if place.written and not place.read:
            changed.within[place.key] = within
    return changed


class _Affine(ast.NodeTransformer):
    """Puts ``factor * index + constant`` in place of indices."""

    def __init__(self, affine):
        self._affine = affine

    def visit_Name(self, node):
        if node.id not in self._affine:
            return node
        factor, constant = self._affine[node.id]
        other = ast.BinOp(ast.Constant(factor), ast.Mult(), ast.Name(node.id, ast.Load()))
        other = ast.BinOp(other, ast.Add(), ast.Constant(constant))
        for each in ast.walk(other):
            ast.copy_location(each, node)
        return other
