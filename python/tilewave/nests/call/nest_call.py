"""What is known of a call before it runs: its arguments, checked, and the key that equal calls share."""

import dataclasses
import functools

import numpy as np

from tilewave.context.checksum import checksum
from tilewave.errors import ConfigError
from tilewave.field.field import Field
from tilewave.kernel.compile import kernel_key
from tilewave.nest.bounds import Loops, loop_bounds
from tilewave.nest.inner_loops import extents_of
from tilewave.nest.nest import Nest
from tilewave.nest.timeless import without_time
from tilewave.nest.unreached import check_reached
from tilewave.nests.call.arguments import check_arrays, fields_for_scratch, split_arguments
from tilewave.nests.call.operands import as_replicated, copies_of, memory_form, replicated_fields, tables_of
from tilewave.nests.call.pivot import check_pivot
from tilewave.nests.call.problem import box_of_loops, check_one_valued, history_of, make_problem
from tilewave.nests.call.step_blocks import block_of
from tilewave.nests.rewrites import OF_BODIES, OF_LOOPS, rewritten
from tilewave.nests.rewrites.backwards import check_backwards, scalars_of
from tilewave.nests.rewrites.given_call import GivenCall
from tilewave.plan.plan import Plan


@dataclasses.dataclass(frozen=True)
class NestKey:
    """Equal for calls that what was prepared for one of them serves, with arrays that lie alike."""

    kernel: tuple  # body, types, ranges of integers: `tilewave.kernel.compile.kernel_key`
    reductions: tuple
    nest: str  # its name
    lines: tuple  # where its body stands, for the text of errors
    loops: tuple
    memory: tuple  # how each array lies in a run
    history: tuple  # earlier time steps that each written array keeps
    plan: tuple | None  # the choices of a given plan
    choices: str  # that were given one by one
    machine: int  # which of its machines the context plans with
    copies: tuple  # fields of which every rank gets a copy
    halos: tuple  # by field, the least that its layout must have
    facts: tuple = ()  # of a derived key: what else counts

    def family(self, facts):
        """Equal for calls that differ in bounds, steps and the sizes of integers only.

        Kernels are compiled for ranges of integers; plans are the same for all ranges.
        """
        signature, dtypes, slots, choices = self.kernel
        kernel = signature, dtypes, tuple((slot.name, slot.type) for slot in slots), choices
        return dataclasses.replace(self, kernel=kernel, loops=(), facts=facts)


#: What a `NestCall` has of the `GivenCall` that it is made of.
OF_GIVEN_CALL = ("nest", "loops", "dtypes", "scalars", "captured", "reductions", "after", "reduce", "halos")


@dataclasses.dataclass
class NestCall:
    """The arguments of one call, checked on this rank."""

    nest: Nest
    loops: Loops
    plan: Plan
    choices: dict
    fastmath: bool
    arrays: dict  # as the core sees them
    whole: dict  # as they were given, fields in place of scratch
    called: dict  # of the nest that was given, whatever stands in its place
    replicated: list
    dtypes: dict
    scalars: dict
    captured: dict  # numbers from outside the body that its kernel is given when it runs
    tables: dict
    reductions: object  # what `rewrites.reductions` made of it
    after: tuple  # what rewrites have to do behind a run
    reduce: dict
    threads: int
    off: int  # fast paths that are switched off
    block: int  # time steps that are prepared, where more are run; else None
    key: NestKey
    compared: bool  # whether other ranks are given NumPy arrays, too, and these must be equal
    halos: dict = dataclasses.field(default_factory=dict)  # by field, the least that its layout must have
    at_once: object = None  # the `KnownRun` of equal calls, where they can be run at once
    description: str = ""  # what must be equal on all ranks
    packed: dict = dataclasses.field(
        default_factory=dict
    )  # by the kernel that has it: its environment, shared by equal calls

    @functools.cached_property
    def problem(self):
        """The loops, arrays and dependences of what is prepared: of a block of time steps where there are more."""
        loops = dataclasses.replace(self.loops, steps=self.block or self.loops.steps)
        halos = {name: halo for name, halo in self.halos.items() if name not in self.replicated}
        problem = make_problem(self.nest, self.arrays, loops, halos=halos, reduced=self.reductions.nest, off=self.off)
        problem.core.once = bool(self.nest.updates)
        return problem

    def may_be_known(self):
        """Whether all that it has of arrays can be had again from these."""
        return not self.replicated and self.whole is self.called

    def without_arrays(self):
        """The same for calls to come, which will hold their arrays themselves."""
        return dataclasses.replace(self, arrays=None, whole=None, called=None, tables=None)

    def with_arrays(self, arguments):
        """The same of a call with these arrays, among others. Half of what `copy.copy` takes."""
        other, arrays = object.__new__(NestCall), {name: arguments[name] for name in self.nest.arrays}
        tables = tables_of(self.nest, arrays) if self.nest.tables else {}
        other.__dict__.update(self.__dict__, arrays=arrays, whole=arrays, called=arrays, tables=tables)
        return other


