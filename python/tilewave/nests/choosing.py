"""Choosing a plan: what the core's planner needs of Python, and what it has found as a `Plan`."""

import dataclasses

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError, shown
from tilewave.field.values import values_at
from tilewave.kernel.compile import compile_kernel
from tilewave.nests.operands import order_of
from tilewave.nests.plan_changes import kept_rates
from tilewave.nests.prepared import PreparedNest, core_kernel, probe, shapes_of_tables, with_plan
from tilewave.nests.problem import with_names
from tilewave.nests.replicated import copies_of, count_copies
from tilewave.nests.steps import whole_blocks
from tilewave.notices import warn
from tilewave.plan import planning
from tilewave.plan.plan import ALLOWED, chosen_plan, request_of


def decide(context, given):
    """The plan and what was prepared for it, the same on all ranks; collective.

    Returns
    -------
    PreparedNest
        None where another rank has failed, or one was interrupted: the next agreement says so.
    """
    call = store = error = None
    try:
        call, store = core_call(context, given), kept_rates.store_of(context)
    except BaseException as problem:
        error = problem
    with with_names(given.nest):
        chosen = _core.choose_together(context._core, call, KernelMaker(context, given), store)
    if error is not None:
        raise error
    return chosen and _prepared(context, given, chosen)


def core_call(context, given):
    """A call as the core's planner sees it; local."""
    skew = given.plan.skew if given.plan else given.choices.get("skew")
    if skew and not (
        isinstance(skew, tuple) and len(skew) == 2 and all(type(k) is int and abs(k) < 2**31 for k in skew)
    ):
        raise ConfigError(f"skew: given {shown(skew)}; allowed: {ALLOWED['skew']}")
    key = given.key
    return _core.NestCall(
        problem=given.problem.core,
        request=request_of(given.choices, context.threads),
        plan=given.plan and given.plan._to_core(),
        blocks=given.loops.steps / given.block if given.block else 1,
        body=repr((key.kernel, key.reductions, key.nest, key.lines, [*map(order_of, given.arrays.values())])),
        memory=repr(key.memory),
        in_place=_brought(given),
        # The lanes that are here measure for those that are not.
        lanes_here=None if planning.wanted is None else len(_core.allowed_cpus()),
    )


class KernelMaker:
    """Makes kernels of a call's body for the core's planner, and measures them: its calls are local."""

    def __init__(self, context, given):
        self._context, self._given = context, given

    def vectors_across(self, problem):
        """Whether the body is made of vectors where points of a row across two loops are neighbours."""
        given = self._given
        nest = given.reductions.nest
        return compile_kernel(
            nest,
            given.dtypes,
            given.scalars,
            fastmath=given.fastmath,
            steps=[1] * len(nest.places),
            independent=True,
            captured=given.captured,
            shapes=shapes_of_tables(given),
            off=problem.paths_off,
        ).vectors

    def prepare(self, alternative, plan, like):
        """A `PreparedNest` for a plan of an alternative; `like`: for another plan of it, or None."""
        if like is None:
            request = alternative.request
            rows = {name: value for name in ("row", "storage", "skew") if (value := getattr(request, name)) is not None}
            like = PreparedNest(
                problem=dataclasses.replace(self._given.problem, core=alternative.problem),
                on_one_rank=alternative.on_one_rank,
                context=self._context.solo() if alternative.on_one_rank else self._context,
                choices={**self._given.choices, **rows},
            )
        return with_plan(self._given, like, plan)

    def sample(self, prepared, budget_s):
        """Times of tiles, as `_core.PreparedSweep.sample` gives them."""
        return sampled(self._given, prepared, budget_s)

    def bringing_s(self, prepared):
        """Seconds that bring NumPy arrays into the order of rows across and back, of which there is one rank."""
        return prepared.sweep.conversion_s(probe(self._given, prepared, prepared.subscripts)[0])


def sampled(given, prepared, budget_s):
    """Times of tiles of three shapes on this rank, all its lanes at once."""
    initial = {name: values_at(given.whole[name], points) for name, points in prepared.subscripts.items()}
    for name in copies_of(given.whole, given.replicated):
        given.arrays[name].fill(0)  # memory that has never been written is one page of zeros, which the caches hold
    operands, _ = probe(given, prepared, prepared.subscripts, initial)
    environment = prepared.kernel.pack({**given.scalars, **given.captured}, given.tables)
    kernel = core_kernel(prepared.kernel, environment.ctypes.data, given.tables, given.reductions)
    return prepared.sweep.sample(operands, kernel, budget_s)


def _brought(given):
    return any(isinstance(given.arrays[name], np.ndarray) for name in given.nest.written)


def _prepared(context, given, chosen):
    """What was prepared for the plan that was chosen; local."""
    by_rules, border_s, choice = chosen.prepared, 0.0, chosen.choice
    whole = given.plan is not None
    plan = shown_plan(context, given, by_rules, choice.ranked, chosen.rate, considered=choice.considered, whole=whole)
    if len(chosen.times) > 1:
        plan.notes["ways"] = [_way(*one, at == chosen.at) for at, one in enumerate(chosen.times)]
    if given.block:
        machine = context._core.machine()
        border_s = _core.border_s(by_rules.problem.core, plan._to_core(), machine, chosen.rate.rate)
    return with_shown_plan(given, by_rules, plan, rate=chosen.rate, border_s=border_s)


def shown_plan(context, given, prepared, ranked, rate, *, considered, whole):
    """The first of the ranked candidates as a `Plan`, with what was chosen from; see `chosen_plan`."""
    plan = chosen_plan(
        prepared.problem,
        ranked,
        considered,
        rate,
        ranks=prepared.context.size,
        threads=request_of(given.choices, context.threads).threads,
        cpus=None if planning.wanted is not None else context.share,  # where the ranks are not here
        machine=context._core.machine(),
        choices=prepared.choices,
        fixed=given.choices,
        whole=whole,
    )
    count_copies(given, prepared.on_one_rank, plan)
    return plan


def with_shown_plan(given, prepared, plan, **facts):
    """The same with a plan: of as many time steps as go together in a block, where the call has blocks; local."""
    if given.block:
        core = prepared.problem.core.with_steps(whole_blocks(given.block, plan))
        prepared = dataclasses.replace(prepared, problem=dataclasses.replace(prepared.problem, core=core))
    prepared = with_plan(given, prepared, plan._to_core())
    return dataclasses.replace(prepared, plan=plan, number=plan._number(), **facts)


def _way(alternative, time_s, bringing_s, taken):
    """What an alternative would take, as plain data."""
    return {
        "time_s": time_s,
        "bringing_s": bringing_s,
        "on_one_rank": alternative.on_one_rank,
        "choices": {name: getattr(alternative.request, name) for name in ("row", "storage", "skew")},
        "taken": taken,
    }


def warn_of_unused_threads(context, there, plan):
    """On rank 0, where a plan has more lanes than a rank has CPUs and threads of its context."""
    cpus = len(_core.allowed_cpus())
    if plan.threads > max(there.threads, cpus) and context.rank == 0 and planning.wanted is None:
        warn(f"{plan.threads} threads are more than the {cpus} CPUs allowed here: the run is slower")
