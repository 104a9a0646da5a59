"""What comes before a run: arguments are checked, the body compiled and its rate measured, a plan chosen, all agreed
on.
"""

import dataclasses

import numpy as np

from tilewave.errors import ConfigError, InternalError
from tilewave.machine import measure as machine
from tilewave.nest.nest import Nest
from tilewave.nests.call import known_calls
from tilewave.nests.call.known_calls import CallKey, in_every_bit
from tilewave.nests.call.nest_call import checked_call, description_of, given_call
from tilewave.nests.call.problem import check_steps
from tilewave.nests.call.strided_fields import present_halos
from tilewave.nests.plan import choosing, earlier_plan
from tilewave.nests.rewrites.step_rows import StepRows, like_rows, with_rows_of_steps
from tilewave.nests.run.bound_nest import bind_call
from tilewave.nests.run.row_parts import RowParts
from tilewave.notices import warn
from tilewave.plan.fixed import fixed_by


def prepare(call, loops, arguments, halos=None):
    """Check, compile, measure, plan; agree. Part of a collective call: ``yield from`` it.

    Repeated calls cost one small allreduce. Only when some rank has not prepared the call, or another plan for it,
    all ranks measure and plan together; or when runs have taken so long that planning may spend more.

    Parameters
    ----------
    call : RunCall
        Of one nest.
    loops, arguments
        In place of those that the call was given.
    halos : dict, optional
        By field, the least halo that its layout must have, as `make_problem` takes it.

    Raises
    ------
    ConfigError
        The same on every rank.
    """
    nest, context = call.nests, call.context
    if isinstance(nest, Nest) and (with_rows := with_rows_of_steps(nest, loops, arguments)).rows:
        return (yield from _prepared_rows(dataclasses.replace(call, nests=with_rows), loops, arguments))
    yield from machine.looked_up(context)
    given = known = found = ready = error = key = None
    description = ""
    try:
        if not isinstance(call.fastmath, (bool, np.bool_)):
            raise ConfigError(f"fastmath: given {type(call.fastmath).__name__}; allowed: True, False")
        halos = present_halos(nest, arguments) if halos is None else halos
        fixed = fixed_by(call.plan, call.planning)
        key = None if halos else key_of(call, loops, arguments, fixed)
        known = known_calls.find(context, key)
        given = known.with_arrays(arguments) if known else None
        given = given or checked_call(call, loops, arguments, fixed, halos)
        # fitted() makes the problem of the call, which looks at its bounds.
        found = context._prepared.get(given.key) or earlier_plan.fitted(context, given)
        warn_of_short_arrays(context, (found or given).problem.short)
        if found is not None and found.runs is not None and found.runs.enough():
            found = None
        if found is not None:
            ready = bind_call(context, given, found)
        if not known:
            given.description = description_of(given, (found or given).problem)
        if key and not known and given.may_be_known():
            known = given.without_arrays()
            known_calls.keep(context, key, known, known_calls.arrays_of((nest,), arguments))
        description = given.description
    except BaseException as problem:
        error = problem
    prepared = found.number if found else 0
    if not (yield (description, prepared) if error is None else error):
        ready = yield from _decide(context, given)
    ready.known = known
    return ready


def _prepared_rows(call, loops, arguments):
    """What runs a nest that writes rows for several time steps; part of a collective call."""
    error = rows = None
    try:
        given = given_call(call, loops, arguments)
        rows = StepRows(given)
        check_steps(rows.nest, like_rows(given.nest, given.arrays), loops.steps)
    except BaseException as problem:
        error = problem
    if error is not None:
        yield error

    def prepare_part(nest, loops, arguments):
        return prepare(dataclasses.replace(call, nests=nest), loops, arguments)

    return (yield from RowParts(rows, arguments, prepare_part).prepared(0, int(loops.steps), given.scalars))


def key_of(call, loops, arguments, fixed):
    """The `CallKey` of a call, whose scalars count in every bit; None where it may be known for no other."""
    nest, (plan, choices) = call.nests, fixed
    if plan is not None or not isinstance(nest, Nest):
        return None
    others = []
    if len(arguments) > len(nest.arrays):
        others = in_every_bit({name: value for name, value in arguments.items() if name not in nest.arrays})
    given = loops.backwards, others, in_every_bit(choices), bool(call.fastmath), call.reduce and repr(call.reduce)
    return CallKey.of((nest,), call.context, arguments, loops.key(nest), *given)


def warn_of_short_arrays(context, texts):
    """Warn once at each line of the program, on rank 0."""
    if texts and context.rank == 0:
        warn(texts[0])


def _decide(context, given):
    """A call with a plan from numbers that all ranks have measured together; collective."""
    ready = error = prepared = None
    try:
        before = given and context._prepared.get(given.key)
        prepared = choosing.decide(context, given, before)
        if prepared is not None:
            choosing.warn_of_unused_threads(context, prepared.plan)
            ready = bind_call(context, given, prepared)
    except BaseException as problem:
        error = problem
    yield f"plan {prepared and prepared.plan.choices()}" if error is None else error
    if prepared is None:
        raise InternalError(f"nest {given.nest.name!r}: the ranks have listed different alternatives")
    context._prepared[given.key] = prepared
    known_calls.forget_runs(context)
    earlier_plan.remember(context, given, prepared)
    return ready
