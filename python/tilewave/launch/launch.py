"""Starting a script on ranks, and ending all of them whatever happens.

`launch` runs in the user's shell and starts mpiexec; what each rank then runs is `tilewave.cli.on_rank`. Standard
library only, so that tests can load this file alone."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import uuid

CODE_FILE = "TILEWAVE_LAUNCH_CODE"  # environment variable: where ranks write how they begin and end
TAG = "TILEWAVE_LAUNCH"  # environment variable with the ids of the launches a process belongs to
RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
JOB_VARIABLES = ("PMI_", "PMIX_RANK", "PMIX_NAMESPACE", "PMIX_SERVER_", "OMPI_COMM_WORLD_")  # beginnings of names
# How long a job may go on after a rank has failed, by how: it has said so and gone, it has gone without a
# word, or it waits in MPI_Finalize.
GRACE_S = {"gone": 2.0, "silent": 2.0, "exit": 10.0}
BEGINNING_S = 10.0  # so long it looks every 5 ms whether ranks have begun; those of other hosts never say so
PATIENCE_S = 5.0  # how long ranks may take to end themselves after Ctrl-C
MOST_RANKS = 1 << 20  # of a launch; mpiexec counts ranks in 32 bits, and keeps tables of them
RANK_BYTES = 32 << 20  # of memory: Python, NumPy and MPI alone take more
QUOTE = "="  # before each argument of the script, on its way through mpiexec
HOST = r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*(?::[1-9]\d{0,8})?"
SHM = "/dev/shm"
# MPICH makes the first, UCX, which it may use, the second.
SHARED_FILES = re.compile(r"(mpich_shm|ucx_shm)_\w+")
YOUNG_S = 1.0  # a shared file's age below which its makers may be at it where this process does not see them


class LaunchError(ValueError):
    """What was asked for cannot be started."""


class _Signalled(BaseException):
    def __init__(self, signum):
        self.signum = signum


def find_mpiexec():
    """Path of mpiexec: TILEWAVE_MPIEXEC (a site's MPI), or the wheel's in this environment."""
    given = os.environ.get("TILEWAVE_MPIEXEC")
    if given:
        if path := shutil.which(given):
            return path
        raise LaunchError(
            f"TILEWAVE_MPIEXEC is '{given}', which is not a program; allowed: the path or name of a "
            "program, without options"
        )
    folders = [os.path.dirname(sys.executable), sysconfig.get_path("scripts")]
    for folder in folders:
        if path := shutil.which(os.path.join(folder, "mpiexec")):
            return path
    raise LaunchError(
        f"no mpiexec in {' or '.join(dict.fromkeys(folders))}; install the Python "
        "package 'mpich' there, or set TILEWAVE_MPIEXEC to the site's"
    )


def is_open_mpi(mpiexec):
    """Whether `mpiexec` belongs to Open MPI, whose options differ from Hydra's."""
    try:
        done = subprocess.run(
            [mpiexec, "--version"],
            capture_output=True,
            text=True,
            timeout=30,
            stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
    except subprocess.TimeoutExpired:
        raise LaunchError(
            f"{mpiexec} does not answer --version within 30 s; set TILEWAVE_MPIEXEC to another mpiexec"
        ) from None
    return any(name in done.stdout + done.stderr for name in ("Open MPI", "OpenRTE", "PRRTE"))


def split_hosts(hosts):
    """The list of hosts in a list or in a string like "a,b" or "a:2,b:2"."""
    hosts = [h for h in (hosts.split(",") if isinstance(hosts, str) else hosts or []) if h]
    for host in hosts:
        if not re.fullmatch(HOST, host, re.ASCII):
            raise LaunchError(
                f"host '{host}'; allowed: NAME, NAME:RANKS or USER@NAME, of letters, digits and . - _, "
                "not beginning with . or -"
            )
    return hosts


def default_ranks(hosts=None):
    """Ranks if the user names no number: those of `hosts`, of the SLURM allocation, or 1."""
    if hosts := split_hosts(hosts):
        return sum(int(host.partition(":")[2] or 1) for host in hosts)
    tasks = os.environ.get("SLURM_NTASKS", "") if "SLURM_JOB_ID" in os.environ else ""
    return int(tasks) if tasks.isdigit() else 1


def _in_blocks(hosts, ranks):
    """Neighbouring ranks share a host, unless the user gave counts ("a:2,b:2")."""
    if any(":" in host for host in hosts):
        return ",".join(hosts)
    used = hosts[:ranks]
    cut = [h * ranks // len(used) for h in range(len(used) + 1)]
    return ",".join(f"{host}:{b - a}" for host, a, b in zip(used, cut, cut[1:]))


def mpiexec_command(ranks, program, hosts=(), env=os.environ):
    """The command that starts `program` (a list) on `ranks` ranks."""
    mpiexec = find_mpiexec()
    command = [mpiexec, "-n", str(ranks)]
    if is_open_mpi(mpiexec):
        passed = [word for name in sorted(env) if re.fullmatch(r"TILEWAVE_\w+", name) for word in ("-x", name)]
        where = ["--host", _in_blocks(hosts, ranks)] if hosts else []
        return [*command, *passed, *where, *program]
    if hosts:
        command += ["-hosts", _in_blocks(hosts, ranks)]
    elif "SLURM_JOB_ID" in os.environ:
        command += ["-bootstrap", "slurm"]  # Hydra takes the hosts from the allocation
    return [*command, *program]


def launch(script, args=(), ranks=1, threads=None, hosts=None):
    """Run a Python script on `ranks` ranks and return its exit code.

    Parameters
    ----------
    script : path of the script
    args : its arguments
    ranks : number of ranks; one rank without `hosts` runs without mpiexec
    threads : lanes of each rank (environment variable TILEWAVE_THREADS)
    hosts : list or comma-separated string of hosts, reached with ssh

    Returns
    -------
    int
        The script's exit code (mpiexec combines those of several ranks bit by bit), or
        128 + the signal's number if a signal ended it: 130 after Ctrl-C. Several ranks have succeeded
        only when the script of each has come to its end: one that leaves by os._exit fails the job.
    """
    hosts = split_hosts(hosts)
    for what, value in (("ranks", ranks), ("threads", threads)):
        if value is not None and value < 1:
            raise LaunchError(f"{value} {what}; allowed: 1 or more")
    most, why = most_ranks(hosts)
    if ranks > most:
        raise LaunchError(f"{ranks} ranks; allowed: 1 to {most}{why}")
    for name in SIZE_VARIABLES:
        if os.environ.get(name, "1") != "1":
            raise LaunchError(
                f"this is one of {os.environ[name]} processes that mpiexec started, and tilewave starts mpiexec "
                "itself: "
                "`tilewave COMMAND -n 4 ...` in place of `mpiexec -n 4 tilewave COMMAND ...`"
            )
    script = os.fspath(script)
    if not os.path.exists(script):
        raise LaunchError(f"no script '{script}' in {os.getcwd()}")
    # What connects this process with an mpiexec around it is closed in those that it starts.
    env = {name: value for name, value in os.environ.items() if not name.startswith(JOB_VARIABLES)}
    if threads is not None:
        env["TILEWAVE_THREADS"] = str(threads)
    env.setdefault("TILEWAVE_PROGRESS", "line" if sys.stderr.isatty() else "1")  # notices.py: rank 0 sees a pipe
    # A launcher has a syntax of its own, in which ":" begins another program: no argument may look like it.
    program = [sys.executable, "-m", "tilewave.cli.on_rank", *(QUOTE + word for word in (script, *args))]
    several = ranks > 1 or bool(hosts)
    if several:
        program = mpiexec_command(ranks, program, hosts, env)
        if sys.stdout.isatty():  # ranks write into a pipe; let Rich draw progress nevertheless
            env.setdefault("COLUMNS", str(shutil.get_terminal_size().columns))
            env.setdefault("TTY_COMPATIBLE", "1")
    with tempfile.NamedTemporaryFile("w+", prefix="tilewave-") as codes:
        codes.write(process_space() + "\n")
        codes.flush()
        env[CODE_FILE] = codes.name
        if not several:
            return supervise(program, env)
        endings = _Endings(codes.name, ranks)
        try:
            code = supervise(program, env, watch=endings.overdue, pause=endings.pause, patience_s=endings.patience_s)
            return endings.result(code)
        finally:
            endings.close()


def most_ranks(hosts=()):
    """The most ranks that a launch may have, and why, as the end of a sentence."""
    if hosts or "SLURM_JOB_ID" in os.environ:
        return MOST_RANKS, ""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        max(min(memory // RANK_BYTES, MOST_RANKS), 1),
        f" on this host, which has {memory / (1 << 30):.3g} GB of memory; a rank takes {RANK_BYTES >> 20} MB and more",
    )


class _Endings:
    """How the ranks end; says when the others, who may wait for one that has failed, are overdue.

    Hydra ends a job when a rank leaves without MPI_Finalize, in silence if its exit code is 0, but not
    one whose rank never called MPI_Init, nor one whose rank waits in MPI_Finalize while the others wait
    for it. Each rank of this host writes a line when it begins, with its process id, and one when its
    script is over, after what the script wants done at exit. Ranks of other hosts have no such file.
    """

    def __init__(self, path, ranks):
        self._path, self._ranks, self._since, self.late = path, ranks, {}, False
        self._soon = time.monotonic() + BEGINNING_S
        self._job, self._alive = None, {}  # descriptors of mpiexec and of ranks
        self._began, self._spoken = set(), set()  # ranks that have begun; that have said how they end
        self.left = None  # rank and exit code of the first that called os._exit
        self.failed, self.silent = (
            [],
            [],
        )  # notes of those that failed; ranks that ended without a word before any failed

    def close(self):
        """Give back what is open."""
        for handle in (*self._alive.values(), self._job):
            if handle is not None:
                os.close(handle)

    def pause(self, process):
        """Wait at most 50 ms for the end of mpiexec or of a rank of this host.

        Woken at once, it sees which rank ended first, before those that Hydra then kills.
        """
        if self._job is None:
            self._job = _handle(process.pid)
        if self._job is None:
            _pause(process)
            return
        waiting = select.poll()
        for handle in (self._job, *self._alive.values()):
            waiting.register(handle, select.POLLIN | select.POLLHUP)
        beginning = len(self._began) < self._ranks and time.monotonic() < self._soon
        waiting.poll(5 if beginning else 50)
        process.poll()

    def patience_s(self):
        """How long to wait after Ctrl-C: where no rank has begun, nobody has anything to put in order."""
        return PATIENCE_S if self._began else 0.5

    def overdue(self):
        """Look at what ranks have said, and who has ended; whether the job must not go on."""
        notes = self._read()
        self.failed = [note for note in notes if note[2] in ("gone", "exit")]
        self._spoken = {int(rank) for _, rank, how in notes if how not in ("start", "left")}
        self.left = self.left or next(((int(rank), int(code)) for code, rank, how in notes if how == "left"), None)
        for pid, rank, how in notes:
            if how == "start" and int(rank) not in self._began:
                self._began.add(int(rank))
                if (handle := _handle(int(pid))) is not None:
                    self._alive[int(rank)] = handle
        ended = [rank for rank, handle in self._alive.items() if _has_ended(handle)]
        for rank in ended:
            os.close(self._alive.pop(rank))
        # Who ends after a failure was ended because of it.
        if not self.failed and not self.silent:
            self.silent = [self.left[0]] if self.left else sorted(set(ended) - self._spoken)
        now = time.monotonic()
        reasons = [how for _, _, how in self.failed] + ["silent"] * bool(self.silent)
        self.late = any(now - self._since.setdefault(how, now) > GRACE_S[how] for how in reasons)
        return self.late

    def result(self, code):
        """The job's exit code, given that of mpiexec; says what mpiexec does not."""
        if code == 0:  # all have ended, though this process may not have seen it yet
            self.silent = self.silent or sorted(self._began - self._spoken)
        if self.left and not self.failed:
            rank, given = self.left
            print(
                f"tilewave: rank {rank} ended before the script was over, by os._exit({given}); the job was stopped",
                file=sys.stderr,
            )
            return given or 1
        if self.silent and not self.failed:
            code = 1 if self.late or not code else code
            meant = (
                f"; exit code {code} may stand for {signal.Signals(code).name}"
                if code in set(signal.Signals) and code > 1
                else ""
            )
            who = f"rank{'s' * (len(self.silent) > 1)} {' and '.join(map(str, self.silent))}"
            print(
                f"tilewave: {who} ended before the script was over, without an error (killed by a signal, as far as "
                "can be seen "
                f"first, or by MPI_Abort{meant}); the job was stopped",
                file=sys.stderr,
            )
            return code
        if self.late and self.failed[0][2] == "exit":
            print(
                f"tilewave: rank {self.failed[0][1]} ended with exit code {self.failed[0][0]}; the job did "
                f"not end within {GRACE_S['exit']:.0f} s and was stopped",
                file=sys.stderr,
            )
        # When a rank gives up Hydra kills the others, and may return their 9 instead of its 1.
        return int(self.failed[0][0]) if self.failed and (0 < code < 128 or self.late) else code

    def _read(self):
        with open(self._path) as file:
            lines = file.read().splitlines()[1:]
        return [line.split() for line in lines]


def _handle(pid):
    """A descriptor that has news (poll) when the process has ended; None where the system has no such thing."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:  # it has ended: so let this one be
        ended, other = os.pipe()
        os.close(other)
        return ended
    except (OSError, AttributeError):
        return None


def _has_ended(handle):
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


def supervise(command, env=None, watch=None, pause=None, patience_s=lambda: PATIENCE_S, **popen):
    """Run a command to its end; no process of it survives a failure, a signal or `watch`.

    `watch` is called about every 50 ms, and once after the end; when it returns true everything is
    killed and the result is 137. `pause` waits so long, given the process. `patience_s` says how
    long the command may take to end after Ctrl-C. Other keywords go to `subprocess.Popen`.
    """
    env = dict(os.environ if env is None else env)
    tag = uuid.uuid4().hex
    env[TAG] = "/".join(filter(None, [env.get(TAG), tag]))
    remove_left_over()
    shm_before = shared_files()
    process, ended_by = None, 0
    if "stdin" not in popen and _in_background():
        popen["stdin"] = subprocess.DEVNULL
    try:
        with _signals_raise():
            process = subprocess.Popen(command, env=env, start_new_session=True, preexec_fn=die_with_parent, **popen)
            while process.returncode is None:
                (pause or _pause)(process) if watch else process.wait()
                if watch and watch() and process.returncode is None:
                    ended_by = signal.SIGKILL
                    break
    except _Signalled as signalled:
        ended_by = signalled.signum
        if process is not None:
            _stop(process, ended_by, patience_s())
    finally:
        if process is None or ended_by or process.returncode != 0:
            kill(tag)
            if process is not None:
                process.wait()
        # Hydra returns 0, too, when it has killed a job, one of whose ranks has left by os._exit(0).
        _remove_shared_files(shm_before)
    if ended_by:
        return 128 + ended_by
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _pause(process):
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.05)


def _stop(process, signum, patience_s):
    """Ask, then insist; a second Ctrl-C skips the asking."""
    with contextlib.suppress(_Signalled), _signals_raise():
        for ask, seconds in ((signum, patience_s), (signal.SIGTERM, min(patience_s, 1.0))):
            process.send_signal(ask)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
                return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _signals_raise():
    """SIGINT, SIGTERM and SIGHUP raise `_Signalled` inside (in the main thread)."""

    def handler(signum, _frame):
        raise _Signalled(signum)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.signal(s, handler) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for signum, old in before.items():
            signal.signal(signum, old)


def die_with_parent():
    """Have the kernel kill this process when the process that started it ends (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _in_background():
    """A rank in a session of its own would steal the keys of a shell that runs us with '&'."""
    try:
        return os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp()
    except OSError:
        return False


def processes(tag):
    """Ids of the living processes whose environment carries `tag`, except this one.

    Ranks leave the process group and, when Hydra's proxy dies, the process tree; they keep the
    environment.
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


def kill(tag, seconds=5.0):
    """Kill the processes that carry `tag` and wait for their end; return those that stay."""
    end = time.monotonic() + seconds
    while (running := processes(tag)) and time.monotonic() < end:
        for pid in running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return running


def shared_files():
    """Names of this user's shared-memory files of MPICH; a job that is killed leaves them (2 MB and more each)."""
    found = set()
    with contextlib.suppress(OSError), os.scandir(SHM) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # gone meanwhile
                if (
                    SHARED_FILES.fullmatch(entry.name)
                    and entry.is_file(follow_symlinks=False)
                    and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
                ):
                    found.add(entry.name)
    return found


def orphaned_shared_files(before=()):
    """Paths of files that came since `before` and that no process uses: two looks, 0.2 s apart."""
    found = _unused(shared_files() - set(before))
    if found:
        time.sleep(0.2)  # makers whom this process does not see may be at it
        found = _unused(found & shared_files())
    return [os.path.join(SHM, name) for name in sorted(found)]


def _unused(names):
    """Those of these files that no living process has open or mapped."""
    # Who makes a file has it open from the beginning until it is mapped. So first what is open, then what is mapped.
    for pid in sorted(filter(str.isdigit, os.listdir("/proc")), key=int, reverse=True) if names else ():
        used = set()
        with contextlib.suppress(OSError):  # another user's process, or gone meanwhile
            for number in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    used.add(os.path.basename(os.readlink(f"/proc/{pid}/fd/{number}")))
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", errors="replace") as file:
            used.update(re.findall(rf"{SHM}/(\S+)", file.read()))
        names = names - used
        if not names:
            break
    return names


def remove_left_over():
    """Remove this user's shared-memory files that killed jobs have left: those that no process uses.

    Notes
    -----
    Not collective. Without such files it costs the reading of one folder, else about 0.1 ms a process of this system.
    """
    old = set()
    for name in shared_files():
        with contextlib.suppress(OSError):
            if time.time() - os.stat(os.path.join(SHM, name)).st_mtime > YOUNG_S:
                old.add(name)
    _remove(os.path.join(SHM, name) for name in _unused(old))


def _remove_shared_files(before):
    _remove(orphaned_shared_files(before))


def _remove(paths):
    for path in paths:
        with contextlib.suppress(OSError):
            os.remove(path)


def rank():
    """This process's rank as the launcher tells it, or None outside mpiexec."""
    for name in RANK_VARIABLES:
        if (value := os.environ.get(name, "")).isdigit():
            return int(value)
    return None
