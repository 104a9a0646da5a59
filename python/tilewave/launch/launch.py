"""Starting a script on ranks, and ending all of them whatever happens.

`launch` runs in the user's shell and starts mpiexec; what each rank then runs is `tilewave.cli.on_rank`. The files of
this folder that it takes need the standard library only: a launch works, and is tested, without the compiled core.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time

from tilewave import units
from tilewave.errors import ConfigError
from tilewave.launch import allocations, processes, which_mpi
from tilewave.launch.endings import Endings
from tilewave.launch.hosts import in_blocks, ranks_of, split_hosts
from tilewave.launch.variables import JOB_VARIABLES, RANK_VARIABLES, SIZE_VARIABLES, LaunchError, number

NOTES = "TILEWAVE_LAUNCH_NOTES"  # environment variable: where ranks write how they begin and end
MOST_RANKS = 1 << 20  # of a launch; mpiexec counts ranks in 32 bits, and keeps tables of them
RANK_BYTES = 32 << 20  # of memory: Python, NumPy and MPI alone take more
QUOTE = "="  # before each argument of the script as it passes through mpiexec


def find_mpiexec():
    """Path of mpiexec: TILEWAVE_MPIEXEC, that of the MPI that is asked for (TILEWAVE_LIBMPI) or that mpi4py was built
    with, or the one of the MPICH in this environment.
    """
    given = os.environ.get("TILEWAVE_MPIEXEC")
    if given:
        if path := shutil.which(given):
            return path
        raise LaunchError(
            f"TILEWAVE_MPIEXEC is '{given}', which is not a program; allowed: the path or name of a "
            "program, without options"
        )
    try:
        library = which_mpi.given() or which_mpi.of_mpi4py()
    except ConfigError as error:
        raise LaunchError(str(error)) from None
    if library:
        if path := which_mpi.mpiexec_of(library, is_open_mpi):
            return path
        raise LaunchError(f"no mpiexec that belongs to {library} beside it or in PATH; set TILEWAVE_MPIEXEC to one")
    folders = [os.path.dirname(sys.executable), sysconfig.get_path("scripts")]
    for name in ("mpiexec.hydra", "mpiexec"):  # another MPI's wheel may have replaced the second
        for folder in folders:
            if path := shutil.which(os.path.join(folder, name)):
                return path
    raise LaunchError(
        f"no mpiexec in {' or '.join(dict.fromkeys(folders))}; install the Python package 'mpich' there, or set "
        f"TILEWAVE_MPIEXEC or {which_mpi.SETTING} to the site's"
    )


def is_open_mpi(mpiexec):
    """Return whether `mpiexec` belongs to Open MPI, whose options differ from Hydra's."""
    try:
        done = processes.answer([mpiexec, "--version"], 30)
    except subprocess.TimeoutExpired:
        raise LaunchError(
            f"{mpiexec} does not answer --version within 30 s; set TILEWAVE_MPIEXEC to another mpiexec"
        ) from None
    return any(name in done.stdout + done.stderr for name in ("Open MPI", "OpenRTE", "PRRTE"))


def program_of(module, *words):
    """The command, a list, that runs ``main()`` of a module of this package."""
    return [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "start.py"), module, *words]


def default_ranks(hosts=None):
    """Ranks if the user names no number: those of `hosts`, of the allocation that this process is in, or 1."""
    if hosts := split_hosts(hosts):
        return ranks_of(hosts)
    given = allocations.allocation()
    return 1 if given is None else given.ranks


def mpiexec_command(ranks, program, hosts=(), env=os.environ, here=False):
    """The command that starts `program` (a list) on `ranks` ranks: on `hosts`, else on those of the allocation that
    this process is in, else on this host; `here`: on this host, also within an allocation.
    """
    given = None if hosts else allocations.allocation()
    if given is not None and given.system == "Flux" and not here:
        return allocations.flux_command(ranks, program, given)
    mpiexec = find_mpiexec()
    command = [mpiexec, "-n", str(ranks)]
    if is_open_mpi(mpiexec):
        if given is not None:
            hosts = [f"{host}:{count}" for host, count in allocations.placed_on(given, ranks, here)]
        return [*command, *_options_of_open_mpi(mpiexec, ranks, hosts, env), *program]
    if hosts:
        return [*command, "-hosts", in_blocks(hosts, ranks), *_means_to_hosts(), *program]
    return [*command, *(allocations.hydra_options(given, ranks, here) if given is not None else ()), *program]


