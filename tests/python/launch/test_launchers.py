"""What launched a process: launchers that the MPI cannot talk to are refused before it starts, copies by srun, too."""

import os
import socket
import subprocess
import sys

import pytest

from tilewave.errors import ConfigError
from tilewave.launch import launchers, which_mpi

VARIABLES = ("PMI", "OMPI_", "SLURM_", "TILEWAVE_RANK", "TILEWAVE_LIBMPI")


@pytest.fixture(autouse=True)
def shell(monkeypatch):
    """As in a shell that no launcher started."""
    for name in list(os.environ):
        if name.startswith(VARIABLES):
            monkeypatch.delenv(name)


def started_by(monkeypatch, **variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


OURS = f"{sys.prefix}/lib/{which_mpi.STANDARD}"
OPEN_MPI = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "{rank}", "PMIX_RANK": "{rank}", "PMIX_NAMESPACE": "1"}
SRUN = {"PMIX_RANK": "{rank}", "PMIX_NAMESPACE": "slurm.pmix.7.0", "SLURM_JOB_ID": "7", "SLURM_STEP_NUM_TASKS": "2"}
HYDRA = {"PMI_RANK": "{rank}", "PMI_SIZE": "2", "PMI_FD": "9"}


def refused(monkeypatch, variables, call):
    """The error, the same on both ranks."""
    found = set()
    for rank in "01":
        started_by(monkeypatch, **{name: value.format(rank=rank) for name, value in variables.items()})
        with pytest.raises(ConfigError) as error:
            call()
        found.add(str(error.value))
    (text,) = found
    return text


@pytest.mark.parametrize(
    "variables, words",
    [
        (OPEN_MPI, ("Open MPI's mpirun (OMPI_COMM_WORLD_SIZE=2)",)),
        (SRUN, ("by srun", "SLURM_STEP_NUM_TASKS=2", "srun --mpi=pmi2")),
        ({"PMIX_RANK": "{rank}"}, ("a launcher that connects ranks by PMIx",)),
    ],
)
def test_launchers_that_its_own_mpi_cannot_talk_to_are_refused_alike_on_every_rank(monkeypatch, variables, words):
    text = refused(monkeypatch, variables, lambda: launchers.refuse_others(OURS))
    for word in (*words, OURS, "TILEWAVE_LIBMPI", "tilewave run -n RANKS SCRIPT"):
        assert word in text
    launchers.refuse_others("/site/lib/libmpi.so.12")  # it may know PMIx


def test_a_launcher_within_another_is_refused(monkeypatch):
    text = refused(monkeypatch, HYDRA | {"PMIX_NAMESPACE": "1"}, launchers.connected_by)
    for word in ("one within the other", "PMI_SIZE and PMIX_NAMESPACE", "TILEWAVE_LIBMPI"):
        assert word in text


@pytest.mark.parametrize(
    "variables, by",
    [({}, None), ({"SLURM_JOB_ID": "7"}, None), (HYDRA, "PMI"), (OPEN_MPI, "PMIx"), (SRUN, "PMIx")],
)
def test_what_connects_the_ranks(monkeypatch, variables, by):
    started_by(monkeypatch, **{name: value.format(rank=1) for name, value in variables.items()})
    assert launchers.connected_by() == by
    if by != "PMIx":
        launchers.refuse_others(OURS)


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
    return subprocess.run(command, env={**env, **variables}, capture_output=True, text=True, timeout=300)


def test_a_program_ends_with_the_message():
    done = run(
        [sys.executable, "-c", PROGRAM],
        OMPI_COMM_WORLD_SIZE="2",
        OMPI_COMM_WORLD_RANK="1",
        PMIX_RANK="1",
        PMIX_NAMESPACE="1",
        TILEWAVE_LIBMPI=OURS,
    )
    assert done.returncode == 1 and "made" not in done.stdout
    assert "ConfigError: this process was started by Open MPI's mpirun" in done.stderr and "Abort(" not in done.stderr


def test_ranks_by_pmix(monkeypatch):
    """A program that a rank has started has the rank's variables and its mark."""
    started_by(monkeypatch, PMIX_NAMESPACE="one", PMIX_RANK="1", **{launchers.MARK: ""})
    launchers.leave_launch_of_parent()
    launchers.mark_rank()
    launchers.leave_launch_of_parent()
    assert "PMIX_RANK" in os.environ  # it is the rank
    started_by(monkeypatch, **{launchers.MARK: os.environ[launchers.MARK].replace(str(os.getpid()), str(os.getppid()))})
    launchers.leave_launch_of_parent()
    assert "PMIX_RANK" not in os.environ and "PMIX_NAMESPACE" not in os.environ
