"""Plans: every choice that turns a nest into schedules, as a value."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

from tilewave import _core, files, units
from tilewave.entries import INT, LONG, Damaged, anything, flag, integer, of_list, of_object, or_null, text
from tilewave.errors import ConfigError, is_integer, shown
from tilewave.plan.explain import explain, in_effect, short
from tilewave.plan.sentence import divided
from tilewave.timeline.parts import Face, Parts, Predicted
from tilewave.timeline.timeline import html_table
from tilewave.value import Value, plain_copy, with_declared

if TYPE_CHECKING:
    from tilewave.annotations import FilePath

#: The choices of a plan, as they are declared in include/tilewave/engine/plan_choices.hpp.
CHOICES = tuple(name for name, *_ in _core.plan_choices)
#: Those without a default.
NEEDED = ("grid", "mapping_dim", "tile", "factors")
#: Of each what may be given, in words.
ALLOWED = {name: allowed for name, _, allowed, _ in _core.plan_choices}


@dataclasses.dataclass
@with_declared("CHOICES", _core.plan_choices, needed=NEEDED)
class Plan(Value):
    """How a sweep is cut and ordered: print it, edit it, save it, pass it back to `run`.

    A plan is a value: what is done to one changes no other, nor what runs do that are not given it. Setting an
    attribute that is not listed here raises ConfigError. Lists become tuples.

    Attributes
    ----------
    CHOICES
    predicted : Predicted
        ``predicted.time_s`` and ``predicted.parts``: what it would take; None for a plan made by hand. It is of the
        plan as it was chosen: run an edited one, and its report has another.
    memory_bytes : int
        Of the rank that needs most: its parts of the fields, and staging.
    ranked : list of dict
        The plans that were simulated, this one first: ``time_s``, ``parts``, ``memory_bytes``, the choices, and
        ``reason``, why it was not taken.
    notes : dict
        What the choice was made from: the machine's numbers, the body's rate, what was fixed, what was not tried.
    """

    predicted: Predicted | None = dataclasses.field(default=None, compare=False, repr=False)
    memory_bytes: int | None = dataclasses.field(default=None, compare=False, repr=False)
    ranked: list[dict[str, Any]] = dataclasses.field(default_factory=list, compare=False, repr=False)
    notes: dict[str, Any] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    if TYPE_CHECKING:

        def __init__(self, *choices: Any, **more: Any) -> None: ...

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, tuple(value) if name in CHOICES and isinstance(value, list) else value)

    @property
    def threads(self) -> int:
        """Lanes of a rank, its helper counted."""
        return self._to_core().lanes + self.helper

    def choices(self) -> tuple[Any, ...]:
        """The choices, as a tuple in the order of the attributes."""
        return tuple(getattr(self, name) for name in CHOICES)

    def explain(self) -> str:
        """Why this plan: what was chosen from, with which numbers, and why the others lost.

        Returns
        -------
        str
        """
        return explain(self)

    def _copy(self):
        """An equal plan that shares nothing which can be changed."""
        return dataclasses.replace(self, ranked=plain_copy(self.ranked), notes=plain_copy(self.notes))

    def _explain_as(self, other):
        """Say of an equal plan, which is predicted for other halos, what it was chosen from."""
        self.ranked = [*self.ranked[:1], *other.ranked[1:]]
        self.notes |= {name: value for name, value in other.notes.items() if name not in ("rate", "machine")}

    def _repr_html_(self):
        rows = [(name, getattr(self, name)) for name in self._in_effect()]
        if self.predicted:
            rows.append(("predicted", units.seconds(self.predicted.time_s)))
        import html  # in notebooks alone

        why = html.escape(self.explain())
        return f"{html_table(rows)}<details><summary>Why this plan</summary><pre>{why}</pre></details>"

    @classmethod
    def _from_core(cls, core):
        return cls(**{name: getattr(core, name) for name in CHOICES})

    def __getattr__(self, name: str) -> Any:  # of attributes that are not there
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}; allowed: {', '.join(CHOICES)}")

    def _to_core(self):
        core = _core.Plan()
        for name in CHOICES:
            _assign(core, name, getattr(self, name))
        return core

    def _in_effect(self):
        """The names of the choices that do something in this plan."""
        return in_effect({name: getattr(self, name) for name in CHOICES}, self.notes.get("extents", ()))

    def _short(self):
        """These choices in a line."""
        if self.generator == "pivot":
            return f"{self.tile[0]} steps a panel, {self.tile[1]} rows a task"
        if self.generator == "gather":
            return f"each step gathered, {self.tile[divided(self)]} elements at once"
        return short({name: getattr(self, name) for name in CHOICES}, self.notes.get("extents", ()))

    def _number(self):
        """Stands for the choices: equal where they are, above 0."""
        return int.from_bytes(hashlib.sha256(repr(self.choices()).encode()).digest()[:7], "little") + 1

    def save(self, path: FilePath) -> None:
        """Write the plan as JSON, with what it is predicted to take and why it was chosen.

        Raises
        ------
        ConfigError
            Where that fails; an old file is then as it was.
        """
        data = {name: getattr(self, name) for name in CHOICES}
        if self.predicted:
            faces = [dataclasses.asdict(face) for face in self.predicted.faces]
            parts = dataclasses.asdict(self.predicted.parts)
            data["predicted"] = {"time_s": self.predicted.time_s, "parts": parts, "faces": faces}
        data.update(memory_bytes=self.memory_bytes, ranked=self.ranked, notes=self.notes)
        files.save("Plan.save", path, json.dumps(data, indent=2) + "\n")

    @classmethod
    def load(cls, path: FilePath) -> Plan:
        """Read a plan that `save` wrote, perhaps edited.

        Raises
        ------
        ConfigError
            When the file is no plan, naming the field that is wrong. What only a nest can tell is checked when it is
            run.
        """
        try:
            return _from_data(cls, json.loads(files.read(path, files.MOST_TEXT_BYTES)))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path} is no saved plan: {error}") from None

    def __str__(self) -> str:
        lines = [f"{name:14} {getattr(self, name)}" for name in self._in_effect()]
        if self.predicted:
            lines.append(f"{'predicted':14} {units.seconds(self.predicted.time_s)}")
        return "\n".join(lines)


MOST_BYTES = 1 << 62


def _seconds(value, where):
    """Seconds, 0 or more."""
    if type(value) not in (int, float) or not 0 <= value <= MOST_BYTES:
        raise Damaged(where, value, "seconds >= 0")
    return value


def _choice(name):
    """The kind of a choice: what the core takes for it; a list stands for a tuple."""

    def read(value, where):
        value = tuple(value) if isinstance(value, list) else value
        try:
            setattr(_core.Plan(), name, value)
        except TypeError:
            raise Damaged(where, value, ALLOWED[name]) from None
        except ConfigError as error:
            raise ValueError(f"{where}: {error}") from None
        return value

    return read


_BYTES, _CHOICES = integer(0, MOST_BYTES), {name: _choice(name) for name in CHOICES}
_PARTS = of_object({field.name: _seconds for field in dataclasses.fields(Parts)})
_FACE = {
    "direction": of_list(INT, make=tuple),
    "messages": LONG,
    "bytes": LONG,
    "run_bytes": LONG,
    "packed": flag,
    "copy_s": _seconds,
    "transfer_s": _seconds,
}
_PREDICTED = {"time_s": _seconds, "parts": _PARTS, "faces": of_list(of_object(_FACE))}
_RECORD = {
    "time_s": _seconds,
    "estimate_s": _seconds,
    "parts": _PARTS,
    "memory_bytes": _BYTES,
    "reason": text,
    "choices": of_object(_CHOICES),
}
_FILE = of_object(
    {
        **_CHOICES,
        "predicted": or_null(of_object(_PREDICTED, needed=("time_s", "parts"))),
        "memory_bytes": or_null(_BYTES),
        "ranked": of_list(of_object(_RECORD)),
        "notes": of_object({}, more=anything),
    },
    needed=NEEDED,
)


def _from_data(cls, data):
    values = _FILE(data, "")
    if (predicted := values.get("predicted")) is not None:
        faces = [Face(**face) for face in predicted.get("faces", ())]
        values["predicted"] = Predicted(float(predicted["time_s"]), Parts(**predicted["parts"]), faces=faces)
    plan = cls(**values)
    try:
        plan.explain()
    except Exception as error:  # whatever has been done to what explains it
        raise ConfigError(
            f"notes: they cannot be explained ({type(error).__name__}: {error}); allowed: as `save` wrote them, or none"
        ) from None
    return plan


def _assign(core, name, value):
    try:
        setattr(core, name, value)
    except TypeError:
        raise ConfigError(f"{name}: given {shown(value)}; allowed: {ALLOWED[name]}") from None


def request_of(choices, threads):
    """The core's request for choices of the user, checked one by one; `threads` where they do not say."""
    request = _core.PlanRequest()
    for name, value in choices.items():
        if name in CHOICES:
            if value is None:
                raise ConfigError(f"{name}: given None; allowed: {ALLOWED[name]}")
            _assign(request, name, value)
    request.planning = choices.get("planning", request.planning)
    threads = choices.get("threads", threads)
    most = _core.limits["lanes"]
    if not is_integer(threads, 1, most):
        raise ConfigError(f"threads: given {shown(threads)}; allowed: an integer from 1 to {most}")
    request.threads = threads
    request.all_threads = "threads" in choices
    return request


