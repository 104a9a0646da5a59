"""The table of kinds of nests, `kinds_table`: each cell runs, its results are those of plain loops, bit for bit, and it
runs as the table says. A cell that changes is written anew, also one that now works.
"""

import importlib.util
import re
from pathlib import Path

import kinds
import kinds_table
import pytest
from local_ranks import steady_rates

from tilewave.machine import known
from tilewave.nests.doors import measuring
from tilewave.nests.chain import several

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())


def tool():
    spec = importlib.util.spec_from_file_location("kinds_page", ROOT / "tools" / "kinds.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ROWS = {name: tool().rows(kind) for name, kind in kinds_table.KINDS.items()}
CELLS = [(name, door) for name, rows in ROWS.items() for door in rows if door != "C++"]


def written(expected, how, why):
    """What the table has to say of a cell that runs so, for this reason."""
    if expected[0] in ".?" and how in ".-":
        return expected
    reasons = kinds_table.REASONS.items()
    keys = [key for key, (of, message, *_) in reasons if why and of == how and re.search(message, why)]
    return how + (keys[0] if len(keys) == 1 else "" if how in "yr.x" else "?")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name,door", CELLS, ids=lambda part: part.replace(" ", "-"))
def test_cells_run_as_the_table_says(name, door, monkeypatch):
    steady_rates(monkeypatch)
    monkeypatch.setattr(several, "LEAST_MOVED_BYTES", 0)  # small arrays, too, are one schedule
    monkeypatch.setattr(measuring, "measured", machine_of)
    monkeypatch.setattr(known, "store", lambda found: None)
    row, found, whys = ROWS[name][door], {}, {}
    for feature, expected in row.items():
        how, why = kinds.outcome(kinds.KINDS[name], feature, door)
        found[feature], whys[feature] = written(expected, how, why), why
    wrong = [
        f"{feature}: the table says {row[feature]}, {'and this cell now works' if cell == 'y' else 'it is ' + cell}: "
        f"write {cell}. {whys[feature]}"
        for feature, cell in found.items()
        if cell != row[feature]
    ]
    assert not wrong, "\n".join(
        [
            f"{name}, {door}, in kinds_table.py (then run tools/kinds.py):",
            *wrong,
            door.ljust(10) + " ".join(cell.ljust(len(feature)) for feature, cell in found.items()),
        ]
    )


def machine_of(context, quick, budget_s):
    """Default numbers, as nothing is measured here."""
    return known.Machine._from_core(context._core.machine(), known.conditions(context))


def test_all_kinds_doors_and_reasons_are_in_the_table():
    assert list(ROWS) == list(kinds.KINDS)
    cells = {cell for rows in ROWS.values() for row in rows.values() for cell in row.values()}
    assert cells <= {"y", "r", "x", ".", "?"} | {how + key for key, (how, *_) in kinds_table.REASONS.items()}
    assert {cell[1:] for cell in cells} - {""} == set(kinds_table.REASONS), "a reason that no cell has"
    for name, rows in ROWS.items():
        assert set(rows) - {"C++"} <= set(kinds.DOORS)
        assert name in kinds_table.MEANINGLESS or not any("." in row.values() for row in rows.values())


def test_cells_of_cpp_have_tests():
    text = "\n".join(path.read_text() for path in (ROOT / "tests" / "cpp" / "nests").glob("*.cpp"))
    for name, rows in ROWS.items():
        works = {feature for feature, cell in rows["C++"].items() if cell == "y"}
        tests = kinds_table.CPP.get(name, {})
        assert works == set(tests), name
        for test in tests.values():
            suite, case = test.split(".")
            assert re.search(rf"TEST(_P)?\({suite}, {case}\)", text), test


def test_the_page_is_that_of_the_table():
    assert tool().PAGE.read_text() == tool().page(), "run tools/kinds.py"
