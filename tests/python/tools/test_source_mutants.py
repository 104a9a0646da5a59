"""The mutants of the source are up to date, and the runner says what became of each."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def _run():
    spec = importlib.util.spec_from_file_location("source_mutants", ROOT / "tests" / "mutants" / "run.py")
    module = sys.modules.setdefault("source_mutants", importlib.util.module_from_spec(spec))
    if not hasattr(module, "mutants"):
        spec.loader.exec_module(module)
    return module


run = _run()


def test_each_mutant_has_its_place_in_the_source():
    mutants = run.mutants()
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        changed = mutant.text()  # raises unless its old text occurs once
        assert mutant.new != mutant.old and mutant.wrong, mutant.name
        if not mutant.compiled:
            ast.parse(changed)


def test_each_mutant_names_tests_that_are_there():
    for mutant in run.mutants():
        assert mutant.tests, mutant.name
        for selection in mutant.tests:
            if not selection.startswith(run.GTEST):
                assert (ROOT / selection.split()[0].partition("::")[0]).exists(), (mutant.name, selection)


def test_every_folder_has_mutants():
    folders = [Path("bindings")]
    for parent, kind in (("src", "**/*.cpp"), ("python/tilewave", "*.py")):
        folders += [each.parent.relative_to(ROOT) for each in (ROOT / parent).glob(f"*/{kind}")]
    for folder in sorted({Path(*folder.parts[: 3 if folder.parts[0] == "python" else 2]) for folder in folders}):
        found = [mutant.name for mutant in run.mutants() if Path(mutant.file).is_relative_to(folder)]
        assert len(found) >= 2, f"{folder}: two mutants at least; it has {found}"


@pytest.mark.parametrize(
    ("status", "output", "outcome"),
    [
        (0, "3 passed", "NOT CAUGHT"),
        (1, "FAILED tests/a.py::test_b - it fails", "caught"),
        (137, "", "caught"),
        (5, "no tests ran", "no tests"),
        (0, "[==========] Running 0 tests from 0 test suites.", "no tests"),
    ],
)
def test_what_became_of_a_mutant(status, output, outcome):
    class Copy:
        def run(self, command, timeout_s):
            return status, output

    mutant = run.Mutant("name", "src/a.cpp", "old", "new", "what is wrong", ["tests/a.py"])
    assert run.outcome_of(Copy(), mutant)[0] == outcome


def test_some_mutants_are_chosen_by_folder_file_or_name():
    mutant = run.Mutant("name", "src/generate/halo/halo.cpp", "old", "new", "what is wrong", ["tests/a.py"])
    for names in ([], ["name"], ["src/generate"], ["halo"], ["src/generate/halo/halo.cpp"], ["other", "src/"]):
        assert mutant.belongs_to(names), names
    assert not mutant.belongs_to(["src/gen", "nam"])
