"""How a chain repeats its nests: as one schedule, or one after another."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilewave import _core
from tilewave.context.collective import collective, where
from tilewave.errors import ERRORS, ConfigError
from tilewave.field.field import Field
from tilewave.nest.changed import has_time
from tilewave.nests.bound_variant import Variant
from tilewave.plan.plan import CHOICES, request_of

#: Seconds, predicted, of repetitions whose reductions nobody looks at, after which kernels are compiled for them: that
#: takes 0.05 to 0.2 s.
LEAST_UNSEEN_S = 0.05
#: The fast path.
PATH = "unreduced"


def memory_of(array):
    """Equal for arrays that are one field, or one NumPy array's elements in the same place."""
    if isinstance(array, Field):
        return id(array)
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str


class Ran(NamedTuple):
    """What some repetitions were: seconds, points, and the reductions of the last one, a dict for each nest."""

    results: Callable[[], list[dict[str, Any]]]
    time_s: float = 0.0
    moving_s: float = 0.0
    points: int = 0
    buffer_bytes: int = 0

    def after(self, before):
        """Both, one after another."""
        time_s, moving_s = self.time_s + before.time_s, self.moving_s + before.moving_s
        return Ran(self.results, time_s, moving_s, self.points + before.points, self.buffer_bytes)


class Separate:
    """The nests run one after another, as each does by itself."""

    quick = False

    def __init__(self, bounds, why):
        self._bounds, self.why, self.plans = bounds, why, None

    def is_current(self):
        """Each nest looks for itself."""
        return True

    def repeat(self, times, request):
        """So many repetitions; collective."""
        ran = Ran(list)
        for repetition in range(times):
            reports = []
            for k, bound in enumerate(self._bounds):
                try:
                    report = bound.run(**request.of(bound))
                except ERRORS as error:
                    place = f"nest {k + 1} of the chain, repetition {repetition + 1}"
                    raise _with_text(error, f"{error} ({place})") from None
                ran = Ran(list, *report._brief).after(ran)
                reports.append(report)
        return ran._replace(results=lambda: [report.results for report in reports])


class OneSchedule:
    """The nests as one schedule: nothing is agreed on between them, and tiles begin when their inputs are there."""

    quick, why = True, ""

    def __init__(self, context, bounds, readies, memories):
        self._context, self._name = context, ", ".join(bound.nest.name for bound in bounds)
        self.plans, self.readies, self.memories = [ready.plan for ready in readies], readies, memories
        self._reductions = [ready.reductions for ready in readies]
        self.variants = [
            Variant(bound, ready, None, f" (nest {k + 1} of the chain)")
            for k, (bound, ready) in enumerate(zip(bounds, readies, strict=True))
        ]
        for k, variant in enumerate(self.variants):
            if variant.core is None:
                raise ConfigError(f"an array of {_called(bounds, k)} is copied for each run")
        self._core = _core.ChainedSweep(context._core, [variant.core for variant in self.variants], memories)
        self._unseen_s, self._unreduced = 0.0, None
        self._nests = list({id(bound.nest): bound.nest for bound in bounds}.values())
        self.take_current_values()

    @property
    def in_turn(self):
        """Repetitions whose tiles take turns; 0: nests follow each other whole."""
        return self._core.in_turn

    def prepare(self, times):
        """Make what so many repetitions need; local. The ranks then agree, and repeat them with nothing else agreed."""
        self._core.prepare(times)

    def leave_arrays(self):
        """Keep no array alive: whoever repeats it has them. For nests without reductions."""
        self.readies, self.variants, self._unreduced = [], [], []

    def is_current(self):
        """Whether the numbers from outside the bodies are those that it was prepared for."""
        return all(nest._outside() is outside for nest, outside in zip(self._nests, self._outside, strict=True))

    def take_current_values(self):
        """Take the numbers from outside the bodies as those that it was prepared for: they are equal."""
        self._outside = [nest._outside() for nest in self._nests]

    def repeat(self, times, request):
        """So many repetitions; collective. ``request.agreed`` is None where the ranks have agreed on them."""
        if self._context._dry_run is not None:
            return self.planned(times, self.readies)
        self._context._heart.progress.of = self._name
        self._leave_out_reductions(times - 1)
        ran = self._context._together(self._core.run, request.agreed, times, request.environments())
        self._context._finished(ran)
        return Ran(lambda: self._results(ran), ran.time_s, ran.moving_s, ran.points, self._core.buffer_bytes)

    def planned(self, times, readies):
        """So many repetitions in a dry run, of nests with arrays: each takes what is predicted for it by itself."""
        calls, all_s, points = self._context._dry_run.calls, 0.0, 0
        for ready in readies:
            all_s += (time_s := times * ready.plan.predicted.time_s)
            points += times * ready.sweep.points
            name = f"nest {ready.problem.nest.name}"
            calls.add(name, time_s, ready.plan, [array for each in readies for array in each.arrays.values()])
        found = [calls.results(ready.reductions.asked, where()) for ready in readies]
        return Ran(lambda: found, all_s, 0.0, points)

    def _leave_out_reductions(self, times):
        """Have so many repetitions computed without reductions, where they take long enough to compile kernels; local:
        the results are the same.
        """
        self._unseen_s += times * sum(plan.predicted.time_s for plan in self.plans)
        if self._unreduced is not None or self._unseen_s < LEAST_UNSEEN_S or _core.without(self._context._off, PATH):
            return
        self._unreduced = []
        try:
            for k, ready in enumerate(self.readies):
                if found := ready.core_unreduced():
                    self._core.leave_out_reductions(k, found[0])
                    self._unreduced.append(found[1])
        except Exception:  # for lack of memory or disk: other ranks wait already
            return

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
    if not (why := why_no_schedule(bounds, readies)):
        maker = ChainMaker(context, bounds, scalars, readies)
        why = _core.choose_chain_layout(maker.members(), context.size, context._off, maker)
    return Separate(bounds, why) if why else maker.made


