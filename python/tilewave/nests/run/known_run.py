"""Runs of `run` on one rank whose arrays are where they were in an equal call: they go to the core at once."""

import time

from tilewave.nests.run.prepared_run import LazyReport, bound_core


class KnownRun:
    """A bound nest that equal calls of `run` run again; it keeps none of their arrays alive."""

    def __init__(self, ready):
        self._core, self._environment = bound_core(ready), ready.environment
        self._ready = ready.without_arrays()

    @property
    def is_current(self):
        """Whether equal calls may run it: not where Python has more to do, or a better plan is to be looked for."""
        runs = self._ready.runs
        return self._core is not None and not (runs is not None and runs.enough())

    def run(self, begun):
        """Run it for a call that began at `begun`; local, as there is one rank. Returns the report."""
        ready = self._ready
        context = ready.context
        context._heart.progress.of = ready.problem.nest.name
        core = context._finished(
            context._together(self._core.run_recorded, ready.steps, 0.0, time.perf_counter() - begun)
        )
        if ready.runs is not None:
            ready.runs.ran_s += core.time_s
        return LazyReport(lambda: (ready, core))


def known_run(ready):
    """The `KnownRun` of a bound nest; None where a run has more to do than the core does, or keeps much memory."""
    here = ready.context.size == 1 and ready.context._ranks.quick
    more = ready.is_rewritten or ready.loops.inner or ready.copies_arrays or ready.initial or ready.problem.short
    return KnownRun(ready) if here and not more else None
