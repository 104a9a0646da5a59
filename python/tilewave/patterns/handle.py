"""A pattern in flight."""

from __future__ import annotations

from typing import Any

from tilewave import units
from tilewave.context import interrupts

#: How matrices go, by algorithm.
WAYS = {
    "tree": "along a binomial tree",
    "ring": "around a ring",
    "rounds": "in the least number of rounds",
    "direct": "straight from rank to rank",
    "mpi": "by a call of MPI's",
}


class Handle:
    """A pattern in flight, or made with ``start=False`` and ready to go.

    It moves on in every call on its context and in `test` and `wait` of any handle, on whatever
    context; in between nothing moves. Until it is over its matrices belong to it.

    Attributes
    ----------
    algorithm : str
        "tree", "ring", "rounds", "direct" or "mpi"; with `chunk_bytes`, `buffers` and `why` (the reason) known
        once the ranks have agreed.
    buffer_bytes : int
        Staging memory on this rank.
    time_s : float
        Seconds that the last run took on this rank, without the comparison of the arguments; 0 where all went with it.
    """

    def __init__(self, call: Any, core: Any) -> None:
        self._call, self._context, self._core, self._explain = call, call.context, core, call.explain
        self._run_core = core.run  # looked up once: of small matrices that is much of the time

    @property
    def algorithm(self) -> str:
        return self._core.plan.algorithm

    @property
    def chunk_bytes(self) -> int:
        return self._core.plan.chunk_bytes

    @property
    def buffers(self) -> int:
        return self._core.plan.buffers

    @property
    def why(self) -> str:
        return self._core.plan.why

    @property
    def buffer_bytes(self) -> int:
        return self._core.buffer_bytes

    @property
    def time_s(self) -> float:
        return self._core.time_s

    @interrupts.keeps
    def test(self) -> bool:
        """Move things on; True when it is over.

        Raises
        ------
        ConfigError, KernelError, MpiError
            As `wait`.
        """
        return self._context._together(self._core.test)

    @interrupts.keeps
    def wait(self) -> Any:
        """Wait until it is over; what the blocking call returns.

        Raises
        ------
        ConfigError, KernelError, MpiError
            The same on every rank.
        """
        self._context._together(self._core.wait)
        if self._explain and self._context.rank == 0:
            print(self.explain())
            self._explain = False
        return self._call.outcome()

    @interrupts.keeps
    def start(self) -> Handle:
        """Go once more on the same memory; made with ``start=False``.

        Notes
        -----
        Collective. The arguments are not compared again: it costs only the transfer.
        """
        self._context._together(self._core.start)
        return self

    @interrupts.keeps
    def run(self) -> Any:
        """`start` and `wait` in one; what the blocking call returns."""
        self._context._together(self._run_core)
        return self._call.outcome()

    def explain(self) -> str:
        """Return what was chosen and why: a sentence, and the times that were predicted."""
        plan, lines = self._core.plan, [f"{self._sentence()}."]
        if len(plan.compared) > 1 and not plan.with_comparison:
            lines.append(f"{len(plan.compared)} algorithms were compared: {plan.numbers}")
            unit, times = units.column((time_s for _, time_s in plan.compared), units.TIMES)
            lines += [f"  {name:6}  {time} {unit}" for (name, _), time in zip(plan.compared, times, strict=True)]
        return "\n".join(lines)

    def _sentence(self):
        plan, ranks = self._core.plan, self._context.size
        what = f"The {self._call.name} of {units.size(plan.bytes)}"
        if ranks == 1:
            return f"{what} needs no message: there is one rank"
        if plan.with_comparison:
            return f"{what} over {ranks} ranks goes with the comparison of the arguments, because it is so small"
        chunks = plan.bytes > plan.chunk_bytes and plan.algorithm != "mpi"
        cut = f" in chunks of {units.size(plan.chunk_bytes)}, {plan.buffers} staged at a time" * chunks
        because = f"because this is {plan.why}" if plan.compared else f"as {plan.why}"
        return f"{what} over {ranks} ranks goes {WAYS[plan.algorithm]}{cut}, {because}"
