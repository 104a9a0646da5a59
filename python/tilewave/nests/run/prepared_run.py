"""A bound nest as it is prepared for some of its runs: a schedule, a kernel, and what stays between runs."""

import dataclasses
import functools

import numpy as np

from tilewave import _core
from tilewave.context.collective import plain
from tilewave.kernel.scalars import positions
from tilewave.nests.rewrites.as_given import place_as_given
from tilewave.nests.run.execute import explain, run_bound
from tilewave.nests.run.report import Report

#: What a run is called among the ranks.
NAME = "tw.Bound.run"


def bound_core(ready, part=""):
    """The core's bound sweep of a `BoundNest`, which points to its arrays; None where Python has more to do in a run.

    `part` ends the text of its errors.
    """
    # Not `ready` and its context: the core would keep them, out of sight of Python's collector of cycles.
    kernel, nest, rank = ready.kernel, ready.problem.nest, ready.context.rank
    loops, tables = ready.loops, ready.tables if ready.loops.inner else {}
    if (ready.stored and not ready.anew) or ready.copies_operands or ready.visited or ready.parts:
        return None
    return ready.sweep.bind(
        ready.context._core,
        ready.operands,
        ready.core_kernel(),
        lambda site, point: explain(nest, rank, kernel, site, place_as_given(loops, tables, nest, point)) + part,
        ready.whole_fields,
    )


class PreparedRun:
    """What is ready for one number of steps, or for blocks of them, and one kind of scalars.

    `part` ends the text of its errors: which nest of a chain it is.
    """

    def __init__(self, bound, ready, kind, part=""):
        # Not the bound nest itself, which would then be there until Python looks for cycles.
        self.nest, self.ready, self._kind, self._part = bound.nest, ready, kind, part
        # Those of the bound nest: it may have been prepared for a run with other scalars of the same types.
        self._values = {**ready.values, **bound._scalars}

    def serves(self, kind, steps):
        """Whether it runs so many steps, in blocks; backwards they count from the last. The same on every rank."""
        ready = self.ready
        if self._kind != kind or ready.steps is None or ready.loops.backwards not in (None, steps):
            return False
        return steps >= max(ready.plan.temporal_block, 1)

    @functools.cached_property
    def core(self):
        """The core's, where operands are used where they lie; else None. `ready` holds what it points to."""
        return bound_core(self.ready, self._part)

    def environment(self, scalars):
        """What the kernel is given with these scalars in place of the bound ones: an array, and its address."""
        packed = self.ready.kernel.pack({**self._values, **scalars}, self.ready.tables)
        return packed, packed.ctypes.data

    def call(self, steps, scalars, description):
        """A `Call` with these scalars in place of the bound ones."""
        steps = steps if self.ready.steps is not None else None
        return Call(self, steps, self.environment(scalars), description)

    def refresh(self, scalars, steps):
        """Look at scalars, and at arrays that a run copies, as they are now; local."""
        ready = self.ready
        if self._values:
            ready.values, ready.environment = {**self._values, **scalars}, self.environment(scalars)
        ready.make_current(steps)

    def run(self, record, begun, steps):
        """One run, after the ranks have agreed on it; part of a collective call. Returns the report."""
        ready = self._for_steps(steps)
        core_context = ready.context._core
        recording, core_context.record = core_context.record, record
        try:
            core = yield from run_bound(ready, begun)
        finally:
            core_context.record = recording
        return LazyReport(functools.partial(self._report, core, steps, ready.visited and ready.visited[0].recorded))

    def _for_steps(self, steps):
        """What is ready, with another number of steps where it is of blocks of them."""
        ready = self.ready
        if ready.steps is None or steps == ready.steps:
            return ready
        return dataclasses.replace(ready, steps=steps, plan=ready.planned_for(steps))

    def _report(self, core, steps, recorded=None):
        """The arguments of a `Report`."""
        return self._for_steps(steps), core, recorded


class Call:
    """A run whose steps and scalars are known, with all that it needs."""

    def __init__(self, variant, steps, environment, description):
        self._variant, self._steps, self._environment = variant, steps, environment
        self._nest, self._context, self._core = variant.nest, variant.ready.context, variant.core
        self._outside = self._nest._outside()
        self._agreed = _core.BoundCall(NAME, plain(description))

    def is_current(self):
        """Whether the numbers from outside the body are those that it was made for."""
        return self._outside is self._nest._outside()

    def with_floats(self, scalars, description):
        """The same with other values of scalars that are 64-bit floats."""
        made = object.__new__(Call)
        made.__dict__.update(self.__dict__)
        packed = self._environment[0].copy()
        for position, slot in positions(self._variant.ready.kernel.slots):
            if slot.name in scalars:
                packed[position : position + 1].view(np.float64)[0] = scalars[slot.name]
        made._environment = packed, packed.ctypes.data
        made._agreed = _core.BoundCall(NAME, plain(description))
        return made

    def run(self):
        """The run, from the ranks' agreement on; collective. Other threads must not call meanwhile."""
        context = self._context
        outer, context._doing = context._doing, NAME
        try:
            context._heart.progress.of = self._nest.name
            ran = context._together(self._core.run, self._agreed, self._steps, self._environment[1])
            context._finished(ran)
        finally:
            context._doing = outer
        return LazyReport(functools.partial(self._report, ran))

    def _report(self, ran):
        return self._variant._report(self._core.report(ran), self._steps)


class LazyReport(Report):
    """A `Report` that is made when something of it is asked for."""

    def __init__(self, make):
        self._make = make

    def _rows(self):
        for name, text in super()._rows():
            yield name, "not recorded" if name == "overlap ratio" and not self.lanes else text

    def __getattr__(self, name):
        make = self.__dict__.pop("_make", None)
        if make is None:
            raise AttributeError(f"a report has no {name!r}")
        Report.__init__(self, *make())
        return getattr(self, name)

    def __getstate__(self):
        _ = self.points  # made by now
        return super().__getstate__()
