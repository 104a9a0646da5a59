"""Buffered sends and their receives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewave import _core
from tilewave.errors import ConfigError, shown
from tilewave.patterns.arguments import context_of, whole_number
from tilewave.patterns.matrix import number_of, view

if TYPE_CHECKING:
    from tilewave.annotations import Array, Number, Outcome
    from tilewave.context.context import Context

SEND_LIMIT_BYTES = 256 << 20


def send(
    M: Array | Number,
    dest: int,
    tag: int = 0,
    *,
    limit_bytes: int = SEND_LIMIT_BYTES,
    on_full: str = "wait",
    context: Context | None = None,
) -> None:
    """Send a matrix and return at once, whatever the receiver does: it is copied.

    Parameters
    ----------
    M : numpy.ndarray or number
        As in `broadcast`; may be changed as soon as the call returns.
    dest, tag : int
        Rank (also this one) and a number from 0 to 2047. Matrices to one rank with one tag
        arrive in order.
    limit_bytes : int
        The most bytes of matrices not yet received that this context stores. Bytes in flight in memory that ranks of
        a host share (at most 2.5 MB), or in the library's buffers, do not count.
    on_full : {"wait", "raise"}
        At that limit: wait for receivers, or raise ConfigError.
    context : Context, optional

    Raises
    ------
    ConfigError
        For a wrong argument; for a matrix larger than the limit.

    Notes
    -----
    Not collective. One copy packs and buffers; `Context.close` waits until all is received. [dawson2000]
    """
    context = _given(context)
    try:
        if context._ranks.quick and _core.send_plain(context._core, M, dest, tag, limit_bytes, on_full, context):
            return
        number = number_of(M)
        matrix = view("send: M", M if number is None else number)
        if on_full not in ("wait", "raise"):
            raise ConfigError(f"send: on_full {shown(on_full)} was given; allowed: 'wait', 'raise'")
        given = (
            *(matrix, whole_number("send: dest", dest), whole_number("send: tag", tag)),
            *(whole_number("send: limit_bytes", limit_bytes), on_full == "wait", context),
        )
        context._ranks.run(
            lambda: _core.send_buffered(context._core, *given), lambda calls: calls.noted("tw.patterns.send")
        )
    finally:
        context._heart.done()


def receive(
    M: Array | Number, source: int, tag: int = 0, *, wait: bool = True, context: Context | None = None
) -> Outcome:
    """Receive what `send` sent into a matrix of the same shape and dtype, with any row stride.

    Parameters
    ----------
    M : numpy.ndarray
        Written.
    source, tag : int
        As the sender's ``dest`` (its rank) and ``tag``.
    wait : bool
        False: return a handle with ``test()`` and ``wait()`` at once.
    context : Context, optional

    Returns
    -------
    numpy.ndarray or Handle
        M.

    Raises
    ------
    ConfigError
        For a wrong argument; for a message of another shape or dtype, which is then lost.

    Notes
    -----
    Not collective.
    """
    context = _given(context)
    if wait and context._ranks.quick:
        try:
            if _core.receive_plain(context._core, M, source, tag):
                return M
        finally:
            context._heart.done()
    matrix = view("receive: M", M, written=True)
    given = matrix, whole_number("receive: source", source), whole_number("receive: tag", tag), [M, context]
    handle = context._ranks.run(
        lambda: ReceiveHandle(context, _core.start_receive(context._core, *given), M),
        lambda calls: PlannedReceive(context, calls.noted("tw.patterns.receive"), M),
    )
    return handle.wait() if wait else handle


class ReceiveHandle:
    """A receive in flight: `test` and `wait` as a pattern's `Handle` has them."""

    def __init__(self, context: Context, core: Any, result: Any) -> None:
        self._context, self._core, self._result = context, core, result

    def test(self) -> bool:
        """Move things on; True when the matrix is there."""
        return self._guard("test")

    def wait(self) -> Any:
        """Wait for the matrix and return it."""
        self._guard("wait")
        return self._result

    def _guard(self, call):
        try:
            return getattr(self._core, call)()
        finally:
            self._context._heart.done()


class PlannedReceive(ReceiveHandle):
    """A receive where nothing is sent: it is over."""

    def _guard(self, call):
        return True


def _given(context):
    """The context of a call that is not collective."""
    found = context_of(context)
    if found is None:
        raise ConfigError(f"context: given {type(context).__name__}; allowed: tilewave.Context")
    return found
