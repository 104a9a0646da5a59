"""Choosing a plan: what the core's planner needs of Python, and what it has found as a `Plan`."""

import dataclasses
import json
import math

import numpy as np

from tilewave import _core, units
from tilewave.errors import ConfigError, shown
from tilewave.kernel.compile import layouts_of
from tilewave.machine import known
from tilewave.nests.call.operands import copies_of, order_of
from tilewave.nests.call.problem import with_names
from tilewave.nests.call.step_blocks import whole_blocks
from tilewave.nests.plan.kernel_maker import KernelMaker, shapes_of_tables, with_plan
from tilewave.notices import log
from tilewave.plan.fixed import USUAL
from tilewave.plan.plan import ALLOWED, CHOICES, asked_for, chosen_plan, placed, request_of
from tilewave.plan.sentence import sentence
from tilewave.timeline.parts import Parts, Predicted


def decide(context, given, before):
    """The plan and what was prepared for it, the same on all ranks; collective. `before`: what was prepared for equal
    calls, or None.

    Returns
    -------
    PreparedNest
        None where another rank has failed, or one was interrupted: the next agreement says so.
    """
    call = error = None
    try:
        call = core_call(context, given, before.runs.ran_s if before and before.runs else 0.0)
        _core.rate_store(context._core).launch = launch_of(context)
    except BaseException as problem:
        error = problem
    with with_names(given.nest):
        chosen = _core.choose_together(context._core, call, KernelMaker(context, given))
    if error is not None:
        raise error
    return chosen and prepared_from(context, given, chosen, before)


def launch_of(context):
    """A text that differs where rates may: for other launches, and machines that were measured at other times.

    Empty where no rates are stored, as no machine is. The same on every rank.
    """
    machine = context._machine
    if machine is None or not _core.measure.connected(context._core):
        return ""
    if not all(name in machine.conditions for name in known.CACHED):
        return ""
    # One that was measured beside other work is not stored: the next process has another, and the same rates.
    names = known.CACHED if "busy" in machine.conditions else (*known.CACHED, "date")
    return json.dumps({name: machine.conditions.get(name) for name in names}, sort_keys=True)


def core_call(context, given, ran_s):
    """A call as the core's planner sees it, of which runs have taken so many seconds; local."""
    skew = given.plan.skew if given.plan else given.choices.get("skew")
    if skew and not (
        isinstance(skew, tuple) and len(skew) == 2 and all(type(k) is int and abs(k) < 2**31 for k in skew)
    ):
        raise ConfigError(f"skew: given {shown(skew)}; allowed: {ALLOWED['skew']}")
    key, orders = given.key, [*map(order_of, given.arrays.values())]
    # How tables are looked up, and whether from a core's cache: a rate of small ones is none of large ones.
    cache_bytes = context._core.machine().cache_bytes
    layouts = layouts_of(given.reductions.nest, shapes_of_tables(given))
    tables = [*zip(layouts, (table.nbytes > cache_bytes for table in given.tables.values()), strict=False)]
    return _core.PlanCall(
        problem=given.problem.core,
        request=request_of(given.choices, context.threads),
        plan=given.plan and given.plan._to_core(),
        blocks=given.loops.steps / given.block if given.block else 1,
        body=repr((key.kernel, key.reductions, key.nest, key.lines, orders, tables)),
        memory=repr(key.memory),
        in_place=any(isinstance(given.arrays[name], np.ndarray) for name in given.nest.written),
        lanes_here=context._ranks.lanes,
        ran_s=ran_s,
    )


