"""Kernels of a call for the schedules of its plans: made, and measured."""

import dataclasses
import weakref

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.field.field import Field
from tilewave.field.values import values_at
from tilewave.kernel.compile import compile_kernel, kernel_key, layouts_of, makes_vectors
from tilewave.kernel.rows.streams import Staggered
from tilewave.kernel.scalars import Slot
from tilewave.nest.dependences import row_is_apart
from tilewave.nests.call.operands import copies_of, operands_of
from tilewave.nests.rewrites.reductions import Reductions
from tilewave.plan.plan import Plan

#: Those that some context still runs, of all nests. Nests that are defined again and again, as in a function, are
#: equal.
kernels = weakref.WeakValueDictionary()


@dataclasses.dataclass
class PreparedNest:
    """Problem, plan, schedule and kernel of a nest: what a repeated call finds."""

    problem: object
    on_one_rank: bool  # rank 0 has all of the arrays, and computes for all
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
    runs: object = None  # of equal calls so far, after which planning may spend more: the core's RunsOfPlan


class KernelMaker:
    """Makes kernels of a call's body for the core's planner, and measures them: its calls are local."""

    def __init__(self, context, given):
        self._context, self._given = context, given

    def vectors_across(self, problem):
        """Whether the body is made of vectors where points of a row across two loops are neighbours."""
        given = self._given
        nest = given.reductions.nest
        return makes_vectors(
            nest,
            given.dtypes,
            given.scalars,
            fastmath=given.fastmath,
            steps=[1] * len(nest.places),
            independent=True,
            captured=given.captured,
            shapes=shapes_of_tables(given),
            off=problem.paths_off,
        )

    def prepare(self, alternative, plan, like):
        """A `PreparedNest` for a plan of an alternative; `like`: for another plan of it, or None."""
        if like is None:
            request = alternative.request
            names = ("row", "storage", "skew", "weights")
            made = {name: value for name in names if (value := getattr(request, name)) is not None}
            problem = dataclasses.replace(self._given.problem, core=alternative.problem)
            if not problem.core.sequential:  # steps that are gathered
                problem.sequential = ""
            like = PreparedNest(
                problem=problem,
                on_one_rank=alternative.on_one_rank,
                choices={**self._given.choices, **made},
            )
        return with_plan(self._context, self._given, like, plan)

    def sample(self, prepared, budget_s):
        """Times of tiles, as `_core.PreparedSweep.sample` gives them."""
        return sampled(self._context, self._given, prepared, budget_s)

    def bringing_s(self, prepared):
        """Seconds that bring NumPy arrays into the order of rows across and back, of which there is one rank."""
        return prepared.sweep.conversion_s(probe(self._context, self._given, prepared.subscripts)[0])


def sampled(context, given, prepared, budget_s):
    """Times of tiles of three shapes on this rank, all its lanes at once."""
    initial = {name: values_at(given.whole[name], points) for name, points in prepared.subscripts.items()}
    # Memory that has never been written is one page of zeros, which the caches hold.
    filled = {name: np.full_like(given.arrays[name], 0) for name in copies_of(given.whole, given.replicated)}
    tables = {name: filled.get(name, table) for name, table in given.tables.items()}
    given = dataclasses.replace(given, arrays={**given.arrays, **filled}, tables=tables)
    operands, _ = probe(context, given, prepared.subscripts, initial)
    written = given.nest.written_tables
    tables = {
        name: np.zeros(table.shape, table.dtype) if name in written else table for name, table in given.tables.items()
    }
    environment = prepared.kernel.pack({**given.scalars, **given.captured}, tables)
    kernel = core_kernel(prepared.kernel, environment.ctypes.data, tables, given.reductions)
    return prepared.sweep.sample(operands, kernel, budget_s)


