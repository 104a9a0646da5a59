"""Nests with another loop index in place of one of a body, and the loops of a call with it."""

import ast
import copy
import dataclasses
import numbers
import re
import threading

import numpy as np

from tilewave.errors import ConfigError
from tilewave.nest.bounds import changed_over, check_ints, read_strides, text_of_bound
from tilewave.nest.box import iteration_box, shapes_of
from tilewave.nest.dependences import MOST_HISTORY, time_index
from tilewave.nest.nest import Nest
from tilewave.nest.parse import parse
from tilewave.nest.subscript import linear_form, subscripts_of

#: Nests made of one nest that are remembered.
MOST_CHANGED = 16

_making = threading.Lock()  # ranks may be threads of one process

#: The scalar with the number of time steps, where time runs backwards; no name of Python's.
STEPS = "time steps"

#: The local that points of strides assign, so that no other point counts where values are reduced; no name of Python's.
INSIDE = "inside the strides"


class ChangedNest(Nest):
    """A nest with another syntax tree, whose nodes keep their places in the file.

    Parameters
    ----------
    nest : Nest
    tree : ast.FunctionDef
    backwards : bool
        Whether the tree has ``steps - t`` in place of time.
    rewrites : tuple of ast.NodeTransformer
        What was done to indices in the tree, and is to be done to expressions of them.
    """

    def __init__(self, nest, tree, backwards=False, rewrites=()):
        self.backwards, self.rewrites = backwards, (*nest.rewrites, *rewrites)
        self._read(nest.function, nest.source.with_tree(ast.fix_missing_locations(tree)))
        self.scalars |= {STEPS: 0} if STEPS in self.parameters.scalars else {}


def remembered(nest, key, make):
    """Return what was made of a nest before, or is made now: once, where ranks are threads of one process."""
    with _making:
        if key not in nest.changed:
            while len(nest.changed) >= MOST_CHANGED:
                del nest.changed[next(iter(nest.changed))]
            nest.changed[key] = make()
        return nest.changed[key]


def forwards(nest, loops, reduce=None):
    """The nest and loops of a call whose time runs backwards as others whose time runs forwards: t stands for the
    number of time steps less t, in what is reduced, too. What is given, where time does not run backwards.

    Raises
    ------
    ConfigError
        For a nest that is not for such time steps.
    """
    steps = loops.steps
    if not (isinstance(nest, Nest) and isinstance(loops.reverse, tuple | list) and nest.indices[0] in loops.reverse):
        return nest, loops
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer):
        return nest, loops
    time = nest.indices[0]
    if time_index(nest.places, nest.indices, back=True) is None:
        raise ConfigError(
            f"steps={steps}, reverse={tuple(loops.reverse)!r}: nest {nest.name!r} has no time that runs backwards; "
            f"allowed: nests whose first index is the first subscript of what they write, at -1, at -1 to "
            f"+{MOST_HISTORY} in what they read"
        )
    mirrored = _Mirrored(nest, time in nest.numbers or _names_time(reduce, time))

    def made():
        return ChangedNest(nest, mirrored.visit(copy.deepcopy(nest.source.tree)), True, (mirrored,))

    changed = remembered(nest, ("backwards", mirrored.with_steps), made)
    over = changed_over(nest.indices, loops.over, time, -1, int(steps)) if loops.over else loops.over
    reverse = tuple(index for index in loops.reverse if index != time)
    return changed, dataclasses.replace(loops, over=over, reverse=reverse, backwards=int(steps))


def _names_time(reduce, time):
    """Return whether time is in a text of what is reduced."""
    given = reduce.values() if isinstance(reduce, dict) else ()
    return any(re.search(rf"\b{time}\b", text) for each in given for text in getattr(each, "texts", ()))


