"""pytest plugin: what a run draws anew. Without --long, tests with many cases run a sample of them.

A run has a number, TILEWAVE_TEST_RUN, random unless the environment gives it, and shown at the beginning and at the
end if a test failed. It decides

- which cases of a test with more than `MANY` of them run: `MANY`, or a `SHARE` if that is more;
- with --long, what is added to the parameter ``seed`` of tests: a random test meets other problems in each run.

`TILEWAVE_TEST_RUN=0` runs all cases with the seeds as written; --long runs all of them, with new seeds.
"""

from __future__ import annotations

import collections
import os
import random

VARIABLE = "TILEWAVE_TEST_RUN"
MANY, SHARE = 12, 0.34
SEEDS_OF_A_RUN = 1_000_000


def number():
    """The number of this run, the same in all processes that it starts."""
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = str(random.SystemRandom().randrange(1, 2000))
    return int(os.environ[VARIABLE])


class Plugin:
    """Draws the cases of a run."""

    def __init__(self, config):
        self.new_seeds = config.getoption("--long")
        # Ranks under mpiexec are told which tests to run.
        self.all = config.getoption("--long") or number() == 0 or "TILEWAVE_MPI_CHILD" in os.environ

    def pytest_report_header(self):
        return f"sampled cases and seeds of random tests: {VARIABLE}={number()}" + " (all cases)" * self.all

    def pytest_collection_modifyitems(self, config, items):
        cases = collections.defaultdict(list)
        for item in items:
            if hasattr(item, "callspec"):
                if self.new_seeds and isinstance(item.callspec.params.get("seed"), int):
                    item.callspec.params["seed"] += number() * SEEDS_OF_A_RUN
                if not item.get_closest_marker("long") and not item.get_closest_marker("exhaustive"):
                    cases[item.nodeid.partition("[")[0]].append(item.nodeid)
        left_out = set()
        if not self.all:
            for name, ids in cases.items():
                size = max(MANY, round(SHARE * len(ids)))
                if size < len(ids):
                    left_out.update(random.Random(f"{number()} {name}").sample(ids, len(ids) - size))
        if left_out:
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
            items[:] = [item for item in items if item.nodeid not in left_out]

    def pytest_terminal_summary(self, terminalreporter):
        if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
            terminalreporter.write_line(f"these cases again: {VARIABLE}={number()}")
