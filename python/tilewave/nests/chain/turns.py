"""The runs of a repetition of nests: of one that writes rows for several time steps, a run for each row."""

import dataclasses

import numpy as np

from tilewave import _core
from tilewave.field.field import Field
from tilewave.nests.call.operands import memory_of
from tilewave.nests.call.step_blocks import for_steps
from tilewave.nests.rewrites.step_rows import RowPart
from tilewave.nests.run.bound import Bound


class Turns:
    """What runs in a repetition, in its order.

    Attributes
    ----------
    nests : list of Bound
        As they were given.
    bounds, readies, scalars, numbers : list
        What is prepared, as nests of their own: parts of a nest have its number.
    wholes : list
        The arrays that nests write rows of.
    windows : dict
        By what is prepared: fields by name that stand for rolling windows.
    why : str
        Why there is no such order; empty where there is one.
    films : int
        The last nests that are films.
    film_steps : set of int
        The time steps that these have to show.
    shows_each : bool
        Whether one of them shows each other time step where it is the last of a run.
    """

    def __init__(self, nests, films=0):
        self.films, self.film_steps, self.shows_each = films, set(), False
        self.nests, self.bounds, self.readies, self.scalars, self.numbers = nests, [], [], [], []
        self.wholes, self.windows, self.why, self._order, self._rows = [], {}, "", [], []

    def _add(self, bound, ready, scalars, number):
        self.bounds.append(bound)
        self.readies.append(ready)
        self.scalars.append(scalars)
        self.numbers.append(number)
        return len(self.bounds) - 1

    def called(self, k):
        """Return what messages call a nest that is prepared."""
        return f"nest {self.numbers[k] + 1}, {self.nests[self.numbers[k]].nest.name!r},"

    @property
    def firsts(self):
        """The first that is prepared of each nest."""
        return [self.numbers.index(number) for number in range(len(self.nests))]

    def _take(self, parts, users):
        """Take the rows of a nest; their numbers by name."""
        numbers = {}
        for name, row in parts.step_rows.items():
            numbers[name], whole = len(self._rows), parts.whole[name]
            row.shared = len(users[memory_of(whole)]) > 1
            self._rows.append(row)
            self.wholes.append(whole)
        return numbers

    def core(self, readies):
        """Return the turns, and the rows that they take, of the core; none where each nest runs once."""
        if not self._rows:
            return [], []
        return [
            _core.ChainTurn(k, first, readies[k].steps, more, [rows.get(r, []) for r in range(len(self._rows))])
            for k, first, more, rows in self._order
        ], self._rows

    def points(self, readies):
        """Return the points of each nest."""
        found = [0] * len(self.nests)
        for k, *_ in self._order:
            sweep, steps = readies[k].sweep, readies[k].steps
            points = sweep.points
            if steps is not None:
                (first, *_), (end, *_) = sweep.problem.space
                points = points // (end - first) * steps
            found[self.numbers[k]] += points
        return found

    def plans(self, readies):
        """Return the plan of each nest; of one with several parts that of the longest part, predicted for all."""
        found = []
        for number, first in enumerate(self.firsts):
            each = [self.readies[k].loops.steps for k, *_ in self._order if self.numbers[k] == number]
            if len(each) == 1:
                found.append(readies[first].plan)
                continue
            longest = max(each)
            at = next(k for k, *_ in self._order if self.numbers[k] == number and readies[k].loops.steps == longest)
            found.append(for_steps(readies[at].plan, longest, longest, 0.0, sum(each)))
        return found


def one_nest(bound, readies):
    """Return the `Turns` of one nest that is ready in several ways."""
    turns = Turns([bound])
    for ready in readies:
        turns._add(bound, ready, {}, 0)
    turns._order.append((0, 0, False, {}))
    return turns


def turns_of(bounds, readies, scalars, steps=None, films=0):
    """Return the `Turns` of bound nests that are ready; part of a collective call.

    Parameters
    ----------
    bounds : list of Bound
    readies : list of BoundNest
    scalars : list of dict
    steps : int, optional
        Time steps, of which each is a repetition.
    films : int
        The last nests that are films of such repetitions.
    """
    turns, users = Turns(bounds, films), {}
    for ready in readies:
        for array in ready.called.values():
            users.setdefault(memory_of(array), set()).add(id(ready))
    for number, (bound, ready, given) in enumerate(zip(bounds, readies, scalars, strict=True)):
        if not ready.parts:
            turns._order.append((turns._add(bound, ready, given, number), 0, False, {}))
            continue
        parts, known = ready.parts, {}
        values = {name: value for name, value in ready.values.items() if name in bound.nest.scalars}
        each = yield from parts.agreed(0, ready.steps if steps is None else steps, values)
        rows = turns._take(parts, users)
        taken = [{rows[name]: [row] for name, row in part.rows.items() if part.writes} for part in each]
        if steps is not None:  # a repetition is a time step
            turns.why = turns.why or parts.why_not_alike(steps)
            if number >= len(bounds) - films:
                turns.film_steps.update(np.flatnonzero(parts.written(steps, values)).tolist())
                turns.shows_each |= parts.shows_each
            taken = [{rows[name]: [p.rows[name] for p in each for _ in range(p.steps)] for name in rows}]
            each = [RowPart(0, 1, {})]
        for number_of_part, (part, of_part) in enumerate(zip(each, taken, strict=True)):
            if (key := parts.key(part)) not in known:
                made = Bound(dataclasses.replace(bound._call, **parts.of(part), inject=None, record=None))
                yield from made._prepare_first()
                known[key] = turns._add(made, (yield from made._prepare(made._steps, {}, halos={})), {}, number)
                turns.windows[known[key]] = parts.windows
            turns._order.append((known[key], part.first, number_of_part > 0, of_part))
    if any(row.shared for row in turns._rows):
        turns.films = 0  # others may look at any row
    if any(whole.keep == "window" for whole in turns.wholes if isinstance(whole, Field)):
        turns.why = "the rows of a rolling window are there for a run of their nest alone"
    return turns
