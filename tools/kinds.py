"""Writes docs/guide/kinds.md from tests/python/support/kinds_table.py; --check: is it up to date?

The table has a letter for each kind of nest, door and feature, and the key of a reason: its head says which. Two tables
of the page show what `tw.run` does with each feature, and what each door does with a plain call; a list says where a
door differs from `tw.run`. The standard library is all that this needs.
"""

import runpy
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA, PAGE = ROOT / "tests" / "python" / "support" / "kinds_table.py", ROOT / "docs" / "guide" / "kinds.md"
TABLE = runpy.run_path(str(DATA))
NAMES, DOORS, HOW = (TABLE[name] for name in ("NAMES", "DOORS", "HOW"))


def rows(kind):
    """From each door to its cells by feature."""
    head, *lines = kind["table"].strip().splitlines()
    features = head.split()
    return {line[:9].strip(): dict(zip(features, line[9:].split(), strict=True)) for line in lines}


def _table(first, names, kinds, cell):
    yield f"| {first} | {' | '.join(kind['short'] for kind in kinds.values())} |"
    yield "| --- |" + " --- |" * len(kinds)
    for name, shown in names.items():
        yield f"| {shown} | {' | '.join(cell(name, kind) for kind in kinds.values())} |"


def _shown(cell):
    return {"x": "", ".": "·"}.get(cell, cell)


def _differences(kind):
    """What doors do otherwise than `tw.run`, as text."""
    run, *others = rows(kind).items()
    for door, cells in others:
        own = {f: cell for f, cell in cells.items() if cell != "x" and (run[1][f], cell) != ("x", "y")}
        found = {}
        for feature, cell in own.items():
            if cell != run[1][feature] and door != "C++":
                found.setdefault(cell, []).append(NAMES[feature])
        if len(found) == 1 and len(*found.values()) == len(own):
            found = {cell: ["all"] for cell in found}
        if found:
            said = (f"`{_shown(cell)}` {', '.join(names)}" for cell, names in found.items())
            yield f"{DOORS[door]}: {'; '.join(said)}"


def _missing(kinds):
    """What no test of C++ has, of what `tw.run` does."""
    for name, kind in kinds.items():
        run = rows(kind)["run"]
        wanted = {feature for feature, cell in run.items() if cell == "y" or feature == "until" and cell != "."}
        if lacking := [NAMES[feature] for feature in run if feature in wanted - {*TABLE["CPP"].get(name, ())}]:
            yield f"- {name}: {', '.join(lacking)}"


def page():
    """The text of the page."""
    kinds = TABLE["KINDS"]
    lines = [
        "<!-- written by tools/kinds.py from tests/python/support/kinds_table.py: do not edit -->",
        "# Kinds of nests",
        "",
        "Every kind of nest gives the bits of its plain loops. This page shows how each one runs, with each feature "
        "and by each door. A test runs all cells on ranks and lanes and compares them with plain loops.",
        "",
        *(f"- **{kind['short']}**: {name}, {kind['example']}" for name, kind in kinds.items()),
        "",
        "`y`: in parallel, or done. An empty cell: no parameter of this door. `·`: no meaning there. `?`: not tested. "
        f"Others begin with {', '.join(f'`{letter}` ({text})' for letter, text in HOW.items())}; the "
        "[list below](#why-and-what-to-write-instead) has the reason of the second letter.",
        "",
        "## What `tw.run` does",
        "",
        *_table("with", {f: n for f, n in NAMES.items() if f != "until"}, kinds, _cell_of_run),
        "",
        "## What each door does with a plain call",
        "",
        *_table("door", DOORS, kinds, lambda door, kind: _shown(rows(kind).get(door, {"ranks": "."})["ranks"])),
        "",
        "## Where a door differs from `tw.run`",
    ]
    for name, kind in kinds.items():
        if differences := [f"- {each}" for each in _differences(kind)]:
            lines += ["", f"{name.capitalize()}:", "", *differences]
    lines += ["", "C++ has tests of each cell of `tw.run` that is `y`, and of `until=`, but for:", "", *_missing(kinds)]
    lines += ["", "## Why, and what to write instead", ""]
    for key, (how, _, why, instead) in TABLE["REASONS"].items():
        lines.append(f"- `{how}{key}` {HOW[how]}. {why}{instead and f' Write {instead}.'}")
    lines += [f"- `·` for {name}: {why}" for name, why in TABLE["MEANINGLESS"].items()]
    return "\n".join(_wrapped(lines)) + "\n"


def _cell_of_run(feature, kind):
    return _shown(rows(kind)["run"][feature])


def _wrapped(lines):
    """Lines of at most 120 columns; tables are left as they are."""
    for line in lines:
        if line.startswith("|") or len(line) <= 120:
            yield line
        else:
            indent = "  " if line.startswith("- ") else ""
            yield from textwrap.wrap(line, 120, subsequent_indent=indent, break_on_hyphens=False)


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text() != page() and f"{PAGE.name} is not up to date: run tools/kinds.py")
    PAGE.write_text(page())
