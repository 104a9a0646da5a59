"""How a chain repeats its nests: as one schedule, or one after another."""

import bisect
import dataclasses
import itertools

import numpy as np

from tilewave import _core
from tilewave.context.collective import collective
from tilewave.errors import ConfigError
from tilewave.field.field import Field
from tilewave.nest.changed import has_time
from tilewave.nest.timeless import has_one_value
from tilewave.nests.call.operands import memory_of
from tilewave.nests.call.problem import depth_of
from tilewave.nests.chain.turns import turns_of
from tilewave.nests.rewrites.any_order import begin_updates
from tilewave.nests.run.execute import stored
from tilewave.nests.run.prepared_run import PreparedRun
from tilewave.nests.run.repetitions import Ran, Separate, Stretch
from tilewave.plan.plan import CHOICES, request_of

#: Seconds, predicted, of repetitions whose reductions nobody looks at, after which kernels are compiled for them: that
#: takes 0.05 to 0.2 s.
LEAST_UNSEEN_S = 0.05
#: The fast path.
PATH = "unreduced"


def memory_in(ready, name):
    """The same of an array of a nest: what is whole on each rank, and a rolling window, is of this nest alone."""
    array = ready.arrays[name]
    if name in ready.stand_ins or getattr(array, "keep", "") == "window":
        return id(ready), name
    return memory_of(array)


