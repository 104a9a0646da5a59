"""Processes: running a command to its end, and finding and killing all that it started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import signal
import subprocess
import threading
import time
import uuid

TAG = "TILEWAVE_LAUNCH"  # environment variable with the ids of the launches a process belongs to
# MPICH's, Open MPI's (4 and 5).
_MPI_FILE = re.compile(
    r"(/dev/shm/(?:mpich_(?:shm|vci)_\w+|(?:vader|sm)_segment\.[\w.-]+))( \(deleted\))?$", re.MULTILINE
)
PATIENCE_S = 5.0  # how long ranks may take to end themselves after Ctrl-C
_C_LIBRARY = ctypes.CDLL(None)  # loaded here: a child that a process of many threads has forked must take no lock


def supervise(command, env=None, watch=None, pause=None, patience_s=lambda: PATIENCE_S, **popen):
    """Run a command to its end; no process of it survives a failure, a signal or `watch`.

    `watch` is called about every 50 ms, and once after the end; when it returns true everything is
    killed and the result is 137. `pause` waits so long, given the process. `patience_s` says how
    long the command may take to end after Ctrl-C. Other keywords go to `subprocess.Popen`.
    """
    env = dict(os.environ if env is None else env)
    tag = uuid.uuid4().hex
    env[TAG] = "/".join(filter(None, [env.get(TAG), tag]))
    process, ended_by = None, 0
    if "stdin" not in popen and _in_background():
        popen["stdin"] = subprocess.DEVNULL
    try:
        with _signals() as given:
            process = subprocess.Popen(
                command,
                env=env,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - a system call, which takes no lock
                **popen,
            )
            while process.returncode is None and not given:
                (pause or wait_a_little)(process)
                if watch and watch() and process.returncode is None:
                    ended_by = signal.SIGKILL
                    break
            if given and process.returncode is None:
                ended_by = given[0]
                _stop(process, given, patience_s())
    finally:
        if process is None or ended_by or process.returncode != 0:
            kill(tag)
            if process is not None:
                process.wait()
    if ended_by:
        return 128 + ended_by
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def answer(command, timeout_s, env=None):
    """A command that has ended, with what it has written.

    Raises
    ------
    subprocess.TimeoutExpired
    """
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env=env,
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_parent,
    )


def wait_a_little(process):
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.05)


def _stop(process, given, patience_s):
    """Ask, then insist; a second Ctrl-C skips the asking."""
    asked = len(given)
    for ask, seconds in ((given[0], patience_s), (signal.SIGTERM, min(patience_s, 1.0))):
        process.send_signal(ask)
        end = time.monotonic() + seconds
        while len(given) == asked and time.monotonic() < end:
            wait_a_little(process)
            if process.returncode is not None:
                return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _signals():
    """A list of the SIGINT, SIGTERM and SIGHUP that come inside (in the main thread), to be looked at.

    None raises: in the midst of waiting for a process, that would leave a lock of `subprocess` taken for ever.
    """
    given = []
    if threading.current_thread() is not threading.main_thread():
        yield given
        return
    handled = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    before = {s: signal.signal(s, lambda signum, _frame: given.append(signum)) for s in handled}
    try:
        yield given
    finally:
        for signum, old in before.items():
            signal.signal(signum, old)


def die_with_parent():
    """Have the kernel kill this process when the process that started it ends (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        _C_LIBRARY.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _in_background():
    """A rank in a new session would steal the keys of a shell that runs us with '&'."""
    try:
        return os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp()
    except OSError:
        return False


def tagged(tag):
    """Ids of the living processes whose environment carries `tag`, except this one.

    Ranks leave the process group and, when Hydra's proxy dies, the process tree; they keep the environment.
    """
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                ours = tag.encode() in file.read()  # empty for zombies
        except OSError:
            continue
        if ours and int(pid) != os.getpid():
            found.append(int(pid))
    return found


def mpi_files(pid):
    """Paths of MPI's files in /dev/shm that a process has mapped: those that have names, those that have lost them."""
    named, nameless = set(), set()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", errors="replace") as maps:
        for path, deleted in _MPI_FILE.findall(maps.read()):
            (nameless if deleted else named).add(path)
    return named, nameless


def remove(files):
    """Remove files, of which some may be gone."""
    for path in files:
        with contextlib.suppress(OSError):
            os.remove(path)


def kill(tag, seconds=5.0):
    """Kill the processes that carry `tag` and wait for their end; return those that stay.

    MPI's file in /dev/shm goes with ranks that are killed while they start MPI; later it has no name any more.
    """
    end, files = time.monotonic() + seconds, set()
    while (running := tagged(tag)) and time.monotonic() < end:
        for pid in running:
            files |= mpi_files(pid)[0]
        for pid in running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    remove(files)
    return running


def handle_of(pid):
    """A descriptor that has news (poll) when the process has ended; None where the system has no such thing."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:  # it has ended: so let this one be
        ended, other = os.pipe()
        os.close(other)
        return ended
    except (OSError, AttributeError):
        return None


def has_ended(handle):
    waiting = select.poll()
    waiting.register(handle, select.POLLIN | select.POLLHUP)
    return bool(waiting.poll(0))


def process_space():
    """Names the system and the numbering of processes: equal where process ids mean the same."""
    boot = ""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    with contextlib.suppress(OSError):
        boot += f" {os.stat('/proc/self/ns/pid').st_ino}"
    return boot or "unknown"