def given_call(call, loops, arguments, plan_loops=0, halos=None):
    """A `RunCall` with its arguments sorted and checked one by one, behind the rewrites of its loops; local."""
    nest, context, reduce = call.nests, call.context, call.reduce
    arrays, scalars = split_arguments(nest, arguments)
    if nest.pivot:
        check_pivot(nest, arrays, loops)
    nest = without_time(nest, loops, arrays)
    arrays = fields_for_scratch(nest, arrays, context, loops.steps)
    check_arrays(nest, arrays, context)
    arrays = {
        name: np.asarray(value) if isinstance(value, np.ndarray) else value for name, value in arrays.items()
    }  # no subclass
    facts = {"reduce": reduce, "plan_loops": plan_loops, "halos": halos or {}}
    return rewritten(GivenCall(nest, loops, context, arrays, scalars, **facts), OF_LOOPS)


def checked_call(call, loops, arguments, fixed, halos=None):
    """The arguments of a `RunCall`, with these loops, arrays and scalars, and what its plan fixes; local."""
    nest, context, fastmath, reduce, (plan, choices) = call.nests, call.context, call.fastmath, call.reduce, fixed
    if not isinstance(nest, Nest):
        raise ConfigError(f"run: given {type(nest).__name__}; allowed: a function under @tilewave.nest")
    call = given_call(call, loops, arguments, _extents_given(plan, choices), halos)
    nest, loops, called = call.nest, call.loops, call.arrays
    check_backwards(nest, called, loops, reduce)
    scalars = nest.bind_scalars({**call.scalars, **scalars_of(nest, loops)})
    captured = {**nest.captured().values, **extents_of(nest, called)}
    if nest.numbers & {*nest.indices}:  # conditions may be on them
        box = box_of_loops(nest, called, loops.steps, loops.periodic)
        check_reached(nest, called, scalars, loops, loop_bounds(nest.indices, box, loops.over))
    call = rewritten(dataclasses.replace(call, scalars=scalars, captured=captured), OF_BODIES)
    nest, loops, arrays, reductions = call.nest, call.loops, call.arrays, call.reductions
    if loops.steps is not None and nest.time is not None:
        check_one_valued(nest, arrays)
    replicated = replicated_fields(nest, arrays, context, loops.steps)
    seen = {name: as_replicated(value) if name in replicated else value for name, value in arrays.items()}
    tables = tables_of(nest, seen)
    block = block_of(nest, arrays, loops, plan, choices)
    # However many blocks there are, one is prepared.
    key = NestKey(
        kernel=kernel_key(reductions.nest, call.dtypes, call.scalars, fastmath, captured=captured),
        reductions=tuple(reductions.for_core(())),
        nest=nest.name if loops.inner_points == 1 else f"{nest.name} {loops.inner_points.bit_length()}",
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
        **{name: getattr(call, name) for name in OF_GIVEN_CALL},
        plan=plan,
        choices=choices,
        fastmath=fastmath,
        arrays=seen,
        whole=arrays,
        called=called,
        replicated=replicated,
        tables=tables,
        threads=context.threads,
        off=context._off,
        block=block,
        key=key,
        compared=context._ranks.number > 1,
    )


def _extents_given(plan, choices):
    """Of how many loops a plan is, or the choices that are fixed; 0 where none says."""
    given = [len(plan.tile)] if plan else [len(value) for value in choices.values() if isinstance(value, tuple)]
    return given[0] if given else 0


def description_of(given, problem):
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
        f"downwards {problem.downwards} backwards {given.loops.backwards} steps {given.loops.steps} "
        f"periodic {given.loops.periodic}, "
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
