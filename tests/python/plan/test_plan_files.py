"""Plans as files, and plans for machines that are not here: `tilewave plan`."""

import json
import os

import numpy as np
import pytest
from launches import TILEWAVE, ended

import tilewave as tw

PLAN = {"grid": [1, 1], "mapping_dim": 1, "tile": [4, 4], "factors": [1, 1]}


@pytest.mark.parametrize(
    "change, words",
    [
        ({"grid": "big"}, "grid: given 'big'; allowed: a tuple of integers"),
        ({"tile": None}, "tile: given None"),
        ({"schedule": "late"}, "schedule|late"),
        ({"lookahead": 1.5}, "lookahead: given 1.5"),
        ({"colour": 1}, "given 'colour'; allowed: the fields grid"),
        ({"predicted": 3}, "predicted: given 3"),
        ({"predicted": {"time_s": -1, "parts": {}}}, "predicted"),
        ({"memory_bytes": "much"}, "memory_bytes: given 'much'"),
        ({"ranked": {}}, "ranked: given"),
        ({"notes": []}, "notes: given"),
    ],
)
def test_a_file_that_is_no_plan_names_the_field(tmp_path, change, words):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**PLAN, **change}))
    with pytest.raises(tw.ConfigError, match=words) as caught:
        tw.Plan.load(path)
    assert "plan.json" in str(caught.value)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A plan as `save` writes it, with all that explains it."""

    @tw.nest
    def relax(A, i, j):
        A[i, j] = A[i-1, j] + A[i, j-1]

    path = tmp_path_factory.mktemp("plan") / "plan.json"
    tw.plan(relax, A=np.ones((64, 64))).save(path)
    return path.read_text()


@pytest.mark.parametrize(
    "where, to, words",
    [
        ((0,), 3, r"ranked\[0\]: given 3; allowed: an object with the fields time_s"),
        ((0,), {}, r"ranked\[0\].time_s is missing"),
        ((0, "time_s"), "soon", r"ranked\[0\].time_s: given 'soon'; allowed: seconds >= 0"),
        ((-1, "time_s"), float("nan"), "time_s: given nan"),
        ((0, "time_s"), 10**400, "time_s: given 1000"),
        ((0, "reason"), 1, "reason: given 1; allowed: a text"),
        ((0, "parts", "wait_s"), None, "parts.wait_s: given None"),
        ((0, "parts"), [], r"parts: given \[\]"),
        ((0, "memory_bytes"), -1, "memory_bytes: given -1"),
        ((0, "choices", "tile"), "big", r"ranked\[0\].choices.tile: given 'big'"),
        ((0, "choices"), {"tile": [1, 1]}, "choices.grid is missing"),
        ((0, "choices", "lookahead"), 1 << 70, r"ranked\[0\].choices.lookahead"),
    ],
)
def test_damaged_reasons_of_plans_are_refused(tmp_path, saved, where, to, words):
    data = json.loads(saved)
    *path, last = ("ranked", *where)
    at = data
    for key in path:
        at = at[key]
    at[last] = to
    (tmp_path / "plan.json").write_text(json.dumps(data))
    with pytest.raises(tw.ConfigError, match=f"plan.json is no saved plan: .*{words}"):
        tw.Plan.load(tmp_path / "plan.json")


@pytest.mark.parametrize(
    "notes", [{"rate": {"point_s": 1}}, {"machine": {"poll_s": "fast"}}, {"fixed": 5}, {"loops": 3}, {"ranks": "two"}]
)
def test_damaged_notes_are_refused(tmp_path, saved, notes):
    data = json.loads(saved)
    data["notes"].update(notes)
    (tmp_path / "plan.json").write_text(json.dumps(data))
    with pytest.raises(tw.ConfigError, match="plan.json is no saved plan: notes: they cannot be explained"):
        tw.Plan.load(tmp_path / "plan.json")


def test_an_undamaged_file_is_the_plan(tmp_path, saved):
    (tmp_path / "plan.json").write_text(saved)
    again = tw.Plan.load(tmp_path / "plan.json")
    assert again.ranked and "simulated; the best first" in again.explain()
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/zero", tmp_path):
        with pytest.raises(tw.ConfigError, match="no saved plan: .*it is no regular file"):
            tw.Plan.load(path)


def test_other_files(tmp_path):
    path = tmp_path / "plan.json"
    for text, words in (
        ("", "no saved plan"),
        ("[1]", r"given \[1\]"),
        ("{}", "grid is missing"),
        ('{"grid": [1', "no saved plan"),
    ):
        path.write_text(text)
        with pytest.raises(tw.ConfigError, match=words):
            tw.Plan.load(path)
    with pytest.raises(tw.ConfigError, match="no saved plan"):
        tw.Plan.load(tmp_path / "none.json")
    path.write_text(json.dumps(PLAN))
    assert tw.Plan.load(path).predicted is None and "by hand" in tw.Plan.load(path).explain()


SCRIPT = """
import sys
import numpy as np, tilewave as tw

