"""Faults and wrong calls on one rank: the others are told, nobody hangs, and the next call works.

`make test` runs a share of the cases, drawn by a seed that is printed; `--long` runs all of them.
"""

import json
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shared_files
from tilewave.launch import processes

HERE = Path(__file__).resolve().parent
HANG_S = 120  # without a sign of life: the longest that any call may keep a rank waiting
SHARE = 0.03  # of the cases that run without --long


class Launched:
    """A program on some ranks, killed with all that belongs to it when it shows no life."""

    def __init__(self, program, ranks, *arguments, folder):
        self.folder = folder
        self.tag = secrets.token_hex(16)
        before = os.environ.get(processes.TAG)
        env = {
            **os.environ,
            processes.TAG: f"{before}/{self.tag}" if before else self.tag,
            "TILEWAVE_PROGRESS": "0",
            "OMP_NUM_THREADS": "1",
        }
        command = [
            sys.executable, "-c", "from tilewave.cli.commands import main; main()", "run", "-n", str(ranks),
            str(HERE / program), *map(str, arguments),
        ]
        self.output = open(folder / "output.txt", "ab")
        self.process = subprocess.Popen(
            command, env=env, stdout=self.output, stderr=self.output, stdin=subprocess.DEVNULL, cwd=folder
        )

    def life(self):
        """Changes whenever a rank has written something."""
        return [(path.name, path.stat().st_size) for path in sorted(self.folder.glob("rank-*.jsonl"))]

    def end(self, patience_s=HANG_S, start_s=300):
        """The exit code; None where it hung and was killed."""
        seen, since, allowed = self.life(), time.monotonic(), start_s
        while self.process.poll() is None:
            time.sleep(0.05)
            if (now := self.life()) != seen:
                seen, since, allowed = now, time.monotonic(), patience_s
            elif time.monotonic() - since > allowed:
                processes.kill(self.tag)
                self.process.wait()
                return None
        return self.process.returncode

    def text(self):
        return (self.folder / "output.txt").read_text(errors="replace")[-3000:]


def records(folder, ranks):
    """Each rank's lines, as dicts."""
    return [
        [json.loads(line) for line in (folder / f"rank-{r}.jsonl").read_text().splitlines()]
        if (folder / f"rank-{r}.jsonl").exists()
        else []
        for r in range(ranks)
    ]


def wrong(folder, ranks):
    """What is wrong with the cases that every rank has finished, as text."""
    by_case = {}
    for rank, lines in enumerate(records(folder, ranks)):
        for line in lines:
            if "case" in line:
                case = by_case.setdefault(line["case"], {"outcome": {}, "works": {}})
                case.update({key: line[key] for key in ("name",) if key in line})
                for key in ("outcome", "works"):
                    if key in line:
                        case[key][rank] = line[key]
    found = []
    for number, case in sorted(by_case.items()):
        outcomes, works = list(case["outcome"].values()), list(case["works"].values())
        if len(works) == ranks and (len(set(outcomes)) > 1 or set(works) != {"ok"}):
            found.append(f"{number} {case['name']}: {case['outcome']}; the next call: {case['works']}")
    return len(by_case), found


def campaign(tmp_path, what, ranks, share):
    """Runs the cases; after a hang goes on behind it."""
    seed, first, hangs = secrets.token_hex(4), 0, []
    print(f"seed {seed}")
    while True:
        launched = Launched("program.py", ranks, what, tmp_path, first, share, seed, folder=tmp_path)
        code = launched.end()
        lines = records(tmp_path, ranks)
        if all(each and each[-1].get("end") for each in lines):
            break
        begun = [line for each in lines for line in each if line.get("begins") and line["case"] >= first]
        assert begun, f"exit code {code}, no case begun\n{launched.text()}"
        last = max(begun, key=lambda line: line["case"])
        hangs.append(f"{last['case']} {last['name']}: {'hung' if code is None else f'ended with {code}'}")
        assert len(hangs) < 20, "\n".join(hangs) + launched.text()
        first = last["case"] + 1
    count, found = wrong(tmp_path, ranks)
    print(f"{what}: {count} cases on {ranks} ranks, {len(found)} wrong, {len(hangs)} hung; seed {seed}")
    assert count and not hangs and not found, "\n".join([f"seed {seed}", *hangs, *found[:6]])


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("what", ["bad", "mismatch"])
def test_some_wrong_calls(tmp_path, what, ranks):
    campaign(tmp_path, what, ranks, SHARE if what == "bad" else 2 * SHARE)


@pytest.mark.parametrize("ranks", [2])
def test_other_objects_of_one_shape(tmp_path, ranks):
    campaign(tmp_path, "others", ranks, 1)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [3, 4])
