"""Ranks that fail, leave or end without a word: the job ends, and says who it was."""

import os
import shutil
import signal
import socket
import subprocess

import pytest

from launches import wait_until

@pytest.mark.parametrize(
    "ending, words", [("raise KeyError('mine')", "KeyError: 'mine'"), ("sys.exit(3)", "rank 1 ended with exit code 3")]
)
def test_a_rank_that_fails_before_or_after_mpi_while_the_others_wait(run, ending, words):
    pytest.importorskip("mpi4py")
    before = "raise" in ending
    code, _, err = run(
        f"""
        if {before} and rank == 1:
            {ending}
        from mpi4py import MPI
        if rank == 1:
            {ending}
        MPI.COMM_WORLD.Barrier()
    """,
        options=("-n", "3"),
    )
    assert code == (1 if before else 3)
    assert err.count(words) == 1


@pytest.mark.parametrize(("who", "shown"), [("True", 1), ("rank", 2), ("rank == 1", 1)])
def test_an_error_that_every_rank_meets_is_shown_once(run, who, shown):
    """By rank 0; by others where rank 0 does not come to it."""
    code, _, err = run(
        f"""
        class Refused(ValueError):
            of_program = True
        if {who}:
            raise Refused("no nest")
        time.sleep(60)
    """,
        options=("-n", "3"),
    )
    assert code == 1 and 1 <= err.count("Refused: no nest") <= shown and ("rank " in err) == (who != "True"), err


@pytest.mark.parametrize("name", ["-genv", ":", "=a b:c.py"])
def test_names_of_scripts_that_mean_something_to_launchers(run, name):
    code, out, err = run(
        "print(os.path.basename(sys.argv[0]), sys.argv[1:])", ":", options=("-n", "2", "--"), name=name
    )
    assert code == 0 and out.splitlines() == [f"{name} [':']"] * 2, err


WAITING = """
    if {mpi}:
        from mpi4py import MPI
        MPI.COMM_WORLD.Barrier()
        if rank == 0:  # as a context does: a killed job would leave them
            for name in os.listdir("/dev/shm"):
                if name.startswith("mpich_shm") and "/" + name + chr(10) in open("/proc/self/maps").read():
                    os.remove("/dev/shm/" + name)
    if rank == 1:
        {ending}
    if {mpi}:
        MPI.COMM_WORLD.Barrier()
    time.sleep(100)
"""


@pytest.mark.parametrize(
    "mpi, ending",
    [
        (True, "os._exit(0)"),
        (True, "os.kill(os.getpid(), 9)"),
        (False, "os._exit(0)"),
        (False, "import atexit; atexit.register(os._exit, 0); sys.exit()"),
    ],
)
def test_a_rank_that_ends_without_a_word_fails_the_job(run, mpi, ending):
    if mpi:
        pytest.importorskip("mpi4py")
    code, _, err = run(WAITING.format(mpi=mpi, ending=ending), options=("-n", "3"))
    assert code not in (0, 137) and err.count("tilewave:") == 1
    # Who of those that Hydra then kills has ended first is not certain.
    assert " ended before the script was over" in err
    if "kill" in ending:
        assert "SIGKILL" in err and code == 9
    else:  # 9: of those that Hydra killed, if this process saw the end of all at once
        assert code in ((1, 9) if mpi else (1,))


def test_ranks_may_have_children_and_become_other_programs(run):
    code, out, err = run(
        """
        if rank == 0:
            if os.fork() == 0:
                os._exit(3)
            os.wait()
        else:
            os.execv(sys.executable, [sys.executable, "-c", "print('another')"])
    """,
        options=("-n", "2"),
    )
    assert code == 0 and out == "another\n", err


def test_an_error_in_a_child_of_a_rank_is_not_the_ranks(run):
    code, _, err = run(
        """
        if rank == 1:
            if os.fork() == 0:
                raise ValueError("in the child")
            os.wait()
            time.sleep(1.5)
    """,
        options=("-n", "2"),
    )
    assert code == 0 and "in the child" in err


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare") or subprocess.run(["unshare", "-pf", "true"]).returncode != 0,
    reason="no process ids of its own can be made here",
)
def test_ranks_of_hosts_whose_processes_are_not_seen_here(run, tmp_path):
    """They have other process ids: mpiexec says how they end."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nshift\nexec unshare -pf --mount-proc sh -c "$*"\n'
    )
    ssh.chmod(0o755)
    hosts = f"--hosts={socket.gethostname()},someone@elsewhere"
    for ending, expected in (("pass", 0), ("sys.exit(3 * rank)", 3), ("if rank == 0: os._exit(0)", 1)):
        code, out, err = run(
            f"print(rank, os.getpid() < 9, sys.argv[1:])\n{ending}",
            ":",
            options=("-n", "2", hosts),
            env={"HYDRA_BOOTSTRAP_EXEC": str(ssh)},
        )
        assert code == expected and sorted(out.splitlines()) == ["0 False [':']", "1 True [':']"], err
        assert ("rank 0 ended before" in err) == (expected == 1)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_launcher_that_hangs_is_ended_by_a_signal(start, tmp_path, signum):
    hangs = tmp_path / "mpiexec"
    hangs.write_text("#!/bin/sh\ntrap '' TERM INT\n[ $1 = --version ] && exit\ntouch up\nwhile :; do sleep 0.1; done\n")
    hangs.chmod(0o755)
    process = start("pass", options=("-n", "2"), env={"TILEWAVE_MPIEXEC": str(hangs)})
    try:
        wait_until((tmp_path / "up").exists)
        process.send_signal(signum)
        process.communicate(timeout=300)
        assert process.returncode == 128 + signum
    finally:
        process.kill()
        process.communicate(timeout=300)
