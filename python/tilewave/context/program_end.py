"""The end of the program: contexts are closed, and a rank that failed by itself does not wait for the others."""

import atexit
import os
import sys
import threading
import weakref

from tilewave import _core

#: Contexts whose patterns in flight are waited for at the end of the program.
open_contexts = weakref.WeakSet()


class Meeting:
    """Where the ranks of the launch compare notes before they make a context: the default one, where most calls happen,
    else the first.
    """

    core = None
    lock = threading.RLock()  # held by the thread that makes a call on that context

    def move_to(self, context):
        if self.core is not None and context.size == self.core.size:
            self.core, self.lock = context._core, context._lock


meeting = Meeting()


@atexit.register
def _close_all():
    if os.getpid() != _made_by:
        return  # a forked child is no rank
    error = _error_at_the_end()
    if error is not None and not (getattr(error, "agreed", False) and not getattr(error, "partial", False)):
        if _core.mpi_started() and _core.mpi_info()["size"] > 1:
            _core.abandon_mpi()  # it is this rank's alone: the others must not be waited for, as they wait for it
        return
    # The others must not wait for this rank, whatever it ended with.
    for core in [context._core for context in list(open_contexts)] + [meeting.core] * (meeting.core is not None):
        core.end()
    if error is None:
        for context in list(open_contexts):
            context.close()


def _error_at_the_end():
    """The exception that the program ends with, which Python has shown; None where it ended well, or by sys.exit."""
    if hasattr(sys, "ps1"):
        return None  # of a session it may be any of those shown before
    return getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)


_made_by = os.getpid()