def test_other_objects_on_more_ranks(tmp_path, ranks):
    campaign(tmp_path, "others", ranks, 1)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("what", ["bad", "mismatch"])
def test_all_wrong_calls(tmp_path, what, ranks):
    if ranks > 1 or what == "bad":
        campaign(tmp_path, what, ranks, 1)


ENDS = ["exit 0", "exit 3", "os._exit 0", "kill", "before 0", "before 3"]
KINDS = [*ENDS, "interrupt", "body", "memory"]


def fault(folder, kind, ranks, seed):
    """One program with one fault; what is wrong with its end, or None."""
    folder.mkdir()
    before = shared_files.present()
    launched = Launched("faults.py", ranks, kind, seed, folder=folder)
    code = launched.end(start_s=15 + 10)  # it goes on for 8 s at most
    case = f"{kind} on {ranks} ranks, seed {seed}"
    if code is None:
        return f"{case}: hung\n{launched.text()}"
    if kind in ENDS and code == 0:
        return f"{case}: exit code 0\n{launched.text()}"
    if kind in ("body", "memory", "interrupt") and code != 0:
        return f"{case}: exit code {code}\n{launched.text()}"
    if left := shared_files.orphans(before):
        return f"{case}: left {left}"
    return None


def faults(tmp_path, kinds, ranks, count):
    seeds = [secrets.randbelow(10**6) for _ in range(count)]
    found = [fault(tmp_path / f"{kind}-{n}-{seed}", kind, n, seed) for kind in kinds for n in ranks for seed in seeds]
    wrong = [each for each in found if each]
    print(f"faults: {len(found)} programs, {len(wrong)} wrong; seeds {seeds}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", ["exit 0", "os._exit 0", "kill", "body"])
def test_one_fault_of_a_kind(tmp_path, kind):
    faults(tmp_path, [kind], [2], 1)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_many_faults(tmp_path, kind):
    faults(tmp_path, [kind], [2, 3, 4], 12)


def random_calls(tmp_path, program, ranks, count):
    """Cases of a program that draws them itself, all right and none hung: rank 0's outcomes, and the seed."""
    seed = secrets.randbelow(10**6)
    launched = Launched(program, ranks, seed, count, tmp_path, folder=tmp_path)
    code = launched.end()
    cases, found = wrong(tmp_path, ranks)
    ended = [bool(lines and lines[-1].get("end")) for lines in records(tmp_path, ranks)]
    print(f"{program}: {cases} cases on {ranks} ranks, {len(found)} wrong; seed {seed}")
    assert code == 0 and all(ended) and not found, "\n".join([f"seed {seed}, code {code}", *found[:6], launched.text()])
    return [line["outcome"] for line in records(tmp_path, ranks)[0] if "outcome" in line], seed


def memory_limits(tmp_path, ranks, count):
    """Calls of all families while memory ends on one rank."""
    outcomes, seed = random_calls(tmp_path, "memory.py", ranks, count)
    print(f"memory: {outcomes.count('memory')} errors")
    assert set(outcomes) <= {"ok", "memory"}, f"seed {seed}: {set(outcomes)}"


def test_some_memory_limits(tmp_path):
    memory_limits(tmp_path, 2, 40)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_many_memory_limits(tmp_path, ranks):
    memory_limits(tmp_path, ranks, 400)


def two_threads(tmp_path, ranks, count):
    """Calls of all families in two threads, each on a context of its own."""
    outcomes, seed = random_calls(tmp_path, "threads.py", ranks, count)
    assert set(outcomes) == {"ok"}, f"seed {seed}: {set(outcomes)}"


def test_two_threads(tmp_path):
    two_threads(tmp_path, 2, 4)


@pytest.mark.long
@pytest.mark.parametrize("without", ["", "shared"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_two_threads_for_long(tmp_path, monkeypatch, ranks, without):
    monkeypatch.setenv("TILEWAVE_WITHOUT", without)
    two_threads(tmp_path, ranks, 60)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2])
def test_growth_over_many_calls(tmp_path, ranks):
    """20,000 calls of all kinds: the last half takes no memory and no descriptors."""
    launched = Launched("program.py", ranks, "growth", tmp_path, 20_000, 1, 0, folder=tmp_path)
    assert launched.end(patience_s=600) == 0, launched.text()
    for lines in records(tmp_path, ranks):
        quarters = [line for line in lines if "quarter" in line]
        print(quarters)
        assert quarters[-1]["descriptors"] == quarters[1]["descriptors"]
        assert quarters[-1]["memory_kb"] - quarters[2]["memory_kb"] < 10_000
