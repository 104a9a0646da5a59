"""One process grid for the fields that several bound nests share."""

import math

from tilewave.context.collective import collective
from tilewave.errors import ConfigError
from tilewave.field.field import Field

#: Bytes of fields that move to another grid in a second, and seconds of each move in addition: 8 MB take 3 ms.
MOVED_BYTES_PER_S, MOVE_S = 2.7e9, 40e-6


def with_grid_of_others(bound, ready):
    """What a nest runs with, on the process grid that its fields have in a nest which was bound before; part of a
    collective call.

    Where nests run in turn, fields that each of them wants on another grid would move before every run. The nest's
    grid stays where it is predicted to save more than that takes, and where the plan fixes it. Grids follow from the
    order in which nests are bound, not from what ran.

    Returns
    -------
    (BoundNest, dict)
        And the choices of its plan that were made so.
    """
    places, chosen = _places(ready), {}
    moved = [field for field, at in places if field._grid not in (None, _on(ready.plan.grid, at))]
    if moved and "grid" not in bound._fixed():
        wanted = [1] * len(ready.plan.grid)
        largest, at = max((each for each in places if each[0] in moved), key=lambda each: _bytes(each[0]))
        for loop, count in zip(at, largest._grid, strict=True):
            wanted[loop] = count
        try:
            other = _prepared(bound, {"grid": tuple(wanted)}, context=bound.context)
        except ConfigError:  # on all ranks: its loops allow no such grid
            other = None
        moves_s = 2 * sum(MOVE_S + _bytes(field) / MOVED_BYTES_PER_S for field in moved)
        if other and other.plan.predicted.time_s <= ready.plan.predicted.time_s + moves_s:
            ready, chosen = other, {"grid": tuple(wanted)}
    for field, at in places:
        field._grid = field._grid or _on(ready.plan.grid, at)
    return ready, chosen


def _places(ready):
    """(field, for each of its dimensions the number of the loop) of fields that are cut as the loops are."""
    nest, rows = ready.problem.nest, ready.sweep.problem.loops
    straight = all(entry == 0 for k, row in enumerate(rows) for m, entry in enumerate(row) if m != k)
    if ready.on_one_rank or not straight:
        return []
    found = []
    for name, array in ready.arrays.items():
        axes = [axis for axis in nest.axes.get(name, ()) if axis != nest.time]
        whole = not isinstance(array, Field) or array.keep != "all" or name in ready.replicated
        if not whole and len(axes) == array.ndim and all(axis in nest.indices for axis in axes):
            found.append((array, [nest.indices.index(axis) for axis in axes]))
    return found


def _bytes(field):
    return math.prod(field.shape) * field.dtype.itemsize


def _on(grid, at):
    return tuple(grid[loop] for loop in at)


@collective("tw.bind")
def _prepared(bound, choices, *, context):
    """What the nest runs with when these choices are made."""
    return (yield from bound._prepare(bound._steps, {}, choices))
