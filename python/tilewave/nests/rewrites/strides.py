"""Strides in the bounds of loops: loops over their points alone, or a condition around the body.

So are bounds with time, where each time step is run by itself, and those of other loops beside a periodic one: a
condition.
"""

import ast
import copy
import dataclasses
import numbers
import re

import numpy as np

from tilewave.nest.bounds import (
    changed_over,
    check_ints,
    loop_bounds,
    read_strides,
    text_of_bound,
    without_strides,
)
from tilewave.nest.box import iteration_box, shapes_of
from tilewave.nest.changed import INSIDE, ChangedNest, remembered
from tilewave.nest.parse import parse
from tilewave.nest.walks import Put, located
from tilewave.nests.call.problem import box_of_loops
from tilewave.nests.rewrites.step_rows import like_rows


def strided(call):
    """A call with strides in `over` as one without, or None. ``{"i": (1, n, 2)}`` puts ``2 * i + 1`` in place of i;
    where time steps, periodic loops, bounds or reductions need all values of i, it puts ``if (i - 1) % 2 == 0:`` around
    the body. In single time steps, and beside a periodic loop, ``{"i": ("t", n)}`` is ``if i >= t:``.

    Raises
    ------
    ConfigError
        For strides that are none.
    """
    nest, loops, arrays, reduce = call.nest, call.loops, call.arrays, call.reduce
    if not isinstance(loops.over, dict):
        return None
    strides = read_strides(nest.indices, loops.over)
    over, bounds = _bounds_as_conditions(call, without_strides(loops.over, strides))
    if not strides and not bounds:
        return None
    # A condition where a pivot, or loops inside the body, read all elements along an axis, also those that are skipped.
    whole = loops.steps is not None or loops.periodic or nest.parameters.wholes or nest.pivot or reduce
    whole = whole or call.without("strides") or not all(name in arrays for name in nest.arrays)
    whole = whole or not all(isinstance(a, np.ndarray) or getattr(a, "keep", "") == "all" for a in arrays.values())
    affine = {}
    for name, (low, high, step) in strides.items():
        if not all(isinstance(end, numbers.Integral) for end in (low, high)):
            continue
        if step > 1 and not whole:
            box = iteration_box(nest, shapes_of(nest, arrays))
            check_ints(name, over[name], box[nest.indices.index(name)])
            affine[name] = step, int(low)
            count = len(range(int(low), int(high), step))
            over = {**changed_over(nest.indices, over, name, step, int(low)), name: (0, count)}
    within = {name: each for name, each in strides.items() if each[2] > 1 and name not in affine}
    conditions = tuple(
        f"({name} - {text_of_bound(nest.indices, name, low)}) % {step} == 0" for name, (low, _, step) in within.items()
    )
    if bounds or not all(isinstance(end, numbers.Integral) for ends in within.values() for end in ends):
        within = {}
    conditions += bounds
    key = tuple(affine.items()), conditions, bool(reduce), *within
    changed = remembered(nest, key, lambda: _with_strides(nest, affine, conditions, bool(reduce), tuple(within)))
    return dataclasses.replace(call, nest=changed, loops=dataclasses.replace(loops, over=over, affine=affine))


def _bounds_as_conditions(call, over):
    """`over` without the bounds that are to be conditions, and these: beside a periodic loop those that depend on other
    loops, in single time steps those that depend on time.
    """
    nest, loops, conditions, without = call.nest, call.loops, [], dict(over)
    indices = nest.indices
    names = indices if loops.periodic else indices[:1] if loops.stepwise and nest.time is not None else ()
    if not names or not all(name in call.arrays for name in nest.arrays):
        return over, ()
    changes = re.compile(rf"\b({'|'.join(names)})\b")
    for name, pair in over.items():
        if name not in indices or not isinstance(pair, tuple | list) or len(pair) != 2:  # which is refused later
            continue
        sides = [tuple(side) if isinstance(side, tuple | list) else (side,) for side in pair]
        texts = [[text_of_bound(indices, name, bound) for bound in side] for side in sides]
        for k, symbol in enumerate((">=", "<")):
            conditions += [f"{name} {symbol} {text}" for text in texts[k] if changes.search(text)]
            sides[k] = tuple(bound for bound, text in zip(sides[k], texts[k]) if not changes.search(text))
        without[name] = sides
    if not conditions:
        return over, ()
    box = box_of_loops(nest, like_rows(nest, call.arrays), loops.steps, loops.periodic)
    ranges = dict(zip(indices, loop_bounds(indices, box, over).box, strict=True))
    over = {name: tuple((*side, end) for side, end in zip(without[name], ranges[name])) for name in over}
    return over, tuple(conditions)


def _with_strides(nest, affine, conditions, reduced, within):
    """`within`: the indices of the conditions, where the last points of their loops fulfil these."""
    tree = copy.deepcopy(nest.source.tree)
    first = 1 if ast.get_docstring(tree, clean=False) is not None and len(tree.body) > 1 else 0
    if conditions and reduced:
        inside = ast.Assign([ast.Name(INSIDE, ast.Store())], ast.Constant(True))
        tree.body.insert(first, located(inside, tree.body[first]))
    for condition in conditions:
        test = located(parse(condition, mode="eval").body, tree.body[first])
        tree.body[first:] = [ast.copy_location(ast.If(test, tree.body[first:], []), tree.body[first])]
    values = {
        index: ast.BinOp(
            ast.BinOp(ast.Constant(factor), ast.Mult(), ast.Name(index, ast.Load())), ast.Add(), ast.Constant(constant)
        )
        for index, (factor, constant) in affine.items()
    }
    changed = ChangedNest(nest, ast.fix_missing_locations(Put(values).visit(tree)))
    for place in nest.places if within else ():
        if place.written and not place.read:
            changed.within[place.key] = within
    return changed
