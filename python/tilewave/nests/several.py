"""Several nests, one after another in each time step."""

from __future__ import annotations

import dataclasses
import functools
import math
import time
import types

from tilewave import _core
from tilewave.context.collective import plain
from tilewave.errors import ConfigError, shown
from tilewave.field.create import Scratch
from tilewave.field.field import Field
from tilewave.nest.bounds import Loops, loop_directions
from tilewave.nest.nest import Nest
from tilewave.nests.bind import Bound
from tilewave.nests.chain_body import ChainMaker, Ran, check_shared, why_no_schedule
from tilewave.nests.chain_report import ChainReport, NestRun
from tilewave.nests.execute import run_bound
from tilewave.nests.points import Points
from tilewave.nests.problem import check_steps, depth_of, lacking_time, make_problem
from tilewave.plan.fixed import USUAL, fixed_by, refuse_choices

#: Bytes of arrays that time steps might move from layout to layout, from which on nests are planned for one layout in
#: common, or made one schedule: 8 MB move in 3 ms, and planning three nests once more takes as long.
LEAST_MOVED_BYTES = 1 << 23
#: A move between ranks takes as long as a move of so many bytes more on one rank, 40 us.
BYTES_OF_RANKS = 1 << 17

#: Nests of which it is known whether the points of a time step are independent, at most; and those.
MOST_KNOWN = 256
_independent: dict[tuple, bool] = {}


@dataclasses.dataclass
class _Part:
    """One nest of the time step, with what it is given."""

    nest: Nest
    loops: Loops
    arguments: dict

    @functools.cached_property
    def joined(self):
        """Fields whose last two time steps are one after its run: what others had written was a time step to it."""
        fields = ((name, self.arguments[name]) for name in self.loops.again)
        return [name for name, value in fields if isinstance(value, Field) and value.history]

    @functools.cached_property
    def same_steps(self):
        """Whether all time steps are the same but for the values of arrays, and nothing happens between."""
        in_time = lacking_time(self.nest, self.arguments)
        timeless = all(self.nest.time not in axes or name in in_time for name, axes in self.nest.axes.items())
        return timeless and self.nest.time not in self.nest.numbers and not self.joined

    def simplest(self, off):
        """The choices of its plan. Where the points of a time step are independent, tiles need no order: other plans
        for a single step differ in nothing but short rows."""
        arrays = {name: self.arguments[name] for name in self.nest.arrays}
        forms = [(name, type(value), value.shape, value.dtype.str) for name, value in arrays.items()]
        key = self.nest.signature(), repr((forms, self.loops.key(self.nest))), off
        if key not in _independent:
            if len(_independent) >= MOST_KNOWN:
                _independent.clear()
            try:
                core = make_problem(self.nest, arrays, self.loops, off=off).core
                _independent[key] = not _core.why_no_stencil(core)
            except ConfigError:  # which all ranks will raise
                return {}
        return {"generator": "stencil"} if _independent.get(key) else {}


def run_several(nests, context, loops, planned, fastmath, arguments, reduce, points):
    """Run nests one after another in each time step; part of a collective call: ``yield from`` it.

    Parameters
    ----------
    nests : tuple of Nest
    loops : Loops
        For the nests that have the indices; `over` or `reverse` may be a list of them, one a nest.
    planned : (plan, planning)
        As in `run`.
    points : (dict or None, dict or None)
        As `inject` and `record` of `run`.

    Returns
    -------
    ChainReport
    """
    begun = time.perf_counter()
    error, parts, histories, description, steps = None, [], {}, "", loops.steps
    try:
        whole, choices = fixed_by(*planned)
        if given := {name: value for name, value in (("plan", whole), ("reduce", reduce)) if value is not None}:
            name, value = next(iter(given.items()))
            raise ConfigError(f"{name}={shown(value)} was given for several nests; allowed: for one nest")
        points = Points(*points, nests, arguments, steps)
        parts = _parts(nests, loops, arguments)
        histories = _histories(parts)
        description = f"nests {', '.join(nest.name for nest in nests)}, {steps} steps, {sorted(histories)}, {points}"
    except BaseException as problem:
        error = problem
    yield error or description
    for name, count in sorted(histories.items()):
        context._moves(arguments[name]._storage.keep_history, count)
    bounds, chain = yield from _prepared(parts, context, choices, fastmath, int(steps), bool(points))
    runs = [
        NestRun(nest.name, each.plan, each.plan.predicted.time_s * steps)
        for nest, each in zip(nests, bounds, strict=True)
    ]
    if chain:
        ran = _run_as_one(chain, bounds, runs, int(steps), description)
    else:
        ran = yield from _run_one_by_one(parts, bounds, runs, points, context, int(steps))
    points.finish(context)
    names, call_s = tuple(nest.name for nest in nests), time.perf_counter() - begun
    why = "" if chain else "each time step is a run of each nest"
    return ChainReport(names, why, ran, int(steps), [], False, call_s, runs, points.recorded)