def _options_of_open_mpi(mpiexec, ranks, hosts, env):
    """Options by which Open MPI does what Hydra does: it pins nothing, as Tilewave pins lanes itself; takes more ranks
    than cores where nobody has said how many a host takes; starts for root, as in a container.
    """
    options = [word for name in sorted(env) if re.fullmatch(r"TILEWAVE_\w+", name) for word in ("-x", name)]
    options += ["--bind-to", "none"]
    if os.path.basename(mpiexec) == "prterun":
        options = ["--personality", "ompi", *options]
    if hosts:
        options += ["--host", in_blocks(hosts, ranks)]
    elif not any(name in os.environ for name in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")):
        options += ["--map-by", ":OVERSUBSCRIBE"]
    return [*options, *["--allow-run-as-root"] * (os.geteuid() == 0)]


def _means_to_hosts():
    """Options of Hydra by which it reaches hosts that were named: in a job it would take its batch system's means."""
    in_job = "SLURM_JOB_ID" in os.environ and not shutil.which("srun") or "LSB_JOBID" in os.environ
    return ["-bootstrap", "ssh"] if in_job else []


@dataclasses.dataclass
class Command:
    """Hold what a launch runs.

    Attributes
    ----------
    words : list of str
    env : dict
        The environment.
    several : bool
        Whether a launcher starts the ranks.
    where : str
        Where they run, and who says so.
    """

    words: list
    env: dict
    several: bool
    where: str

    def shown(self):
        """The command as lines for a shell, with the variables that it sets and unsets."""
        unset = [word for name in sorted(set(os.environ) - set(self.env)) for word in ("-u", name)]
        changed = [f"{name}={value}" for name, value in sorted(self.env.items()) if os.environ.get(name) != value]
        before = ["env", *unset, *changed] if unset or changed else []
        return f"# {self.where}\n{shlex.join([*before, *self.words])}"


def command_of(script, args=(), ranks=1, threads=None, hosts=None, here=False, more=()):
    """The command of a launch, as `launch` runs it; `here`: on this host, also within an allocation; `more`: variables
    that its ranks have.

    Raises
    ------
    LaunchError
        For what cannot be started.
    """
    hosts = split_hosts(hosts)
    for what, value in (("ranks", ranks), ("threads", threads)):
        if value is not None and value < 1:
            raise LaunchError(f"{value} {what}; allowed: 1 or more")
    given = None if hosts or here else allocations.allocation()
    most, why = most_ranks(hosts, given)
    if ranks > most:
        raise LaunchError(f"{ranks} ranks; allowed: 1 to {most}{why}")
    script = os.fspath(script)
    if not os.path.exists(script):
        raise LaunchError(f"no script '{script}' in {os.getcwd()}")
    if not (os.path.isfile(script) or os.path.isdir(script)):  # each rank reads it
        raise LaunchError(f"script '{script}': it is no regular file")
    # What connects this process with an mpiexec around it is closed in those that it starts.
    env = {name: value for name, value in os.environ.items() if not name.startswith(JOB_VARIABLES)}
    env.update(more)
    if threads is not None:
        env["TILEWAVE_THREADS"] = str(threads)
    env.setdefault("TILEWAVE_PROGRESS", "line" if sys.stderr.isatty() else "1")  # notices.py: rank 0 sees a pipe
    # A launcher has a syntax in which ":" begins another program: no argument may look like it.
    program = program_of("tilewave.cli.on_rank", *(QUOTE + word for word in (script, *args)))
    where = allocations.described(ranks, hosts, given)
    if here:
        env.pop("SLURM_STEP_NUM_TASKS", None)  # the ranks are none of the processes that srun has started around
    if ranks == 1 and not hosts:
        return Command(program, env, False, allocations.described(ranks, (), None))
    if given is not None and given.system == "SLURM":
        for name, value in allocations.slurm_environment(env).items():
            if value is None:
                del env[name]
            else:
                env.setdefault(name, value)
    words = mpiexec_command(ranks, program, hosts, env, here)
    if sys.stdout.isatty():  # ranks write into a pipe; let Rich draw progress nevertheless
        env.setdefault("COLUMNS", str(shutil.get_terminal_size().columns))
        env.setdefault("TTY_COMPATIBLE", "1")
    return Command(words, env, True, where)


def launch(script, args=(), ranks=1, threads=None, hosts=None, more=()):
    """Run a Python script on `ranks` ranks and return its exit code.

    Parameters
    ----------
    script : path of the script
    args : its arguments
    ranks : number of ranks; one rank without `hosts` runs without mpiexec
    threads : lanes of each rank (environment variable TILEWAVE_THREADS)
    hosts : list or comma-separated string of hosts, reached with ssh; default: those of the allocation
    more : environment variables that the ranks have in addition, a dict

    Returns
    -------
    int
        The script's exit code (mpiexec combines those of several ranks bit by bit), or
        128 + the signal's number if a signal ended it: 130 after Ctrl-C. Several ranks have succeeded
        only when the script of each has come to its end: one that leaves by os._exit fails the job.
    """
    refuse_within_launch()
    return run_command(command_of(script, args, ranks, threads, hosts, more=more), ranks)


def refuse_within_launch():
    """Raise `LaunchError` in a rank of a launch, each of which would start another one."""
    for name in SIZE_VARIABLES:
        if os.environ.get(name, "1") != "1":
            raise LaunchError(
                f"this is one of {os.environ[name]} processes that mpiexec started, and tilewave starts mpiexec "
                "itself: `tilewave COMMAND -n 4 ...` in place of `mpiexec -n 4 tilewave COMMAND ...`"
            )


def run_command(command, ranks, timeout_s=None, **popen):
    """Run a command to its end, and say how ranks ended; its exit code, None when it took longer than `timeout_s`.

    Other keywords go to `subprocess.Popen`.
    """
    end = None if timeout_s is None else time.monotonic() + timeout_s
    expired = False

    def late():
        nonlocal expired
        expired = expired or (end is not None and time.monotonic() > end)
        return expired

    if not command.several:
        code = processes.supervise(command.words, command.env, watch=None if end is None else late, **popen)
        return None if expired else code
    # Memory without a name: nothing stays, however this process ends.
    with open(os.memfd_create("tilewave-notes"), "w+b", buffering=0) as notes:
        env = command.env | {NOTES: f"/proc/{os.getpid()}/fd/{notes.fileno()} {processes.process_space()}"}
        endings = Endings(notes, ranks)
        try:
            code = processes.supervise(
                command.words,
                env,
                watch=lambda: endings.overdue() or late(),
                pause=endings.pause,
                patience_s=endings.patience_s,
                **popen,
            )
            return None if expired else endings.result(code)
        finally:
            endings.close()


def notes_here():
    """Path of the notes of the launch that this process belongs to; None on another host, or without a launch."""
    path, _, space = os.environ.get(NOTES, "").partition(" ")
    return path if path and space == processes.process_space() else None


def most_ranks(hosts=(), given=None):
    """The most ranks that a launch may have, and why, as the end of a sentence."""
    if hosts or given is not None:
        return MOST_RANKS, ""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        max(min(memory // RANK_BYTES, MOST_RANKS), 1),
        f" on this host, which has {units.size(memory)} of memory; a rank takes {units.size(RANK_BYTES)} and more",
    )


def rank():
    """This process's rank as the launcher tells it, or None outside mpiexec."""
    for name in RANK_VARIABLES:
        if (value := number(os.environ.get(name, ""))) is not None:
            return value
    return None
