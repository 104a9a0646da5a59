"""Hosts and ranks of a launch, and the command of each kind of mpiexec; nothing is started."""

import os
import random

import pytest

from tilewave.launch import hosts as hosts_module, launch


@pytest.fixture(autouse=True)
def outside(monkeypatch):
    """As in a shell that no batch system and no launcher has started."""
    for name in list(launch.os.environ):
        if name.startswith(("SLURM_", "PBS_", "LSB_", "FLUX_", *launch.JOB_VARIABLES)):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    "given, found",
    [
        (None, []),
        ("", []),
        (",,", []),
        ("a", ["a"]),
        ("a,b:2,", ["a", "b:2"]),
        (["a", "", "me@b.c-d_e:30"], ["a", "me@b.c-d_e:30"]),
        ("10.0.0.1:4", ["10.0.0.1:4"]),
    ],
)
def test_lists_of_hosts(given, found):
    assert launch.split_hosts(given) == found


@pytest.mark.parametrize(
    "given",
    ["-a", "a b", ".a", "a:0", "a:", "a:-1", "a:1:2", "@a", "a@", "a/b", "a:1234567890", "ä", "a;b", "a\n", "$(x)"],
)
def test_what_is_no_host(given):
    with pytest.raises(launch.LaunchError, match="allowed: NAME, NAME:RANKS or USER@NAME"):
        launch.split_hosts([given])