def chosen_plan(problem, ranked, considered, rate, machine, ranks):
    """A plan as it is shown, with what it is predicted to take.

    Parameters
    ----------
    problem : Problem
    ranked : list of the core's candidates
        The one that was chosen first.
    considered : int
        Plans that it was chosen from.
    rate : the core's MeasuredRate
        That it was predicted with.
    machine : the core's machine
    ranks : int
    """
    best = ranked[0]
    chosen = Plan._from_core(best.plan)

    def simulate():
        schedules = [_core.nest_schedule(problem.core, best.plan, rank) for rank in range(best.plan.ranks)]
        tasks = _core.task_rates(problem.core, best.plan, rate.rate)
        times, period = _core.nest_repetitions(problem.core, best.plan), best.plan.poll_period_s
        predicted = _core.predict_works(schedules, machine, [rate.rate], tasks, times=times, poll_period_s=period)
        return predicted.timeline

    def faces():
        return _core.face_costs(problem.core, best.plan, machine)

    chosen.predicted = Predicted(best.time_s, Parts.of(best.parts), simulate, faces)
    chosen.memory_bytes = best.memory_bytes
    chosen.ranked = [_record(candidate) for candidate in ranked]
    chosen.notes = {
        "nest": problem.nest.name,
        "loops": list(problem.nest.indices),
        "extents": [hi - lo for lo, hi in zip(*problem.core.space)],
        "ranks": ranks,
        "considered": considered,
        "rate": {
            **{name: getattr(rate.rate, name) for name in ("point_s", "row_s", "tile_s", "one_lane_factor")},
            "note": rate.note,
            "spread": rate.spread,
            "extents": list(rate.extents),
        },
        "machine": _numbers(machine, ranks),
        "sequential": problem.sequential,
        "without": _core.names_of(problem.core.paths_off),
    }
    return chosen


