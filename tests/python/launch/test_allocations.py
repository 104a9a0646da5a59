"""Jobs of batch systems, from the variables that they set, and with programs in place of `srun` and `flux`."""

import os
import sys

import pytest
from launches import TILEWAVE, ended

from tilewave.launch import allocations, launch
from tilewave.launch.variables import LaunchError

SYSTEMS = ("SLURM_", "PBS_", "LSB_", "FLUX_", *launch.JOB_VARIABLES)
SLURM = {"SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NNODES": "2"}


@pytest.fixture(autouse=True)
def outside(monkeypatch):
    """As in a shell that no batch system and no launcher has started, without their programs."""
    for name in list(os.environ):
        if name.startswith(SYSTEMS):
            monkeypatch.delenv(name)
    allocations._resources.cache_clear()


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Put a shell script into PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def add(name, text):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)

    return add


@pytest.mark.parametrize(
    "text, hosts",
    [
        ("n1", ["n1"]),
        ("n[1-3,7]", ["n1", "n2", "n3", "n7"]),
        ("a,n[08-11]x,b-2.c", ["a", "n08x", "n09x", "n10x", "n11x", "b-2.c"]),
        ("r[1-2]n[1,3]", ["r1n1", "r1n3", "r2n1", "r2n3"]),
    ],
)
def test_lists_of_slurm(text, hosts):
    assert allocations.expanded(text) == hosts


@pytest.mark.parametrize(
    "text",
    ["", ",a", "n[", "n[]", "n[1", "n1]", "n[3-1]", "n[a-b]", "n[1-]", "n[1-9999999]", "n 1", "-n1", "n[1]]", "n;1",
     "n1\n", "n[1\n]", "n[²]", "n[" + "0" * 5000 + "1]", "n[" + "9" * 5000 + "]", "n" * 5000 + "["],
)
def test_what_is_no_list_of_slurm(text):
    with pytest.raises(LaunchError, match="SLURM_JOB_NODELIST is .*; allowed: hosts as in"):
        allocations.expanded(text)


def test_repeated_numbers_of_slurm():
    assert allocations.repeated("2(x3),1") == [2, 2, 2, 1]
    for text in ("", "x", "2(x)", "0", "2(x3", "1,,1", "1(x9999999999)"):
        with pytest.raises(LaunchError, match="SLURM_TASKS_PER_NODE"):
            allocations.repeated(text)


LINES = "a\na\nb\n"


@pytest.mark.parametrize(
    "variables, system, hosts",
    [
        ({}, None, None),
        ({"SLURM_JOB_NODELIST": "n1"}, None, None),
        (SLURM, "SLURM", [("n1", 1), ("n2", 1)]),  # nodes alone: a rank on each, also where SLURM counts CPUs
        (SLURM | {"SLURM_TASKS_PER_NODE": "48(x2)"}, "SLURM", [("n1", 1), ("n2", 1)]),
        (SLURM | {"SLURM_TASKS_PER_NODE": "2,1", "SLURM_NTASKS": "3"}, "SLURM", [("n1", 2), ("n2", 1)]),
        (SLURM | {"SLURM_TASKS_PER_NODE": "4(x2)", "SLURM_NTASKS_PER_NODE": "4"}, "SLURM", [("n1", 4), ("n2", 4)]),
        (SLURM | {"SLURM_NTASKS": "5"}, "SLURM", [("n1", 2), ("n2", 3)]),
        ({"PBS_JOBID": "7.x", "PBS_NODEFILE": "lines"}, "PBS", [("a", 2), ("b", 1)]),
        ({"PBS_NODEFILE": "lines"}, None, None),
        ({"LSB_JOBID": "7", "LSB_DJOB_HOSTFILE": "lines", "LSB_MCPU_HOSTS": "x 1"}, "LSF", [("a", 2), ("b", 1)]),
        ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a 2 b.c 4"}, "LSF", [("a", 2), ("b.c", 4)]),
        ({"LSB_JOBID": "7"}, None, None),
        ({"FLUX_URI": "local:///x"}, None, None),  # no flux in PATH
    ],
)
def test_jobs_by_their_variables(tmp_path, variables, system, hosts):
    (tmp_path / "lines").write_text(LINES)
    env = {name: str(tmp_path / "lines") if value == "lines" else value for name, value in variables.items()}
    found = allocations.allocation(env)
    assert (found and found.system) == system
    if found:
        assert list(found.hosts) == hosts and found.ranks == sum(ranks for _, ranks in hosts)
        assert found.nodes == len(hosts) and set(found.said_by.split(", ")) <= set(env)


