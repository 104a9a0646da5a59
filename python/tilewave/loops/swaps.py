"""Loops that end each turn with arrays changing names: ``u, v = v, u``. As many turns are written out as bring the
names back, so that no name changes in the loop, which may be a chain then.
"""

import ast
import copy
import dataclasses

import numpy as np

from tilewave.field.field import Field
from tilewave.loops.region_run import RegionRun
from tilewave.loops.tree import linear
from tilewave.nest.region import Region
from tilewave.nest.walks import Put

#: Turns that are written out.
MOST_TURNS = 4


@dataclasses.dataclass(frozen=True)
class Swap:
    """How names change at the end of a turn.

    Attributes
    ----------
    body : list of ast.stmt
        The statements before.
    after : dict
        From each name that is assigned to the name whose array it has then.
    turns : int
        After so many turns arrays have their names again.
    """

    body: list
    after: dict
    turns: int

    def names(self, count):
        """From each name to the one whose array it has after some turns."""
        known = {name: name for name in {*self.after, *self.after.values()}}
        for _ in range(count):
            known |= {name: known[other] for name, other in self.after.items()}
        return known


def swap_of(node):
    """The `Swap` of a loop; None where it has none."""
    end = len(node.body)
    while end and _pairs(node.body[end - 1]):
        end -= 1
    after = {}
    for statement in node.body[end:]:
        after |= {name: after.get(other, other) for name, other in _pairs(statement)}
    moved = {name for name, other in after.items() if name != other}
    arrays = {after[name] for name in moved}
    if not end or not arrays or not arrays <= moved or len({after[name] for name in arrays}) < len(arrays):
        return None
    swap = Swap(node.body[:end], after, 0)
    turns = (k for k in range(2, MOST_TURNS + 1) if all(swap.names(k)[name] == name for name in arrays))
    return dataclasses.replace(swap, turns=found) if (found := next(turns, 0)) else None


def _pairs(node):
    """Names and what they are given by a statement that only gives names to what has one."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return []
    sides = [each.elts if isinstance(each, ast.Tuple) else [each] for each in (node.targets[0], node.value)]
    names = all(isinstance(each, ast.Name) for side in sides for each in side)
    return [(a.id, b.id) for a, b in zip(*sides, strict=True)] if names and len(sides[0]) == len(sides[1]) else []


class SwappedRun(RegionRun):
    """The loops of one place of a function whose turns end with a `Swap`; its region is without it."""

    def __init__(self, found, runs, exact):
        super().__init__(found, runs, exact)
        self._written_out, self._now = {}, None

    def takes(self, names):
        """Return whether the loops are a chain, or turns of bound nests; else they stay Python."""
        self._now = None
        values = [self._value(names, name) for name in self.region.tables]
        if not all(isinstance(each, Field | np.ndarray) for each in values) or len({*map(id, values)}) < len(values):
            return False
        arrays = {name: self._array(names, name) for name in self.region.tables}
        forms = [linear(each, lambda name: True) for each in self.found.node.iter.args]
        wanted = {name for form in forms if form is not None for name in form.terms}
        known = {n: v for n, v in self._numbers(arrays, names).items() if n in wanted}
        if any(form is None for form in forms) or not wanted <= known.keys():
            return False
        ends = [form.constant + sum(known[name] * factor for name, factor in form.terms.items()) for form in forms]
        if len(ends) == 3 and ends[2] == 0 or len(turns := range(*ends)) < self.found.swap.turns:
            return False
        if turns not in self._written_out:
            self.release()
            self._written_out.clear()
            region = Region(self.region.source, self.region.function, self._statements(turns), self.region.local_names)
            found = dataclasses.replace(self.found, region=region, inner=[], live=self.found.live - {self._index})
            self._written_out[turns] = RegionRun(found, [], self.exact)
        run = self._written_out[turns]
        parts = run._plan(arrays, names)
        if any(part.kind == "in order" and not part.is_small for part in parts) or parts[0].kind == "in order":
            return False
        self._now = run, turns
        return True

    @property
    def _index(self):
        return self.found.node.target.id

    def _statements(self, turns):
        """The loop with turns written out, and the turns that are left."""
        swap, index, found = self.found.swap, self._index, []
        body = self.region.source.tree.body[0].body
        many, left = divmod(len(turns), swap.turns)
        whole = turns[: many * swap.turns]
        bodies = [_turn(swap.names(k), index, k * turns.step) for k in range(swap.turns)]
        loops = [(range(whole.start, whole.stop, turns.step * swap.turns), bodies)]
        loops += [(turns[len(whole) + k :][:1], [_turn(swap.names(k), index, 0)]) for k in range(left)]
        for values, renamed in loops:
            loop = copy.copy(self.found.node)
            loop.iter = copy.copy(loop.iter)
            loop.iter.args = [
                ast.copy_location(ast.Constant(n), loop) for n in (values.start, values.stop, values.step)
            ]
            loop.body = [each.visit(copy.deepcopy(statement)) for each in renamed for statement in body]
            found.append(ast.fix_missing_locations(loop))
        return found

    def run(self, names):
        """Run the loops; returns the names that they have assigned, and the arrays by their last names."""
        run, turns = self._now
        found = run.run(names)
        self.last = run.last
        after = self.found.swap.names(len(turns))
        return found | {name: names[after[name]] for name in self.found.swap.after} | {self._index: turns[-1]}

    def release(self):
        """Let go of arrays."""
        for each in self._written_out.values():
            each.release()


def _turn(names, index, ahead):
    """What puts the names of a turn, and an index that is further on."""
    values = {name: ast.Name(new, ast.Load()) for name, new in names.items()}
    if ahead:
        values[index] = ast.BinOp(ast.Name(index, ast.Load()), ast.Add(), ast.Constant(ahead))
    return Put(values)
