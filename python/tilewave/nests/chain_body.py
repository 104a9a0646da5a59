"""The two ways in which a chain repeats its nests: as one schedule, or one after another."""

import dataclasses

import numpy as np

from tilewave import _core
from tilewave.errors import ERRORS, ConfigError
from tilewave.field.field import Field
from tilewave.nests.bound_way import Way
from tilewave.nests.plan_changes.chain_layout import candidates, fit, memory_of, shared_arrays, written_by

#: A layout is taken, and no other one tried, where the nests take at most so many times what they take with plans of
#: their own.
MOST_OF_APART = 1.05


@dataclasses.dataclass
class Ran:
    """What some repetitions were."""

    time_s: float
    moving_s: float
    points: int
    results: object  # gives the reductions of the last repetition, a dict for each nest
    buffer_bytes: int = 0

    @classmethod
    def nothing(cls, nests):
        """No repetition at all."""
        return cls(0.0, 0.0, 0, lambda: [{} for _ in range(nests)])

    def then(self, other):
        """Both, one after another."""
        return Ran(
            self.time_s + other.time_s,
            self.moving_s + other.moving_s,
            self.points + other.points,
            other.results,
            other.buffer_bytes,
        )


@dataclasses.dataclass
class Member:
    """One nest of a chain, with the scalars that it is prepared for."""

    bound: object
    scalars: dict

    @property
    def given(self):
        """What it was bound to."""
        return self.bound._given

    @property
    def name(self):
        """That of its nest."""
        return self.bound.nest.name

    @property
    def key(self):
        """Equal for places of a chain where the same nest runs with the same scalars."""
        return id(self.bound), repr(sorted(self.scalars.items()))

    def prepare(self, choices=None, halos=None, like=None):
        """A `BoundNest`; part of a collective call. Halos are those of the chain, not those that fields have now."""
        return self.given.prepare(self.given.steps, self.scalars, choices, halos or {}, like)


class Separate:
    """The nests run one after another, as each does by itself."""

    quick = False

    def __init__(self, bounds, why):
        self._bounds, self.why, self.plans = bounds, why, None

    def as_prepared(self):
        """Each nest looks for itself."""
        return True

    def repeat(self, times, request):
        """So many repetitions; collective."""
        time_s, moving_s, points, reports = 0.0, 0.0, 0, []
        for repetition in range(times):
            reports = []
            for k, bound in enumerate(self._bounds):
                try:
                    report = bound.run(**request.of(bound))
                except ERRORS as error:
                    place = f"nest {k + 1} of the chain, repetition {repetition + 1}"
                    raise _with_text(error, f"{error} ({place})") from None
                seconds, moving, count = report._brief
                time_s, moving_s, points = time_s + seconds, moving_s + moving, points + count
                reports.append(report)
        return Ran(time_s, moving_s, points, lambda: [report.results for report in reports])


class OneSchedule:
    """The nests as one schedule: nothing is agreed on between them, and tiles begin when their inputs are there."""

    quick, why = True, ""

    def __init__(self, context, members, readies, name):
        self.context, self._name, self.plans = context, name, [ready.plan for ready in readies]
        self.ways = [
            Way(member.given, ready, None, f" (nest {k + 1} of the chain)")
            for k, (member, ready) in enumerate(zip(members, readies, strict=True))
        ]
        for k, (way, member) in enumerate(zip(self.ways, members, strict=True)):
            if way._core is None:
                raise ConfigError(f"an array of nest {k + 1}, {member.name!r}, is copied for each run")
        numbers = {}
        memories = [
            [numbers.setdefault(memory_of(ready.arrays[view.array]), len(numbers)) for view in ready.problem.nest.views]
            for ready in readies
        ]
        self.readies, self.memories = list(readies), memories
        self._core = _core.ChainedSweep(context._core, [way._core for way in self.ways], memories)
        self._nests = list({id(member.bound.nest): member.bound.nest for member in members}.values())
        self.take_current_values()

    def as_prepared(self):
        """Whether the numbers from outside the bodies are those that it was prepared for."""
        return all(nest._outside() is outside for nest, outside in zip(self._nests, self._outside, strict=True))

    def take_current_values(self):
        """Take the numbers from outside the bodies as those that it was prepared for: they are equal."""
        self._outside = [nest._outside() for nest in self._nests]

    def repeat(self, times, request):
        """So many repetitions; collective."""
        environments = request.environments(self)
        self.context._heart.progress.of = self._name
        ran = self.context._finished(self.context._together(self._core.run, request.said, times, environments))
        return Ran(ran.time_s, ran.moving_s, ran.points, lambda: self._results(ran), self._core.buffer_bytes)

    def _results(self, ran):
        found, results = [(r.any, r.at, r.bytes) for r in ran.reduced], []
        for way in self.ways:
            reductions = way.ready.reductions
            count = len(reductions.core)
            results.append(reductions.results(found[:count]))
            found = found[count:]
        return results