class ChainMaker:
    """Prepares nests with other plans, and joins them, as the core asks it to; its calls are collective."""

    def __init__(self, context, bounds, scalars, readies):
        self._context, self._bounds, self._scalars, self._readies = context, bounds, scalars, readies
        numbers = {}
        self._memories = [
            [numbers.setdefault(memory_of(ready.arrays[view.array]), len(numbers)) for view in ready.problem.nest.views]
            for ready in readies
        ]
        self.made = None  # the `OneSchedule` that was joined last

    def members(self):
        """The nests as they are by themselves, for the core."""
        return [
            _core.ChainMember(
                name=_called(self._bounds, k),
                arrays=[repr(view.array) for view in ready.problem.nest.views],
                memories=self._memories[k],
                problem=ready.sweep.problem,
                plan=ready.sweep.plan,
                fixed=request_of(bound._fixed(), ready.context.threads),
                steps=bound._steps,
                prepared=ready,
                time_s=ready.plan.predicted.time_s,
            )
            for k, (bound, ready) in enumerate(zip(self._bounds, self._readies, strict=True))
        ]

    def prepare(self, number, request, halos, as_planned):
        """(what is prepared, seconds that it is predicted to take) with these choices of its plan, or with the plan
        that the nest has by itself; as text why that is not possible."""
        bound, before = self._bounds[number], self._readies[number]
        plan = before.plan if as_planned else {c: v for c in CHOICES if (v := getattr(request, c)) is not None}
        views = before.problem.nest.views
        halos = {view.array: halo for view, halo in zip(views, halos, strict=True) if halo[0]}
        try:
            ready = _prepared(bound, self._scalars[number], plan, halos, context=self._context)
        except ConfigError as error:  # on all ranks
            return str(error)
        if as_planned:
            ready.plan._explain_as(before.plan)
        return ready, ready.plan.predicted.time_s

    def join(self, readies):
        """Make the schedule of these. Returns why that is not possible, the same on every rank; empty where it is."""
        made, refused = _joined(self._bounds, readies, self._memories, context=self._context)
        self.made = made or self.made
        return refused


@collective("tw.chain")
def _prepared(bound, scalars, plan, halos, *, context):
    return (yield from bound._prepare(bound._steps, scalars, plan, halos))


@collective("tw.chain")
def _joined(bounds, readies, memories, *, context):
    """(the schedule, "") or (None, why not), the same on every rank."""
    made, refused = None, ""
    try:
        made = OneSchedule(context, bounds, readies, memories)
    except ConfigError as problem:
        refused = str(problem)
    yield
    (all_have,) = context._core.allreduce_min([int(made is not None)])
    return (made, "") if all_have else (None, refused or "another rank refuses")


def _called(bounds, number):
    """A nest of a chain in messages."""
    return f"nest {number + 1}, {bounds[number].nest.name!r},"


def why_no_schedule(bounds, readies):
    """Why some nest can be no part of a schedule with others; empty where all can."""
    written = {memory_of(ready.arrays[name]) for ready in readies for name in ready.problem.nest.written}
    for k, ready in enumerate(readies):
        who = _called(bounds, k)
        if ready.on_one_rank:
            return f"{who} is computed by one rank"
        windows = [n for n, a in ready.arrays.items() if isinstance(a, Field) and a.keep == "window"]
        nest = ready.problem.nest
        if timed := [v.array for v in nest.views if has_time(nest, v, ready.arrays[v.array])]:
            return f"{who} has time as a dimension of {timed[0]!r}, and time runs backwards"
        if windows:
            return f"{who} keeps a rolling window only of {windows[0]!r}"
        if ready.replicated:
            return f"{who} needs field {ready.replicated[0]!r} whole on every rank"
        changing = [n for n in ready.problem.nest.tables if memory_of(ready.arrays[n]) in written]
        if changing:
            return f"{who} looks up table {changing[0]!r}, which the chain writes"
        if ready.kernel.copies_tables:
            return f"{who} has tables that are copied for each run"
        turned = [v.array for v in nest.views if nest.axes.get(v.array) != v.indices]
        if turned := [n for n in turned if memory_of(ready.arrays[n]) in written]:
            return f"{who} reads array {turned[0]!r} in several orders, and the chain writes it"
    return ""


def _with_text(error, text):
    """An error of the same kind with another text, which every rank raises."""
    other = type(error)(text)
    for name in ("agreed", "quiet", "partial", "of_program"):
        if hasattr(error, name):
            setattr(other, name, getattr(error, name))
    return other


def check_shared(bounds):
    """Refuse arrays that share memory and are not the same one, where a nest of the chain writes either.

    Raises
    ------
    ConfigError
    """
    seen, known = [], set()
    for k, bound in enumerate(bounds):
        for name, array in bound._first.ready.arrays.items():
            written = name in bound.nest.written
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


def _overlap(a, b):
    """Whether two arrays share memory, but are not one."""
    if isinstance(a, Field) and isinstance(b, Field) or memory_of(a) == memory_of(b):
        return False
    if isinstance(a, Field) or isinstance(b, Field):
        field, array = (a, b) if isinstance(a, Field) else (b, a)
        return field.keep == "all" and field._holds(array)
    return bool(a.size and b.size and np.shares_memory(a, b))
