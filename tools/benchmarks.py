"""Writes docs/benchmarks.md from docs/benchmarks/*.json; --check: is it up to date?

A file is what `tilewave bench NAME --json FILE` writes. It may also have `title`, `command` (how to run it), `note`,
`where` (a list of words that begin its cases in the page's table), and in each row `date`; figures and ratios may be
null. The page has the rows that have a ratio, or a fraction of the limit, or a contender that `also` of
tools/benchmarks.json matches; `case` and `contender` there leave others out. The standard library is all that this
needs.
"""

import json
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER, PAGE = ROOT / "docs" / "benchmarks", ROOT / "docs" / "benchmarks.md"
MOST_LINES = 280
# By benchmark: its table, title and rows on the page; then what is asked of speed, and the command that shows it.
PAGE_DATA = json.loads(Path(__file__).with_suffix(".json").read_text())
BENCHMARKS, ASKED = PAGE_DATA["benchmarks"], PAGE_DATA["asked"]
HEAD = """<!-- written by tools/benchmarks.py from docs/benchmarks/*.json: do not edit -->

# Benchmarks

Contenders take turns in one run. A figure is the median, its spread the largest minus the smallest value. A ratio above
1 says that Tilewave is faster. Nothing is computed from figures of two machines. Above a table is the command
that renews it: on an idle machine, in the environment of `make demo`, then `make docs`. Hosts need root and iproute2.
The experiments of the papers have [pages of their own](papers/index.md).

Contenders are outside the project, in folders that TILEWAVE_CONTENDERS names, with colons between. A virtual
environment each for `pip install devito mpi4py mpich dtaidistance` and for `pip install ghex` (built from source with
Boost, libnuma and an `mpicc`); MKL's wheel `mkl`; Debian's packages libhypre-dev, libpetsc-real-dev,
libscalapack-mpich2.2 and what they need, installed or unpacked (`apt-get download`, `dpkg -x`); the sources of Kripke
1.1, SNAP, Girih and HPGMG, which a benchmark builds.
"""


def number(value):
    """A figure in four digits at most; nothing for none."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def shown(bench, row):
    """Whether the page has this row."""
    of = BENCHMARKS[bench]
    if not re.search(of.get("case", ""), row["case"]) or not re.search(of.get("contender", ""), row["contender"]):
        return False
    figures = row["ratio_to_contender"] is not None or row["fraction_of_limit"] is not None
    return figures or bool(re.search(of.get("also", r"(?!)"), row["contender"]))


def about(path, data):
    """What a file's benchmark shows, how to run it, and where it ran, as an item of a list."""
    bench, machine = data["bench"], data["machine"]
    dates = sorted({row["date"] for row in data["rows"] if row.get("date")})
    command = data.get("command", f"tilewave bench {bench} --json docs/benchmarks/{path.name}")
    where = f"{machine['processor']}, {machine['cpus']} CPUs, commit {machine['commit']}"
    title = data.get("title", BENCHMARKS[bench]["title"])
    text = f"- {title}. `{command}`; {where}{', ' + dates[-1] if dates else ''}. {data.get('note', '')}".strip()
    return textwrap.wrap(text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def table(title, files):
    """Lines of a heading, of what its benchmarks are, and of a table with the rows of all."""
    lines = ["", f"## {title}", ""]
    for path, data in files:
        lines += about(path, data)
    lines += [
        "",
        "| case | who (against whom) | median | spread | ratio | of the limit |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for _, data in files:
        for row in data["rows"]:
            if not shown(data["bench"], row):
                continue
            value = f"{number(row['value'])} {row['unit']}" if row["value"] is not None else ""
            cells = (
                ", ".join([*data.get("where", ()), row["case"].replace(", rolling window", "")]),
                re.sub(r" in its report$| \((sweep|stencil), .*", "", row["contender"]),
                value,
                number(row["spread"]),
                number(row["ratio_to_contender"]),
                number(row["fraction_of_limit"]),
            )
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def page(folder=FOLDER):
    """The whole page."""
    files = [(path, json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]
    lines = [*HEAD.splitlines(), "", "| what | `tilewave bench` |", "| --- | --- |"]
    lines += [f"| {what} | {', '.join(f'`{one}`' for one in command.split('; '))} |" for what, command in ASKED.items()]
    for title in dict.fromkeys(each["table"] for each in BENCHMARKS.values()):
        found = [
            (path, data) for bench, each in BENCHMARKS.items() if each["table"] == title
            for path, data in files if data["bench"] == bench
        ]  # fmt: skip
        lines += table(title, found) if found else []
    return "\n".join(lines) + "\n"


def main():
    text = page()
    lines = text.count("\n")
    if lines > MOST_LINES:
        print(f"{PAGE.name} would have {lines} lines; allowed: {MOST_LINES}; see `case` in tools/benchmarks.json")
        return 1
    current = PAGE.exists() and PAGE.read_text() == text
    if "--check" in sys.argv[1:]:
        print("docs/benchmarks.md is up to date" if current else "docs/benchmarks.md is not up to date: run make docs")
        return 0 if current else 1
    PAGE.write_text(text)
    print(f"written: docs/benchmarks.md, {lines} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
