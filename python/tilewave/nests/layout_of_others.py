"""One process grid and one storage for the fields that several bound nests share."""

import math

from tilewave.context.collective import collective
from tilewave.errors import ConfigError
from tilewave.field.field import Field

#: Bytes of fields that move to another layout in a second, and seconds of each move in addition: 8 MB take 3 ms.
MOVED_BYTES_PER_S, MOVE_S = 2.7e9, 40e-6


def with_layout_of_others(bound, ready):
    """What a nest runs with, in the layout that its fields have in nests which were bound before; part of a collective
    call.

    Where nests run in turn, fields that each of them wants in another layout would move before every run. The nest's
    plan stays where it is predicted to save more than that takes, and where the user fixes it. Layouts follow from the
    order in which nests are bound, not from what ran.

    Returns
    -------
    (BoundNest, dict)
        And the choices of its plan that were made so.
    """
    places, chosen = _places(ready), {}
    layouts = layouts_of_others([field for field, _ in places], bound.context)

    def moves_s(ready):
        return sum(
            2 * (MOVE_S + _bytes(field) / MOVED_BYTES_PER_S)
            for field, at in places
            if layouts[id(field)] not in (None, _layout(ready, at))
        )

    best_s = ready.plan.predicted.time_s + moves_s(ready)
    for choices in _wanted(ready, places, layouts) if moves_s(ready) else ():
        fixed = bound._fixed()
        choices = {name: value for name, value in choices.items() if fixed.get(name) != value}
        if not choices.keys().isdisjoint(fixed):
            continue
        try:
            other = _prepared(bound, choices, context=bound.context)
        except ConfigError:  # on all ranks: its loops allow no such layout
            continue
        if (time_s := other.plan.predicted.time_s + moves_s(other)) < best_s:
            ready, chosen, best_s = other, choices, time_s
    for field, at in places:
        field._wanted_layouts.note(bound, _layout(ready, at))
    return ready, chosen


def layouts_of_others(fields, context, without=()):
    """By id of a field, how the first nest that is bound still wants it; None where there is none. Collective.

    `without`: nests that do not count."""
    users = [field._wanted_layouts.users() for field in fields]
    there = iter(_there([each for some in users for each in some], context=context) if any(users) else ())
    for field, some in zip(fields, users, strict=True):
        field._wanted_layouts.keep([next(there) for _ in some])
    return {id(field): field._wanted_layouts.first(without) for field in fields}


def has_others(bounds, readies, context):
    """Whether nests that are none of `bounds` are bound to fields of theirs. Collective."""
    fields = {id(field): field for ready in readies for field, _ in _places(ready)}
    return any(layout is not None for layout in layouts_of_others([*fields.values()], context, bounds).values())


def _wanted(ready, places, layouts):
    """Choices with which the nest has a layout of its fields, those of the largest first."""
    found = []
    for field, at in sorted(places, key=lambda each: -_bytes(each[0])):
        if (layout := layouts[id(field)]) is None or layout == _layout(ready, at):
            continue
        grid, row = [1] * len(ready.plan.grid), [0] * len(ready.plan.grid)
        for loop, count in zip(at, layout[0], strict=True):
            grid[loop] = count
        for loop, step in zip(at, layout[1], strict=bool(layout[1])):
            row[loop] = step * ready.sweep.problem.loops[loop][loop]
        choices = {}
        if not layout[1] and ready.plan.storage == "skewed":
            choices = {"storage": "plain"}
        elif layout[1] and row.count(1) == 1:  # up one loop, and perhaps down another
            choices = {"storage": "skewed", "row": tuple(row)}
        several = ready.context.size > 1
        if (choices and several) or (tuple(grid), layout[2]) != (tuple(ready.plan.grid), ready.plan.weights):
            choices["grid"] = tuple(grid)  # with another storage the planner might take another one
            choices |= {"weights": layout[2]} if several and (layout[2] or ready.plan.weights) else {}
        if choices and choices not in found:
            found.append(choices)
    return found


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


def _layout(ready, at):
    """The grid and the row of a nest's plan along the dimensions of a field, and the weights of ranks; the row empty
    where storage is plain.
    """
    plan, loops = ready.plan, ready.sweep.problem.loops
    row = tuple(plan.row[loop] * loops[loop][loop] for loop in at) if plan.row and plan.storage == "skewed" else ()
    return tuple(plan.grid[loop] for loop in at), row, plan.weights


def _bytes(field):
    return math.prod(field.shape) * field.dtype.itemsize


@collective("tw.bind")
def _prepared(bound, choices, *, context):
    """What the nest runs with when these choices are made."""
    return (yield from bound._prepare(bound._steps, {}, choices))


@collective("tw.bind")
def _there(users, *, context):
    """Which users are there on every rank."""
    yield
    return context._core.allreduce_min(users)
