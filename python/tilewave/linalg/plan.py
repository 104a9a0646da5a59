"""How products and factors are computed, and how they went: values."""

from __future__ import annotations

import dataclasses
import itertools
import numbers
from typing import TYPE_CHECKING, Any

from tilewave import _core, units
from tilewave.errors import ConfigError, shown
from tilewave.field.values import whole_numbers
from tilewave.linalg.checks import require_integer, require_one_of
from tilewave.machine import known, measure
from tilewave.plan.sentence import weights_of
from tilewave.timeline.parts import Parts, Predicted, Simulated, WithComparison
from tilewave.timeline.timeline import Timeline
from tilewave.value import with_declared

#: Plans that an explanation lists, the fastest first.
MOST_LISTED = 12


def options_of(call, kind, given):
    """The core's options of a call, checked by type and range; None and "auto" are left to be chosen.

    Parameters
    ----------
    kind : class
        MatmulPlan or FactorPlan.
    given : dict
        Choices by name, and `memory`.
    """
    options = kind._options()
    for (name, default, *_), values in zip(kind._declared, kind._values, strict=True):
        if name in given and (value := _checked(call, name, given[name], default, values)) is not None:
            setattr(options, name, value)
    weights = given.get("weights")
    options.weights = None if weights is None else whole_numbers(weights)
    if weights is not None and options.weights is None:
        raise ConfigError(f"{call}: weights: given {shown(weights)}; allowed: for each rank an integer, or none")
    memory = given["memory"]
    require_integer(call, "memory", memory, 0)
    options.memory = None if memory is None else int(memory)
    return options


def _checked(call, name, given, default, values):
    """A value for a choice, None where it is free; raises ConfigError."""
    if isinstance(default, str):
        if name == "algorithm":
            require_one_of(call, name, given or "None", ("auto", *values))
            return None if given == "auto" else given
        require_one_of(call, name, given, values)
        return given
    if isinstance(default, bool):
        if given is not None and not isinstance(given, bool):
            raise ConfigError(f"{call}: {name}: given {given!r}; allowed: True, False")
        return given
    if isinstance(default, tuple):
        if given is not None and whole_numbers(given) is None:
            raise ConfigError(f"{call}: {name}: given {shown(given)}; allowed: two integers >= 1, (rows, columns)")
        return None if given is None else whole_numbers(given)
    if isinstance(default, int):
        require_integer(call, name, given, *values)
        return None if given is None else int(given)
    if given is not None and (isinstance(given, bool) or not isinstance(given, numbers.Real)):
        raise ConfigError(f"{call}: {name}: given {given!r}; allowed: a number >= {values[0]:g}")
    return None if given is None else float(given)


def looked_up(context, call):
    """The machine's numbers, where the core compares plans of a call; a part of a collective call."""
    if context.size > 1 and call.compares:
        yield from measure.looked_up(context)


def ranked(context, call):
    """The core's plans of a call, the fastest first; a part of a collective call."""
    yield from looked_up(context, call)
    return context._together(call.ranked)


