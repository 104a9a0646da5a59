"""This file has what batch systems have given the job that this process belongs to, read from the environment that they
set."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from tilewave import units
from tilewave.errors import shown
from tilewave.launch import processes
from tilewave.launch.hosts import HOST, Allocation, in_blocks, ranks_of, read_hostfile, shares
from tilewave.launch.variables import LaunchError, number

MOST_HOSTS = 1 << 20  # of an allocation: no list of hosts is expanded beyond
LISTED = r"(?:[\w.-]|\[[\d,-]+\])+"  # hosts of a list of SLURM
FLUX_ANSWER_S = 30.0  # so long `flux resource list` may take


def allocation(env: Mapping[str, str] = os.environ) -> Allocation | None:
    """The allocation of the job that this process belongs to; None outside of jobs, and where it names no hosts.

    Flux first: it is often started inside the job of another system, of which it then has the hosts.

    Raises
    ------
    LaunchError
        Where the variables of a batch system are none that it writes, or Flux does not answer.
    """
    for read in (_flux, _slurm, _pbs, _lsf):
        if (found := read(env)) is not None:
            return found
    return None


def _slurm(env):
    job = env.get("SLURM_JOB_ID")
    if not job:
        return None
    nodes = env.get("SLURM_JOB_NODELIST") or env.get("SLURM_NODELIST")
    asked = env.get("SLURM_NTASKS", "")
    if not nodes:
        count = env.get("SLURM_NNODES") or env.get("SLURM_JOB_NUM_NODES") or "1"
        return Allocation("SLURM", job, (), number(asked) or 1, "SLURM_NTASKS, SLURM_NNODES", number(count) or 1)
    hosts = expanded(nodes)
    tasks = env.get("SLURM_TASKS_PER_NODE", "")
    # Without a number of tasks SLURM counts one for each CPU here.
    if not tasks or not (number(asked) or env.get("SLURM_NTASKS_PER_NODE")):
        ranks = number(asked) or len(hosts)
        placed = tuple(shares([(host, 1) for host in hosts], ranks))
        return Allocation("SLURM", job, placed, ranks, "SLURM_JOB_NODELIST", len(hosts))
    counts = repeated(tasks)
    if len(counts) != len(hosts):
        raise LaunchError(
            f"SLURM_JOB_NODELIST has {len(hosts)} hosts ({nodes}) and SLURM_TASKS_PER_NODE {len(counts)} numbers "
            f"({tasks}); allowed: as many of both, as SLURM sets them; or name the hosts with --hosts"
        )
    placed = tuple(zip(hosts, counts, strict=True))
    said = "SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE"
    return Allocation("SLURM", job, placed, sum(counts), said, len(hosts))


def _pbs(env):
    path = env.get("PBS_NODEFILE")
    if not path or not env.get("PBS_JOBID"):
        return None
    return _of_file("PBS", env["PBS_JOBID"], path, "PBS_NODEFILE")


def _lsf(env):
    job = env.get("LSB_JOBID")
    if not job:
        return None
    if path := env.get("LSB_DJOB_HOSTFILE"):
        return _of_file("LSF", job, path, "LSB_DJOB_HOSTFILE")
    words = env.get("LSB_MCPU_HOSTS", "").split()
    if not words:
        return None
    counts = words[1::2]
    if len(words) % 2 or not all(re.fullmatch(HOST, f"{host}:{n}", re.ASCII) for host, n in zip(words[::2], counts)):
        raise LaunchError(
            f"LSB_MCPU_HOSTS is {shown(env['LSB_MCPU_HOSTS'])}; allowed: hosts, each with its number of slots, as LSF "
            "sets it; or name the hosts with --hosts"
        )
    hosts = tuple(zip(words[::2], map(int, counts), strict=True))
    return Allocation("LSF", job, hosts, sum(map(int, counts)), "LSB_MCPU_HOSTS", len(hosts))


def _of_file(system, job, path, variable):
    try:
        hosts = read_hostfile(path)
    except LaunchError as error:
        raise LaunchError(f"{variable}, {error}; or name the hosts with --hosts") from None
    placed = tuple((name, int(count or 1)) for name, _, count in (host.partition(":") for host in hosts))
    return Allocation(system, job, placed, ranks_of(hosts), variable, len(placed))


def _flux(env):
    if not env.get("FLUX_URI") or shutil.which("flux", path=env.get("PATH")) is None:
        return None
    nodes, cores = _resources(env["FLUX_URI"])
    job = env.get("FLUX_JOB_ID") or env["FLUX_URI"]
    return Allocation("Flux", job, (), nodes, f"flux resource list: {nodes} nodes, {cores} cores", nodes)


@functools.lru_cache(4)
def _resources(uri):
    """Nodes and cores of the Flux instance that this process belongs to, which has this address."""
    command = ["flux", "resource", "list", "-s", "all", "-n", "-o", "{nnodes} {ncores}"]
    try:
        done = processes.answer(command, FLUX_ANSWER_S, {**os.environ, "FLUX_URI": uri})
        answer = done.stdout + done.stderr
        nodes, cores = map(int, done.stdout.split()[:2])
        if nodes < 1 or cores < nodes:
            raise ValueError
    except subprocess.TimeoutExpired:
        raise LaunchError(
            f"FLUX_URI is set, and `{' '.join(command[:3])}` does not answer within {FLUX_ANSWER_S:.0f} s; "
            "allowed: a Flux instance that runs; or unset FLUX_URI"
        ) from None
    except ValueError:
        raise LaunchError(
            f"FLUX_URI is set, and `{' '.join(command[:3])}` answers {shown(answer.strip())}; allowed: numbers of "
            "nodes and cores; or unset FLUX_URI"
        ) from None
    return nodes, cores


def expanded(nodes: str) -> list[str]:
    """The hosts of a list as SLURM writes it: ``n[001-003,7]x,login`` is n001x, n002x, n003x, n7x and login."""
    wrong = LaunchError(f"SLURM_JOB_NODELIST is {shown(nodes)}; allowed: hosts as in n[01-03,7],m1")
    if not re.fullmatch(f"{LISTED}(,{LISTED})*", nodes, re.ASCII):
        raise wrong
    hosts = []
    for entry in re.split(r",(?![^\[]*\])", nodes):
        names = [""]
        for text, ranges in re.findall(r"([^\[\]]+)|\[([^\[\]]+)\]", entry):
            parts = [text] if text else _numbers(ranges, wrong)
            if len(names) * len(parts) + len(hosts) > MOST_HOSTS:
                raise wrong
            names = [name + part for name in names for part in parts]
        hosts += names
    if not all(re.fullmatch(HOST, host, re.ASCII) for host in hosts):
        raise wrong
    return hosts


def _numbers(ranges, wrong):
    """The numbers of "001-003,7" as they are written."""
    found = []
    for each in ranges.split(","):
        first, dash, last = each.partition("-")
        low, high = number(first), number(last if dash else first)
        if low is None or high is None or high < low or high - low >= MOST_HOSTS:
            raise wrong
        found += [f"{each:0{len(first)}d}" for each in range(low, high + 1)]
    return found


def repeated(counts: str) -> list[int]:
    """The numbers of a list as SLURM writes it: "2(x3),1" is 2, 2, 2 and 1."""
    found = []
    for each in counts.split(","):
        match = re.fullmatch(r"([1-9]\d{0,8})(?:\(x([1-9]\d{0,6})\))?", each)
        if match is None or int(match[2] or 1) + len(found) > MOST_HOSTS:
            raise LaunchError(f"SLURM_TASKS_PER_NODE is {shown(counts)}; allowed: numbers as in 2(x3),1")
        found += [int(match[1])] * int(match[2] or 1)
    return found


def flux_command(ranks: int, program: Sequence[str], given: Allocation) -> list[str]:
    """The command by which Flux starts `program` on `ranks` ranks, which share the cores of their nodes.

    Raises
    ------
    LaunchError
        For more ranks than cores, which Flux refuses.
    """
    _, cores = _resources(os.environ["FLUX_URI"])
    if ranks > cores:
        raise LaunchError(f"{ranks} ranks; allowed: 1 to {cores}, the cores of this Flux instance")
    nodes = min(given.nodes, ranks)
    per_rank = (cores // given.nodes) // -(-ranks // nodes)
    return ["flux", "run", "-N", str(nodes), "-n", str(ranks), "-c", str(max(per_rank, 1)), *program]


def hydra_options(given: Allocation, ranks: int, here: bool = False) -> list[str]:
    """Options by which Hydra's mpiexec starts ranks on the hosts of an allocation; `here`: on this one.

    The hosts are named: Hydra itself would fill the first node where the job has asked for nodes alone.

    Raises
    ------
    LaunchError
        Where the system's own means to start processes on other nodes are not in reach.
    """
    if here:
        return _here(ranks)
    placed = ",".join(f"{host}:{count}" for host, count in placed_on(given, ranks))
    where = ["-hosts", placed] if placed else []
    if given.system == "PBS" and given.nodes > 1:
        means = ["rsh", "-bootstrap-exec", "pbs_tmrsh"] if shutil.which("pbs_tmrsh") else ["ssh"]
        return [*where, "-bootstrap", *means]
    means, kind = {"SLURM": ("srun", "slurm"), "LSF": ("blaunch", "lsf"), "PBS": ("", "")}[given.system]
    if means and shutil.which(means):
        return [*where, "-bootstrap", kind]
    if given.nodes == 1:
        return _here(ranks)  # a container or a notebook on the one node
    raise LaunchError(
        f"this {given.system} allocation has {given.nodes} nodes, and there is no {means} in PATH to start ranks on "
        f"them; run `tilewave run` where {means} is, or name the hosts with --hosts, which are reached with ssh"
    )


def _here(ranks):
    return ["-bootstrap", "fork", "-hosts", f"localhost:{ranks}"]


def placed_on(given: Allocation, ranks: int, here: bool = False) -> list[tuple[str, int]]:
    """Where so many ranks run: as the job has asked, else in proportion to that; `here`: on this host."""
    if here:
        return [("localhost", ranks)]
    return list(given.hosts) if ranks == given.ranks else shares(given.hosts, ranks)


def slurm_environment(env: Mapping[str, str]) -> dict[str, str | None]:
    """Variables for mpiexec in a SLURM job, None for those to unset: each proxy that srun starts, one a node, gets all
    CPUs of the job there, which its ranks share. With these of the job, srun would give it those of one task."""
    dropped = ("SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_NTASKS_PER_NODE", "SLURM_TRES_PER_TASK")
    return {"SLURM_CPU_BIND": "none", **{name: None for name in dropped if name in env}}


def described(ranks: int, hosts: Sequence[str], given: Allocation | None) -> str:
    """Where the ranks of a launch run and who says so, in a line."""
    if hosts:
        return f"{units.count(ranks, 'rank')} on the hosts that were named: {in_blocks(hosts, ranks)}"
    if given is None:
        return f"{units.count(ranks, 'rank')} on this host"
    placed = ", ".join(f"{count} on {host}" for host, count in placed_on(given, ranks)[:8])
    more = ", ..." if len(given.hosts) > 8 else ""
    where = f": {placed}{more}" if placed else ""
    nodes = f"{units.count(given.nodes, 'node')} of {given.system} job {' '.join(given.job.split())}"
    return f"{units.count(ranks, 'rank')} on {nodes} ({given.said_by}){where}"
