"""pytest plugin: ``@pytest.mark.mpi(ranks=[1, 2, 3])`` runs a test under mpiexec.

In the user's pytest (the parent) such a test becomes one item per rank count. All selected items
of one rank count, of all files, run in one mpiexec (a batch), as a pytest on every rank, when the
first of them is due: to start Python on every rank takes longer than most tests. Each rank writes
its reports, flushed, to its own file of JSON lines; the parent reports what really happened: failed
if a rank failed, with that rank's text; skipped if all skipped; an error if a rank crashed or hung.

Order that keeps outcomes true: rank r starts test k+1 after every rank finished test k (marker
files, not MPI, which the test may have broken). After a test that failed, the batch ends and the
rest runs in a new one: messages left over from a failure cannot reach another test.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import pytest

import rank_threads

CHILD = "TILEWAVE_MPI_CHILD" in os.environ
TIMEOUT_S = 300.0  # for one test, and for launching; of a test the marker's keyword `timeout` overrides it
GRACE_S = 10.0  # how long ranks may wait for a rank that has failed already
CRASH_GRACE_S = 3.0
MAX_TIMEOUTS = 2  # of one file and rank count; then the rest of it is not tried
TAIL = 3000  # characters of each rank's output that are shown
NOISE = ("/_pytest/", "/pluggy/", "<frozen ", "/pytest/__main__.py")  # the bottom of every stack


def _load(*names):
    """Modules of `tilewave.launch` without the front of the package: the tests of the tests need no compiled core."""
    package = types.ModuleType("tilewave")
    package.__path__ = [str(Path(__file__).resolve().parents[1] / "python" / "tilewave")]
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "tilewave"}
    sys.modules["tilewave"] = package
    try:
        return [importlib.import_module(f"tilewave.launch.{name}") for name in names]
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "tilewave"]:
            del sys.modules[name]
        sys.modules.update(before)


launch, processes = _load("launch", "processes")
COUNTS = {"mpi": int, "ranks": rank_threads.ThreadRanks}  # the marks that say on how many ranks a test runs


def pytest_generate_tests(metafunc):
    """An item for each rank count of the test's own marks, else of its class's or module's."""
    marks = [(node, mark) for node, mark in metafunc.definition.iter_markers_with_node() if mark.name in COUNTS]
    if not marks:
        return
    marks = {mark.name: mark for node, mark in reversed(marks) if node is marks[0][0]}
    counts = [
        COUNTS[name](n)
        for name, mark in marks.items()
        for n in (mark.args[0] if mark.args else mark.kwargs.get("ranks", [2]))
    ]
    if "mpi_ranks" not in metafunc.fixturenames:
        metafunc.fixturenames.append("mpi_ranks")
    ids = [f"{'t' if isinstance(n, rank_threads.ThreadRanks) else 'n'}{n}" for n in counts]
    metafunc.parametrize("mpi_ranks", counts, indirect=True, ids=ids)


@pytest.fixture(scope="module")
def mpi_ranks(request):
    """Number of ranks this test runs on."""
    return request.param


def add_options(parser):
    """Called by conftest.py: as a plugin this module comes too late to be asked."""
    parser.addoption(
        "--mpi",
        choices=["only", "no"],
        help="only the tests under mpiexec, which want the cores for themselves, or only the others",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if (choice := config.getoption("--mpi")) and not CHILD:
        others = [item for item in items if under_mpiexec(item) != (choice == "only")]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if under_mpiexec(item) == (choice == "only")]


def under_mpiexec(item):
    """Whether an item is run under mpiexec."""
    return "mpi_ranks" in _parameters(item) and not rank_threads.threads_of(item)


def _parameters(item):
    return item.callspec.params if hasattr(item, "callspec") else {}


def pytest_configure(config):
    config.addinivalue_line("markers", "mpi(ranks, timeout): run under mpiexec")
    config.addinivalue_line("markers", "ranks(ranks): run on ranks that are threads of this process")
    if CHILD:
        config.pluginmanager.register(RankSide(config), "tilewave-mpi-rank")
    else:
        config.pluginmanager.register(ParentSide(config), "tilewave-mpi-parent")


