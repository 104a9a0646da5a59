"""The runner of all benchmarks: their options, places and ranks, contenders in turn, rows as a table and as JSON."""

import argparse
import contextlib
import dataclasses
import importlib.util
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tilewave as tw
from tilewave import _core, units
from tilewave.launch.launch import mpiexec_command
from tilewave.launch.processes import supervise
from tilewave.machine.known import cpu_model

#: The benchmarks of modules that are imported, by name.
BENCHMARKS = {}
LINE_BYTES_S = 119.7e6  # payload of 1 Gb/s Ethernet under TCP
TIMEOUT_S = 1800
#: Units of rows of times: their number in a second. What ends with /s is a rate.
TIMES = {"s": 1, "ms": 1e3, "us": 1e6, "ns/point": 1e9, "ns/unknown": 1e9, "us/step": 1e6, "us/run": 1e6}
RATES = {"GFlop/s": 1e-9, "Gcells/s": 1e-9, "GPts/s": 1e-9, "M dof/s": 1e-6, "MB/s": 1e-6}


def benchmark(name, doc, *, cases=(), places=(), usual=None, repeats=5, options=None):
    """Make a benchmark of a function that gets options and yields rows.

    Parameters
    ----------
    cases : sequence of str
        Names for --case; the function gets those that are chosen as `case`.
    places, usual : sequence of str, optional
        Names for --where, and those that are taken where none is asked for.
    repeats : int
        Turns, where --repeats says nothing; one if `quick`.
    options : dict, optional
        Further options, and what argparse is told of each.
    """

    def made(rows):
        def run(json_path=None, quick=False, args=()):
            given = _options(name, doc, cases, places and (usual or places), options or {}, args)
            given.name, given.quick, given.repeats = name, quick, given.repeats or (1 if quick else repeats)
            given.case = _chosen(name, "case", given.case, cases)
            given.where = _chosen(name, "place", given.where, places)
            if (load := os.getloadavg()[0]) > 0.5:
                print(f"bench {name}: load {load:.1f}: while other work is running, no figure is good", file=sys.stderr)
            publish(name, list(rows(given)), json_path)

        BENCHMARKS[name] = run
        return run

    return made


def _options(name, doc, cases, places, options, args):
    parser = argparse.ArgumentParser(prog=f"tilewave bench {name}", description=doc.splitlines()[0])
    for option, names in (("--case", cases), ("--where", places)):
        text = f"of {', '.join(names)}, or how some of them begin; several with commas"
        parser.add_argument(option, default=",".join(names), help=text if names else argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, help="turns")
    for option, about in options.items():
        parser.add_argument(*option.split(), **about)
    return parser.parse_args(list(args))


def _chosen(name, what, text, names):
    """Those of `names` that are in a text with commas between, or begin like one of its parts."""
    if text == ",".join(names):
        return list(names)
    found = {part: [each for each in names if each == part] or [each for each in names if each.startswith(part)]
             for part in text.split(",")}  # fmt: skip
    if unknown := [part for part, those in found.items() if not those]:
        raise SystemExit(f"bench {name}: no {what} {unknown[0]!r}; there are: {', '.join(names)}")
    return [each for those in found.values() for each in those]


