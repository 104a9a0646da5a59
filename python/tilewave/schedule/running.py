"""Running schedules that were built step by step, with Python functions as tasks."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from tilewave import _core, units
from tilewave.context.collective import text_of
from tilewave.errors import ConfigError, KernelError, is_integer
from tilewave.field.values import require_no_mask
from tilewave.patterns.function_text import code_text
from tilewave.timeline.parts import Parts
from tilewave.timeline.timeline import Timeline


class ScheduleRun:
    """How a run of a schedule went.

    Attributes
    ----------
    time_s : float
        Of the slowest rank.
    parts : Parts or None
        Rank 0: where the lanes' time went, on average; None elsewhere.
    timeline : Timeline
        Rank 0: of all ranks; empty elsewhere. Of a block that repeats, the first million steps of each lane.
    """

    time_s: float
    parts: Parts | None
    timeline: Timeline

    def __init__(self, core: Any, rank: int) -> None:
        self.time_s = core.time_s
        self.parts = Parts.of(core.parts) if rank == 0 else None
        self.timeline = Timeline(core.timeline, "schedule")

    def __repr__(self) -> str:
        return f"<tilewave.ScheduleRun {units.seconds(self.time_s)}>"


def run(schedule, context, check, functions, times, arrays):
    """The run of this rank's part: `Schedule.run`; part of a collective call."""
    if not isinstance(check, (bool, np.bool_)):
        raise ConfigError(f"Schedule.run: check: given {type(check).__name__}; allowed: True, False")
    times = repetitions("Schedule.run", schedule, times)
    proved = bool(check) and schedule.rank is None
    core = _of_this_rank(schedule, context)
    calls = _functions(schedule, functions)
    if proved and (violation := schedule._found_by_check()) is not None:
        raise ConfigError(f"Schedule.run: the schedule has a mistake: {violation}")
    views = _memory(schedule, core, arrays)
    places = [(view.ctypes.data, view.strides) for view in views]
    combinings = [(schedule._combine.get(name, ""), dtype.name) for name, _, dtype in schedule._arrays]
    kernels = [kernel.core() for kernel in schedule._kernels]
    tasks = _Tasks(context.rank, core, calls, schedule.functions, views, schedule._kernels)
    ready = _core.ReadySchedule(context._core, core, places, len(calls), kernels, combinings, tasks, times)
    yield f"{_description(schedule, calls)}, check {proved}, {times} times"
    if not proved:
        _compare(context, core)
    context._heart.progress.of = "a schedule"
    try:
        made = ready.run()
    except (ConfigError, KernelError, MemoryError) as error:
        raise context._shared(error) from tasks.error
    finally:
        context._heart.done()
    return ScheduleRun(context._finished(made), context.rank)


def repetitions(name, schedule, times):
    """`times` as a number that makes sense for the schedule."""
    if not is_integer(times, 1, (1 << 31) - 1):
        raise ConfigError(f"{name}: times: given {times!r}; allowed: 1 to {(1 << 31) - 1}")
    if times > 1 and schedule.rank is None and not any(core.repeated for core in schedule._cores.values()):
        raise ConfigError(f"{name}: times: given {times} of a schedule without a block; allowed: 1, or b.repeat()")
    return int(times)


def _compare(context, core):
    try:
        _core.compare_messages(context._core, core)
    except ConfigError as error:
        raise context._shared(error) from None


def _of_this_rank(schedule, context):
    """The core's schedule of this rank."""
    if schedule.ranks != context.size:
        raise ConfigError(
            f"Schedule.run: a schedule of {schedule.ranks} ranks was given to {context.size}; "
            f"allowed: tilewave.Schedule.build(..., ranks={context.size})"
        )
    if schedule.rank not in (None, context.rank):
        raise ConfigError(f"Schedule.run: the part of rank {schedule.rank} was given to rank {context.rank}")
    return schedule._cores[context.rank]


def _functions(schedule, given):
    calls = dict(zip(schedule.functions, schedule._calls, strict=True)) if schedule._calls else {}
    if given is not None and (not isinstance(given, dict) or not all(map(callable, given.values()))):
        raise ConfigError("Schedule.run: functions: allowed: a dict of functions by name")
    if unknown := [name for name in given or {} if name not in schedule.functions]:
        allowed = ", ".join(schedule.functions) or "none, as the schedule calls no functions"
        raise ConfigError(f"Schedule.run: functions: given {unknown[0]!r}; allowed: {allowed}")
    calls |= given or {}
    if missing := [name for name in schedule.functions if name not in calls]:
        name = missing[0]
        raise ConfigError(f"Schedule.run: function {name!r} is missing; allowed: functions={{{name!r}: ...}}")
    return [calls[name] for name in schedule.functions]


