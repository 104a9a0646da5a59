"""Runs a program in a setting through Tilewave, on ranks that are threads, and compares it with its definition."""

from __future__ import annotations

import functools
import re
import warnings
from unittest import mock

import numpy as np
from local_ranks import on_ranks

import tilewave as tw
from random_programs import memory
from random_programs.numbers import differing, same_number
from random_programs.outcomes import Outcome, of_errors
from random_programs.plain import Definition
from random_programs.settings import PLAN
from random_programs.whole import Whole
from tilewave.loops import lanes as loops_lanes
from tilewave.loops import plan as loops_plan
from tilewave.nests.call import step_blocks
from tilewave.nests.chain import several

LONG_S = 150  # a busy machine is slow
LEAST_MOVED_BYTES = several.LEAST_MOVED_BYTES, 0
#: Choices that a nest may not allow, and then does without.
TRIED = ("tile", "grid", "skew", "row", "weights", *PLAN)


def outcome(program, setting):
    """Run and compare."""
    expected, raised = _defined(program, setting)
    least = 0 if setting.whole.get("nested") else loops_plan.LEAST_POINTS
    with (
        warnings.catch_warnings(),
        mock.patch.object(several, "LEAST_MOVED_BYTES", LEAST_MOVED_BYTES[setting.joined]),
        mock.patch.object(step_blocks, "FEWEST_STEPS", setting.block or step_blocks.FEWEST_STEPS),
        mock.patch.object(step_blocks, "MOST_STEPS", setting.block or step_blocks.MOST_STEPS),
        mock.patch.object(loops_plan, "LEAST_POINTS", least),
        mock.patch.object(loops_plan, "LEAST_POINTS_OF_TURNS", least),
        mock.patch.object(loops_lanes, "LEAST_S", 0 if setting.whole.get("divided") else 1e9),
        mock.patch.object(loops_lanes, "LEAST_TURN_S", 0),
    ):
        warnings.simplefilter("ignore")
        try:
            results, errors = on_ranks(
                setting.ranks, setting.lanes, lambda context: _on_rank(context, program, setting), LONG_S,
                setting.without or None,
            )  # fmt: skip
        except AssertionError as error:
            return Outcome("wrong", "hangs", str(error))
    if any(errors):
        return of_errors(errors, raised, type(raised) if setting.door == "loops" and raised else ())
    if raised is not None:
        return Outcome("wrong", "the definition raises, the run does not", repr(raised))
    if outside := sorted({name for result in results for name in result["outside"]}):
        return Outcome("wrong", "it writes outside of an array", ", ".join(outside))
    return _compared(results[0], expected, setting)


def outcome_on(context, program, setting):
    """Run on the ranks of a context, and compare on rank 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found, errors = _on_rank(context, program, setting), []
        except Exception as error:
            # A body is refused where it is written: on each rank by itself.
            known = isinstance(error, tw.ConfigError) or setting.door == "loops"
            if not getattr(error, "agreed", False) and not known:
                raise
            errors = [error]
    if context.rank:
        return Outcome("run")
    expected, raised = _defined(program, setting)
    if errors:
        return of_errors(errors, raised, type(raised) if setting.door == "loops" and raised else ())
    return Outcome("wrong", "it does not raise", repr(raised)) if raised else _compared(found, expected, setting)


def _defined(program, setting):
    """What the definition gives, and what it raises; one is None."""
    try:
        return (Whole if setting.door == "loops" else Definition)(program, setting).run(), None
    except Exception as error:
        return None, error


def _compared(found, expected, setting):
    arrays, history, results, counts = expected
    for name, wanted in arrays.items():
        got = found["arrays"].get(name)
        if got is None:
            continue
        where = differing(got, wanted)
        if where.any():
            at = tuple(int(x) for x in np.argwhere(where)[0])
            return Outcome(
                "wrong", "other values",
                f"{name} differs at {where.sum()} of {where.size} elements, first at {at}: {got[at]!r} instead of "
                f"{wanted[at]!r} (at the start {setting.values[name][at]!r})",
            )  # fmt: skip
    for name, levels in found["history"].items():
        for back, got in enumerate(levels):
            if (differing(got, history[name][back]) & counts[name]).any():
                return Outcome("wrong", "other values before", f"{name}.buffer({-1 - back}) differs")
    for name, wanted in results.items():
        if not same_number(found["results"].get(name), wanted):
            return Outcome("wrong", "another result", f"{name} is {found['results'].get(name)!r}, not {wanted!r}")
    return Outcome("run")


def _on_rank(context, program, setting):
    """A rank's part: arrays gathered on rank 0."""
    given, results = call(context, program, setting)
    letters = {name for name, how in setting.layouts.items() if any(how in each for each in memory.LETTERS.values())}
    read = {name: a for name, a in given.items() if name not in {*setting.windows, *letters}}
    arrays = {name: a if isinstance(a, np.ndarray) else a.gather() for name, a in read.items()}
    history = {}
    for name in setting.history:
        if not isinstance(given[name], np.ndarray):
            count = len(setting.history[name])
            levels = [given[name].buffer(-1 - back).gather() for back in range(count)]
            if context.rank == 0:
                history[name] = levels
    outside = [name for name, array in given.items() if memory.written_outside(array)]
    return {"arrays": arrays, "history": history, "results": results, "outside": outside}


