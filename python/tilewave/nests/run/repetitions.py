"""Repetitions of nests: as one schedule or one after another, with points between them, until a condition holds."""

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tilewave.errors import ERRORS
from tilewave.nests.chain.report import ChainReport, joined
from tilewave.nests.run.execute import results_of, run_bound, unknown_results


class Ran(NamedTuple):
    """Some repetitions: the reductions of the last one as a dict for each nest, the points of each, seconds; and the
    seconds of each nest where they ran one after another.
    """

    results: Callable[[], list[dict[str, Any]]]
    points: Sequence[int]
    time_s: float = 0.0
    moving_s: float = 0.0
    buffer_bytes: int = 0
    nests_s: tuple[float, ...] = ()

    def after(self, before):
        """Return both, one after another."""
        both = (self.points, before.points), (self.nests_s, before.nests_s)
        points, nests_s = (tuple(map(sum, zip(*each, strict=True))) for each in both)
        time_s, moving_s = self.time_s + before.time_s, self.moving_s + before.moving_s
        return Ran(self.results, points, time_s, moving_s, self.buffer_bytes, nests_s)


class Stretch(NamedTuple):
    """Repetitions with nothing between them; whether points are visited after them, while nothing runs, and whether
    they end with films, `tilewave.nests.chain.films`.
    """

    times: int
    visits: bool = False
    films: bool = True


class Separate:
    """Nests that run one after another, as each does by itself.

    Parameters
    ----------
    readies : list of BoundNest
    steps : list of int or None
        The time steps of a run of each.
    why : str
    bounds : list of Bound, optional
        Whose numbers a run has but for those of its request. None: those that the nests have already.
    joined : list of list of str, optional
        By nest the fields whose last two time steps are one after its run. Where it is given, a repetition is a time
        step of its number.
    """

    quick, is_one, looks, plan_steps = False, False, (), 1

    def __init__(self, readies, steps, why, bounds=None, joined=None):
        self.readies, self._steps, self.why, self._bounds, self.joined = readies, steps, why, bounds, joined
        self.recorded, self._values = {}, []
        self._kept = [bound._kept() for bound in bounds or ()]
        if bounds is not None:
            self._values = [{**ready.values, **bound._scalars} for ready, bound in zip(readies, bounds, strict=True)]

    @property
    def by_nest(self):
        """What is ready of each nest."""
        return self.readies

    @property
    def plans(self):
        """The plan of each nest."""
        return [ready.plan for ready in self.readies]

    def stretch(self, first, most, request):
        """Return the `Stretch` that comes next, of so many repetitions at most."""
        return Stretch(1, visits=True) if request.points else Stretch(most)

    @property
    def points(self):
        """The points of a repetition of each nest."""
        return [ready.sweep.points for ready in self.readies]

    def take(self, readies):
        """Run these, which are the same with arrays."""
        self.readies = readies

    def leave_arrays(self):
        """Keep no array alive."""
        self.readies = []

    def is_current(self):
        """Return True: numbers from outside the bodies that have changed ask for other nests."""
        return True

    def repeat(self, stretch, request, first):
        """Run some repetitions; part of a collective call."""
        context = self.readies[0].context
        recording, context._core.record = context._core.record, False
        try:
            return (yield from self._repeat(stretch.times, request, first))
        finally:
            context._core.record = recording

    def _repeat(self, times, request, first):
        nests_s, points, moving_s = [0.0] * len(self.readies), [0] * len(self.readies), 0.0
        for k, values in enumerate(self._values):
            self.readies[k].values = {**values, **request.scalars[k]}
            self.readies[k].pack()
        for repetition in range(first, first + times):
            cores = []
            for k, (ready, steps) in enumerate(zip(self.readies, self._steps, strict=True)):
                if self.joined is not None:
                    ready.first_step = repetition
                bound = self._bounds and self._bounds[k]
                if bound and (ready.renews or bound._kept() != self._kept[k]):  # a nest before reads more of the past
                    ready = self.readies[k] = yield from bound._prepare(steps, request.scalars[k], None, {})
                    self._kept[k], self._values[k] = bound._kept(), {**ready.values, **bound._scalars}
                ready.make_current(steps)
                try:
                    core = yield from run_bound(ready, time.perf_counter())
                except ERRORS as error:
                    place = f"nest {k + 1} of {len(self.readies)}, repetition {repetition + 1}"
                    raise _with_text(error, f"{error} ({place})") from None
                nests_s[k], points[k] = nests_s[k] + core.time_s, points[k] + core.points
                moving_s += core.moving_s
                cores.append(core)
                if ready.visited:
                    self.recorded |= ready.visited[0].recorded
                for name in self.joined[k] if self.joined else ():  # which has joined them
                    ready.arrays[name]._storage.join_steps()
        reductions = [ready.reductions for ready in self.readies]
        results = functools.partial(_all_results, reductions, cores)
        return Ran(results, tuple(points), sum(nests_s), moving_s, 0, tuple(nests_s))


def _all_results(reductions, cores):
    return [*map(results_of, reductions, cores)]


def _with_text(error, text):
    """Return an error of the same kind with another text, which every rank raises."""
    other = type(error)(text)
    for name in ("agreed", "quiet", "partial", "of_program"):
        if hasattr(error, name):
            setattr(other, name, getattr(error, name))
    return other


def planned(request, calls):
    """Return the repetitions of which only the plans are wanted: each nest takes what is predicted for it alone."""
    yield from ()
    body, until, all_s = request.body, request.until, 0.0
    times = until.planned(calls.decisions, request.times) if until else request.times
    readies = body.by_nest
    for ready, plan in zip(readies, body.plans, strict=True):
        all_s += (time_s := times * plan.predicted.time_s / body.plan_steps)
        name = f"nest {ready.problem.nest.name}"
        calls.add(name, time_s, plan, [array for each in readies for array in each.arrays.values()])
    found = [unknown_results(ready, calls) for ready in readies]
    if request.points:
        request.points.finish(readies[0].context, times)
    ran = Ran(lambda: found, tuple(times * each for each in body.points), all_s)
    return ChainReport(request, body, ran, times, [joined(found)] if until else [], all_s)


def repeated(context, request, begun):
    """Repeat nests as a request says, on which the ranks have agreed; part of a collective call.

    Parameters
    ----------
    context : Context
    request : Request
    begun : float
        When the call began.

    Returns
    -------
    ChainReport
    """
    run, plan = functools.partial(repeated_here, context, request, begun), functools.partial(planned, request)
    return context._ranks.run(run, plan)


def repeated_here(context, request, begun):
    """As `repeated`, on ranks that are here."""
    body, times, points, until = request.body, request.times, request.points, request.until
    ran, done, history, ended = None, 0, [], False
    if until:
        until.ended = False
    while done < times and not ended:
        left = times - done
        most = min(request.every - done % request.every, left) if until else left
        stretch = body.stretch(done, most, request)
        more = body.repeat(stretch, request, done)
        more = more if body.quick else (yield from more)
        ran, done = more.after(ran) if ran else more, done + stretch.times
        if stretch.visits:
            points.visit(done - 1, context.rank)
        if until and (done % request.every == 0 or done == times):
            history.append(joined(ran.results()))
            ended = until.met(dict(history[-1]), context)
    if points is not None:
        points.finish(context, done)
    ran = ran or Ran(lambda: [{} for _ in body.plans], (0,) * len(body.plans), nests_s=(0.0,) * len(body.plans))
    return ChainReport(request, body, ran, done, history, time.perf_counter() - begun)
