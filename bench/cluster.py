"""Where benchmarks run: on ranks here, or on hosts in a box."""

import contextlib
import dataclasses
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

from bench.results import run_here

LINE_BYTES_S = 119.7e6  # payload of 1 Gb/s Ethernet under TCP


@dataclasses.dataclass
class Place:
    """Ranks with some threads each. `start` runs a command on a number of ranks, and returns its exit code."""

    ranks: int
    threads: int = 1
    start: Callable = run_here
    cluster: object = None


@contextlib.contextmanager
def at_place(where, benchmark):
    """The `Place` of a name: "2x1" is ranks x threads here, "2@1gbit" hosts in a box."""
    first, at, rate = where.partition("@")
    if not at:
        yield Place(*map(int, where.split("x")))
        return
    with cluster_tool(benchmark).Cluster(hosts=int(first), rate=rate, name=f"tw{benchmark}") as cluster:
        yield Place(int(first), start=on_hosts(cluster), cluster=cluster)


def place_option(parser, allowed, default=None):
    """The option --where, as `places` reads it."""
    text = ",".join(default or allowed)
    parser.add_argument("--where", default=text, help=f"of {', '.join(allowed)}; several with commas")


def places(text, allowed, benchmark):
    """The places of `text`, with commas between, that can be had; says why others are not, before anything runs."""
    chosen = text.split(",")
    if unknown := [name for name in chosen if name not in allowed]:
        raise SystemExit(f"bench {benchmark}: no place {unknown[0]!r}; there are: {', '.join(allowed)}")
    without = [name for name in chosen if "@" in name and os.geteuid() != 0]
    for name in without:
        print(f"bench {benchmark}: {name} skipped: making hosts needs root", file=sys.stderr)
    possible = [name for name in chosen if name not in without]
    if any("@" in name for name in possible):
        cluster_tool(benchmark)
    return possible


def cluster_tool(benchmark):
    """The module tools/cluster.py of the checkout."""
    path = Path("tools/cluster.py")
    if not path.exists():
        raise SystemExit(f"bench {benchmark} makes hosts with tools/cluster.py: run it in a checkout")
    spec = importlib.util.spec_from_file_location("tilewave_cluster", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tilewave_cluster"] = module
    spec.loader.exec_module(module)
    return module


def on_hosts(cluster, netmod=None, env=None):
    """A runner for `on_ranks`."""

    def start(argv, ranks):
        done = cluster.run(argv, ranks=ranks, netmod=netmod, env=env, timeout=1800)
        print(done.stdout + done.stderr, end="", file=sys.stderr)
        return done.returncode

    return start
