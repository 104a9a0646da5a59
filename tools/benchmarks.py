"""Writes docs/benchmarks.md from docs/benchmarks/*.json; --check: is it up to date?

A file is what `tilewave bench NAME --json FILE` writes. It may also have `title`, `command` (how to run it), `note`,
`where` (a list of words that begin its cases in the page's table), and in each row `date`; figures and ratios may be
null. The page has the rows that have a ratio, or a fraction of the limit, or that KEEP names. The standard library is
all that this needs.
"""

import json
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER, PAGE = ROOT / "docs" / "benchmarks", ROOT / "docs" / "benchmarks.md"
MOST_LINES = 280
# A table of the page, and its benchmarks.
TABLES = {
    "First calls": ("first",),
    "Nests": ("nests", "costs", "bodies", "several", "transport"),
    "Sweeps and plans": ("executor", "hiding", "plan"),
    "Stencils, halos, multigrid": ("stencils", "halo", "partitions", "multigrid"),
    "Patterns": ("patterns",),
    "Dense linear algebra": ("matmul", "factors"),
}
# What a benchmark shows, and in what its ratio is.
TITLES = {
    "first": "First calls: the ratio is the contender's time / ours; the limit is the runs alone / the calls",
    "executor": "Executor: what a step costs; the ratio is target / ours",
    "hiding": "Hiding: communication behind computation over 1 Gb/s; the limit is the ideal time / ours",
    "nests": "Nests: the ratio is the contender's time / ours; the limit is memory",
    "costs": "Functions, updates, norms, sums, receivers: the ratio is NumPy's, Numba's or the nest's without / ours",
    "bodies": "Conditions, colours, angles, factors: the ratio is Numba's time / ours",
    "several": "Several nests in each time step: the ratio is Numba's time / ours",
    "transport": "Transport sweeps of eight octants: the ratio is the best contender's time / ours",
    "stencils": "Stencils in time: the ratio is to the best contender, plain g++ loops or a mode of Devito",
    "halo": "Halo exchanges of two ranks: the ratio is the best contender's time / ours",
    "partitions": "Partitions (prieto1999): the plan's time / the best partition's",
    "multigrid": "Poisson on a cube to 1e-8: the ratio is the best contender's time / that of each",
    "patterns": "Patterns: the ratio is MPI's best / ours; the limit is the line rate, or a copy in memory",
    "matmul": "Matrix products: the ratio is the contender's time / ours; the limit is max(compute, wire)",
    "factors": "LU, Cholesky, QR: the ratio is the contender's time / ours; the limit is max(compute, wire)",
    "plan": "Plans: regret is the plan's time / the best by brute force; error is predicted against measured",
}
KEEP = {
    "plan": r"regret|error",
    "matmul": r"^auto|median",
    "hiding": r"overlap ratio",
    "first": r"^tilewave$",
    "partitions": r"^the plan against the best",
}
# Of benchmarks with very many rows, those of the page: (case, contender).
ONLY = {
    "first": (r"^import|first (run|round|solution)|sizes: calls", r"^tilewave$"),
    "costs": (r"^functions, f|^exp|^log|^dependent|^best|relaxation|62x62x62|^wave", r"^tilewave"),
    "bodies": (r"", r"^tilewave$"),
    "several": (r"1000", r"^tilewave, chain$"),
    "transport": (r"", r"^tilewave$"),
    "stencils": (r"", r"^tilewave \("),
    "halo": (r"128.* axis (\d, width 1, 1|[02], width 4, 4)", r"^tilewave$"),
    "partitions": (r"[48]@1gbit.*c16", r"^the plan against"),
    "multigrid": (r"128.* 2 rank", r"^(V\(2|h).* cycles of |SOR: 5"),
    "patterns": (r"8MB contiguous|[14]000x32 strided", r"^tilewave$"),
    "nests": (
        r"recurrence 8192|alignment 48502|^4 arrays .*4096 f4|distances|scores",
        r"^tilewave, (1 lane|2 lanes|in place|fields)$|^(Numba|parasail|dtaidistance)",
    ),
    "hiding": (r"ucx, spin", r"overlapping, polled(?!.*blocking - )"),
    "plan": (r"", r"^regret, |^prediction error, "),
    # Of each place the size nearest to the balance or above, and what is said of all.
    "matmul": (
        r"2@1gbit, n = [23]000|(2x1|4@1gbit), n = 2000|2@100mbit, n = 2048|cells|runs",
        r"^tilewave, auto$|auto is the fastest|^prediction error, median",
    ),
    "factors": (r"2@1gbit, n = 2000|(LU|Cholesky), 2@1gbit, n = 4000", r"^tilewave, against (MKL|HPL)$"),
    "executor": (r"2 MPI ranks, beyond|8x8, 2 ranks|^predict, 64 ranks$", r""),
}
# What is asked of speed, and the command that shows it.
COMMANDS = {
    "import; a tiny nest; 20 sizes; first batch; nests in turn; Poisson": "first",
    "functions; a dependent exponential; updates in loop order; norms; exact sums; receivers": "costs",
    "distances and alignments of many pairs": "nests --case batches",
    "several nests a time step, also periodic and in turn": "several --where 1x1,1x2,2x1",
    "over-relaxation over land; one colour; transport sweeps; conjugate gradients": "bodies",
    "heat 232^3 and 300^3": "stencils --case heat --where 1x1,1x2",
    "predictions": "plan",
    "multigrid in one F cycle": "multigrid",
    "transport sweeps against Kripke and SNAP": "transport",
    "against parasail; against Gauss-Seidel wavefronts by hand": "nests --case alignment; nests --case gauss-seidel",
}
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
    case, contender = ONLY.get(bench, ("", ""))
    if not re.search(case, row["case"]) or not re.search(contender, row["contender"]):
        return False
    figures = row["ratio_to_contender"] is not None or row["fraction_of_limit"] is not None
    return figures or bool(re.search(KEEP.get(bench, r"(?!)"), row["contender"]))


def about(path, data):
    """What a file's benchmark shows, how to run it, and where it ran, as an item of a list."""
    bench, machine = data["bench"], data["machine"]
    dates = sorted({row["date"] for row in data["rows"] if row.get("date")})
    command = data.get("command", f"tilewave bench {bench} --json docs/benchmarks/{path.name}")
    where = f"{machine['processor']}, {machine['cpus']} CPUs, commit {machine['commit']}"
    title = data.get("title", TITLES.get(bench, bench))
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
    lines += [
        f"| {what} | {', '.join(f'`{one}`' for one in command.split('; '))} |" for what, command in COMMANDS.items()
    ]
    for title, benches in TABLES.items():
        found = [(path, data) for bench in benches for path, data in files if data["bench"] == bench]
        lines += table(title, found) if found else []
    return "\n".join(lines) + "\n"


def main():
    text = page()
    lines = text.count("\n")
    if lines > MOST_LINES:
        print(f"docs/benchmarks.md would have {lines} lines; allowed: {MOST_LINES}; narrow ONLY in tools/benchmarks.py")
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
