"""What launched this process: other MPIs' launchers, which the MPI that Tilewave brings cannot talk to, are refused."""

import os

from tilewave.errors import ConfigError
from tilewave.launch import launch, shared_files
from tilewave.notices import warn

# Environment variables that say how many processes were started together.
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
# What a launcher sets whose ranks find each other by PMIx; by PMI, which MPICH speaks.
PMIX, PMI = ("PMIX_NAMESPACE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT")

_looked = False


def refuse_others():
    """Raise where the MPI that Tilewave brings would abort: it was started by a launcher that it does not know.

    Raises
    ------
    ConfigError
        The same on every rank: each has been started by that launcher.
    """
    other, own = _first(PMIX), _first(PMI)
    if other is None:
        return
    size = next((f"{name}={os.environ[name]}" for name in SIZES if name in os.environ), f"{other} is set")
    brought = "Tilewave's own MPI, which is MPICH"
    ways = (
        "start the program with `tilewave run -n RANKS SCRIPT`, which brings its launcher with it, or build Tilewave "
        "with "
        "the MPI of that launcher: pip install . --config-settings=cmake.define.TILEWAVE_MPI=system"
    )
    if own is not None:
        raise ConfigError(
            f"this process was started by launchers of two kinds, one within the other ({own} and {other} are set), "
            "and "
            f"{brought}, cannot tell which one to ask for the other ranks; unset the variables PMIX_* and OMPI_* "
            f"before the inner one starts, or {ways}"
        )
    if "SLURM_JOB_ID" in os.environ and "OMPI_COMM_WORLD_SIZE" not in os.environ:
        raise ConfigError(
            f"this process was started by srun for an MPI that uses PMIx ({size}), and {brought}, uses PMI; "
            f"start it with `srun --mpi=pmi2`, or {ways}"
        )
    kind = "Open MPI's mpirun" if "OMPI_COMM_WORLD_SIZE" in os.environ else "another MPI's launcher, by PMIx"
    raise ConfigError(f"this process was started by {kind} ({size}), which {brought}, cannot connect to; {ways}")


def look_around():
    """Once in a process, on the first rank of a host: remove what killed jobs left here; warn of copies that srun
    started.
    """
    global _looked
    if _looked:
        return
    _looked = True
    if os.environ.get("MPI_LOCALRANKID", str(launch.rank() or 0)) == "0":
        shared_files.remove_left_over()
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "")
    if tasks.isdigit() and int(tasks) > 1 and _first(PMI) is None and os.environ.get("SLURM_PROCID") == "0":
        warn(
            f"srun has started {tasks} processes that know nothing of each other: each does the whole work alone; for "
            "one program on all of them use `srun --mpi=pmi2`, or `tilewave run` inside the allocation"
        )


def _first(names):
    return next((name for name in names if name in os.environ), None)
