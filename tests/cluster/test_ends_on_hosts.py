"""A rank that ends long after another one has raised, over a network: it must not wait for it, nor send to it."""

import sys
import textwrap

import pytest

pytestmark = pytest.mark.cluster

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
        done = box.run([sys.executable, "-c", textwrap.dedent(SCRIPT)], netmod=netmod, timeout=60)
    assert done.returncode == 1 and "rank 0 ends" in done.stdout
    assert "of this rank alone" in done.stderr and "BAD TERMINATION" not in done.stdout + done.stderr
