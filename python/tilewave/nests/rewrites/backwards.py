"""Time that runs backwards, as time that runs forwards."""

import ast
import copy
import dataclasses
import re

import numpy as np

from tilewave.errors import ConfigError
from tilewave.nest.bounds import changed_over
from tilewave.nest.changed import STEPS, ChangedNest, has_time, remembered
from tilewave.nest.dependences import MOST_HISTORY, time_index
from tilewave.nest.subscript import linear_form, subscripts_of


def forwards(call):
    """A call whose time runs backwards as one whose time runs forwards: t stands for the number of time steps less t,
    in what is reduced, too. None where time does not run backwards.

    Raises
    ------
    ConfigError
        For a nest that is not for such time steps.
    """
    nest, loops, reduce = call.nest, call.loops, call.reduce
    steps, time = loops.steps, nest.indices[0]
    if not (isinstance(loops.reverse, tuple | list) and time in loops.reverse):
        return None
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer):
        return None
    if call.without("backwards"):
        raise ConfigError(
            f"reverse={tuple(loops.reverse)!r}: time {time!r} runs backwards, which TILEWAVE_WITHOUT switches off; "
            "allowed: to leave 'backwards' out of it"
        )
    rows_alone = {*nest.written} == nest.rows.keys()  # read as forwards: it says neither
    if not rows_alone and time_index(nest.places, nest.indices, back=True) is None:
        raise ConfigError(
            f"steps={steps}, reverse={tuple(loops.reverse)!r}: nest {nest.name!r} has no time that runs backwards; "
            f"allowed: nests whose first index is the first subscript of what they write, at -1, at -1 to "
            f"+{MOST_HISTORY} in what they read"
        )
    mirrored = _Mirrored(nest, time in nest.numbers or _names_time(reduce, time), nest.rows if rows_alone else ())

    def made():
        return ChangedNest(nest, mirrored.visit(copy.deepcopy(nest.source.tree)), True, (mirrored,))

    changed = remembered(nest, ("backwards", mirrored.with_steps), made)
    over = changed_over(nest.indices, loops.over, time, -1, int(steps)) if loops.over else loops.over
    reverse = tuple(index for index in loops.reverse if index != time)
    loops = dataclasses.replace(loops, over=over, reverse=reverse, backwards=int(steps))
    return dataclasses.replace(call, nest=changed, loops=loops)


def _names_time(reduce, time):
    """Return whether time is in a text of what is reduced."""
    given = reduce.values() if isinstance(reduce, dict) else ()
    return any(re.search(rf"\b{time}\b", text) for each in given for text in getattr(each, "texts", ()))


class _Mirrored(ast.NodeTransformer):
    """Puts ``steps - t`` in place of time t, but counts the elements along it backwards, too: t + c becomes t - c.
    Arrays that are `kept` stay as they are.
    """

    def __init__(self, nest, with_steps, kept=()):
        self._nest, self._time, self.with_steps, self._kept = nest, nest.indices[0], with_steps, kept

    def visit_Subscript(self, node):
        if not isinstance(node.value, ast.Name) or node.value.id in self._nest.tables:
            return self.generic_visit(node)
        if node.value.id in self._kept:
            return node
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


def check_backwards(nest, arrays, loops, reduce):
    """Refuse what a run whose time runs backwards cannot have.

    Raises
    ------
    ConfigError
    """
    if not nest.backwards:
        return
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
