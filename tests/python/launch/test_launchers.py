"""What launched a process: other MPIs' launchers are refused before MPI starts, and copies by srun are pointed out."""

import os
import shutil
import subprocess
import sys
import warnings

import pytest

from tilewave.launch import launchers, shared_files
from tilewave.errors import ConfigError

VARIABLES = ("PMI", "OMPI_", "SLURM_")


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


def test_copies_that_srun_started_are_pointed_out_once(monkeypatch):
    monkeypatch.setattr(shared_files, "remove_left_over", lambda: None)
    for rank, told in (("0", 1), ("1", 0)):
        monkeypatch.setattr(launchers, "_looked", False)
        started_by(monkeypatch, SLURM_JOB_ID="7", SLURM_STEP_NUM_TASKS="2", SLURM_PROCID=rank)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            launchers.look_around()
            launchers.look_around()
        assert len(caught) == told and all(
            "2 processes that know nothing of each other" in str(w.message) and w.filename == __file__ for w in caught
        )


def test_the_first_rank_of_a_host_cleans_up(monkeypatch):
    cleaned = []
    monkeypatch.setattr(shared_files, "remove_left_over", lambda: cleaned.append(1))
    for variables, times in (
        ({}, 1),
        ({"PMI_RANK": "3", "MPI_LOCALRANKID": "0"}, 2),
        ({"PMI_RANK": "0", "MPI_LOCALRANKID": "1"}, 2),
    ):
        monkeypatch.setattr(launchers, "_looked", False)
        started_by(monkeypatch, **variables)
        launchers.look_around()
        assert len(cleaned) == times


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
