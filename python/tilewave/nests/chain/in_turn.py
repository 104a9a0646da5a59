"""Several nests of a chain whose time steps run together: what stands before and behind them runs by itself."""

import functools
import itertools
import time

from tilewave.field.field import Field
from tilewave.nests.call.step_blocks import for_steps
from tilewave.nests.chain.report import listed
from tilewave.nests.run.repetitions import Ran, Stretch, repeated_here


class InTurn:
    """Requests that run one after another in each repetition, a repetition or all time steps of each.

    Parameters
    ----------
    context : Context
    requests : list of Request
        With their bodies, on which the ranks have agreed.
    makers : list of (function, bool)
        What makes each of these, part of a collective call, and whether it has to for each repetition.
    """

    quick, is_one, in_turn, looks, plan_steps = False, False, 0, (), 1

    def __init__(self, context, requests, makers):
        self._context, self._requests, self._makers, self.recorded = context, requests, makers, {}
        self._begun, self._kept = False, [*map(_kept, requests)]
        bodies = [(each.body, each.times) for each in requests]
        self.why = next((f"of {listed(each.names)}, {each.body.why}" for each in requests if each.body.why), "")
        self.points = [times * count for body, times in bodies for count in body.points]
        self.plans = [_of_all(plan, body.plan_steps, times) for body, times in bodies for plan in body.plans]

    @property
    def by_nest(self):
        """What is ready of each nest."""
        return [ready for each in self._requests for ready in each.body.by_nest]

    def stretch(self, first, most, request):
        """Return the `Stretch` that comes next, of so many repetitions at most."""
        return Stretch(1, visits=True) if request.points else Stretch(most)

    def leave_arrays(self):
        """Keep no array of time steps alive: equal calls have others."""
        for each in self._requests:
            if each.unit:
                each.body.leave_arrays()

    def repeat(self, stretch, request, first):
        """Run some repetitions; part of a collective call."""
        all_ran = None
        for _ in range(stretch.times):
            reports = []
            for k, (make, anew) in enumerate(self._makers):
                longer = self._requests[k].unit and _kept(self._requests[k]) != self._kept[k]
                if longer or (anew and self._begun):  # a nest before it reads more of the past
                    self._requests[k] = yield from make()
                    self._kept[k] = _kept(self._requests[k])
                request = self._requests[k]
                if request.points is not None:
                    request.points.begin_again()
                reports += [(yield from repeated_here(self._context, request, time.perf_counter()))]
                self.recorded |= reports[-1].recorded
            self._begun = True
            nests = [nest for report in reports for nest in report.by_nest]
            ran = Ran(
                functools.partial(_reduced, reports),
                tuple(nest.points for nest in nests),
                sum(report.measured.time_s for report in reports),
                sum(report.measured.moving_s for report in reports),
                max(report.buffer_bytes for report in reports),
                tuple(nest.time_s for nest in nests),
            )
            all_ran = ran.after(all_ran) if all_ran else ran
        return all_ran


def in_turn(context, makers):
    """Return the `InTurn` of requests that are made one after another; part of a collective call."""
    requests = []
    for make, _ in makers:
        requests += [(yield from make())]
    return InTurn(context, requests, makers)


def _kept(request):
    """Return how many earlier time steps each field of a request keeps."""
    arrays = [array for ready in request.body.by_nest for array in ready.arrays.values()]
    return [array.history for array in arrays if isinstance(array, Field)]


def _reduced(reports):
    return list(itertools.chain.from_iterable(report.reduced for report in reports))


def _of_all(plan, planned, times):
    """The plan with what it is predicted to take for all time steps."""
    return plan if times in (0, planned) else for_steps(plan, planned, planned, 0.0, times)
