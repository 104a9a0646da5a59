"""Benchmarks on hosts in a box: what they share."""

import importlib.util
import os
import sys
from pathlib import Path

LINE_BYTES_S = 119.7e6  # payload of 1 Gb/s Ethernet under TCP


def places(text, allowed, benchmark):
    """The places of `text`, with commas between, that can be had; says why others are not, before anything runs."""
    chosen = text.split(",")
    if unknown := [name for name in chosen if name not in allowed]:
        raise SystemExit(f"bench {benchmark}: no place {unknown[0]!r}; there are: {', '.join(allowed)}")
    without = [name for name in chosen if "@" in name and os.geteuid() != 0]
    for name in without:
        print(f"bench {benchmark}: {name} skipped: making hosts needs root", file=sys.stderr)
    kept = [name for name in chosen if name not in without]
    if any("@" in name for name in kept):
        cluster_tool(benchmark)
    return kept


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
