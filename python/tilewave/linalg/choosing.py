"""The choices of a factorization or a solve that are free, and those of them that are predicted fastest."""

from __future__ import annotations

import dataclasses
import json
import weakref
from typing import Any

from tilewave import _core, units
from tilewave.errors import ConfigError
from tilewave.linalg.checks import MOST_AHEAD, require_integer, require_one_of
from tilewave.linalg.layout import Layout
from tilewave.linalg.plan import TREES, lines_of_compared
from tilewave.linalg.prediction import Play
from tilewave.machine import known, measure

#: How panels of a factor go to those that need them.
ALGORITHMS = ("broadcast", "wavefront")
#: Plans that a context keeps.
MOST_PLANS = 64
_plans = weakref.WeakKeyDictionary()  # by context: what was planned there, the same on all its ranks


@dataclasses.dataclass(frozen=True)
class FactorPlan:
    """How a factorization or a triangular solve is computed; ``print(plan)`` shows it, `explain` says why.

    Attributes
    ----------
    algorithm : str
        "broadcast": a panel is used when all of it is there; "wavefront": it goes from rank to rank, and each chunk is
        used as it comes.
    tree : str
        "ring" or "least_rounds".
    lookahead, block : int
        Panels that travel beside the one in use; columns of a panel.
    chunk_bytes : int
        Of a panel's messages.
    memory_bytes : int
        Of a rank beyond the matrices: the panels on their way.
    predicted_s : float or None
        None where nothing was compared.
    """

    algorithm: str
    tree: str
    lookahead: int
    block: int
    chunk_bytes: int
    memory_bytes: int
    predicted_s: float | None
    compared: tuple[Any, ...] = ()
    messages: str = ""

    @classmethod
    def _of(cls, found):
        """Of the core's."""
        return cls(
            ALGORITHMS[found.wavefront],
            TREES[found.least_rounds],
            found.lookahead,
            found.block,
            found.chunk_bytes,
            found.memory_bytes,
            found.predicted_s,
        )

    def _core(self):
        return _core.linalg.FactorPlan(
            self.algorithm == "wavefront", self.tree == "least_rounds", self.lookahead, self.block, self.chunk_bytes
        )

    def _choices(self, threads):
        """As solves and reflections take them."""
        return _core.linalg.FactorChoices(self.tree == "least_rounds", self.lookahead, threads)

    def explain(self) -> str:
        """Why this plan: what was compared, the fastest first.

        Returns
        -------
        str
        """
        return "\n".join([str(self), *lines_of_compared(self.compared, self.messages)])

    def __str__(self) -> str:
        predicted = "" if self.predicted_s is None else f"; predicted {units.seconds(self.predicted_s)}"
        return f"{self._core()}; {units.size(self.memory_bytes)} beyond the matrices{predicted}"


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
        require_integer(call, "block", self.block, 1)
        require_integer(call, "lookahead", self.lookahead, 0, MOST_AHEAD)
        require_integer(call, "memory", self.memory, 0)
        require_one_of(call, "tree", self.tree, TREES)
        require_one_of(call, "algorithm", self.algorithm or "None", ("auto", *ALGORITHMS))
        if self.algorithm == "wavefront" and self.tree == "least_rounds":
            raise ConfigError(f"{call}: tree 'least_rounds' was given with algorithm 'wavefront'; allowed: 'ring'")
        return self

    def plans(self, call, problem):
        """All plans of the core that keep to it; raises ConfigError."""
        return problem.plans(
            call,
            None if self.algorithm == "auto" else self.algorithm == "wavefront",
            None if self.tree is None else self.tree == "least_rounds",
            *(None if given is None else int(given) for given in (self.lookahead, self.block, self.memory)),
        )


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
                played = [FactorPlan._of(plan) for plan in problem.played(library, dtype.name, plans, machine)]
                compared = [(p.predicted_s, p.memory_bytes, str(p._core())) for p in played]
                compared = compared if played[0].predicted_s is not None else []
                found = json.dumps(
                    dataclasses.asdict(
                        dataclasses.replace(played[0], compared=compared, messages=known.messages(context))
                    )
                )
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