def asked_for(plan, threads, choices, fixed, whole):
    """Note what a plan was chosen for: threads of each rank, choices that were obeyed, those of them that the user
    has `fixed`, and whether the `whole` plan was given.
    """
    plan.notes |= {
        "threads": threads,
        "given_whole": whole,
        "fixed": {name: _plain(value) for name, value in fixed.items() if name != "planning"},
        "by_rule": {name: _plain(value) for name, value in choices.items() if name not in fixed},
    }


def _plain(value):
    return list(value) if isinstance(value, tuple) else value


def placed(plan, context):
    """Note the CPUs of each rank, and those that a chosen plan has here."""
    plan.notes["cpus"] = context.share
    plan.notes["fewer"] = _why_fewer(plan)
    plan.notes["placed"] = {"topology": _core.topology(), "cpus": context.cpus[: plan.threads]}


def _why_fewer(plan):
    """Why a rank does not compute with all its CPUs; empty where it does."""
    notes, used = plan.notes, plan.threads
    if used >= notes["cpus"]:
        return ""
    if notes["sequential"]:
        return "points go in the order of the loops"
    if notes["given_whole"]:
        return "as the given plan says"
    for name in ("threads", "factors"):
        if name in notes["fixed"]:
            return f"as {name} in plan= says"
    if used >= notes["threads"]:
        return f"the context has {units.count(notes['threads'], 'thread')}"
    most = max(math.prod(record["choices"]["factors"]) + record["choices"]["helper"] for record in plan.ranked)
    return "fewer are predicted to be faster" if most > used else "the loops cannot be cut for more"


def _record(candidate):
    plan = candidate.plan
    return {
        "time_s": candidate.time_s,
        "estimate_s": candidate.estimate_s,
        "parts": dict(vars(Parts.of(candidate.parts))),
        "memory_bytes": candidate.memory_bytes,
        "reason": candidate.reason,
        "choices": {name: getattr(plan, name) for name in CHOICES},
    }


def _numbers(machine, ranks):
    """The machine's numbers that decide, as plain data."""
    numbers = {
        "hand_over_s": machine.hand_over_s,
        "poll_s": machine.poll_s,
        "step_s": machine.step_s,
        "cache_bytes": machine.cache_bytes,
    }
    hosts = list(machine.host_of[:ranks])
    links = {"same_host": machine.same_host}
    if len(set(hosts)) > 1:
        links["other_host"] = machine.other_host
    for name, link in links.items() if ranks > 1 else ():
        numbers[name] = {
            "latency_s": link.latency_s,
            "send_s": link.send_s,
            "receive_s": link.receive_s,
            "bandwidth_bytes_s": 1 / link.byte_s if link.byte_s > 0 else None,
            "hidden_polled": link.hidden_polled,
        }
    numbers["hosts"] = len(set(hosts)) if hosts else 1
    return numbers
