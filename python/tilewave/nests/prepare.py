"""What comes before a run: arguments are checked, the body compiled and its rate measured, a plan chosen, all agreed
on.
"""

import dataclasses
import functools

import numpy as np

from tilewave.errors import ConfigError, InternalError
from tilewave.field.create import Scratch
from tilewave.field.field import Field
from tilewave.field.values import values_at
from tilewave.kernel.compile import kernel_key
from tilewave.machine import measure as machine
from tilewave.nest.nest import Nest
from tilewave.nest.views import elements_of
from tilewave.nests import choosing, reductions
from tilewave.nests.call_key import CallKey
from tilewave.nests.operands import memory_form, operands_of, tables_of
from tilewave.nests.plan_changes import earlier_plan
from tilewave.nests.prepared import BoundNest, NestCall
from tilewave.nests.problem import check_arrays, history_of
from tilewave.nests.repeated import Call
from tilewave.nests.replicated import as_replicated, copies_of, replicated_fields
from tilewave.nests.scaled import present_halos
from tilewave.nests.steps import block_of, for_steps
from tilewave.plan import planning
from tilewave.plan.fixed import fixed_by, refuse_choices
from tilewave.runtime.checksum import checksum


def prepare(nest, context, loops, plan, fastmath, arguments, reduce, halos=None):
    """Check, compile, measure, plan; agree. Part of a collective call: ``yield from`` it.

    Repeated calls cost one small allreduce. Only when some rank has not prepared the call, or another plan for it,
    all ranks measure and plan together. `halos`: by field, the least halo that its layout must have, as `make_problem`
    takes it.

    Raises
    ------
    ConfigError
        On every rank alike.
    """
    yield from machine.looked_up(context)
    given = found = ready = error = None
    description = ""
    try:
        if not isinstance(fastmath, (bool, np.bool_)):
            raise ConfigError(f"fastmath: given {type(fastmath).__name__}; allowed: True, False")
        halos = present_halos(nest, arguments) if halos is None else halos
        fixed = fixed_by(plan)
        call = None if halos else Call.of(nest, context, loops, *fixed, fastmath, arguments, reduce)
        known = call and call.known(context._calls)
        given = known or _check(nest, context, loops, *fixed, fastmath, arguments, reduce, halos)
        found = context._prepared.get(given.key) or earlier_plan.fitted(context, given)
        if found is not None:
            ready = _bind(context, given, found)
        if not known:
            given.description = _description(given, (found or given).problem)
        if call and not known:
            call.keep(context._calls, given)
        description = given.description
    except BaseException as problem:
        error = problem
    prepared = found.number if found else 0
    if not (yield (description, prepared) if error is None else error):
        ready = yield from _decide(context, given)
    if planning.wanted is not None:
        raise planning.Planned(ready.plan)
    return ready


def _decide(context, given):
    """A call with a plan from numbers that all ranks have measured together; collective."""
    ready = error = prepared = None
    try:
        prepared = choosing.decide(context, given)
        if prepared is not None:
            choosing.warn_of_unused_threads(context, prepared.context, prepared.plan)
            ready = _bind(context, given, prepared)
    except BaseException as problem:
        error = problem
    yield f"plan {prepared and prepared.plan.choices()}" if error is None else error
    if prepared is None:
        raise InternalError(f"nest {given.nest.name!r}: the ranks have listed different alternatives")
    context._prepared[given.key] = prepared
    earlier_plan.remember(context, given, prepared)
    return ready


def _fields_for_scratch(nest, arrays, context, steps):
    """The fields of arrays that were given as scratch: along each index but time as long as the longest other array."""
    longest = {}
    for view in nest.views:
        if isinstance(value := arrays[view.array], Scratch):
            if view.scaled:
                raise ConfigError(
                    f"array {view.array!r}: given scratch, and its subscripts multiply loop indices; allowed: a field"
                )
            continue
        for index, (scale, residue), extent in zip(
            reversed(view.axes), reversed(view.own_phases()), reversed(getattr(value, "shape", ()))
        ):
            extent = elements_of(extent, scale, residue)
            longest[index] = max(longest.get(index, 0), extent)
    made = {}
    for name, value in arrays.items():
        if isinstance(value, Scratch):
            if name in nest.tables or name not in nest.written:
                raise ConfigError(f"array {name!r}: given scratch; allowed: where nest {nest.name!r} writes it")
            axes = nest.axes[name][steps is not None and nest.axes[name][0] == nest.time :]
            if missing := [index for index in axes if index not in longest]:
                raise ConfigError(
                    f"array {name!r}: given scratch, and no other array has index {missing[0]!r}, "
                    "from which its length would follow; allowed: a field with keep='window'"
                )
            shape = tuple(longest[index] for index in axes)
            init = value.init if callable(value.init) else np.broadcast_to(np.asarray(value.init, value.dtype), shape)
            value = Field(context, shape, value.dtype, "window", init)
        made[name] = value
    return made


