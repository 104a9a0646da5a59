"""The heartbeat of a run: signals and progress while the core computes or waits."""

import signal
import threading

from tilewave.notices import Progress
from tilewave.runtime import interrupts


class Heartbeat:
    """Called about every 50 ms during a run: signals, and progress on rank 0."""

    def __init__(self, core):
        self.progress = Progress(core.rank == 0)
        self.pending = None
        core.on_heartbeat(self._beat)

    def _beat(self, fraction):
        if fraction < 0:  # the end of a run: to be called has let pending signals be handled
            return self.pending is not None or interrupts.pending() is not None
        try:
            if threading.current_thread() is threading.main_thread():
                signal.getsignal(signal.SIGINT)  # any bytecode lets pending signals be handled
            if fraction > 1:  # other ranks rely on this wait: only what a handler raises at once ends it
                return False
            self.progress.at(fraction)
            return interrupts.pending() is not None
        except BaseException as error:  # KeyboardInterrupt, or what a handler raises
            self.pending = error
            return True

    def done(self):
        """End the progress line; raise what interrupted the run on this rank."""
        if self.progress.of:
            self.progress.end()
        if self.pending is not None:
            pending, self.pending = self.pending, None
            raise pending
