"""Starting a script on ranks, and ending all of them whatever happens.

`launch` runs in the user's shell and starts mpiexec; what each rank then runs is `tilewave.cli.on_rank`. The files of
this folder that it takes need the standard library only: a launch works, and is tested, without the compiled core.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig

from tilewave import units
from tilewave.launch import processes
from tilewave.launch.endings import Endings
from tilewave.launch.variables import JOB_VARIABLES as JOB_VARIABLES
from tilewave.launch.variables import RANK_VARIABLES as RANK_VARIABLES
from tilewave.launch.variables import SIZE_VARIABLES as SIZE_VARIABLES

NOTES = "TILEWAVE_LAUNCH_NOTES"  # environment variable: where ranks write how they begin and end
MOST_RANKS = 1 << 20  # of a launch; mpiexec counts ranks in 32 bits, and keeps tables of them
RANK_BYTES = 32 << 20  # of memory: Python, NumPy and MPI alone take more
QUOTE = "="  # before each argument of the script as it passes through mpiexec
HOST = r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*(?::[1-9]\d{0,8})?"


class LaunchError(ValueError):
    """What was asked for cannot be started."""


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
            check=False,
            stdin=subprocess.DEVNULL,
            preexec_fn=processes.die_with_parent,
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
    return [*command, *_means_of_slurm(hosts), *program]


def _means_of_slurm(hosts):
    """Options of Hydra by which it reaches the hosts of an allocation, which it takes from the environment."""
    if "SLURM_JOB_ID" not in os.environ:
        return []
    if shutil.which("srun"):
        return [] if hosts else ["-bootstrap", "slurm"]
    if hosts:
        return ["-bootstrap", "ssh"]
    nodes = os.environ.get("SLURM_NNODES") or os.environ.get("SLURM_JOB_NUM_NODES") or "1"
    if nodes != "1":
        raise LaunchError(
            f"this SLURM allocation has {nodes} nodes, and there is no srun in PATH to start ranks on them; run "
            "`tilewave run` where srun is, or name the hosts with --hosts, which are reached with ssh"
        )
    return ["-bootstrap", "fork"]  # a container or a notebook on the one node


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
                "itself: `tilewave COMMAND -n 4 ...` in place of `mpiexec -n 4 tilewave COMMAND ...`"
            )
    script = os.fspath(script)
    if not os.path.exists(script):
        raise LaunchError(f"no script '{script}' in {os.getcwd()}")
    # What connects this process with an mpiexec around it is closed in those that it starts.
    env = {name: value for name, value in os.environ.items() if not name.startswith(JOB_VARIABLES)}
    if threads is not None:
        env["TILEWAVE_THREADS"] = str(threads)
    env.setdefault("TILEWAVE_PROGRESS", "line" if sys.stderr.isatty() else "1")  # notices.py: rank 0 sees a pipe
    # A launcher has a syntax in which ":" begins another program: no argument may look like it.
    program = [sys.executable, "-m", "tilewave.cli.on_rank", *(QUOTE + word for word in (script, *args))]
    several = ranks > 1 or bool(hosts)
    if several:
        program = mpiexec_command(ranks, program, hosts, env)
        if sys.stdout.isatty():  # ranks write into a pipe; let Rich draw progress nevertheless
            env.setdefault("COLUMNS", str(shutil.get_terminal_size().columns))
            env.setdefault("TTY_COMPATIBLE", "1")
    if not several:
        return processes.supervise(program, env)
    # Memory without a name: nothing stays, however this process ends.
    with open(os.memfd_create("tilewave-notes"), "w+b", buffering=0) as notes:
        env[NOTES] = f"/proc/{os.getpid()}/fd/{notes.fileno()} {processes.process_space()}"
        endings = Endings(notes, ranks)
        try:
            code = processes.supervise(
                program, env, watch=endings.overdue, pause=endings.pause, patience_s=endings.patience_s
            )
            return endings.result(code)
        finally:
            endings.close()


def notes_here():
    """Path of the notes of the launch that this process belongs to; None on another host, or without a launch."""
    path, _, space = os.environ.get(NOTES, "").partition(" ")
    return path if path and space == processes.process_space() else None


def most_ranks(hosts=()):
    """The most ranks that a launch may have, and why, as the end of a sentence."""
    if hosts or "SLURM_JOB_ID" in os.environ:
        return MOST_RANKS, ""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        max(min(memory // RANK_BYTES, MOST_RANKS), 1),
        f" on this host, which has {units.size(memory)} of memory; a rank takes {units.size(RANK_BYTES)} and more",
    )


def rank():
    """This process's rank as the launcher tells it, or None outside mpiexec."""
    for name in RANK_VARIABLES:
        if (value := os.environ.get(name, "")).isdigit():
            return int(value)
    return None
