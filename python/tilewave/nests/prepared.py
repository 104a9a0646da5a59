"""What is known of a call before it runs: its arguments, its problem, and what was made for a plan of it."""

import dataclasses
import functools
import weakref

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.field.field import Field
from tilewave.kernel.compile import compile_kernel, kernel_key, layouts_of
from tilewave.kernel.rows.streams import Staggered
from tilewave.kernel.scalars import Slot
from tilewave.nest.bounds import Loops
from tilewave.nest.nest import Nest
from tilewave.nests.call_key import CallKey
from tilewave.nests.operands import operands_of, tables_of
from tilewave.nests.problem import make_problem
from tilewave.plan.plan import Plan

#: Those that some context still runs, of all nests. Nests that are defined again and again, as in a function, are
#: equal.
kernels = weakref.WeakValueDictionary()


@dataclasses.dataclass
class BoundNest:
    """A prepared nest with the arrays and scalars of a call: all that a run needs, made on all ranks or on none."""

    context: object
    kernel: object
    sweep: object
    operands: list
    environment: (
        tuple  # what the kernel is given in addition to arrays: an array, which must live as long, and its address
    )
    tables: dict
    copies: list  # (written array, aligned copy): written back after the run
    sequential: str
    arrays: dict
    replicated: list  # fields that every rank gets whole
    on_one_rank: bool  # one rank computes for all
    stored: list  # arrays that could keep a rolling window only, but not in this run
    initial: dict  # of the others: values of elements that no point computes
    reductions: object
    dtypes: dict
    plan: Plan  # with what it is predicted to take
    loops: Loops
    steps: int = None  # of time, where the sweep is of a block of them
    first_step: int = 0  # of time
    problem: object = None
    values: dict = None  # scalars, and numbers from outside the body
    planned_for: object = None  # gives the plan, with what it is predicted to take, for another number of steps
    rate: object = None  # that the plan was chosen with: the core's MeasuredRate

    def core_kernel(self):
        """The kernel as the core runs it, with scalars and tables as they are now."""
        return core_kernel(self.kernel, self.environment[1], self.tables, self.reductions)

    def take_current_values(self):
        """Give the kernel the tables as they are now."""
        self.tables = tables_of(self.kernel.nest, self.arrays)
        packed = self.kernel.pack(self.values, self.tables)
        self.environment = packed, packed.ctypes.data

    def ranges(self):
        """The range of each loop index; the least and the greatest one of an index whose bounds depend on others."""
        ranges = dict(zip(self.problem.nest.indices, self.problem.bounds.box, strict=True))
        if self.steps is not None:
            ranges[self.problem.nest.time] = (0, self.steps)
        return ranges


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
    replicated: list
    dtypes: dict
    scalars: dict
    captured: dict  # numbers from outside the body that its kernel is given when it runs
    tables: dict
    reductions: object  # what `reductions.check` made of it
    reduce: dict
    threads: int
    off: int  # fast paths that are switched off
    block: int  # time steps that are prepared, where more are run; else None
    key: CallKey
    compared: bool  # whether other ranks are given NumPy arrays, too, and these must be equal
    halos: dict = dataclasses.field(default_factory=dict)  # by field, the least that its layout must have
    description: str = ""  # what must be equal on all ranks
    packed: dict = dataclasses.field(
        default_factory=dict
    )  # by the kernel that has it: its environment, shared by equal calls

    @functools.cached_property
    def problem(self):
        """The loops, arrays and dependences of what is prepared: of a block of time steps where there are more."""
        loops = dataclasses.replace(self.loops, steps=self.block or self.loops.steps)
        problem = make_problem(self.nest, self.arrays, loops, halos=self.halos, off=self.off)
        problem.core.once = bool(self.reductions)
        return problem

    def with_arrays(self, arrays, tables):
        """The same of a call with these arrays. Half of what `copy.copy` takes."""
        other = object.__new__(NestCall)
        other.__dict__.update(self.__dict__, arrays=arrays, whole=arrays, tables=tables)
        return other


@dataclasses.dataclass
class PreparedNest:
    """Problem, plan, schedule and kernel of a nest: what a repeated call finds."""

    problem: object
    on_one_rank: bool
    context: object  # where the sweep runs
    choices: dict  # with the rows that suit the body
    sweep: object = None
    kernel: object = None
    made_from: tuple = ()  # what the kernel was compiled from
    #: Of rolling-window arrays: the elements that points read and none computes.
    subscripts: dict = dataclasses.field(default_factory=dict)
    plan: Plan = None
    rate: object = None  # of the body, that it was chosen with: the core's MeasuredRate
    border_s: float = 0.0  # additional seconds of a block of time steps that follows another block
    number: int = 0  # stands for the plan in the agreement


