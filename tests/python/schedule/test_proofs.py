"""The long random runs of schedules, `tests/proofs.py`: a few of each kind here, all of them with --long."""

import importlib.util
from pathlib import Path

import pytest

path = Path(__file__).resolve().parents[2] / "proofs.py"
spec = importlib.util.spec_from_file_location("proofs", path)
proofs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(proofs)


def run(*arguments):
    said = []
    assert proofs.main([str(a) for a in arguments], said.append) == 0, said[-2:]
    return said


def test_a_part_of_all():
    said = run("--cases", 60, "--mutants", 16, "--part", "3/8")
    assert said[-1].startswith("part 3/8: ") and said[-1].endswith("; right")
    for name in proofs.SHARES:
        assert any(line.startswith(f"{name}: ") for line in said), name
    for module, kind in proofs.all_mutants():
        assert any(f"{module}, {kind.__name__}: 2 of 2 named" in line for line in said), kind


def test_parts_are_the_whole():
    seeds = sorted(seed for part in range(3) for seed in list(range(100, 120))[part::3])
    assert seeds == list(range(100, 120))
    assert sum(10 * part // 3 - 10 * (part - 1) // 3 for part in range(1, 4)) == 10


def test_what_is_wrong_is_told(monkeypatch):
    import task_graphs

    monkeypatch.setattr(task_graphs, "wrong", lambda graph, rank, arrays: "wrong values")
    said = []
    assert proofs.main(["--only", "graphs", "--cases", "2", "--mutants", "0", "--first", "7"], said.append) == 1
    assert said[0] == "WRONG: graphs: seed 7, 1 ranks: wrong values" and said[-1].endswith("WRONG")


@pytest.mark.long
def test_all():
    run()