# --- on a rank ----------------------------------------------------------------------------------


class RankSide:
    """Writes this rank's reports and keeps the ranks on the same test."""

    def __init__(self, config):
        self.config = config
        self.folder = Path(os.environ["TILEWAVE_MPI_FOLDER"])
        self.rank = launch.rank() or 0
        wanted = json.loads((self.folder / "batch.json").read_text())
        self.size, self.nodeids = wanted["ranks"], wanted["tests"]
        self.file = open(self.folder / f"rank-{self.rank}.jsonl", "w")
        self.failed = False
        self.count = 0
        self.write(pid=os.getpid())

    def write(self, **record):
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        found = {item.nodeid: item for item in items}
        items[:] = [found[nodeid] for nodeid in self.nodeids if nodeid in found]

    def pytest_runtest_logstart(self, nodeid):
        self.failed = False
        self.write(start=nodeid)

    def pytest_runtest_logreport(self, report):
        self.failed = self.failed or report.failed
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.write(nodeid=report.nodeid, text=report.longreprtext, report=data)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid):
        self.write(finish=nodeid)
        mine = self.folder / f"done-{self.count}-{self.rank}.part"
        mine.write_text("failed" if self.failed else "fine")
        mine.rename(mine.with_suffix(""))
        done = [self.folder / f"done-{self.count}-{r}" for r in range(self.size)]
        self.count += 1
        ended = [self.folder / f"ended-{r}" for r in range(self.size)]
        while True:
            # In this order: a rank that finished this test and then its session is no reason.
            one_has_ended = any(path.exists() for path in ended)
            if all(path.exists() for path in done):
                break
            if one_has_ended:
                self.leave()
            time.sleep(0.002)
        if any(path.read_text() == "failed" for path in done):
            self.leave()

    def leave(self):
        # Hydra kills the others then: without a context MPI's file in /dev/shm would keep its name.
        processes.remove(processes.mpi_files(os.getpid())[0])
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)

    def pytest_sessionfinish(self):
        (self.folder / f"ended-{self.rank}").touch()
        self.write(end=True)


# --- in the parent ------------------------------------------------------------------------------


