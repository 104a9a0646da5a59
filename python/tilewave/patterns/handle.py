"""A pattern in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewave.context import interrupts

if TYPE_CHECKING:
    from typing import Any


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
        """The choice and its reason, as text."""
        return f"{self._core.plan}\n  because: {self.why}"
