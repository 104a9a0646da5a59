"""``tilewave run --hostfile`` on hosts that are reached as with ssh."""

import pytest
from launches import TILEWAVE, ended

pytestmark = pytest.mark.cluster
PROGRAM = """
import socket
import numpy as np
import tilewave as tw
@tw.nest
def relax(A, i, j):
    A[i, j] = 0.5 * A[i-1, j] + 0.25 * A[i, j-1]
A = tw.field((60, 70), init=lambda i, j: np.sin(i + 0.3 * j))
tw.run(relax, A=A)
print(socket.gethostname(), tw.rank, tw.size, f"{tw.sum(A):.17g}", flush=True)
"""


def test_ranks_run_on_the_hosts_of_a_file(tmp_path, cluster_tool, cluster_name):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "hosts").write_text("# two nodes\n10.77.0.1 slots=1\n10.77.0.2:2\n")
    alone = ended(*TILEWAVE, "run", tmp_path / "program.py").stdout.split()
    with cluster_tool.Cluster(2, "none", name=cluster_name) as box:
        reach = tmp_path / "reach"  # in place of ssh
        reach.write_text(box.launcher(2))
        reach.chmod(0o755)
        command = "ip", "netns", "exec", f"{box.name}-head", *TILEWAVE, "run", "--hostfile", tmp_path / "hosts"
        env = {"HYDRA_LAUNCHER_EXEC": str(reach), "HYDRA_LAUNCHER": "ssh", "HYDRA_IFACE": "bridge0"}
        done = ended(*command, tmp_path / "program.py", env=env)
        assert done.returncode == 0 and not box.pids(), done.stdout + done.stderr
    hosts = [f"{box.name}-{number}" for number in (1, 2, 2)]
    lines = sorted(line.split() for line in done.stdout.splitlines())
    assert lines == sorted([host, str(rank), "3", alone[3]] for rank, host in enumerate(hosts)), done.stdout
