"""What launched a process: other MPIs' launchers are refused before MPI starts, and copies by srun, too."""

import os
import shutil
import socket
import subprocess
import sys

import pytest

from tilewave.launch import launchers
from tilewave.errors import ConfigError

VARIABLES = ("PMI", "OMPI_", "SLURM_", "TILEWAVE_RANK")


@pytest.fixture(autouse=True)
def shell(monkeypatch):
    """As in a shell that no launcher started."""
    for name in list(os.environ):
        if name.startswith(VARIABLES):
            monkeypatch.delenv(name)


def started_by(monkeypatch, **variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


WAYS = ("tilewave run -n RANKS SCRIPT", "TILEWAVE_MPI=system")


@pytest.mark.parametrize(
    "variables, words",
    [
        (
            {
                "OMPI_COMM_WORLD_SIZE": "2",
                "OMPI_COMM_WORLD_RANK": "{rank}",
                "PMIX_RANK": "{rank}",
                "PMIX_NAMESPACE": "1",
            },
            ("Open MPI's mpirun (OMPI_COMM_WORLD_SIZE=2)",),
        ),
        (
            {
                "PMIX_RANK": "{rank}",
                "PMIX_NAMESPACE": "slurm.pmix.7.0",
                "SLURM_JOB_ID": "7",
                "SLURM_STEP_NUM_TASKS": "2",
            },
            ("by srun", "SLURM_STEP_NUM_TASKS=2", "srun --mpi=pmi2"),
        ),
        ({"PMIX_RANK": "{rank}"}, ("another MPI's launcher",)),
        (
            {"PMI_RANK": "{rank}", "PMI_SIZE": "2", "PMI_FD": "9", "PMIX_NAMESPACE": "1"},
            ("one within the other", "PMI_SIZE and PMIX_NAMESPACE"),
        ),
    ],
)
def test_launchers_of_other_mpis_are_refused_alike_on_every_rank(monkeypatch, variables, words):
    said = set()
    for rank in "01":
        started_by(monkeypatch, **{name: value.format(rank=rank) for name, value in variables.items()})
        with pytest.raises(ConfigError) as error:
            launchers.refuse_others()
        said.add(str(error.value))
    (text,) = said
    for word in (*words, *WAYS):
        assert word in text


@pytest.mark.parametrize(
    "variables", [{}, {"PMI_RANK": "1", "PMI_SIZE": "2", "PMI_FD": "9"}, {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"}]
)
def test_its_own_launcher_and_none_are_fine(monkeypatch, variables):
    started_by(monkeypatch, **variables)
    launchers.refuse_others()


@pytest.mark.parametrize("rank", ["0", "1"])
def test_copies_that_srun_started_are_refused_in_each(monkeypatch, rank):
    started_by(monkeypatch, SLURM_JOB_ID="7", SLURM_STEP_NUM_TASKS="2", SLURM_PROCID=rank)
    with pytest.raises(ConfigError, match="2 processes that know nothing of each other.*srun --mpi=pmi2"):
        launchers.refuse_copies()
    for fine in (
        {"SLURM_JOB_ID": "7", "SLURM_STEP_NUM_TASKS": "1"},  # one process alone
        {"SLURM_JOB_ID": "7", "SLURM_STEP_NUM_TASKS": "many"},
        {"SLURM_STEP_NUM_TASKS": "2", "PMI_RANK": rank, "PMI_SIZE": "2", "PMI_FD": "9"},
    ):
        started_by(monkeypatch, **fine)
        launchers.refuse_copies()


@pytest.fixture
def connection():
    """A socket as mpiexec gives each rank."""
    ours, other = socket.socketpair()
    with ours, other:
        yield ours


RANK = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "PMIX_RANK": "1"}


@pytest.mark.parametrize(
    "mark, open_, is_rank",
    [
        (None, True, True),  # mpiexec has started this process
        ("{self} {inode}", True, True),
        ("{parent} {inode}", True, False),  # it has the connection of the rank that started it
        ("{parent} 12", True, True),  # a rank has started an mpiexec, and that this process
        (None, False, False),  # it has not
        ("{parent} {inode}", False, False),
    ],
)
def test_a_program_that_a_rank_started_is_no_rank(monkeypatch, connection, mark, open_, is_rank):
    inode = os.fstat(connection.fileno()).st_ino
    started_by(monkeypatch, **RANK, PMI_FD=str(connection.fileno()))
    if mark:
        words = mark.format(self=os.getpid(), parent=os.getppid(), inode=inode)
        started_by(monkeypatch, **{launchers.MARK: words})
    if not open_:
        connection.close()
    launchers.leave_launch_of_parent()
    assert [name in os.environ for name in ("PMI_RANK", "PMI_SIZE", "PMI_FD")] == [is_rank] * 3


PROGRAM = "import tilewave as tw; tw.Context(); print('made')"


def run(command, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith(VARIABLES)}
    return subprocess.run(command, env={**env, **variables}, capture_output=True, text=True, timeout=100)


def test_a_program_ends_with_the_message():
    done = run(
        [sys.executable, "-c", PROGRAM],
        OMPI_COMM_WORLD_SIZE="2",
        OMPI_COMM_WORLD_RANK="1",
        PMIX_RANK="1",
        PMIX_NAMESPACE="1",
    )
    assert done.returncode == 1 and "made" not in done.stdout
    assert "ConfigError: this process was started by Open MPI's mpirun" in done.stderr and "Abort(" not in done.stderr


@pytest.mark.skipif(not shutil.which("mpirun.openmpi"), reason="no Open MPI here")
def test_open_mpi_itself():
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ["mpirun.openmpi", "-n", "2", "--oversubscribe"]
    done = run([*command, sys.executable, "-c", PROGRAM], **as_root)
    assert (
        done.returncode == 1
        and "started by Open MPI's mpirun (OMPI_COMM_WORLD_SIZE=2)" in done.stderr
        and "Abort(" not in done.stderr
    )
    done = run(
        ["mpirun.openmpi", "-n", "1", sys.executable, "-m", "tilewave.cli.commands", "run", "-n", "2", __file__],
        **as_root,
    )
    assert done.returncode == 0 and done.stdout == "2 ranks\n", done.stderr


if __name__ == "__main__":  # what `tilewave run` starts above
    import tilewave as tw

    context = tw.Context()
    if context.rank == 0:
        print(context.size, "ranks")
