"""The command `tilewave`, in this process: what it refuses, and what it passes on."""

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tilewave as tw
from tilewave.cli import commands
from tilewave.cli.ping_facts import PingFacts
from tilewave.launch import launch as launching


def invoke(*arguments):
    return CliRunner().invoke(commands.app, [str(argument) for argument in arguments])


@pytest.fixture
def launched(monkeypatch):
    """What `launch` is called with, in place of a launch."""
    calls = []

    def launch(script, arguments, **options):
        calls.append((str(script), list(arguments), options))
        return 7

    monkeypatch.setattr(launching, "launch", launch)
    monkeypatch.setattr(launching, "default_ranks", lambda hosts: 5 if hosts else 3)
    return calls


def test_the_version_is_the_packages():
    done = invoke("--version")
    assert (done.exit_code, done.output) == (0, f"tilewave {tw.__version__}\n")


def test_without_a_command_help_names_them_all():
    done = invoke()
    for name in ("demo", "run", "measure", "plan", "batch", "bench", "doctor"):
        assert name in done.output


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("bench", "nothing"), "no benchmark 'nothing'; there are: "),
        (("plan", "-o", "nowhere/plan.json", "script.py"), "no folder for nowhere/plan.json"),
        (("plan", "none.py"), "none.py: there is no such script"),
        (("plan", "-n", "0", "script.py"), "ranks 0, threads None were given; allowed: 1 and more"),
        (("plan", "--threads", "0", "script.py"), "ranks 1, threads 0 were given"),
        (("plan", "--machine", "none.json", "script.py"), "none.json: no machine can be read there"),
        (("plan", "script.py"), "script.py ended and called nothing that can be planned"),
        (("plan", "ends.py", "early"), "ends.py ended with 'early' and called nothing"),
        (("measure", "-o", "nowhere/machine.json"), "no folder for nowhere/machine.json"),
        (("run", "-n", "0", "script.py"), "0 ranks"),
        (("run", "none.py"), "none.py"),
    ],
)
def test_what_is_refused_ends_with_code_2_and_one_line(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("pass\n")
    (tmp_path / "ends.py").write_text("import sys; sys.exit(sys.argv[1])\n")
    done = invoke(*arguments)
    assert done.exit_code == 2, done.output
    assert words in done.output and done.output.startswith("tilewave: ") and done.output.count("\n") == 1


def test_options_end_at_the_script(launched):
    done = invoke("run", "-n", 2, "--threads", 4, "--hosts", "a,b", "script.py", "-n", "9", "--quick", "--", "x")
    assert done.exit_code == 7
    given = {"ranks": 2, "threads": 4, "hosts": "a,b", "more": {}}
    assert launched == [("script.py", ["-n", "9", "--quick", "--", "x"], given)]


def test_verified_runs_have_a_variable(launched):
    assert invoke("run", "--verify", "script.py").exit_code == 7
    assert launched[0][2]["more"] == {"TILEWAVE_VERIFY": "1"}


@pytest.mark.parametrize(
    "options, argument, pointed_out",
    [((), "-n", True), (("-n", 2), "-n", False), (("--threads", 2), "--threads=4", False), ((), "--size", False)],
)
def test_an_option_that_stands_behind_the_script_is_pointed_out(launched, options, argument, pointed_out):
    done = invoke("run", *options, "script.py", argument)
    assert done.exit_code == 7 and launched[0][1] == [argument]
    assert ("stands behind the script" in done.output) == pointed_out


@pytest.mark.parametrize("options, ranks", [((), 3), (("--hosts", "a,b"), 5), (("-n", 1, "--hosts", "a"), 1)])
def test_ranks_that_are_not_given_follow_the_hosts(launched, options, ranks):
    assert invoke("run", *options, "script.py").exit_code == 7
    assert launched[0][2]["ranks"] == ranks


def test_the_demo_is_the_first_example_of_the_checkout_or_of_the_package(launched, tmp_path, monkeypatch):
    assert invoke("demo").exit_code == 7
    monkeypatch.setattr(commands, "CHECKOUT", tmp_path)
    assert invoke("demo", "-n", 3).exit_code == 7
    (first, _, options), (other, _, more) = launched
    assert Path(first).read_text().startswith('"""') and (options["ranks"], more["ranks"]) == (2, 3)
    assert Path(other) == Path(commands.__file__).with_name(Path(first).name)


def test_measure_asks_the_ranks_for_what_was_asked(launched, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke("measure", "curves.png", "--quick", "-o", "machine.json", "--show", "-n", 2)
    assert done.exit_code == 7
    ((script, (wanted,), options),) = launched
    assert script.endswith("measure_ranks.py") and options == {"ranks": 2, "threads": None, "hosts": None}
    here = str(tmp_path)
    assert json.loads(wanted) == {
        "quick": True,
        "show": True,
        "file": f"{here}/machine.json",
        "picture": f"{here}/curves.png",
    }


@pytest.mark.parametrize("code, exit_code", [(None, 0), (3, 3), ("text", 0)])
def test_a_benchmark_gets_further_arguments_and_says_its_code(monkeypatch, code, exit_code):
    import bench

    seen = []

    def benchmark(**given):
        seen.append(given)
        return code

    monkeypatch.setitem(bench.NAMES, "made_up", benchmark)
    assert invoke("bench", "made_up", "--quick", "--case", "array").exit_code == exit_code
    assert invoke("bench", "made_up").exit_code == exit_code
    assert seen == [
        {"json_path": None, "quick": True, "args": ["--case", "array"]},
        {"json_path": None, "quick": False},
    ]


# --- doctor -----------------------------------------------------------------------------------------------------------


def facts(**other):
    known = dict(
        size=2,
        latency_s=1.5e-6,
        cpus=[0],
        threads=1,
        threads_of_one_rank=2,
        quota=None,
        library="MPICH 5\nmore lines",
        standard="5.0",
        path="/lib/libmpi.so",
        thread_level="multiple",
    )
    return PingFacts(**{**known, **other})


def findings(monkeypatch, answer):
    monkeypatch.setattr(commands, "_ping", lambda: answer)
    monkeypatch.delenv("TILEWAVE_THREADS", raising=False)
    return {what: (state, text) for what, state, text in commands._findings()}


def test_doctor_shows_what_the_ping_found(monkeypatch):
    found = findings(monkeypatch, (facts(quota=1.5), None))
    assert found["MPI library"] == ("ok", "MPICH 5 (MPI 5.0)")
    assert found["2-rank ping"] == ("ok", "1.5 µs one way, 8 bytes")
    assert found["lanes"][1].endswith("; a control group allows the time of 1.5 CPUs")
    assert found["lanes"][1].startswith("2 for one rank, 1 for each of 2")
    assert found["pinning"] == ("info", "rank 0 of 2 pins its lanes to CPUs [0]")
    assert "missing" not in {state for state, _ in found.values()}


@pytest.mark.parametrize(
    "answer, what, words",
    [
        ((None, "failed with exit code 9: text"), "2-rank ping", "failed with exit code 9: text"),
        ((facts(size=1), None), "2-rank ping", "the ranks see a world of 1, not 2"),
    ],
)
def test_doctor_says_what_is_missing_and_fails(monkeypatch, answer, what, words):
    state, text = findings(monkeypatch, answer)[what]
    assert state == "missing" and words in text
    done = invoke("doctor")
    assert done.exit_code == 1 and "Tilewave does not work here" in done.output
    monkeypatch.setattr(commands, "_ping", lambda: (facts(), None))
    done = invoke("doctor")
    assert done.exit_code == 0 and "Tilewave is usable here." in done.output


def test_doctor_notes_nothing_pinned_and_threads_that_were_asked_for(monkeypatch):
    found = findings(monkeypatch, (facts(cpus=[]), None))
    assert "nothing is pinned with 2 ranks" in found["pinning"][1]
    monkeypatch.setenv("TILEWAVE_THREADS", "3")
    assert commands._lanes(facts(threads=3)) == "3 a rank, as TILEWAVE_THREADS says"


def test_doctor_without_an_mpiexec(monkeypatch):
    monkeypatch.setenv("TILEWAVE_MPIEXEC", "/no/such/mpiexec")
    found = {what: (state, text) for what, state, text in commands._findings()}
    state, text = found["mpiexec"]
    assert state == "missing" and "/no/such/mpiexec" in text and "2-rank ping" not in found


@pytest.mark.parametrize("user, lacking, words", [(0, ("tc",), "no tc: "), (0, ("ip", "tc"), "no ip and tc: "),
                                                  (1000, (), "needs root"), (0, (), "root, ip and tc are there")])
def test_doctor_on_the_cluster_in_a_box(monkeypatch, user, lacking, words):
    monkeypatch.setattr(commands.shutil, "which", lambda tool: None if tool in (*lacking, "g++") else f"/bin/{tool}")
    monkeypatch.setattr(commands.os, "geteuid", lambda: user)
    found = findings(monkeypatch, (facts(), None))
    assert words in found["Cluster in a box"][1]
    assert found["C++ compiler"][0] == "note" and "apt install g++" in found["C++ compiler"][1]


@pytest.mark.parametrize(
    "output, code, words",
    [("rank 1: no fabric\n", 3, "failed with exit code 3: rank 1: no fabric"), ("", -9, "failed with exit code -9: ")],
)
def test_a_ping_that_says_nothing_is_told_with_its_output(monkeypatch, output, code, words):
    from tilewave.launch import processes

    def supervise(command, watch, stdin, stdout, stderr):
        assert command[-2].endswith("start.py") and command[-1] == "tilewave.cli.ping"
        assert stdin == subprocess.DEVNULL and not watch()
        stdout.write(output)
        return code

    monkeypatch.setattr(processes, "supervise", supervise)
    found, problem = commands._ping()
    assert found is None and problem.startswith(words)
    monkeypatch.setattr(commands, "PING_TIMEOUT_S", -1.0)
    monkeypatch.setattr(processes, "supervise", lambda command, watch, stdout, **_: stdout.write(output) and 0)
    assert commands._ping()[1].startswith("no answer within -1 s; output: ")


# --- what the ranks of doctor print -----------------------------------------------------------------------------------


def test_facts_are_found_between_other_lines():
    whole = facts(quota=0.5)
    text = f"warning: x\nping \nping [1]\nping {{}}\nping nonsense\n{whole.line()}\n{facts(size=9).line()}\n"
    assert PingFacts.of_output(text) == whole
    assert PingFacts.of_output(text.replace(whole.line(), "").replace('"size": 9', '"sizes": 9')) is None
    assert "\n" not in whole.line()
