"""A nest with its arrays, ready to run."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewave.context import interrupts
from tilewave.context.collective import collective, holds_context
from tilewave.context.lru_cache import LruCache
from tilewave.errors import ConfigError, shown
from tilewave.field.field import Field
from tilewave.field.views import is_stale_view
from tilewave.kernel.scalars import Slot
from tilewave.nest import timeless
from tilewave.nest.nest import Nest
from tilewave.nests.call.arguments import as_numbers
from tilewave.nests.call.known_calls import KnownRuns, in_every_bit
from tilewave.nests.call.problem import depth_of, read_earlier
from tilewave.nests.call.run_call import RunCall
from tilewave.nests.plan.prepare import prepare
from tilewave.nests.points.points import visited_points
from tilewave.nests.rewrites.backwards import scalars_of
from tilewave.nests.run.prepared_run import NAME, PreparedRun
from tilewave.nests.verify.check import copied
from tilewave.nests.verify.plain_call import PlainCall
from tilewave.plan.fixed import fixed_by, refuse_choices
from tilewave.plan.plan import CHOICES, Plan

if TYPE_CHECKING:
    from tilewave.context.context import Context
    from tilewave.nests.run.report import Report

#: Variants that a bound nest has, at most: for numbers of steps, and for types of scalars.
MOST_VARIANTS = 16

#: Scalars whose values decide nothing about a kernel: a call with others takes 25 us less than one that is prepared.
FLOATS = (float, np.float64)


class Member(NamedTuple):
    """A nest of a chain, with what it was bound with."""

    nest: Nest
    arrays: dict[str, Any]
    reduce: Any
    scalars: dict[str, Any]


@holds_context
class Bound(KnownRuns):
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

    def __init__(self, call: RunCall) -> None:
        nest = self.nest = call.nests
        self.context, self.record, self._call = call.context, False, call
        self._arguments, (self._plan, self._choices) = (
            as_numbers(nest, call.arguments),
            fixed_by(call.plan),
        )
        self._loops, self._steps, self._reduce, self._visited = call.loops, call.loops.steps, call.reduce, ()
        self._variants = LruCache(MOST_VARIANTS)
        self._alike = LruCache(MOST_VARIANTS)  # calls by steps and types of scalars, all of them FLOATS

    def _prepare_first(self):
        """Prepare what runs with the bound arguments need; part of a collective call."""
        self._loops, self._visited = yield from visited_points(self._call, self._arguments)
        ready = yield from self._prepare(self._steps, {})
        self.context._bound += 1
        self._number = self.context._bound
        given = {**self._arguments, **scalars_of(self.nest, self._loops)}
        self._scalars = self.nest.bind_scalars({n: v for n, v in given.items() if n in self.nest.scalars})
        nest, steps = ready.problem.nest, self._steps is not None
        in_time = [name for name in nest.written if steps and isinstance(ready.arrays[name], Field)]
        self._depths = [(ready.arrays[name], depth_of(nest, name)) for name in in_time]
        self._one_valued = self._read_earlier(nest, ready.arrays) if steps else {}
        self._depths += [(field, 0) for field in self._one_valued.values()]
        self._look_after(ready.called.values())
        self._first = self._add(self._steps, {}, ready)

    def _read_earlier(self, nest, arrays):
        """Fields by name that the nest reads at an earlier time step, and nobody writes: none may have a history."""
        tables = timeless.read_earlier(self.nest, self._loops, self._arguments)
        found = {name: self._arguments[name] for name in tables}
        found |= {name: arrays[name] for name in read_earlier(nest, arrays)}
        return {name: array for name, array in found.items() if isinstance(array, Field)}

    def _prepare(self, steps, scalars, plan=None, halos=None):
        """A `BoundNest` for so many steps and these scalars in place of the bound ones; part of a collective call.

        A whole plan takes the place of the bound one; choices of it, and least `halos` of fields, are additional.
        """
        if not isinstance(plan, Plan):
            plan = self._plan or {**self._choices, **(plan or {})}
        loops, arguments = dataclasses.replace(self._loops, steps=steps), {**self._arguments, **scalars}
        call = dataclasses.replace(self._call, plan=plan)
        ready = yield from prepare(call, loops, arguments, halos)
        ready.visited = self._visited
        self._arguments = {**self._arguments, **ready.called}  # what stood for scratch is the same in all variants
        return ready

    def _fixed(self):
        """The choices of its plan that the user has fixed."""
        return dict(zip(CHOICES, self._plan.choices(), strict=True)) if self._plan else self._choices

    def _add(self, steps, scalars, ready):
        """The variant for so many steps and such scalars."""
        kind = self._kind(scalars)
        self._variants[kind, steps] = variant = PreparedRun(self, ready, kind)
        return variant

    def _variant(self, steps, scalars, exactly=False):
        """The variant that was prepared for so many steps, else one that serves them unless it is to be `exactly` that;
        None: there is none."""
        kind = self._kind(scalars)
        variant = self._variants.get((kind, steps))
        if variant is None and steps is not None and not exactly:
            variant = next((each for each in self._variants.values() if each.serves(kind, steps)), None)
        return variant

    @property
    def _members(self):
        """The nest, for a chain."""
        return [Member(self.nest, self._first.ready.called, self._reduce, self._scalars)]

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
            call = self._known_run(steps, scalars)
        if call is None:
            return self._run(steps, context, scalars)
        try:
            return call.run()
        finally:
            self.context._lock.release()

    @staticmethod
    def _run_key(steps, scalars):
        """Scalars count by type and every bit."""
        if not scalars:
            return steps.__class__, steps
        return steps.__class__, steps, *in_every_bit(scalars)

    def _prepare_run(self, steps, scalars):
        """What a run needs that is not recorded; None where a variant is to be prepared, or copies arrays."""
        floats = bool(scalars) and all(value.__class__ in FLOATS for value in scalars.values())
        kind = (steps.__class__, steps, self._kept(), *((name, value.__class__) for name, value in scalars.items()))
        call = self._alike.get(kind) if floats else None
        if call is None or not call.is_current():
            call = self._made_call(steps, scalars)
            if floats and call is not None:
                self._alike[kind] = call
            return call
        return call.with_floats(scalars, self._description(self._steps if steps is None else int(steps), scalars))

    def _made_call(self, steps, scalars):
        self._check(steps, None, scalars)
        wanted = self._steps if steps is None else int(steps)
        variant = self._variant(wanted, scalars)
        if variant is None or variant.ready.copies_arrays or variant.ready.is_rewritten or variant.core is None:
            return None
        return variant.call(wanted, scalars, self._description(wanted, scalars))

    @collective(NAME)
    def _run(self, steps, context, scalars):
        begun = time.perf_counter()
        self._check(steps, context, scalars)
        steps = self._steps if steps is None else int(steps)
        # As a rank that needs not come here finds it; where lanes are recorded all come here.
        variant = self._variant(steps, scalars, exactly=self.record)
        if variant is not None and variant.ready.renews:
            variant = None
        if variant is not None:
            variant.refresh(scalars, steps)
        yield self._description(steps, scalars)
        if variant is None:
            variant = self._add(steps, scalars, (yield from self._prepare(steps, scalars)))
            self._runs.clear()
            self._alike.clear()
        check = yield from copied(self.context, lambda: [self._plain_call(steps, scalars)])
        report = yield from variant.run(self.record, begun, steps)
        if check is not None:
            yield from check.compare(report)
        return report

    def _plain_call(self, steps, scalars):
        """What one run means."""
        loops, arguments = dataclasses.replace(self._loops, steps=steps), {**self._arguments, **scalars}
        return PlainCall(dataclasses.replace(self._call, loops=loops, arguments=arguments))

    def _check(self, steps, context, scalars):
        """What one run is given, and what has become of the arrays; local."""
        if context is not None and context is not self.context:
            raise ConfigError(
                f"{self._called()} was bound on {self.context!r}, and is run with context={context!r}; allowed: the "
                "context that it was bound on, or tilewave.bind(..., context=) for the other"
            )
        if steps is not None:
            if self._steps is None:
                raise ConfigError(
                    f"steps={shown(steps)} was given, and {self._called()} was bound without steps; allowed: "
                    "tilewave.bind(..., steps=)"
                )
            right = isinstance(steps, int | np.integer) and not isinstance(steps, bool)
            if not right or not 0 <= steps <= 2**40:
                raise ConfigError(f"steps: given {shown(steps)}; allowed: an integer >= 0, up to 2**40")
            if self._visited and steps != self._steps:
                raise ConfigError(
                    f"steps={steps} was given, and {self._called()} has inject= or record= for {self._steps} time "
                    "steps; allowed: so many"
                )
        if scalars:
            refuse_choices({name: value for name, value in scalars.items() if name not in self.nest.scalars})
            self.nest.bind_scalars({**self._scalars, **scalars})
        for name, array in self._first.ready.called.items():
            if isinstance(array, Field) and array.closed:
                raise ConfigError(
                    f"array {name!r} of {self._called()} is a field that was closed; allowed: to run a bound nest "
                    "while its fields are open"
                )
            if isinstance(array, np.ndarray) and is_stale_view(array):
                raise ConfigError(
                    f"array {name!r} of {self._called()} is a view of a field from before a run moved the field's "
                    "values elsewhere; allowed: to bind the field itself, or a copy() of the view"
                )

    def _kind(self, scalars):
        """Equal for runs that have the same kernel, and may differ in steps."""
        slots = tuple(Slot.of(name, value) for name, value in sorted({**self._scalars, **scalars}.items()))
        return self.nest.signature(), slots, self._kept()

    def _kept(self):
        """Earlier time steps that a run keeps of each field: another nest may have read more of them since."""
        return tuple([max(field.history, depth) for field, depth in self._depths])

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
        arrays = ", ".join(f"{name}: {_text(value)}" for name, value in self._first.ready.called.items())
        scalars = "".join(f", {name}={value!r}" for name, value in self._scalars.items())
        steps = "" if self._steps is None else f", {self._steps} steps"
        return f"<tilewave.Bound {self.nest.name}({arrays}{scalars}){steps}: {self._first.ready.plan._to_core()}>"


def _text(array):
    return f"{array.dtype} {array.shape}" + ("" if isinstance(array, Field) else " NumPy array")