def with_plan(context, given, prepared, core):
    """The same with the schedule and the kernel for a plan; local."""
    nest = given.nest
    sweep = _core.PreparedSweep(context._core, prepared.problem.core, core)
    subscripts = {
        view.array: np.frombuffer(sweep.initial(a), np.int64).reshape(-1, given.arrays[view.array].ndim)
        for a, view in enumerate(nest.views)
        if sweep.in_window(a)
    }
    operands = probe(context, given, subscripts)[0]
    steps = tuple(
        _elements(step, given.dtypes[place.array].itemsize)
        for step, place in zip(sweep.row_steps(operands), nest.places, strict=True)
    )
    steps += (1,) * len(given.reductions.values)
    made_from = (
        steps,
        sweep.independent_rows,
        bool(subscripts) or core.generator in ("pivot", "gather"),
        _same_row(sweep, steps),
        given.reductions.bests(),
        _staggered(sweep, len(given.reductions.values)),
        layouts_of(nest, shapes_of_tables(given)),
        context._off,
        _apart(nest, prepared.problem.core),
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
            where = f"{nest.source.file}:{nest.line}: nest {nest.name!r}"
            raise ConfigError(f"{where} does not compile: {type(error).__name__}: {error}") from error
    return dataclasses.replace(prepared, sweep=sweep, kernel=kernel, made_from=made_from, subscripts=subscripts)


def kernel_for(given, made_from):
    """The kernel; one that is still in use, as for other shapes or tiles or by an equal nest, is not made again."""
    nest = given.reductions.nest
    body = kernel_key(nest, given.dtypes, given.scalars, given.fastmath, captured=given.captured)
    key = body, nest.name, nest.lines(), made_from
    steps, independent, long_rows, same_row, bests, staggered, _, off, apart = made_from
    if (kernel := kernels.get(key)) is None:
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
            separate=True,  # the call refuses others
            in_place=nest.pivot is not None and not given.reductions,
            apart=apart,
        )
    return kernel


def unreduced_kernel(given, prepared):
    """One that computes the same rows without the values that are reduced; None where there are no values, where these
    may raise, and where rows are nothing but their values.
    """
    if not given.reductions.values or not given.nest.written:
        return None
    steps, independent, long_rows, same_row, _, staggered, *others = prepared.made_from
    count = len(given.nest.places)
    staggered = staggered and dataclasses.replace(staggered, neighbours=staggered.neighbours[:count])
    plain = dataclasses.replace(given, reductions=Reductions(given.nest))
    kernel = kernel_for(plain, (steps[:count], independent, long_rows, same_row, (), staggered, *others))
    reduced = prepared.kernel
    equal = kernel.sites == reduced.sites and kernel.slots == reduced.slots and not kernel.copies_tables
    return kernel if equal else None


def core_kernel(kernel, environment, tables, reductions):
    """A kernel as the core runs it; `environment` is the address of its scalars."""
    return _core.Kernel(
        row=kernel.address,
        env=environment,
        tables=[table.ctypes.data for table in tables.values()],
        uses_index=bool(kernel.nest.numbers),
        reductions=reductions.for_core(kernel.bests),
        rows=kernel.rows_address,
        values=reductions.bytes_of_values(kernel.bests),
    )


def shapes_of_tables(given):
    """By name; fields are there during a run only."""
    return {name: given.tables[name].shape for name in given.nest.parameters.tables if name not in given.replicated}


def probe(context, given, subscripts, initial=None):
    """Operands that lie in memory as those of a run: where they are is not theirs to keep."""
    memory = {
        name: Field(context, value.shape, value.dtype)
        if isinstance(value, Field) and value.keep == "window" and name not in subscripts
        else value
        for name, value in given.arrays.items()
    }
    return operands_of(given.nest, memory, initial or {name: np.zeros(1, given.dtypes[name]) for name in subscripts})


def _elements(step, item_bytes):
    """Steps that are worth a separate kernel: to the neighbour, or none."""
    return step // item_bytes if abs(step) in (0, item_bytes) else None


def _same_row(sweep, steps):
    """For each place another one of its array in the same row, and how many elements it is behind that."""
    return tuple(
        (other, points * steps[q]) if other >= 0 and steps[q] and steps[other] == steps[q] else None
        for q, (other, points) in enumerate(sweep.same_row())
    )


def _apart(nest, core):
    """Whether points of a row touch nothing that another one writes, where rows come one by one in loop order."""
    if not core.sequential or not nest.inner:
        return False
    buffers = {view.array: number for view, number in zip(nest.views, core.time_buffers, strict=True)}
    return row_is_apart(nest.places, nest.indices[-1], buffers)


def _staggered(sweep, values):
    """How rows whose points depend on each other may be computed together, or None; no point reads row values."""
    points = sweep.stagger()
    return Staggered(points, (*sweep.neighbours(), *[None] * values)) if points else None
