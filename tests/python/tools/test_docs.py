"""The documentation: its Python blocks run and print what the pages say, links lead somewhere, pages keep their
limits.
"""

import importlib.util
import re
import runpy
from pathlib import Path

import pytest

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())
ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "SECURITY.md")
PAGES = sorted([*(ROOT / name for name in ROOT_PAGES), *(ROOT / "docs").rglob("*.md")])
GENERATED = [ROOT / "docs" / name for name in ("api/cpp", "api/python", "gallery")]
WRITTEN = [page for page in PAGES if not any(folder in page.parents for folder in GENERATED)]
MOST_LINES = {"README.md": 110, "CHANGELOG.md": 80, "docs/benchmarks.md": 280}


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page, kind):
    """``(first line, text)`` of the page's blocks of a kind."""
    text = page.read_text()
    return [
        (text[: found.start(1)].count("\n"), found[1])
        for found in re.finditer(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


@pytest.mark.parametrize("page", [page for page in WRITTEN if blocks(page, "python")], ids=name_of)
def test_page(page, tmp_path, capsys, monkeypatch):
    """The Python blocks are one program; where the page has text blocks, they are what it prints."""
    program = ""
    for line, text in blocks(page, "python"):
        program += "\n" * (line - program.count("\n")) + text  # at its line in the page
    path = tmp_path / f"{page.stem}.py"
    path.write_text(program)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path))
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    said = [line.rstrip() for _, text in blocks(page, "text") for line in text.splitlines()]
    assert printed == said or page.name == "README.md"  # whose output has times


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_links(page):
    """Links within the repository lead to files, and to headings that are there."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        file, _, heading = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), f"{name_of(page)}: {target}"
        if heading:
            assert heading in anchors(there.read_text()), f"{name_of(page)}: {target}"


def anchors(text):
    """What GitHub calls the headings of a page."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.exhaustive
@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_limits(page):
    lines = page.read_text().splitlines()
    most = 40 if "decisions" in page.parts else MOST_LINES.get(name_of(page), 10**6)
    assert len(lines) <= most, f"{name_of(page)}: {len(lines)} lines; allowed: {most}"
    long = [number for number, line in enumerate(lines, 1) if len(line) > 120]
    assert not long, f"{name_of(page)}: more than 120 columns in the lines {long}"


def test_decisions_are_few():
    assert len(list((ROOT / "docs" / "decisions").glob("0*.md"))) <= 30


def test_theory_names_what_is_in_the_code():
    """Pages of docs/theory say where a formula is used, by the names of functions and types."""
    folders = [ROOT / name for name in ("include", "src", "bindings", "python", "tools", "docs/theory")]
    code = "\n".join(
        path.read_text() for folder in folders for path in folder.rglob("*") if path.suffix in (".cpp", ".hpp", ".py")
    )
    for page in (ROOT / "docs" / "theory").glob("*.md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for name in re.findall(r"`([A-Za-z_]\w*(?:::\w+)?)(?:\(\w*\))?`", text):
            for part in name.split("::"):
                assert re.search(rf"\b{part}\b", code), f"{name_of(page)}: `{name}` is not in the code; it was renamed"


def test_readme_names_the_commands():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text and "make test" in text and "first build takes" in text


def test_release_files_agree():
    """One version in all files, and a paper for each key of the theory."""
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^version: {re.escape(version)}$", citation, re.MULTILINE)
    assert re.search(rf"^## {re.escape(version)} ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    theory = "\n".join(page.read_text() for page in (ROOT / "docs" / "theory").glob("*.md"))
    keys = set(re.findall(r"^- \*\*([a-z]+\d{4})\*\*:", theory, re.MULTILINE))
    assert len(keys) == 6 and keys == set(re.findall(r"# ([a-z]+\d{4}):", citation))


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_benchmarks_are_those_of_the_json_files():
    assert (ROOT / "docs" / "benchmarks.md").read_text() == tool("benchmarks").page()
