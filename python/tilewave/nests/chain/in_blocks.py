"""One nest whose time steps run in blocks: between two looks of `until`, sources and receivers among them."""

import dataclasses
import itertools

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.nests.call.problem import lacking_time
from tilewave.nests.call.step_members import loops_of
from tilewave.nests.chain.body import OneSchedule
from tilewave.nests.chain.turns import one_nest
from tilewave.nests.points.points import visited_by_lanes, visited_in_schedule
from tilewave.nests.run.bound import Bound
from tilewave.nests.run.repetitions import Ran, Stretch

#: The fast path.
PATH = "temporal_blocks"


class InBlocks(OneSchedule):
    """A nest whose repetitions are time steps: those between two looks are one run, whose reductions are of the last.

    `looks` has the numbers of time steps of its runs; `readies` are prepared for these.
    """

    is_one = _fused = True

    def __init__(self, context, bound, readies, looks):
        self._cores, self.looks = self._hold(context, one_nest(bound, readies), readies), looks
        self._in_time = [ready.steps is not None for ready in readies]
        self.plan_steps, (first, end) = looks[0], (corner[0] for corner in readies[0].sweep.problem.space)
        self.points = [readies[0].sweep.points // max(end - first, 1)]

    def stretch(self, first, most, request):
        """Return all of them: a request with points that lanes do not visit does not take it."""
        return Stretch(most)

    def prepare(self, times):
        """Do nothing: what its runs need was made when they were prepared."""

    def repeat(self, stretch, request, first):
        """Run some time steps; collective. ``request.agreed`` is None where the ranks have agreed on them."""
        times = stretch.times
        number = self.looks.index(times)
        core = self._cores[number]
        self._context._heart.progress.of = self._name
        self._leave_out_reductions(times - 1)
        points = request.points.of(self.readies[number].problem.nest, True) if request.points else []
        steps, environment = times if self._in_time[number] else None, request.environments()[number]
        ran = self._context._together(core.run_to_last, request.agreed, steps, environment, first, points)
        self._context._finished(ran)
        return Ran(lambda: self._results(ran), [ran.points], ran.time_s, ran.moving_s)

    def _compute_unseen_by(self, number, kernel):
        self._cores[number].leave_out_reductions(kernel)

    def _results(self, ran):
        found = iter([(r.any, r.at, r.bytes) for r in ran.reduced])
        return [self._reductions[0].results(list(itertools.islice(found, len(self._reductions[0].core))))]


def looks_of(nests, request, off):
    """Return the numbers of time steps of the runs between two looks; none where these are of single steps."""
    count = min(request.every, request.times) if request.until else request.times
    if len(nests) != 1 or count < 2 or _core.without(off, PATH):
        return ()
    left = request.times % count
    return (count, left) if left else (count,)


def may_be(nests, call, points, films):
    """Whether lanes do all that a time step has beside its nests: of one in blocks, of nests in one schedule, but for
    so many films at the end; local.
    """
    if any(name not in call.arguments for nest in nests for name in nest.arrays):
        return False, False
    if not points:
        return True, True
    each = loops_of(nests, call.loops)
    one = len(each) == 1 and each[0][0].time not in each[0][1].reverse
    blocks = one and visited_by_lanes(*each[0], points, call.arguments)
    return blocks, visited_in_schedule(each[: len(each) - films], points, call.arguments)


def prepared(call, part, request):
    """Prepare the one nest of a time step for runs of several; part of a collective call. None where it cannot be."""
    if not _is_plain(part):
        return None
    context, readies = call.context, []
    visited = frozenset(request.points.names()) if request.points else frozenset()
    try:
        for steps in request.looks:
            loops = dataclasses.replace(part.loops, steps=steps, stepwise=False, visited=visited)
            of_part = {"nests": part.nest, "loops": loops, "arguments": part.arguments, "reduce": part.reduce}
            plan = {name: value for name, value in call.plan.items() if name != "planning"}
            bound = Bound(dataclasses.replace(call, plan=plan, **of_part))
            yield from bound._prepare_first()
            readies.append(bound._first.ready)
    except ConfigError:  # of all ranks: its time steps are run one by one, or refused then
        return None
    error = body = None
    try:
        body = _made(context, bound, readies, request.looks)
    except BaseException as problem:
        error = problem
    yield error
    bound._variants.clear()
    bound._first = None
    (all_have,) = context._core.allreduce_min([int(body is not None)])
    return body if all_have else None


def _is_plain(part):
    """Whether its time steps differ in time alone, and in what they read of arrays with time as a dimension."""
    nest, lacking = part.nest, lacking_time(part.nest, part.arguments)
    if nest.rows or nest.updates or part.joined or nest.backwards:
        return False
    places = [place for place in nest.places if nest.time in place.axes and place.array not in lacking]
    return all(not place.written and not place.phases and place.axes[0] == nest.time for place in places)


def _made(context, bound, readies, looks):
    """The body of what is ready; None where it needs something between runs."""
    for ready in readies:
        tasks = ready.sweep.plan.generator in ("pivot", "gather")
        if tasks or ready.is_rewritten or ready.renews or ready.kernel.copies_tables:
            return None
    try:
        return InBlocks(context, bound, readies, looks)
    except ConfigError:
        return None
