"""Random programs of the whole language equal their plain loops: new ones in each run.

    TILEWAVE_SEED=123 python -m pytest tests/python/nests/test_random_programs.py     # one again
    TILEWAVE_SEED=1000:1200 ...                                                       # some
    python tests/programs.py --count 100000                                           # many
"""

import os
import sys
from pathlib import Path

import pytest
import sampling

from random_programs import campaign

COMMAND = [sys.executable, str(Path(__file__).resolve().parents[2] / "programs.py")]
PARTS, CPU_S = 12, 5.0  # together a minute
LONG_PARTS, LONG = 40, 10_000
SEEDS_OF_A_RUN = 1_000_000
ASKED = os.environ.get("TILEWAVE_SEED", "")


def right(seeds, folder, monkeypatch, cpu_s=1e9):
    """Run seeds in child processes; what is wrong is printed."""
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(folder))  # nobody needs their kernels again
    said = []
    counts = campaign.campaign(COMMAND, seeds, (1, 1), campaign.Limits(1, 1200, cpu_s), said.append)
    print(counts.text(), *(text for text in said if text.startswith("---")), sep="\n")
    assert not counts.failures and sum(counts.kinds.values())
    return counts


@pytest.mark.skipif(bool(ASKED), reason="TILEWAVE_SEED asks for some")
@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(PARTS))
def test_new_programs(part, tmp_path, monkeypatch):
    first = sampling.number() * SEEDS_OF_A_RUN + part * campaign.SEEDS_OF_A_CHILD
    right(range(first, first + campaign.SEEDS_OF_A_CHILD), tmp_path, monkeypatch, CPU_S)


@pytest.mark.long
@pytest.mark.skipif(bool(ASKED), reason="TILEWAVE_SEED asks for some")
@pytest.mark.parametrize("part", range(LONG_PARTS))
def test_many_programs(part, tmp_path, monkeypatch):
    size = LONG // LONG_PARTS
    first = sampling.number() * SEEDS_OF_A_RUN + SEEDS_OF_A_RUN // 2 + part * size
    right(range(first, first + size), tmp_path, monkeypatch)


@pytest.mark.skipif(not ASKED, reason="for TILEWAVE_SEED")
def test_programs_that_are_asked_for(tmp_path, monkeypatch):
    first, _, end = ASKED.partition(":")
    right(range(int(first), int(end) if end else int(first) + 1), tmp_path, monkeypatch)
