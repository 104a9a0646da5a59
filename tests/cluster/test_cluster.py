"""The cluster in a box: its rates, and that nothing of it survives."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from launches import wait_until

pytestmark = pytest.mark.cluster
TOOL = Path(__file__).resolve().parents[2] / "tools" / "cluster.py"

MESSAGES = """
    import subprocess
    from pathlib import Path
    import numpy as np
    from mpi4py import MPI
    world, sent = MPI.COMM_WORLD, Path("/sys/class/net/eth0/statistics/tx_bytes")
    data, before = np.full(3_000_000, world.rank, "u1"), int(sent.read_text())
    for sender in (0, 1):
        if world.rank == sender:
            world.Send(data, 1 - sender)
        else:
            world.Recv(data, sender)
    world.Barrier()
    carried = int(sent.read_text()) - before >= data.nbytes
    shown = subprocess.run("tc qdisc show dev eth0".split(), capture_output=True, text=True, check=True).stdout
    print(world.gather((bool((data == 0).all()), carried, "tbf" in shown and "rate 1Gbit" in shown)) or "")
"""


def cli(*arguments, **more):
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, timeout=300, **more)


@pytest.fixture
def box(cluster_tool, cluster_name):
    with cluster_tool.Cluster(2, "1gbit", name=cluster_name) as made:
        yield made
    assert cluster_tool.namespaces(cluster_name) == []


@pytest.mark.parametrize("netmod", ["ucx", "ofi"])
def test_messages_go_over_links_of_the_line_rate(box, netmod):
    """What a link carries in a second is the kernel's to keep: that depends on what else runs here."""
    pytest.importorskip("mpi4py")
    done = box.run([sys.executable, "-c", textwrap.dedent(MESSAGES)], netmod=netmod, timeout=300)
    assert done.returncode == 0 and str([(True,) * 3] * 2) in done.stdout, done.stdout + done.stderr


def test_hosts_are_separate(box):
    show = "echo $(hostname) $PMI_RANK $(ls /dev/shm | wc -l) $TILEWAVE_THREADS; touch /dev/shm/x"
    done = box.run(["sh", "-c", show], ranks=3, threads=2, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = sorted(line.split() for line in done.stdout.splitlines())
    name = box.name
    assert [row[:2] for row in rows] == [[f"{name}-1", "0"], [f"{name}-2", "1"], [f"{name}-2", "2"]]
    assert all(row[3] == "2" for row in rows)
    assert not Path("/dev/shm/x").exists()


def test_cpus_are_shared_out(cluster_tool):
    cpus = len(os.sched_getaffinity(0))
    sets = [set(s.split(",")) for s in cluster_tool.cpu_sets(cpus)]
    assert all(len(s) == 1 for s in sets) and len(set.union(*sets)) == cpus
    assert len(set(cluster_tool.cpu_sets(cpus + 1))) == 1


def test_nothing_is_left_after_a_failure(cluster_tool, cluster_name):
    with pytest.raises(ZeroDivisionError), cluster_tool.Cluster(2, "1gbit", name=cluster_name) as box:
        script = "[ $PMI_RANK = 1 ] && exit 3; sleep 100"
        assert box.run(["sh", "-c", "exit 3"], timeout=300).returncode == 3
        with pytest.raises(subprocess.TimeoutExpired):
            box.run(["sh", "-c", script], timeout=2)
        assert box.pids() == set()
        raise ZeroDivisionError
    assert cluster_tool.namespaces(cluster_name) == []


def test_a_killed_run_leaves_nothing(box):
    command = [sys.executable, TOOL, "run", "--name", box.name, "--", "sleep", "100"]
    for signum, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as run:
            wait_until(lambda: sum("sleep" in name(p) for p in box.pids()) == 2)
            refused = cli("up", "-n", "2", "--name", box.name)
            assert refused.returncode == 2 and "is running a command" in refused.stderr
            run.send_signal(signum)
            assert run.wait(300) == code
        wait_until(lambda: box.pids() == set())
    assert box.run(["true"], timeout=300).returncode == 0


def test_up_twice_and_down_twice(cluster_tool, cluster_name):
    try:
        for hosts in (2, 3):
            done = cli("up", "-n", str(hosts), "--rate", "100mbit", "--name", cluster_name)
            assert done.returncode == 0, done.stderr
            assert len(cluster_tool.namespaces(cluster_name)) == hosts + 1
    finally:
        for _ in range(2):
            assert cli("down", "--name", cluster_name).returncode == 0
    assert cluster_tool.namespaces(cluster_name) == []
    done = cli("run", "--name", cluster_name, "--", "true")
    assert done.returncode == 2 and "up --name" in done.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("up", "-n", "0"), "allowed: 1 to 200"),
        (("up", "--rate", "fast"), "allowed: none, or"),
        (("up", "--name", "A b"), "lower-case"),
    ],
)
def test_bad_arguments(arguments, words):
    done = cli(*arguments)
    assert done.returncode == 2 and words in done.stderr


def test_missing_tools_are_named(tmp_path):
    done = cli("up", "--name", "twnone", env={"PATH": str(tmp_path)})
    assert done.returncode == 2 and "apt install iproute2" in done.stderr


def name(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""