def call(context, program, setting):
    """Take the door: (arrays by name, results). Choices that a nest does not allow are left out: all begins anew."""
    plans = [dict(setting.plans.get(nest.name, setting.plan)) for nest in program.nests]
    while True:
        given = memory.given(program, setting, context)
        try:
            return given, _call(context, program, setting, given, plans)
        except tw.ConfigError as error:
            used = {name for plan in plans for name in plan}
            name = next((name for name in TRIED if name in used and re.search(rf"\b{name}\b", str(error))), None)
            if name is None:
                raise
            for plan in plans:
                plan.pop(name, None)


def keywords(program, setting, nest):
    """What a call of one nest is given but for arrays, context and plan."""
    loops, found = setting.loops[nest.name], scalars(setting, [nest])
    if loops.over:
        found["over"] = eval(loops.over_text())
    if loops.reverse or program.backwards:
        found["reverse"] = ("t",) * program.backwards + loops.reverse
    if loops.periodic:
        found["periodic"] = loops.periodic
    if setting.steps is not None:
        found["steps"] = setting.steps
    found |= points(setting)
    if setting.reduce.get(nest.name):
        found["reduce"] = reductions(setting, nest)
    return found


def reductions(setting, nest):
    """`reduce` of one nest."""
    wanted = setting.reduce.get(nest.name, {}).items()
    return {name: getattr(tw, function)(what) for name, (function, what) in wanted}


def together(program, setting, nests):
    """What a call of several nests, in each time step, is given."""
    loops = [setting.loops[nest.name] for nest in nests]
    turns = ("t",) * program.backwards
    found = {**scalars(setting, nests), "steps": setting.steps}
    found["over"] = [eval(each.over_text()) or None for each in loops]
    found["reverse"] = [turns + each.reverse for each in loops]
    found["periodic"] = [each.periodic for each in loops]
    found["reduce"] = [reductions(setting, nest) or None for nest in nests]
    if setting.until and program.door == "several":
        found |= {"until": dict([setting.until]), "every": setting.every}
    found |= points(setting)
    return {name: value for name, value in found.items() if not isinstance(value, list) or any(value)}


def points(setting):
    """`inject` and `record`."""
    found = {what: getattr(setting, what) for what in ("inject", "record")}
    return {what: {name: each.given() for name, each in given.items()} for what, given in found.items() if given}


def scalars(setting, nests):
    return {name: setting.scalars[name] for nest in nests for name in nest.used_scalars()}


@functools.lru_cache(16)
def _nest(text):
    """One nest for all ranks and settings, as a program has it."""
    return tw.nest_from(text, {"tw": tw, "np": np})


def _call(context, program, setting, given, plans):
    """The results by name."""
    if setting.door == "loops":
        return Whole(program, setting).call(given)
    more = {"context": context, "planning": setting.planning}
    if setting.door == "several":
        plan = plans if setting.plans else plans[0]
        call = {**given, **together(program, setting, program.nests), **more, "plan": plan}
        until = {name: call.pop(name) for name in ("until", "every") if name in call} if setting.bound else {}
        nests = tuple(_nest(nest.text()) for nest in program.nests)
        run = tw.bind(nests, **call).run if setting.bound else functools.partial(tw.run, nests, **call)
        return _in_turn(setting, [functools.partial(run, **until)])
    stages, plans = program.stages(), dict(zip([nest.name for nest in program.nests], plans, strict=True))
    nests = [tuple(_nest(nest.text()) for nest in each) if len(each) > 1 else _nest(each[0].text()) for each in stages]
    calls = [
        {name: given[name] for nest in each for name in nest.arrays()}
        | (together(program, setting, each) if len(each) > 1 else keywords(program, setting, *each))
        | {**more, "plan": plans[each[0].name]}
        for each in stages
    ]
    if setting.door == "chain":
        bound = [tw.bind(nest, **arguments) for nest, arguments in zip(nests, calls, strict=True)]
        until = {"until": {setting.until[0]: setting.until[1]}, "every": setting.every} if setting.until else {}
        chain = tw.chain(bound)
        one = not chain.separate and chain._first.is_one
        if setting.proved and one and "scaled" not in program.kinds:  # parts count as one memory there
            _prove(tw.schedule(chain, context=context))
        report = chain.run(times=setting.times, **until)
        report = report if setting.again is None else chain.run(scalars=setting.again)
        return {**report.results, **_recorded(report)}
    if setting.door == "bind":
        bound = [tw.bind(nest, **arguments) for nest, arguments in zip(nests, calls, strict=True)]
        return _in_turn(setting, [each.run for each in bound])
    if setting.door == "check":
        _check_schedules(nests, calls)
    if setting.door == "plan":
        for nest, arguments in zip(nests, calls, strict=True):
            arguments["plan"] = tw.plan(nest, **arguments)
            del arguments["planning"]
    return _in_turn(setting, [functools.partial(tw.run, nest, **call) for nest, call in zip(nests, calls, strict=True)])


def _check_schedules(nests, calls):
    for nest, arguments in zip(nests, calls, strict=True):
        _prove(tw.schedule(nest, **arguments))


def _prove(schedule):
    if (wrong := tw.check(schedule)) is not None:
        raise AssertionError(f"the checker says of the schedule: {wrong}")


def _in_turn(setting, runs):
    results = {}
    others = [] if setting.other is None else [setting.other]
    for more in [*others, *[{}] * setting.times, *others]:
        for run in runs:
            report = run(**more)
            results |= {**report.results, **_recorded(report)}
    return results


def _recorded(report):
    return {f"record {name}": rows for name, rows in report.recorded.items()} if report.recorded else {}
