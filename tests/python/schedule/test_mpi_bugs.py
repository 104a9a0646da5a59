"""A sample of the tables of docs/theory/checker.md: what goes wrong in a trial is reported, and nothing else.

A failure prints its mutants: `mpi_bugs.mutant(KINDS[name], seed)`.
"""

from pathlib import Path

import pytest
from mpi_bugs import CLASSES, FAMILIES, KINDS, count, speed

PAGE = Path(__file__).resolve().parents[3] / "docs/theory/checker.md"
FIRST, MANY, EACH = 1_000_000, 200, 5  # seeds of the page, and how many of them a case takes

pytestmark = pytest.mark.one_draw(1.0)


def rows():
    """By kind of mutant, the page's row after its words."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text().splitlines() if "|" in line]
    by_words = {words: row for _, words, *row in (line for line in cells if len(line) == 7)}
    return {kind.__name__: by_words[words] for kinds in CLASSES.values() for kind, words in kinds.items()}


@pytest.mark.parametrize("name", KINDS)
def test_mutants_are_found_where_they_go_wrong(name, seed):
    said, (*_, recall, precision) = [], rows()[name]
    wrong, found, reported = count(KINDS[name], EACH, FIRST + seed % (MANY - EACH), said.append)
    assert recall == "1.000" and found == wrong, said
    if precision == "1.000":
        assert reported == wrong, said


@pytest.mark.parametrize("family", FAMILIES)
def test_right_schedules_are_not_reported(family):
    made, _, reports, _ = speed(family, 40)
    assert made > 5 and reports == 0
