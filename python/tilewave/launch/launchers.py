"""What launched this process, if anything: launchers that the MPI of Tilewave cannot talk to are refused, and a program
that a rank has started belongs to no launch.
"""

import os
import stat

from tilewave.errors import ConfigError
from tilewave.launch.variables import JOB_VARIABLES

# Environment variables that say how many processes were started together.
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
# What a launcher sets whose ranks find each other by PMIx; by PMI, which MPICH speaks.
MARK = "TILEWAVE_RANK"  # environment variable: process and connection of the rank above
PMIX, PMI = ("PMIX_NAMESPACE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT")
#: Called before this process starts MPI, where it waits for all ranks of the launch.
before_start = []


def refuse_others():
    """Raise where the MPI that Tilewave brings would abort: it was started by a launcher that it does not know.

    Raises
    ------
    ConfigError
        The same on every rank: each has been started by that launcher.
    """
    other, pmi = _first(PMIX), _first(PMI)
    if other is None:
        return
    size = next((f"{name}={os.environ[name]}" for name in SIZES if name in os.environ), f"{other} is set")
    brought = "Tilewave's MPI, which is MPICH"
    advice = (
        "start the program with `tilewave run -n RANKS SCRIPT`, which brings its launcher with it, or build Tilewave "
        "with the MPI of that launcher: pip install . --config-settings=cmake.define.TILEWAVE_MPI=system"
    )
    if pmi is not None:
        raise ConfigError(
            f"this process was started by launchers of two kinds, one within the other ({pmi} and {other} are set), "
            f"and {brought}, cannot tell which one to ask for the other ranks; unset the variables PMIX_* and OMPI_* "
            f"before the inner one starts, or {advice}"
        )
    if "SLURM_JOB_ID" in os.environ and "OMPI_COMM_WORLD_SIZE" not in os.environ:
        raise ConfigError(
            f"this process was started by srun for an MPI that uses PMIx ({size}), and {brought}, uses PMI; "
            f"start it with `srun --mpi=pmi2`, or {advice}"
        )
    kind = "Open MPI's mpirun" if "OMPI_COMM_WORLD_SIZE" in os.environ else "another MPI's launcher, by PMIx"
    raise ConfigError(f"this process was started by {kind} ({size}), which {brought}, cannot connect to; {advice}")


def refuse_copies():
    """Raise where srun has started several processes without connecting them: each would do the whole work.

    Raises
    ------
    ConfigError
        In each of them.
    """
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "")
    if tasks.isdigit() and int(tasks) > 1 and _first((*PMI, *PMIX)) is None:
        raise ConfigError(
            f"srun (SLURM) has started {tasks} processes that know nothing of each other, so that each would do the "
            "whole work alone and write the same files; for one program on all of them use `srun --mpi=pmi2`, or "
            "`tilewave run` inside the allocation; for independent programs unset SLURM_STEP_NUM_TASKS"
        )


def mark_rank():
    """Note in the environment that this process is the rank that a launcher started."""
    if (connection := _connection()) is not None:
        os.environ[MARK] = f"{os.getpid()} {connection}"


def leave_launch_of_parent():
    """Forget the launch whose variables this process has only inherited: a rank has started it as another program."""
    if "PMI_FD" not in os.environ:
        return
    connection, (process, _, marked) = _connection(), os.environ.get(MARK, "").partition(" ")
    if connection is None or (marked == connection and process != str(os.getpid())):
        for name in [name for name in os.environ if name.startswith(JOB_VARIABLES)]:
            del os.environ[name]


def _connection():
    """What names this process's connection to mpiexec; None where it has none."""
    try:
        status = os.fstat(int(os.environ.get("PMI_FD", "")))
    except (OSError, ValueError, OverflowError):
        return None
    return str(status.st_ino) if stat.S_ISSOCK(status.st_mode) or stat.S_ISFIFO(status.st_mode) else None


def _first(names):
    return next((name for name in names if name in os.environ), None)
