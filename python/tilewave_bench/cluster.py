"""Benchmarks on hosts in a box: what `bench hiding` and `bench patterns` share."""

import importlib.util
import sys
from pathlib import Path

LINE_BYTES_S = 119.7e6  # payload of 1 Gb/s Ethernet under TCP


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
