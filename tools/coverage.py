"""Prints the share of lines and branches that tests reach, a row for each folder: coverage.py CPP.json PYTHON.json.

CPP.json is a summary of gcovr, PYTHON.json one of coverage. The end is 1 if a folder of `LEAST` reaches less.
"""

import collections
import json
import sys
from pathlib import Path

# Per cent of the branches. What is left are mostly those that g++ adds, one for each temporary text or optional that is
# destroyed: of their lines 98.8 and 99.8 % are reached.
LEAST = {"src/check": 88.0, "src/schedule": 93.0}


def files(cpp, python):
    """Of each file: its name, lines reached and all, branches reached and all."""
    for file in json.loads(Path(cpp).read_text())["files"]:
        yield file["filename"], [file[f"{what}_{n}"] for what in ("line", "branch") for n in ("covered", "total")]
    for name, file in json.loads(Path(python).read_text())["files"].items():
        sums = file["summary"]
        yield name, [sums["covered_lines"], sums["num_statements"], sums["covered_branches"], sums["num_branches"]]


def main(cpp, python):
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for name, counts in files(cpp, python):
        # The folder below src, include or the package that a file is in.
        folder = "/".join(Path(name).parts[:-1][: 3 if name.startswith("python") else 2])
        rows[folder] = [a + b for a, b in zip(rows[folder], counts)]
    print(f"{'folder':36s}{'lines':>8s}{'':>9s}{'branches':>12s}")
    short = []
    for name, (lines, all_lines, branches, all_branches) in sorted(rows.items()):
        share = 100 * branches / (all_branches or 1)
        print(f"{name:36s}{100 * lines / (all_lines or 1):7.1f}% of {all_lines:<6d}{share:7.1f}% of {all_branches}")
        if share < LEAST.get(name, 0):
            short.append(f"{name}: {share:.1f} % of its branches are reached, {LEAST[name]:g} % are asked")
    return "\n".join(short)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
