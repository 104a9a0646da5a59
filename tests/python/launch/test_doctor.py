"""`tilewave doctor` and `tilewave bench` as programs."""

import dataclasses
import re

import pytest
from launches import PYTHON, TILEWAVE, ended

from tilewave.cli.ping_facts import PingFacts

def doctor(**env):
    return ended(*TILEWAVE, "doctor", env={"COLUMNS": "200", "PYTHONUTF8": "1", **env})


def test_doctor_of_this_installation(monkeypatch):
    monkeypatch.delenv("TILEWAVE_THREADS", raising=False)
    done = doctor()
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (r"\(MPI \d", r"\d[\d.]* [µn]s one way", r"\d+ for one rank, \d+ for each of 2", "usable here"):
        assert re.search(words, done.stdout), done.stdout


FACTS = PingFacts(2, 1.5e-6, [0, 1], 3, 5, 6.5, "Some MPI 1.2\nmore", "5.0", "/lib/libsome.so", "multiple")


@pytest.mark.parametrize(
    "facts, code, words",
    [
        (None, 1, ["Compiled core", "pip install"]),
        (
            FACTS,
            0,
            [
                "Some MPI 1.2 (MPI 5.0)", "libsome", "1.5 µs", "5 for one rank, 3 for each of 2",
                "the time of 6.5 CPUs", "usable here",
            ],
        ),
        (dataclasses.replace(FACTS, size=1), 1, ["do not belong"]),
        ("no network", 1, ["no network", "exit code"]),
    ],
    ids=["no core", "fine", "wrong mpiexec", "broken"],
)
def test_doctor(package, monkeypatch, facts, code, words):
    monkeypatch.delenv("TILEWAVE_THREADS", raising=False)
    if facts is not None:  # in place of the core and of the module that pings with it
        (package / "tilewave" / "_core.py").write_text("def topology():\n    return 'no hosts'\n")
        (package / "tilewave" / "cli" / "ping.py").write_text(
            f"def main():\n    raise OSError({facts!r})\n"
            if isinstance(facts, str)
            else f"import os\ndef main():\n    if os.environ['PMI_RANK'] == '0':\n        print({facts.line()!r})\n"
        )
    done = doctor(PYTHONPATH=str(package))
    assert done.returncode == code, done.stdout + done.stderr
    for word in words:
        assert word in done.stdout, done.stdout


def test_facts_of_a_ping_survive_their_line():
    assert PingFacts.of_output(f"noise\nping of another program\n{FACTS.line()}\n") == FACTS
    assert PingFacts.of_output('ping {"size": 2}') is None


def test_bench_finds_the_benchmarks_of_a_checkout(tmp_path):
    """Of the one that the package is part of, or that the command runs in; what is installed has none."""
    program = (
        "from pathlib import Path; from tilewave.cli import commands; commands.CHECKOUT = Path('/nowhere');"
        " commands.main()"
    )

    def bench(*arguments):
        return ended(PYTHON, "-c", program, "bench", *arguments, cwd=tmp_path)

    nothing = bench("one")
    assert nothing.returncode == 2 and "run this command in a checkout" in nothing.stderr
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "worker.py").touch()
    (tmp_path / "bench" / "__init__.py").write_text(
        "def one(json_path, quick):\n    print('one', json_path, quick)\nNAMES = {'one': one}\n"
    )
    assert bench("one", "--json", "x.json", "--quick").stdout == "one x.json True\n"
    unknown = bench("two")
    assert unknown.returncode == 2 and "no benchmark 'two'; there are: one" in unknown.stderr
