"""One layout of the arrays that several nests share: the grid, the storage and the halos that serve all of them."""

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.field.field import Field
from tilewave.nests.problem import make_problem

#: Layouts that are planned for, at most, where the nests' own plans have none in common.
MOST_LAYOUTS = 3


def memory_of(array):
    """Equal for arrays that are one field, or one NumPy array's elements in the same place."""
    if isinstance(array, Field):
        return id(array)
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str


def written_by(readies):
    """The memory of all arrays that some nest writes."""
    return {memory_of(ready.arrays[name]) for ready in readies for name in ready.problem.nest.written}


def shared_arrays(readies):
    """By nest: the memory of its fields that another nest has, too, and of such NumPy arrays that a nest writes, by
    name."""
    users, written = {}, written_by(readies)
    for k, ready in enumerate(readies):
        for array in ready.arrays.values():
            users.setdefault(memory_of(array), set()).add(k)
    return [
        {
            name: memory
            for name, array in ready.arrays.items()
            if len(users[memory := memory_of(array)]) > 1 and (isinstance(array, Field) or memory in written)
        }
        for ready in readies
    ]


def wanted_layouts(ready, names, grid, halos=None):
    """The same of the nest as it is when its arrays have these halos at least."""
    problem = make_problem(ready.problem.nest, ready.arrays, ready.loops, halos=halos, off=ready.context._off)
    return layouts_of(problem, names, grid)


def layouts_of(problem, names, grid):
    """By name: (grid, halo before, halo after) along the array's own dimensions, with that grid of the loops."""
    found = {}
    for number, view in enumerate(problem.nest.views):
        if view.array in names:
            layout = problem.core.field_layout(number, grid)
            found[view.array] = tuple(layout.grid), tuple(layout.halo_lo), tuple(layout.halo_hi)
    return found


def common_halos(readies, shared, grids):
    """By nest: the least halo of each shared array, so that all nests keep as much of it as any wants.

    A wider halo of one array may widen that of another, as arrays that could be given in each other's place have equal
    ones: so until nothing changes. A NumPy array, which one nest only reads and another writes, is in both as one that
    is written.
    """
    halos = [
        {name: ((0,) * array.ndim,) * 2 for name in arrays if isinstance(array := ready.arrays[name], np.ndarray)}
        for ready, arrays in zip(readies, shared, strict=True)
    ]
    known = {}  # by nest and halos

    def wanted(k):
        key = id(readies[k]), grids[k], repr(halos[k])
        if key not in known:
            known[key] = wanted_layouts(readies[k], shared[k], grids[k], halos[k])
        return known[key]

    while True:
        layouts = [wanted(k) for k in range(len(readies))]
        most = {}
        for mine, arrays in zip(layouts, shared, strict=True):
            for name, (_, lo, hi) in mine.items():
                before = most.get(arrays[name], ((0,) * len(lo), (0,) * len(hi)))
                most[arrays[name]] = tuple(map(max, lo, before[0])), tuple(map(max, hi, before[1]))
        settled = True
        for own, mine, arrays in zip(halos, layouts, shared, strict=True):
            for name, (_, lo, hi) in mine.items():
                if (lo, hi) != most[arrays[name]]:
                    own[name], settled = most[arrays[name]], False
        if settled:
            return halos


def differing(readies, shared):
    """What two nests want differently of an array that they share, as text; empty where they agree."""
    first, seen = {}, set()
    for k, (ready, arrays) in enumerate(zip(readies, shared, strict=True)):
        if id(ready) in seen:
            continue
        seen.add(id(ready))
        storage = _storage(ready)
        for name, mine in layouts_of(ready.problem, arrays, ready.plan.grid).items():
            other, theirs, wanted = first.setdefault(arrays[name], (k, mine, storage))
            if mine[0] != theirs[0]:
                what = f"over process grids {theirs[0]} and {mine[0]}"
            elif storage != wanted:
                what = f"in {_text(wanted)} and {_text(storage)} storage"
            elif mine != theirs:
                what = f"with halos {theirs[1:]} and {mine[1:]}"
            else:
                continue
            return f"nests {other + 1} and {k + 1} want array {name!r} {what}"
    return ""


def _storage(ready):
    """(storage, row along the arrays' own dimensions); unlike any other where the row has no such form."""
    if ready.plan.storage == "plain":
        return "plain", ()
    layout = layout_of(ready)
    return layout[:2] if layout else (ready.plan.storage, id(ready))


def _text(storage):
    return storage[0] if storage[0] == "plain" else f"{storage[0]} {storage[1]}"


def candidates(readies, shared):
    """Choices of plans, one dict a nest, with which the shared arrays may have one layout; those to prefer first.

    The first are the nests' own plans where these agree on grid and storage.
    """
    sharing = [k for k, arrays in enumerate(shared) if arrays]
    layouts = {k: layout_of(readies[k]) for k in sharing}
    heaviest = sorted(sharing, key=lambda k: -readies[k].plan.predicted.time_s)
    wanted = []
    for k in heaviest:
        if layouts[k] is not None:
            wanted += [("plain", (), layouts[k][2]), layouts[k]]
    own = [] if differing_grids_or_storage(readies, shared) else [[{} for _ in readies]]
    if _core.without(readies[0].context._off, "chain_layouts"):
        return own
    found = _distinct(dict.fromkeys(wanted), readies, sharing, own)[:MOST_LAYOUTS]
    if not own and wanted:  # many small nests may be quicker on one rank, whatever the heaviest one wants
        found = _distinct([("plain", (), (1,) * len(wanted[0][2]))], readies, sharing, found)
    return found


