"""How many lanes ranks have where nobody says: the CPUs allowed to them, shared by the ranks of the host."""

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from launches import ended

import tilewave as tw
from tilewave import _core

BIN = Path(sys.executable).parent
ALLOWED = sorted(os.sched_getaffinity(0))
several = pytest.mark.skipif(len(ALLOWED) < 2, reason="one CPU")

SCRIPT = """
import json, sys
import numpy as np
{first}
import tilewave as tw

@tw.nest
def relax(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]

A = tw.field((64, 64), init=1.0)
report = tw.run(relax, A=A)
context = A.context
found = [context.rank, context.size, context.threads, context.share, str(report)]
print("found " + json.dumps(found) + "\\n", end="", flush=True)
"""


def lines(tmp_path, command, cpus, first="", **env):
    """What each rank found: [rank, ranks, lanes, CPUs, report]."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(first=first))
    done = subprocess.run(
        [*map(str, command), str(script)],
        text=True,
        capture_output=True,
        timeout=300,
        cwd=tmp_path,
        env={**{k: v for k, v in os.environ.items() if k != "TILEWAVE_THREADS"}, **env},
        preexec_fn=lambda: os.sched_setaffinity(0, ALLOWED[:cpus]),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(json.loads(line.split("found ")[1]) for line in done.stdout.splitlines() if "found " in line)


def needs_mpi4py():
    if importlib.util.find_spec("mpi4py") is None:  # not imported here: this process would be a launch of one rank
        pytest.skip("no mpi4py")


@pytest.mark.parametrize("start", ["tilewave", "mpiexec", "mpi4py", "plain"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("cpus", [1, pytest.param(2, marks=several)])
def test_lanes_where_nobody_says(tmp_path, start, ranks, cpus):
    first = "import mpi4py.MPI" if start == "mpi4py" else ""
    if start == "plain":
        if ranks > 1:
            pytest.skip("one process")
        command = [sys.executable]
    else:
        if first:
            needs_mpi4py()
        command = (
            [BIN / "tilewave", "run", "-n", ranks]
            if start == "tilewave"
            else [BIN / "mpiexec", "-n", ranks, sys.executable]
        )
    found = lines(tmp_path, command, cpus, first)
    share = max(cpus // ranks, 1)
    assert [each[:4] for each in found] == [[rank, ranks, share, share] for rank in range(ranks)]
    assert f"of {share} CPU" in found[0][4]


def default(threads):
    return f"import tilewave; tilewave.set_default(threads={threads})"


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(
    "options, first, expected",
    [(["--threads", 3], "", 3), ([], default(2), 2), (["--threads", 1], default(None), 1)],
)
def test_who_says_how_many_is_obeyed(tmp_path, ranks, options, first, expected):
    found = lines(tmp_path, [BIN / "tilewave", "run", "-n", ranks, *options], 2, first)
    assert {each[2] for each in found} == {expected}


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_report_says_who_said_how_many(tmp_path, ranks):
    share = max(min(len(ALLOWED), 2) // ranks, 1)
    found = lines(tmp_path, [BIN / "tilewave", "run", "-n", ranks], 2, TILEWAVE_THREADS="1")
    assert {each[2] for each in found} == {1}
    assert f"1 of {share} CPU" in found[0][4] and ("the context has 1 thread" in found[0][4]) == (share > 1)


@several
def test_a_part_of_a_launch_leaves_the_others_theirs(tmp_path):
    needs_mpi4py()
    alone = "import tilewave, mpi4py.MPI\ntilewave.set_default(comm=mpi4py.MPI.COMM_SELF)"
    found = lines(tmp_path, [BIN / "mpiexec", "-n", 2, sys.executable], 2, alone)
    assert [each[:4] for each in found] == [[0, 1, 1, 1], [0, 1, 1, 1]]


@tw.nest
def relax(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


@tw.nest
def running(s, A, i, j):
    s[i] = s[i-1] + A[i, j]


def lanes_row(report):
    return next((line.split(None, 1)[1] for line in str(report).splitlines() if line.startswith("lanes ")), None)


@several
def test_the_report_says_why_a_rank_has_fewer_lanes_than_cpus(monkeypatch):
    monkeypatch.delenv("TILEWAVE_THREADS", raising=False)
    context, cpus = tw.Context(), len(ALLOWED)
    assert (
        context.threads
        == context.share
        == min(cpus, math.floor(_core.cpu_quota()) if _core.cpu_quota() < cpus else cpus)
    )
    of = f"of {context.share} CPUs"
    ones = np.ones((40, 50))
    assert (
        lanes_row(tw.run(relax, A=ones.copy(), context=context, plan={"threads": 1}))
        == f"1 {of}: as threads in plan= says"
    )
    assert (
        lanes_row(tw.run(relax, A=ones.copy(), context=context, plan={"factors": (1, 1)}))
        == f"1 {of}: as factors in plan= says"
    )
    assert (
        lanes_row(tw.run(running, s=np.zeros(40), A=ones, context=context))
        == f"1 {of}: points go in the order of the loops"
    )
    assert (
        lanes_row(tw.run(relax, A=ones.copy(), context=context, plan={"threads": context.share}))
        == f"{context.share} {of}"
    )
    one = tw.Context(threads=1)
    assert lanes_row(tw.run(relax, A=ones.copy(), context=one)) == f"1 {of}: the context has 1 thread"
    plan = tw.plan(relax, A=ones.copy(), context=one)
    assert f"1 {of}" in plan.explain()
    assert lanes_row(tw.run(relax, A=ones.copy(), context=context, plan=plan)) == f"1 {of}: as the given plan says"
    small = tw.run(relax, A=np.ones((3, 3)), context=context)  # hand-overs take longer than nine points
    assert lanes_row(small) in (
        f"1 {of}: fewer are predicted to be faster",
        f"1 {of}: the loops cannot be cut for more",
    )
    again = tw.run(relax, A=np.ones((3, 3)), context=context, over={"i": (1, 2)})  # keeps that plan
    assert lanes_row(again).startswith(f"1 {of}: ")


def tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


V1 = "33 24 0:29 {group} /cg/cpu rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
V2 = "31 23 0:26 {group} /cg rw shared:4 master:1 - cgroup2 cgroup2 rw\n"
ROOT_V1, ROOT_V2, DOCKER = V1.format(group="/"), V2.format(group="/"), V2.format(group="/docker/x")


def test_no_control_groups(tmp_path):
    assert _core.cpu_quota(tree(tmp_path, {})) == math.inf


@pytest.mark.parametrize(
    "group, mounts, files, cpus",
    [
        ("0::/a/b\n", ROOT_V2, {"a/b/cpu.max": "max 100000\n"}, math.inf),
        ("0::/a/b\n", ROOT_V2, {"a/b/cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b\n", ROOT_V2, {"a/b/cpu.max": "400000 100000\n", "a/cpu.max": "40000 20000\n"}, 2),
        ("0::/\n", ROOT_V2, {"cpu.max": "50000 100000\n"}, 0.5),
        ("0::/docker/x/job\n", DOCKER, {"job/cpu.max": "300000 100000\n"}, 3),
        ("0::/elsewhere\n", DOCKER, {"cpu.max": "300000 100000\n"}, 3),
        ("4:cpu,cpuacct:/x\n3:cpuset:/\n0::/\n", "\n" + ROOT_V1, {"cpu/x/cpu.cfs_quota_us": "250000\n"}, 2.5),
        ("4:cpu,cpuacct:/x\n", ROOT_V1, {"cpu/x/cpu.cfs_quota_us": "-1\n"}, math.inf),
        ("4:cpuset:/x\n", ROOT_V1, {"cpu/x/cpu.cfs_quota_us": "250000\n"}, math.inf),
        ("nonsense\n:::\n0:\n", "a b\n" + ROOT_V2, {"cpu.max": "what\n"}, math.inf),
    ],
)
def test_what_control_groups_allow(tmp_path, group, mounts, files, cpus):
    found = {f"cg/{name}": text for name, text in {"cpu/x/cpu.cfs_period_us": "100000\n", **files}.items()}
    found |= {"proc/self/cgroup": group, "proc/self/mountinfo": mounts}
    assert _core.cpu_quota(tree(tmp_path, found)) == cpus


def test_more_lanes_than_cpus_are_told_with_their_number(monkeypatch):
    with pytest.warns(
        RuntimeWarning,
        match=rf"\d+ threads on each of 1 rank are more than the {len(ALLOWED)}"
        "[^ ]* CPUs allowed here: nothing",
    ):
        assert tw.Context(threads=len(ALLOWED) + 1).cpus == []
    monkeypatch.setenv("TILEWAVE_THREADS", "0")
    with pytest.raises(tw.ConfigError, match="TILEWAVE_THREADS: given '0'; allowed: an integer from 1 to 1024"):
        tw.Context()


def test_plans_for_ranks_elsewhere_have_their_machines_lanes(tmp_path, monkeypatch):
    monkeypatch.delenv("TILEWAVE_THREADS", raising=False)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(first=""))

    def threads_of(*arguments):
        done = ended(BIN / "tilewave", "plan", "-n", "4", *arguments, script)
        assert done.returncode == 0, done.stderr
        return int(done.stdout.split(", up to ")[1].split()[0])

    assert threads_of("--threads", "3") == 3
    assert threads_of() == max(tw.Context().share // 4, 1)
    machine = tw.Context(threads=5)._core.machine()
    from tilewave.machine.machine import Machine

    file = tmp_path / "machine.json"
    Machine._from_core(machine, {"hosts": ["a"] * 4, "ranks": 4, "threads": 5}).save(file)
    assert threads_of("--machine", str(file)) == 5
