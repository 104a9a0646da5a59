"""Two hosts, of which one may use half a CPU: blocks in proportion, and the same bits."""

import glob
import json
import sys

import pytest

pytestmark = pytest.mark.cluster
PROGRAM = """
import json, sys, warnings
import numpy as np
import tilewave as tw
from tilewave import _core
from tilewave.machine.numbers import NUMBERS
from tilewave.nests.plan import kernel_maker
warnings.simplefilter("ignore")

@tw.nest
def relax(A, i, j, k):
    A[i, j, k] = np.sqrt(A[i-1, j, k]) + np.sqrt(A[i, j-1, k]) + np.sqrt(A[i, j, k-1])

@tw.nest
def heat(A, t, i, j):
    A[t+1, i, j] = A[t, i, j] + 0.125 * (A[t, i-1, j] + A[t, i+1, j] + A[t, i, j-1] + A[t, i, j+1] - 4 * A[t, i, j])

def start(*at):
    return 1.0 + sum((n + 1) * index for n, index in enumerate(at)) % 7

# Plans follow from the parts of a CPU alone: links and bodies have numbers, whatever else runs here.
context, found = tw.Context(threads=1), {}
machine, usual = context._core.machine(), _core.Machine()
for name in NUMBERS:
    setattr(machine, name, getattr(usual, name))
machine.other_host = usual.other_host
context._core.use_machine(machine)
kernel_maker.sampled = lambda *_: [(50, 20000, 4e-5, 0.0), (500, 12000, 2.5e-5, 0.0), (4, 8, 2e-8, 0.0)]
cases = {"relax": (relax, (48, 48, 900), {}, (1, 1, 2)), "heat": (heat, (900, 800), {"steps": 30}, (1, 2, 1))}
for name, (body, shape, more, grid) in cases.items():
    results, plans, points = [], [], []
    for choices in ({"grid": grid}, {"grid": grid, "weights": ()}):
        A = tw.field(shape, init=start, context=context)
        plan = tw.run(body, A=A, **more, context=context, plan=choices).plan
        plans.append((plan.weights, plan.explain().splitlines()[0]))
        results.append(A.gather())
        cut = grid.index(2) - (len(grid) - len(shape))
        points.append(A.owned[cut].stop - A.owned[cut].start)
    if context.rank == 0:
        found[name] = {"plans": plans, "points": points, "equal": bool(np.array_equal(*results))}
if context.rank == 0:
    machine = context._core.machine()
    found["cpus"] = [machine.set_cpus[s] for s in machine.set_of]
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
"""


def test_a_host_with_half_a_cpu_has_half_the_points(tmp_path, cluster_tool, cluster_name):
    (script := tmp_path / "program.py").write_text(PROGRAM)
    try:
        with cluster_tool.Cluster(2, "1gbit", name=cluster_name, cpus=(1, 0.5)) as box:
            done = box.run([sys.executable, str(script), str(tmp_path / "found.json")], timeout=300)
            assert box.pids() == set()  # nor what has taken half of the CPU
    except cluster_tool.ClusterError as error:
        if "no limit of CPU time" in str(error):
            pytest.skip(str(error))
        raise
    assert done.returncode == 0, done.stdout + done.stderr
    assert glob.glob(f"{cluster_tool.GROUPS}/{cluster_name}-*") == []
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["cpus"] == [1, 0.5]
    for name, points in (("relax", [600, 450]), ("heat", [600, 450])):
        (weights, why), (even, _) = found[name]["plans"]
        assert (weights, even) == ([100, 50], []) and found[name]["points"] == points and found[name]["equal"]
        assert "points in proportion to 100 : 50" in why and "even blocks are predicted to take" in why


def test_what_hosts_may_not_use_is_taken_from_each_of_their_cpus(cluster_tool, monkeypatch):
    monkeypatch.setattr(cluster_tool, "cpu_sets", lambda hosts: ["0,1", "2,3"] if hosts == 2 else ["0,1,2,3"] * hosts)
    taken = [command[3:4] + command[-2:] for command in cluster_tool.Cluster(2, cpus=(2, 0.5))._taking(2)]
    assert [(host, cpu) for host, _, cpu in taken] == [("tw-2", "2"), ("tw-2", "3")]
    assert all(0.75 < float(part) < 0.76 for _, part, _ in taken)
    assert not [*cluster_tool.Cluster(3, cpus=(1, 1, 0.5))._taking(3)] and not [*cluster_tool.Cluster(2)._taking(2)]


def test_wrong_limits_are_refused(cluster_tool):
    for cpus in ((1,), (1, 0), (1, -1, 2)):
        with pytest.raises(cluster_tool.ClusterError, match="allowed: a number from 0.01 to 1000 for each of 2 hosts"):
            cluster_tool.Cluster(2, cpus=cpus)