class OneSchedule:
    """The nests as one schedule: nothing is agreed on between them, and tiles begin when their inputs are there."""

    quick, why, looks, plan_steps = True, "", (), 1

    def __init__(self, context, turns, readies, memories, in_steps):
        cores = self._hold(context, turns, readies)
        self.memories, self._in_steps = memories, in_steps
        self.points = turns.points(readies)
        order, rows = turns.core(readies)
        self._films, self._film_steps, self._shows_each = turns.films, sorted(turns.film_steps), turns.shows_each
        self._core = _core.ChainedSweep(context._core, cores, memories, in_steps, order, rows, turns.films)

    def _hold(self, context, turns, readies):
        """Hold nests that are ready; the core's."""
        self._context, self._name = context, ", ".join(bound.nest.name for bound in turns.nests)
        self.plans, self.readies, self._rows = turns.plans(readies), readies, turns.wholes
        self._numbers, self._firsts = turns.numbers, turns.firsts
        self._reductions = [ready.reductions for ready in self.by_nest]
        self.variants = [
            PreparedRun(bound, ready, None, f" (nest {number + 1} of the chain)")
            for bound, ready, number in zip(turns.bounds, readies, turns.numbers, strict=True)
        ]
        for k, variant in enumerate(self.variants):
            if variant.core is None:
                raise ConfigError(f"an array of {turns.called(k)} is copied for each run")
        self._unseen_s, self._unreduced, self.recorded = 0.0, None, {}
        self._nests = list({id(bound.nest): bound.nest for bound in turns.nests}.values())
        #: Whether kernels have copies of tables, which may have changed since the run before.
        self.copies_tables = any(ready.kernel.copies_tables for ready in readies)
        self.take_current_values()
        return [variant.core for variant in self.variants]

    @property
    def by_nest(self):
        """What is ready of each nest: of one that runs in parts the first."""
        return [self.readies[k] for k in self._firsts]

    @property
    def takes_rows(self):
        """Whether nests write rows for several time steps."""
        return bool(self._rows)

    @property
    def is_settled(self):
        """Whether equal repetitions have equal kernels, with one environment."""
        return not self.copies_tables and (self._unreduced is not None or not any(self._reductions))

    @property
    def is_one(self):
        """Whether a repetition is one schedule; else each nest has one, or films have."""
        return self._fused and not self._films

    @property
    def _fused(self):
        """Whether all nests but films are one schedule."""
        return self._core.is_one

    @property
    def in_turn(self):
        """Repetitions whose tiles take turns; 0: nests follow each other whole."""
        return self._core.in_turn

    @property
    def in_block(self):
        """Repetitions of the block that long runs repeat."""
        return self._core.repetitions

    def prepare(self, times):
        """Make what so many repetitions need; local. The ranks then agree, and repeat them with nothing else agreed."""
        self._core.prepare(times)

    def leave_arrays(self):
        """Keep no array alive: whoever repeats it has them."""
        self.readies, self.variants = [], []

    def take(self, readies):
        """Repeat these, which are the same with arrays."""
        self.readies = readies

    def is_current(self):
        """Whether the numbers from outside the bodies are those that it was prepared for."""
        return all(nest._outside() is outside for nest, outside in zip(self._nests, self._outside, strict=True))

    def take_current_values(self):
        """Take the numbers from outside the bodies as those that it was prepared for: they are equal."""
        self._outside = [nest._outside() for nest in self._nests]

    def environments(self, scalars):
        """Return what the kernels are given with these scalars of each nest: (array, address) of each."""
        if not self.variants:
            return [ready.environment for ready in self.readies]
        each = zip(self.variants, self._numbers, strict=True)
        return [variant.environment(scalars[number]) for variant, number in each]

    def stretch(self, first, most, request):
        """Return the `Stretch` that comes next, of so many repetitions at most."""
        if request.points and not self._visits(request):
            return Stretch(1, visits=True)
        if not self._films or not self._fused:
            return Stretch(most)
        number = bisect.bisect_left(self._film_steps, first)
        next_film = self._film_steps[number] if number < len(self._film_steps) else first + most
        if next_film >= first + most and not self._shows_each:
            return Stretch(most, films=False)
        count = min(next_film - first + 1, most)
        if not request.points or not request.points.adds():
            return Stretch(count)
        # A film shows what nests have computed, before values are added.
        return Stretch(count - 1, films=False) if count > 1 else Stretch(1, visits=True)

    def repeat(self, stretch, request, first):
        """Run some repetitions; collective. ``request.agreed`` is None where the ranks have agreed on them."""
        times = stretch.times
        self._context._heart.progress.of = self._name
        self._leave_out_reductions(times - 1)
        rewritten = list({id(ready): ready for ready in self.readies if ready.after}.values())
        for ready in rewritten:
            begin_updates(ready)
        first = first if self._in_steps else 0
        points = self._points_of(request) if request.points and not stretch.visits else []
        given = times, request.environments(), first, points, stretch.films
        ran = self._context._together(self._core.run, request.agreed, *given)
        self._context._finished(ran)
        for ready in rewritten:
            for step in ready.after:
                step(dataclasses.replace(ready, first_step=first, steps=times) if self._in_steps else ready)
        points = [times * each for each in self.points]
        return Ran(lambda: self._results(ran), points, ran.time_s, ran.moving_s, self._core.buffer_bytes)

    def _visits(self, request):
        """Return whether lanes change and record the points of a request."""
        return self._in_steps and self._fused and request.in_schedule

    def _points_of(self, request):
        """Return what lanes change and record after each time step, by nest."""
        return [request.points.written_by(ready.problem.nest) for ready in self.readies]

    def _leave_out_reductions(self, times):
        """Have so many repetitions computed without reductions, where they take long enough to compile kernels; local:
        the results are the same.
        """
        self._unseen_s += times * sum(plan.predicted.time_s for plan in self.plans) / self.plan_steps
        if self._unreduced is not None or not self._fused:
            return
        if self._unseen_s < LEAST_UNSEEN_S or _core.without(self._context._off, PATH):
            return
        self._unreduced = []
        try:
            for k, ready in enumerate(self.readies):
                if found := ready.core_unreduced():
                    self._compute_unseen_by(k, found[0])
                    self._unreduced.append(found[1])
        except Exception:  # for lack of memory or disk: other ranks wait already
            return

    def _compute_unseen_by(self, number, kernel):
        """Compute repetitions of a nest whose reductions nobody looks at by a kernel of the core; local."""
        self._core.leave_out_reductions(number, kernel)

    def _results(self, ran):
        found = iter([(r.any, r.at, r.bytes) for r in ran.reduced])
        return [each.results(list(itertools.islice(found, len(each.core)))) for each in self._reductions]