def make_body(context, bounds, scalars, name):
    """The nests as one schedule, or where that is not possible one after another; part of a collective call.

    Parameters
    ----------
    bounds : tuple of Bound
    scalars : list of dict
        Of each nest, in place of the bound ones.
    name : str
        Of the chain, for the line of progress.
    """
    members = [Member(bound, own) for bound, own in zip(bounds, scalars, strict=True)]
    prepared = {}
    for member in members:
        if member.key not in prepared:
            prepared[member.key] = yield from member.prepare()
    readies = [prepared[member.key] for member in members]
    if why := _in_time(members, readies) or _not_in_a_schedule(members, readies):
        return Separate(bounds, why)
    shared, best, why = shared_arrays(readies), None, "the nests' fields have no layout in common"
    apart_s = sum(ready.plan.predicted.time_s for ready in readies)
    for choices in candidates(readies, shared):
        fitted = yield from fit(members, readies, shared, choices)
        if isinstance(fitted, str):
            why = fitted
            continue
        predicted_s = sum(ready.plan.predicted.time_s for ready in fitted)
        if best is not None and predicted_s >= best[0]:
            continue
        made, refused = yield from _made(context, members, fitted, name)
        if made is None:
            why = refused
        else:
            best = predicted_s, made
            if not any(choices) or predicted_s <= MOST_OF_APART * apart_s:
                break  # no layout can be much better
    return best[1] if best else Separate(bounds, why)


def _made(context, members, readies, name):
    """(the schedule, "") or (None, why not), the same on every rank; part of a collective call."""
    made, refused, error = None, "", None
    try:
        made = OneSchedule(context, members, readies, name)
    except ConfigError as problem:
        refused = str(problem)
    except BaseException as problem:
        error = problem
    yield error
    (all_have,) = context._core.allreduce_min([int(made is not None)])
    if not all_have:
        return None, refused or "another rank refuses"
    return made, ""


def _in_time(members, readies):
    """Why nests that step in time can be no part of a schedule with others; empty where they can."""
    kept = {}  # by memory: the nest that keeps time steps of it, and how many buffers
    for k, (member, ready) in enumerate(zip(members, readies, strict=True)):
        if member.given.steps is None:
            continue
        who = f"nest {k + 1}, {member.name!r},"
        if ready.steps is not None:
            block = ready.sweep.problem.space[1][0]
            return f"{who} runs {ready.steps} time steps in blocks of {block}; in one schedule: at most {block}"
        if member.given.steps == 0:
            return f"{who} runs no time step"
        for view, buffers in zip(ready.problem.nest.views, ready.sweep.problem.time_buffers, strict=True):
            if buffers == 0:
                continue
            other, theirs = kept.setdefault(memory_of(ready.arrays[view.array]), (k, buffers))
            if theirs != buffers:
                kept_steps = f"{_earlier(theirs)} and {_earlier(buffers)} earlier time steps of {view.array!r}"
                return f"nests {other + 1} and {k + 1} keep {kept_steps}"
    return ""


def _earlier(buffers):
    """Time steps before the current one that so many buffers keep after a run."""
    return max(buffers - 2, 0)


def _not_in_a_schedule(members, readies):
    """Why some nest can be no part of a schedule with others; empty where all can."""
    written = written_by(readies)
    for k, (member, ready) in enumerate(zip(members, readies, strict=True)):
        who = f"nest {k + 1}, {member.name!r},"
        if ready.on_one_rank:
            return f"{who} is computed by one rank"
        windows = [n for n, a in ready.arrays.items() if isinstance(a, Field) and a.keep == "window"]
        if windows:
            return f"{who} keeps a rolling window only of {windows[0]!r}"
        if ready.replicated:
            return f"{who} needs field {ready.replicated[0]!r} whole on every rank"
        changing = [n for n in ready.problem.nest.tables if memory_of(ready.arrays[n]) in written]
        if changing:
            return f"{who} looks up table {changing[0]!r}, which the chain writes"
        if ready.kernel.copies_tables:
            return f"{who} has tables that are copied for each run"
        nest = ready.problem.nest
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
                        "it, or arrays with memory of their own"
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
