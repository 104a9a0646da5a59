"""Readers of files meet changed ones: they refuse them in their words, or take them whole."""

import sys
from pathlib import Path

import pytest
from launches import PYTHON, ended

FUZZ = Path(__file__).resolve().parents[1] / "support" / "fuzz.py"
TARGETS = ("npy", "zarr", "checkpoint", "machine", "plan", "schedule", "hosts", "job", "kernels")


def fuzz(seconds, seed, *targets):
    done = ended(PYTHON, FUZZ, seconds, seed, *targets, timeout=300 + 3 * seconds * len(targets))
    print(done.stderr, file=sys.stderr)
    last = (done.stdout.splitlines() or ["none"])[-1]
    assert done.returncode == 0, f"exit code {done.returncode} of fuzz.py, the last was {last}\n{done.stderr[-5000:]}"
    assert all(f"{target}: " in done.stderr for target in targets)


def test_some_cases_of_each(seed):
    fuzz(0.1, seed, *TARGETS)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_a_minute_of_each(target, seed):
    fuzz(60, seed, target)


def test_all_are_there():
    from fuzz_targets import TARGETS as all_targets

    assert tuple(all_targets) == TARGETS
