"""Makes a failing case smaller: fewer nests, statements, choices and elements, as long as it fails alike."""

from __future__ import annotations

import copy
import dataclasses

from random_programs.boxes import is_table
from random_programs.model import Access, Assign, If

#: Fields of a setting, and the values at which they are simplest.
SIMPLEST = {"without": "", "inject": {}, "record": {}, "reduce": {}, "until": None, "moved": {}, "halos": {},
            "windows": {}, "aliases": {}, "history": {}, "planning": "auto", "every": 1,
            "overlaps": {}, "again": None, "plans": {}, "proved": False, "joined": False, "bound": False,
            "whole": {"joined": False, "parts": 1, "turns": 0, "total": "", "nested": True, "guarded": False,
                      "before": 0, "order": "loops", "reordered": 0, "alone": False},
            "lanes": 1, "door": "run", "times": 1, "block": 0, "other": None}  # fmt: skip


def smaller(case, failure, begins=lambda: None, tries=200):
    """(case, outcome) of the smallest case found that fails alike; `begins` is called before each that is tried."""
    best, found, tried = case, failure, 0
    while True:
        for candidate in best.simpler():
            if tried >= tries:
                return best, found
            tried += 1
            begins()
            try:
                now = candidate.outcome()
            except Exception:  # nothing that could be run
                continue
            if now.kind == "wrong" and now.said.partition(":")[0] == failure.said.partition(":")[0]:
                best, found = candidate, now
                break
        else:
            return best, found


def simpler(program, setting):
    """Pairs of a program and a setting with less in one of them, the largest steps first."""
    for number in range(len(program.nests) if len(program.nests) > 1 else 0):
        nests = program.nests[:number] + program.nests[number + 1 :]
        yield _used(dataclasses.replace(program, nests=nests), setting)
    for name, value in SIMPLEST.items():
        if getattr(setting, name) != value and not (name == "door" and program.door != "one"):
            yield program, dataclasses.replace(setting, **{name: value})
    for name in setting.plan.keys() - {"threads"}:
        yield program, dataclasses.replace(setting, plan={k: v for k, v in setting.plan.items() if k != name})
    for fewer in (1, 2, setting.ranks - 1):
        if 0 < fewer < setting.ranks:
            plan = {k: v for k, v in setting.plan.items() if k not in ("grid", "weights")}
            yield program, dataclasses.replace(setting, ranks=fewer, plan=plan, plans={})
    for name, loops in setting.loops.items():
        for field, value in (("over", {}), ("reverse", ())):
            if getattr(loops, field) != value:
                changed = {**setting.loops, name: dataclasses.replace(loops, **{field: value})}
                yield program, dataclasses.replace(setting, loops=changed)
    for name, layout in setting.layouts.items():
        if layout != "C":
            yield program, dataclasses.replace(setting, layouts={**setting.layouts, name: "C"})
    yield from ((program, each) for each in _shorter(program, setting))
    for number, nest in enumerate(program.nests):
        for body in _simpler_bodies(nest.body, program.arrays):
            nests = [*program.nests]
            nests[number] = dataclasses.replace(nest, body=body)
            yield _used(dataclasses.replace(program, nests=nests), setting)


def _used(program, setting):
    """Without the arrays that no nest uses any more."""
    names = {name for nest in program.nests for name in nest.arrays()}
    arrays = {name: array for name, array in program.arrays.items() if name in names}
    names |= setting.values.keys() - program.arrays.keys()
    changed = copy.copy(setting)
    for field in ("shapes", "values", "history", "layouts", "windows", "moved", "halos", "inject", "record"):
        setattr(changed, field, {k: v for k, v in getattr(setting, field).items() if k in names})
    for field in ("aliases", "overlaps"):
        setattr(changed, field, {k: v for k, v in getattr(setting, field).items() if k in names and v in names})
    changed.loops = {nest.name: setting.loops[nest.name] for nest in program.nests}
    changed.reduce = {nest.name: setting.reduce.get(nest.name, {}) for nest in program.nests}
    return dataclasses.replace(program, arrays=arrays), changed


def _shorter(program, setting):
    """Fewer time steps; fewer elements along each loop."""
    if setting.steps and not (setting.inject or setting.record):
        for steps in {1, setting.steps - 1} - {setting.steps, 0}:
            other = setting.other and setting.other | {"steps": min(setting.other["steps"], steps)}
            yield dataclasses.replace(setting, steps=steps, other=other)
    for index in program.nests[0].indices[program.timed :]:
        axes = [
            (name, d)
            for name, array in program.arrays.items()
            for d, axis in enumerate(array.axes)
            if axis == index and not is_table(name, program)
        ]
        least = min((setting.shapes[name][d] for name, d in axes), default=0)
        for less in (least // 2, least // 4, 1):
            if 0 < less < least:
                yield _cut(setting, axes, less)


def _cut(setting, axes, less):
    values, history = dict(setting.values), dict(setting.history)
    for name, d in axes:
        part = (slice(None),) * d + (slice(0, -less),)
        values[name] = values[name][part]
        if name in history:
            history[name] = [level[part] for level in history[name]]
    shapes = {name: value.shape for name, value in values.items()}
    return dataclasses.replace(setting, values=values, history=history, shapes=shapes)


def _simpler_bodies(statements, arrays):
    """Bodies with a statement less, a branch in place of a condition, or a part of an expression."""
    for place, each in enumerate(statements):
        before, after = statements[:place], statements[place + 1 :]
        if before or after:
            yield (*before, *after)
        if isinstance(each, If):
            yield (*before, *each.then, *after)
            if each.other:
                yield (*before, *each.other, *after)
                yield (*before, If(each.test, each.then), *after)
            for then in _simpler_bodies(each.then, arrays):
                yield (*before, If(each.test, then, each.other), *after)
        if isinstance(each, Assign) and len(each.value.parts) > 1:
            for parts in (*_elements(each.value, arrays), *_inner_parts(each.value.parts)):
                value = dataclasses.replace(each.value, parts=parts)
                yield (*before, Assign(each.target, each.op, value), *after)


def _elements(value, arrays):
    """Elements in an expression that have its type, as parts."""
    for part in value.parts:
        if isinstance(part, Access) and arrays[part.array].dtype == value.dtype and "'q'" not in str(part):
            yield (part,)


def _inner_parts(parts):
    """Parts between brackets that match, one after another."""
    for begin, part in enumerate(parts):
        if not (isinstance(part, str) and part.endswith("(")):
            continue
        depth = 0
        for end in range(begin, len(parts)):
            if isinstance(parts[end], str):
                depth += parts[end].count("(") - parts[end].count(")")
                if depth <= 0:
                    if parts[end] == ")" and (begin > 0 or end < len(parts) - 1):
                        yield ("(", *parts[begin + 1 : end + 1])
                    break
