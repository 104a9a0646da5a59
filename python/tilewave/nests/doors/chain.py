"""Bound nests that run as one schedule, again and again."""

from __future__ import annotations

import functools
import itertools
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave import units
from tilewave.context import interrupts
from tilewave.context.collective import collective, holds_context, ready
from tilewave.context.lru_cache import LruCache
from tilewave.errors import ConfigError
from tilewave.nest.nest import Nest
from tilewave.nests.call.known_calls import KnownRuns, in_every_bit
from tilewave.nests.chain.body import arrays_by_name, check_one_valued, check_shared, make_body, several_schedules
from tilewave.nests.chain.in_turn import in_turn
from tilewave.nests.chain.report import listed
from tilewave.nests.chain.request import NAME, Request, chain_request
from tilewave.nests.doors.bound_steps import BoundSteps
from tilewave.nests.points.off_grid import OffGrid
from tilewave.nests.points.points import Points
from tilewave.nests.run.bound import Bound
from tilewave.nests.run.repetitions import repeated, repeated_here
from tilewave.nests.verify.check import copied

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from tilewave.annotations import Collective
    from tilewave.context.context import Context
    from tilewave.nests.chain.report import ChainReport
    from tilewave.plan.plan import Plan

#: Schedules of a chain, at most: one for each combination of types of scalars.
MOST_BODIES = 8


@interrupts.keeps
def chain(
    nests: Sequence[Bound | BoundSteps],
    *,
    context: Context | None = None,
    inject: Mapping[str, tuple[npt.ArrayLike | OffGrid, npt.ArrayLike]] | None = None,
    record: Mapping[str, npt.ArrayLike | OffGrid] | None = None,
) -> Chain:
    """Make bound nests one schedule that runs as often as asked; collective.

    Parameters
    ----------
    nests : list of Bound or BoundSteps
        From `tilewave.bind`, in their order; one may stand there several times. Several nests that were bound as one
        run all of their time steps.
    context : Context, optional
        Only the one that the nests were bound on is allowed.
    inject, record : dict, optional
        As of `tilewave.run`, after each repetition in place of each time step: values have a row for each repetition
        of the longest run. A name means one array in all nests.

    Returns
    -------
    Chain
        ``chain.run(times=n)`` computes what ``for _ in range(n)`` over ``nest.run()`` of each would, bit for bit.

    Raises
    ------
    ConfigError
        On every rank: for what is no list of bound nests; for nests bound on different contexts; for fields that were
        closed; for arrays that share memory and are not the same.

    Notes
    -----
    Collective. Nests that share fields get one layout: plans with one process grid and storage, and halos wide enough
    for all. Where the plans that they have by themselves differ, they are planned once more. Where a nest has tasks, a
    rolling window or a field that every rank needs whole, each nest has a schedule: a rank begins it when it has ended
    the one before, and ranks agree on nothing between them. Where neither is possible they run one after another, and
    ``chain.separate`` says why: those of more time steps than a block has, or whose arrays are copied for each run.
    """
    if context is None and isinstance(nests, list | tuple):
        context = next((nest.context for nest in nests if isinstance(nest, Bound | BoundSteps)), None)
    return _chain(nests, (inject, record), context=context)


@collective("tw.chain")
def _chain(nests: Sequence[Bound | BoundSteps], points: Any, *, context: Context | None = None) -> Collective[Chain]:
    bounds = _checked(nests, context)
    made = Chain(bounds, context, context._chains + 1, points)
    made._points_for(0)
    yield f"bound nests {', '.join(str(bound._number) for bound in bounds)}"
    context._chains += 1  # on all ranks or none
    made._first = yield from made._body([{} for _ in made._members])
    return made


def _checked(nests, context):
    """The nests of a chain, which must be bound, on one context; local."""
    allowed = "allowed: a list of bound nests, one or more, from tilewave.bind"
    if not isinstance(nests, list | tuple):
        raise ConfigError(f"chain: given {type(nests).__name__}; {allowed}")
    if not nests:
        raise ConfigError(f"chain: given an empty list; {allowed}")
    for k, bound in enumerate(nests):
        if not isinstance(bound, Bound | BoundSteps):
            what = f"nest {bound.name!r}, which is not bound" if isinstance(bound, Nest) else type(bound).__name__
            raise ConfigError(f"chain: given {what}, as nest {k + 1}; {allowed}")
        if bound.context is not context:
            raise ConfigError(
                f"chain: nest {k + 1}, {bound._called()}, was bound on {bound.context!r}, and the chain is of "
                f"{context!r}; allowed: nests bound on one context"
            )
        if isinstance(bound, Bound):
            bound._check(None, None, {})
    members = [member for bound in nests for member in bound._members]
    check_shared(members)
    for bound in nests:
        if isinstance(bound, Bound):
            check_one_valued(bound.nest, bound._one_valued, members)
    return tuple(nests)


