#!/usr/bin/env python3
"""A cluster in one box: hosts are network namespaces joined at a given rate.

    python tools/cluster.py up -n 4 --rate 1gbit python tools/cluster.py run -n 4 --netmod ofi -- python script.py
    python tools/cluster.py down

or, in Python, ``with Cluster(hosts=2, rate="1gbit") as c: c.run([sys.executable, "x.py"])``.

All state lies in network namespaces called ``NAME-head`` (the switch: a bridge, and mpiexec) and ``NAME-1``,
``NAME-2``, … (the hosts). Nothing is added to the machine's network, interfaces end with their namespaces, and `down`
finds everything by name, also after ``kill -9``. Each host has a host name, a /dev/shm, and a share of the CPUs when
there are enough of them. Needs root and iproute2; Python's standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import glob
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

NETWORK = "10.77"  # link k has the addresses 10.77.k.1, 10.77.k.2, …
HEAD_ADDRESS = f"{NETWORK}.0.254"
MAX_HOSTS, MAX_LINKS = 200, 4
# tbf: the bucket must hold at least one 64 KB segment; 100 ms of queue before packets are dropped.
SHAPING = ["burst", "128k", "latency", "100ms"]
TOOLS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "taskset": "util-linux", "mount": "mount"}

# Hydra calls it like ssh: options, host address, command line for a shell. CPUS has one set a host.
LAUNCHER = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=${{1##*.}}
shift
set -- "$host" "$(echo '{cpus}' | cut -d' ' -f"$host")" "$*"
exec ip netns exec "{name}-$host" unshare --uts --ipc --mount sh -c '
    echo "{name}-$1" > /proc/sys/kernel/hostname &&
    mount -t tmpfs tmpfs /dev/shm &&
    {join_group} &&
    exec taskset -c "$2" sh -c "$3"' launcher "$@"
"""

#: Where limits of CPU time are made, and how a host sees its own: version 1 of control groups, or version 2.
SECOND = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
GROUPS = "/sys/fs/cgroup" if SECOND else "/sys/fs/cgroup/cpu"
JOIN_GROUP = (
    f"mount -t {'cgroup2' if SECOND else 'cgroup -o cpu'} cgroup /sys/fs/cgroup && "
    'echo $$ > "/sys/fs/cgroup/{name}-$1/cgroup.procs"'
)
PERIOD_US, LEAST_QUOTA_US = 20000, 1000
# Takes a part of a CPU, in slices of 1 ms, so that what is left is like a slower CPU: a control group stops a host for
# as long as a tick of the kernel, 4 ms, at once; shorter slices leave cold caches. Real-time, as others would share the
# CPU with it. Arguments: part, CPU.
TAKE_CPU = """
import os, sys, time
part, cpu, slice_s = float(sys.argv[1]), int(sys.argv[2]), 1e-3
os.sched_setaffinity(0, {cpu})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
end = time.perf_counter()
while True:
    end = max(end + slice_s, time.perf_counter())
    while time.perf_counter() < end - (1 - part) * slice_s:
        pass
    time.sleep(max(end - time.perf_counter(), 0))
"""


class ClusterError(RuntimeError):
    """The cluster cannot be set up or used; the message says why and what to do."""