@pytest.mark.parametrize(
    "variables, words",
    [
        (SLURM | {"SLURM_TASKS_PER_NODE": "2", "SLURM_NTASKS": "2"}, "2 hosts .* and SLURM_TASKS_PER_NODE 1 numbers"),
        ({"PBS_JOBID": "7", "PBS_NODEFILE": "/none"}, "PBS_NODEFILE, host file /none: No such file"),
        ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a 2 b"}, "LSB_MCPU_HOSTS is 'a 2 b'; allowed: hosts, each with"),
        ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a x"}, "LSB_MCPU_HOSTS"),
        ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "-x 1"}, "LSB_MCPU_HOSTS"),
        ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a ²"}, "LSB_MCPU_HOSTS"),
        ({"PBS_JOBID": "7", "PBS_NODEFILE": "fifo"}, "PBS_NODEFILE, host file .*fifo: it is no regular file; or name"),
        ({"LSB_JOBID": "7", "LSB_DJOB_HOSTFILE": "/dev/zero"}, "LSB_DJOB_HOSTFILE, host file /dev/zero: it is no"),
    ],
)
def test_variables_that_no_batch_system_sets(tmp_path, monkeypatch, variables, words):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    with pytest.raises(LaunchError, match=words):
        allocations.allocation(variables)


@pytest.mark.parametrize("text", ["²", "٣²", "9" * 5000, "1e3", "-1", "", "0", "x"])
def test_numbers_of_slurm_that_are_none(text):
    """As if there were none: what a batch system says in a way of its own stops no launch."""
    nodes = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": text, "SLURM_NNODES": text}
    for variables in (SLURM | {"SLURM_NTASKS": text}, nodes):
        found = allocations.allocation(variables)
        assert found.ranks == found.nodes == (2 if "SLURM_JOB_NODELIST" in variables else 1)


def test_a_job_of_two_lines(tmp_path):
    """What `tilewave run --print` shows stays a comment and a command."""
    done = shown(tmp_path, env=SLURM | {"SLURM_JOB_ID": "7\ntouch pwned"})
    assert "touch pwned" not in done.stdout.splitlines()


