"""Allreduce: a reduce and a broadcast, or a multi-reduce and a spread."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave import _core
from tilewave.context import collective, interrupts
from tilewave.errors import ConfigError, shown
from tilewave.patterns.arguments import Call, Given, PatternChoices, context_of, pattern, run_plain
from tilewave.patterns.calls import broadcast, multi_reduce, reduce, spread
from tilewave.patterns.matrix import NUMBERS, rows_and_columns, same_or_apart, view

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from tilewave.annotations import Array, Number, Outcome
    from tilewave.context.context import Context
    from tilewave.patterns.handle import Handle

ALLREDUCE_RING_BYTES = 128 << 10  # from here on an allreduce goes by parts of the columns


@pattern
def allreduce(
    M: Array | Number,
    op: str | Callable[..., Any] = "sum",
    out: Array | None = None,
    *,
    context: Context | None = None,
    **choices: Unpack[PatternChoices],
) -> Outcome:
    """Combine the matrices of all ranks and give every rank the result, the same bits everywhere; collective.

    Parameters
    ----------
    M : numpy.ndarray or number
        As in `broadcast`; read.
    op : {"sum", "prod", "min", "max"} or callable
        As in `reduce`.
    out : numpy.ndarray, optional
        Like M; may be M. Default: a new array.
    algorithm : {"auto", "tree", "ring"}
        "tree": `reduce` on rank 0, then `broadcast`; "ring": `multi_reduce`, then `spread`. "auto": "ring" from
        `ALLREDUCE_RING_BYTES` on, where each rank gets columns.
    chunk_bytes, buffers, wait, start, explain, context
        As in `broadcast`, for each of the two.

    Returns
    -------
    numpy.ndarray, number or Handle
        `out`, or a number where one was given.

    Raises
    ------
    ConfigError, KernelError
        As `reduce`.

    Notes
    -----
    Collective: the messages of the two patterns. The order of the combination is that of the first one. [dawson2000]
    """
    here = context_of(context) or collective.find(context, (M,), {})[0]
    outer, here._doing = here._doing, "tw.patterns.allreduce"  # so that ranks that call one of the two differ
    try:
        return _allreduce(M, op, out, context, Given.of(allreduce, choices))
    finally:
        here._doing = outer


def _allreduce(M, op, out, context, given):
    here = context_of(context)
    algorithm = given.algorithm
    if not (automatic := algorithm.__class__ is str and algorithm == "auto"):
        given = given._replace(algorithm="auto")
    if here and automatic and out is None:
        # The most frequent calls, as in the other patterns.
        row = M if type(M) is np.ndarray else np.array([M]) if isinstance(M, NUMBERS) else None
        if row is not None and row.nbytes < ALLREDUCE_RING_BYTES:
            whole = np.empty(row.shape, row.dtype)
            if run_plain("reduce", here, row, whole, 0, op, None, given):
                broadcast(whole, context=here)
                return whole if row is M else whole[0] if isinstance(M, np.generic) else whole.item()
    call = Call("reduce", context, M, given)
    ring = False
    with call:
        M = call.given(M)
        out = np.empty(M.shape, M.dtype) if out is None and isinstance(M, np.ndarray) else out
        ring = _as_ring(call.context, M, op, out, algorithm)
    if call.error:
        call.name = "allreduce"
        call.go(None, [])  # raises on every rank
    call.result = out
    choices = {name: getattr(given, name) for name in ("chunk_bytes", "buffers", "explain")}
    choices["context"] = call.context
    if call.wait and call.start:
        for pattern in _two_patterns(call.context, M, op, out, ring):
            pattern(**choices)
        return call.outcome()
    # Ranks start patterns in one order: both are compared now; the second goes whenever the first is over.
    handle = AllreduceHandle(
        call, [pattern(start=False, **choices) for pattern in _two_patterns(call.context, M, op, out, ring)]
    )
    return handle.start() if call.start else handle


def _as_ring(context, M, op, out, algorithm):
    """Return whether an allreduce goes by parts of the columns; what is wrong with its arguments raises."""
    if not isinstance(algorithm, str) or algorithm not in ("auto", "tree", "ring"):
        raise ConfigError(f"algorithm {shown(algorithm)} was given; allowed: 'auto', 'tree', 'ring'")
    view("M", M)
    view("out", out, written=True)
    if out.shape != M.shape or out.dtype != M.dtype:
        raise ConfigError(f"M is {M.shape} {M.dtype}, out is {out.shape} {out.dtype}; they must be equal")
    same_or_apart(M, out)
    columns = M.shape[-1] if M.ndim else 1
    return (
        algorithm == "ring"
        and M.ndim > 0
        or algorithm == "auto"
        and M.nbytes >= ALLREDUCE_RING_BYTES
        and columns >= context.size
    )


def _two_patterns(context, M, op, out, ring):
    if not ring:
        return functools.partial(reduce, M, 0, op, out), functools.partial(broadcast, out)
    M, out = rows_and_columns("M", M), rows_and_columns("out", out)
    counts = [_core.dealt_columns(M.shape[1], 0, context.size, rank) for rank in range(context.rank + 1)]
    part = out[:, sum(counts[:-1]) : sum(counts)]
    return functools.partial(multi_reduce, M, part, op), functools.partial(spread, part, out)


class AllreduceHandle:
    """An `allreduce` in flight, or made with ``start=False``: `test`, `wait`, `start` and `run` as a pattern's `Handle`
    has them.
    """

    def __init__(self, call: Any, handles: list[Handle]) -> None:
        self._call, self._handles, self._at = call, handles, None  # the one of the two that is in flight

    @property
    def algorithm(self) -> str:
        return " + ".join(handle.algorithm for handle in self._handles)

    @property
    def buffer_bytes(self) -> int:
        return sum(handle.buffer_bytes for handle in self._handles)

    @property
    def time_s(self) -> float:
        return sum(handle.time_s for handle in self._handles)

    @interrupts.keeps
    def start(self) -> AllreduceHandle:
        """Go once more on the same memory; made with ``start=False``."""
        self._handles[0].start()
        self._at = 0
        return self

    @interrupts.keeps
    def test(self) -> bool:
        """Move things on; True when it is over."""
        while self._at is not None:
            if not self._handles[self._at].test():
                return False
            self._next()
        return True

    @interrupts.keeps
    def wait(self) -> Any:
        """Wait until it is over; what the blocking call returns."""
        while self._at is not None:
            self._handles[self._at].wait()
            self._next()
        return self._call.outcome()

    @interrupts.keeps
    def run(self) -> Any:
        """`start` and `wait` in one; what the blocking call returns."""
        return self.start().wait()

    def explain(self) -> str:
        """The choices and their reasons, as text."""
        return "\n".join(handle.explain() for handle in self._handles)

    def _next(self):
        self._at = None if self._at else 1
        if self._at:
            self._handles[1].start()