class _PlanOfMatrices:
    """Hold what plans of products and factors have in common: choices, and what they were compared with."""

    if TYPE_CHECKING:
        memory_bytes: int
        predicted_s: float | None
        compared: tuple[Any, ...]
        messages: str
        ranks: int
        weights: tuple[int, ...]

        def __init__(self, *choices: Any, **more: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def _of(cls, ranked, context):
        """Return the plan of the core's plans of a call, the fastest first; it is made once."""
        if ranked.shown is None:
            best, *_ = plans = ranked.plans
            known_of = {name: getattr(best, name) for name, *_ in cls._declared} | cls._more(best)
            compared = () if best.predicted_s is None else tuple(cls._compared_with(plan) for plan in plans)
            more = {"compared": compared, "messages": known.messages(context), "ranks": context.size}
            more["weights"] = ranked.weights if best.in_proportion else ()
            ranked.shown = cls(memory_bytes=best.memory_bytes, predicted_s=best.predicted_s, **known_of, **more)
        return ranked.shown

    @classmethod
    def _more(cls, plan):
        """Return what else a plan of the core says."""
        return {}

    @staticmethod
    def _compared_with(plan):
        """(seconds, bytes, text) of a plan of the core."""
        return plan.predicted_s, plan.memory_bytes, str(plan)

    def _choices(self):
        return {name: getattr(self, name) for name, *_ in self._declared}

    def _core(self):
        made = self._made()
        for name, value in self._choices().items():
            setattr(made, name, value)
        made.in_proportion = bool(self.weights)
        return made

    def explain(self) -> str:
        """Why this plan: what was compared, the fastest first.

        Returns
        -------
        str
        """
        return "\n".join([self._sentence(), str(self), *self._lines_of_compared()])

    def _sentence(self):
        """Return what was chosen, and why, in words."""
        how = "one rank computes all" if self.ranks == 1 else self._how()
        count = len(self.compared)
        why = f", because this is predicted to be the fastest of {count} plans" if count > 1 else ""
        weights = f"; ranks have blocks in proportion to {weights_of(self.weights)}" if self.weights else ""
        return f"{how[:1].upper()}{how[1:]}{weights}{why}."

    def _sent(self):
        """How a panel is sent to all ranks that need it."""
        return "around a ring" if self.tree == "ring" else "in the least number of rounds"

    def _lines_of_compared(self):
        if not self.compared:
            return ["nothing was compared"]
        count = len(self.compared)
        lines = [f"{count} plans were simulated with the machine's numbers: time, bytes beyond the matrices"]
        if self.messages:
            lines.insert(0, self.messages)
        times, sizes, texts = zip(*self.compared[:MOST_LISTED], strict=True)
        (unit, cells), (of, memory) = units.column(times, units.TIMES), units.column(sizes, units.BYTES)
        lines += [f"  {a} {unit}  {b} {of}  {text}" for a, b, text in zip(cells, memory, texts, strict=True)]
        if any(before[0] > after[0] for before, after in itertools.pairwise(self.compared)):
            lines.append("  ... in this order, as those whose times are hard to predict must be 5 % faster")
        if count > MOST_LISTED:
            lines.append(f"  ... and {count - MOST_LISTED} slower ones")
        return lines

    def __str__(self) -> str:
        predicted = "" if self.predicted_s is None else f"; predicted {units.seconds(self.predicted_s)}"
        return f"{self._core()}; {units.size(self.memory_bytes)} beyond the matrices{predicted}"


@dataclasses.dataclass(frozen=True)
@with_declared("CHOICES", _core.linalg.product_choices)
class MatmulPlan(_PlanOfMatrices):
    """How a product is computed; ``print(plan)`` shows it, `explain` says why.

    Attributes
    ----------
    CHOICES
    moved : tuple of str
        Operands that are redistributed first: "A", "B", "C".
    memory_bytes : int
        Of the rank that needs most, beyond the three matrices: panels, and copies of what is redistributed.
    predicted_s : float or None
        None where nothing was compared.
    weights : tuple of int
        In proportion to which ranks have parts of C; empty: as C lies.
    """

    _declared, _values = _core.linalg.product_choices, _core.linalg.product_values
    _made, _options = _core.linalg.ProductPlan, _core.linalg.ProductOptions
    moved: tuple[str, ...] = ()
    memory_bytes: int = 0
    predicted_s: float | None = None
    compared: tuple[Any, ...] = ()
    messages: str = ""
    ranks: int = 0
    weights: tuple[int, ...] = ()

    def _how(self):
        if self.algorithm == "wavefront":
            return "blocks go from rank to rank as a wavefront, each multiplied where it arrives"
        if self.algorithm == "summa":
            return (
                f"panels of A go along the rows of the process grid and panels of B along its columns, {self._sent()}"
            )
        return f"each panel goes to all ranks that need it, {self._sent()}"

    @classmethod
    def _more(cls, plan):
        return {"moved": tuple(name for name, moves in zip("ABC", plan.moved, strict=True) if moves)}

    def _core(self):
        made = super()._core()
        made.moved = [name in self.moved for name in "ABC"]
        return made

    def _lines_of_compared(self):
        moved = f"{' and '.join(self.moved)} in other layouts than this algorithm needs: redistributed first"
        return [*([moved] if self.moved else []), *super()._lines_of_compared()]


@dataclasses.dataclass(frozen=True)
@with_declared("CHOICES", _core.linalg.factor_choices)
class FactorPlan(_PlanOfMatrices):
    """How a factorization or a triangular solve is computed; ``print(plan)`` shows it, `explain` says why.

    Attributes
    ----------
    CHOICES
    memory_bytes : int
        Of a rank beyond the matrices: the panels in flight.
    sent_bytes : int
        By rank 0.
    least_sent_bytes : int
        What each of P ranks with memory for M elements must send at least, to leading order: of LU 2 n³ / (3 P √M)
        elements, of Cholesky half of it (kwasniewski2021). M is its part of the matrix and its panels. 0: not known.
    predicted_s : float or None
        None where nothing was compared.
    moving_s : float
        Predicted, of redistributing the matrix first; not in `predicted_s`, but in what plans are compared by.
    weights : tuple of int
        In proportion to which ranks have blocks; empty: they take turns.
    """

    _declared, _values = _core.linalg.factor_choices, _core.linalg.factor_values
    _made, _options = _core.linalg.FactorPlan, _core.linalg.FactorOptions
    memory_bytes: int = 0
    sent_bytes: int = 0
    least_sent_bytes: int = 0
    predicted_s: float | None = None
    moving_s: float = 0.0
    compared: tuple[Any, ...] = ()
    messages: str = ""
    ranks: int = 0
    weights: tuple[int, ...] = ()

    @classmethod
    def _more(cls, plan):
        return {name: getattr(plan, name) for name in ("sent_bytes", "least_sent_bytes", "moving_s")}

    @staticmethod
    def _compared_with(plan):
        return plan.predicted_s + plan.moving_s, plan.memory_bytes, str(plan)

    def _core(self):
        made = super()._core()
        made.moving_s = self.moving_s
        return made

    def _lines_of_compared(self):
        line = f"rank 0 sends {units.size(self.sent_bytes)}"
        if self.least_sent_bytes:
            line += f"; of large matrices a rank must send {units.size(self.least_sent_bytes)} (kwasniewski2021)"
        return [*([line] if self.sent_bytes else []), *super()._lines_of_compared()]

    def _how(self):
        if self.algorithm == "wavefront":
            return "chunks of a panel go from rank to rank, and are used as they arrive"
        return f"each panel goes to all ranks {self._sent()}, and is used when all of it is there"


class WithPrediction(WithComparison):
    """Hold what reports of runs of matrix schedules have in common: `_predict` and `timeline`."""

    _found = None

    @classmethod
    def _how(cls, context, name, plan, done):
        """(seconds, parts, timeline, what predicts it) of what the core has run, or has only planned."""

        def planned(calls):
            time_s = done.prediction().time_s
            calls.add(name, time_s, plan, sample=getattr(done, "sample", ""))
            return time_s, None

        run = context._ranks.run(lambda: (done.time_s, Parts.of(done.parts) if context.rank == 0 else None), planned)
        return *run, Timeline(done.timeline, name), done.prediction

    @property
    def prediction(self) -> Predicted | None:
        """Predicted or None: ``time_s``, ``parts`` and the ``timeline`` that was to be expected, redistributions left
        out. Simulated when it is first asked for; on rank 0, None elsewhere.
        """
        if self._found is None and self._predict is not None:
            found = self._predict()
            predicted = Predicted(found.time_s, Parts.of(found.parts), Simulated(found.timeline))
            object.__setattr__(self, "_found", predicted)  # of frozen dataclasses
        return self._found

    @property
    def _expected(self):
        return self.prediction

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_predict": None, "_found": None}  # schedules and rates stay where they are


@dataclasses.dataclass(frozen=True)
class MatmulReport(WithPrediction):
    """How a product went.

    Attributes
    ----------
    plan : MatmulPlan
    time_s : float
        Of the slowest rank, without redistributions.
    flops_per_s : float
        Of all ranks.
    parts : Parts or None
        Rank 0: where the lanes' time went, on average.
    timeline : Timeline
        Rank 0: of all ranks; empty elsewhere.
    """

    plan: MatmulPlan
    time_s: float
    flops_per_s: float
    parts: Parts | None
    timeline: Timeline
    _predict: Any = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def measured(self) -> float:
        """float: `time_s`."""
        return self.time_s

    @property
    def predicted(self) -> float | None:
        """float or None: seconds."""
        return self.plan.predicted_s

    def __str__(self) -> str:
        measured = f"{units.seconds(self.time_s)}, {units.text(self.flops_per_s, units.FLOPS)}"
        return f"{self.plan._sentence()}\n{self.plan}\nmeasured {measured}"
