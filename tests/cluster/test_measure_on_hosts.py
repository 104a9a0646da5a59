"""What is measured of hosts, their ranks and links, on a cluster in a box: not how fast these are beside other work."""

import json
import sys

import pytest

pytestmark = pytest.mark.cluster
PROGRAM = """
import sys, tilewave as tw, warnings
warnings.simplefilter("ignore")
from tilewave.machine.measure import measured
context = tw.Context()
found = measured(context, False, float(sys.argv[1]), save=False)
if context.rank == 0:
    found.save(sys.argv[2])
"""
AGAIN = """
import sys
import tilewave as tw
from tilewave.machine import busy, known
from tilewave.machine.measure import measured
busy.queued_s = lambda: 0.0
startup = known.startup_machine
def with_byte_s(context):
    machine = startup(context)
    machine.byte_s = float(sys.argv[1])
    return machine
known.startup_machine = with_byte_s
context = tw.Context()
if context.rank == 0:
    print("kept" if context._machine else "none")
if not context._machine:
    measured(context, True, 0.3)
"""


def measured(box, folder, budget_s, ranks, env=None):
    script = folder / "program.py"
    script.write_text(PROGRAM)
    done = box.run(
        [sys.executable, str(script), str(budget_s), str(folder / "machine.json")], ranks=ranks, env=env, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "machine.json").read_text())


@pytest.mark.parametrize("links", [1, 2])
def test_links_of_hosts(tmp_path, cluster_tool, cluster_name, links):
    ranks, count = 2 * links, str(links)
    rails = {"UCX_MAX_EAGER_RAILS": count, "UCX_MAX_RNDV_RAILS": count, "UCX_TCP_RX_SEG_SIZE": "16k"}
    with cluster_tool.Cluster(hosts=2, rate="100mbit", name=cluster_name, links=links) as box:
        found = measured(box, tmp_path, 1, ranks, rails)
    assert found["host_of"] == sorted([0, 1] * links) and (found["same_host"] is None) == (ranks == 2)
    assert found["other_host"]["byte_s"] > 0


def test_wrong_numbers_of_links_are_refused(cluster_tool):
    for links in (0, 5):
        with pytest.raises(cluster_tool.ClusterError, match=f"{links} links; allowed: 1 to 4"):
            cluster_tool.Cluster(2, links=links)


def test_hosts_and_ranks_of_a_host(tmp_path, cluster_tool, cluster_name):
    with cluster_tool.Cluster(hosts=2, rate="1gbit", name=cluster_name) as box:
        found = measured(box, tmp_path, 1, ranks=3)
    assert found["host_of"] == [0, 1, 1] and found["conditions"]["ranks_per_host"] == [1, 2]
    assert found["other_host"]["latency_s"] > 0 and found["same_host"]["latency_s"] > 0 and len(found["memory"]) == 2


def test_a_context_alone_knows_the_hosts_and_their_network(tmp_path, cluster_tool, cluster_name):
    """What predictions have of the network where nothing is read or measured, as in C++."""
    script = tmp_path / "program.py"
    script.write_text(
        "import tilewave as tw, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "context = tw.Context()\n"
        "A = tw.linalg.matrix((64, 64), init=1.0, context=context)\n"
        "text = tw.linalg.plan_matmul(A, A).explain()\n"
        "machine = context._core.machine()\n"
        "if context.rank == 0:\n"
        "    print(list(machine.host_of), machine.other_host.byte_s, context._machine.other_host.byte_s)\n"
        "    print(text)\n"
    )
    with cluster_tool.Cluster(hosts=2, rate="1gbit", name=cluster_name) as box:
        done = box.run([sys.executable, str(script)], ranks=3, env={"TILEWAVE_MACHINE": "default"}, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    first, *text = done.stdout.splitlines()
    *hosts, byte_s, known_byte_s = first.split()
    assert hosts == ["[0,", "1,", "1]"] and byte_s == known_byte_s and float(byte_s) > 0, first
    assert "nothing measured: on one host 5 µs and 10 GB/s (assumed); between hosts" in "\n".join(text), text


def test_a_machine_of_another_rate_is_not_used(tmp_path, cluster_tool, cluster_name):
    """The same host names, another network."""
    script = tmp_path / "program.py"
    script.write_text(AGAIN)
    env = {"TILEWAVE_CACHE_DIR": str(tmp_path / "cache"), "TILEWAVE_MACHINE": ""}
    said = []
    with cluster_tool.Cluster(hosts=2, rate="1gbit", name=cluster_name) as box:
        for byte_s in ("8e-9", "9e-9", "1.6e-7"):
            done = box.run([sys.executable, str(script), byte_s], ranks=2, env=env, timeout=300)
            assert done.returncode == 0, done.stdout + done.stderr
            said.append(done.stdout.strip())
            assert ("now takes" in done.stderr) == (byte_s == "1.6e-7"), done.stderr
    assert said == ["none", "kept", "none"]
