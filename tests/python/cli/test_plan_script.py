"""``tilewave plan``: a script is run up to its first nest, in this process, and leaves no trace in it."""

import json
import sys
import textwrap

import pytest
from typer.testing import CliRunner

import tilewave as tw
from tilewave.cli import commands, plan_script
from tilewave.machine.machine import Curve, Link, Machine
from tilewave.context import context as contexts, dry_run

SCRIPT = """\
import sys
import tilewave as tw

@tw.nest
def relax(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]

try:
    A = tw.field((64, int(sys.argv[1])), "f8", init=1.0)
    tw.run(relax, A=A)
except Exception:
    pass
raise SystemExit("it went on")
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(SCRIPT)
    return path


def machine(hosts, threads=1):
    link = Link(1e-5, 1e-7, 1e-7, 1e-9, transfer_s=Curve([1, 1 << 20], [1e-5, 1e-3]))
    return Machine(
        {"hosts": [f"h{h}" for h in hosts], "ranks": len(hosts), "threads": threads},
        host_of=list(hosts),
        same_host=link,
        other_host=link,
    )


def test_the_first_run_ends_the_script_whatever_it_catches(script):
    before = sys.argv[:], sys.path[:], contexts._default.context
    plan = plan_script.plan_script(script, ["48"], ranks=3, threads=2)
    assert list(plan.notes["extents"]) == [63, 47]
    assert plan.notes["ranks"] == 3 and plan.predicted.time_s > 0
    assert (sys.argv, sys.path, contexts._default.context) == before and dry_run.launch is None


def test_what_a_script_raises_comes_out_and_leaves_no_trace(tmp_path):
    path = tmp_path / "raises.py"
    path.write_text("import tilewave as tw\ntw.Context()\nraise KeyError('mine')\n")
    before = sys.argv[:], sys.path[:], contexts._default.context
    with pytest.raises(KeyError, match="mine"):
        plan_script.plan_script(path, [], 2, None)
    assert (sys.argv, sys.path, contexts._default.context) == before and dry_run.launch is None
    assert tw.Context().size == 1


@pytest.mark.parametrize("ending, shown", [("", "None"), ("3", "3"), ("'why'", "'why'")])
def test_an_early_end_is_named(tmp_path, ending, shown):
    path = tmp_path / "ends.py"
    path.write_text(f"raise SystemExit({ending})\n")
    with pytest.raises(tw.ConfigError, match=f"ended with {shown} before it ran or planned a nest"):
        plan_script.plan_script(path, [], 1, None)


def test_modules_beside_the_script_are_found(tmp_path, script):
    (tmp_path / "sizes_of_mine.py").write_text("N = 40\n")
    script.write_text("from sizes_of_mine import N\n" + SCRIPT.replace("int(sys.argv[1])", "N"))
    assert list(plan_script.plan_script(script, [], 1, 1).notes["extents"]) == [63, 39]
    assert str(tmp_path) not in sys.path


def test_the_command_writes_the_plan(script, tmp_path):
    path = tmp_path / "plan.json"
    done = CliRunner().invoke(commands.app, ["plan", "-n", "2", "--threads", "1", "-o", str(path), str(script), "32"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Planned for 2 rank(s) on 1 host(s); nothing was run.\n")
    assert "The machine's numbers are for any machine" in done.output and "For nest relax" in done.output
    plan = tw.Plan.load(path)
    assert plan.notes["ranks"] == 2 and plan.notes["nest"] == "relax"
    assert json.loads(path.read_text())["grid"] == list(plan.grid)


@pytest.mark.parametrize(
    "hosts, ranks, on, words",
    [
        ((0, 0), 2, 1, "knows one host: all ranks are taken to be on it"),
        ((0, 1), 4, 4, "4 rank(s) on 4 host(s)"),
        ((0, 0, 1, 1), 5, 3, "5 rank(s) on 3 host(s)"),
        ((0, 0), 1, 1, "1 rank(s) on 1 host(s)"),
    ],
)
def test_ranks_fill_hosts_as_those_of_the_machines_launch(script, hosts, ranks, on, words):
    given = machine(hosts)
    wanted = dry_run.Launch(ranks, None, given, "cluster.json")
    assert len(set(dry_run.hosts_of(given, ranks))) == on
    text = plan_script.text(plan_script.plan_script(script, ["48"], ranks, None, given, "cluster.json"), wanted)
    assert words in text and "The machine's numbers are those of cluster.json" in text
    assert ("all ranks are taken to be on it" in text) == (on == 1 and ranks > 1)


@pytest.mark.parametrize("given, machines, lanes", [(0, 3, 3), (2, 3, 2), (5, None, 5)])
def test_threads_come_from_the_command_else_from_the_machine(monkeypatch, given, machines, lanes):
    known = machine((0, 0), machines) if machines else None
    monkeypatch.setattr(dry_run, "launch", dry_run.Launch(2, None, known, "x"))
    core = dry_run.dry_core(given)
    assert (core.threads, core.size, core.rank) == (lanes, 2, 0)


def test_threads_of_here_are_shared_by_the_ranks(monkeypatch):
    monkeypatch.setattr(dry_run, "launch", dry_run.Launch(1, None, None, ""))
    alone = dry_run.dry_core(0).threads
    monkeypatch.setattr(dry_run, "launch", dry_run.Launch(3 * alone, None, None, ""))
    assert dry_run.dry_core(0).threads == 1


def test_planning_a_second_nest_needs_no_first(tmp_path):
    path = tmp_path / "plans.py"
    path.write_text(
        textwrap.dedent("""\
        import numpy as np
        import tilewave as tw

        @tw.nest
        def first(A, i, j):
            A[i, j] = A[i-1, j] + 1.0

        @tw.nest
        def second(A, i, j):
            A[i, j] = A[i, j-1] + 1.0

        A = np.ones((20, 30))
        tw.plan(second, A=A)
        tw.plan(first, A=A)
        """)
    )
    assert plan_script.plan_script(path, [], 1, 1).notes["nest"] == "second"
