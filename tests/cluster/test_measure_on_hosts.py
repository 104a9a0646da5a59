"""Where the truth is known, measuring finds it: the line rate of a cluster in a box."""
import json
import sys

import pytest

pytestmark = pytest.mark.cluster
LINE_BYTES_S = 119.7e6  # payload of 1 Gb/s Ethernet under TCP
PROGRAM = """
import sys, tilewave as tw, warnings
warnings.simplefilter("ignore")
from tilewave.measure import _measure
context = tw.Context()
found = _measure(context, False, float(sys.argv[1]), save=False)
if context.rank == 0:
    found.save(sys.argv[2])
"""


@pytest.mark.parametrize("rate, gigabits", [("100mbit", 0.1), ("1gbit", 1.0)])
def test_bandwidth_is_the_line_rate(tmp_path, cluster_tool, cluster_name, rate, gigabits):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with cluster_tool.Cluster(hosts=2, rate=rate, name=cluster_name) as box:
        done = box.run([sys.executable, str(script), "8", str(tmp_path / "machine.json")], ranks=2, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "machine.json").read_text())
    assert found["host_of"] == [0, 1] and found["same_host"] is None
    assert 1 / found["other_host"]["byte_s"] == pytest.approx(gigabits * LINE_BYTES_S, rel=0.03)
    # A pair in both directions at once, each of them with a line of its own.
    assert found["other_host"]["crowd"] == pytest.approx(1, abs=0.35)


def test_hosts_and_ranks_of_a_host(tmp_path, cluster_tool, cluster_name):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with cluster_tool.Cluster(hosts=2, rate="1gbit", name=cluster_name) as box:
        done = box.run([sys.executable, str(script), "1", str(tmp_path / "machine.json")], ranks=3, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "machine.json").read_text())
    assert found["host_of"] == [0, 1, 1] and found["conditions"]["ranks_per_host"] == [1, 2]
    assert found["other_host"]["latency_s"] > 0 and found["same_host"]["latency_s"] > 0 and len(found["memory"]) == 2
