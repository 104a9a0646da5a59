"""The hosts of a launch as values: from a list on the command line, or from a file as MPI's launchers read it."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Sequence

from tilewave import files
from tilewave.errors import shown
from tilewave.launch.variables import LaunchError

HOST = r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*(?::[1-9]\d{0,8})?"
ALLOWED_HOST = "NAME, NAME:RANKS or USER@NAME, of letters, digits and . - _, not beginning with . or -"
# What lines of host files may have besides, of which ranks do not depend: Open MPI's and MPICH's options.
IGNORED = ("max_slots", "max-slots", "binding", "ifname", "user")


def split_hosts(hosts: str | Iterable[str] | None) -> list[str]:
    """The list of hosts in a list or in a string like "a,b" or "a:2,b:2"."""
    hosts = [h for h in (hosts.split(",") if isinstance(hosts, str) else hosts or []) if h]
    for host in hosts:
        if not isinstance(host, str) or not re.fullmatch(HOST, host, re.ASCII):
            raise LaunchError(f"host {shown(host)}; allowed: {ALLOWED_HOST}")
    return hosts


def read_hostfile(path: str | os.PathLike[str]) -> list[str]:
    """The hosts of a file, as `split_hosts` gives them.

    Parameters
    ----------
    path : path
        One host a line: ``host``, ``host:2`` (MPICH) or ``host slots=2`` (Open MPI); ``#`` begins a comment. Ranks of a
        host that has several lines add up, as in PBS's file, which has a line for each rank.

    Returns
    -------
    list of str
        ``"host"``, or ``"host:ranks"`` where the file says how many.

    Raises
    ------
    LaunchError
        For a file that cannot be read or names no host; for a line that is none of these, with its number.
    """
    try:
        lines = files.read(path, files.MOST_TEXT_BYTES).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise LaunchError(f"host file {os.fspath(path)}: {why}") from None
    ranks, counted = {}, set()
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].replace(" = ", "=").split()
        if not words:
            continue
        host, count = _host_of(words, f"{os.fspath(path)}, line {number}: given {shown(line.strip())}")
        if count is not None or host in ranks:
            counted.add(host)
        ranks[host] = ranks.get(host, 0) + (1 if count is None else count)
    if not ranks:
        raise LaunchError(f"host file {os.fspath(path)} names no host; allowed: a host a line, as in 'node1 slots=2'")
    return [f"{host}:{count}" if host in counted else host for host, count in ranks.items()]


def _host_of(words, where):
    """Host and ranks, or None, of a line's words."""
    host, _, count = words[0].partition(":")
    counts = [count] if count else []
    for word in words[1:]:
        name, equal, value = word.partition("=")
        if name == "slots" and equal:
            counts.append(value)
        elif name not in IGNORED or not equal:
            counts = [""]
            break
    count = counts[0] if len(counts) == 1 else None
    if len(counts) > 1 or counts and not re.fullmatch(r"[1-9]\d{0,8}", count, re.ASCII):
        raise LaunchError(f"{where}; allowed: 'host', 'host:2' or 'host slots=2'")
    if not re.fullmatch(HOST, words[0], re.ASCII):
        raise LaunchError(f"{where}; allowed: {ALLOWED_HOST}")
    return host, count and int(count)


def ranks_of(hosts: Iterable[str]) -> int:
    """The ranks that some hosts stand for: one for each that has no number."""
    return sum(int(host.partition(":")[2] or 1) for host in hosts)


def in_blocks(hosts: Sequence[str], ranks: int) -> str:
    """Hosts with ranks for a launcher: neighbouring ranks share a host, unless the user gave counts ("a:2,b:2")."""
    if any(":" in host for host in hosts):
        return ",".join(hosts)
    return ",".join(f"{host}:{count}" for host, count in shares([(host, 1) for host in hosts[:ranks]], ranks))


def shares(slots: Sequence[tuple[str, int]], ranks: int) -> list[tuple[str, int]]:
    """So many ranks over hosts in proportion to their slots, neighbours on one host; hosts without any are left out."""
    total = sum(count for _, count in slots)
    cut, before = [0], 0
    for _, count in slots:
        before += count
        cut.append(before * ranks // total)
    return [(host, b - a) for (host, _), a, b in zip(slots, cut, cut[1:]) if b > a]


@dataclasses.dataclass(frozen=True)
class Allocation:
    """Hold what a batch system has given the job that this process belongs to.

    Attributes
    ----------
    system : {"SLURM", "PBS", "LSF", "Flux"}
    job : str
        Its number or name.
    hosts : tuple of (str, int)
        Host and ranks; empty where the system names no hosts, and its launcher knows them.
    ranks : int
        That the job has asked for: a rank a host where it has asked for no number.
    said_by : str
        The variables, or the command, that say so.
    nodes : int
        Hosts, also where none is named.
    """

    system: str
    job: str
    hosts: tuple[tuple[str, int], ...]
    ranks: int
    said_by: str
    nodes: int
