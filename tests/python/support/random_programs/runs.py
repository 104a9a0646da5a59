"""Runs a program in a setting through Tilewave, on ranks that are threads, and compares it with its definition."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import warnings

import numpy as np
from local_ranks import on_ranks

import tilewave as tw
from random_programs import memory
from random_programs.numbers import differing, same_number
from random_programs.plain import Definition
from tilewave.kernel.rows import jammed_rows

LONG_S = 30
TRIED = ("tile", "grid", "skew", "row", "weights", "storage", "generator", "temporal_block", "aggregate", "slices")


@dataclasses.dataclass
class Outcome:
    """What came of a run: "run", "refused", "raised" as the definition does, or "wrong"."""

    kind: str
    said: str = ""
    detail: str = ""


def outcome(program, setting):
    """Run and compare."""
    definition = Definition(program, setting)
    raised = expected = None
    try:
        expected = definition.run()
    except Exception as error:
        raised = error
    with _short_rows(setting.short_rows), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results, errors = on_ranks(
                setting.ranks, setting.lanes, lambda context: _on_rank(context, program, setting), LONG_S,
                setting.without or None,
            )  # fmt: skip
        except AssertionError as error:
            return Outcome("wrong", "hangs", str(error))
    if any(errors):
        return _of_errors(errors, raised)
    if raised is not None:
        return Outcome("wrong", "the definition raises, the run does not", repr(raised))
    return _compared(results[0], expected, setting)


def _of_errors(errors, raised):
    first = next(filter(None, errors))
    name, text = type(first).__name__, str(first)
    if not all(errors) or len({(type(error), str(error)) for error in errors}) > 1:
        shown = [f"{type(error).__name__}: {error}" for error in errors]
        return Outcome("wrong", "ranks raise different errors", "\n".join(shown))
    if raised is not None and isinstance(first, tw.KernelError):
        return Outcome("raised", normalised(text))
    if isinstance(first, tw.ConfigError) and "does not compile" not in text and "InternalError" not in text:
        return Outcome("refused", normalised(text), text)
    return Outcome("wrong", f"{name}: {normalised(text)}", text)


def normalised(text):
    """A message without numbers and names, so that equal reasons count together."""
    text = text.replace("\n", " ")
    text = re.sub(r"<nest \w+>:\d+:\d+: ", "", text)
    text = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"", "'_'", text)
    text = re.sub(r"\([-\d, .N]*\)|\[[-\d, .N]*\]", "(N)", text)
    text = re.sub(r"-?\b\d+(\.\d+)?(e[-+]?\d+)?\b", "N", text)
    text = re.sub(r"\b[A-GT-Z]\[[^]]*\]", "A[_]", text)
    return text[:220]


def _compared(found, expected, setting):
    arrays, history, results = expected
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
            if differing(got, history[name][back]).any():
                return Outcome("wrong", "other values before", f"{name}.buffer({-1 - back}) differs")
    for name, wanted in results.items():
        if not same_number(found["results"].get(name), wanted):
            return Outcome("wrong", "another result", f"{name} is {found['results'].get(name)!r}, not {wanted!r}")
    return Outcome("run")


def _on_rank(context, program, setting):
    """A rank's part: arrays gathered on rank 0."""
    given = memory.given(program, setting, context)
    report = call(context, program, setting, given)
    arrays = {name: a if isinstance(a, np.ndarray) else a.gather() for name, a in given.items()}
    history = {}
    for name in setting.history:
        if not isinstance(given[name], np.ndarray):
            count = len(setting.history[name])
            levels = [given[name].buffer(-1 - back).gather() for back in range(count)]
            if context.rank == 0:
                history[name] = levels
    return {"arrays": arrays, "history": history, "results": dict(getattr(report, "results", None) or {})}


def call(context, program, setting, given):
    """Take the door; choices that the nest does not allow are left out."""
    plan = dict(setting.plan)
    while True:
        try:
            return _call(context, program, setting, given, plan)
        except tw.ConfigError as error:
            name = next((name for name in TRIED if name in plan and re.match(rf"(plan: )?{name}\b", str(error))), None)
            if name is None:
                raise
            del plan[name]


def keywords(program, setting):
    """What a call is given but for arrays, context and plan."""
    nest = program.nests[0]
    found = {name: setting.scalars[name] for name in nest.used_scalars()}
    if setting.over:
        found["over"] = {index: _pair(*bounds) for index, bounds in setting.over.items()}
    if setting.reverse:
        found["reverse"] = setting.reverse
    if setting.periodic:
        found["periodic"] = setting.periodic
    if setting.steps is not None:
        found["steps"] = setting.steps
    if setting.reduce:
        found["reduce"] = {name: getattr(tw, function)(what) for name, (function, what) in setting.reduce.items()}
    return found


def _pair(lows, highs, stride):
    lows, highs = ([bound.given() for bound in bounds] for bounds in (lows, highs))
    pair = lows[0] if len(lows) == 1 else lows, highs[0] if len(highs) == 1 else highs
    return pair if stride == 1 else (*pair, stride)


def _call(context, program, setting, given, plan):
    nest = tw.nest_from(program.nests[0].text(), {"tw": tw, "np": np})
    arguments = {**given, **keywords(program, setting), "context": context, "plan": plan}
    if setting.door == "bind":
        bound = tw.bind(nest, **arguments)
        for _ in range(setting.times):
            report = bound.run()
        return report
    if setting.door == "plan":
        arguments["plan"] = tw.plan(nest, **arguments)
    for _ in range(setting.times):
        report = tw.run(nest, **arguments)
    return report


@contextlib.contextmanager
def _short_rows(together):
    """Rows that depend within themselves are computed together however short they are."""
    before = jammed_rows.LEAST_POINTS
    jammed_rows.LEAST_POINTS = 1 if together else before
    try:
        yield
    finally:
        jammed_rows.LEAST_POINTS = before