def _parts_of(bounds, context, number):
    """Return what runs one after another: chains of bound nests, and several nests that were bound as one."""
    parts = []
    for is_one, group in itertools.groupby(bounds, lambda bound: isinstance(bound, Bound)):
        each = tuple(group)
        parts += [Chain(each, context, number)] if is_one else each
    return parts


def _with_scalars(parts, scalars):
    """Each part with the scalars of its nests."""
    scalars = iter(scalars)
    return [(part, [*itertools.islice(scalars, len(part._members))]) for part in parts]


def _first_rows(given, times):
    """Return (points, values) with the rows of so many repetitions, where they are such a pair."""
    if not isinstance(given, tuple | list) or len(given) != 2 or np.ndim(given[1]) == 0:
        return given
    values = given[1] if isinstance(given[1], np.ndarray) else np.asarray(given[1])
    return _first_places(given[0], times), values[:times]


def _first_places(points, times):
    return points._first(times) if isinstance(points, OffGrid) else points


def _changed(given, change, times):
    """Each of what is given by name, if it is a dict, for so many repetitions."""
    return {name: change(each, times) for name, each in given.items()} if isinstance(given, dict) else given


@holds_context
class Chain(KnownRuns):
    """Bound nests in their order, ready to run; made by `chain`.

    Attributes
    ----------
    nests : tuple of Bound or BoundSteps
    context : Context
    """

    nests: tuple[Bound | BoundSteps, ...]
    context: Context

    def __init__(
        self,
        bounds: tuple[Bound | BoundSteps, ...],
        context: Context,
        number: int,
        points: tuple[Any, Any] = (None, None),
    ) -> None:
        self.nests, self.context, self._number, self._points = bounds, context, number, points
        self._members = [member for bound in bounds for member in bound._members]
        self._names = tuple(member.nest.name for member in self._members)
        self._name = ", ".join(self._names)
        several = any(isinstance(bound, BoundSteps) for bound in bounds)
        self._parts = _parts_of(bounds, context, number) if several else ()
        self._look_after([array for member in self._members for array in member.arrays.values()])
        self._bodies, self._first = LruCache(MOST_BODIES), None

    @property
    def separate(self) -> str:
        """Why the nests run one after another; empty where they are one schedule."""
        return self._first.why

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of each nest in the chain, to be looked at; copies."""
        return [plan._copy() for plan in self._first.plans]

    def explain(self) -> str:
        """How the nests run, and why so, as text."""
        how = "as one schedule, in which ranks agree on nothing between nests"
        if self.separate:
            how = f"one after another, because {self.separate}"
        elif not self._first.is_one:
            how = "one after another on each rank, which agree on nothing between them"
        lines = [f"{listed(self._names)} run {how}."]
        if not self.separate and (count := self._first.in_turn):
            times = f"{count} repetitions" if count > 1 else "a repetition"
            lines.append(f"Slices of the nests take turns over {times}, while their elements are in cache.")
        unit, cells = units.column((plan.predicted.time_s for plan in self.plans), units.TIMES)
        lines += ["", f"  predicted alone, {unit}"]
        for k, (name, plan, cell) in enumerate(zip(self._names, self.plans, cells, strict=True)):
            lines.append(f"  {cell}  {k + 1} {name}: {plan._short()}")
        return "\n".join(lines)

    def _schedules(self, context):
        """The nests that are ready to run as one schedule, for `tilewave.schedule`; part of a collective call."""
        if context is not self.context:
            raise ConfigError(f"schedule: context: chain {self._number} is bound on another; allowed: that one")
        if self.separate:
            raise ConfigError(
                f"schedule: chain {self._number} is no single schedule: {self.separate}; allowed: the schedules of its "
                "nests"
            )
        if not self._first.is_one:
            raise ConfigError(f"schedule: {several_schedules(self._names)}")
        yield f"chain {self._number}"
        return self._first

    @interrupts.keeps
    def run(
        self,
        times: int | None = None,
        *,
        until: Callable[[dict[str, Any]], bool] | Mapping[str, float] | None = None,
        every: int = 1,
        scalars: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        **more: Any,
    ) -> ChainReport:
        """Run the nests in their order, again and again; collective.

        Parameters
        ----------
        times : int, optional
            Repetitions; with `until` the most. Default: 1, and no default with `until`.
        until : dict or function, optional
            When to end before. ``{"r": 1e-8}``: when the reduction named "r" of a nest (``tw.bind(reduce=)``) is at
            most 1e-8; of several, all. A function is given a dict of all reductions' values, on every rank, and ends
            the run when it returns true. Where nests use one name, the last one's value counts.
        every : int, optional
            `until` is looked at after every so many repetitions. Default: 1.
        scalars : dict, optional
            Scalars of this run by name, given to each nest that has one of this name. The next run has the bound values
            again.
        **more
            Scalars, too: ``omega=1.5``.

        Returns
        -------
        ChainReport

        Raises
        ------
        ConfigError
            On every rank, before anything runs: for what cannot be run, on any rank; when the ranks run different
            chains, or with different arguments. When `until` gives different answers on the ranks.
        KernelError
            On every rank: when the body of a nest raised on any; its text names the nest. The written arrays are then
            unspecified; the chain may be run again.
        KeyboardInterrupt
            On every rank, when one was interrupted.

        Notes
        -----
        Collective. As one schedule, a run costs two rounds of ceil(log2 ranks) messages beyond its work, each test of
        `until` as much again. A field that another nest has moved to another layout is brought back first.
        """
        given = times, until, every, scalars, more
        request = self._known_run(*given)
        if request is None:
            return self._run(*given)
        outer, self.context._doing = self.context._doing, NAME
        try:
            next(repeated_here(self.context, request, time.perf_counter()))
        except StopIteration as done:
            return done.value
        finally:
            self.context._doing = outer
            self.context._lock.release()

    @staticmethod
    def _run_key(times, until, every, scalars, more):
        """Scalars count by type and every bit; a function may give other answers."""
        if until is None and not scalars and not more:
            return times.__class__, times, every.__class__, every
        if callable(until):
            return None
        given = [in_every_bit(some) if isinstance(some, dict) else some for some in (until, scalars, more)]
        return repr((times, every, given))

    def _prepare_run(self, *given):
        """The `Request` of a run as one schedule; None where it is to be prepared, or nests run one after another."""
        if self._points != (None, None) or self._parts:
            return None
        request = self._request(*given)
        request.body = self._bodies.get(self._key(request.scalars))
        return request if request.body and request.body.quick and request.times else None

    def _request(self, times, until, every, scalars, more):
        """The arguments, checked; local."""
        if scalars is not None and not isinstance(scalars, dict):
            raise ConfigError(f"scalars: given {type(scalars).__name__}; allowed: a dict by name")
        if twice := scalars and more.keys() & scalars.keys():
            raise ConfigError(f"scalar {min(twice)!r} was given twice; allowed: in scalars= or by its name")
        return chain_request(self, times, until, every, {**(scalars or {}), **more})

    @collective(NAME)
    def _run(self, times, until, every, scalars, more):
        begun = time.perf_counter()
        request = self._request(times, until, every, scalars, more)
        for bound in self.nests:
            if isinstance(bound, Bound):
                bound._check(None, None, {})
        yield request.text
        request.body = yield from self._body(request.scalars)
        check = yield from copied(self.context, lambda: self._plain_calls(request.scalars), self._points)
        try:
            report = yield from repeated(self.context, request, begun)
        finally:
            if self._parts:
                request.body.leave_arrays()
        if check is not None:
            yield from check.compare(report, self.plans, report.repetitions, request.every, report.history)
        return report

    def _body(self, scalars):
        """How the nests run with these scalars; part of a collective call."""
        if self._parts:
            makers = [
                (functools.partial(part._once, given), not isinstance(part, Chain) and part._begins_anew)
                for part, given in _with_scalars(self._parts, scalars)
            ]
            return (yield from in_turn(self.context, makers))
        body = self._bodies.get(self._key(scalars))
        if body is None:
            body = self._bodies[self._key(scalars)] = yield from make_body(self.context, self.nests, scalars)
        elif not body.is_current():
            body.take_current_values()
            self._runs.clear()
        return body

    def _once(self, scalars):
        """The `Request` of one repetition with scalars of each nest, ready to run; part of a collective call."""
        body = yield from self._body(scalars)
        yield from ready("one schedule", lambda: body.prepare(1) if body.quick else None)
        return Request(self._names, 1, scalars=scalars, body=body)

    def _plain_calls(self, scalars):
        """What one repetition means."""
        return [
            bound._plain_call(bound._steps, *given) if isinstance(bound, Bound) else bound._plain_call(given)
            for bound, given in _with_scalars(self.nests, scalars)
        ]

    def _points_for(self, times):
        """Return the `Points` of so many repetitions, checked, or None; local."""
        if self._points == (None, None):
            return None
        inject, record = self._points
        inject, record = _changed(inject, _first_rows, times), _changed(record, _first_places, times)
        nests = tuple(member.nest for member in self._members)
        return Points(inject, record, nests, arrays_by_name(self._members), times)

    def _key(self, scalars):
        """Equal for runs that have the same schedule and kernels."""
        each = zip(self.nests, scalars, strict=True)
        return tuple((bound._kind(given), bound._first.ready.parts and repr(given)) for bound, given in each)

    def _kept(self):
        return [bound._kept() for bound in self.nests if isinstance(bound, Bound)]

    def _called(self):
        return f"chain {self._number} of {self._name}"

    def __repr__(self) -> str:
        how = "one schedule" if self._first.is_one else "several schedules"
        how = f"one after another, because {self.separate}" if self.separate else how
        return f"<tilewave.Chain of {self._name}: {how}>"