@tw.nest
def relax(A, i, j, k):
    A[i, j, k] = np.sqrt(A[i-1, j, k]) + np.sqrt(A[i, j-1, k]) + np.sqrt(A[i, j, k-1])

A = tw.field((int(sys.argv[1]), 64, 256), "f4", init=lambda i, j, k: 1.0)
tw.run(relax, A=A)
raise SystemExit("it went on")
"""


def command(*words):
    return ended(*TILEWAVE, "plan", *words)


def test_a_script_is_planned_for_ranks_that_are_not_here(tmp_path):
    script, plan = tmp_path / "relax.py", tmp_path / "plan.json"
    script.write_text(SCRIPT)
    done = command("-n", 64, "--threads", 2, "-o", plan, script, 512)
    assert done.returncode == 0, done.stderr
    for words in (
        "Planned for 64 ranks on ", "nothing was run", "give --machine", "i 511 x j 63", "the best first",
        "up to 2 threads each",
    ):
        assert words in done.stdout, words
    saved = tw.Plan.load(plan)
    ranks = 1
    for g in saved.grid:
        ranks *= g
    assert 2 < ranks <= 64 and saved.predicted.time_s > 0  # fewer where they are predicted to be faster


def test_a_machine_file_is_used(tmp_path):
    script, path = tmp_path / "relax.py", tmp_path / "machine.json"
    script.write_text(SCRIPT)
    link = {
        "latency_s": 1e-3,
        "send_s": 1e-6,
        "receive_s": 1e-6,
        "byte_s": 1e-8,
        "transfer_s": {"x": [1, 1e6], "y": [1e-3, 1.1e-2]},
    }
    numbers = {
        "latency_s": 1e-3, "byte_s": 1e-8, "chunk_s": 1e-5, "short_s": 0.0, "ranks_per_core": 1.0,
        "hand_over_s": 1e-6, "point_s": 2e-9, "cache_bytes": 1 << 20, "poll_s": 2e-7, "step_s": 5e-8,
    }
    tw.Machine(
        conditions={"hosts": ["a", "b"], "ranks": 2, "threads": 1},
        **numbers,
        copy_byte_s=_curve([], []),
        memory=[],
        host_of=[0, 1],
        other_host=_link(**link),
    ).save(path)
    done = command("-n", 4, "--machine", path, script, 64)
    assert done.returncode == 0, done.stderr
    assert (
        "on 4 hosts" in done.stdout
        and str(path) in done.stdout
        and "between hosts" in done.stdout
        and "1 ms latency" in done.stdout
    )


def _curve(x, y):
    from tilewave.machine.machine import Curve

    return Curve(x, y)


def _link(transfer_s, **numbers):
    from tilewave.machine.machine import Link

    return Link(**numbers, transfer_s=_curve(**transfer_s))


def test_wrong_calls_say_what_is_wrong(tmp_path):
    script, broken = tmp_path / "empty.py", tmp_path / "machine.json"
    script.write_text("print('nothing here')\n")
    broken.write_text("{")
    for words, told in (
        ((tmp_path / "none.py",), "no such script"),
        ((script,), "called nothing that can be planned"),
        (("-n", 0, script), "ranks 0"),
        (("--machine", broken, script), "machine.json"),
        (("--machine", tmp_path / "none.json", script), "none.json"),
    ):
        done = command(*words)
        assert done.returncode == 2 and told in done.stderr, (words, done.stderr)
    script.write_text("raise SystemExit(3)\n")
    assert "ended with 3" in command(script).stderr