def make_body(context, bounds, scalars):
    """The nests as one schedule, or where that is not possible one after another; part of a collective call.

    Parameters
    ----------
    bounds : tuple of Bound
    scalars : list of dict
        Of each nest, in place of the bound ones.
    """
    prepared, readies = {}, []
    for bound, given in zip(bounds, scalars, strict=True):
        key = id(bound), repr(sorted(given.items()))  # a nest may stand several times
        if key not in prepared:  # with the halos of the chain, not those that fields have now
            prepared[key] = yield from bound._prepare(bound._steps, given, halos={})
        readies.append(prepared[key])
    turns = yield from turns_of(bounds, readies, scalars)
    if not (why := why_no_schedule(turns)):
        maker = ChainMaker(context, turns)
        why = _core.choose_chain_layout(maker.members(), context.size, context._off, maker)
    if not why:
        return maker.made
    return Separate(readies, [bound._steps for bound in bounds], why, bounds)


class ChainMaker:
    """Prepares nests with other plans, and joins them, as the core asks it to; its calls are collective.

    `in_steps`: whether repetitions are time steps, which bodies know by number.
    """

    in_steps = False

    def __init__(self, context, turns):
        self._context, self._turns = context, turns
        each = [[(memory_in(ready, view.array), view) for view in ready.problem.nest.views] for ready in turns.readies]
        parts, numbers = {}, {}
        for some in each:
            for memory in {memory for memory, _ in some}:
                parts.setdefault(memory, set()).add(frozenset(view.phases for other, view in some if other == memory))
        # Parts of an array, A[2*i] and A[2*i+1], are two memories where all nests that have it have both.
        self._memories = [
            [numbers.setdefault((m, view.phases if len(parts[m]) == 1 else None), len(numbers)) for m, view in some]
            for some in each
        ]
        self.made = None  # the `OneSchedule` that was joined last

    def members(self):
        """The nests as they are by themselves, for the core."""
        return [
            _core.ChainMember(
                name=self._turns.called(k),
                arrays=[repr(view.array) for view in ready.problem.nest.views],
                memories=self._memories[k],
                problem=ready.sweep.problem,
                plan=ready.sweep.plan,
                fixed=request_of(bound._fixed(), ready.context.threads),
                steps=bound._steps if k not in self._turns.windows else _steps_of(ready),
                in_step=self.in_steps,
                prepared=ready,
                time_s=ready.plan.predicted.time_s,
            )
            for k, (bound, ready) in enumerate(zip(self._turns.bounds, self._turns.readies, strict=True))
        ]

    def prepare(self, number, request, halos, as_planned):
        """(what is prepared, seconds that it is predicted to take) with these choices of its plan, or with the plan
        that the nest has by itself; as text why that is not possible."""
        bound, before = self._turns.bounds[number], self._turns.readies[number]
        plan = before.plan if as_planned else {c: v for c in CHOICES if (v := getattr(request, c)) is not None}
        views = before.problem.nest.views
        halos = {view.array: halo for view, halo in zip(views, halos, strict=True) if halo[0]}
        try:
            ready = _prepared(bound, self._turns.scalars[number], plan, halos, context=self._context)
        except ConfigError as error:  # on all ranks
            return str(error)
        if as_planned:
            ready.plan._explain_as(before.plan)
        return ready, ready.plan.predicted.time_s

    def join(self, readies):
        """Make the schedule of these. Returns why that is not possible, the same on every rank; empty where it is."""
        made, refused = _joined(self._turns, readies, self._memories, self.in_steps, context=self._context)
        self.made = made or self.made
        return refused


@collective("tw.chain")
def _prepared(bound, scalars, plan, halos, *, context):
    return (yield from bound._prepare(bound._steps, scalars, plan, halos))


@collective("tw.chain")
def _joined(turns, readies, memories, in_steps, *, context):
    """(the schedule, "") or (None, why not), the same on every rank."""
    made, refused = None, ""
    each = {id(ready): ready for ready in readies if ready.stored and not ready.anew}.values()
    windows = [{name: stored(ready.arrays[name], context) for name in ready.stored} for ready in each]
    try:
        for ready, whole in zip(each, windows, strict=True):
            ready.store_windows(whole, anew=True)
        for k, whole in turns.windows.items():
            if whole:
                readies[k].store_windows(whole, anew=True)
        made = OneSchedule(context, turns, readies, memories, in_steps)
    except ConfigError as problem:
        refused = str(problem)
    yield
    (all_have,) = context._core.allreduce_min([int(made is not None)])
    return (made, "") if all_have else (None, refused or "another rank refuses")


