"""How a product is computed, and how it went: values."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from tilewave import _core, units
from tilewave.linalg.prediction import Foretold
from tilewave.timeline.parts import Parts
from tilewave.timeline.timeline import Timeline

ALGORITHMS = ("broadcast", "wavefront", "summa")
TREES = ("ring", "least_rounds")


#: Plans that an explanation lists, the fastest first.
MOST_LISTED = 12


def lines_of_compared(compared, messages):
    """What was compared, (seconds, bytes, text) each, as lines of an explanation; and what messages cost."""
    if not compared:
        return ["one plan was possible: nothing was compared"]
    lines = [f"{len(compared)} plans were played against the machine's numbers: time, bytes beyond the matrices"]
    if messages:
        lines.insert(0, messages)
    times, sizes, texts = zip(*compared[:MOST_LISTED], strict=True)
    (unit, cells), (of, memory) = units.column(times, units.TIMES), units.column(sizes, units.BYTES)
    lines += [f"  {a} {unit}  {b} {of}  {text}" for a, b, text in zip(cells, memory, texts, strict=True)]
    if any(before[0] > after[0] for before, after in itertools.pairwise(compared)):
        lines.append("  ... in this order, as those whose times are hard to foretell must be 5 % faster")
    if len(compared) > MOST_LISTED:
        lines.append(f"  ... and {len(compared) - MOST_LISTED} slower ones")
    return lines


@dataclasses.dataclass(frozen=True)
class MatmulPlan:
    """How a product is computed; ``print(plan)`` shows it, `explain` says why.

    Attributes
    ----------
    algorithm : str
        "broadcast", "wavefront" or "summa".
    tree : str
        Of a broadcast: "ring" or "least_rounds".
    lookahead : int
        Panels that travel while another one is used.
    panel : int
        Columns, or common elements, of a panel at most.
    pending : bool
        Of "wavefront": a pending block for every other rank; whichever is there is used.
    task_flops : float
        Flops of a task at most: a lane looks at the messages after each.
    moved : tuple of str
        Operands that are redistributed first: "A", "B", "C".
    memory_bytes : int
        Of the rank that needs most, beyond the three matrices: panels, and copies of what is redistributed.
    predicted_s : float or None
        None where nothing was compared.
    wide_blocks : bool
        Operands whose blocks of the common dimension are narrow are redistributed in wider ones.
    """

    algorithm: str
    tree: str
    lookahead: int
    panel: int
    pending: bool
    task_flops: float
    moved: tuple[str, ...]
    memory_bytes: int
    predicted_s: float | None
    compared: tuple[Any, ...] = ()
    messages: str = ""
    wide_blocks: bool = False

    @classmethod
    def _of(cls, found):
        """Of the core's."""
        moved = tuple(name for name, moves in zip("ABC", found.moved, strict=True) if moves)
        names = (
            "algorithm",
            "lookahead",
            "panel",
            "pending",
            "task_flops",
            "memory_bytes",
            "predicted_s",
            "wide_blocks",
        )
        return cls(tree=TREES[found.least_rounds], moved=moved, **{name: getattr(found, name) for name in names})

    def _core(self):
        return _core.linalg.ProductPlan(
            self.algorithm,
            self.tree == "least_rounds",
            self.pending,
            self.lookahead,
            self.panel,
            self.task_flops,
            [name in self.moved for name in "ABC"],
            self.wide_blocks,
        )

    def explain(self) -> str:
        """Why this plan: what was compared, the fastest first.

        Returns
        -------
        str
        """
        lines = [str(self)]
        if self.moved:
            lines.append(f"{' and '.join(self.moved)} in other layouts than this algorithm needs: redistributed first")
        return "\n".join(lines + lines_of_compared(self.compared, self.messages))

    def __str__(self) -> str:
        predicted = "" if self.predicted_s is None else f"; predicted {units.seconds(self.predicted_s)}"
        return f"{self._core()}; {units.size(self.memory_bytes)} beyond the matrices{predicted}"


@dataclasses.dataclass(frozen=True)
class MatmulReport(Foretold):
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
    _play: Any = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def measured(self) -> float:
        """float: `time_s`."""
        return self.time_s

    @property
    def predicted(self) -> float | None:
        """float or None: seconds."""
        return self.plan.predicted_s

    def __str__(self) -> str:
        return f"{self.plan}\nmeasured {units.seconds(self.time_s)}, {units.text(self.flops_per_s, units.FLOPS)}"