# --- places ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Place:
    """Ranks with some threads each, here or on the hosts of a cluster in a box."""

    name: str
    ranks: int
    threads: int = 1
    cluster: object = None
    netmod: str | None = None  # of MPICH, on hosts

    def start(self, argv, ranks=None):
        """Run a command; its exit code."""
        if self.cluster is None:
            return supervise(mpiexec_command(ranks or self.ranks, argv))
        done = self.cluster.run(argv, ranks=ranks or self.ranks, netmod=self.netmod, timeout=TIMEOUT_S)
        print(done.stdout + done.stderr, end="", file=sys.stderr)
        return done.returncode

    def call(self, module, optional=False, **arguments):
        """Run a module's ``worker(**arguments)`` on the ranks; what rank 0 returns, or None if it is `optional`."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "rows.json"
            worker = str(Path(__file__).with_name("worker.py"))
            code = self.start([sys.executable, worker, module, json.dumps(arguments), str(out)])
            if out.exists() or (optional and not code):
                return json.loads(out.read_text()) if out.exists() else None
            raise SystemExit(f"the benchmark's ranks ended with exit code {code}")

    def output(self, program, *arguments):
        """What a program prints."""
        command, env = [str(program), *map(str, arguments)], {"OMP_NUM_THREADS": str(self.threads)}
        if self.cluster:
            done = self.cluster.run(command, ranks=self.ranks, env=env, timeout=TIMEOUT_S)
        else:
            told = {"capture_output": True, "text": True, "timeout": TIMEOUT_S, "env": {**os.environ, **env}}
            done = subprocess.run(mpiexec_command(self.ranks, command), check=False, **told)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
        return done.stdout


def here(ranks, threads=1):
    """Some ranks of this machine."""
    return Place(f"{ranks}x{threads}", ranks, threads)


def places(options):
    """The places that are asked for and can be had, one after another; says first which ones cannot."""
    without = [name for name in options.where if "@" in name and os.geteuid() != 0]
    for name in without:
        print(f"bench {options.name}: {name} skipped: making hosts needs root", file=sys.stderr)
    for name in options.where:
        if name not in without:
            with at_place(name, options.name) as place:
                yield place


@contextlib.contextmanager
def at_place(name, bench):
    """The `Place` of a name: "2x1" is ranks x threads here, "2@1gbit" hosts in a box."""
    hosts, at, rate = name.partition("@")
    if not at:
        yield here(*map(int, name.split("x")))
        return
    path = Path("tools/cluster.py")
    if not path.exists():
        raise SystemExit(f"bench {bench} makes hosts with {path}: run it in a checkout")
    spec = importlib.util.spec_from_file_location("tilewave_cluster", path)
    sys.modules["tilewave_cluster"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.Cluster(hosts=int(hosts), rate=rate, name=f"tw{bench}") as cluster:
        yield Place(name, int(hosts), cluster=cluster)


def lanes(count):
    """A context of this process alone."""
    return tw.Context._of(_core.Context.local(_core.LocalFabric(1), 0, count))


# --- turns ----------------------------------------------------------------------------------------


class Own(float):
    """Seconds that a run has taken as it says itself; other runs are timed from outside."""


def own(nest, **arguments):
    """A run of a nest, with the seconds of its report."""
    return lambda: Own(tw.run(nest, **arguments).measured.time_s)


@dataclasses.dataclass
class Turn:
    """A contender.

    Attributes
    ----------
    ready, check : function, optional
        Called before each run, and after the first: what this returns is `after`.
    family : str, optional
        Of contenders of which the best counts.
    plan : function, optional
        Called after the runs: (plan in a line, seconds that were predicted).
    """

    name: str
    run: Callable
    ready: Callable = lambda: None
    check: Callable = lambda: None
    grid: tuple = (1,)
    family: str = ""
    plan: Callable = lambda: ("", None)
    seconds: list = dataclasses.field(default_factory=list)

    def record(self):
        """What the rows need of it."""
        plan, predicted_s = self.plan()
        kept = {name: getattr(self, name) for name in ("name", "family", "grid", "seconds")}
        return {**kept, "plan": plan, "predicted_s": predicted_s}


def race(context, turns, repeats, *, each=1, batch_s=0.0, budget_s=None, rest_s=0.002):
    """Time contenders, in changing order; of each family the best goes on, which are returned.

    Parameters
    ----------
    each, batch_s : int, float
        Runs in a row, whose mean counts; or as many as take so long.
    budget_s : float, optional
        Seconds of all turns, which are 3 to 41, in place of `repeats`.
    rest_s : float
        Seconds before each run: the last one's threads stop spinning, and token buckets of links fill.
    """
    best, firsts, counts = {}, {}, {}
    for one in turns:
        one.ready()
        one.run()
        one.after = one.check()
        one.ready()  # once more: the first run of a library sets it up
        firsts[one.name] = first = timed(context, one.run)
        short = first < batch_s
        counts[one.name] = max(1, int(batch_s / timed(context, one.run, 20))) if short else each
        family = one.family or one.name
        if family not in best or first < firsts[best[family].name]:
            best[family] = one
    left = list(best.values())
    if budget_s is not None:
        turn_s = sum(counts[one.name] * firsts[one.name] for one in left)
        repeats = context._core.allreduce_min([int(np.clip(budget_s / max(turn_s, 1e-6), 3, 41))])[0]
    for turn in range(repeats):
        for one in random.Random(turn).sample(left, len(left)):
            one.ready()
            time.sleep(rest_s)
            one.seconds.append(timed(context, one.run, counts[one.name]))
    return left


def raced(context, runs, repeats, **more):
    """{name: seconds} of {name: function}."""
    turns = [Turn(name, run) for name, run in runs.items() if run]
    return {one.name: one.seconds for one in race(context, turns, repeats, **more)}


def timed(context, run, count=1):
    """Seconds of one of so many runs in a row on the slowest rank, the same on all."""
    context._core.barrier()
    begin = time.perf_counter()
    first = run()
    if isinstance(first, Own):
        seconds = first + sum(run() for _ in range(count - 1))
    else:
        for _ in range(count - 1):
            run()
        seconds = time.perf_counter() - begin
    return slowest_s(context, seconds) / count


def slowest_s(context, seconds):
    """Seconds of the slowest rank, the same on all."""
    return -context._core.allreduce_min([-int(seconds * 1e9)])[0] / 1e9


def must_equal(case, results):
    """End the benchmark where arrays by name are not equal bit for bit; None is that of another rank."""
    (first, expected), *others = results.items()
    for name, found in others:
        if found is not None and np.asarray(expected).tobytes() != np.asarray(found).tobytes():
            raise SystemExit(f"{case}: the results of {first!r} and {name!r} differ")


# --- rows -----------------------------------------------------------------------------------------


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


def figures(seconds, unit, amount=1):
    """Times or rates in a unit, of so many points or flops."""
    return [amount * RATES[unit] / s if unit in RATES else TIMES[unit] * s / amount for s in seconds]


def compared(case, times, unit, amount=1, *, theirs=None, against=None, facing=None, limits=None):
    """Rows of seconds by name; the ratio of ours is to the best of the others.

    Parameters
    ----------
    theirs : sequence of str, optional
        The others, which have a ratio to the best of them, too; else those that begin neither with "tilewave" nor with
        "memory", and have none.
    against : str, optional
        What ours is compared with in place of the best.
    facing : function, optional
        Of another's name: whose time to its time is its ratio.
    limits : dict, optional
        By name: seconds that it takes at least.
    """
    others = [name for name in times if not name.startswith(("tilewave", "memory"))] if theirs is None else theirs
    best = against or min(others, key=lambda name: statistics.median(times[name]), default=None)
    rows = []
    for name, seconds in times.items():
        ratios = {}
        if name in others and facing:
            ratios["ratio_to_contender"] = ratio(seconds, times[facing(name)])
        elif best and (theirs or name not in (best, *others)) and not name.startswith("memory"):
            ratios["ratio_to_contender"] = ratio(times[best], seconds)
        if limits and limits.get(name):
            ratios["fraction_of_limit"] = ratio(limits[name], seconds)
        rows.append(row(case, name, figures(seconds, unit, amount), unit, **ratios))
    return rows


def error_percent(predicted, seconds):
    """By how much a prediction is wrong."""
    measured = statistics.median(seconds)
    return 100 * abs(predicted - measured) / measured


def error_row(case, name, predicted_s, seconds):
    """The row of a prediction's error; none without a prediction."""
    return [row(case, f"{name}: prediction error", [error_percent(predicted_s, seconds)], "%")] if predicted_s else []


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