def prepared_from(context, given, chosen, before):
    """What was prepared for the plan that was chosen, in place of what was prepared `before`; local."""
    by_rules, border_s, choice = chosen.prepared, 0.0, chosen.choice
    whole = given.plan is not None
    plan = python_plan(context, given, by_rules, choice.ranked, chosen.rate, considered=choice.considered, whole=whole)
    if len(chosen.times) > 1:
        plan.notes["alternatives"] = [_way(*one, at == chosen.at) for at, one in enumerate(chosen.times)]
    plan.notes["planning"] = _spending(chosen.spending, given, before, plan)
    if context.rank == 0:
        spent = units.seconds(chosen.spending.spent_s)
        log("INFO", "%s Planning took %s beyond compiling.", lambda: sentence(plan, "runs"), spent)
    if given.block:
        machine = context._core.machine()
        border_s = _core.border_s(by_rules.problem.core, plan._to_core(), machine, chosen.rate.rate)
    runs = _core.RunsOfPlan(chosen.spending, before.runs.ran_s if before and before.runs else 0.0)
    return prepared_for(context, given, by_rules, plan, rate=chosen.rate, border_s=border_s, runs=runs)


def _spending(spending, given, before, plan):
    """What planning has cost, as plain data."""
    late = spending.not_measured
    return {
        "planning": given.choices.get("planning", USUAL),
        "budget_s": spending.budget_s if math.isfinite(spending.budget_s) else None,
        "spent_s": spending.spent_s,
        "before_s": spending.before_s,
        "samples": spending.samples,
        "settled": spending.settled,
        "runs_s": before.runs.ran_s if before and before.runs else 0.0,
        "replaced": before.plan._short() if before and before.plan != plan else "",
        "not_measured": late
        and {
            "time_s": late.time_s,
            "choices": {name: getattr(late.plan, name) for name in CHOICES},
        },
    }


def python_plan(context, given, prepared, ranked, rate, *, considered, whole):
    """The first of the ranked candidates as a `Plan`, with what was chosen from; see `chosen_plan`."""
    machine, ranks = context._core.machine(), 1 if prepared.on_one_rank else context.size
    plan = chosen_plan(prepared.problem, ranked, considered, rate, machine, ranks)
    threads = request_of(given.choices, context.threads).threads
    asked_for(plan, threads, prepared.choices, given.choices, whole)
    count_copies(given, prepared.on_one_rank, plan)
    context._ranks.run(
        lambda: placed(plan, context),
        lambda calls: calls.all_ranks and simulate_all(context, prepared.problem, ranked[0].plan, rate, plan),
    )
    return plan


def simulate_all(context, problem, core, rate, plan):
    """Predict a plan anew, with all ranks on the network of the machine."""
    found = _core.evaluate(problem.core, core, context._core.machine(), rate.rate, all_ranks=True)
    before = plan.predicted
    plan.predicted = Predicted(found.time_s, Parts.of(found.parts), before._simulate, before._faces)
    plan.notes["sample"] = found.sample


def prepared_for(context, given, prepared, plan, **facts):
    """The same with a plan: of as many time steps as go together in a block, where the call has blocks; local."""
    if given.block:
        core = prepared.problem.core.with_steps(whole_blocks(given.block, plan))
        prepared = dataclasses.replace(prepared, problem=dataclasses.replace(prepared.problem, core=core))
    prepared = with_plan(context, given, prepared, plan._to_core())
    return dataclasses.replace(prepared, plan=plan, number=plan._number(), **facts)


def _way(alternative, time_s, bringing_s, taken):
    """What an alternative would take, as plain data."""
    return {
        "time_s": time_s,
        "bringing_s": bringing_s,
        "on_one_rank": alternative.on_one_rank,
        "generator": alternative.plan.generator,
        "choices": {name: getattr(alternative.request, name) for name in ("row", "storage", "skew", "weights")},
        "taken": taken,
    }


def warn_of_unused_threads(context, plan):
    """On rank 0, where a plan has more lanes than a rank has CPUs and threads of its context."""
    cpus = len(_core.allowed_cpus())
    if plan.threads > max(context.threads, cpus):
        context._ranks.warn(f"{plan.threads} threads are more than the {cpus} CPUs allowed here: the run is slower")


def count_copies(given, on_one_rank, plan):
    """Note the fields that each rank gets whole in a plan that was chosen, and count them, or those of one for all."""
    copies = copies_of(given.whole, given.replicated)
    if copies and not on_one_rank:
        plan.notes["replicated"] = copies
    plan.memory_bytes += sum(copies.values())
    for record in plan.ranked:
        record["memory_bytes"] += sum(copies.values())
