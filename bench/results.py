"""Rows of a benchmark: collected, shown as a table, written as JSON."""

import argparse
import dataclasses
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tilewave import units
from tilewave.machine.known import cpu_model


@dataclasses.dataclass
class Row:
    """One figure: the median of some runs and their spread (largest minus smallest)."""

    case: str
    contender: str
    value: float | None  # None: there is none, and `contender` says why
    unit: str
    spread: float | None
    ratio_to_contender: float | None = None  # above 1: we are faster
    fraction_of_limit: float | None = None


def row(case, contender, values, unit, **ratios):
    """The row of several measurements of one thing."""
    return Row(case, contender, statistics.median(values), unit, max(values) - min(values), **ratios)


def missing(case, contender):
    """A row without a figure: `contender` says why."""
    return Row(case, contender, None, "", None)


def ratio(theirs, ours):
    """Above 1, ours is faster: the median over the turns, or of medians where these are not equally many."""
    if len(theirs) != len(ours):
        return statistics.median(theirs) / statistics.median(ours)
    return statistics.median(a / b for a, b in zip(theirs, ours, strict=True))


def compared(case, times, shown, unit, against=None):
    """Rows of seconds by name, `shown` in a unit; the ratio of ours, whose names begin with "tilewave", is to `against`
    or to the best of the others.
    """
    theirs = [name for name in times if not name.startswith("tilewave")]
    best = against or min(theirs, key=lambda name: statistics.median(times[name]), default=None)
    rows = []
    for name, seconds in times.items():
        wanted = best and name not in (best, *theirs)
        ratios = {"ratio_to_contender": ratio(times[best], seconds)} if wanted else {}
        rows.append(row(case, name, [shown(s) for s in seconds], unit, **ratios))
    return rows


def parser_of(name, doc, cases=()):
    """The parser of a benchmark's options, which begin with --case where it has cases."""
    parser = argparse.ArgumentParser(prog=f"tilewave bench {name}", description=doc.splitlines()[0])

    def chosen(text):
        if unknown := [case for case in text.split(",") if case not in cases]:
            raise SystemExit(f"bench {name}: no case {unknown[0]!r}; there are: {', '.join(cases)}")
        return text.split(",")

    if cases:
        text = f"of {', '.join(cases)}; several with commas"
        parser.add_argument("--case", type=chosen, default=",".join(cases), help=text)
    return parser


def machine():
    """What the figures depend on: processor, cores, system, compiler, commit."""

    def first_line(*command):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
            return done.stdout.splitlines()[0]
        except (OSError, subprocess.SubprocessError, IndexError):
            return "unknown"

    return {
        "processor": cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "compiler": first_line("g++", "--version"),
        "commit": first_line("git", "rev-parse", "--short", "HEAD"),
    }


def warn_of_load(name):
    """Say so where other work is running."""
    if (load := os.getloadavg()[0]) > 0.5:
        print(f"bench {name}: load {load:.1f}: while other work is running, no figure is good", file=sys.stderr)


#: Columns of a line of JSON.
WIDTH = 320
#: Units of rows that are times, and their seconds.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def shown(rows):
    """(median, spread, unit) of each row as text: all times of a table have one unit."""
    times = [value * SECONDS[r.unit] for r in rows if r.unit in SECONDS for value in (r.value, r.spread) if value]
    name, size = units.unit_of(times, units.TIMES)
    for r in rows:
        scale, unit = (SECONDS[r.unit] / size, name) if r.unit in SECONDS else (1.0, r.unit)
        yield *("" if value is None else units.number(value * scale) for value in (r.value, r.spread)), unit


def publish(name, rows, json_path):
    """Show the rows; write them where asked."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"tilewave bench {name}", title_justify="left")
    for head in ("case", "contender", "median", "spread", "unit", "ratio", "of limit"):
        table.add_column(head, justify="right" if head in ("median", "spread") else "left")
    for r, (value, spread, unit) in zip(rows, shown(rows), strict=True):
        table.add_row(
            r.case,
            r.contender,
            value,
            spread,
            unit,
            "" if r.ratio_to_contender is None else f"{r.ratio_to_contender:.3f}",
            "" if r.fraction_of_limit is None else f"{r.fraction_of_limit:.3f}",
        )
    Console(width=None if sys.stdout.isatty() else 130).print(table)
    write(name, rows, json_path)


def as_json(data, depth=0):
    """JSON, with a line for what fits into WIDTH columns, as rows do."""
    text = json.dumps(data)
    if len(text) + depth <= WIDTH or not isinstance(data, dict | list):
        return text
    named = isinstance(data, dict)
    parts = [f"{json.dumps(k)}: {as_json(v, depth + 1)}" for k, v in data.items()] if named else []
    parts = parts or [as_json(each, depth + 1) for each in data]
    inner = ",\n".join(" " * (depth + 1) + part for part in parts)
    return f"{'[{'[named]}\n{inner}\n{' ' * depth}{']}'[named]}"


def write(name, rows, json_path):
    """Write the rows where asked."""
    if json_path:
        data = {"bench": name, "machine": machine(), "rows": [dataclasses.asdict(r) for r in rows]}
        Path(json_path).write_text(as_json(data) + "\n")


def run_here(argv, ranks):
    """Run a command on some ranks of this host; its exit code."""
    from tilewave.launch.launch import mpiexec_command
    from tilewave.launch.processes import supervise

    return supervise(mpiexec_command(ranks, argv))


def on_ranks(module, ranks, arguments, runner=run_here):
    """Run a module's ``worker(arguments)`` on some ranks, which ``runner(argv, ranks)`` starts; what rank 0 returns."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        argv = [sys.executable, str(Path(__file__).with_name("worker.py")), module, json.dumps(arguments), str(out)]
        code = runner(argv, ranks)
        if code or not out.exists():
            raise SystemExit(f"the benchmark's ranks ended with exit code {code}")
        return json.loads(out.read_text())
