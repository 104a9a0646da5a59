"""Runs on hosts of a cluster in one box: sweeps, a link that becomes slow, a rank that ends after another's error."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.cluster
PROGRAM = """
import numpy as np, tilewave as tw, warnings
warnings.simplefilter("ignore")
@tw.nest
def mix(A, B, i, j, k):
    A[i, j, k] = 0.3 * A[i-1, j-1, k] + 0.2 * A[i, j-1, k] + A[i, j, k-1] * 0.1 + B[i-1, j, k]
context = tw.Context(threads=2)
rng = np.random.default_rng(6)
start, B = rng.random((10, 12, 30)), rng.random((10, 12, 30))
for schedule in ("overlapping", "blocking"):
    A = tw.field(start.shape, init=start, context=context)
    report = tw.run(mix, A=A, B=B, context=context, plan={"schedule": schedule, "chunk_bytes": 256})
    whole = A.gather()
    if context.rank == 0:
        plain = start.copy()
        mix.reference(mix.iteration_box(plain.shape), {"A": plain, "B": B})
        print(context.size, schedule, "equal", np.array_equal(whole, plain))
"""


@pytest.mark.parametrize("netmod", ["ucx", "ofi"])
def test_sweep(tmp_path, cluster_tool, cluster_name, netmod):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with cluster_tool.Cluster(hosts=3, rate="1gbit", name=cluster_name) as box:
        done = box.run([sys.executable, str(script)], ranks=3, netmod=netmod, timeout=300)
    assert "3 overlapping equal True" in done.stdout and "3 blocking equal True" in done.stdout, (
        done.stdout + done.stderr
    )
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    assert cluster_name not in listed and os.getuid() == 0


SCRIPT = """
    import sys, time
    import tilewave as tw
    A = tw.field((6, 6), init=1.0)
    tw.sum(A)
    if tw.rank == 1:
        raise ValueError("of this rank alone")
    time.sleep(3)
    print("rank 0 ends", flush=True)
"""


@pytest.mark.parametrize("netmod", ["ucx", "ofi"])
def test_a_rank_that_ends_after_another_has_raised(cluster_tool, cluster_name, netmod):
    with cluster_tool.Cluster(2, "1gbit", name=cluster_name) as box:
        done = box.run([sys.executable, "-c", textwrap.dedent(SCRIPT)], netmod=netmod, timeout=300)
    assert done.returncode == 1 and "rank 0 ends" in done.stdout
    assert "of this rank alone" in done.stderr and "BAD TERMINATION" not in done.stdout + done.stderr


SLOW_LINK = """
import subprocess
import tilewave as tw
@tw.nest
def relax(A, i, j, k):
    A[i, j, k] = 0.5 * (A[i-1, j, k] + A[i, j-1, k])
context = tw.Context(threads=1)
from tilewave.machine import known, machine
found = tw.measure(quick=True, context=context)
found.other_host.latency_s, found.other_host.byte_s = 2e-5, 8e-10
found.other_host.transfer_s = machine.Curve([1, 1 << 24], [2e-5, 2e-5 + 8e-10 * (1 << 24)])
fresh = known.startup_machine(context)
fresh.latency_s, fresh.byte_s = 2e-5, 8e-10
context._startup_machine = fresh
known.use(context, found)
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
    script.write_text(SLOW_LINK)
    with cluster_tool.Cluster(hosts=2, rate="none", name=cluster_name) as box:
        env = {"TILEWAVE_MACHINE": "", "TILEWAVE_CACHE_DIR": str(tmp_path / "cache")}
        done = box.run([sys.executable, str(script)], timeout=300, env=env)
    text = re.search(r"the machine stays True and stale is: (.*)", done.stdout).group(1)
    assert "bandwidth between ranks of two hosts (other_host)" in text, done.stdout + done.stderr