def _distinct(layouts, readies, sharing, found):
    """The choices that were `found`, and those for some layouts that all can have."""
    for layout in layouts:
        choices = [_choices(layout, readies[k]) if k in sharing else {} for k in range(len(readies))]
        if None not in choices and choices not in found:
            found = [*found, choices]
    return found


def differing_grids_or_storage(readies, shared):
    """As `differing`, halos apart."""
    first = {}
    for ready, arrays in zip(readies, shared, strict=True):
        for name, mine in layouts_of(ready.problem, arrays, ready.plan.grid).items():
            wanted = mine[0], _storage(ready)
            if first.setdefault(arrays[name], wanted) != wanted:
                return True
    return False


def _choices(layout, ready):
    """The choices that give a plan that layout, or None; empty where the plan has it."""
    if layout_of(ready) == layout:
        return {}
    choices = choices_for(layout, ready)
    if choices is None and layout[0] == "plain" and len(layout[2]) == len(ready.problem.nest.indices):
        choices = {"storage": "plain", **({"grid": layout[2]} if ready.context.size > 1 else {})}  # loops are skewed
    return choices


def fixed_otherwise(given, choices):
    """Whether the user's plan or choices differ from these."""
    for name, value in choices.items():
        if given.plan is not None:
            theirs = getattr(given.plan, name)
        elif name in given.choices:
            theirs = given.choices[name]
        else:
            continue
        if tuple(np.atleast_1d(theirs)) != tuple(np.atleast_1d(value)):
            return True
    return False


def layout_of(prepared):
    """(storage, row, grid) of the arrays' own dimensions, or None where loops are not these."""
    problem, plan = prepared.problem, prepared.plan
    signs = _signs(problem)
    if prepared.on_one_rank or signs is None:
        return None
    first = len(signs) - _dimensions(problem)
    row = (
        tuple(s * r for s, r in zip(signs, plan.row or (0,) * len(signs), strict=True))
        if plan.storage == "skewed"
        else ()
    )
    return plan.storage, row[first:], tuple(plan.grid[first:])


def choices_for(layout, prepared):
    """The choices of a plan with that layout, or None."""
    storage, row, grid = layout
    signs = _signs(prepared.problem)
    if prepared.on_one_rank or signs is None or len(grid) != _dimensions(prepared.problem):
        return None
    time = (0,) * (len(signs) - len(grid))
    choices = {"storage": storage}
    if prepared.context.size > 1:
        choices["grid"] = tuple(1 for _ in time) + grid
    if storage == "skewed":
        if any(sign < 0 for sign, step in zip(signs, time + row, strict=True) if step):
            return None  # the row would go along no loop and back along another
        choices["row"] = time + row
    return choices


def _signs(problem):
    """The direction of each loop, None where they are skewed or a spread array has its dimensions in another order."""
    nest = problem.nest
    for view in problem.spread:
        at = [nest.indices.index(axis) for axis in view.axes]
        if at != sorted(at):
            return None
    loops = problem.core.loops
    n = len(loops)
    if any(loops[k][m] for k in range(n) for m in range(n) if k != m):
        return None
    return tuple(loops[k][k] for k in range(n))


def _dimensions(problem):
    """Of the arrays: the loops but for time."""
    return len(problem.nest.indices) - bool(problem.in_time)


def fit(members, readies, shared, choices):
    """The nests prepared anew with these choices and halos in common; part of a collective call.

    Returns
    -------
    list of BoundNest, or str
        Why they still differ.
    """
    for k, (member, wanted) in enumerate(zip(members, choices, strict=True)):
        if fixed_otherwise(member.given, wanted):
            return f"the plan of nest {k + 1}, {member.name!r}, is fixed"
    grids = [wanted.get("grid", ready.plan.grid) for wanted, ready in zip(choices, readies, strict=True)]
    halos = common_halos(readies, shared, grids)
    fitted, prepared = [], {}
    for k, (member, ready) in enumerate(zip(members, readies, strict=True)):
        key = member.key, repr((choices[k], halos[k]))
        if key in prepared:
            fitted.append(prepared[key])
            continue
        wanted, like = choices[k], None
        if halos[k] and not wanted and member.given.plan is None:  # wider halos must not change what is in common
            wanted = {"storage": ready.plan.storage}
            if ready.context.size > 1:
                wanted["grid"] = ready.plan.grid
            if ready.plan.storage == "skewed":
                wanted["row"] = ready.plan.row
            like = ready.plan
        if ready.context.size > 1 and shared[k] and ready.plan.temporal_block > 1:
            together = {"temporal_block": 1}  # others keep no halo for several steps
            if fixed_otherwise(member.given, together):
                return f"nest {k + 1}, {member.name!r}, has a plan with a halo for {ready.plan.temporal_block} steps"
            wanted, like = {**wanted, **together}, None
        if wanted or halos[k]:
            try:
                ready = yield from member.prepare(wanted, halos[k], like)
            except ConfigError as error:  # on all ranks
                return f"nest {k + 1}, {member.name!r}: {error}"
        prepared[key] = ready
        fitted.append(ready)
    return differing(fitted, shared) or fitted