class ParentSide:
    """Runs batches when they are due and reports their outcomes."""

    def __init__(self, config):
        self.config = config
        self.results = {}  # nodeid -> list of reports
        self.timeouts = {}  # (file, ranks) -> number of batches that hung

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        if not self.is_ours(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        while item.nodeid not in self.results:
            self.run_batch(item)
        for report in self.results[item.nodeid]:
            item.ihook.pytest_runtest_logreport(report=report)
        # This item set nothing up here, but what earlier items did not tear down for its sake
        # must end now.
        call = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown")
        if call.excinfo is not None:
            report = pytest.TestReport.from_item_and_call(item, call)
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @staticmethod
    def is_ours(item):
        return under_mpiexec(item) and not item.get_closest_marker("skip")

    def run_batch(self, first):
        """Run the items of `first`'s rank count that have no outcome yet."""
        ranks = first.callspec.params["mpi_ranks"]
        items = [
            i
            for i in first.session.items
            if self.is_ours(i) and i.nodeid not in self.results and i.callspec.params["mpi_ranks"] == ranks
        ]
        batch = Batch(self.config, ranks, items)
        batch.run()
        finished = [i for i in items if batch.finished_everywhere(i.nodeid)]
        for item in finished:
            self.results[item.nodeid] = merged(self.config, batch, item.nodeid)
        rest = [i for i in items if i not in finished]
        if not rest and not batch.ended_well():
            self.results[finished[-1].nodeid].append(
                error(finished[-1], "after the last test: " + batch.story(), "teardown")
            )
        if rest and rest[0].nodeid in batch.current.values():  # where someone crashed or hung
            self.results[rest[0].nodeid] = merged(self.config, batch, rest[0].nodeid, rest[0])
        not_tried = [] if batch.current else rest
        if batch.timed_out and rest:
            key = (rest[0].path, ranks)
            self.timeouts[key] = self.timeouts.get(key, 0) + 1
            if self.timeouts[key] >= MAX_TIMEOUTS:
                not_tried = [i for i in rest if i.path == rest[0].path]
        for item in not_tried:
            self.results.setdefault(item.nodeid, [error(item, "not run: " + batch.story())])


class Batch:
    """One mpiexec: what each rank reported, and why it was ended if it was."""

    def __init__(self, config, ranks, items):
        self.config, self.ranks, self.items = config, ranks, items
        self.limits = [i.get_closest_marker("mpi").kwargs.get("timeout", TIMEOUT_S) for i in items]
        self.reports = {}  # nodeid -> rank -> list of records
        self.finished = {}  # nodeid -> set of ranks
        self.current = {}  # rank -> nodeid it has started
        self.pids, self.ended, self.gone_since = {}, set(), {}
        self.failed_since = None
        self.reason, self.timed_out, self.launched = "", False, False
        self.exit_code, self.tail = None, ""
        self.read = [0] * ranks

    def run(self):
        with tempfile.TemporaryDirectory(prefix="tilewave-test.") as name:
            self.folder = Path(name)
            batch = {"ranks": self.ranks, "tests": [i.nodeid for i in self.items]}
            (self.folder / "batch.json").write_text(json.dumps(batch))
            with open(self.folder / "output", "w+", errors="replace") as output:
                self.progress = time.monotonic()
                self.exit_code = processes.supervise(
                    self.command(),
                    self.environment(),
                    self.watch,
                    cwd=Path.cwd(),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            self.take_records()
            self.tail = "".join(self.end_of(path) for path in sorted(self.folder.glob("output*")))
        if self.exit_code in (129, 130, 143) and not self.reason:
            raise KeyboardInterrupt

    def command(self):
        option = self.config.option
        pytest_command = [
            sys.executable, "-m", "pytest", *dict.fromkeys(str(i.path) for i in self.items), "-q", "--no-header",
            "--continue-on-collection-errors", f"--rootdir={self.config.rootpath}", "-p", "no:cacheprovider",
            f"--tb={option.tbstyle}", f"--capture={'no' if option.capture == 'no' else 'sys'}", "-o",
            f"faulthandler_timeout={0.5 * min(self.limits)}",
        ]
        if self.config.inipath:
            pytest_command += ["-c", str(self.config.inipath)]
        if self.config.getoption("--long", False):
            pytest_command += ["--long"]
        own_file = 'rank=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; exec "$@" >"$TILEWAVE_MPI_FOLDER/output-$rank" 2>&1'
        return launch.mpiexec_command(self.ranks, ["sh", "-c", own_file, "rank", *pytest_command])

    def end_of(self, path):
        """The end of an output file under a title; what pytest itself adds to stacks left out."""
        lines = path.read_text(errors="replace").splitlines()
        text = "\n".join(x for x in lines if not any(n in x for n in NOISE))[-TAIL:]
        return f"--- {path.name.replace('output-', 'rank ')} ---\n{text}\n" if text else ""

    def environment(self):
        return {
            **os.environ,
            "TILEWAVE_MPI_CHILD": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # what packages add to pytest takes each rank a second
            "TILEWAVE_MPI_FOLDER": str(self.folder),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        }

    def take_records(self):
        for r in range(self.ranks):
            path = self.folder / f"rank-{r}.jsonl"
            if not path.exists():
                continue
            with open(path, "rb") as file:
                file.seek(self.read[r])
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self.read[r] += len(line)
                    self.take(r, json.loads(line))

    def take(self, r, record):
        if "pid" in record:
            self.pids[r] = record["pid"]
        elif "start" in record:
            if r not in self.current and len(self.current) == self.ranks - 1:
                self.launched, self.progress = True, time.monotonic()
            self.current[r] = record["start"]
        elif "finish" in record:
            self.finished.setdefault(record["finish"], set()).add(r)
            if self.finished_everywhere(record["finish"]):
                self.progress, self.failed_since = time.monotonic(), None
        elif "report" in record:
            self.reports.setdefault(record["nodeid"], {}).setdefault(r, []).append(record)
            if record["report"]["outcome"] == "failed":
                self.failed_since = self.failed_since or time.monotonic()
        elif "end" in record:
            self.ended.add(r)

    def finished_everywhere(self, nodeid):
        return len(self.finished.get(nodeid, ())) == self.ranks

    def ended_well(self):
        """Whether the ranks ended in order; after a failed test they just leave."""
        failed = any(
            record["report"]["outcome"] == "failed"
            for by_rank in self.reports.values()
            for records in by_rank.values()
            for record in records
        )
        return failed or self.exit_code == 0

    def watch(self):
        """Whether to end the batch; sets `reason`."""
        self.take_records()
        now = time.monotonic()
        for r, pid in self.pids.items():
            if r not in self.ended and not _alive(pid):
                self.gone_since.setdefault(r, now)
        gone = [r for r, since in self.gone_since.items() if now > since + CRASH_GRACE_S]
        if gone:
            self.reason = f"rank {gone[0]} ended without finishing (crash)"
        elif self.failed_since and now > self.failed_since + GRACE_S:
            self.reason = f"a rank failed and others still waited {GRACE_S:g} s later"
        elif now > self.progress + self.limit_s():
            self.timed_out = True
            self.reason = f"timeout: no test was finished for {self.limit_s():g} s"
        return bool(self.reason)

    def limit_s(self):
        """How long the test that the ranks are at may take, or their launch."""
        if not self.launched:
            return TIMEOUT_S
        return next(
            (limit for item, limit in zip(self.items, self.limits) if not self.finished_everywhere(item.nodeid)),
            max(self.limits),
        )

    def story(self):
        """Why and where the batch ended, for people."""
        lines = [self.reason or f"mpiexec ended with exit code {self.exit_code}"]
        for r in range(self.ranks):
            at = self.current.get(r)
            done = at and r in self.finished.get(at, ())
            lines.append(
                f"rank {r}: " + (f"{'had finished' if done else 'was in'} {at}" if at else "had started no test")
            )
        return "\n".join([*lines, self.tail])


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def merged(config, batch, nodeid, unfinished=None):
    """One list of reports out of those of all ranks; `unfinished` is the item if ranks are missing."""
    by_rank = batch.reports.get(nodeid, {})
    failed = {r: [x for x in records if x["report"]["outcome"] == "failed"] for r, records in sorted(by_rank.items())}
    failed = {r: records for r, records in failed.items() if records}
    if not failed and unfinished is not None:
        return [error(unfinished, batch.story())]
    out = []
    for when in ("setup", "call", "teardown"):
        records = [(r, x) for r in sorted(by_rank) for x in by_rank[r] if x["report"]["when"] == when]
        # A failure anywhere first, then a pass: "skipped" means that all ranks skipped.
        order = {"failed": 0, "passed": 1, "skipped": 2}
        if not records:
            continue
        _, chosen = min(records, key=lambda rx: order[rx[1]["report"]["outcome"]])
        report = config.hook.pytest_report_from_serializable(config=config, data=chosen["report"])
        report.duration = max(x["report"]["duration"] for _, x in records)
        if isinstance(report.longrepr, list):  # JSON knows no tuples; skips must be
            report.longrepr = tuple(report.longrepr)
        if report.failed:
            texts = [
                f"=== rank {r} of {batch.ranks} ===\n{x['text']}"
                for r, x in records
                if x["report"]["outcome"] == "failed"
            ]
            if unfinished is not None:
                texts.append(batch.story())
            report.longrepr = "\n".join(texts)
        out.append(report)
    return out


def error(item, text, when="setup"):
    """A report that pytest counts as an error (not as a failed test)."""
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", f"mpi test without an outcome: {text}", when)
