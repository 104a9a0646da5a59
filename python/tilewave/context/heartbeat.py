"""The heartbeat of a run: signals and progress while the core computes or waits."""

import signal
import threading

from tilewave.context import interrupts
from tilewave.notices import Progress


class Heartbeat:
    """Called about every 50 ms during a run: signals, and progress on rank 0.

    `alone`: of a context of one rank that is no part of another, whose calls raise interrupts at their end.
    """

    def __init__(self, core, alone):
        self.progress = Progress(core.rank == 0)
        self.pending, self._alone = None, alone  # (thread, what interrupts its call)
        core.on_heartbeat(self._beat)

    def _beat(self, fraction):
        if fraction < 0:  # the end of a run: to be called has let pending signals be handled
            return self._pending() is not None or interrupts.pending()
        try:
            if threading.current_thread() is threading.main_thread():
                signal.getsignal(signal.SIGINT)  # any bytecode lets pending signals be handled
            if fraction > 1:  # other ranks rely on this wait: only what a handler raises at once ends it
                return False
            self.progress.at(fraction)
            return interrupts.pending()
        except BaseException as error:  # KeyboardInterrupt, or what a handler raises
            self.pending = threading.get_ident(), error
            return True

    def _pending(self):
        """Return what interrupts the call of this thread: threads may wait on one context at the same time."""
        return self.pending[1] if self.pending is not None and self.pending[0] == threading.get_ident() else None

    def done(self):
        """At the end of a call: end the progress line; raise what has interrupted it on this rank at once, or what a
        call of one rank has held back.
        """
        if self.progress.of:
            self.progress.end()
        if self.pending is not None and (error := self._pending()) is not None:
            self.pending = None
            raise error
        if self._alone and interrupts.pending():
            raise interrupts.take()
