"""Nests that write a row for several time steps, ``w[t // 5, i]``, as calls for so many steps as have one row."""

import ast
import copy
import dataclasses
import itertools
from typing import Any, NamedTuple

import numpy as np

from tilewave.errors import ConfigError
from tilewave.field.values import digest
from tilewave.nest.bounds import changed_over
from tilewave.nest.changed import ChangedNest, remembered
from tilewave.nest.films import film_of
from tilewave.nest.step_rows import values_of
from tilewave.nest.subscript import subscripts_of
from tilewave.nests.call.problem import box_of_loops


class RowPart(NamedTuple):
    """Time steps that have one row of each array.

    Attributes
    ----------
    first : int
        Step, counted from the first of all.
    steps : int
    rows : dict
        By name of the array.
    writes : bool
        Whether they write the rows; of a film not all do.
    """

    first: int
    steps: int
    rows: dict[str, int]
    writes: bool = True


class StepRows:
    """A call of such a nest as several calls of another, whose time steps write the rows as arrays without time.

    Parameters
    ----------
    call : GivenCall
        Its nest is one with time that runs forwards, and without strides, of which conditions may be left.

    Raises
    ------
    ConfigError
        For arrays and steps that are none for it.
    """

    def __init__(self, call):
        self.call, nest = call, call.nest
        if call.loops.steps is None:
            raise ConfigError(
                f"steps= was not given, and nest {nest.name!r} writes a row of {', '.join(nest.rows)} for several time "
                "steps; allowed: steps="
            )
        self.whole = {name: call.arrays[name] for name in nest.rows}
        for name, each in call.reduce.items() if isinstance(call.reduce, dict) else ():
            if getattr(each, "is_place", False) and each.array in self.whole:
                raise ConfigError(
                    f"reduce: {name}: {each} is a place in {each.array!r}, of which nest {nest.name!r} writes rows for "
                    "several time steps; allowed: max, min, sum, dot and norm of it, and places of locals"
                )
        for name, whole in self.whole.items():
            if whole.ndim != nest.parameters.ranks[name]:
                raise ConfigError(
                    f"array {name!r} has shape {whole.shape}, the nest gives it {nest.parameters.ranks[name]} "
                    "subscripts, of which the first is its row; allowed: as many dimensions"
                )
        self.nest = remembered(nest, "step rows", lambda: ChangedNest(nest, copy.deepcopy(nest.source.tree), rows={}))
        self.film = None if call.without("temporal_blocks") else self._film()

    def parts(self, first, steps, scalars):
        """The `RowPart` list of so many steps from one on; of no steps one without rows.

        Raises
        ------
        ConfigError
            For a row that an array has not.
        """
        rows = {name: self._rows(name, first + np.arange(steps), scalars) for name in self.whole}
        new = np.any([np.diff(each, prepend=-1) != 0 for each in rows.values()], axis=0)
        new |= self.call.without("step_rows")
        writes = np.ones(steps, bool)
        if self.film and self.film.rest is not None and steps:
            writes = self.film.written(self.call.nest, [*rows.values()], first + np.arange(steps), scalars)
            new |= np.diff(writes, prepend=writes[0])
        begins = [*np.flatnonzero(new).tolist(), steps]
        return [
            RowPart(first + begin, end - begin, {n: int(each[begin]) for n, each in rows.items()}, bool(writes[begin]))
            for begin, end in itertools.pairwise(begins)
        ] or [RowPart(first, 0, {})]

    def written(self, steps, scalars):
        """Whether each of so many steps has to write its rows."""
        numbers = np.arange(steps)
        rows = [self._rows(name, numbers, scalars) for name in self.whole]
        return self.film.written(self.call.nest, rows, numbers, scalars) if self.film else np.ones(steps, bool)

    def _film(self):
        """The `Film` that the nest is, where nobody looks at its rows and the rest has the same loops."""
        call, film = self.call, film_of(self.call.nest)
        looked_at = call.reduce and any(name in repr(call.reduce) for name in self.whole)
        if film is None or looked_at or (film.test is not None and call.loops.backwards is not None):
            return None
        if film.rest is not None:
            rows = like_rows(call.nest, call.arrays)
            arrays = [(self.nest, rows), (film.rest, {name: rows[name] for name in film.rest.arrays})]
            try:
                boxes = [box_of_loops(nest, each, 1, call.loops.periodic) for nest, each in arrays]
            except ConfigError:  # of what the call is given: who prepares it says so
                return None
            return film if boxes[0] == boxes[1] else None
        return film

    def text(self, parts):
        """What must be equal on all ranks."""
        kinds = [getattr(whole, "_number", whole.shape) for whole in self.whole.values()]
        each = [[part.first, part.steps, part.writes, *part.rows.values()] for part in parts if part.rows]
        rows = np.array(each, np.int64)
        return f"rows {kinds} {digest(rows)} of {self.call.nest.signature()}"

    def nest_of(self, part):
        """The nest of some of the steps."""
        return self.nest if part.writes else self.film.rest

    def loops_of(self, part):
        """The loops of some of the steps, counted from their first."""
        loops = self.call.loops
        over = changed_over(self.nest.indices, loops.over, self.nest.time, 1, part.first)
        return dataclasses.replace(loops, over=over, steps=part.steps)

    def _rows(self, name, numbers, scalars):
        """The row of each time step, counted from the first."""
        nest, loops, extent = self.call.nest, self.call.loops, self.whole[name].shape[0]
        times = numbers if loops.backwards is None else loops.backwards - numbers
        rows = values_of(nest, name, times, scalars)
        outside = (rows < -extent) | (rows >= extent)
        if outside.any():
            at = int(times[outside][0])
            raise ConfigError(
                f"steps={loops.steps}: `{nest.source.text_of(nest.rows[name])}` is {rows[outside][0]} at "
                f"{nest.indices[0]}={at}, which array {name!r} of shape {self.whole[name].shape} has no row for; "
                f"allowed: {-extent} to {extent - 1}"
            )
        return np.where(rows < 0, rows + extent, rows)


def with_rows_of_steps(nest, loops, arguments):
    """The nest with the arrays that keep all time steps as arrays with a row a step, where each step is a run:
    something happens between steps, or loops are periodic; the same where it reads other steps of them.
    """
    steps, time, firsts = loops.steps, nest.indices[0], {}
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer):
        return nest
    if not (loops.periodic or loops.stepwise and steps > 1):
        return nest
    for node in nest.source.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            firsts.setdefault(node.value.id, {})[ast.dump(subscripts_of(node)[0])] = subscripts_of(node)[0]
    scaled = {place.array for place in nest.places if place.phases}
    rows = {
        name: next(iter(firsts[name].values()))
        for name in nest.written
        if name not in scaled | nest.rows.keys() and len(firsts[name]) == 1
        if nest.axes[name][0] == time and {*nest.axes[name]} == {*nest.indices}  # as arrays in time have to
        if getattr(arguments.get(name), "ndim", 0) == len(nest.axes[name])
    }
    if not rows:
        return nest
    key, rows = ("rows of steps", *rows), {**nest.rows, **rows}
    return remembered(nest, key, lambda: ChangedNest(nest, copy.deepcopy(nest.source.tree), rows=rows))


def like_rows(nest, arrays: dict[str, Any]):
    """Arrays by name, with arrays like the rows in place of those that a nest writes rows of."""
    rows = {name: np.empty(arrays[name].shape[1:], arrays[name].dtype) for name in nest.rows if name in arrays}
    return {**arrays, **rows}