def _memory(schedule, core, given):
    """Return what this rank stores of each array, as views of what was given."""
    nests = [work.nest.kernel for work in core.works if work.nest is not None]
    if any(shape is None or dtype is None for _, shape, dtype in schedule._arrays):
        raise ConfigError(
            "Schedule.run: a schedule of a nest was given, which tilewave.run runs; allowed: of tilewave.Schedule.build"
        )
    if nests and not 0 <= max(nests) < len(schedule._kernels):
        raise ConfigError("Schedule.run: a schedule with nests, from a file, was given; allowed: built in this program")
    names = schedule.arrays
    if wrong := sorted(set(names) ^ given.keys()):
        what = "is missing" if wrong[0] in names else "is none of the schedule's"
        raise ConfigError(f"Schedule.run: array {wrong[0]!r} {what}; allowed: {', '.join(names)}")
    written = {region.array for work in core.works if work.task is not None for region in work.task.writes}
    written |= {p.array for work in core.works if work.nest is not None for p in work.nest.places if p.writes}
    written |= {core.messages[s.item].array for lane in core.lanes for s in lane if s.op == "unpack"}
    written |= {message.array for message in core.messages if not message.send}
    views = []
    for number, ((name, shape, dtype), array) in enumerate(zip(schedule._arrays, core.arrays, strict=True)):
        value = given[name]
        if not isinstance(value, np.ndarray):
            raise ConfigError(f"Schedule.run: array {name!r}: given {type(value).__name__}; allowed: a NumPy array")
        require_no_mask(f"Schedule.run: array {name!r}", value)
        (lo, hi), value = array.storage, np.asarray(value)
        stored = tuple(h - l for l, h in zip(lo, hi, strict=True))
        if value.dtype != dtype or value.shape not in (stored, shape):
            whole = "" if shape == stored else f", or the whole array's {shape}"
            raise ConfigError(
                f"Schedule.run: array {name!r}: given {value.dtype} {value.shape}; allowed: {dtype} of the shape that "
                f"this rank stores, {stored}{whole}"
            )
        if value.shape != stored:
            value = value[tuple(map(slice, lo, hi))]
        if number in written and not value.flags.writeable:
            raise ConfigError(f"Schedule.run: array {name!r} is written, and was given read-only")
        if any(0 < h - l and stride < 0 for l, h, stride in zip(lo, hi, value.strides, strict=True)):
            raise ConfigError(f"Schedule.run: array {name!r}: given with negative strides; allowed: its copy")
        for other, view in zip(names, views, strict=False):
            if _share(view, value):
                raise ConfigError(f"Schedule.run: arrays {other!r} and {name!r} share memory; allowed: memory for each")
        views.append(_in_place(name, core, number, value))
    return views


def _share(some, other):
    try:
        return np.shares_memory(some, other, max_work=10_000)
    except np.exceptions.TooHardError:
        return True  # nobody has strides so odd by intent


def _in_place(name, core, number, value):
    """Messages that go straight from or to the array find rows without gaps."""
    straight = any(m.array == number and m.buffer < 0 and m.bytes for m in core.messages)
    if straight and not value.flags.c_contiguous:
        raise ConfigError(
            f"Schedule.run: array {name!r}: given with gaps between its rows, and messages go straight from or to it; "
            "allowed: memory row by row without gaps"
        )
    return value


def _description(schedule, calls):
    """Return what must be equal on all ranks, as text."""
    arrays = ", ".join(f"{name}: {dtype} {shape}" for name, shape, dtype in schedule._arrays)
    if schedule.rank is not None:
        return f"parts of a schedule of {schedule.ranks} ranks, arrays {arrays}"
    functions = ", ".join(map(code_text, calls))
    if schedule._digest is None:
        schedule._digest = hashlib.sha256(json.dumps(schedule._data()).encode()).hexdigest()[:12]
    functions += "".join(", " + kernel.text() for kernel in schedule._kernels)
    return f"schedule {schedule._digest} of {schedule.ranks} ranks, arrays {arrays}, functions {functions}"


class _Tasks:
    """Hold what the core calls for the tasks of this rank."""

    def __init__(self, rank, core, calls, names, views, kernels):
        self.rank, self.tasks, self.names, self.error = rank, {}, {}, None
        storages = [array.storage for array in core.arrays]

        def view(region, writes):
            lo, hi = region.box
            first, end = storages[region.array]
            if any(h > l and not f <= l <= h <= e for l, h, f, e in zip(lo, hi, first, end, strict=True)):
                lo = hi = first  # no tile computes it, or check_run says so
            part = views[region.array][tuple(slice(l - f, h - f) for l, h, f in zip(lo, hi, first, strict=True))]
            part.flags.writeable = part.flags.writeable and writes
            return part

        self.kernels = kernels
        for work in core.works:
            if (task := work.task) is None:
                continue
            if not 0 <= task.operation < len(calls):
                continue  # no tile computes it
            reads, writes = ([view(r, w) for r in rs] for rs, w in ((task.reads, False), (task.writes, True)))
            self.tasks[work.number] = calls[task.operation], (*reads, *writes)
            self.names[work.number] = names[task.operation]

    def explain(self, kernel, site, point):
        """Return what the body of a nest has raised, as text."""
        return f"{self.kernels[kernel].explain(site, point)} on rank {self.rank}"

    def call(self, number, lane):
        """Run one task; None, or what it raised as text."""
        try:
            function, views = self.tasks[number]
            function(*views)
        except BaseException as error:
            self.error = self.error or error
            return f"task {number} ({self.names[number]}) on rank {self.rank}: {type(error).__name__}: {text_of(error)}"
        return None
