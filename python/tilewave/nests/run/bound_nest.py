"""A prepared nest with the arrays and scalars of a call: all that a run needs."""

import dataclasses
import functools

import numpy as np

from tilewave import _core
from tilewave.field.field import Field
from tilewave.field.values import values_at
from tilewave.nest.bounds import Loops
from tilewave.nests.call.operands import copied, operands_of, tables_of
from tilewave.nests.call.step_blocks import for_steps
from tilewave.nests.plan.kernel_maker import core_kernel, unreduced_kernel
from tilewave.nests.rewrites.as_given import ranges_as_given
from tilewave.nests.rewrites.reductions import Reductions
from tilewave.plan.plan import Plan


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
    on_one_rank: bool  # rank 0 has all of the arrays, and computes for all
    stored: list  # arrays that could keep a rolling window only, but not in this run
    initial: dict  # of the others: values of elements that no point computes
    reductions: object
    dtypes: dict
    plan: Plan  # with what it is predicted to take
    loops: Loops
    steps: int = None  # of time, where the sweep is of a block of them
    first_step: int = 0  # of time
    points: tuple = ()  # that are visited after each time step: the core's
    visited: tuple = ()  # the `Points` of each run and whether lanes record them; `points` are made of them
    called: dict = None  # arrays as the call has them: those of a batch are others
    problem: object = None
    values: dict = None  # scalars, and numbers from outside the body
    planned_for: object = None  # gives the plan, with what it is predicted to take, for another number of steps
    rate: object = None  # that the plan was chosen with: the core's MeasuredRate
    runs: object = None  # of equal calls so far: the core's RunsOfPlan
    parts: object = None  # the `RowParts` that run in place of it, where it writes rows for several time steps
    longest: object = None  # of these, the one that takes most time steps: a `BoundNest`
    after: tuple = ()  # what rewrites have to do behind a run: they are given this
    known: object = None  # the `NestCall` that equal calls find
    stand_ins: dict = dataclasses.field(default_factory=dict)  # of the replicated fields: arrays that lie as they will
    anew: bool = False  # the stored arrays are there, and each run begins with their first values
    make_unreduced: object = None  # gives the kernel for repetitions whose reductions nobody looks at, or None

    def core_kernel(self):
        """The kernel as the core runs it, with scalars and tables as they are now."""
        return core_kernel(self.kernel, self.environment[1], self.tables, self.reductions)

    def core_unreduced(self):
        """The kernel for repetitions whose reductions nobody looks at, as the core runs it, and what it needs to live
        on; None where it is `core_kernel`.
        """
        nest = self.problem.nest
        if not nest.written and not nest.written_tables and not self.kernel.sites:
            return _core.Kernel(row=0), None  # there is nothing to do
        kernel = self.make_unreduced()
        return kernel and (core_kernel(kernel, 0, self.tables, Reductions(kernel.nest)), kernel)

    def take_current_values(self):
        """Give the kernel the tables as they are now."""
        self.tables = tables_of(self.kernel.nest, {**self.arrays, **self.stand_ins})
        self.pack()

    def pack(self):
        """Give the kernel the scalars, and tables that it copies, as they are now."""
        packed = self.kernel.pack(self.values, self.tables)
        self.environment = packed, packed.ctypes.data

    @functools.cached_property
    def copies_operands(self):
        """Whether a run works on copies of NumPy arrays, as they were when it was bound."""
        return any(isinstance(array, np.ndarray) and copied(array) for array in self.arrays.values())

    @functools.cached_property
    def copies_arrays(self):
        """Whether it works on copies of any arrays, or on what a rank adds to them."""
        updates = any(isinstance(self.arrays[name], Field) for name in self.problem.nest.updates)
        return self.copies_operands or updates or self.kernel.copies_tables

    def without_arrays(self):
        """The same, of which nothing keeps the arrays of the call alive."""
        make = None
        if self.make_unreduced and not self.tables:  # whose shapes the kernel has
            given, found = self.make_unreduced.args
            make = functools.partial(unreduced_kernel, given.without_arrays(), found)
        return dataclasses.replace(
            self,
            called=None,
            arrays=None,
            operands=None,
            copies=None,
            tables=None,
            stand_ins={},
            environment=None,
            make_unreduced=make,
            known=None,
        )

    def with_arguments(self, arguments):
        """The same for these arrays and scalars, among others, which are like those that it was made for; local."""
        nest = self.problem.nest
        arrays = {name: arguments[name] for name in nest.arrays}
        scalars = {name: arguments[name] for name in nest.scalars if name in arguments}
        ready = dataclasses.replace(self, arrays=arrays, called=arrays, values={**self.values, **scalars})
        ready.operands, ready.copies = operands_of(nest, arrays, self.initial)
        ready.take_current_values()
        return ready

    def make_current(self, steps):
        """Prepare so many time steps, and take the arrays that a run copies as they are now; local."""
        if self.steps is not None and not self.parts:
            self.sweep.prepare_steps(steps)  # another call may have had other steps since
        if self.copies_arrays and not self.parts:
            self.copy_again()
        if self.visited:
            self.visited[0].begin_again()
            self.visits(*self.visited)

    def visits(self, points, by_lanes):
        """Have `Points` added and recorded after each time step, or recorded by lanes; local."""
        self.visited, self.points = (points, by_lanes), points.of(self.problem.nest, by_lanes)

    @property
    def is_rewritten(self):
        """Whether something is to be done before or after the core's run."""
        return bool(self.visited or self.after or self.parts or self.problem.nest.written_tables)

    @property
    def renews(self):
        """Whether it writes tables in memory that a field may leave: those of a batch."""
        return bool(self.loops.inner and self.problem.nest.written_tables)

    @property
    def whole_fields(self):
        """The fields that ranks have whole in a run, as the core has them."""
        nest, tables = self.problem.nest, [*self.tables]
        return [
            _core.WholeField(
                self.arrays[name]._storage,
                array.ctypes.data,
                [k for k, view in enumerate(nest.views) if view.array == name],
                tables.index(name) if name in tables else -1,
            )
            for name, array in self.stand_ins.items()
        ]

    def store_windows(self, whole, anew=False):
        """Take whole fields in place of the rolling windows that are not enough; local. `anew`: the core gives them
        their first values before each run."""
        arrays = {**self.arrays, **self.stand_ins, **whole}
        self.operands, self.copies = operands_of(self.kernel.nest, arrays, self.initial)
        self.anew = anew
        for view, operand in zip(self.kernel.nest.views, self.operands, strict=True):
            operand.anew = anew and view.array in whole

    def copy_again(self):
        """Take the arrays that a run copies as they are now; local."""
        if not self.stored:
            self.store_windows({})
        self.take_current_values()

    def ranges(self):
        """The range of each loop index; the least and the greatest one of an index whose bounds depend on others."""
        ranges = dict(zip(self.problem.nest.indices, self.problem.bounds.box, strict=True))
        if self.steps is not None:
            ranges[self.problem.nest.time] = (0, self.steps)
        return ranges_as_given(self.loops, self.problem.nest, ranges)


def bind_call(context, given, found):
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
    operands, copies = ([], []) if stored else operands_of(nest, given.arrays, initial)
    stand_ins = {name: given.arrays[name] for name in given.replicated}
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
        stand_ins=stand_ins,
        on_one_rank=found.on_one_rank,
        stored=stored,
        initial=initial,
        called=given.called,
        reductions=given.reductions,
        after=given.after,
        dtypes=given.dtypes,
        plan=plan,
        loops=given.loops,
        steps=steps,
        problem=found.problem,
        values=values,
        planned_for=planned_for,
        rate=found.rate,
        runs=found.runs,
        make_unreduced=functools.partial(unreduced_kernel, given, found),
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