def _shown(rows):
    """(median, spread, unit) of each row as text: all times of a table have one unit."""
    plain = {unit: 1 / TIMES[unit] for unit in ("s", "ms", "us")}
    times = [value * plain[r.unit] for r in rows if r.unit in plain for value in (r.value, r.spread) if value]
    name, size = units.unit_of(times, units.TIMES)
    for r in rows:
        scale, unit = (plain[r.unit] / size, name) if r.unit in plain else (1.0, r.unit)
        yield *("" if value is None else units.number(value * scale) for value in (r.value, r.spread)), unit


def publish(name, rows, json_path):
    """Show the rows; write them where asked."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"tilewave bench {name}", title_justify="left")
    for head in ("case", "contender", "median", "spread", "unit", "ratio", "of limit"):
        table.add_column(head, justify="right" if head in ("median", "spread") else "left")
    for r, texts in zip(rows, _shown(rows), strict=True):
        more = ("" if x is None else f"{x:.3f}" for x in (r.ratio_to_contender, r.fraction_of_limit))
        table.add_row(r.case, r.contender, *texts, *more)
    Console(width=None if sys.stdout.isatty() else 130).print(table)
    if json_path:
        data = {"bench": name, "machine": machine(), "rows": [dataclasses.asdict(r) for r in rows]}
        Path(json_path).write_text(as_json(data) + "\n")


def as_json(data, depth=0):
    """JSON, with a line for what fits into 320 columns, as rows do."""
    text = json.dumps(data)
    if len(text) + depth <= 320 or not isinstance(data, dict | list):
        return text
    named = isinstance(data, dict)
    parts = [f"{json.dumps(k)}: {as_json(v, depth + 1)}" for k, v in data.items()] if named else []
    parts = parts or [as_json(each, depth + 1) for each in data]
    inner = ",\n".join(" " * (depth + 1) + part for part in parts)
    return f"{'[{'[named]}\n{inner}\n{' ' * depth}{']}'[named]}"
