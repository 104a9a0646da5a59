"""What a run of a matrix schedule is predicted to take, played when it is asked for."""

from __future__ import annotations

import functools

from tilewave import _core


class Play:
    """A prediction to be played; called it gives the core's prediction.

    Parameters
    ----------
    schedule_of : function
        Of a rank: its schedule.
    ranks : int
    machine : Machine
        Of the core.
    rates_of : function
        Of the schedules of all ranks: the rates of their operations.
    threads : int
        Of each rank; more lanes take turns.
    """

    def __init__(self, schedule_of, ranks, machine, rates_of, threads=0):
        self._given = schedule_of, ranks, machine, rates_of, threads

    @functools.cached_property
    def _found(self):
        schedule_of, ranks, machine, rates_of, threads = self._given
        parts = [schedule_of(rank) for rank in range(ranks)]
        return _core.predict_works(parts, machine, [_core.KernelRate()], rates_of(parts), threads)

    def __call__(self):
        return self._found
