"""Ctrl-C while ranks work together: held back until all of them can stop at the same call.

An interrupt that comes inside a function marked by `keeps`, or inside what that calls, is held back. The next
agreement that the thread begins raises it on every rank: one of the same call, else that of the next call. Runs look
for it as they compute, and stop on all ranks. A call of one rank raises it at its end. Anywhere else an interrupt is
raised at once.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from tilewave import _core

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    F = TypeVar("F", bound=Callable[..., Any])

# A launcher may pass a terminal's Ctrl-C on to ranks that had it already; a later one is from somebody who waits no
# longer.
AGAIN_S = 1.0


class _Pending(threading.local):
    """Hold what the program's handler has raised in a thread, until that is raised in a call or dropped."""

    error: BaseException | None = None
    since = 0.0  # by time.monotonic()


class _State:
    handler: Any = None  # the program's, called by ours


_pending = _Pending()
_codes: set[CodeType] = set()


def keeps(function: F) -> F:
    """Decorator of what ranks call together: an interrupt inside is held back. Costs nothing in a call."""
    _codes.add(function.__code__)
    function._keeps = keeps  # for what wraps it
    return function


def install() -> None:
    """Hold interrupts back in collective calls from now on.

    Notes
    -----
    Not collective. More than once is fine. Does nothing outside the main thread, where Python handles no signals, or
    where the program ignores SIGINT. The handler that the program has set stays in use: what it raises is held back.
    """
    if _State.handler is not None or threading.current_thread() is not threading.main_thread():
        return
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        _State.handler = handler
        signal.signal(signal.SIGINT, received)


def received(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT of the program that is at this frame."""
    again = _pending.error is not None
    if again and time.monotonic() - _pending.since <= AGAIN_S:
        return
    try:
        _State.handler(number, frame)
    except BaseException as error:
        if not again and _inside(frame):
            keep(error)
            return
        take()
        error.at_once = True  # of this rank alone
        raise


def _inside(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code in _codes:
            return True
        frame = frame.f_back
    return False


def keep(error: BaseException) -> None:
    """Hold an interrupt of the calling thread back; `error` is what a handler raised."""
    _pending.error, _pending.since = error, time.monotonic()
    _core.defer_interrupt(True)


def pending() -> bool:
    """Return whether the calling thread has an interrupt that no agreement has taken."""
    return _core.interrupt_deferred()


def take() -> BaseException | None:
    """Take the interrupt that was held back in the calling thread; then there is none."""
    error, _pending.error = _pending.error, None
    _core.defer_interrupt(False)
    return error


def of_call(raised: BaseException) -> BaseException:
    """The error of a call that an interrupt of some rank has ended by `raised`: what this rank's handler has raised,
    where that is no KeyboardInterrupt. Nothing is held back afterwards: all ranks may have had the same Ctrl-C.
    """
    pending_error = take()
    return raised if pending_error is None or isinstance(pending_error, KeyboardInterrupt) else pending_error
