"""A sweep on three hosts of a cluster in one box equals plain loops."""

import os
import subprocess
import sys

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
        done = box.run([sys.executable, str(script)], ranks=3, netmod=netmod, timeout=120)
    assert "3 overlapping equal True" in done.stdout and "3 blocking equal True" in done.stdout, (
        done.stdout + done.stderr
    )
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    assert cluster_name not in listed and os.getuid() == 0