def _steps_of(ready):
    """The time steps that a nest has at a time."""
    (first, *_), (end, *_) = ready.sweep.problem.space
    return end - first


def several_schedules(names):
    """The text that nests have a schedule each, though ranks agree on nothing between them."""
    return (
        f"nests {', '.join(names)} are several schedules, as one of them has tasks, a rolling window, a field whole on "
        "every rank, rows for several time steps, parts of a field in time, or time steps of several nests; allowed: "
        "the schedule of each"
    )


def why_no_schedule(turns):
    """Why some nest can be no part of a schedule with others; empty where all can."""
    readies, users = turns.readies, {}  # by array
    written = {memory_of(ready.arrays[name]) for ready in readies for name in ready.problem.nest.written}
    written |= {*map(memory_of, turns.wholes)}
    for ready in readies:
        for array in ready.called.values():
            users.setdefault(memory_of(array), set()).add(id(ready))
    for k, ready in enumerate(readies):
        who = turns.called(k)
        if turns.nests[turns.numbers[k]]._visited:  # also of one whose rows are runs of their own
            return f"{who} was bound with inject= or record="
        if ready.renews:
            return f"{who} is a batch, whose tables may move between runs"
        if shared := [n for n in ready.problem.nest.updates if len(users[memory_of(ready.called[n])]) > 1]:
            return f"{who} updates {shared[0]!r} in any order, which another nest uses"
        nest, copied = ready.problem.nest, ready.stand_ins.keys()
        if timed := [v.array for v in nest.views if has_time(nest, v, ready.arrays[v.array])]:
            return f"{who} has time as a dimension of {timed[0]!r}, and time runs backwards"
        changing = [n for n in nest.tables if n not in copied and memory_of(ready.arrays[n]) in written]
        if changing:
            return f"{who} looks up table {changing[0]!r}, which the chain writes"
        turned = [v.array for v in nest.views if nest.axes.get(v.array) != v.indices and v.array not in copied]
        if turned := [n for n in turned if memory_of(ready.arrays[n]) in written]:
            return f"{who} reads array {turned[0]!r} in several orders, and the chain writes it"
    return turns.why


def arrays_by_name(members):
    """Return the arrays of bound nests by name, each of which must be one array to all that have it.

    Raises
    ------
    ConfigError
    """
    found = {}
    for k, member in enumerate(members):
        for name, array in member.arrays.items():
            if memory_of(found.setdefault(name, array)) != memory_of(array):
                raise ConfigError(
                    f"chain: inject= or record= was given, and array {name!r} of nest {k + 1} is not the one of a nest "
                    "before it; allowed: names that mean one array in all nests"
                )
    return found


def check_shared(members):
    """Refuse arrays that share memory and are not the same one, where a nest of the chain writes either.

    Raises
    ------
    ConfigError
    """
    seen, known = [], set()
    for k, member in enumerate(members):
        for name, array in member.arrays.items():
            written = name in member.nest.written
            if (key := (memory_of(array), written)) in known:
                continue  # as another place where it stands
            known.add(key)
            for other_k, other_name, other, other_written in seen:
                if (written or other_written) and _overlap(array, other):
                    raise ConfigError(
                        f"chain: array {other_name!r} of nest {other_k + 1} and array {name!r} of nest {k + 1} share "
                        "memory, and are not the same; allowed: one field, or one NumPy array, for all nests that use "
                        "it, or arrays that share no memory"
                    )
            seen.append((k, name, array, written))


def check_one_valued(nest, fields, members):
    """Refuse what a nest reads at an earlier time step, and another nest of the chain gives earlier time steps.

    Raises
    ------
    ConfigError
    """
    for name, field in fields.items():
        for other in members:
            for written in other.nest.written:
                if other.arrays.get(written) is field and depth_of(other.nest, written):
                    raise ConfigError(has_one_value(nest, name))


def _overlap(a, b):
    """Whether two arrays share memory, but are not one."""
    if isinstance(a, Field) and isinstance(b, Field) or memory_of(a) == memory_of(b):
        return False
    if isinstance(a, Field) or isinstance(b, Field):
        field, array = (a, b) if isinstance(a, Field) else (b, a)
        return field.keep == "all" and field._holds(array)
    return bool(a.size and b.size and np.shares_memory(a, b))