def _run_as_one(chain, bounds, runs, steps, description):
    """All time steps as repetitions of one schedule; collective."""
    held = [variant.environment({}) for variant in chain.variants]
    agreed = _core.BoundCall("tw.run", plain(description))
    ran = chain.repeat(steps, types.SimpleNamespace(agreed=agreed, environments=lambda: [at for _, at in held]))
    predicted_s = sum(run.predicted_s for run in runs)
    for bound, run in zip(bounds, runs, strict=True):
        run.time_s, run.points = ran.time_s * run.predicted_s / predicted_s, steps * bound.sweep.points
    return ran


def _run_one_by_one(parts, bounds, runs, points, context, steps):
    """Each nest in each time step; part of a collective call."""
    moving_s = 0.0
    recording, context._core.record = context._core.record, False
    try:
        for step in range(steps):
            for part, bound, run in zip(parts, bounds, runs, strict=True):
                bound.first_step = step
                if bound.copies_arrays:
                    bound.copy_again()  # another nest may have changed them
                core, after_s = yield from run_bound(part.nest, bound, time.perf_counter())
                moving_s += core.moving_s + after_s
                run.time_s, run.points = run.time_s + core.time_s, run.points + core.points
                for name in part.joined:
                    part.arguments[name]._storage.join_steps()
            points.visit(step, context.rank)
    finally:
        context._core.record = recording
    return Ran(list, sum(run.time_s for run in runs), moving_s, sum(run.points for run in runs))


def _prepared(parts, context, choices, fastmath, steps, visits):
    """A `BoundNest` for each nest, with one layout of the fields that they share, and the chain that they are, or None;
    part of a collective call.
    """
    bounds, readies, moved_bytes = [], [], 0
    for part in parts:
        fixed = {name: value for name, value in choices.items() if name != "planning"}
        planning, fixed = choices.get("planning", USUAL), fixed or part.simplest(context._off)
        bounds.append(Bound(part.nest, context, part.loops, fixed, fastmath, None, part.arguments, planning))
        yield from bounds[-1]._prepare_first()
        readies.append(bounds[-1]._first.ready)
        arrays = [part.arguments[name] for name in part.nest.arrays]
        moved_bytes += steps * sum(array.dtype.itemsize * math.prod(array.shape) for array in arrays)
        moved_bytes += steps * BYTES_OF_RANKS * (context.size > 1)
    if steps == 0 or moved_bytes < LEAST_MOVED_BYTES or why_no_schedule(bounds, readies):
        return readies, None
    maker = _StepsMaker(context, bounds, [{} for _ in bounds], readies)
    joins = not visits and all(part.same_steps for part in parts) and not _share_memory(bounds)
    (maker.joins,) = context._core.allreduce_min([int(joins)])
    _core.choose_chain_layout(maker.members(), context.size, context._off, maker)
    return maker.readies or readies, maker.made


def _share_memory(bounds):
    """Whether nests have arrays that share memory and are not the same."""
    try:
        check_shared(bounds)
    except ConfigError:
        return True
    return False


class _StepsMaker(ChainMaker):
    """Gives nests one layout, and where all time steps are the same one schedule."""

    readies, joins = None, False

    def join(self, readies):
        self.readies, self.made = readies, None
        if self.joins and all(max(ready.sweep.problem.time_buffers) <= 2 for ready in readies):
            super().join(readies)
        return ""


