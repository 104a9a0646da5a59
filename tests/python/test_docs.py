"""The snippets of docs/nests.md are one program; it prints what the page says."""
import re
import runpy
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "nests.md"


def blocks(kind):
    """``(first line, text)`` of the page's blocks of a kind."""
    text = PAGE.read_text()
    return [(text[:found.start(1)].count("\n"), found[1])
            for found in re.finditer(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


def test_page(tmp_path, capsys):
    program = ""
    for line, text in blocks("python"):
        program += "\n" * (line - program.count("\n")) + text  # at its line in the page
    path = tmp_path / "nests.py"
    path.write_text(program)
    runpy.run_path(str(path))
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert printed == [line.rstrip() for _, text in blocks("text") for line in text.splitlines()]
