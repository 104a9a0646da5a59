"""Hosts that two links join: what `tilewave run` sets, and that bytes of each message take both."""

import json
from pathlib import Path

import pytest
from launches import TILEWAVE, ended

pytestmark = pytest.mark.cluster
BYTES = 4 << 20
PROGRAM = """
import json, os
from pathlib import Path
import numpy as np
import tilewave as tw

def sent():
    devices = sorted(Path("/sys/class/net").glob("eth*"))
    return [int((device / "statistics/tx_bytes").read_text()) for device in devices]

context = tw.Context(threads=1)
found = {}
for size in (20 << 10, 4 << 20):
    count = (4 << 20) // size
    part = np.zeros((count, size // 8)) + context.rank
    whole = np.zeros((count, context.size * size // 8))
    before = sent()
    for row in range(count):
        tw.patterns.spread(part[row : row + 1], out=whole[row : row + 1], context=context)
    assert (whole[:, ::size // 8] == np.arange(context.size)).all()
    found[size] = [after - first for after, first in zip(sent(), before)]
settings = {name: os.environ[name] for name in os.environ if name.startswith("UCX_")}
if context.rank == 0:
    print("found", json.dumps([found, settings]))
"""
SETTINGS = {"UCX_MAX_EAGER_RAILS": "2", "UCX_MAX_RNDV_RAILS": "2", "UCX_TCP_RX_SEG_SIZE": "16k"}


def run_from_first_host(box, folder, script, env):
    """`tilewave run` on both hosts, started on the first one; what rank 0 found."""
    (folder / "program.py").write_text(script)
    reach = folder / "reach"  # in place of ssh
    reach.write_text(box.launcher(2))
    reach.chmod(0o755)
    command = "ip", "netns", "exec", f"{box.name}-1", *TILEWAVE, "run", "--hosts", "10.77.0.1,10.77.0.2"
    env = {"HYDRA_LAUNCHER_EXEC": str(reach), "HYDRA_LAUNCHER": "ssh", "HYDRA_IFACE": "eth0", **env}
    done = ended(*command, folder / "program.py", env=env)
    assert done.returncode == 0 and not box.pids(), done.stdout + done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("found "))
    return json.loads(line.removeprefix("found "))


@pytest.mark.parametrize("links, given, parts", [(1, {}, 1), (2, {}, 2), (2, {"UCX_NET_DEVICES": "eth0"}, 1)])
def test_messages_take_all_cards(tmp_path, cluster_tool, cluster_name, links, given, parts):
    with cluster_tool.Cluster(2, "none", name=cluster_name, links=links) as box:
        found, settings = run_from_first_host(box, tmp_path, PROGRAM, given)
    assert settings == given | (SETTINGS if parts == 2 else {})
    for size, sent in found.items():
        assert len(sent) == links and sum(sent) >= BYTES, (size, sent)
        carried = [count > 0.4 * sum(sent) for count in sent]
        assert sum(carried) == parts, (size, sent)


def test_the_benchmark_has_all_cases(tmp_path, cluster_tool, monkeypatch):
    from bench.cards import cards

    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    cards(json_path=tmp_path / "rows.json", quick=True, args=["--ranks", "4"])
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    cases = {"spread, 0.1 MB a rank", "halo, faces of 64x64", "product, n = 64"}
    assert {row["case"] for row in rows} == cases and len(rows) == 12 and all(row["value"] > 0 for row in rows)


def test_wrong_numbers_of_links_are_refused(cluster_tool):
    for links in (0, 5):
        with pytest.raises(cluster_tool.ClusterError, match=f"{links} links; allowed: 1 to 4"):
            cluster_tool.Cluster(2, links=links)