def _check(nest, context, loops, plan, choices, fastmath, arguments, reduce, halos):
    """The arguments as they are; local."""
    if not isinstance(nest, Nest):
        raise ConfigError(f"run: given {type(nest).__name__}; allowed: a function under @tilewave.nest")
    arrays, scalars = _sort(nest, arguments)
    arrays = _fields_for_scratch(nest, arrays, context, loops.steps)
    check_arrays(nest, arrays, context)
    arrays = {
        name: np.asarray(value) if isinstance(value, np.ndarray) else value for name, value in arrays.items()
    }  # no subclass
    scalars = nest.bind_scalars(scalars)
    dtypes = {name: arrays[name].dtype for name in nest.arrays}
    tables = tables_of(nest, arrays)
    replicated = replicated_fields(nest, arrays, context, loops.steps)
    seen = {name: as_replicated(value) if name in replicated else value for name, value in arrays.items()}
    captured = nest.captured().values
    reduced = reductions.check(nest, reduce, dtypes, scalars, captured)
    block = block_of(nest, arrays, loops, plan, choices)
    # However many blocks there are, one is prepared.
    key = CallKey(
        kernel=kernel_key(reduced.nest, dtypes, scalars, fastmath, captured=captured),
        reductions=tuple(reduced.told(())),
        nest=nest.name,
        lines=nest.lines(),
        loops=(*dataclasses.replace(loops, steps=block).key(nest), "block") if block else loops.key(nest),
        memory=tuple(memory_form(seen[name]) for name in nest.arrays),
        history=tuple(history_of(nest, arrays, name, loops.again) for name in nest.written if loops.steps is not None),
        plan=plan and plan.choices(),
        choices=repr(sorted(choices.items())),
        machine=context._machine_number,
        copies=tuple(copies_of(arrays, replicated)),
        halos=tuple(sorted(halos.items())) if halos else (),
    )
    return NestCall(
        nest=nest,
        loops=loops,
        plan=plan,
        choices=choices,
        fastmath=fastmath,
        arrays=seen,
        whole=arrays,
        replicated=replicated,
        dtypes=dtypes,
        scalars=scalars,
        captured=captured,
        tables=tables,
        reductions=reduced,
        reduce=reduce,
        threads=context.threads,
        off=context._off,
        block=block,
        key=key,
        compared=context.size > 1 and planning.wanted is None,
        halos=halos or {},
    )


def _description(given, problem):
    """What must be equal on all ranks, as text."""
    nest, arrays, dtypes = given.nest, given.arrays, given.dtypes
    values = ", ".join(f"{name}={value!r}" for name, value in given.scalars.items())
    plan = (
        f"plan {given.plan.choices()}"
        if given.plan
        else (
            ", ".join(f"{name}={value!r}" for name, value in sorted(given.choices.items()))
            or f"threads {given.threads}"
        )
    )
    return (
        f"nest {nest.name!r} {nest.signature()[:12]}, loops {problem.bounds.box} {problem.bounds.constraints} "
        f"downwards {problem.downwards} steps {given.loops.steps} periodic {given.loops.periodic}, "
        f"{', '.join(f'{n}: {dtypes[n]} {arrays[n].shape} {_kind(given, given.whole[n])}' for n in nest.arrays)}, "
        f"scalars {values or 'none'}, "
        f"fastmath {given.fastmath}, {plan}, reductions {given.reduce!r}"
    )


def _kind(given, array):
    """Of what is given for an array: it decides who has which elements."""
    if isinstance(array, Field):
        return f"field {array._number}, keep {array.keep}"
    return (
        f"NumPy array, checksum {checksum(array)}"
        if given.compared and array.dtype.hasobject is False
        else "NumPy array"
    )


def _sort(nest, arguments):
    """Split keywords into arrays and scalars."""
    arrays = {name: value for name, value in arguments.items() if name in nest.arrays}
    scalars = {name: value for name, value in arguments.items() if name in nest.scalars}
    if others := {name: value for name, value in arguments.items() if name not in arrays and name not in scalars}:
        refuse_choices(others)
        raise ConfigError(
            f"run: nest {nest.name!r} has no argument {next(iter(others))!r}; allowed: arrays "
            f"{', '.join(nest.arrays)}; scalars {', '.join(nest.scalars) or 'none'}"
        )
    if missing := [name for name in nest.arrays if name not in arrays]:
        raise ConfigError(f"run: nest {nest.name!r} needs its array {missing[0]!r}")
    return arrays, scalars


def _bind(context, given, found):
    """What was prepared, with this call's arrays."""
    nest, plan, steps, planned_for = given.nest, found.plan, None, None
    if given.block:
        steps = int(given.loops.steps)
        found.sweep.prepare_steps(steps)
        planned_for = functools.partial(for_steps, plan, given.block, found.sweep.problem.space[1][0], found.border_s)
        plan = planned_for(steps)
    initial = {name: values_at(given.whole[name], points) for name, points in found.subscripts.items()}
    stored = [
        name
        for name in nest.written
        if given.whole[name].__class__ is Field and given.whole[name].keep == "window" and name not in found.subscripts
    ]
    operands, copies = ([], []) if stored or found.on_one_rank else operands_of(nest, given.arrays, initial)
    values = {**given.scalars, **given.captured}
    return BoundNest(
        context=context,
        kernel=found.kernel,
        sweep=found.sweep,
        operands=operands,
        environment=_environment(given, found.kernel, values),
        tables=given.tables,
        copies=copies,
        sequential=found.problem.sequential,
        arrays=given.whole,
        replicated=[] if found.on_one_rank else given.replicated,
        on_one_rank=found.on_one_rank,
        stored=stored,
        initial=initial,
        reductions=given.reductions,
        dtypes=given.dtypes,
        plan=plan,
        loops=given.loops,
        steps=steps,
        problem=found.problem,
        values=values,
        planned_for=planned_for,
        rate=found.rate,
    )


def _environment(given, kernel, values):
    """The kernel's environment, and its address: equal calls have equal scalars, and tables of equal shapes and
    strides.
    """
    environment = given.packed.get(kernel)
    if environment is None:
        packed = kernel.pack(values, given.tables)
        environment = packed, packed.ctypes.data
        given.packed.clear()
        if not kernel.copies_tables:
            given.packed[kernel] = environment
    return environment
