"""A link that becomes slow while a program runs: its bandwidth is found stale, and measured again."""

import re
import sys

import pytest

pytestmark = pytest.mark.cluster
PROGRAM = """
import subprocess, sys, warnings
import numpy as np, tilewave as tw
warnings.simplefilter("ignore")
@tw.nest
def relax(A, i, j, k):
    A[i, j, k] = 0.5 * (A[i-1, j, k] + A[i, j-1, k])
context = tw.Context(threads=1)
A = tw.field((5, 129, 4097), "f8", init=lambda i, j, k: 1.0, context=context)
def run(times):
    for _ in range(times):
        tw.run(relax, A=A, context=context, grid=(2, 1, 1), tile=(2, 128, 256), schedule="overlapping", mapping_dim=2)
run(2)
fast = context._machine
subprocess.run("tc qdisc add dev eth0 root tbf rate 100mbit burst 128k latency 100ms".split(), check=True)
warnings.simplefilter("always")
run(6)
slow = context._machine
if context.rank == 0:
    speeds = 1 / fast.other_host.byte_s, 1 / slow.other_host.byte_s
    print("bytes a second", *speeds, "memory kept", slow.memory == fast.memory)
"""


def test_auto_follows_the_link(tmp_path, cluster_tool, cluster_name):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with cluster_tool.Cluster(hosts=2, rate="none", name=cluster_name) as box:
        done = box.run(
            [sys.executable, str(script)],
            timeout=120,
            env={"TILEWAVE_MACHINE": "auto", "TILEWAVE_CACHE_DIR": str(tmp_path / "cache")},
        )
    before, after = map(float, re.search(r"bytes a second (\S+) (\S+) memory kept True", done.stdout).groups())
    assert before > 5 * 12.5e6 > after > 12.5e6 / 5, done.stdout + done.stderr
    assert done.stderr.count("looks stale is the bandwidth between ranks of two hosts (other_host)") == 1, done.stderr
