"""Plans: every choice that turns a nest into schedules, as a value."""

from __future__ import annotations

import dataclasses
import hashlib
import html
import json
import math
from typing import TYPE_CHECKING

from tilewave import _core, files, units
from tilewave.errors import ConfigError, shown
from tilewave.plan.explain import explain, in_effect, short
from tilewave.timeline.parts import PARTS, Face, Parts, Predicted
from tilewave.timeline.timeline import html_table
from tilewave.value import Value, plain_copy, with_choices

if TYPE_CHECKING:
    from typing import Any

    from tilewave.annotations import FilePath

#: The choices of a plan, as they are declared in include/tilewave/engine/plan_choices.hpp.
CHOICES = tuple(name for name, *_ in _core.plan_choices)
#: Of each what may be given, in words.
ALLOWED = {name: allowed for name, _, allowed, _ in _core.plan_choices}


@dataclasses.dataclass
@with_choices(_core.plan_choices, needed=("grid", "mapping_dim", "tile", "factors"))
class Plan(Value):
    """How a sweep is cut and ordered: print it, edit it, save it, pass it back to `run`.

    A plan is a value: what is done to one changes no other, nor what runs do that are not given it. Setting an
    attribute that is not listed here raises ConfigError. Lists become tuples.

    Attributes
    ----------
    CHOICES
    predicted : Predicted
        ``predicted.time_s`` and ``predicted.parts``: what it would take; None for a plan made by hand. It is of the
        plan as it was chosen: run an edited one, and the report has its own.
    memory_bytes : int
        Of the rank that needs most: its parts of the fields, and staging.
    ranked : list of dict
        The plans that were played, this one first: ``time_s``, ``parts``, ``memory_bytes``, the choices, and
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
            data = json.loads(files.read(path))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path} is no saved plan: {error}") from None
        try:
            return _from_data(cls, data)
        except ConfigError as error:
            raise ConfigError(f"{path} is no saved plan: {error}") from None

    def __str__(self) -> str:
        lines = [f"{name:14} {getattr(self, name)}" for name in self._in_effect()]
        if self.predicted:
            lines.append(f"{'predicted':14} {units.seconds(self.predicted.time_s)}")
        return "\n".join(lines)


def _from_data(cls, data):
    if not isinstance(data, dict):
        raise ConfigError(f"given {type(data).__name__}; allowed: an object with the fields {', '.join(CHOICES)}")
    if unknown := data.keys() - {field.name for field in dataclasses.fields(cls)}:
        raise ConfigError(f"no field {min(unknown)!r}; allowed: {', '.join(CHOICES)}")
    for field in dataclasses.fields(cls):
        if (
            field.name not in data
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ):
            raise ConfigError(f"field {field.name!r} is missing")
    values = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items() if name in CHOICES
    }
    probe = _core.Plan()
    for name, value in values.items():
        _assign(probe, name, value)
    values["predicted"] = _predicted(data.get("predicted"))
    for name, kind, allowed in (
        ("memory_bytes", int, "an integer"),
        ("ranked", list, "a list"),
        ("notes", dict, "an object"),
    ):
        value = data.get(name)
        if value is None:
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ConfigError(f"{name}: given {_short(value)}; allowed: {allowed}")
        values[name] = value
    if not 0 <= values.get("memory_bytes", 0) <= MOST_BYTES:
        raise ConfigError(f"memory_bytes: given {_short(values['memory_bytes'])}; allowed: 0 to {MOST_BYTES}")
    for number, record in enumerate(values.get("ranked", ())):
        _check_ranked(f"ranked[{number}]", record)
    plan = cls(**values)
    try:
        plan.explain()
    except Exception as error:  # whatever has been done to what explains it
        raise ConfigError(
            f"notes: they cannot be explained ({type(error).__name__}: {error}); allowed: as `save` wrote them, or none"
        ) from None
    return plan


MOST_BYTES = 1 << 62
RANKED = {
    "time_s": "seconds >= 0",
    "estimate_s": "seconds >= 0",
    "parts": f"an object with {', '.join(PARTS)}, seconds >= 0",
    "memory_bytes": "bytes >= 0",
    "reason": "a text",
    "choices": f"an object with {', '.join(CHOICES)}",
}


def _check_ranked(where, record):
    """Raise ConfigError unless this is what `_record` makes of a plan."""
    if not isinstance(record, dict) or record.keys() != RANKED.keys():
        raise ConfigError(f"{where}: given {_short(record)}; allowed: an object with {', '.join(RANKED)}")
    parts, choices = record["parts"], record["choices"]
    fine = {
        "time_s": _is_time(record["time_s"]),
        "estimate_s": _is_time(record["estimate_s"]),
        "memory_bytes": _is_time(record["memory_bytes"]),
        "parts": isinstance(parts, dict) and all(_is_time(parts.get(name)) for name in PARTS),
        "reason": isinstance(record["reason"], str),
        "choices": isinstance(choices, dict) and choices.keys() == set(CHOICES),
    }
    for name, allowed in RANKED.items():
        if not fine[name]:
            raise ConfigError(f"{where}.{name}: given {_short(record[name])}; allowed: {allowed}")
    probe = _core.Plan()
    for name, value in choices.items():
        try:
            _assign(probe, name, tuple(value) if isinstance(value, list) else value)
        except ConfigError as error:
            raise ConfigError(f"{where}.choices: {error}") from None


def _is_time(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST_BYTES


def _short(value):
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."


def _predicted(data):
    if data is None:
        return None
    names = [field.name for field in dataclasses.fields(Parts)]
    parts = data.get("parts") if isinstance(data, dict) else None
    numbers = [data.get("time_s"), *(parts.get(name) for name in names)] if isinstance(parts, dict) else [None]
    if not all(map(_is_time, numbers)):
        raise ConfigError(
            f"predicted: given {_short(data)}; allowed: time_s and parts {', '.join(names)}, seconds >= 0"
        )
    try:
        faces = [Face(**{**face, "direction": tuple(face["direction"])}) for face in data.get("faces", ())]
    except (TypeError, KeyError):
        raise ConfigError(f"predicted: faces: given {_short(data['faces'])}; allowed: a list as saved") from None
    return Predicted(float(numbers[0]), Parts(*map(float, numbers[1:])), faces=faces)


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
    threads = choices.get("threads", threads)
    most = _core.limits["lanes"]
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= most:
        raise ConfigError(f"threads: given {shown(threads)}; allowed: an integer from 1 to {most}")
    request.threads = threads
    request.all_threads = "threads" in choices
    return request


def chosen_plan(problem, ranked, considered, rate, *, ranks, threads, cpus, machine, choices, fixed, whole):
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
    ranks, threads : int
    cpus : int or None
        Of each rank; None where the ranks are not here.
    machine : the core's machine
    choices : dict
        That were obeyed.
    fixed : dict
        Those of `choices` that the user made.
    whole : bool
        Whether the plan was given.
    """
    best = ranked[0]
    chosen = Plan._from_core(best.plan)

    def play():
        schedules = [_core.nest_schedule(problem.core, best.plan, rank) for rank in range(best.plan.ranks)]
        return _core.predict(schedules, machine, rate.rate, best.plan.poll_period_s).timeline

    def faces():
        return _core.face_costs(problem.core, best.plan, machine)

    chosen.predicted = Predicted(best.time_s, Parts.of(best.parts), play, faces)
    chosen.memory_bytes = best.memory_bytes
    chosen.ranked = [_record(candidate) for candidate in ranked]
    chosen.notes = {
        "nest": problem.nest.name,
        "loops": list(problem.nest.indices),
        "extents": [hi - lo for lo, hi in zip(*problem.core.space)],
        "ranks": ranks,
        "threads": threads,
        "considered": considered,
        "given_whole": whole,
        "fixed": {name: list(value) if isinstance(value, tuple) else value for name, value in fixed.items()},
        "by_rule": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in choices.items()
            if name not in fixed
        },
        "rate": {
            **{name: getattr(rate.rate, name) for name in ("point_s", "row_s", "tile_s", "one_lane_factor")},
            "note": rate.note,
        },
        "machine": _numbers(machine, ranks),
        "sequential": problem.sequential,
        "without": _core.names_of(problem.core.paths_off),
    }
    if cpus is not None:
        chosen.notes["cpus"] = cpus
        chosen.notes["fewer"] = _why_fewer(chosen)
    return chosen


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
        return f"the context has {notes['threads']} thread(s)"
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
