"""Ctrl-C while ranks work together: kept until all of them can stop at the same place."""

import os
import signal
import threading
import time
from _thread import get_ident

# A launcher may pass a terminal's Ctrl-C on to ranks that had it already; a later one is from somebody who waits no
# longer.
AGAIN_S = 1.0


class _State:
    depth = 0  # collective calls under way in the main thread, one inside another
    error = None  # what the program's own handler raised meanwhile
    since = 0.0  # when, by time.monotonic()
    handler = None  # the program's own, called by ours
    main = 0  # the main thread's number


def install():
    """Defer interrupts in collective calls from now on.

    Notes
    -----
    Not collective. More than once is fine. Does nothing outside the main thread, where Python handles no signals, or
    where the
    program ignores SIGINT. The handler that the program has set stays in use: what it raises is what is deferred.
    """
    if _State.handler is not None or not _in_main_thread():
        return
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        _State.handler = handler
        signal.signal(signal.SIGINT, _received)


def _received(number, frame):
    """Handle SIGINT: now, or at the end of the collective calls under way."""
    if _State.depth == 0 or (_State.error is not None and time.monotonic() - _State.since > AGAIN_S):
        _State.error = None
        _State.handler(number, frame)
        return
    try:
        _State.handler(number, frame)
    except BaseException as error:
        if _State.error is None:
            _State.error, _State.since = error, time.monotonic()


class _Held:
    def __enter__(self):
        if _in_main_thread():
            _State.depth += 1

    def __exit__(self, kind, error, trace):
        if not _in_main_thread():
            return
        _State.depth -= 1
        if _State.depth == 0 and _State.error is not None:
            raise take()


_held = _Held()


def held():
    """Around a collective call: an interrupt that comes meanwhile is kept, and raised at the outermost end unless it
    was taken.

    Returns
    -------
    context manager
        May stand inside another one; costs less than a microsecond.

    Notes
    -----
    A second interrupt, more than `AGAIN_S` seconds after the first, is raised at once.
    """
    return _held


def pending():
    """The error to raise for an interrupt that is kept for the calling thread; None where there is none."""
    return _State.error if _State.error is not None and _in_main_thread() else None


def take():
    """The same as `pending`; nothing is pending afterwards."""
    error = pending()
    if error is not None:
        _State.error = None
    return error


def _in_main_thread():
    return get_ident() == _State.main


def _look_for_main_thread():
    _State.main = threading.main_thread().ident


_look_for_main_thread()
os.register_at_fork(after_in_child=_look_for_main_thread)  # the thread that forked is the child's
