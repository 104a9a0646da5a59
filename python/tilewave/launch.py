"""Starting a script on ranks, and ending all of them whatever happens.

Two sides: `launch` runs in the user's shell and starts mpiexec; `main`, that is ``python -m
tilewave.launch SCRIPT``, runs on every rank. Standard library only, so it starts fast and tests
can load it alone; `tilewave/__init__.py` must not import it (``python -m`` would warn).
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
import uuid

CODE_FILE = "TILEWAVE_LAUNCH_CODE"  # environment variable: where a rank that gives up writes why
TAG = "TILEWAVE_LAUNCH"  # environment variable with the ids of the launches a process belongs to
RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
GRACE_S = {"gone": 2.0, "exit": 10.0}  # how long a job may go on after a rank has failed
PATIENCE_S = 5.0  # how long ranks may take to end themselves after Ctrl-C
SHM = "/dev/shm"


class LaunchError(ValueError):
    """What was asked for cannot be started."""


class _Signalled(BaseException):
    def __init__(self, signum):
        self.signum = signum


# --- the launching side -------------------------------------------------------------------------

def find_mpiexec():
    """Path of mpiexec: TILEWAVE_MPIEXEC (a site's MPI), or the wheel's in this environment."""
    given = os.environ.get("TILEWAVE_MPIEXEC")
    if given:
        if path := shutil.which(given):
            return path
        raise LaunchError(f"TILEWAVE_MPIEXEC is '{given}', which is not a program")
    folders = [os.path.dirname(sys.executable), sysconfig.get_path("scripts")]
    for folder in folders:
        if path := shutil.which(os.path.join(folder, "mpiexec")):
            return path
    raise LaunchError(f"no mpiexec in {' or '.join(dict.fromkeys(folders))}; install the Python "
                      "package 'mpich' there, or set TILEWAVE_MPIEXEC to the site's")


def is_open_mpi(mpiexec):
    """Whether `mpiexec` belongs to Open MPI, whose options differ from Hydra's."""
    done = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=30,
                          stdin=subprocess.DEVNULL)
    return any(name in done.stdout + done.stderr for name in ("Open MPI", "OpenRTE", "PRRTE"))


def split_hosts(hosts):
    """The list of hosts in a list or in a string like "a,b" or "a:2,b:2"."""
    hosts = [h for h in (hosts.split(",") if isinstance(hosts, str) else hosts or []) if h]
    for host in hosts:
        if not re.fullmatch(r"[^:\s]+(:[1-9]\d*)?", host):
            raise LaunchError(f"host '{host}'; allowed: NAME or NAME:RANKS")
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
        passed = ["-x", "TILEWAVE_THREADS"] if "TILEWAVE_THREADS" in env else []
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
        128 + the signal's number if a signal ended it: 130 after Ctrl-C.
    """
    hosts = split_hosts(hosts)
    for what, value in (("ranks", ranks), ("threads", threads)):
        if value is not None and value < 1:
            raise LaunchError(f"{value} {what}; allowed: 1 or more")
    for name in SIZE_VARIABLES:
        if os.environ.get(name, "1") != "1":
            raise LaunchError(f"this is one of {os.environ[name]} processes that mpiexec started, and tilewave starts mpiexec itself: "
                              "`tilewave COMMAND -n 4 ...` in place of `mpiexec -n 4 tilewave COMMAND ...`")
    script = os.fspath(script)
    if not os.path.exists(script):
        raise LaunchError(f"no script '{script}' in {os.getcwd()}")
    # What connects this process with an mpiexec around it is closed in those that it starts.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PMI_")}
    if threads is not None:
        env["TILEWAVE_THREADS"] = str(threads)
    env.setdefault("TILEWAVE_PROGRESS", "1")  # rank 0 says how far a run is; 0: silent
    program = [sys.executable, "-m", "tilewave.launch", script, *args]
    if ranks > 1 or hosts:
        program = mpiexec_command(ranks, program, hosts, env)
        if sys.stdout.isatty():  # ranks write into a pipe; let Rich draw progress nevertheless
            env.setdefault("COLUMNS", str(shutil.get_terminal_size().columns))
            env.setdefault("TTY_COMPATIBLE", "1")
    with tempfile.NamedTemporaryFile("r", prefix="tilewave-") as codes:
        env[CODE_FILE] = codes.name
        endings = _Endings(codes.name)
        code = supervise(program, env, watch=endings.overdue)
        # When a rank gives up Hydra kills the others, and may return their 9 instead of its 1.
        given_up = endings.read()
        if endings.late and given_up[0][2] == "exit":
            print(f"tilewave: rank {given_up[0][1]} ended with exit code {given_up[0][0]}; the job did "
                  f"not end within {GRACE_S['exit']:.0f} s and was stopped", file=sys.stderr)
    return int(given_up[0][0]) if given_up and (0 < code < 128 or endings.late) else code


class _Endings:
    """Ranks that have failed, in order; says when the others, who may wait for them, are overdue.

    Hydra ends a job when a rank leaves without MPI_Finalize, but not one whose rank never called
    MPI_Init, nor one whose rank waits in MPI_Finalize while the others wait for it.
    """

    def __init__(self, path):
        self._path, self._since, self.late = path, {}, False

    def read(self):
        with open(self._path) as file:
            return [line.split() for line in file.read().splitlines()]

    def overdue(self):
        now = time.monotonic()
        self.late = any(now - self._since.setdefault(how, now) > GRACE_S[how]
                        for _, _, how in self.read())
        return self.late


def supervise(command, env=None, watch=None, **popen):
    """Run a command to its end; no process of it survives a failure, a signal or `watch`.

    `watch` is called about every 50 ms; when it returns true everything is killed and the
    result is 137. Other keywords go to `subprocess.Popen`.
    """
    env = dict(os.environ if env is None else env)
    tag = uuid.uuid4().hex
    env[TAG] = "/".join(filter(None, [env.get(TAG), tag]))
    shm_before = shared_files()
    process, ended_by = None, 0
    if "stdin" not in popen and _in_background():
        popen["stdin"] = subprocess.DEVNULL
    try:
        with _signals_raise():
            process = subprocess.Popen(command, env=env, start_new_session=True,
                                       preexec_fn=die_with_parent, **popen)
            while process.returncode is None:
                try:
                    process.wait(0.05 if watch else None)
                except subprocess.TimeoutExpired:
                    if watch():
                        ended_by = signal.SIGKILL
                        break
    except _Signalled as signalled:
        ended_by = signalled.signum
        if process is not None:
            _stop(process, ended_by)
    finally:
        if process is None or ended_by or process.returncode != 0:
            kill(tag)
            if process is not None:
                process.wait()
            _remove_shared_files(shm_before)
    if ended_by:
        return 128 + ended_by
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _stop(process, signum):
    """Ask, then insist; a second Ctrl-C skips the asking."""
    with contextlib.suppress(_Signalled), _signals_raise():
        for ask, patience_s in ((signum, PATIENCE_S), (signal.SIGTERM, 1.0)):
            process.send_signal(ask)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience_s)
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
    before = {s: signal.signal(s, handler)
              for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
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
    """MPICH's shared-memory files; a job that is killed leaves them (2 MB and more each)."""
    try:
        return {f for f in os.listdir(SHM) if f.startswith(("mpich_shm", "ucx_shm"))}
    except OSError:
        return set()


