"""``tilewave plan``: the calls of a script are planned and not run, in this process, and leave no trace in it."""

import json
import math
import sys
import textwrap

import pytest
from typer.testing import CliRunner

import tilewave as tw

from tilewave.cli import commands, plan_script
from tilewave.machine.machine import Curve, Link, Machine
from tilewave.context import context as contexts, dry_run, unknown_values
from tilewave.context.planned_calls import PlannedCalls

def machine(hosts, threads=1):
    link = Link(1e-5, 1e-7, 1e-7, 1e-9, transfer_s=Curve([1, 1 << 20], [1e-5, 1e-3]))
    return Machine(
        {"hosts": [f"h{h}" for h in hosts], "ranks": len(hosts), "threads": threads},
        host_of=list(hosts),
        same_host=link,
        other_host=link,
    )


def planned(*arguments, **more):
    return plan_script.plan_script(*arguments, **more)


def test_a_script_is_planned_and_leaves_no_trace(script):
    before = sys.argv[:], sys.path[:], contexts._default.context
    found = planned(script, ["48"], ranks=3, threads=2)
    plan = found.longest
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
    with pytest.raises(tw.ConfigError, match=f"ended( with {shown})? and called nothing that can be"):
        plan_script.plan_script(path, [], 1, None)


def test_modules_beside_the_script_are_found(tmp_path, script):
    (tmp_path / "sizes_of_mine.py").write_text("N = 40\n")
    script.write_text("from sizes_of_mine import N\n" + script.read_text().replace("int(sys.argv[1])", "N"))
    assert list(planned(script, [], 1, 1).longest.notes["extents"]) == [63, 39]
    assert str(tmp_path) not in sys.path


def test_a_plan_that_cannot_be_written(script, tmp_path):
    for words in (["plan", "-o", "/proc/x.json"], ["simulate", "-n", "2,4", "-o", "/proc/x.png"]):
        done = CliRunner().invoke(commands.app, [*words, str(script), "32"])
        assert done.exit_code == 2 and "cannot be written" in done.output.splitlines()[-1]


