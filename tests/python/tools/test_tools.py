"""The tools that check who may use whom: they refuse what is not in order."""

import importlib
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def tools(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[3] / "tools")


def tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def refused(tool, root, files, changes, says):
    """Files that are in order, and changes of which the tool says what is wrong."""
    tool = importlib.import_module(tool)
    tree(root, files)
    assert tool.violations(root) == ([], len(files))
    tree(root, changes)
    wrong, _ = tool.violations(root)
    assert any(says in line for line in wrong), wrong


PACKAGE = {
    "tilewave/__init__.py": "from tilewave.nests.run import run\n",
    "tilewave/errors.py": "",
    "tilewave/nest/nest.py": "import math\n",
    "tilewave/nests/run.py": "from tilewave import _core, errors\nfrom tilewave.nest.nest import x\n",
}


@pytest.mark.parametrize(
    "name,text,says",
    [
        (
            "tilewave/nest/nest.py",
            "from tilewave.nests.run import run\n",
            "nest imports tilewave.nests.run; it may use only folders above itself",
        ),
        (
            "tilewave/nest/nest.py",
            "def f():\n    from tilewave.nests import run\n",
            "nest.py:2: nest imports tilewave.nests.run",
        ),
        ("tilewave/errors.py", "import tilewave.nests.run\n", "a file beside the folders imports tilewave.nests.run"),
        ("tilewave/nest/nest.py", "import tilewave\n", "imports the package's front"),
        ("tilewave/nest/nest.py", "from . import other\n", "a relative import"),
        ("tilewave/other/file.py", "", "its folder is not in the table"),
        (
            "tilewave/nest/other.py",
            "from tilewave.nest import third\n",
            "tilewave.nest.other imports tilewave.nest.third imports tilewave.nest.other",
        ),
    ],
)
def test_imports(tmp_path, name, text, says):
    third = {"tilewave/nest/third.py": "from tilewave.nest.other import y\n"} if "third" in text else {}
    refused("imports", tmp_path, PACKAGE, {**third, name: text}, says)


SOURCES = {
    "include/tilewave/plan.hpp": '#include "tilewave/machine.hpp"\n',
    "include/tilewave/machine.hpp": "",
    "src/core/clock.hpp": "namespace tilewave {\nstruct Piece;\nstruct Clock {\n};\n}  // namespace tilewave\n",
    "src/core/piece.hpp": "namespace tilewave {\nstruct Piece {\n};\n}  // namespace tilewave\n",
    "src/plan/nests/search.cpp": '#include "core/clock.hpp"\n#include "tilewave/plan.hpp"\n',
    "src/execute/lanes/lanes.hpp": "",
    "src/transport/mpi.cpp": "#include <mpi.h>\n",
}


@pytest.mark.parametrize(
    "name,text,says",
    [
        (
            "src/core/clock.hpp",
            '#include "tilewave/plan.hpp"\n',
            "core includes include/tilewave/plan.hpp; it may use only folders above itself",
        ),
        (
            "include/tilewave/machine.hpp",
            '#include "tilewave/plan.hpp"\n',
            "include/tilewave/machine.hpp includes include/tilewave/plan.hpp includes",
        ),
        (
            "include/tilewave/plan.hpp",
            '#include "core/clock.hpp"\n',
            "a public header includes src/core/clock.hpp, which is not installed",
        ),
        (
            "src/generate/copy/copy.cpp",
            '#include "execute/lanes/lanes.hpp"\n',
            "generate/copy includes src/execute/lanes/lanes.hpp; it may use only folders above itself",
        ),
        ("src/loose.cpp", "", "src/loose.cpp: its folder is not in the table"),
        ("include/tilewave/other.hpp", "", "other.hpp: its folder is not in the table"),
        ("src/plan/nests/search.cpp", "int x = MPI_SUCCESS;\n", "names MPI"),
        (
            "src/plan/nests/search.cpp",
            "namespace tilewave {\nnamespace {\nstruct Clock {};\n}  // namespace\nstruct Piece final {\n",
            "src/plan/nests/search.cpp:5: src/core/piece.hpp defines tilewave::Piece, too",
        ),
    ],
)
def test_layers(tmp_path, name, text, says):
    refused("layers", tmp_path, SOURCES, {name: text}, says)


def test_headers_that_users_include_are_few(tmp_path):
    tool = importlib.import_module("layers")
    tree(tmp_path, {f"include/tilewave/engine/{stem}.hpp": "" for stem in tool.HOME})
    assert tool.violations(tmp_path) == ([], len(tool.HOME))
    tree(tmp_path, {f"include/tilewave/{stem}.hpp": "" for stem in list(tool.HOME)[:16]})
    assert "include/tilewave: 16 headers; allowed: 15; others go to its folder engine" in tool.violations(tmp_path)[0]
