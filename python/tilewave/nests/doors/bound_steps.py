"""Several nests that are agreed on, planned and compiled once, and run in time steps many times."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

from tilewave.context import interrupts
from tilewave.context.collective import collective, holds_context
from tilewave.nests.call.arguments import as_numbers
from tilewave.nests.call.step_members import reductions_of
from tilewave.nests.chain.report import joined
from tilewave.nests.chain.several import time_step_of, windows_of
from tilewave.nests.doors.run import run_compared
from tilewave.nests.run.bound import Member
from tilewave.nests.run.prepared_run import NAME
from tilewave.nests.verify.plain_call import PlainCall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tilewave.context.context import Context
    from tilewave.nest.nest import Nest
    from tilewave.nests.call.run_call import RunCall
    from tilewave.nests.chain.report import ChainReport
    from tilewave.plan.plan import Plan


@holds_context
class BoundSteps:
    """Several nests with their arrays, ready to run one after another in each time step; made by `bind`.

    Attributes
    ----------
    nests : tuple of Nest
    context : Context
    """

    nests: tuple[Nest, ...]
    context: Context

    def __init__(self, call: RunCall) -> None:
        self.nests, self.context, self._plans = tuple(call.nests), call.context, ()
        self._call = dataclasses.replace(call, arguments=as_numbers(self.nests, call.arguments))

    def _prepare_first(self):
        """Prepare what runs with the bound arguments need; part of a collective call."""
        _, step = yield from time_step_of(self._call)
        self._plans = tuple(step.body.plans)
        self.context._bound += 1
        self._number = self.context._bound

    @property
    def _members(self):
        """The nests, for a chain."""
        given = self._call.arguments
        each = zip(self.nests, reductions_of(self.nests, self._call.reduce), strict=True)
        return [Member(nest, _of(given, nest.arrays), reduce, _of(given, nest.scalars)) for nest, reduce in each]

    def _called(self):
        return f"bound nests {self._number}, {', '.join(nest.name for nest in self.nests)}"

    def _once(self, scalars):
        """The `Request` of all time steps with scalars of each nest, ready to run; part of a collective call."""
        request, _ = yield from time_step_of(self._with(self._call.loops, joined(scalars)))
        return request

    @property
    def _begins_anew(self):
        """Whether rolling windows begin each run with other values than the run before has left."""
        return bool(windows_of(self._call.arguments))

    def _plain_call(self, scalars):
        """What all time steps mean."""
        return PlainCall(self._with(self._call.loops, joined(scalars)), in_chain=True)

    def _with(self, loops, scalars, **more):
        return dataclasses.replace(self._call, loops=loops, arguments={**self._call.arguments, **scalars}, **more)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of each nest, for one time step, to be looked at; copies."""
        return tuple(plan._copy() for plan in self._plans)

    @interrupts.keeps
    def run(
        self,
        *,
        steps: int | None = None,
        until: Callable[[dict[str, Any]], bool] | Mapping[str, float] | None = None,
        every: int = 1,
        **scalars: Any,
    ) -> ChainReport:
        """Run the nests, one after another in each time step; collective.

        Parameters
        ----------
        steps : int, optional
            Time steps of this run. Default: the bound number.
        until, every
            As of `tilewave.run`.
        **scalars
            Scalars of this run. The next one has the bound values again.

        Returns
        -------
        ChainReport

        Raises
        ------
        ConfigError
            On every rank, before anything runs: for what cannot be run, on any rank; when the ranks run different
            nests, or with different scalars or steps.
        KernelError
            On every rank: when a body raised on any. The written arrays are then unspecified; the nests may be run
            again.
        KeyboardInterrupt
            On every rank, when one was interrupted.

        Notes
        -----
        Collective.
        """
        return self._run(steps, until, every, scalars)

    @collective(NAME)
    def _run(self, steps, until, every, scalars):
        begun, loops = time.perf_counter(), self._call.loops
        loops = loops if steps is None else dataclasses.replace(loops, steps=steps)
        return (yield from run_compared(self._with(loops, scalars, until=until, every=every), begun))

    def __repr__(self) -> str:
        return f"<tilewave.BoundSteps {', '.join(nest.name for nest in self.nests)}: {self._call.loops.steps} steps>"


def _of(arguments, names):
    return {name: arguments[name] for name in names if name in arguments}
