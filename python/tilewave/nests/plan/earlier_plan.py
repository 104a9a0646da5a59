"""The plan of an earlier run, fitted to one of the same nest and arrays whose bounds or number of steps differ."""

import dataclasses
import math

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.nests.plan.choosing import prepared_for, python_plan
from tilewave.plan.plan import CHOICES, Plan

#: Plans that are remembered for runs which differ in bounds and steps only.
MOST_PLANS = 4
#: Extents of loops may differ by so much. A window that moves has the same; one that grows is planned anew when it has
#: doubled.
MOST_TIMES = 2
#: From so many time steps on their number does not decide.
STEPS_ENOUGH = 8
#: The time that a plan is predicted to take may be so much more than what it took, a point, where it was chosen.
MOST_SLOWER = 1.25


def similar(chosen_for, space, in_time):
    """Whether a plan that was chosen for loops of some extents may do for a space, (first, end); `in_time`: the first
    loop index is time.
    """
    for k, (was, low, high) in enumerate(zip(chosen_for, *space, strict=True)):
        least, most = sorted((was, high - low))
        if least == most or 0 < most <= MOST_TIMES * least:
            continue
        if k > 0 or not in_time or least < STEPS_ENOUGH:
            return False
    return True


def as_good(plan, chosen):
    """Whether a fitted plan is predicted to be about as fast as the chosen one: fewer points in no more time."""
    now, then = (math.prod(each.notes["extents"]) for each in (plan, chosen))
    return plan.predicted.time_s <= MOST_SLOWER * chosen.predicted.time_s * max(now / max(then, 1), 1.0)


def remember(context, given, prepared):
    """Note a plan that was chosen, for runs with other bounds or steps."""
    family = _family(given)
    others = context._plans.get(family, ())
    context._plans[family] = [dataclasses.replace(prepared, sweep=None), *others][:MOST_PLANS]


def fitted(context, given):
    """What is prepared for a run with the plan of an earlier one with other bounds or steps; None where none will do.

    Local.
    """
    for chosen in context._plans.get(_family(given), ()):
        try:
            prepared = _fitted(context, given, chosen)
        except ConfigError:  # the plan is none for these bounds
            continue
        if prepared is not None:
            context._prepared[given.key] = prepared
            return prepared
    return None


def _family(given):
    """Equal for runs that differ in bounds, steps and the sizes of numbers only: what is written and read of which
    arrays, how loops depend on each other."""
    problem = given.problem
    facts = (
        bool(given.block),
        given.loops.again,
        given.loops.periodic,
        problem.in_time,
        problem.downwards,
        problem.sequential,
        tuple(coefficients for coefficients, _ in problem.bounds.constraints),
        problem.core.window,
    )
    return given.key.family(facts)


def _fitted(context, given, chosen):
    """The same with the plan that was `chosen`, fitted to other bounds; None where another may be better."""
    before, core, extents = chosen.problem.core, given.problem.core, chosen.plan.notes["extents"]
    if chosen.plan.generator == "gather":
        core = core.gathered()
    if chosen.plan.skew:
        core = core.skewed(*chosen.plan.skew)
    core = core.weighted(chosen.plan.weights, context.size) if chosen.plan.weights else core
    if core.loops != before.loops or not similar(extents, core.space, given.loops.steps is not None):
        return None
    if given.block:
        before = before.with_steps(extents[0])
    plan = Plan._from_core(_core.fitted(chosen.plan._to_core(), before, core))
    fixed = {**given.choices, **(dict(zip(CHOICES, given.plan.choices(), strict=True)) if given.plan else {})}
    if any(getattr(plan, name) != value for name, value in fixed.items() if name in CHOICES):
        return None
    # The rate is that of the plan's lanes and kind of tiles already, which are the same here.
    candidate = _core.evaluate(core, plan._to_core(), context._core.machine(), chosen.rate.rate)
    chosen_here = dataclasses.replace(chosen, problem=dataclasses.replace(given.problem, core=core))
    plan = python_plan(context, given, chosen_here, [candidate], chosen.rate, considered=0, whole=True)
    if not as_good(plan, chosen.plan):
        return None
    names = [name for name in ("given_whole", "alternatives", "fewer") if name in chosen.plan.notes]
    plan.notes.update(chosen_for=extents, **{name: chosen.plan.notes[name] for name in names})
    return prepared_for(context, given, chosen_here, plan, runs=None)