def test_the_command_writes_the_plan(script, tmp_path):
    path = tmp_path / "plan.json"
    done = CliRunner().invoke(commands.app, ["plan", "-n", "2", "--threads", "1", "-o", str(path), str(script), "32"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Planned for 2 ranks on 1 host, 1 lane each; nothing was run.\n")
    assert "The machine's numbers are for any machine" in done.output and "For nest relax" in done.output
    plan = tw.Plan.load(path)
    assert plan.notes["ranks"] == 2 and plan.notes["nest"] == "relax"
    assert json.loads(path.read_text())["grid"] == list(plan.grid)


@pytest.mark.parametrize(
    "hosts, ranks, on, words",
    [
        ((0, 0), 2, 1, "knows one host: all ranks are taken to be on it"),
        ((0, 1), 4, 4, "4 ranks on 4 hosts"),
        ((0, 0, 1, 1), 5, 3, "5 ranks on 3 hosts"),
        ((0, 0), 1, 1, "1 rank on 1 host"),
    ],
)
def test_ranks_fill_hosts_as_those_of_the_machines_launch(script, hosts, ranks, on, words):
    given = machine(hosts)
    assert len(set(dry_run.hosts_of(given, ranks))) == on
    text = plan_script.text(planned(script, ["48"], ranks, None, given, "cluster.json"))
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


@pytest.mark.parametrize("ranks", [1, 4, 5])
@pytest.mark.parametrize("cpus, sets", [(None, 0), ([8, 8], 1)])
def test_lanes_have_the_cpus_of_the_machine(monkeypatch, ranks, cpus, sets):
    """Those of the file, if it says how many, and else one each; never those of this computer."""
    conditions = {"threads": 1, "hosts": ["a", "a"], "ranks": 2} | ({"cpus": cpus} if cpus else {})
    given = Machine(conditions, host_of=[0, 0])
    monkeypatch.setattr(dry_run, "launch", dry_run.Launch(ranks, 64, given, "x"))
    found = dry_run.dry_core(64).machine()
    hosts = sets * -(-ranks // 2)
    assert list(found.set_of) == [rank // 2 for rank in range(ranks)] * sets and list(found.set_cpus) == [8.0] * hosts


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
    found = planned(path, [], 1, 1)
    assert [call.what for call in found.calls] == [["nest second, not run"], ["nest first, not run"]]
    assert found.longest.notes["nest"] == "second" and found.calls.time_s == 0


WHOLE = """\
import numpy as np
import tilewave as tw

@tw.nest
def relax(A, i, j, *, w=0.5):
    A[i, j] = w * (A[i-1, j] + A[i, j-1])

@tw.nest
def heat(u, t, i):
    u[t+1, i] = 0.5 * (u[t, i-1] + u[t, i+1])

@tw.nest
def cool(u, t, i):
    u[t+1, i] = 0.9 * u[t+1, i]

A, u = tw.field((40, 50), init=1.0), tw.field((60,), init=lambda i: 1.0 * i)
tw.run(relax, A=A)
for k in range(4):
    tw.run(relax, A=A, w=0.1 * k)
tw.run(heat, u=u, steps=20)
tw.run((heat, cool), u=u, steps=3)
bound = tw.bind(relax, A=A, reduce={"n": tw.norm("A")})
for k in range(5):
    bound.run()
tw.chain([bound, tw.bind(relax, A=A)]).run(times=7)
tw.chain([bound]).run(times=30, until={"n": 1e-3})
M = tw.linalg.matrix(np.eye(48))
C = tw.linalg.matmul(M, M)
L, F, (Q, R) = tw.linalg.cholesky(M), tw.linalg.lu(M), (lambda f: (f.q(), f.r()))(tw.linalg.qr(M))
x, y = F.solve(np.ones(48)), tw.linalg.lstsq(M, np.ones(48))
z = tw.multigrid.Poisson((32, 32), spacing=1 / 32).solve(np.ones((32, 32)))
whole = A.gather()
if tw.rank == 0:
    assert whole.shape == (40, 50) and np.all(whole == 0)
A.save("never.npy")
print(tw.sum(A), A[3, 4], A[:2].shape)
"""


@pytest.mark.parametrize("ranks", [1, 3])
def test_all_calls_of_a_program_are_planned_and_none_is_run(tmp_path, monkeypatch, ranks):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "whole.py"
    path.write_text(WHOLE)
    found = planned(path, [], ranks, 2)
    assert found.ended == ""
    by_line = {int(call.where.partition(":")[2]): call for call in found.calls.predicted}
    lines = WHOLE.splitlines()
    counts = {lines[number - 1].strip(): call.count for number, call in by_line.items()}
    assert [*counts.values()][:8] == [1, 4, 1, 1, 5, 1, 1, 1], counts
    for start in ("tw.run(relax, A=A)", "bound.run", "C = tw.linalg.matmul", "L, F", "x, y", "z = tw.multi"):
        assert any(line.startswith(start) for line in counts), (start, counts)
    assert all(call.time_s > 0 for call in by_line.values())
    runs = {lines[number - 1]: call.time_s / call.count for number, call in by_line.items()}
    assert runs["tw.chain([bound]).run(times=30, until={\"n\": 1e-3})"] > runs["    bound.run()"]
    assert found.calls.peak_bytes >= (40 * 50 * 8 + 60 * 8) // ranks
    assert not (tmp_path / "never.npy").exists()
    text = plan_script.text(found)
    for words in ("not  predicted", "30 repetitions are counted of at most 30", "8 cycles are counted", "core-hours"):
        assert words in text, text


SEVERAL = """\
import tilewave as tw

@tw.nest
def speed(v, p, t, i, j):
    v[t+1, i, j] = v[t, i, j] - 0.3 * (p[t, i+1, j] - p[t, i, j])

@tw.nest
def pressure(v, p, t, i, j):
    p[t+1, i, j] = p[t, i, j] - 0.3 * (v[t+1, i, j] - v[t+1, i-1, j])

v, p = tw.field((400, 500)), tw.field((400, 500))
for k in range(3):
    tw.run((speed, pressure), v=v, p=p, steps=10)
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_several_nests_a_time_step_as_one_schedule(tmp_path, ranks):
    path = tmp_path / "several.py"
    path.write_text(SEVERAL)
    found = planned(path, [], ranks, 1)
    (call,) = found.calls
    assert found.ended == "" and (call.count, call.what) == (3, ["nest speed", "nest pressure"])
    # Both are updated in place.
    assert 1 <= found.calls.peak_bytes / (2 * 400 * 500 * 8 / ranks) < 1.1 and call.time_s > 0


LOOPS = """\
import tilewave as tw
@tw.nest
def relax(A, i):
    A[i] = A[i-1] + 1.0
A = tw.field((40,))
def run():
    return tw.run(relax, A=A, reduce={"n": tw.norm("A")}).results["n"]
"""


@pytest.mark.parametrize(
    "loop, rounds, count",
    [
        ("n = 1.0\nwhile n > 1e-3:\n    n = tw.run(relax, A=A, reduce={'n': tw.norm('A')}).results['n']", None, 1),
        ("n = 1.0\nwhile not n < 1e-3:\n    n = tw.run(relax, A=A, reduce={'n': tw.norm('A')}).results['n']", 7, 7),
        ("n = run()\nwhile n > 1e-3:\n    n = run()", None, 2),
        ("while True:\n    if run() < 1e-3:\n        break", None, 1),
        ("while True:\n    if run() < 1e-3:\n        break", 6, 6),
        ("for k in range(9):\n    if run() < 1e-3:\n        break", None, 9),
        ("for k in range(9):\n    if run() < 1e-3:\n        break", 4, 4),
        ("def done(n):\n    return n < 1e-3\nwhile not done(run()):\n    pass", 5, 6),
        ("assert run() > 0\nassert not run() < 5", None, 2),
        ("import numpy as np\nn = np.sqrt(abs(2 * run() - 1)).item()\nassert n < 3\nint(n)", None, 1),
        (
            "import math\nn = run()\nassert math.floor(n) == math.ceil(n) == math.trunc(n) == 0 and round(n) < 1\n"
            "for k in range(9):\n    if sum(divmod(3, n)) + 3 // n + 3 % n + divmod(n, 2)[1] < 1:\n        run()",
            *(None, 9),
        ),
    ],
)
def test_loops_that_end_by_unknown_values(tmp_path, loop, rounds, count):
    path = tmp_path / "loops.py"
    path.write_text(LOOPS + loop + "\n")
    found = planned(path, [], 2, 1, rounds=rounds)
    assert found.ended == "" and sum(call.count for call in found.calls) == count
    assert len(found.calls.decisions.made) >= 1


def test_a_loop_that_no_answer_ends_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(unknown_values, "MOST_ROUNDS", 50)
    path = tmp_path / "endless.py"
    path.write_text(LOOPS + "n = run()\nwhile True:\n    run() > 3\n")
    found = planned(path, [], 2, 1)
    assert "the loop at endless.py:10 does not end" in found.ended and 50 <= sum(c.count for c in found.calls) <= 53


def test_what_a_script_raises_after_calls_ends_the_plan_and_is_shown(tmp_path):
    path = tmp_path / "raises.py"
    path.write_text(LOOPS + "run()\n1 / 0\nrun()\n")
    found = planned(path, [], 2, 1)
    assert found.ended == "raises.py:9 raised ZeroDivisionError: division by zero"
    assert "what follows was not planned: raises.py:9" in plan_script.text(found)


def test_an_error_of_a_library_is_shown_at_the_scripts_line_and_on_one_line(tmp_path):
    path = tmp_path / "raises.py"
    path.write_text(LOOPS + "import numpy as np\nrun()\nnp.testing.assert_allclose(A.gather(), 5.0)\n")
    found = planned(path, [], 1, 1)
    assert found.ended.startswith("raises.py:10 raised AssertionError: Not equal to") and "\n" not in found.ended


def test_ctrl_c_ends_the_script_and_shows_what_was_planned(tmp_path):
    path = tmp_path / "interrupted.py"
    path.write_text(LOOPS + "import signal\nrun()\nsignal.raise_signal(signal.SIGINT)\nrun()\n")
    found = planned(path, [], 1, 1)
    assert found.ended == "interrupted.py:10 raised KeyboardInterrupt" and [c.count for c in found.calls] == [1]


def test_a_large_field_takes_no_memory_here(tmp_path):
    path = tmp_path / "large.py"
    path.write_text(
        "import resource\n"
        + LOOPS.replace("(40,)", "(1 << 15, 1 << 15)").replace("A, i)", "A, i, j)").replace("[i", "[i, j")
        + "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\nrun()\nA.gather()\n"
        "assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + (1 << 20)\n"
    )
    found = planned(path, [], 2, 1)
    assert found.ended == "" and found.calls.peak_bytes >= 4 << 30


MANY_LANES = """
import tilewave as tw

@tw.nest
def heat(u, t, i, j, k):
    u[t+1, i, j, k] = u[t, i, j, k] + 0.1 * (u[t, i-1, j, k] + u[t, i, j+1, k] + u[t, i, j, k-1] - 3 * u[t, i, j, k])

tw.run(heat, u=tw.field((600, 600, 600)), steps=20)
"""


def test_lanes_that_are_not_here_are_used(tmp_path):
    """Samples here have not measured tiles for so many lanes; plans with few must not win for that."""
    path = tmp_path / "lanes.py"
    path.write_text(MANY_LANES)
    plan = planned(path, [], 16, 64, tw.Machine.load("fat-tree")).longest
    assert math.prod(plan.factors) >= 16, plan.explain()


PATTERNS = """\
import numpy as np
import tilewave as tw

part = np.ones((8, 128))
whole = tw.patterns.spread(part)
assert whole.shape == (8, 128 * tw.size), whole.shape
tw.patterns.broadcast(part, root=tw.size - 1)
mine = tw.patterns.multi_reduce(np.ones((4, 64 * tw.size)))
assert mine.shape == (4, 64)
tw.patterns.reduce(part, op="max", wait=False).wait()
"""


@pytest.mark.parametrize("ranks, some", [(6, False), (3000, True)])
def test_patterns_are_simulated_with_all_ranks_or_some(tmp_path, ranks, some):
    path = tmp_path / "patterns.py"
    path.write_text(PATTERNS)
    found = planned(path, [], ranks, 1, tw.Machine.load("fat-tree"))
    assert not found.ended and [call.name.rpartition(".")[2] for call in found.calls] == [
        "spread",
        "broadcast",
        "multi_reduce",
        "reduce",
    ]
    assert all(call.known and call.time_s > 0 for call in found.calls)
    samples = set(found.calls.samples.values())
    assert len(found.calls.samples) == 4 and (samples == {"all ranks"}) == (not some), samples


EVERY_KIND = """\
import numpy as np
import tilewave as tw

@tw.nest
def sweep(A, i, j): A[i, j] = 0.5 * (A[i-1, j] + A[i, j-1])
@tw.nest
def heat(u, t, i, j): u[t+1, i, j] = u[t, i, j] + 0.1 * (u[t, i-1, j] + u[t, i+1, j] - 2 * u[t, i, j])
@tw.nest
def cool(u, t, i, j): u[t+1, i, j] = 0.9 * u[t+1, i, j]
@tw.nest
def look_up(A, W, T, i, j): A[i, j] = A[i-1, j] + T[W[i, j]]
@tw.nest
def update(u, S, b, i, j):
    u[b, i, j] = max(u[b, i-1, j], u[b, i, j-1])
    S[i] = S[i] + u[b, i, j]
@tw.nest
def batch(D, S, b, i, j):
    D[b, i, j] = min(D[b, i-1, j], D[b, i, j-1])
    S[b] = D[b, i, j]
@tw.nest
def gather(V, T, k, s): V[k, s] = max(V[k-1, q] + T[q, s] for q in range(48))
@tw.nest
def pivot(D, k, i, j): D[i, j] = min(D[i, j], D[i, k] + D[k, j])
@tw.nest
def rows(w, u, t, i):
    w[t // 5, i] = u[t, i]
    u[t+1, i] = 0.5 * (u[t, i-1] + u[t, i+1])
@tw.nest
def coarse(c, u, i, j): c[i, j] = 0.25 * (u[2*i, 2*j] + u[2*i+1, 2*j])

def make(*shape, **more):
    return tw.field(shape or (48, 48), init=1.0, **more)

A, B, u, n = make(halo=1), make(), make(), 48
total = {"s": tw.norm("u")}
tw.run(sweep, A=A)
tw.run(heat, u=u, steps=9, periodic=("i", "j"))
tw.run(heat, u=u, steps=9, inject={"u": ([(3, 4)], np.ones((9, 1)))}, record={"u": [(5, 6)]})
tw.run(heat, u=u, steps=9, reduce=total, until={"s": 1.0})
tw.run((heat, cool), u=u, steps=9)
tw.run(look_up, A=A, W=np.zeros((n, n), int), T=np.ones(5))
tw.run(update, u=make(4, n, n, dtype="i8"), S=make(n, dtype="i8"))
tw.run(batch, D=tw.field((40, n, n), keep="window", init=lambda b, i, j: 1.0), S=make(40))
tw.run(gather, V=make(), T=np.ones((n, n)))
tw.run(pivot, D=B)
tw.run(rows, w=make(4, n), u=make(n), steps=18)
tw.run(coarse, c=make(24, 24), u=u)
i, j = tw.run(sweep, A=A, reduce={"at": tw.argmax("A")}).results["at"]
bound = tw.bind(heat, u=u, steps=3, reduce=total)
bound.run()
tw.chain([bound], record={"u": [(1, 1)]}).run(times=4)
tw.chain([bound]).run(times=4, until={"s": 0.5}, every=2)
A += 2 * B
tw.exchange(A)
halos = tw.exchange(A, start=False)
for k in range(5): halos.run()
tw.patterns.allreduce(np.ones(5))
again = tw.patterns.broadcast(np.ones(5), start=False)
for k in range(5): again.run()
M = tw.linalg.matrix(np.eye(n))
M @ M
tw.linalg.lu(M).solve(np.ones(n))
P = tw.multigrid.Poisson((32, 32), spacing=1.0)
P.precondition(P.solve(np.ones((32, 32))))
# not predicted
tw.dot(B, B), B[i, j], tw.argmax(B)
B.fill(0.0)
B.copy()
2 * M
tw.linalg.norm(M)
tw.patterns.send(np.ones(3), dest=0)
tw.patterns.receive(np.ones(3), source=tw.size - 1)
"""


@pytest.mark.parametrize("ranks", [1, 4])
def test_every_kind_is_counted_or_said_to_be_unknown(tmp_path, ranks):
    path = tmp_path / "kinds.py"
    path.write_text(EVERY_KIND)
    found = planned(path, [], ranks, 1)
    assert found.ended == ""
    text = EVERY_KIND.splitlines()
    calls = {text[int(call.where.partition(":")[2]) - 1]: call for call in found.calls}
    first, end = (next(k for k, line in enumerate(text) if line.startswith(start)) for start in ("tw.run(", "# not"))
    prepares = ("bound =", "halos =", "again =", "M =", "P =")
    assert [*calls] == [line for line in text[first:] if not line.startswith((*prepares, "#"))]
    assert {line: call.known for line, call in calls.items()} == {line: text.index(line) < end for line in calls}
    assert all(call.time_s > 0 for call in found.calls.predicted) or ranks == 1
    assert calls["for k in range(5): halos.run()"].count == calls["for k in range(5): again.run()"].count == 5
    report = plan_script.text(found)
    assert f"without {len(found.calls) - len(found.calls.predicted)} lines not predicted" in report


UNKNOWN_SCALARS = """\
import numpy as np
import tilewave as tw

@tw.nest
def add(y, x, i, *, a=1.0): y[i] = y[i] + a * x[i]

x, y = tw.field((30,), init=1.0), tw.field((30,), init=2.0)
a = tw.dot(x, y) / tw.norm(x)
tw.run(add, y=y, x=x, a=a)
bound = tw.bind(add, y=y, x=x)
bound.run(a=a)
tw.chain([bound]).run(times=2, a=-a)
y += a * x
y[...] = x / a
M = a * tw.linalg.matrix(np.eye(9))
assert (a * np.ones(3)).shape == (np.ones(3) - a).shape == (3,) and np.sqrt(a) > 0
tw.multigrid.Poisson((8, 8), spacing=1.0, boundary="periodic").solve(np.zeros((8, 8)))
"""


def test_numbers_that_are_not_known_are_scalars_of_nests_and_factors_of_fields(tmp_path):
    path = tmp_path / "scalars.py"
    path.write_text(UNKNOWN_SCALARS)
    found = planned(path, [], 2, 1)
    assert found.ended == ""
    assert [call.name for call in found.calls.predicted] == [
        *("tw.run", "tw.Bound.run", "tw.Chain.run", "tw.run", "tw.run", "tw.multigrid.Poisson.solve"),
    ]


def test_a_call_has_the_plan_of_its_longest_part_with_one():
    calls, plan = PlannedCalls(), tw.Plan((1, 1), 0, (4, 4), (1, 1))
    calls.noted("tw.run", lambda: [calls.add("nest", 1.0, plan), calls.add("reduce", 2.0, None)])
    (call,) = calls
    assert call.plan is plan and call.time_s == 3.0 and call.what == ["nest", "reduce"]


def test_fields_with_blocks_of_their_own_on_more_ranks_than_are_simulated(tmp_path):
    path = tmp_path / "many.py"
    path.write_text("import numpy as np, tilewave as tw\ntw.multigrid.Poisson((40, 32)).solve(np.ones((40, 32)))\n")
    found = planned(path, [], 100, 1)
    assert found.ended == "" and [call.name for call in found.calls.predicted] == ["tw.multigrid.Poisson.solve"]
