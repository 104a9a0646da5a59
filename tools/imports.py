"""Checks who imports whom in the Python package: a table of folders, each of which may use those above it, and no
circles.
"""

import ast
import graphlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "python"

# Folder of python/tilewave, or "" for the files beside them. A folder may import itself and what stands above it.
FOLDERS = [
    "", "nest", "launch", "kernel.types", "kernel.emit", "kernel.rows", "kernel.tables", "kernel", "timeline", "plan",
    "machine", "context", "patterns", "field", "nests", "loops", "schedule", "linalg", "checkpoints", "multigrid",
    "recipes", "cli",
]  # fmt: skip
LEVEL = {folder: level for level, folder in enumerate(FOLDERS)}
#: The package's front: what it offers comes from all folders, and the command line and benchmarks use it as programs
#: do.
FRONT, CORE = "tilewave", "tilewave._core"


def imported(path, names):
    """(line number, module, whether a program imports it) of each import of this package in a file, inside functions
    too; not those for type checkers.
    """
    tree = ast.parse(path.read_text())
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found = [
                f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in names else node.module
                for alias in node.names
            ]
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, None, True
            continue
        else:
            continue
        yield from ((node.lineno, module, node not in for_types) for module in found if module.split(".")[0] == FRONT)


def folder_of(name):
    """The folder of a module's dotted name."""
    parts = name.split(".")[1:]
    folders = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((f for f in folders if f in LEVEL), parts[0] if len(parts) > 1 else "")


def violations(root=ROOT):
    """All that is wrong in the package `tilewave` in the folder `root`, a line each, and the number of files."""
    files = {}
    for path in sorted((root / FRONT).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    wrong, graph = [], {}
    for name, path in files.items():
        here, graph[name] = folder_of(name), []
        where = path.relative_to(root).as_posix()
        if here not in LEVEL:
            wrong.append(f"{where}: its folder is not in the table of tools/imports.py; give it a place there")
            continue
        for line, module, in_programs in imported(path, files.keys() | {CORE}):
            if module is None:
                wrong.append(f"{where}:{line}: a relative import; allowed: from tilewave.folder.file import name")
                continue
            there = folder_of(module)
            if name == FRONT or there not in LEVEL:
                continue
            if in_programs:
                graph[name].append(module)
            if module == FRONT and here != "cli":
                wrong.append(f"{where}:{line}: imports the package's front; allowed: the file that has what it needs")
            elif LEVEL[there] > LEVEL[here]:
                wrong.append(
                    f"{where}:{line}: {here or 'a file beside the folders'} imports {module}; it may use only folders "
                    "above itself"
                )
    return wrong + circle(graph), len(files)


def circle(graph, verb="imports"):
    """Modules that import each other in a circle, as a line, where there are some."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return [f" {verb} ".join(reversed(error.args[1]))]
    return []


def main():
    wrong, count = violations()
    print("\n".join(wrong) or f"imports: {count} files in order")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