def in_job(monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return allocations.allocation()


FORK = ["-bootstrap", "fork", "-hosts", "localhost:4"]


@pytest.mark.parametrize(
    "variables, there, options",
    [
        (SLURM, ["srun"], ["-hosts", "n1:2,n2:2", "-bootstrap", "slurm"]),
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"}, ["srun"], ["-bootstrap", "slurm"]),  # Hydra knows the hosts
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"}, [], FORK),
        (SLURM | {"SLURM_JOB_NODELIST": "n1"}, [], FORK),
        ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a 1 b 1"}, ["blaunch"], ["-hosts", "a:2,b:2", "-bootstrap", "lsf"]),
        ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a 8"}, [], FORK),
        ({"PBS_JOBID": "7", "PBS_NODEFILE": "lines"}, [], ["-hosts", "a:2,b:2", "-bootstrap", "ssh"]),
        (
            {"PBS_JOBID": "7", "PBS_NODEFILE": "lines"},
            ["pbs_tmrsh"],
            ["-hosts", "a:2,b:2", "-bootstrap", "rsh", "-bootstrap-exec", "pbs_tmrsh"],
        ),
    ],
)
def test_how_hydra_reaches_the_hosts_of_a_job(monkeypatch, tmp_path, variables, there, options):
    (tmp_path / "lines").write_text("a\na\nb\nb\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(allocations.shutil, "which", lambda name, **_: name if name in there else None)
    given = in_job(monkeypatch, variables)
    assert allocations.hydra_options(given, 4) == options
    assert allocations.hydra_options(given, 4, here=True) == FORK


@pytest.mark.parametrize(
    "variables, means",
    [
        (SLURM, "srun"),
        ({"SLURM_JOB_ID": "7", "SLURM_NNODES": "3"}, "srun"),
        ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a 1 b 1"}, "blaunch"),
    ],
)
def test_several_nodes_need_the_means_of_their_system(monkeypatch, variables, means):
    monkeypatch.setattr(allocations.shutil, "which", lambda name, **_: None)
    given = in_job(monkeypatch, variables)
    with pytest.raises(LaunchError, match=f"has {given.nodes} nodes, and there is no {means} in PATH.*--hosts"):
        allocations.hydra_options(given, 2)


def test_srun_gives_each_proxy_the_cpus_of_the_job():
    env = {"SLURM_CPUS_PER_TASK": "4", "SLURM_JOB_ID": "7"}
    assert allocations.slurm_environment(env) == {"SLURM_CPU_BIND": "none", "SLURM_CPUS_PER_TASK": None}


HELLO = "import tilewave as tw\nprint('rank', tw.rank, 'of', tw.size, tw.sum(tw.field((8,), init=1.0)))\n"
# What srun does for Hydra: so many copies of the proxy, each of which is told which node it is.
SRUN = 'while [ "$1" != -N ]; do shift; done; nodes=$2\nwhile [ "${1##*/}" != hydra_pmi_proxy ]; do shift; done\n'
SRUN += 'node=0; while [ $node -lt $nodes ]; do SLURM_NODEID=$node "$@" & node=$((node + 1)); done; wait'


def test_ranks_on_two_nodes_of_slurm(tmp_path, programs):
    (tmp_path / "hello.py").write_text(HELLO)
    programs("srun", 'echo "srun $*" >&2\n' + SRUN)
    env = SLURM | {"SLURM_TASKS_PER_NODE": "2(x2)", "SLURM_CPUS_PER_TASK": "2"}
    done = ended(*TILEWAVE, "run", "hello.py", cwd=tmp_path, env=env)
    assert sorted(done.stdout.splitlines()) == ["rank 0 of 2 8.0", "rank 1 of 2 8.0"], done.stderr
    assert "srun --nodelist n1,n2 -N 2 -n 2" in done.stderr and done.returncode == 0


FLUX = """
if [ "$1 $2" = "resource list" ]; then echo "2 8"; exit 0; fi
echo "flux $*" >&2
while [ "$1" != -c ]; do shift; done; shift 2
exec MPIEXEC -n 2 "$@"
"""


def test_ranks_of_a_flux_instance(tmp_path, programs):
    (tmp_path / "hello.py").write_text(HELLO)
    programs("flux", FLUX.replace("MPIEXEC", launch.find_mpiexec()))
    done = ended(*TILEWAVE, "run", "hello.py", cwd=tmp_path, env={"FLUX_URI": "local:///x"})
    assert sorted(done.stdout.splitlines()) == ["rank 0 of 2 8.0", "rank 1 of 2 8.0"], done.stderr
    assert "flux run -N 2 -n 2 -c 4 " in done.stderr and done.returncode == 0


@pytest.mark.parametrize(
    "ranks, words",
    [(1, "-N 1 -n 1 -c 4"), (3, "-N 2 -n 3 -c 2"), (8, "-N 2 -n 8 -c 1"), (9, "9 ranks; allowed: 1 to 8")],
)
def test_cores_of_a_flux_instance_are_shared(monkeypatch, programs, ranks, words):
    programs("flux", "echo 2 8")
    given = in_job(monkeypatch, {"FLUX_URI": "local:///x"})
    assert (given.system, given.ranks, given.nodes) == ("Flux", 2, 2)
    if ranks <= 8:
        assert allocations.flux_command(ranks, ["program"], given) == ["flux", "run", *words.split(), "program"]
        return
    with pytest.raises(LaunchError, match=words):
        allocations.flux_command(ranks, ["program"], given)


@pytest.mark.parametrize("answer", ["echo no >&2; exit 1", "echo x y", "echo 4 2"])
def test_a_flux_that_does_not_say_what_it_has(monkeypatch, programs, answer):
    programs("flux", answer)
    with pytest.raises(LaunchError, match="FLUX_URI is set, and `flux resource list` answers"):
        in_job(monkeypatch, {"FLUX_URI": "local:///x"})


def shown(tmp_path, *options, env=None):
    (tmp_path / "hello.py").write_text(HELLO)
    return ended(*TILEWAVE, "run", "--print", *options, "hello.py", "a b", cwd=tmp_path, env=env)


def test_the_command_is_shown_and_not_run(tmp_path, programs):
    programs("srun", "exit 1")
    env = SLURM | {"SLURM_TASKS_PER_NODE": "2(x2)", "SLURM_NTASKS": "4", "SLURM_CPUS_PER_TASK": "2"}
    done = shown(tmp_path, "--threads", "3", env=env)
    first, command = done.stdout.splitlines()
    said = "(SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE): 2 on n1, 2 on n2"
    assert first == f"# 4 ranks on 2 nodes of SLURM job 77 {said}"
    assert command.startswith("env -u SLURM_CPUS_PER_TASK SLURM_CPU_BIND=none TILEWAVE_PROGRESS=1 TILEWAVE_THREADS=3 ")
    assert f" -n 4 -hosts n1:2,n2:2 -bootstrap slurm {sys.executable} " in command
    assert command.endswith("tilewave.cli.on_rank =hello.py '=a b'") and done.returncode == 0


def test_the_command_that_is_shown_can_be_run(tmp_path):
    command = shown(tmp_path, "-n", "2").stdout
    done = ended("sh", "-c", command, cwd=tmp_path)
    assert sorted(done.stdout.splitlines()) == ["rank 0 of 2 8.0", "rank 1 of 2 8.0"], command + done.stderr


def test_hosts_of_a_file_and_what_is_refused(tmp_path):
    (tmp_path / "hosts").write_text("a slots=2\nb:3\n")
    done = shown(tmp_path, "--hostfile", "hosts")
    assert "# 5 ranks on the hosts that were named: a:2,b:3" in done.stdout and "-n 5 -hosts a:2,b:3" in done.stdout
    both = shown(tmp_path, "--hostfile", "hosts", "--hosts", "a")
    assert both.returncode == 2 and "--hosts and --hostfile were given; allowed: one of them" in both.stderr
    none = shown(tmp_path, "--hostfile", "none")
    assert none.returncode == 2 and none.stderr == "tilewave: host file none: No such file or directory\n"
