"""Several nests, one after another in each time step."""

from __future__ import annotations

import dataclasses
import math

from tilewave import _core
from tilewave.context import collective
from tilewave.context.collective import plain
from tilewave.errors import ConfigError, shown
from tilewave.field.field import Field
from tilewave.nests.call import known_calls
from tilewave.nests.call.arguments import as_numbers
from tilewave.nests.call.run_call import RunCall
from tilewave.nests.call.step_members import histories_of, parts_of, reductions_of
from tilewave.nests.chain import in_blocks
from tilewave.nests.chain.body import ChainMaker, check_shared, why_no_schedule
from tilewave.nests.chain.films import films_of
from tilewave.nests.chain.request import Request, Until, count_of
from tilewave.nests.chain.time_step import KnownSteps, TimeStep, exact_key, key_of
from tilewave.nests.chain.turns import turns_of
from tilewave.nests.points.points import Points
from tilewave.nests.run.bound import Bound
from tilewave.nests.run.execute import stored
from tilewave.nests.run.repetitions import Separate, repeated
from tilewave.plan.fixed import USUAL, fixed_by
from tilewave.plan.plan import CHOICES, Plan

#: Bytes of arrays that time steps might move from layout to layout, from which on nests are planned for one layout in
#: common, or made one schedule: 8 MB move in 3 ms, and planning three nests once more takes as long.
LEAST_MOVED_BYTES = 1 << 23
#: A move between ranks takes as long as a move of so many bytes more on one rank, 40 us; the run of a nest by itself
#: takes half of that more than in one schedule.
BYTES_OF_RANKS, BYTES_OF_RUN = 1 << 17, 1 << 16


def run_several(call, begun):
    """Run nests one after another in each time step; part of a collective call: ``yield from`` it.

    Parameters
    ----------
    call : RunCall
    begun : float
        When it began.

    Returns
    -------
    ChainReport
    """
    request, ready = yield from time_step_of(call)
    try:
        report = yield from repeated(call.context, request, begun)
    finally:
        ready.body.leave_arrays()
    again = ready.may_run_again(request) and not windows_of(call.arguments)
    if again and (key := exact_key(call)):
        arrays = known_calls.arrays_of(key.nests, call.arguments)
        known_calls.keep(call.context, key, KnownSteps(request, call.context), arrays)
    return report


def time_step_of(call, together=False):
    """What runs nests one after another in each time step; part of a collective call.

    Parameters
    ----------
    call : RunCall
    together : bool
        Whether they are to be one schedule where they can be, however small their arrays are.

    Returns
    -------
    (Request, TimeStep)
    """
    error = ready = given = request = None
    description, context, calls = "", call.context, 0
    try:
        call = dataclasses.replace(call, arguments=as_numbers(call.nests, call.arguments, copies=True))
        request, given = _checked(call)
        known = None if together else known_calls.find(context, key_of(call, *given, request.looks))
        if known and known.moved:
            calls, known.calls = known.calls, known.calls + 1
            known = None if known.moved * known.calls >= LEAST_MOVED_BYTES else known
        known = None if known and known.body.looks and not request.in_blocks else known
        ready = known.with_arguments(call.arguments, request.times) if known and known.serves(request.times) else None
        if ready and ready.body.quick and request.agreed is None:
            ready.body.prepare(request.times)
        description = request.text
    except BaseException as problem:
        error = problem
    if not (yield error or (description, ready.number if ready else 0)):
        ready = yield from _prepared(call, given, request, together, calls)
        # Fields may keep a longer history by now.
        known = not together and not windows_of(call.arguments) and ready.may_be_known()
        if known and (key := key_of(call, *given, request.looks)):
            known_calls.keep(context, key, ready.without_arrays(), known_calls.arrays_of(given[0], call.arguments))
    request.body = ready.body
    return request, ready


def _checked(call):
    """Return the `Request` of a call, and its nests, choices and reductions, checked; local."""
    nests = tuple(call.nests) if isinstance(call.nests, tuple | list) else (call.nests,)
    arguments, steps, choices = call.arguments, call.loops.steps, _choices_of(nests, call)
    points = Points(call.inject, call.record, nests, arguments, steps)
    reduce = reductions_of(nests, call.reduce)
    until, every = None if call.until is None else Until(reduce, call.until), count_of("every", call.every, 1)
    names, scalars = tuple(nest.name for nest in nests), {name for nest in nests for name in nest.scalars}
    scalars = {name: value for name, value in arguments.items() if name in scalars}
    text = plain(
        f"nests {', '.join(names)}, {steps} steps, scalars {scalars}, {points}, reductions {reduce}, "
        f"until {until and until.text}, every {every}"
    )
    none = [{} for _ in nests]
    request = Request(names, int(steps), every, until, points, none, text, unit="time steps")
    if points or until:
        request.agreed = _core.BoundCall("tw.run", text)
    request.looks = in_blocks.looks_of(nests, request, call.context._off)
    request.films = films_of(nests, points, call.context._off)
    request.in_blocks, request.in_schedule = in_blocks.may_be(nests, call, points, request.films)
    return request, (nests, choices, reduce)


