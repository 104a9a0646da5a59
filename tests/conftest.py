"""pytest set-up: the mpi marker, --long, the cluster marker, and a check for leftovers."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import random
import shutil
import signal
import sys
import time
import uuid
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def _load(name, path):
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


rank_threads = _load("rank_threads", HERE / "rank_threads.py")
sampling = _load("sampling", HERE / "sampling.py")
mpi_plugin = _load("tilewave_mpi_plugin", HERE / "mpi_plugin.py")
cluster = _load("tilewave_cluster", HERE.parent / "tools" / "cluster.py")
processes, shared_files = mpi_plugin.processes, _load("shared_files", HERE / "python" / "support" / "shared_files.py")

# Processes that tests start inherit it, so that those left at the end are found, and only those.
SESSION = uuid.uuid4().hex
CLUSTER_NAME = f"twtest{os.getpid()}"
LEFTOVERS = pytest.StashKey[list]()
SHARED_FILES = pytest.StashKey[set]()


def pytest_addoption(parser):
    mpi_plugin.add_options(parser)
    parser.addoption("--long", action="store_true", help="run the tests marked long, too")


def pytest_configure(config):
    config.addinivalue_line("markers", "cluster: needs root and network namespaces")
    config.addinivalue_line("markers", "long: only with --long")
    config.addinivalue_line("markers", "exhaustive: all cases in every run, however many and long")
    config.addinivalue_line("markers", "sample(n): n of the cases in each run")
    config.addinivalue_line("markers", "one_draw(seconds): the module's tests are drawn as the cases of one test are")
    config.pluginmanager.register(mpi_plugin, "tilewave-mpi")
    config.pluginmanager.register(rank_threads.Plugin(), "tilewave-rank-threads")
    if not mpi_plugin.CHILD:
        # Started in the background of a script, it would ignore Ctrl-C, and so would all that it starts.
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        before = os.environ.get(processes.TAG)
        os.environ[processes.TAG] = f"{before}/{SESSION}" if before else SESSION
        config.stash[SHARED_FILES] = shared_files.present()
        os.environ["TILEWAVE_CACHE_DIR"] = str(_kernels(config))
        os.environ["TILEWAVE_MACHINE"] = "default"  # no test measures the machine unless it is about that
        config.pluginmanager.register(Others(), "tilewave-others")
    config.pluginmanager.register(sampling.Plugin(config, mpi_plugin.under_mpiexec), "tilewave-sampling")


def _kernels(config):
    """Where tests, their ranks and other processes keep compiled kernels: never among the user's own.

    They stay from one run to the next, as each is found by all that it was made of. A long run begins with none.
    """
    folder = HERE.parent / "build" / "test-kernels"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.suffix != ".kernel" or config.getoption("--long"):  # rates, machines
                path.unlink(missing_ok=True)
    return folder


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--long"):
        later = [item for item in items if item.get_closest_marker("long")]
        if later:
            config.hook.pytest_deselected(items=later)
            items[:] = [item for item in items if not item.get_closest_marker("long")]


class Others:
    """Whether anyone else ran MPI on this machine meanwhile: shared-memory files may be theirs."""

    seen, looked = False, 0.0

    def look(self):
        if self.seen or time.monotonic() < self.looked + 1:
            return
        self.looked = time.monotonic()
        proxies = set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text() == "hydra_pmi_proxy\n":
                    proxies.add(int(pid))
        self.seen = bool(proxies - set(processes.tagged(SESSION)) if proxies else ())

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self):
        self.look()


@functools.lru_cache(None)
def _no_cluster():
    return cluster.missing(f"{CLUSTER_NAME}-probe")


def pytest_runtest_setup(item):
    if item.get_closest_marker("cluster") and (reason := _no_cluster()):
        pytest.skip(f"no cluster in a box here: {reason}")


@pytest.fixture(scope="session")
def cluster_tool():
    """The module tools/cluster.py."""
    return cluster


@pytest.fixture(scope="session")
def cluster_name():
    """Prefix for the namespaces of this test session: what is left of it is found and removed."""
    return CLUSTER_NAME


@pytest.fixture(scope="session")
def launch_tool():
    """The module tilewave.launch.launch, loaded by its path."""
    return mpi_plugin.launch


@pytest.fixture
def seed():
    """Of a random test without seeds of its own: another one in each run, and printed."""
    found = random.randrange(1 << 32)
    print("seed", found)
    return found


@pytest.hookimpl(trylast=True)  # when the workers that share out the tests, if there are any, have ended
def pytest_sessionfinish(session):
    """Nothing may be left running or lying around; clean up and fail if something is."""
    if mpi_plugin.CHILD or "PYTEST_XDIST_WORKER" in os.environ:
        return
    left = []
    end = time.monotonic() + 3
    while processes.tagged(SESSION) and time.monotonic() < end:
        time.sleep(0.05)
    for pid in processes.tagged(SESSION):
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            left.append(f"process {pid}: {command.strip()[:200]}")
    processes.kill(SESSION)
    try:
        found = [n for n in os.listdir("/run/netns") if n.startswith(CLUSTER_NAME)]
    except OSError:
        found = []
    for namespace in found:
        left.append(f"network namespace {namespace}")
        if name := namespace.rpartition("-")[0]:
            cluster.Cluster(name=name).down()
    others = session.config.pluginmanager.get_plugin("tilewave-others")
    others.look()
    if not others.seen:
        for path in shared_files.orphans(session.config.stash[SHARED_FILES]):
            left.append(f"shared-memory file {path}")
            os.remove(path)
    session.config.stash[LEFTOVERS] = left
    if left and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    if left := config.stash.get(LEFTOVERS, []):
        terminalreporter.section("left over by tests (removed now)", red=True)
        for line in left:
            terminalreporter.line(line, red=True)
