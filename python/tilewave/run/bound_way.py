"""One way in which a bound nest runs: a schedule and a kernel, and what is kept between runs of them."""

import functools

import numpy as np

from tilewave.run import reduction
from tilewave.run.memory_bound import moved_by
from tilewave.run.operands import copied, operands_of
from tilewave.run.report import Report
from tilewave.run.run import run_ready


class Way:
    """What is ready for one number of steps and one kind of scalars."""

    def __init__(self, given, ready):
        self.given, self.ready = given, ready
        self._environment = ready.environment
        self._values, self._changed = ready.values, False
        self._copied = any(isinstance(value, np.ndarray) and copied(value) for value in ready.arrays.values())

    def out_of_date(self):
        """Whether the layout that its fields should have was, or is to be, weighed anew; the same on every rank."""
        turn = self.ready.turn
        base = turn.base
        return (
            bool(turn.wanted)
            or turn.taken is not None
            or base is not None
            and (base.taken is None or base.taken.turn is not turn)
        )

    def refresh(self, scalars):
        """Look at scalars, and at arrays that a run copies, as they are now; local."""
        ready = self.ready
        if ready.steps is not None:
            ready.sweep.prepare_steps(ready.steps)  # another call may have had other steps since
        if scalars or self._changed:
            ready.values, self._changed = {**self._values, **scalars}, bool(scalars)
            packed = ready.kernel.pack(ready.values, ready.tables)
            ready.environment = (packed, packed.ctypes.data) if scalars else self._environment
        if self._copied or ready.kernel.copies_tables:
            if not ready.on_one_rank and not ready.stored:
                ready.operands, ready.copies = operands_of(self.given.nest, ready.arrays, ready.initial)
            ready.look_again()

    def run(self, record, begun):
        """One run, after the ranks have agreed on it; part of a collective call. Returns the report."""
        core_context = self.ready.context._core
        recording, core_context.record = core_context.record, record
        try:
            core, after_s = yield from run_ready(self.given.nest, self.ready, begun)
        finally:
            core_context.record = recording
        return LazyReport(functools.partial(self._report, core, after_s))

    def _report(self, core, after_s):
        """The arguments of a `Report`."""
        ready, given = self.ready, self.given
        found = [(r.any, r.at, r.bytes) for r in core.reduced]
        return (
            core,
            ready.plan,
            ready.sequential,
            ready.on_one_rank,
            tuple(ready.stored),
            reduction.results(given.nest, given.reduce, ready.dtypes, ready.reductions, found),
            ready.ranges(),
            ready.problem.cut,
            after_s,
            moved_by(ready, core.points),
            ready.context._core.machine,
        )


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