def with_plan(given, prepared, core):
    """The same with the schedule and the kernel for a plan; local."""
    context, nest = prepared.context, given.nest
    sweep = _core.PreparedSweep(context._core, prepared.problem.core, core)
    arrays = arrays_there(given, prepared)
    subscripts = {
        view.array: np.frombuffer(sweep.initial(a), np.int64).reshape(-1, arrays[view.array].ndim)
        for a, view in enumerate(nest.views)
        if sweep.in_window(a)
    }
    operands = probe(given, prepared, subscripts)[0]
    steps = tuple(
        _elements(step, given.dtypes[place.array].itemsize)
        for step, place in zip(sweep.row_steps(operands), nest.places, strict=True)
    )
    steps += (1,) * len(given.reductions.values)
    made_from = (
        steps,
        sweep.independent_rows,
        bool(subscripts),
        _same_row(sweep, steps),
        given.reductions.bests(),
        _staggered(sweep, operands),
        layouts_of(nest, shapes_of_tables(given)),
        context._off,
    )
    kernel = prepared.kernel
    slots = {slot.name: slot for slot in prepared.kernel.slots} if prepared.kernel else {}
    if made_from != prepared.made_from or any(
        Slot.of(name, value) != slots.get(name) for name, value in {**given.scalars, **given.captured}.items()
    ):
        try:
            kernel = kernel_for(given, made_from)
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(f"nest {nest.name!r} does not compile: {type(error).__name__}: {error}") from error
    return dataclasses.replace(prepared, sweep=sweep, kernel=kernel, made_from=made_from, subscripts=subscripts)


def kernel_for(given, made_from):
    """The kernel; one that is still in use, as for other shapes or tiles or by an equal nest, is not made again."""
    nest = given.reductions.nest
    key = (
        kernel_key(nest, given.dtypes, given.scalars, given.fastmath, captured=given.captured),
        nest.name,
        nest.lines(),
        made_from,
    )
    if (kernel := kernels.get(key)) is None:
        steps, independent, long_rows, same_row, bests, staggered, _, off = made_from
        kernel = kernels[key] = compile_kernel(
            nest,
            given.dtypes,
            given.scalars,
            fastmath=given.fastmath,
            steps=steps,
            independent=independent,
            long_rows=long_rows,
            same_row=same_row,
            bests=bests,
            staggered=staggered,
            captured=given.captured,
            shapes=shapes_of_tables(given),
            off=off,
        )
    return kernel


def core_kernel(kernel, environment, tables, reductions):
    """A kernel as the core runs it; `environment` is the address of its scalars."""
    return _core.Kernel(
        row=kernel.address,
        env=environment,
        tables=[table.ctypes.data for table in tables.values()],
        uses_index=bool(kernel.nest.numbers),
        reductions=reductions.told(kernel.bests),
        rows=kernel.rows_address,
        values=reductions.item_bytes,
    )


def shapes_of_tables(given):
    """By name."""
    return {name: table.shape for name, table in given.tables.items()}


def arrays_there(given, prepared):
    """The arrays of the rank that computes for all, or of each."""
    if not prepared.on_one_rank:
        return given.arrays
    return {
        name: value if isinstance(value, np.ndarray) or value.keep == "window" else np.zeros(value.shape, value.dtype)
        for name, value in given.arrays.items()
    }


def probe(given, prepared, subscripts, initial=None):
    """Operands that lie in memory as those of a run: where they are is not theirs to keep."""
    context = prepared.context
    memory = {
        name: Field(context, value.shape, value.dtype)
        if isinstance(value, Field) and value.keep == "window" and name not in subscripts
        else value
        for name, value in arrays_there(given, prepared).items()
    }
    return operands_of(given.nest, memory, initial or {name: np.zeros(1, given.dtypes[name]) for name in subscripts})


def _elements(step, item_bytes):
    """Steps that are worth a kernel of their own: to the neighbour, or none."""
    return step // item_bytes if abs(step) in (0, item_bytes) else None


def _same_row(sweep, steps):
    """For each place another one of its array in the same row, and how many elements it is behind that."""
    return tuple(
        (other, points * steps[q]) if other >= 0 and steps[q] and steps[other] == steps[q] else None
        for q, (other, points) in enumerate(sweep.same_row())
    )


def _staggered(sweep, operands):
    """How rows whose points depend on each other may be computed together, or None."""
    points = sweep.stagger()
    return Staggered(points, sweep.rows_meet(operands), tuple(sweep.neighbours())) if points else None