@pytest.mark.parametrize(
    "hosts, slurm, ranks",
    [
        (None, {}, 1),
        ("a,b,c", {}, 3),
        ("a:2,b:30,c", {}, 33),
        (None, {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "12"}, 12),
        (None, {"SLURM_NTASKS": "12"}, 1),
        (None, {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "many"}, 1),
        (None, {"SLURM_JOB_ID": "1"}, 1),
        (None, {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-3]"}, 3),
        ("a,b", {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "12"}, 2),
    ],
)
def test_ranks_where_no_number_is_given(monkeypatch, hosts, slurm, ranks):
    for name, value in slurm.items():
        monkeypatch.setenv(name, value)
    assert launch.default_ranks(hosts) == ranks


def test_neighbouring_ranks_share_a_host(seed):
    pick = random.Random(seed)
    for _ in range(200):
        hosts, ranks = [f"h{k}" for k in range(pick.randrange(1, 9))], pick.randrange(1, 40)
        counts = [entry.split(":") for entry in launch.in_blocks(hosts, ranks).split(",")]
        each = [int(count) for _, count in counts]
        assert sum(each) == ranks and min(each) >= 1 and max(each) - min(each) <= 1, (seed, hosts, ranks)
        assert [host for host, _ in counts] == hosts[:ranks], (seed, hosts, ranks)
    assert launch.in_blocks(["a:3", "b"], 9) == "a:3,b"


PASSED = ["-x", "TILEWAVE_A", "-x", "TILEWAVE_B", "--bind-to", "none"]
ROOT = ["--allow-run-as-root"] * (os.geteuid() == 0)


@pytest.mark.parametrize(
    "open_mpi, hosts, slurm, expected",
    [
        (False, (), False, ["mpiexec", "-n", "4", "program"]),
        (False, ["a", "b"], False, ["mpiexec", "-n", "4", "-hosts", "a:2,b:2", "program"]),
        (False, (), True, ["mpiexec", "-n", "4", "-bootstrap", "slurm", "program"]),
        (False, ["a:4"], True, ["mpiexec", "-n", "4", "-hosts", "a:4", "program"]),
        (True, (), False, ["mpiexec", "-n", "4", *PASSED, "--map-by", ":OVERSUBSCRIBE", *ROOT, "program"]),
        (True, ["a"], False, ["mpiexec", "-n", "4", *PASSED, "--host", "a:4", *ROOT, "program"]),
        (True, (), True, ["mpiexec", "-n", "4", *PASSED, *ROOT, "program"]),
    ],
)
def test_the_command_of_each_mpiexec(monkeypatch, open_mpi, hosts, slurm, expected):
    monkeypatch.setattr(launch, "find_mpiexec", lambda: "mpiexec")
    monkeypatch.setattr(launch, "is_open_mpi", lambda path: open_mpi)
    monkeypatch.setattr(launch.shutil, "which", lambda name: name)
    if slurm:
        monkeypatch.setenv("SLURM_JOB_ID", "1")
    env = {"TILEWAVE_B": "1", "TILEWAVE_A": "2", "OTHER": "3", "TILEWAVE_": "4"}
    assert launch.mpiexec_command(4, ["program"], hosts, env) == expected


@pytest.mark.parametrize(
    "text, found",
    [
        ("a\n\n  # none\nb # two\n", ["a", "b"]),
        ("a:2\nme@b.c slots=3 max_slots=8\n", ["a:2", "me@b.c:3"]),
        ("a slots = 2 binding=user\na\nb\n", ["a:3", "b"]),
        ("a\nb\na\na\n", ["a:3", "b"]),
    ],
)
def test_files_of_hosts(tmp_path, text, found):
    (tmp_path / "hosts").write_text(text)
    assert launch.split_hosts(hosts_module.read_hostfile(tmp_path / "hosts")) == found


@pytest.mark.parametrize(
    "text, words",
    [
        (None, "host file .*hosts: No such file"),
        ("# a\n", "names no host; allowed: a host a line"),
        ("a\nb slots=0\n", "line 2: given 'b slots=0'; allowed: 'host', 'host:2' or 'host slots=2'"),
        ("a:2 slots=2\n", "line 1.*allowed: 'host', 'host:2'"),
        ("a slots\n", "line 1"),
        ("a cores=2\n", "line 1: given 'a cores=2'"),
        ("-oProxyCommand=x\n", "line 1.*allowed: NAME, NAME:RANKS"),
        ("a\x00\n", "line 1.*allowed: NAME, NAME:RANKS"),
        ("a slots=²\n", "line 1"),
        (b"a\xff\n", "it is no text in UTF-8"),
        (os.mkfifo, "it is no regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "it is no regular file"),
        (lambda path: [path.touch(), os.truncate(path, 1 << 40)], "allowed: 33554432"),
    ],
)
def test_files_that_name_no_hosts(tmp_path, text, words):
    if callable(text):
        text(tmp_path / "hosts")
    elif text is not None:
        (tmp_path / "hosts").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(launch.LaunchError, match=words):
        hosts_module.read_hostfile(tmp_path / "hosts")


def test_shares_of_ranks_are_in_proportion_to_slots(seed):
    pick = random.Random(seed)
    for _ in range(200):
        slots = [(f"h{k}", pick.randrange(1, 50)) for k in range(pick.randrange(1, 9))]
        ranks, total = pick.randrange(1, 300), sum(count for _, count in slots)
        found = dict(hosts_module.shares(slots, ranks))
        assert sum(found.values()) == ranks and list(found) == [host for host, _ in slots if host in found]
        assert all(abs(found.get(host, 0) - ranks * count / total) < 1 for host, count in slots), (seed, slots, ranks)


@pytest.mark.parametrize("variables, options", [({}, []), ({"SLURM_JOB_ID": "1"}, ["-bootstrap", "ssh"])])
def test_how_named_hosts_are_reached(monkeypatch, variables, options):
    """In a job without its batch system's means, with ssh; else as Hydra chooses."""
    monkeypatch.setattr(launch.shutil, "which", lambda name: None)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert launch._means_to_hosts() == options


@pytest.mark.parametrize("text, is_open", [("mpirun (Open MPI) 4.1", True), ("OpenRTE 5", True), ("HYDRA", False)])
def test_the_kind_of_mpiexec_is_asked(tmp_path, text, is_open):
    program = tmp_path / "mpiexec"
    program.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    program.chmod(0o755)
    assert launch.is_open_mpi(str(program)) is is_open


def test_an_mpiexec_that_does_not_answer(monkeypatch):
    def late(*_, **__):
        raise launch.subprocess.TimeoutExpired("mpiexec", 30)

    monkeypatch.setattr(launch.subprocess, "run", late)
    with pytest.raises(launch.LaunchError, match="mpiexec does not answer --version within 30 s"):
        launch.is_open_mpi("mpiexec")


def test_no_mpiexec_at_all(monkeypatch, tmp_path):
    monkeypatch.delenv("TILEWAVE_MPIEXEC", raising=False)
    monkeypatch.setattr(launch.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(launch.sysconfig, "get_path", lambda name: str(tmp_path / "scripts"))
    with pytest.raises(launch.LaunchError, match=f"no mpiexec in {tmp_path} or {tmp_path}/scripts; install"):
        launch.find_mpiexec()


@pytest.mark.parametrize("size", launch.SIZE_VARIABLES)
def test_a_launch_within_a_launch_is_refused(monkeypatch, tmp_path, size):
    (tmp_path / "script.py").write_text("")
    monkeypatch.setenv(size, "4")
    with pytest.raises(launch.LaunchError, match="one of 4 processes that mpiexec started"):
        launch.launch(tmp_path / "script.py", ranks=2)


def test_a_script_that_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "script.py")
    with pytest.raises(launch.LaunchError, match="it is no regular file"):
        launch.command_of(tmp_path / "script.py")


def test_more_ranks_than_this_host_has_memory_for(monkeypatch, tmp_path):
    (tmp_path / "script.py").write_text("")
    most, why = launch.most_ranks()
    assert 1 <= most <= launch.MOST_RANKS and "GiB of memory" in why
    with pytest.raises(launch.LaunchError, match=f"{most + 1} ranks; allowed: 1 to {most} on this host"):
        launch.launch(tmp_path / "script.py", ranks=most + 1)
    assert launch.most_ranks(["a"]) == (launch.MOST_RANKS, "")


@pytest.mark.parametrize(
    "variables, rank",
    [
        ({}, None),
        ({"PMI_RANK": "3"}, 3),
        ({"PMIX_RANK": "x", "OMPI_COMM_WORLD_RANK": "2"}, 2),
        ({"PMI_RANK": "-1"}, None),
        ({"PMI_RANK": "²", "PMIX_RANK": "9" * 5000}, None),
    ],
)
def test_the_rank_as_launchers_tell_it(monkeypatch, variables, rank):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert launch.rank() == rank
