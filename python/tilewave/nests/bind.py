"""Nests that are agreed on, planned and compiled once, and run many times."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING

import numpy as np

from tilewave.errors import ConfigError, shown
from tilewave.field.field import Field, is_stale_view
from tilewave.kernel.scalars import Slot
from tilewave.nest.bounds import Loops
from tilewave.nest.nest import Nest
from tilewave.nest.reserved import takes_nests
from tilewave.nests.bound_way import NAME, Way
from tilewave.nests.prepare import prepare
from tilewave.plan.fixed import fixed_by
from tilewave.runtime import interrupts
from tilewave.runtime.collective import collective, holds_context
from tilewave.runtime.kept import Kept

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tilewave.annotations import Choices, Collective, Over
    from tilewave.nests.reduction import Reduction
    from tilewave.nests.report import Report
    from tilewave.plan.plan import Plan
    from tilewave.runtime.context import Context

#: Ways of a bound nest that are kept, at most: numbers of steps that have schedules of their own, types of scalars.
MOST_WAYS = 16
#: Runs whose steps and scalars are remembered with all that they need.
MOST_CALLS = 32


@takes_nests
@collective("tw.bind")
def bind(
    nest: Nest,
    *,
    context: Context | None = None,
    over: Over | None = None,
    reverse: Sequence[str] = (),
    steps: int | None = None,
    periodic: Sequence[str] = (),
    plan: Plan | Choices | None = None,
    fastmath: bool = False,
    reduce: Mapping[str, Reduction] | None = None,
    **arguments: Any,
) -> Collective[Bound]:
    """Agree on a nest's arguments, plan and compile once, to run it many times; collective.

    Parameters
    ----------
    nest : Nest
        Made with ``@tilewave.nest``.
    context, over, reverse, steps, periodic, plan, fastmath, reduce, **arguments
        As `tilewave.run` takes them. Scalars and `steps` may be others in each run.

    Returns
    -------
    Bound
        ``bound.run()`` computes what ``tilewave.run`` with the same arguments would, bit for bit.

    Raises
    ------
    ConfigError
        On every rank: as `tilewave.run`; for a tuple of nests.

    Notes
    -----
    Collective; costs what the first call of `tilewave.run` costs beside the work. The bound nest keeps its arrays
    alive. A NumPy array is bound as it lies in memory now.
    """
    if not isinstance(nest, Nest):
        raise ConfigError(
            f"bind: given {type(nest).__name__}; allowed: one function under @tilewave.nest, and a bind for each nest"
        )
    arguments = {
        name: value.view() if name in nest.arrays and type(value) is np.ndarray else value
        for name, value in arguments.items()
    }
    loops = Loops(over, reverse, steps, periodic=tuple(periodic) if isinstance(periodic, list) else periodic)
    given = BoundArguments(nest, context, loops, plan, fastmath, reduce, arguments)
    ready = yield from given.prepare(steps, {})
    context._bound += 1
    return Bound(given, ready, context._bound)


class BoundArguments:
    """What a nest was bound to."""

    steps: int | None
    arguments: dict[str, Any]
    nest: Nest
    context: Context | None
    reduce: Any
    plan: Plan | None
    choices: dict[str, Any]

    def __init__(self, nest, context, loops, plan, fastmath, reduce, arguments):
        self.nest, self.context, self.steps, self.reduce = nest, context, loops.steps, reduce
        self._loops, self._fastmath, self.arguments = loops, fastmath, arguments
        self.plan, self.choices = fixed_by(plan)

    @property
    def scalars(self):
        """By name, those that were given or have a default."""
        given = {name: value for name, value in self.arguments.items() if name in self.nest.scalars}
        return self.nest.bind_scalars(given)

    def prepare(self, steps, scalars, choices=None, halos=None, like=None):
        """A `BoundNest` for so many steps and these scalars in place of the bound ones; part of a collective call.

        `choices` of the plan, and least `halos` of fields, are in addition to what was bound. A plan `like` it was
        chosen with narrower halos, and the choices are its own: it is taken where it can be, and nothing is searched.
        """
        loops = dataclasses.replace(self._loops, steps=steps)
        arguments = {**self.arguments, **scalars}
        here = self.nest, self.context, loops
        ready = None
        if like is not None and self.plan is None:
            try:
                ready = yield from prepare(*here, like, self._fastmath, arguments, self.reduce, halos)
            except ConfigError:  # on all ranks
                ready = None
            else:
                ready.plan._explain_as(like)
        if ready is None:
            plan = self.plan or {**self.choices, **(choices or {})}
            ready = yield from prepare(*here, plan, self._fastmath, arguments, self.reduce, halos)
        # What stood for scratch stays the same in all ways of running it.
        self.arguments = {**self.arguments, **ready.arrays}
        return ready


@holds_context
class Bound:
    """A nest with its arrays, ready to run; made by `bind`.

    Attributes
    ----------
    nest : Nest
    context : Context
    plan : Plan
        That of the bound number of steps.
    record : bool
        Whether runs note what every lane does when, for the report's `timeline` and `lanes`; the same on every rank.
        False at first: to note it and to gather it on rank 0 takes longer than a short run.
    """

    nest: Nest
    context: Context
    record: bool

    def __init__(self, given: Any, ready: Any, number: int) -> None:
        self.nest, self.context, self.record = given.nest, given.context, False
        self._given, self._number, self._scalars = given, number, given.scalars
        self._fields = [(name, value) for name, value in ready.arrays.items() if isinstance(value, Field)]
        self._views = [
            (name, value)
            for name, value in ready.arrays.items()
            if isinstance(value, np.ndarray) and value.base is not None
        ]
        self._ways = Kept(MOST_WAYS)
        self._calls = Kept(MOST_CALLS)
        key = self._key(given.steps, {})
        self._ways[key] = self._first = Way(given, ready, key)

    @property
    def plan(self) -> Plan:
        """The plan of the bound number of steps, to be looked at or edited; a copy."""
        return self._first.ready.plan._copy()

    def _schedules(self, context):
        """What is ready for the bound number of steps, for `tilewave.schedule`; part of a collective call."""
        if context is not self.context:
            raise ConfigError(f"schedule: context: nest {self.nest.name!r} is bound on another; allowed: that one")
        yield f"bound nest {self._number}"
        return self._first.ready

    @interrupts.keeps
    def run(self, *, steps: int | None = None, context: Context | None = None, **scalars: Any) -> Report:
        """Run the nest; collective.

        Parameters
        ----------
        steps : int, optional
            Time steps of this run, where the nest was bound with ``steps=``. Default: the bound number.
        context : Context, optional
            Only the one that the nest was bound on is allowed.
        **scalars
            Scalars of this run. The next one has the bound values again.

        Returns
        -------
        Report
            Made when it is looked at. Its `timeline` and `lanes` are empty unless `record` is set.

        Raises
        ------
        ConfigError
            On every rank, before anything runs: for what cannot be run, on any rank; when the ranks run different bound
            nests, or with different scalars or steps.
        KernelError
            On every rank: when the body raised on any. The written arrays are then unspecified; the bound nest may be
            run again.
        KeyboardInterrupt
            On every rank, when one was interrupted.

        Notes
        -----
        Collective. A field that another nest has moved to another layout is brought back first: the report's
        ``measured.moving_s`` says how long that took.
        """
        call = None
        if context is None and not self.record:
            with contextlib.suppress(Exception):  # of what was given, as _run will find and say on every rank
                call = self._calls.get(_call_key(steps, scalars)) or self._prepare_call(steps, scalars)
        if call is None or not self._is_ready(call) or not self.context._lock.acquire(False):
            return self._run(steps, context, scalars)  # which says what is wrong, waits, or prepares
        try:
            return call.run()
        finally:
            self.context._lock.release()

    def _prepare_call(self, steps, scalars):
        """What a run without records needs, made on this rank alone; None where that is not enough, or not right."""
        try:
            self._check(steps, None, scalars)
            wanted = self._given.steps if steps is None else int(steps)
            way = self._way(self._key(wanted, scalars), wanted)
            if way is None or not way.quick:
                return None
            call = way.call(wanted, scalars, self._description(wanted, scalars))
        except Exception:  # as _run will find
            return None
        self._calls[_call_key(steps, scalars)] = call
        return call

    def _is_ready(self, call):
        """Whether nothing has changed that a run must look at first. The same on every rank, or a rank that finds more
        to do says the same as the others at first."""
        for _, field in self._fields:
            if field._storage is None and field.keep == "all":
                return False
        for _, array in self._views:
            if is_stale_view(array):
                return False
        return call.outside is self.nest._outside()

    def _way(self, key, steps, exactly=False):
        """The way that serves so many steps, if there is one: that of blocks of steps serves any number from those
        that go together on. `exactly`: only the one that was prepared for them."""
        way = self._ways.get(key)
        if way is None and steps is not None and not exactly:
            way = next((each for each in self._ways.values() if each.serves(key, steps)), None)
        return way

    @collective(NAME)
    def _run(self, steps, context, scalars):
        begun = time.perf_counter()
        self._check(steps, context, scalars)
        steps = self._given.steps if steps is None else int(steps)
        key = self._key(steps, scalars)
        # As a rank that needs not come here finds it; where lanes are recorded all come here.
        way = self._way(key, steps, exactly=self.record)
        if way is not None:
            way.refresh(scalars, steps)
        yield self._description(steps, scalars)
        if way is None:
            ready = yield from self._given.prepare(steps, scalars)
            self._calls.clear()
            way = self._ways[key] = Way(self._given, ready, key)
            if key == self._key(self._given.steps, {}):
                self._first = way
        return (yield from way.run(self.record, begun, steps))

    def _check(self, steps, context, scalars):
        """What one run is given, and what has become of the arrays; local."""
        if context is not None and context is not self.context:
            raise ConfigError(
                f"{self._called()} was bound on {self.context!r}, and is run with context={context!r}; allowed: the "
                "context that it was bound on, or tilewave.bind(..., context=) for the other"
            )
        if steps is not None:
            if self._given.steps is None:
                raise ConfigError(
                    f"steps={shown(steps)} was given, and {self._called()} was bound without steps; allowed: "
                    "tilewave.bind(..., steps=)"
                )
            right = isinstance(steps, int | np.integer) and not isinstance(steps, bool)
            if not right or not 0 <= steps <= 2**40:
                raise ConfigError(f"steps: given {shown(steps)}; allowed: an integer >= 0, up to 2**40")
        if scalars:
            self.nest.bind_scalars({**self._scalars, **scalars})
        for name, field in self._fields:
            if field.closed:
                raise ConfigError(
                    f"array {name!r} of {self._called()} is a field that was closed; allowed: to run a bound nest "
                    "while its fields are open"
                )
        for name, array in self._views:
            if is_stale_view(array):
                raise ConfigError(
                    f"array {name!r} of {self._called()} is a view of a field from before a run moved the field's "
                    "values elsewhere; allowed: to bind the field itself, or a copy() of the view"
                )

    def _key(self, steps, scalars):
        """Equal for runs that have the same schedule and kernel."""
        slots = tuple(Slot.of(name, value) for name, value in sorted({**self._scalars, **scalars}.items()))
        return self.nest.signature(), steps, slots

    def _called(self):
        return f"bound nest {self._number}, {self.nest.name!r}"

    def _description(self, steps, scalars):
        """What must be equal on all ranks, as text."""
        values = ", ".join(f"{name}={value!r}" for name, value in sorted({**self._scalars, **scalars}.items()))
        return (
            f"{self._called()} {self.nest.signature()[:12]}, steps {steps}, scalars {values or 'none'}"
            f"{', recorded' if self.record else ''}"
        )

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name}: {_text(value)}" for name, value in self._first.ready.arrays.items())
        scalars = "".join(f", {name}={value!r}" for name, value in self._scalars.items())
        steps = "" if self._given.steps is None else f", {self._given.steps} steps"
        return f"<tilewave.Bound {self.nest.name}({arrays}{scalars}){steps}: {self._first.ready.plan._to_core()}>"


def _text(array):
    return f"{array.dtype} {array.shape}" + ("" if isinstance(array, Field) else " NumPy array")


def _call_key(steps, scalars):
    """Equal for the same steps and scalars: these count by type and every bit."""
    if not scalars:
        return steps.__class__, steps
    return steps.__class__, steps, *((name, value.__class__, repr(value)) for name, value in scalars.items())
