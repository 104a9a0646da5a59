"""This file has what launched this process, if anything: how its ranks find each other, which decides the MPI; a
launcher that it cannot talk to is refused, and a program that a rank has started belongs to no launch.
"""

import os
import stat
import sys

from tilewave.errors import ConfigError
from tilewave.launch.variables import JOB_VARIABLES, number
from tilewave.launch.which_mpi import SETTING, is_open

# Environment variables that say how many processes were started together.
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
MARK = "TILEWAVE_RANK"  # environment variable: process and connection of the rank above
# What a launcher sets whose ranks find each other by PMIx, as Open MPI's do; by PMI, as MPICH's.
PMIX, PMI = ("PMIX_NAMESPACE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT")
#: Called before this process starts MPI, where it waits for all ranks of the launch.
before_start = []


def connected_by():
    """How the ranks of this launch find each other: "PMIx", "PMI", or None where nothing launched this process.

    Raises
    ------
    ConfigError
        The same on every rank, where the environment says both.
    """
    pmix, pmi = _first(PMIX), _first(PMI)
    if pmix is not None and pmi is not None:
        raise ConfigError(
            f"this process was started by launchers of two kinds, one within the other ({pmi} and {pmix} are set), so "
            f"that the MPI cannot be chosen; unset the variables PMIX_* and OMPI_*, or PMI_*, before the inner one "
            f"starts, use `tilewave run -n RANKS SCRIPT`, or set {SETTING} to the inner one's MPI library"
        )
    return "PMIx" if pmix is not None else "PMI" if pmi is not None else None


def refuse_others(path):
    """Raise where an MPI would abort: the MPICH of a wheel, at `path`, connects by PMI, and this launcher uses PMIx.

    A site's MPICH may know PMIx, and is tried.

    Raises
    ------
    ConfigError
        The same on every rank: each has been started by that launcher.
    """
    if _first(PMIX) is None or _first(PMI) is not None:
        return
    of_wheel = path.startswith(os.path.join(sys.prefix, "")) or os.path.isdir(f"{os.path.dirname(path)}/mpich")
    if not of_wheel or is_open(path):
        return
    size = next((f"{name}={os.environ[name]}" for name in SIZES if name in os.environ), f"{_first(PMIX)} is set")
    slurm = "SLURM_JOB_ID" in os.environ and "OMPI_COMM_WORLD_SIZE" not in os.environ
    kind = "Open MPI's mpirun" if "OMPI_COMM_WORLD_SIZE" in os.environ else "a launcher that connects ranks by PMIx"
    if slurm:
        kind = "srun for an MPI that uses PMIx"
    raise ConfigError(
        f"this process was started by {kind} ({size}), which the MPICH in {path} cannot connect to: set {SETTING} to "
        f"the path of that launcher's MPI library, {'start it with `srun --mpi=pmi2`, ' if slurm else ''}or start it "
        "with `tilewave run -n RANKS SCRIPT`, which brings its launcher with it"
    )


def refuse_copies():
    """Raise where srun has started several processes without connecting them: each would do the whole work.

    Raises
    ------
    ConfigError
        In each of them.
    """
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "")
    if (number(tasks) or 1) > 1 and _first((*PMI, *PMIX)) is None:
        raise ConfigError(
            f"srun (SLURM) has started {tasks} processes that know nothing of each other, so that each would do the "
            "whole work alone and write the same files; for one program on all of them use `srun --mpi=pmi2`, or "
            "`srun --mpi=pmix` with Open MPI, or `tilewave run` inside the allocation; for independent programs unset "
            "SLURM_STEP_NUM_TASKS"
        )


def mark_rank():
    """Note in the environment that this process is the rank that a launcher started."""
    if (connection := _connection()) is not None:
        os.environ[MARK] = f"{os.getpid()} {connection}"


def leave_launch_of_parent():
    """Forget the launch whose variables this process has only inherited: a rank has started it as another program."""
    if _first(("PMI_FD", "PMIX_NAMESPACE")) is None:
        return
    connection, (process, _, marked) = _connection(), os.environ.get(MARK, "").partition(" ")
    if connection is None or (marked == connection and process != str(os.getpid())):
        for name in [name for name in os.environ if name.startswith(JOB_VARIABLES)]:
            del os.environ[name]


def _connection():
    """Return what names this process's connection to mpiexec; None where it has none."""
    if "PMI_FD" not in os.environ:  # by PMIx, to which it has to connect
        return " ".join(os.environ.get(name, "") for name in ("PMIX_NAMESPACE", "PMIX_RANK"))
    try:
        status = os.fstat(int(os.environ["PMI_FD"]))
    except (OSError, ValueError, OverflowError):
        return None
    return str(status.st_ino) if stat.S_ISSOCK(status.st_mode) or stat.S_ISFIFO(status.st_mode) else None


def _first(names):
    return next((name for name in names if name in os.environ), None)
