"""What `make docs` builds the site from, without building it; the notebooks run."""

import importlib.util
import re
from pathlib import Path

import pytest
import tilewave

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())
EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("module", ["", "linalg", "multigrid", "patterns", "recipes"])
def test_the_reference_lists_every_public_name(module):
    """Those of types and names that are no objects of their own have no page."""
    text = (ROOT / "docs" / "api" / "index.md").read_text()
    listed = set(re.findall(r"^   ([\w.]+)$", text, re.MULTILINE))
    owner = getattr(tilewave, module) if module else tilewave
    for name in owner.__all__:
        shown = f"{module}.{name}" if module else name
        in_text = shown in ("rank", "size", "patterns.OPS") or f"tilewave.{shown}" in text
        assert shown in listed or in_text, f"docs/api/index.md lacks {shown}"


def test_every_header_has_a_page_with_its_declarations():
    spec = importlib.util.spec_from_file_location("cpp_api", ROOT / "tools" / "cpp_api.py")
    cpp_api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cpp_api)
    pages = cpp_api.pages()
    headers = {p.relative_to(cpp_api.INCLUDE).with_suffix("").as_posix() for p in cpp_api.INCLUDE.rglob("*.hpp")}
    assert set(pages) == headers and len(headers) > 20
    assert pages["context"].startswith("# tilewave/context.hpp\n") and "class Context" in pages["context"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.py")), ids=lambda path: path.stem)
@pytest.mark.exhaustive
def test_examples_have_a_title_and_say_how_they_are_run(path):
    title, line, text = re.match(r'"""\n?(.*)\n(=+)\n\n(.*?)"""', path.read_text(), re.DOTALL).groups()
    assert len(line) >= len(title)
    if path.parent.name != "notebooks":
        assert f"``tilewave run -n {'23'['-n 3' in text]} examples/" in text or "``python examples/" in text


def notebook(path):
    """A script with cells as a notebook: comments that begin a cell are its text."""
    import nbformat

    new, cells = nbformat.v4, []
    for part in re.split(r"^# %%\n", path.read_text(), flags=re.MULTILINE):
        text, code = re.match(r"((?:#[^\n]*\n)*)(.*)", part, re.DOTALL).groups()
        cells += [new.new_markdown_cell(re.sub("^# ?", "", text, flags=re.MULTILINE)), new.new_code_cell(code)]
    return new.new_notebook(cells=cells)


@pytest.mark.parametrize("path", sorted((EXAMPLES / "notebooks").glob("*.py")), ids=lambda path: path.stem)
@pytest.mark.sample(1)
def test_notebooks_run(path, tmp_path, monkeypatch):
    """Each asserts what it shows. They have pictures, and say what they print."""
    import nbclient  # a second for each process that collects tests

    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")  # as Jupyter sets it
    ran = notebook(path)
    nbclient.NotebookClient(ran, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    kinds = {key for cell in ran.cells for output in cell.get("outputs", ()) for key in output.get("data", ())}
    assert "image/png" in kinds