def strided(nest, loops, arrays, reduce):
    """The nest and loops of a call with strides in `over` as others without. ``{"i": (1, n, 2)}`` puts ``2 * i + 1`` in
    place of i; where time steps, periodic loops, bounds or reductions need all values of i, it puts
    ``if (i - 1) % 2 == 0:`` around the body.

    Raises
    ------
    ConfigError
        For strides that are none.
    """
    strides = read_strides(nest.indices, loops.over) if isinstance(nest, Nest) else {}
    if not strides:
        return nest, loops
    over = {**loops.over, **{name: (low, high) for name, (low, high, _) in strides.items()}}
    # A condition where a pivot, or loops inside the body, read all elements along an axis, also those that are skipped.
    whole = loops.steps is not None or loops.periodic or nest.parameters.wholes or nest.pivot or reduce
    whole = whole or not all(name in arrays for name in nest.arrays)
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
    conditions = tuple(
        f"({name} - {text_of_bound(nest.indices, name, low)}) % {step} == 0"
        for name, (low, _, step) in strides.items()
        if step > 1 and name not in affine
    )
    key = tuple(affine.items()), conditions, bool(reduce)
    changed = remembered(nest, key, lambda: _with_strides(nest, affine, conditions, bool(reduce)))
    return changed, dataclasses.replace(loops, over=over, affine=affine)


def _with_strides(nest, affine, conditions, reduced):
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
    return ChangedNest(nest, _Affine(affine).visit(tree), nest.backwards)


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


def as_given(loops, index, value):
    """A value of an index of a changed nest as the index of the nest that was given."""
    factor, constant = loops.affine.get(index, (1, 0))
    return factor * value + constant


class _Mirrored(ast.NodeTransformer):
    """Puts ``steps - t`` in place of time t, but counts the elements along it backwards, too: t + c becomes t - c."""

    def __init__(self, nest, with_steps):
        self._nest, self._time, self.with_steps = nest, nest.indices[0], with_steps

    def visit_Subscript(self, node):
        if not isinstance(node.value, ast.Name) or node.value.id in self._nest.tables:
            return self.generic_visit(node)
        first = subscripts_of(node)[0]
        form = linear_form(first)
        if form is None or self._time not in form[0]:
            return self.generic_visit(node)
        other = ast.BinOp(ast.Name(self._time, ast.Load()), ast.Add(), ast.Constant(-form[1]))
        ast.copy_location(other, first)
        if isinstance(node.slice, ast.Tuple):
            node.slice.elts[0] = other
        else:
            node.slice = other
        return node

    def visit_Name(self, node):
        if node.id != self._time:
            return node
        other = ast.BinOp(ast.Name(STEPS, ast.Load()), ast.Sub(), ast.Name(self._time, ast.Load()))
        return ast.copy_location(other, node)

    def visit_arguments(self, node):
        if self.with_steps:
            node.kwonlyargs.append(ast.arg(STEPS))
            node.kw_defaults.append(None)
        return node


def scalars_of(nest, loops):
    """Return the scalars of a changed nest that no caller gives."""
    return {STEPS: loops.backwards} if STEPS in nest.scalars else {}


def has_time(nest, view, array):
    """Return whether time runs backwards along the first dimension of an array."""
    return nest.backwards and view.axes[0] == nest.time and array.ndim == len(view.axes)


def check_backwards(nest, arrays, loops, reduce):
    """Refuse what a run whose time runs backwards cannot have.

    Raises
    ------
    ConfigError
    """
    if not nest.backwards:
        return
    if places := [name for name, each in (reduce or {}).items() if getattr(each, "is_place", False)]:
        raise ConfigError(
            f"reduce: {places[0]}: {reduce[places[0]]} is a place, and time runs backwards; allowed: max, min, sum, "
            "dot and norm"
        )
    for view in nest.views:
        array = arrays[view.array]
        if not has_time(nest, view, array):
            continue
        if array.shape[0] != loops.backwards + 1 or getattr(array, "keep", "all") != "all":
            raise ConfigError(
                f"array {view.array!r} has shape {array.shape}, and time {nest.time!r}, its first dimension, runs "
                f"backwards over {loops.backwards} steps; allowed: a NumPy array, or a field with keep='all', with "
                f"steps + 1 elements there, {loops.backwards + 1}"
            )
