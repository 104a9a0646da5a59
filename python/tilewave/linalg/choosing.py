"""The choices of a factorization or a solve that are free, and those of them that are predicted fastest."""

from __future__ import annotations

import dataclasses
import json
import weakref

from tilewave import _core
from tilewave.linalg.layout import Layout
from tilewave.linalg.plan import FactorPlan, options_of
from tilewave.linalg.prediction import Play
from tilewave.machine import known, measure

#: Plans that a context keeps.
MOST_PLANS = 64
_plans = weakref.WeakKeyDictionary()  # by context: what was planned there, the same on all its ranks


@dataclasses.dataclass(frozen=True)
class Wish:
    """What a caller has chosen of a `FactorPlan`; None where it is free."""

    block: int | None = None
    lookahead: int | None = None
    tree: str | None = None
    algorithm: str = "auto"
    memory: int | None = None

    def __str__(self):
        chosen = {name: value for name, value in vars(self).items() if value is not None and value != "auto"}
        return ", ".join(f"{name}={value}" for name, value in chosen.items()) or "nothing chosen"

    def checked(self, call):
        """Itself; raises ConfigError."""
        self._options(call)
        return self

    def _options(self, call):
        choices = {name: getattr(self, name) for name in ("algorithm", "tree", "lookahead", "block")}
        return options_of(call, FactorPlan, choices, self.memory)

    def plans(self, call, problem):
        """All plans of the core that keep to it; raises ConfigError."""
        return problem.plans(call, self._options(call))


def by_block_columns(shape, block, ranks):
    """The layout of a factor."""
    return Layout("columns", (max(1, shape[0]), block), (1, ranks))


def best_plan(context, problem, dtype, plans, library, text):
    """The fastest of some plans, the same on every rank; a part of a collective call.

    Parameters
    ----------
    plans : list of FactorPlan
        Of the core.
    text : str
        What they depend on: planned once.
    """
    kept = _plans.setdefault(context, {})
    if context.size > 1 and len(plans) > 1:
        yield from measure.looked_up(context)
    machine = context._core.machine()
    key = text, context._machine_number, context.threads
    if key not in kept:
        error, found = None, ""
        try:
            if len(plans) > 1:
                problem.measure(library, dtype.name, plans)
            if context.rank == 0:
                played = problem.played(library, dtype.name, plans, machine)
                compared = [(p.predicted_s, p.memory_bytes, str(p)) for p in played if p.predicted_s is not None]
                best = {name: getattr(played[0], name) for name, *_ in FactorPlan._declared}
                more = {name: getattr(played[0], name) for name in ("memory_bytes", "predicted_s")}
                found = json.dumps(best | more | {"compared": compared, "messages": known.messages(context)})
        except Exception as problem_here:
            error = problem_here
        yield error or "planned"
        found = json.loads(context._core.broadcast(found.encode()))
        while len(kept) >= MOST_PLANS:
            kept.pop(next(iter(kept)))
        kept[key] = FactorPlan(**found | {"compared": tuple(map(tuple, found["compared"]))})
    return kept[key]


def play_of(schedule_of, context, dtype, library):
    """The prediction of schedules, by rank."""
    return Play(
        schedule_of,
        context.size,
        context._core.machine(),
        lambda parts: _core.linalg.factor_task_rates(library, dtype.name, parts),
        context.threads,
    )
