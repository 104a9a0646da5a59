"""pytest plugin: what a run draws anew. Without --long, tests with many cases run a sample of them.

A run has a number, TILEWAVE_TEST_RUN, random unless the environment gives it, and shown at the beginning and at the
end if a test failed. It decides

- which cases of a test with more than `MANY` of them are in the draw: `MANY`, or a `SHARE` if that is more; of a test
  with the mark ``sample(n)`` n;
- in which order a test's cases come: once they have taken `SECONDS`, the others are left to other runs. The tests of a
  module with the mark ``one_draw(seconds)`` have so many seconds together. Tests under mpiexec, which run in batches,
  have no limit;
- with --long, what is added to the parameter ``seed`` of tests: a random test meets other problems in each run.

`TILEWAVE_TEST_RUN=0` runs all cases with the seeds as written; --long runs all of them, with new seeds. Of tests with
the mark ``exhaustive`` all cases run always.
"""

from __future__ import annotations

import collections
import os
import random

import pytest

VARIABLE = "TILEWAVE_TEST_RUN"
MANY, SHARE, SECONDS = 8, 0.2, 0.1
SEEDS_OF_A_RUN = 1_000_000


def number():
    """The number of this run, the same in all processes that it starts."""
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = str(random.SystemRandom().randrange(1, 2000))
    return int(os.environ[VARIABLE])


def name_of(item):
    """What an item is a case of: its function, or its module if that is one draw."""
    return item.nodeid.partition("::")[0] if item.get_closest_marker("one_draw") else item.nodeid.partition("[")[0]


class Plugin:
    """Draws the cases of a run."""

    def __init__(self, config, under_mpiexec):
        self.config, self.under_mpiexec = config, under_mpiexec
        self.new_seeds = config.getoption("--long")
        # Ranks under mpiexec are told which tests to run.
        self.all = config.getoption("--long") or number() == 0 or "TILEWAVE_MPI_CHILD" in os.environ
        self.spent, self.limits, self.names, self.left = collections.Counter(), {}, {}, 0

    def pytest_report_header(self):
        return f"sampled cases and seeds of random tests: {VARIABLE}={number()}" + " (all cases)" * self.all

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        for item in items:
            if self.new_seeds and isinstance(getattr(item, "callspec", None) and item.callspec.params.get("seed"), int):
                item.callspec.params["seed"] += number() * SEEDS_OF_A_RUN
        if self.all:
            return
        places = collections.defaultdict(list)
        for place, item in enumerate(items):
            if not item.get_closest_marker("long") and not item.get_closest_marker("exhaustive"):
                places[name_of(item)].append(place)
        left_out = set()
        for name, of_it in places.items():
            drawn = [items[place] for place in of_it]
            random.Random(f"{number()} {name}").shuffle(drawn)
            for place, item in zip(of_it, drawn):
                items[place] = item
                if not self.under_mpiexec(item):
                    self.names[item.nodeid] = name
            mark = drawn[0].get_closest_marker("one_draw")
            self.limits[name] = mark.args[0] if mark and mark.args else SECONDS
            mark = drawn[0].get_closest_marker("sample")
            size = mark.args[0] if mark else max(MANY, round(SHARE * len(of_it)))
            left_out.update(of_it[size:])
        if left_out:
            config.hook.pytest_deselected(items=[items[place] for place in sorted(left_out)])
            items[:] = [item for place, item in enumerate(items) if place not in left_out]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        """Leave the item to another run if those before it took their test's time."""
        name = self.names.get(item.nodeid)
        if name is None or self.spent[name] < self.limits[name]:
            return None
        self.left += 1
        item.session._setupstate.teardown_exact(nextitem)  # what was kept for its sake
        return True

    def pytest_runtest_logreport(self, report):
        if report.nodeid in self.names:
            self.spent[self.names[report.nodeid]] += report.duration

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.left += getattr(node, "workeroutput", {}).get("left to other runs", 0)

    def pytest_sessionfinish(self):
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["left to other runs"] = self.left

    def pytest_terminal_summary(self, terminalreporter):
        if self.left:
            terminalreporter.write_line(f"{self.left} cases were left to other runs: those before took their time")
        if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
            terminalreporter.write_line(f"these cases again: {VARIABLE}={number()}")
