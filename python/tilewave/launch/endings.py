"""How the ranks of a launch end, and when those that are left must not go on."""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from tilewave.launch import processes

# How long a job may go on after a rank has failed, by how: it has noted it and gone, it has gone without a
# word, has come to its end without MPI, for which others wait, or it waits in MPI_Finalize.
GRACE_S = {"gone": 2.0, "silent": 2.0, "vain": 2.0, "exit": 10.0}
BEGINNING_S = 10.0  # so long it looks every 5 ms whether ranks have begun; those of other hosts never say so


class Endings:
    """How the ranks end; says when the others, who may wait for one that has failed, are overdue.

    Hydra ends a job when a rank leaves without MPI_Finalize, in silence if its exit code is 0, but not one whose rank
    never called MPI_Init, nor one whose rank waits in MPI_Finalize while the others wait for it. Each rank of this host
    writes a line when it begins, with its process id, before it starts MPI, and when its script is over, after what the
    script wants done at exit. Ranks of other hosts cannot.
    """

    def __init__(self, notes, ranks):
        self._notes, self._ranks, self._since, self.late = notes, ranks, {}, False
        self._soon = time.monotonic() + BEGINNING_S
        self._job, self._alive = None, {}  # descriptors of mpiexec and of ranks
        self._starting, self._looked, self._files = {}, 0.0, set()  # process ids; MPI's files that ranks have had
        self._began, self._noted = set(), set()  # ranks that have begun; that have noted how they end
        self.failed, self.silent = [], []  # notes of those that failed; ranks that ended silently before any failed
        self.vain = []  # ranks that came to their ends without MPI, while others wait in MPI_Init for them

    def close(self):
        """Give back what is open, and remove what ranks that are gone have left in /dev/shm."""
        processes.remove(self._files)
        for handle in (*self._alive.values(), self._job):
            if handle is not None:
                os.close(handle)

    def pause(self, process):
        """Wait at most 50 ms for the end of mpiexec or of a rank of this host.

        Woken at once, it sees which rank ended first, before those that Hydra then kills.
        """
        if self._job is None:
            self._job = processes.handle_of(process.pid)
        if self._job is None:
            processes.wait_a_little(process)
            return
        waiting = select.poll()
        for handle in (self._job, *self._alive.values()):
            waiting.register(handle, select.POLLIN | select.POLLHUP)
        beginning = len(self._began) < self._ranks and time.monotonic() < self._soon
        waiting.poll(5 if beginning else 50)
        process.poll()

    def patience_s(self):
        """How long to wait after Ctrl-C: where no rank has begun, nobody has anything to put in order."""
        return processes.PATIENCE_S if self._began else 0.5

    def overdue(self):
        """Look at the notes of ranks, and who has ended; whether the job must not go on."""
        notes = self._read()
        self.failed = [note for note in notes if note[2] in ("gone", "exit")]
        self._noted = {int(rank) for _, rank, how in notes if how not in ("start", "mpi")}
        if any(how == "mpi" for _, _, how in notes):
            self.vain = sorted(int(rank) for started, rank, how in notes if how == "over" and started == "0")
        for pid, rank, how in notes:
            if how == "start" and int(rank) not in self._began:
                self._began.add(int(rank))
                self._starting[int(rank)] = int(pid)
                if (handle := processes.handle_of(int(pid))) is not None:
                    self._alive[int(rank)] = handle
        ended = [rank for rank, handle in self._alive.items() if processes.has_ended(handle)]
        for rank in ended:
            os.close(self._alive.pop(rank))
        self._look_for_files()
        # Who ends after a failure was ended because of it.
        if not self.failed and not self.silent:
            self.silent = sorted(set(ended) - self._noted)
        now = time.monotonic()
        reasons = [how for _, _, how in self.failed] + ["silent"] * bool(self.silent) + ["vain"] * bool(self.vain)
        self.late = any(now - self._since.setdefault(how, now) > GRACE_S[how] for how in reasons)
        return self.late

    def _look_for_files(self):
        """MPI's file has a name until the ranks make a context, or end as they should; who is killed leaves it."""
        now = time.monotonic()
        if now < self._looked + (0.02 if now < self._soon else 1):
            return
        self._looked = now
        for rank, pid in list(self._starting.items()):
            named, nameless = processes.mpi_files(pid)
            self._files |= named
            if nameless or rank in self._noted:
                del self._starting[rank]

    def result(self, code):
        """The job's exit code, given that of mpiexec; says what mpiexec does not."""
        if code == 0:  # all have ended, though this process may not have seen it yet
            self.silent = self.silent or sorted(self._began - self._noted)
        if self.silent and not self.failed:
            code = 1 if self.late or not code else code
            meant = (
                f"; exit code {code} may stand for {signal.Signals(code).name}"
                if code in set(signal.Signals) and code > 1
                else ""
            )
            print(
                f"tilewave: {_named(self.silent)} ended before the script was over, without an error (killed by a "
                f"signal, as far as can be seen first, or by os._exit or MPI_Abort{meant}); the job was stopped",
                file=sys.stderr,
            )
            return code
        if self.vain and not self.failed:
            print(
                f"tilewave: {_named(self.vain)} came to the end of the script without calling Tilewave, where the "
                "others wait for all ranks; the job was stopped",
                file=sys.stderr,
            )
            return 1
        if self.late and self.failed[0][2] == "exit":
            print(
                f"tilewave: rank {self.failed[0][1]} ended with exit code {self.failed[0][0]}; the job did "
                f"not end within {GRACE_S['exit']:.0f} s and was stopped",
                file=sys.stderr,
            )
        # When a rank gives up Hydra kills the others, and may return their 9 instead of its 1.
        return int(self.failed[0][0]) if self.failed and (0 < code < 128 or self.late) else code

    def _read(self):
        text = os.pread(self._notes.fileno(), os.fstat(self._notes.fileno()).st_size, 0).decode()
        return [line.split() for line in text.splitlines()]


def _named(ranks):
    return f"rank{'s' * (len(ranks) > 1)} {' and '.join(map(str, ranks))}"
