"""Checks who includes whom: a table of folders, each of which may use only those above it; that one place names MPI;
and that no two files define types of one name.
"""

import re
import sys
from pathlib import Path

from imports import circle

ROOT = Path(__file__).resolve().parent.parent

# Folder of src/: the public headers (include/tilewave) that it implements. A folder may include itself and the folders
# above it: what generates, predicts and plans knows nothing of transports and threads.
FOLDERS = {
    "core": "runs error fast_paths index limits dtype",
    "data": "layout matrix block_cyclic transpose",
    "schedule": "schedule timeline",
    "check": "check",
    "problem": "linalg_plan machine network plan plan_choices problem scheme",
    "predict": "predict",
    "generate/copy": "",
    "generate/halo": "",
    "generate/pattern": "pattern",
    "generate/linalg": "",
    "generate/sweep": "",
    "generate/stencil": "",
    "generate/pivot": "",
    "generate/gather": "",
    "generate/nest": "",
    "generate/chain": "",
    "plan/nests": "",
    "plan/panels": "",
    "plan/products": "",
    "transport": "transport",
    "execute/lanes": "",
    "execute": "kernel reduction task",
    "measure/links": "",
    "context": "context",
    "measure": "",
    "run": "run_schedule",
    "arrays": "field halo",
    "nests": "lambda_kernel nest operand report",
    "patterns": "patterns",
    "dense": "linalg tilewave",
    "bindings": "",
}
MOST_HEADERS = 15  # in include/tilewave, that users include; what builders of schedules need is in its folder engine
MAY_NAME_MPI = re.compile(r"src/transport/mpi(_entry|_leaving)?\.[ch]pp|bindings/mpi_library\.[ch]pp")
TYPE = re.compile(r"(?:struct|class|union|enum(?: class)?) (?:alignas\([^)]*\) )?([\w:]+)(?! *<)[^;]*$")
LEVEL = {folder: level for level, folder in enumerate(FOLDERS)}
HOME = {header: folder for folder, headers in FOLDERS.items() for header in headers.split()}


def folder_of(path, root):
    """The folder of the table that a file belongs to, the nearest around it; None where there is none."""
    parts = path.relative_to(root).parts
    if parts[:2] == ("include", "tilewave"):
        return HOME.get(path.stem)
    if parts[0] == "bindings":
        return "bindings"
    folders = ["/".join(parts[1:end]) for end in range(len(parts) - 1, 1, -1)] if parts[0] == "src" else []
    return next((f for f in folders if f in FOLDERS), None)


def included(path, root):
    """(line number, file) of what a file includes of this repository."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := re.match(r'\s*#include "([^"]+)"', line):
            for base in (root / "include", root / "src", path.parent):
                if (base / match[1]).exists():
                    yield number, (base / match[1]).resolve()
                    break


def types_of(path):
    """(line number, name) of what a file defines that the linker takes for one type with others of that name."""
    spaces = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := re.match(r"namespace ?([\w:]*) ?\{$", line):
            spaces.append(match[1])
        elif line.startswith("}  // namespace"):
            spaces.pop()
        elif (match := TYPE.match(line)) and "" not in spaces:
            yield number, "::".join([*spaces, match[1]])


def defined_twice(root):
    """Types of one name in two files: functions that the compiler makes of them (a vector's push_back) are mixed up."""
    first = {}
    for folder in ("include", "src", "bindings", "tests/cpp", "examples"):
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            file = path.relative_to(root).as_posix()
            for number, name in types_of(path):
                other = first.setdefault(name, file)
                if other != file:
                    yield f"{file}:{number}: {other} defines {name}, too; rename one, or put it into a namespace {{"


def violations(root=ROOT):
    """All that is wrong in the tree at `root`, a line each, and the number of files that were looked at."""
    root = root.resolve()
    files = sorted(p for d in ("include", "src", "bindings") for p in (root / d).rglob("*.[ch]pp"))
    wrong, graph = [], {}
    for path in files:
        name, here = path.relative_to(root).as_posix(), folder_of(path, root)
        if here is None:
            wrong.append(f"{name}: its folder is not in the table of tools/layers.py; give it a place there")
            continue
        graph[name] = []
        for number, other in included(path, root):
            there, other_name = folder_of(other, root), other.relative_to(root).as_posix()
            graph[name].append(other_name)
            if there is not None and LEVEL[there] > LEVEL[here]:
                wrong.append(f"{name}:{number}: {here} includes {other_name}; it may use only folders above itself")
            if name.startswith("include/") and not other_name.startswith("include/"):
                wrong.append(f"{name}:{number}: a public header includes {other_name}, which is not installed")
        if not MAY_NAME_MPI.fullmatch(name):
            wrong += [
                f"{name}:{number}: names MPI; only src/transport/mpi*.cpp and what loads it may"
                for number, line in enumerate(path.read_text().splitlines(), 1)
                if re.search(r"#include <mpi\.h>|\bMPI_[A-Z]", line)
            ]
    headers = len(list((root / "include" / "tilewave").glob("*.hpp")))
    if headers > MOST_HEADERS:
        wrong.append(f"include/tilewave: {headers} headers; allowed: {MOST_HEADERS}; others go to its folder engine")
    wrong += circle(graph, "includes")
    wrong += defined_twice(root)
    return wrong, len(files)


def main():
    wrong, count = violations()
    print("\n".join(wrong) or f"layers: {count} files in order")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