def orphaned_shared_files(before):
    """Files that came since `before` and that no process uses: two looks, 0.2 s apart."""
    new = shared_files() - before
    for pause_s in (0.2, 0.0):  # a file just made may not be mapped yet
        if not new:
            return []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as file:
                maps = file.read()
                new = {f for f in new if f not in maps}
        time.sleep(pause_s)
    paths = [os.path.join(SHM, f) for f in sorted(new & shared_files())]
    return [p for p in paths if os.access(p, os.W_OK)]


def _remove_shared_files(before):
    for path in orphaned_shared_files(before):
        with contextlib.suppress(OSError):
            os.remove(path)


# --- the rank's side ----------------------------------------------------------------------------

def rank():
    """This process's rank as the launcher tells it, or None outside mpiexec."""
    for name in RANK_VARIABLES:
        if (value := os.environ.get(name, "")).isdigit():
            return int(value)
    return None


def main():
    """Run ``sys.argv[1]`` as the main script of this rank."""
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m tilewave.launch SCRIPT [ARGS]")
    sys.argv = sys.argv[1:]
    script = os.path.abspath(sys.argv[0])  # __file__ is absolute, as after ``python SCRIPT``
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(script)
    my_rank = rank()
    if my_rank is not None:
        die_with_parent()
        # A pipe to mpiexec: show lines as they come, and whole ones (with PYTHONUNBUFFERED print
        # would write each of its arguments alone, between those of other ranks).
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True, write_through=False)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        if code := error.code if isinstance(error.code, int) else int(error.code is not None):
            _note(code, "exit")
        raise
    except KeyboardInterrupt:
        _leave(130)
    except BaseException as error:
        text = _traceback(error, script)
        if getattr(error, "agreed", False):  # every rank raises it: one voice, an orderly end
            quiet = getattr(error, "quiet", bool(my_rank))
            if not quiet:
                _say(text)
            if not getattr(error, "partial", False):
                raise SystemExit(1) from None
            if quiet:  # leaving ends the job: let the one who speaks go first
                time.sleep(1)
            _leave(1)
        if my_rank is None:
            _say(text)
            raise SystemExit(1) from None
        # The other ranks may wait for this one; MPI_Finalize would wait for them.
        _say(f"rank {my_rank}:\n{text}")
        _leave(1)


def _traceback(error, script):
    """The traceback as ``python SCRIPT`` would print it."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename != script:
        step = step.tb_next
    if not hasattr(error, "agreed") or error.__cause__ is not None:
        return "".join(traceback.format_exception(type(error), error, step))
    # Tilewave's own errors say it all: show where the script called, not what we called inside.
    inside = os.path.dirname(os.path.abspath(__file__))
    frames = [f for f in traceback.extract_tb(step) if not f.filename.startswith(inside)]
    return "".join(["Traceback (most recent call last):\n", *traceback.format_list(frames),
                    *traceback.format_exception_only(type(error), error)])


def _say(text):
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    sys.stderr.write(text)
    sys.stderr.flush()


def _leave(code):
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _note(code, "gone")
    os._exit(code)


def _note(code, how):
    """Tell the launching side that this rank has failed."""
    with contextlib.suppress(OSError):  # on another host there is no such file
        file = os.open(os.environ.get(CODE_FILE, ""), os.O_WRONLY | os.O_APPEND)
        os.write(file, f"{code & 255} {rank() or 0} {how}\n".encode())
        os.close(file)


if __name__ == "__main__":
    main()
