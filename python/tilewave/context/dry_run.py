"""Dry runs: what ``tilewave plan`` runs a script in, for ranks and a machine that are not here."""

from __future__ import annotations

import dataclasses
from typing import Any

from tilewave import _core, units
from tilewave.context.planned_calls import PlannedCalls
from tilewave.errors import ConfigError

#: The launch that contexts are made for while a script is only planned. None: contexts are real.
launch: Launch | None = None


@dataclasses.dataclass
class Launch:
    """The launch that is planned for.

    Attributes
    ----------
    ranks, threads : int
        Lanes of each rank: None as the machine was measured with, else as here.
    machine : Machine or None
        None: numbers for any machine.
    path : str
        Where the machine is from, for messages.
    calls : PlannedCalls
        What the script has called so far.
    """

    ranks: int
    threads: int | None
    machine: Any
    path: str
    calls: PlannedCalls = dataclasses.field(default_factory=PlannedCalls)


def dry_core(threads: int) -> Any:
    """The core context of rank 0 of the launch that is planned for: nothing is sent, and no schedule runs.

    0 threads: those that the machine was measured with, else as here.
    """
    assert launch is not None
    if threads == 0 and launch.machine is not None:
        threads = launch.machine.conditions["threads"]
    core = _core.Context.dry(0, launch.ranks, threads)
    if threads == 0 and core.threads > 1:  # here is one rank of them
        core = _core.Context.dry(0, launch.ranks, max(core.threads // launch.ranks, 1))
    machine = core.machine() if launch.machine is None else launch.machine._to_core()
    machine.host_of = hosts_of(launch.machine, launch.ranks)
    machine.set_of, machine.set_cpus = cpus_of(launch.machine, launch.ranks)
    core.plans_only = True
    core.use_machine(machine)
    launch.calls.threads = max(launch.calls.threads, core.threads)
    return core


def hosts_of(machine: Any, ranks: int) -> list[int]:
    """The host of each of some ranks: as many on each as the machine's launch had."""
    known = machine.host_of if machine else []
    network = machine and machine.network
    if len(set(known)) < 2 and not network:
        return [0] * ranks
    each = ranks_per_host(machine)
    if network and -(-ranks // each) > network.nodes:
        raise ConfigError(
            f"{units.count(ranks, 'rank')}, {each} on each node, were given; allowed: at most {network.nodes * each}, "
            f"as the network has {units.count(network.nodes, 'node')}"
        )
    return [rank // each for rank in range(ranks)]


def cpus_of(machine: Any, ranks: int) -> tuple[list[int], list[float]]:
    """The set of CPUs of each of some ranks, and how many each set has: those of a host that the machine was measured
    on, for as many ranks as were there. Without a machine, or where it knows of no CPUs, each lane has its own."""
    if not (cpus := machine.conditions.get("cpus") if machine else None):
        return [], []
    each = ranks_per_host(machine)
    return [rank // each for rank in range(ranks)], [float(max(cpus))] * -(-ranks // each)


def ranks_per_host(machine: Any) -> int:
    """Ranks that each host of the machine's launch had; 1 without a machine."""
    return machine.host_of.count(machine.host_of[0]) if machine and machine.host_of else 1