def _parts(nests, loops, arguments):
    """What each nest is given; checked."""
    over, reverse, periodic = loops.over, loops.reverse, loops.periodic
    for nest in nests:
        if nest.time is None:
            raise ConfigError(
                f"run: nest {nest.name!r} has no time; allowed in a time step with others: nests whose first index is "
                "time, which write their arrays at +1"
            )
    for name, value in arguments.items():
        if not any(name in nest.arrays or name in nest.scalars for nest in nests):
            refuse_choices({name: value})
            raise ConfigError(
                f"run: none of the nests {', '.join(nest.name for nest in nests)} has an argument {name!r}"
            )
        if isinstance(value, Scratch) or isinstance(value, Field) and value.keep == "window":
            raise ConfigError(
                f"array {name!r} keeps a rolling window only; allowed for several nests: fields with keep='all'"
            )
    indices = [name for nest in nests for name in nest.indices]
    if not isinstance(periodic, tuple | list) or not all(name in indices for name in periodic):
        raise ConfigError(f"periodic: given {periodic!r}; allowed: a tuple of indices of the nests")
    overs = over if isinstance(over, list | tuple) else [over] * len(nests)
    reverses = reverse if isinstance(reverse, list) else [reverse] * len(nests)
    if len(overs) != len(nests) or len(reverses) != len(nests):
        raise ConfigError(
            f"over= or reverse= is a list of another length than there are nests, {len(nests)}; allowed: one for all, "
            "or one a nest"
        )
    written, parts = set(), []
    everywhere = {name for nest in nests for name in nest.written}
    for nest, bounds, down in zip(nests, overs, reverses, strict=True):
        given = {name: value for name, value in arguments.items() if name in nest.arrays or name in nest.scalars}
        if missing := [name for name in nest.arrays if name not in given]:
            raise ConfigError(f"run: nest {nest.name!r} needs its array {missing[0]!r}")
        loop_directions(indices, down)
        if overs is not over and isinstance(over, dict):
            bounds = {index: pair for index, pair in over.items() if index in nest.indices}
        if reverses is not reverse:
            down = tuple(index for index in reverse if index in nest.indices)
        in_time = set(lacking_time(nest, given))
        check_steps(nest, {name: given[name] for name in nest.arrays}, int(loops.steps))
        _check_reads(nest, in_time & everywhere, written)
        again = frozenset(name for name in nest.written if name in written and name in in_time)
        wraps = tuple(name for name in periodic if name in nest.indices)
        parts.append(_Part(nest, Loops(bounds, down, 1, again, wraps, stepwise=True), given))
        written |= set(nest.written)
    return parts


def _check_reads(nest, changing, written):
    """What a nest only reads and another of the step writes must be there at that time step."""
    for place in nest.places:
        if place.array not in changing or place.array in nest.written:
            continue
        if place.offsets[0] == 1 and place.array not in written:
            raise ConfigError(
                f"{nest.where(place)}: `{nest.text_of(place)}` is read before a nest of the time step has written it; "
                f"allowed: the nest that writes {place.array!r} first, or the time step {nest.time}"
            )
        if place.offsets[0] < 1 and (place.array in written or place.offsets[0] < 0):
            raise ConfigError(
                f"{nest.where(place)}: `{nest.text_of(place)}` is a time step that {place.array!r} no longer has when "
                f"nest {nest.name!r} "
                f"runs, which does not write it; allowed: {nest.time}+1 after the nest that writes it, {nest.time} "
                "before it"
            )


def _histories(parts):
    """By field: how many earlier time steps the nests read, where that is more than it keeps."""
    found = {}
    for part in parts:
        for name in part.nest.written:
            value = part.arguments[name]
            if value.ndim == len(part.nest.axes[name]):
                continue
            depth = depth_of(part.nest, name, part.loops.again)
            if depth and not isinstance(value, Field):
                raise ConfigError(
                    f"array {name!r} is a NumPy array, and nest {part.nest.name!r} reads of it a time step that has "
                    f"been replaced by then; allowed: {name} = tilewave.field(array.shape, array.dtype, array)"
                )
            if depth > (value.history if isinstance(value, Field) else 0):
                found[name] = max(found.get(name, 0), depth)
    return found
