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
    lock = threading.RLock()  # held by the thread whose call on that context is under way

    def move_to(self, context):
        if self.core is not None and context.size == self.core.size:
            self.core, self.lock = context._core, context._lock


meeting = Meeting()


@atexit.register
def _close_all():
    if os.getpid() != _made_by:
        return  # a forked child is no rank
    own = bool(_own_error) and _own_error[0]
    cores = [context._core for context in list(open_contexts)] + [core for core in [meeting.core] if core is not None]
    if not own:  # the others must not wait for this rank, whatever it ended with
        for core in cores:
            core.end()
    if not _own_error:
        for context in list(open_contexts):
            context.close()


def _leave_without_waiting(kind, value, trace):
    """A rank that ends by an error of its own must not wait for the others at exit; an error of
    all is said once."""
    agreed = getattr(value, "agreed", False)
    own = not agreed or getattr(value, "partial", False)
    _own_error.append(own)
    if own and _core.mpi_started() and _core.mpi_info()["size"] > 1:
        _core.abandon_mpi()
    if not (agreed and getattr(value, "quiet", False)):
        _next_hook(kind, value, trace)


_own_error = []  # whether the error that ended the program is this rank's only; empty: it ended well
_made_by = os.getpid()
_next_hook, sys.excepthook = sys.excepthook, _leave_without_waiting