def _call(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise ClusterError(f"{' '.join(command)}: {done.stderr.strip() or 'failed'}")
    return done.stdout


def require():
    """Raise `ClusterError` if this user or machine cannot make namespaces."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        packages = " ".join(sorted({TOOLS[tool] for tool in missing}))
        raise ClusterError(f"missing: {', '.join(missing)}; get it with: apt install {packages}")
    if os.geteuid() != 0:
        raise ClusterError("network namespaces need root: run this as root (sudo)")


def missing(name="tw-probe"):
    """Return why a cluster cannot be made here, or None: makes a small one and removes it."""
    try:
        with Cluster(1, "1gbit", name=f"{name}-{os.getpid()}"):
            return None
    except ClusterError as error:
        return str(error)


def namespaces(name):
    """Names of the namespaces of cluster `name` that exist now, hosts in order, the head last."""
    try:
        found = os.listdir("/run/netns")  # where iproute2 keeps them
    except FileNotFoundError:
        return []
    ours = re.compile(re.escape(name) + r"-(head|\d+)$")
    hosts = [n for n in found if ours.match(n)]
    return sorted(hosts, key=lambda n: int(n[len(name) + 1 :].replace("head", "999")))


def find_mpiexec():
    """Path of Hydra's mpiexec: TILEWAVE_MPIEXEC, or the one of this Python environment."""
    given = os.environ.get("TILEWAVE_MPIEXEC")
    folders = [os.path.dirname(sys.executable), sysconfig.get_path("scripts")]
    for path in [given] if given else [os.path.join(f, "mpiexec") for f in folders]:
        if path and shutil.which(path):
            return path
    where = given or " or ".join(folders)
    raise ClusterError(f"no mpiexec at {where}; install the Python package 'mpich' into this environment")


def cpu_sets(hosts):
    """One CPU list for each host, disjoint if the CPUs suffice (else ranks share all of them)."""
    cpus = sorted(os.sched_getaffinity(0))
    if hosts > len(cpus):
        return [",".join(map(str, cpus))] * hosts
    cut = [h * len(cpus) // hosts for h in range(hosts + 1)]
    return [",".join(map(str, cpus[a:b])) for a, b in itertools.pairwise(cut)]


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; Hydra's proxies follow mpiexec


class Cluster:
    """Hosts in network namespaces; a context manager that sets them up and removes them.

    Parameters
    ----------
    hosts : int
        Number of hosts, 1 to 200, with addresses 10.77.0.1, 10.77.0.2, …
    rate : str
        Rate of every host's link in both directions, as ``tc`` writes it ("1gbit", "100mbit"), or "none" for no limit.
    name : str
        Prefix of the namespaces. Clusters of different names do not see each other.
    cpus : sequence of float, optional
        CPU seconds a second that each host may use, as 0.5; by default there is no limit. Where each host has CPUs to
        itself and real-time processes are allowed, a host computes in slices of 1 ms, like one with slower CPUs.
    links : int
        Links of each host, 1 to 4, each of `rate` and with a switch and a subnet of its own.
    """

    def __init__(self, hosts=2, rate="1gbit", name="tw", cpus=None, links=1):
        if not 1 <= hosts <= MAX_HOSTS:
            raise ClusterError(f"{hosts} hosts; allowed: 1 to {MAX_HOSTS}")
        if not re.fullmatch(r"none|\d+(\.\d+)?[kmg]?bit", rate):
            raise ClusterError(f"rate '{rate}'; allowed: none, or a number with kbit, mbit or gbit")
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,40}", name):
            raise ClusterError(f"name '{name}'; allowed: lower-case letters, digits and '-'")
        if cpus is not None and (len(cpus) != hosts or not all(0.01 <= each <= 1000 for each in cpus)):
            raise ClusterError(f"cpus {cpus}; allowed: a number from 0.01 to 1000 for each of {hosts} hosts, or None")
        if not 1 <= links <= MAX_LINKS:
            raise ClusterError(f"{links} links; allowed: 1 to {MAX_LINKS}")
        self.hosts, self.rate, self.name, self.cpus, self.links = hosts, rate, name, cpus, links

    @classmethod
    def existing(cls, name="tw"):
        """The cluster called `name` that `up` made before."""
        found = namespaces(name)
        if f"{name}-head" not in found or len(found) < 2:
            raise ClusterError(f"no cluster '{name}': start one with: cluster.py up --name {name}")
        return cls(len(found) - 1, "none", name)  # the links keep the rate they were made with

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.down()

    def up(self):
        """Make the namespaces; a cluster of this name is replaced, unless it runs a command."""
        require()
        if f"{self.name}-head" in namespaces(self.name):
            with self._lock():
                pass
        self.down()
        try:
            self._make()
        except BaseException:
            self.down()
            raise

    def _make(self):
        head = f"{self.name}-head"
        _call("ip", "netns", "add", head)
        _call("ip", "-n", head, "link", "set", "lo", "up")
        for h in range(1, self.hosts + 1):
            _call("ip", "netns", "add", f"{self.name}-{h}")
            _call("ip", "-n", f"{self.name}-{h}", "link", "set", "lo", "up")
        for k in range(self.links):
            self._join(head, k)
        for h, each in enumerate(self.cpus or (), 1):
            self._limit(Path(GROUPS, f"{self.name}-{h}"), each)

    def _join(self, head, k):
        """Make the switch of link k, and a port there for each host."""
        bridge, ip = f"bridge{k}", ("ip", "-n", head)
        # An address of its own: else it is that of a port, and changes when a host goes, which others take 30 s to see.
        _call(*ip, "link", "add", bridge, "address", f"02:00:0a:4d:{k:02x}:fe", "type", "bridge")
        _call(*ip, "address", "add", f"{NETWORK}.{k}.254/24", "dev", bridge)
        _call(*ip, "link", "set", bridge, "up")
        for h in range(1, self.hosts + 1):
            host, port, card = f"{self.name}-{h}", f"host{h}.{k}", f"eth{k}"
            _call(*ip, "link", "add", port, "type", "veth", "peer", "name", card, "netns", host)
            _call(*ip, "link", "set", port, "master", bridge, "up")
            _call("ip", "-n", host, "address", "add", f"{NETWORK}.{k}.{h}/24", "dev", card)
            _call("ip", "-n", host, "link", "set", card, "up")
            if self.rate != "none":
                for where, device in ((head, port), (host, card)):
                    _call("tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf", "rate", self.rate, *SHAPING)

    def launcher(self, hosts):
        """The text of a program that runs a command on one of the first hosts, in place of ssh."""
        join = JOIN_GROUP.format(name=self.name) if self.cpus else "true"
        return LAUNCHER.format(name=self.name, cpus=" ".join(cpu_sets(hosts)), join_group=join)

    def _limit(self, group, cpus):
        """Make a control group that may use so many CPUs."""
        period = max(PERIOD_US, round(LEAST_QUOTA_US / cpus))
        try:
            if SECOND:
                Path(GROUPS, "cgroup.subtree_control").write_text("+cpu")
            group.mkdir()
            if SECOND:
                group.joinpath("cpu.max").write_text(f"{round(period * cpus)} {period}")
            else:
                group.joinpath("cpu.cfs_period_us").write_text(str(period))
                group.joinpath("cpu.cfs_quota_us").write_text(str(round(period * cpus)))
        except OSError as error:
            raise ClusterError(f"no limit of CPU time can be made here: {error}") from None

    def _taking(self, hosts):
        """Commands that take the parts of CPUs that hosts may not use; none where hosts share CPUs."""
        sets = cpu_sets(hosts)
        for h, allowed in enumerate(self.cpus[:hosts] if self.cpus and len(set(sets)) == hosts else (), 1):
            cpus = sets[h - 1].split(",")
            part = 1 - 0.99 * allowed / len(cpus)  # a little more, so that the control group never stops the host
            for cpu in cpus if allowed < len(cpus) else ():
                yield "ip", "netns", "exec", f"{self.name}-{h}", sys.executable, "-c", TAKE_CPU, str(part), cpu

    def down(self):
        """End everything that runs in the cluster and remove it; nothing to remove is fine."""
        self.kill()
        for namespace in reversed(namespaces(self.name)):  # the head first: no run starts meanwhile
            _call("ip", "netns", "delete", namespace, check=False)
        for folder in glob.glob(os.path.join(tempfile.gettempdir(), f"{self.name}-run.*")):
            shutil.rmtree(folder, ignore_errors=True)
        for group in glob.glob(os.path.join(GROUPS, f"{self.name}-[0-9]*")):
            with contextlib.suppress(OSError):
                os.rmdir(group)
        left = namespaces(self.name)
        if left:
            raise ClusterError(f"could not remove the namespaces {', '.join(left)}")

    def pids(self):
        """Ids of the processes that run in the cluster."""
        found = set()
        for namespace in namespaces(self.name):
            found.update(map(int, _call("ip", "netns", "pids", namespace, check=False).split()))
        return found - {os.getpid()}

    def kill(self, seconds=5.0):
        """Kill the processes in the cluster; those that appear meanwhile too."""
        end = time.monotonic() + seconds
        while running := self.pids():
            for pid in running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > end:
                raise ClusterError(f"processes {sorted(running)} do not end")
            time.sleep(0.02)

    @contextlib.contextmanager
    def _lock(self):
        """One command at a time: two would disturb each other's measurements."""
        try:
            file = open(f"/run/netns/{self.name}-head")  # noqa: SIM115 - closed below
        except FileNotFoundError:
            raise ClusterError(f"the cluster '{self.name}' is not up") from None
        with file:  # the lock ends with the file, so also when this process is killed
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ClusterError(f"the cluster '{self.name}' is running a command") from None
            yield

    def run(self, argv, ranks=None, env=None, timeout=None, threads=None, netmod=None, capture=True):
        """Run `argv` on `ranks` ranks, spread over the hosts in blocks, and wait.

        Parameters
        ----------
        ranks : int, optional
            Number of ranks; one a host by default. Fewer ranks than hosts use the first hosts.
        env : dict, optional
            Environment variables beside the present ones.
        timeout : float, optional
            Seconds; then everything is killed and `subprocess.TimeoutExpired` raised.
        threads : int, optional
            Lanes of each rank, for Tilewave (TILEWAVE_THREADS).
        netmod : {"ucx", "ofi"}, optional
            MPICH's network module.
        capture : bool
            Return the output as text instead of passing it through.

        Returns
        -------
        subprocess.CompletedProcess
            With mpiexec's exit code; no process of the run is left, whatever happened.
        """
        require()
        ranks = self.hosts if ranks is None else ranks
        if ranks < 1 or (threads is not None and threads < 1):
            raise ClusterError(f"{ranks} ranks, {threads} threads; allowed: 1 or more")
        if netmod not in (None, "ucx", "ofi"):
            raise ClusterError(f"netmod '{netmod}'; allowed: ucx, ofi")
        hosts = min(ranks, self.hosts)
        share = [(h + 1) * ranks // hosts - h * ranks // hosts for h in range(hosts)]
        # A command like "python" means the environment's that this Python belongs to.
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
        full_env = {**os.environ, "PATH": path, "MPIR_CVAR_NOLOCAL": "1", **(env or {})}
        if threads is not None:
            full_env["TILEWAVE_THREADS"] = str(threads)
        if netmod is not None:
            full_env["MPIR_CVAR_CH4_NETMOD"] = netmod
        pipe = subprocess.PIPE if capture else None
        with self._lock(), tempfile.TemporaryDirectory(prefix=f"{self.name}-run.") as folder:
            self.kill()  # rests of a run whose cluster.py was killed
            null = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            start = lambda words: subprocess.Popen(words, **null, preexec_fn=_die_with_parent)  # noqa: PLW1509
            taking = [start(words) for words in self._taking(hosts)]
            script = Path(folder, "launcher")
            script.write_text(self.launcher(hosts))
            script.chmod(0o755)
            spread = ",".join(f"{NETWORK}.0.{h + 1}:{share[h]}" for h in range(hosts))
            command = ["ip", "netns", "exec", f"{self.name}-head", find_mpiexec(), "-launcher", "ssh"]
            command += ["-launcher-exec", str(script), "-hosts", spread, "-localhost", HEAD_ADDRESS]
            command += ["-n", str(ranks), *map(str, argv)]
            told = {"env": full_env, "text": True, "stdout": pipe, "stderr": pipe, "start_new_session": True}
            process = subprocess.Popen(command, **told, preexec_fn=_die_with_parent)  # noqa: PLW1509 - takes no lock
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired as expired:
                self.kill()
                expired.stdout, expired.stderr = process.communicate()
                raise
            finally:
                self.kill()
                for each in (process, *taking):
                    each.wait()
        return subprocess.CompletedProcess(command, process.returncode, out, err)


def _end(signum, _frame):
    raise SystemExit(128 + signum)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="cluster.py", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up", help="make the hosts")
    up.add_argument("-n", type=int, default=4, help="number of hosts (default 4)")
    up.add_argument("--links", type=int, default=1, help="links of each host (default 1)")
    up.add_argument("--rate", default="1gbit", help="1gbit (default), 100mbit, …, or none")
    run = verbs.add_parser("run", help="run a command under mpiexec on the hosts")
    run.add_argument("-n", type=int, default=None, help="number of ranks (default: one a host)")
    run.add_argument("--threads", type=int, help="lanes of each rank (TILEWAVE_THREADS)")
    run.add_argument("--netmod", choices=["ucx", "ofi"], help="MPICH's network module")
    run.add_argument("--timeout", type=float, help="seconds after which everything is killed")
    down = verbs.add_parser("down", help="remove the hosts and what runs there")
    for verb in (up, run, down):
        verb.add_argument("--name", default="tw", help="prefix of the namespaces (default tw)")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ARGS")
    given = parser.parse_args(arguments)
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _end)
    try:
        if given.verb == "up":
            Cluster(given.n, given.rate, given.name, links=given.links).up()
            print(f"{given.n} hosts at {given.rate}: {NETWORK}.0.1 to {NETWORK}.0.{given.n}")
        elif given.verb == "down":
            require()
            Cluster(name=given.name).down()
        else:
            command = given.command[1:] if given.command[:1] == ["--"] else given.command
            if not command:
                parser.error("run: give a command after --")
            more = {name: getattr(given, name) for name in ("timeout", "threads", "netmod")}
            code = Cluster.existing(given.name).run(command, given.n, **more, capture=False).returncode
            return code if code >= 0 else 128 - code
    except ClusterError as error:
        print(f"cluster.py: {error}", file=sys.stderr)
        return 2
    except subprocess.TimeoutExpired:
        print(f"cluster.py: killed after {given.timeout:g} s", file=sys.stderr)
        return 124
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