def _choices_of(nests, call):
    """Return what is fixed of the plan of each nest."""
    plans = call.plan if isinstance(call.plan, tuple | list) else [call.plan] * len(nests)
    if len(plans) != len(nests) or isinstance(call.plan, Plan) and len(nests) > 1:
        raise ConfigError(
            f"plan={shown(call.plan)} was given for {len(nests)} nests; allowed: a dict for all of them, or a list "
            "with a plan, a dict or None for each"
        )
    each = [fixed_by(plan, call.planning) for plan in plans]
    return [choices | (dict(zip(CHOICES, whole.choices(), strict=True)) if whole else {}) for whole, choices in each]


def _prepared(call, given, request, together, calls):
    """Prepare a `TimeStep` for a call after so many equal ones; part of a collective call."""
    (nests, choices, reduce), context, arguments = given, call.context, call.arguments
    error, parts, histories, windows = None, [], {}, windows_of(arguments)
    try:
        parts = parts_of(nests, context, call.loops, arguments, reduce)
        histories = histories_of(parts)
    except BaseException as problem:
        error = problem
    yield error or f"windows {windows}, histories {sorted(histories)}"
    whole = {name: stored(arguments[name], context) for name in windows}  # for all nests of a time step
    for part in parts:
        part.arguments.update((name, field) for name, field in whole.items() if name in part.arguments)
    for name, count in sorted(histories.items()):
        context._moves({**arguments, **whole}[name]._storage.keep_history, count)
    number, bounds = context._core.started, []
    if request.looks and request.in_blocks and not windows and not together:
        own = RunCall(None, context, None, None, choices[0], choices[0].get("planning", USUAL), call.fastmath)
        if body := (yield from in_blocks.prepared(own, parts[0], request)):
            return TimeStep(number, request.times, body.readies, body)
    for part, own in zip(parts, choices, strict=True):
        fixed = {name: value for name, value in own.items() if name != "planning"}
        planning, fixed = own.get("planning", USUAL), fixed or part.simplest(context._off)
        given = part.nest, context, part.loops, part.arguments, fixed, planning, call.fastmath, part.reduce
        bounds.append(Bound(RunCall(*given)))
        yield from bounds[-1]._prepare_first()
    readies, scalars = [bound._first.ready for bound in bounds], [{} for _ in bounds]
    turns = yield from turns_of(bounds, readies, scalars, request.times, request.films)
    moved = _moved_bytes(context, parts, request.times)
    few = context._core.allreduce_min([moved * (calls + 1)])[0] < LEAST_MOVED_BYTES and not together
    readies, body, why = _in_one_layout(context, parts, turns, request.times, few)
    if body is None:
        steps, joined = [bound._steps for bound in bounds], [part.joined for part in parts]
        body = Separate(readies, steps, f"each time step is a run of each nest: {why}", joined=joined)
    for bound in bounds + turns.bounds:  # it refers to itself: its arrays would live until the next garbage collection
        bound._variants.clear()
        bound._first = None
    prepares = body.quick and request.agreed is None
    yield from collective.ready("one schedule", lambda: body.prepare(request.times) if prepares else None)
    return TimeStep(number, request.times, readies, body, moved * (few and not body.quick))


def _moved_bytes(context, parts, steps):
    """Return the bytes that time steps may move from layout to layout, and those that take as long as their runs."""
    arrays = [part.arguments[name] for part in parts for name in part.nest.arrays]
    moved = sum(array.dtype.itemsize * math.prod(array.shape) for array in arrays)
    return steps * (moved + (BYTES_OF_RUN + BYTES_OF_RANKS * (context.size > 1)) * len(parts))


def _in_one_layout(context, parts, turns, steps, few):
    """A `BoundNest` for each nest, with one layout of the fields that they share, and the schedule that they are, or
    None and why not; collective.
    """
    bounds, readies = turns.nests, [bound._first.ready for bound in turns.nests]
    why = why_no_schedule(turns) or ("" if steps else "there is no time step")
    if not why and few:
        why = f"a schedule of all is made where equal calls have {LEAST_MOVED_BYTES >> 20} MB to move"
    if why:
        return readies, None, why
    maker = _StepsMaker(context, turns)
    each = [(part, ready.problem.nest) for part, ready in zip(parts, readies, strict=True)]
    joins = all(part.same_steps(nest) for part, nest in each) and not _share_memory(bounds)
    (maker.joins,) = context._core.allreduce_min([int(joins)])
    why = _core.choose_chain_layout(maker.members(), context.size, context._off, maker)
    if maker.readies and not turns.wholes:
        readies = maker.readies
    return readies, maker.made, why or "its time steps are not all the same"


def windows_of(arguments):
    """The names of fields that keep a rolling window only."""
    return sorted(name for name, value in arguments.items() if isinstance(value, Field) and value.keep == "window")


def _share_memory(bounds):
    """Whether nests have arrays that share memory and are not the same."""
    try:
        check_shared([member for bound in bounds for member in bound._members])
    except ConfigError:
        return True
    return False


class _StepsMaker(ChainMaker):
    """Gives nests one layout, and where all time steps are the same one schedule."""

    readies, joins, in_steps = None, False, True

    def join(self, readies):
        self.readies, self.made = readies, None
        if self.joins:
            super().join(readies)
        return ""
