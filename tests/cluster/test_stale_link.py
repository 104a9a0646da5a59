"""A link that becomes slow while a program runs: a report names its bandwidth, and nothing is measured again."""

import re
import sys

import pytest

pytestmark = pytest.mark.cluster
PROGRAM = """
import subprocess
import tilewave as tw
@tw.nest
def relax(A, i, j, k):
    A[i, j, k] = 0.5 * (A[i-1, j, k] + A[i, j-1, k])
context = tw.Context(threads=1)
tw.measure(quick=True, context=context)
A = tw.field((5, 129, 4097), "f8", init=lambda i, j, k: 1.0, context=context)
def run(times):
    for _ in range(times):
        plan = {"grid": (2, 1, 1), "tile": (2, 128, 256), "schedule": "overlapping", "mapping_dim": 2}
        report = tw.run(relax, A=A, context=context, plan=plan)
    return report
run(2)
before = context._machine
subprocess.run("tc qdisc add dev eth0 root tbf rate 100mbit burst 128k latency 100ms".split(), check=True)
report = run(3)
if context.rank == 0:
    print("the machine stays", context._machine is before, "and stale is:", report.stale)
"""


def test_the_report_names_the_link(tmp_path, cluster_tool, cluster_name):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with cluster_tool.Cluster(hosts=2, rate="none", name=cluster_name) as box:
        env = {"TILEWAVE_MACHINE": "", "TILEWAVE_CACHE_DIR": str(tmp_path / "cache")}
        done = box.run([sys.executable, str(script)], timeout=120, env=env)
    text = re.search(r"the machine stays True and stale is: (.*)", done.stdout).group(1)
    assert "bandwidth between ranks of two hosts (other_host)" in text, done.stdout + done.stderr
